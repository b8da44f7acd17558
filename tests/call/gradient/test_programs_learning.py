"""Programs that learn: values and gradients against torch in float64, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

from whole_programs import Program, check, module_of  # noqa: E402 (torch may be absent)

nn = torch.nn.functional
FILE = "test_programs_learning.slang"


def _network(x: Any, w0: Any, b0: Any, w1: Any, b1: Any) -> Any:
    return nn.leaky_relu(nn.linear(nn.leaky_relu(nn.linear(x, w0, b0), 0.1), w1, b1), 0.1)


def _convolution_run(m: Any, image: Any, weights: Any) -> Any:
    result = image.new_empty((weights.shape[0], (image.shape[1] + 1) // 2, (image.shape[2] + 1) // 2))
    m.convolution(spy.grid(tuple(result.shape)), image, weights, result)
    return result


def _normalised_run(m: Any, x: Any, gain: Any, bias: Any) -> Any:
    y = torch.empty_like(x)
    m.normalised(spy.grid((x.shape[0],)), x, gain, bias, y)
    return y


def _bilateral(image: Any, near: Any, alike: Any) -> Any:
    padded = nn.pad(image[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    h, w = image.shape
    total = weights = 0
    for dy in range(3):
        for dx in range(3):
            part = padded[dy : dy + h, dx : dx + w]
            weight = torch.exp(-((dx - 1) ** 2 + (dy - 1) ** 2) * near - (part - image) ** 2 * alike)
            total, weights = total + weight * part, weights + weight
    return total / weights


def _edges(image: Any) -> Any:
    sobel = torch.tensor([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=image.dtype)
    slopes = nn.conv2d(image[None, None], torch.stack([sobel, sobel.T])[:, None])[0]
    return ((slopes**2).sum(0) + 1e-3).sqrt()


def _recurrent(x: Any, w: Any) -> Any:
    h = torch.zeros(x.shape[0], 2, dtype=x.dtype)
    for v in x.unbind(1):
        gate, *fresh = (torch.cat([v, h], -1) @ w.T).unbind(-1)
        gate = torch.sigmoid(gate)[:, None]
        h = gate * h + (1 - gate) * torch.tanh(torch.stack(fresh, -1))
    return h


def _noise(p: Any, slopes: Any) -> Any:
    i = p.detach().floor()
    f, (x, y) = p - i, i.long().unbind(-1)
    u = f**3 * (f * (f * 6 - 15) + 10)

    def corner(dx: int, dy: int) -> Any:
        return (slopes[y + dy, x + dx] * (f - torch.tensor([dx, dy], dtype=p.dtype))).sum(-1)

    top = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * u[:, 0]
    low = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * u[:, 0]
    return top + (low - top) * u[:, 1]


LABELS = torch.arange(31, dtype=torch.int32) * 3 % 5


def _soft_count(x: Any, width: Any) -> Any:
    centers = (torch.arange(8) + 0.5)[:, None] / 8
    return (1 - (x - centers).abs() / width).clamp(min=0).sum(1)


PROGRAMS = {
    "network": Program(lambda m, *s: m.network(*s), _network, ((33, 3), (5, 3), (5,), (2, 5), (2,))),
    "convolution": Program(
        _convolution_run, lambda x, w: nn.conv2d(x[None], w, stride=2, padding=1)[0], ((3, 5, 7), (2, 3, 3, 3)),
    ),
    "normalised": Program(
        _normalised_run, lambda x, gain, bias: nn.layer_norm(x, (13,), gain, bias, 1e-3), ((5, 13), (13,), (13,)), error=1e-4,
    ),
    "attention": Program(
        lambda m, *s: m.attention(*s), lambda q, k, v: torch.softmax(q @ k.T, -1) @ v, ((31, 2), (11, 2), (11, 2)),
        ((-2, 2), (-2, 2), (-1, 1)),
    ),
    "bilateral": Program(
        lambda m, image, *s: m.bilateral(spy.grid(tuple(image.shape)), image, *s), _bilateral, ((5, 7), (), ()),
        ((0, 1), (0.2, 0.4), (1, 3)),
    ),
    "edges": Program(lambda m, image: m.edges(spy.grid((4, 6)), image), _edges, ((6, 8),)),
    "recurrent": Program(lambda m, *s: m.recurrent(*s), _recurrent, ((5, 9, 2), (3, 4))),
    "noise": Program(lambda m, *s: (m.noise, s), _noise, ((33, 2), (5, 6, 2)), ((0.1, 3.9), (-1, 1)), elements=("float2",) * 2),
    "cross_entropy": Program(
        lambda m, scores: m.cross_entropy(scores, LABELS.to(scores.device)),
        lambda scores: nn.cross_entropy(scores, LABELS.long(), reduction="none"), ((31, 5),), ((-3, 3),),
    ),
    "soft_count": Program(
        lambda m, x, width: m.soft_count(spy.grid((8,)), x, width), _soft_count, ((63,), ()), ((0, 1), (0.2, 0.3)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(device: Any, name: str) -> None:
    check(device, FILE, name, PROGRAMS[name])


@pytest.mark.parametrize("n", [0, 1, 31, 33, 10007])
def test_counts(device: Any, n: int) -> None:
    x = np.random.default_rng(n).random(n, np.float32)
    bins = spy.Tensor.zeros(device, (8,), int)
    module_of(device, FILE).count(x, bins)
    assert bins.to_numpy().tolist() == np.histogram(x, 8, (0, 1))[0].tolist()
