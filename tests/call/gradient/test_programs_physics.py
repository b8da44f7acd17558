"""Programs that move things: values and gradients against torch in float64, on every device."""

from __future__ import annotations

from typing import Any

import pytest

import slangpy as spy

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

from whole_programs import Program, check  # noqa: E402 (torch may be absent)


def _cloth(position: Any, velocity: Any, stiffness: Any, dt: Any) -> Any:
    rows, cols = position.shape[:2]
    moved = []
    for y in range(rows):
        for x in range(cols):
            force = torch.tensor([0, -0.5, 0], dtype=torch.float64)
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                if 0 <= x + dx < cols and 0 <= y + dy < rows:
                    d = position[y + dy, x + dx] - position[y, x]
                    force = force + stiffness * (d.norm() - 0.3) * d / d.norm()
            moved.append(position[y, x] + dt * (velocity[y, x] + dt * force))
    return torch.stack(moved).reshape(rows, cols, 3)


def _gravity(at: Any, mass: Any, softening: Any) -> Any:
    d = at[None] - at[:, None]
    r2 = (d * d).sum(-1) + softening * softening
    return (mass[None, :, None] * d / r2[..., None] ** 1.5).sum(1)


def _pendulum(angle: Any, length: Any, dt: Any) -> Any:
    speed = torch.zeros_like(angle)
    for _ in range(17):
        speed = speed - dt * 9.81 / length * torch.sin(angle)
        angle = angle + dt * speed
    return torch.stack([angle, speed], -1)


def _rk4(rate: Any, s: Any, dt: Any, steps: int) -> Any:
    for _ in range(steps):
        a = rate(s)
        b = rate(s + 0.5 * dt * a)
        c = rate(s + 0.5 * dt * b)
        d = rate(s + dt * c)
        s = s + dt / 6 * (a + 2 * b + 2 * c + d)
    return s


def _hunted(s: Any, growth: Any, catching: Any, dt: Any) -> Any:
    def rate(s: Any) -> Any:
        x, y = s.unbind(-1)
        return torch.stack([growth * x - catching * x * y, 0.5 * catching * x * y - y], -1)

    return _rk4(rate, s, dt, 7)


def _damped(s: Any, damping: Any, dt: Any) -> Any:
    return _rk4(lambda s: torch.stack([s[..., 1], -s[..., 0] - damping * s[..., 1]], -1), s, dt, 5)


def _heat(cells: Any, k: Any) -> Any:
    for _ in range(3):
        flow = k * (cells[1:] - cells[:-1])
        cells = torch.cat([cells[:1], cells[1:-1] + 0.2 * (flow[1:] - flow[:-1]), cells[-1:]])
    return cells


def _heat_run(m: Any, cells: Any, k: Any) -> Any:
    for _ in range(3):
        cells = m.heat(spy.grid((cells.shape[0],)), cells, k)
    return cells


def _kalman(seen: Any, noise: Any, trust: Any) -> Any:
    found = []
    eye = torch.eye(2, dtype=torch.float64)
    move = torch.tensor([[1, 1], [0, 1]], dtype=torch.float64)
    for row in seen:
        mean, spread = torch.zeros(2, dtype=torch.float64), eye
        for z in row:
            mean, spread = move @ mean, move @ spread @ move.T + noise * eye
            gain = spread[:, 0] / (spread[0, 0] + trust)
            mean, spread = mean + gain * (z - mean[0]), spread - gain[:, None] * spread[0][None]
        found.append(mean)
    return torch.stack(found)


def _turn(q: Any, spin: Any, dt: Any) -> Any:
    v, w = q[:, :3], q[:, 3:]
    rate = torch.cat([0.5 * (w * spin + torch.linalg.cross(spin, v)), -0.5 * (spin * v).sum(-1, keepdim=True)], -1)
    moved = q + dt * rate
    return moved / moved.norm(dim=-1, keepdim=True)


def _density(at: Any, radius: Any) -> Any:
    d = at[None] - at[:, None]
    q = (radius * radius - (d * d).sum(-1)).clamp(min=0)
    return 4 / (torch.pi * radius**8) * (q**3).sum(1)


def _bounce_run(m: Any, height: Any, speed: Any, restitution: Any) -> Any:
    height, speed = height * 1, speed * 1
    m.bounce(height, speed, restitution)
    return height, speed


def _bounce(height: Any, speed: Any, restitution: Any) -> Any:
    for _ in range(5):
        speed = speed - 0.981
        height = height + speed * 0.1
        below = height < 0
        height, speed = torch.where(below, -height * restitution, height), torch.where(below, -speed * restitution, speed)
    return height, speed


def _adam_run(m: Any, *state: Any) -> Any:
    new = [torch.empty_like(state[0]) for _ in range(3)]
    m.adam(*state, *new)
    return new


def _adam(weight: Any, slope: Any, first: Any, second: Any) -> Any:
    first, second = 0.1 * slope + 0.9 * first, 0.001 * slope**2 + 0.999 * second
    return weight - 0.01 * (first / 0.1) / ((second / (1 - 0.999)).sqrt() + 1e-3), first, second


PROGRAMS = {
    "cloth": Program(
        lambda m, *state: (m.cloth_step, (spy.grid((3, 5)), *state)),
        _cloth, ((3, 5, 3), (3, 5, 3), (1,), (1,)), ((-1, 1), (-1, 1), (0.5, 1), (0.1, 0.2)),
        elements=("float3", "float3", "float", "float"), out=((3, 5), "float3"),
    ),
    "gravity": Program(
        lambda m, *bodies: (m.gravity, (spy.grid((13,)), *bodies)),
        _gravity, ((13, 3), (13,), (1,)), ((-1, 1), (0.1, 1), (0.3, 0.5)), elements=("float3", "float", "float"),
    ),
    "pendulum": Program(
        lambda m, angle, length, dt: m.pendulum(angle, length, dt, 17),
        _pendulum, ((31,), (31,), (1,)), ((-1, 1), (0.5, 1), (0.01, 0.05)),
    ),
    "hunted": Program(
        lambda m, s, growth, catching, dt: m.hunted(s, growth, catching, dt, 7),
        _hunted, ((5, 2), (1,), (), ()), ((0.5, 1), (0.5, 1), (0.5, 1), (0.05, 0.1)),
    ),
    "damped": Program(
        lambda m, s, damping, dt: m.damped(s, damping, dt, 5), _damped, ((33, 2), (33,), ()), ((-1, 1), (0, 1), (0.05, 0.1)),
    ),
    "heat": Program(_heat_run, _heat, ((17,), (16,)), ((0, 1), (0.1, 1))),
    "kalman": Program(
        lambda m, seen, noise, trust: m.kalman(seen, noise, trust),
        _kalman, ((3, 9), (), ()), ((-1, 1), (0.1, 0.2), (0.3, 0.5)),
    ),
    "turn": Program(lambda m, q, spin, dt: m.turn(q, spin, dt), _turn, ((31, 4), (31, 3), (1,)), ((0.2, 1), (-2, 2), (0.05, 0.1))),
    "density": Program(
        lambda m, *pool: (m.density, (spy.grid((11,)), *pool)),
        _density, ((11, 2), (1,)), ((0, 1), (0.8, 0.9)), elements=("float2", "float"),
    ),
    "bounce": Program(_bounce_run, _bounce, ((31,), (31,), ()), ((0.1, 0.5), (-2, 2), (0.5, 0.9)), error=5e-5),
    "adam": Program(_adam_run, _adam, ((33,),) * 4, ((-1, 1), (-1, 1), (-1, 1), (0.5, 1))),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(device: Any, name: str) -> None:
    check(device, "test_programs_physics.slang", name, PROGRAMS[name])
