"""Programs of numerical mathematics: values and gradients against torch in float64, on every device."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

from whole_programs import Program, check  # noqa: E402 (torch may be absent)


def _positive(s: Any) -> Any:
    """A symmetric matrix of which a factor exists, from any."""
    return s @ s.mT + 0.5 * torch.eye(3, dtype=s.dtype, device=s.device)


def _cholesky(s: Any) -> Any:
    lower = torch.linalg.cholesky(_positive(s))
    return torch.stack([lower[:, i, j] for i in range(3) for j in range(i + 1)], -1)


def _diagonal(a: Any) -> Any:
    return a + 3 * torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def _root(a: Any, b: Any) -> Any:
    x = torch.ones_like(a)
    for _ in range(30):
        x = x - (x**3 + a * x - b) / (3 * x * x + a)
    return x


def _spectrum(signal: Any, window: Any) -> Any:
    return torch.fft.fft(signal * window).abs() ** 2


def _prefix_run(m: Any, x: Any, decay: Any) -> Any:
    sums = torch.empty_like(x)
    m.prefix(spy.grid((x.shape[0],)), x, decay, sums)
    return sums


def _prefix(x: Any, decay: Any) -> Any:
    found, total = [], torch.zeros_like(decay)
    for column in x.unbind(1):
        total = total * decay + column
        found.append(total)
    return torch.stack(found, 1)


def _slerp(a: Any, b: Any, t: Any) -> Any:
    a, b = a / a.norm(dim=-1, keepdim=True), b / b.norm(dim=-1, keepdim=True)
    c = (a * b).sum(-1, keepdim=True)
    b, c, t = torch.where(c < 0, -b, b), c.abs(), t[:, None]
    angle = torch.acos(c)
    return (torch.sin((1 - t) * angle) * a + torch.sin(t * angle) * b) / torch.sin(angle)


def _bezier(p: Any, t: Any) -> Any:
    q, t = list(p.unbind(1)), t[:, None]
    while len(q) > 1:
        q = [a + (b - a) * t for a, b in pairwise(q)]
    return q[0]


def _integral(center: Any, width: Any, b: Any) -> Any:
    h, total = (b + 1) / 22, 0
    for i in range(23):
        weight = 1 if i in (0, 22) else 4 if i % 2 else 2
        total = total + weight * torch.exp(-(((-1 + i * h - center) / width) ** 2))
    return total * h / 3


PROGRAMS = {
    "inverse": Program(
        lambda m, a: m.inverse3(_diagonal(a)), lambda a: torch.linalg.inv(_diagonal(a)), ((33, 3, 3),),
    ),
    "solve": Program(
        lambda m, a, b: m.solve4(_diagonal(a), b), lambda a, b: torch.linalg.solve(_diagonal(a), b.expand(7, 4)),
        ((7, 4, 4), (4,)),
    ),
    "cholesky": Program(lambda m, s: m.cholesky(_positive(s)), _cholesky, ((31, 3, 3),)),
    "root": Program(lambda m, *s: m.cubic_root(*s), _root, ((33,), (33,)), ((0.1, 2), (0.5, 4))),
    "spectrum": Program(lambda m, *s: m.spectrum(*s), _spectrum, ((5, 8), (8,))),
    "sorted": Program(lambda m, x: m.sorted(x), lambda x: x.sort(-1).values, ((31, 4),)),
    "prefix": Program(_prefix_run, _prefix, ((3, 17), (3,))),
    "slerp": Program(lambda m, *s: m.slerp(*s), _slerp, ((33, 4), (33, 4), (33,)), ((-1, 1), (-1, 1), (0, 1)), error=1e-4),
    "bezier": Program(lambda m, *s: m.bezier(*s), _bezier, ((31, 4, 3), (31,)), ((-1, 1), (0, 1))),
    "integral": Program(
        lambda m, *s: m.bump_integral(*s), _integral, ((31,), (1,), ()), ((-0.5, 0.5), (0.3, 0.5), (1, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(device: Any, name: str) -> None:
    check(device, "test_programs_numbers.slang", name, PROGRAMS[name])
