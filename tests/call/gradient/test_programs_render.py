"""Programs that make pictures: values and gradients against torch in float64, on every device."""

from __future__ import annotations

import math
from typing import Any

import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

from whole_programs import Program, check  # noqa: E402 (torch may be absent)


def dot(a: Any, b: Any) -> Any:
    return (a * b).sum(-1)


def unit(v: Any) -> Any:
    return v / v.norm(dim=-1, keepdim=True)


def ball(values: Any) -> dict[str, Any]:
    return {"center": values[:3], "radius": values[3]}


def _march(origin: Any, direction: Any, a: Any, b: Any, blend: Any) -> Any:
    def scene(p: Any) -> Any:
        x, y = (p - a[:3]).norm() - a[3], (p - b[:3]).norm() - b[3]
        h = (0.5 + 0.5 * (y - x) / blend).clamp(0, 1)
        return y + (x - y) * h - blend * h * (1 - h)

    found = []
    for o, d in zip(origin, direction, strict=True):
        t = torch.zeros((), dtype=torch.float64)
        for _ in range(24):
            near = scene(o + t * d)
            if near < 1e-2 or t > 6:
                break
            t = t + near
        found.append(t)
    return torch.stack(found)


def _march_run(m: Any, origin: Any, direction: Any, a: Any, b: Any, blend: Any) -> Any:
    return m.march(origin, direction, ball(a), ball(b), blend)


def _shade(n: Any, l: Any, v: Any, base: Any, roughness: Any, metallic: Any) -> Any:  # noqa: E741
    n, l, v = unit(n), unit(l), unit(v)  # noqa: E741
    h = unit(l + v)
    nl, nv = dot(n, l).clamp(min=0), dot(n, v).clamp(min=1e-3)
    nh, vh = dot(n, h).clamp(0, 1), dot(v, h).clamp(0, 1)
    a2 = roughness**4
    d = nh * nh * (a2 - 1) + 1
    f0 = 0.04 + (base - 0.04) * metallic[:, None]
    f = f0 + (1 - f0) * ((1 - vh) ** 5)[:, None]
    k = (roughness + 1) ** 2 / 8
    safe = torch.where(nl > 0, nl, torch.ones_like(nl))
    g = safe / (safe * (1 - k) + k) * nv / (nv * (1 - k) + k)
    specular = (a2 / (math.pi * d * d) * g / (4 * safe * nv))[:, None] * f
    lit = (specular + (1 - f) * (1 - metallic[:, None]) * base / math.pi) * safe[:, None]
    return torch.where((nl > 0)[:, None], lit, torch.zeros_like(lit))


def _triangle(o: Any, d: Any, a: Any, b: Any, c: Any) -> Any:
    e1, e2 = b - a, c - a
    p = torch.linalg.cross(d, e2.expand_as(d))
    det, s = dot(e1, p), o - a
    q = torch.linalg.cross(s, e1.expand_as(s))
    u, v, t = dot(s, p) / det, dot(d, q) / det, dot(e2, q) / det
    found = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
    missed = torch.tensor([0.5, 0, 0], dtype=torch.float64)
    return torch.where(found[:, None], torch.stack([t, u, v], -1), missed)


def _splat(shape: Any, color: Any) -> Any:
    pixels = []
    for y in range(5):
        for x in range(7):
            total, left = torch.zeros(3, dtype=torch.float64), torch.ones((), dtype=torch.float64)
            for s, tint in zip(shape, color, strict=True):
                dx, dy = (x + 0.5) / 5 - s[0], (y + 0.5) / 5 - s[1]
                c, n = torch.cos(s[4]), torch.sin(s[4])
                r = ((c * dx + n * dy) / s[2]) ** 2 + ((c * dy - n * dx) / s[3]) ** 2
                alpha = (s[5] * torch.exp(-0.5 * r)).clamp(max=0.95)
                if alpha < 1 / 255:
                    continue
                total, left = total + left * alpha * tint, left * (1 - alpha)
                if left < 0.05:
                    break
            pixels.append(total + left * torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64))
    return torch.stack(pixels).reshape(5, 7, 3)


KINDS = torch.arange(33, dtype=torch.int32) % 4


def _material(albedo: Any, exponent: Any, cosine: Any) -> Any:
    matte, glossy = albedo * cosine, albedo * cosine**exponent
    both = glossy + (1 - glossy) ** 2 * matte
    chosen = torch.stack([matte, glossy, both, torch.zeros_like(both)])
    return chosen.gather(0, KINDS.long()[None])[0] * cosine


def _harmonics(direction: Any, light: Any) -> Any:
    x, y, z = unit(direction).unbind(-1)
    basis = [
        torch.full_like(x, 0.282095), 0.488603 * y, 0.488603 * z, 0.488603 * x, 1.092548 * x * y, 1.092548 * y * z,
        0.315392 * (3 * z * z - 1), 1.092548 * x * z, 0.546274 * (x * x - y * y),
    ]  # fmt: skip
    return (torch.stack(basis, -1) @ light).clamp(min=0)


def _repeating(uv: Any, image: Any) -> Any:
    h, w = image.shape[:2]
    p = uv * torch.tensor([w, h], dtype=uv.dtype) - 0.5
    i = p.detach().floor()
    f, (x, y) = p - i, i.long().unbind(-1)

    def at(dx: int, dy: int) -> Any:
        return image[(y + dy) % h, (x + dx) % w]

    fx, fy = f[:, :1], f[:, 1:]
    return (at(0, 0) * (1 - fx) + at(1, 0) * fx) * (1 - fy) + (at(0, 1) * (1 - fx) + at(1, 1) * fx) * fy


def _encoded(uv: Any, table: Any) -> Any:
    features = []
    for level in range(3):
        p = uv * (4 << level)
        i = p.detach().floor()
        f = p - i
        total = 0
        for corner in range(4):
            o = torch.tensor([corner & 1, corner >> 1])
            at = i.long() + o
            slot = ((at[:, 0] ^ (at[:, 1] * 2654435761 % 2**32)) % table.shape[1]).long()
            w = torch.where(o == 1, f, 1 - f).prod(-1, keepdim=True)
            total = total + w * table[level, slot]
        features.append(total)
    return torch.cat(features, -1)


def _reprojection(p: Any, seen: Any, rotation: Any, place: Any, focal: Any) -> Any:
    q = (p - place) @ rotation.T
    squared = ((focal * q[:, :2] / q[:, 2:] - seen) ** 2).sum(-1)
    return torch.where(squared < 1, 0.5 * squared, squared.sqrt() - 0.5)


def _volume(density: Any, color: Any, step: Any) -> Any:
    found = []
    for d_row, c_row in zip(density, color, strict=True):
        total, depth = torch.zeros(3, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for d, c in zip(d_row.clamp(min=0) * step, c_row, strict=True):
            total, depth = total + torch.exp(-depth) * (1 - torch.exp(-d)) * c, depth + d
            if torch.exp(-depth) < 0.02:
                break
        else:
            total = total + torch.exp(-depth) * 0.25
        found.append(total)
    return torch.stack(found)


PROGRAMS = {
    "march": Program(
        _march_run, _march, ((31, 3), (31, 3), (4,), (4,), ()),
        ((-0.4, 0.4), (0.4, 0.6), (0.9, 1.5), (1.2, 1.8), (0.2, 0.3)), error=1e-4,
    ),
    "shade": Program(
        lambda m, *s: m.shade(*s), _shade, ((31, 3), (31, 3), (31, 3), (3,), (31,), (31,)),
        ((-0.2, 1), (-0.2, 1), (0.1, 1), (0.1, 0.9), (0.3, 0.9), (0.1, 0.9)), error=1e-4,
    ),
    "triangle": Program(
        lambda m, *s: m.triangle(*s), _triangle, ((33, 3), (33, 3), (3,), (3,), (3,)),
        ((-0.2, 0.2), (0.1, 0.9), (0.5, 0.6), (0.9, 2.5), (0.1, 1.5)), error=1e-4,
    ),
    "splat": Program(
        lambda m, *s: (m.splat, (spy.grid((5, 7)), *s)), _splat, ((9, 6), (9, 3)), ((0.3, 0.9), (0, 1)),
        elements=("float", "float3"),
    ),
    "material": Program(
        lambda m, *s: m.material(KINDS.to(s[0].device), *s), _material, ((33,), (33,), (33,)),
        ((0.2, 0.9), (1, 5), (0.1, 0.9)),
    ),
    "harmonics": Program(lambda m, *s: m.harmonics(*s), _harmonics, ((31, 3), (9, 3))),
    "repeating": Program(
        lambda m, *s: (m.repeating, s), _repeating, ((33, 2), (3, 5, 3)), ((-1.5, 1.5), (0, 1)), elements=("float2", "float3"),
    ),
    "encoded": Program(
        lambda m, *s: (m.encoded, s), _encoded, ((31, 2), (3, 19, 2)), ((0.01, 0.99), (-1, 1)), elements=("float2", "float2"),
    ),
    "reprojection": Program(
        lambda m, *s: m.reprojection(*s), _reprojection, ((33, 3), (33, 2), (3, 3), (3,), ()),
        ((-1, 1), (-1, 1), (0.1, 1), (-3, -2), (0.5, 1)),
    ),
    "volume": Program(
        lambda m, *s: (m.volume, s), _volume, ((5, 13), (5, 13, 3), (1,)), ((-0.5, 4), (0, 1), (0.3, 0.4)),
        elements=("float", "float3", "float"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(device: Any, name: str) -> None:
    check(device, "test_programs_render.slang", name, PROGRAMS[name])
