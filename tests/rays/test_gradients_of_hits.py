"""Derivatives of hits by vertices, rays, spheres and boxes, against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from ray_scenes import grid
from test_scenes import random_transforms

import slangpy as spy
from slangpy import rays

pytestmark = pytest.mark.needs_kernels

SOURCE = """
import slangpy;
import slangpy.rays;

/// One number of all that a hit says.
[Differentiable]
float seen(float3 origin, float3 direction, rays::Scene scene, no_diff float w[9])
{
    const rays::Hit hit = scene.closest(origin, direction);
    const rays::Surface at = scene.surface(hit, origin, direction);
    return w[0] * at.t + w[1] * at.barycentrics.x + w[2] * at.barycentrics.y + w[3] * at.normal.x + w[4] * at.normal.y
        + w[5] * at.normal.z + w[6] * at.position.x + w[7] * at.position.y + w[8] * at.position.z;
}

int2 which(float3 origin, float3 direction, rays::Scene scene)
{
    const rays::Hit hit = scene.closest(origin, direction);
    return int2(hit.instance, hit.primitive);
}

/// Values of vertices between them.
[Differentiable]
float attribute(float3 origin, float3 direction, rays::Scene scene, ITensor<float, 1> values)
{
    const rays::Hit hit = scene.closest(origin, direction);
    if (!hit.is_hit())
        return 0;
    const rays::Surface at = scene.surface(hit, origin, direction);
    const int3 v = scene.triangle(hit);
    return rays::interpolate(at.barycentrics, values[v.x], values[v.y], values[v.z]);
}
"""
WEIGHTS = np.float32([0.7, 0.3, -0.5, 0.4, -0.9, 0.6, 0.2, -0.3, 0.8])
Array = np.ndarray[Any, Any]


@cache
def module_of(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "rays_gradients", SOURCE)


def said(t: Any, weights: Any, normal: Any, position: Any) -> Any:
    """What `seen` returns."""
    w = WEIGHTS.astype(np.float64)
    return w[0] * t + weights @ w[1:3] + normal @ w[3:6] + position @ w[6:9]


def triangle_seen(corners: Array, o: Array, d: Array, transform: Array) -> Any:
    a, b, c = corners @ transform[:, :3].T + transform[:, 3]
    n = np.cross(b - a, c - a)
    t = n @ (a - o) / (n @ d)
    p = o + t * d
    u = np.cross(c - a, p - a) @ np.cross(c - a, b - a) / np.sum(np.cross(c - a, b - a) ** 2)
    v = np.cross(b - a, p - a) @ np.cross(b - a, c - a) / (n @ n)
    side = np.sign(np.linalg.det(transform[:, :3]))
    return said(t, np.array([u, v]), side * n / np.linalg.norm(n), p)


def sphere_seen(sphere: Array, o: Array, d: Array, _: Array) -> Any:
    f = o - sphere[:3]
    a, b, c = d @ d, f @ d, f @ f - sphere[3] ** 2
    root = np.sqrt(b * b - a * c)
    t = (-b - root) / a if -b - root > 0 else (-b + root) / a
    p = o + t * d
    return said(t, np.zeros(2), (p - sphere[:3]) / sphere[3], p)


def box_seen(box: Array, o: Array, d: Array, _: Array) -> Any:
    to = np.stack([(box[:3] - o) / d, (box[3:] - o) / d])
    first, last = to.min(0), to.max(0)
    outside = first.max() > 0
    axis = first.argmax() if outside else last.argmin()
    t = first.max() if outside else last.min()
    normal = np.zeros(3)
    normal[axis] = -np.sign(d[axis]) if outside else np.sign(d[axis])
    return said(t, np.zeros(2), normal, o + t * d)


def differences(f: Callable[[Array], float], x: Array, step: float = 1e-5) -> Array:
    found = np.zeros(x.size)
    for k in range(x.size):
        moved = [x.astype(np.float64).ravel().copy() for _ in range(2)]
        moved[0][k] += step
        moved[1][k] -= step
        found[k] = (f(moved[0].reshape(x.shape)) - f(moved[1].reshape(x.shape))) / (2 * step)
    return found.reshape(x.shape)


def expected_gradients(
    seen: Callable[..., float], data: Array, rows: Any, which: Array, origins: Array, directions: Array, transforms: Array
) -> tuple[Array, Array, Array]:
    """By the data of shapes, by origins and by directions."""
    by_data = np.zeros(data.shape)
    by_origin, by_direction = np.zeros(origins.shape), np.zeros(origins.shape)
    for ray, (instance, primitive) in enumerate(which):
        if primitive < 0:
            continue
        own, o, d = rows[primitive], origins[ray].astype(np.float64), directions[ray].astype(np.float64)
        x, place = data[own].astype(np.float64), transforms[instance]
        np.add.at(by_data, own, differences(lambda v: seen(v, o, d, place), x))  # noqa: B023
        by_origin[ray] = differences(lambda v: seen(x, v, d, place), o)  # noqa: B023
        by_direction[ray] = differences(lambda v: seen(x, o, v, place), d)  # noqa: B023
    return by_data, by_origin, by_direction


def close(found: Array, expected: Array) -> None:
    scale = np.abs(expected).max()
    assert scale > 0 and np.abs(found - expected).max() < 1e-3 * scale, np.abs(found - expected).max() / scale


def rays_onto(targets: Array, normals: Array, count: int, seed: int) -> tuple[Array, Array]:
    """From one side of the targets, few of them grazing."""
    rng = np.random.default_rng(seed)
    pick = rng.integers(0, len(targets), count)
    origins = targets[pick] + 0.6 * normals[pick] + rng.normal(0, 0.15, (count, 3))
    ends = targets[pick] + rng.normal(0, 0.01, (count, 3))
    return origins.astype(np.float32), ((ends - origins) * rng.uniform(0.5, 2, (count, 1))).astype(np.float32)


class Shapes:
    """Hills, spheres and boxes side by side, all with gradients: one kernel serves the tests."""

    def __init__(self, device: spy.Device) -> None:
        rng = np.random.default_rng(3)
        self.points, self.triangles = grid(8, 0.3)
        self.balls = np.concatenate([rng.uniform(-1, 1, (30, 3)) + [5, 0, 0], rng.uniform(0.1, 0.3, (30, 1))], 1).astype(np.float32)
        low = rng.uniform(-1, 1, (30, 3)) - [5, 0, 0]
        self.blocks = np.concatenate([low, low + rng.uniform(0.1, 0.4, (30, 3))], 1).astype(np.float32)
        self.tensors = [spy.Tensor.from_numpy(device, data).with_grads() for data in (self.points, self.balls, self.blocks)]
        self.items = [
            rays.Mesh(self.tensors[0], self.triangles), rays.Spheres(self.tensors[1]), rays.Boxes(self.tensors[2])
        ]  # fmt: skip

    def rays(self) -> tuple[Array, Array]:
        corners = self.points[self.triangles].astype(np.float64)
        up = np.tile([0.0, 0.0, 1.0], (len(corners), 1))
        out = np.random.default_rng(5).normal(size=(60, 3)) * 2
        others = np.concatenate([self.balls[:, :3], (self.blocks[:, :3] + self.blocks[:, 3:]) / 2]).astype(np.float64)
        parts = [rays_onto(corners.mean(1), up, 50, 4), rays_onto(others, out, 100, 5)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def ours(device: spy.Device, scene: rays.Scene, origins: Array, directions: Array) -> tuple[Array, Array]:
    """Gradients of the sum by origins and directions; those of shapes are added to their tensors."""
    o, d = (spy.Tensor.from_numpy(device, part, target_slang_dtype="float3").with_grads() for part in (origins, directions))
    seen = module_of(device).seen
    result = seen(o, d, scene, WEIGHTS, _result="tensor").with_grads()
    result.grad.copy_from_numpy(np.ones(len(origins), np.float32))
    seen.bwds(o, d, scene, WEIGHTS, _result=result)
    return o.grad.to_numpy(), d.grad.to_numpy()


def test_gradients(device: spy.Device):
    shapes = Shapes(device)
    scene = rays.Scene(device, shapes.items)
    origins, directions = shapes.rays()
    which = module_of(device).which(origins, directions, scene, _result="numpy")
    found = ours(device, scene, origins, directions)
    by_origin, by_direction = np.zeros(origins.shape), np.zeros(origins.shape)
    kinds = zip((triangle_seen, sphere_seen, box_seen), (shapes.triangles, range(30), range(30)), shapes.tensors, strict=True)
    for instance, (seen, rows, tensor) in enumerate(kinds):
        own = np.where(which[:, :1] == instance, which, -1)
        assert (own[:, 1] >= 0).sum() > 15
        identity = {instance: np.eye(4)[:3]}
        by_data, *by_rays = expected_gradients(seen, tensor.to_numpy(), rows, own, origins, directions, identity)
        close(tensor.grad.to_numpy(), by_data)
        by_origin += by_rays[0]
        by_direction += by_rays[1]
    close(found[0], by_origin)
    close(found[1], by_direction)


def test_gradients_through_transforms(device: spy.Device):
    shapes = Shapes(device)
    transforms = random_transforms(3)
    far = np.hstack([np.eye(3), [[99], [0], [0]]])
    scene = rays.Scene(device, [rays.Instance(shapes.items[0], t) for t in transforms] + [rays.Instance(s, far) for s in shapes.items[1:]])
    corners = shapes.points[shapes.triangles].astype(np.float64)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    origins, directions = rays_onto(corners.mean(1), normals, 60, 6)
    place = transforms[np.arange(60) % 3]
    origins = ((place[:, :, :3] @ origins[..., None])[..., 0] + place[..., 3]).astype(np.float32)
    directions = (place[:, :, :3] @ directions[..., None])[..., 0].astype(np.float32)
    which = module_of(device).which(origins, directions, scene, _result="numpy")
    assert len(set(which[:, 0].tolist()) - {-1}) == 3
    by_data, by_origin, by_direction = expected_gradients(
        triangle_seen, shapes.points, shapes.triangles, which, origins, directions, transforms
    )
    found = ours(device, scene, origins, directions)
    close(found[0], by_origin)
    close(found[1], by_direction)
    close(shapes.tensors[0].grad.to_numpy(), by_data)


def test_misses_have_no_gradient(device: spy.Device):
    shapes = Shapes(device)
    found = ours(device, rays.Scene(device, shapes.items), np.float32([[0, 0, 9], [9, 9, 9]]), np.float32([[1, 0, 0], [np.nan, 0, 0]]))
    assert not found[0].any() and not found[1].any()
    assert not any(tensor.grad.to_numpy().any() for tensor in shapes.tensors)


@pytest.mark.one
def test_attributes(device: spy.Device):
    """Interpolated values by the values and by vertices: a linear function is met at the point itself."""
    shapes = Shapes(device)
    slope = np.float32([0.3, -0.7, 0.2])
    scene = rays.Scene(device, shapes.items[0])
    values = spy.Tensor.from_numpy(device, shapes.points @ slope).with_grads()
    origins, directions = shapes.rays()
    attribute = module_of(device).attribute
    result = attribute(origins, directions, scene, values, _result="tensor").with_grads()
    which = module_of(device).which(origins, directions, scene, _result="numpy")
    hit = which[:, 1] >= 0
    corners = shapes.points[shapes.triangles]
    t = np.array([triangle_t(corners[p], o, d) for o, d, p in zip(origins, directions, which[:, 1], strict=True)])
    np.testing.assert_allclose(result.to_numpy()[hit], ((origins + t[:, None] * directions) @ slope)[hit], atol=1e-5)
    result.grad.copy_from_numpy(np.ones(len(origins), np.float32))
    attribute.bwds(origins, directions, scene, values, _result=result)
    assert np.isclose(values.grad.to_numpy().sum(), hit.sum(), rtol=1e-5)  # weights of a hit are 1 together
    assert np.abs(shapes.tensors[0].grad.to_numpy()).max() > 0.01


def triangle_t(corners: Array, o: Array, d: Array) -> Any:
    a, b, c = corners.astype(np.float64)
    n = np.cross(b - a, c - a)
    return n @ (a - o) / (n @ d)


@pytest.mark.one
def test_torch(device: spy.Device):
    """The mesh's own torch tensor is the leaf; a scene that is refitted sees the new one."""
    torch = pytest.importorskip("torch")
    bridge = spy.create_torch_device(type=device.type)
    shapes = Shapes(device)
    origins, directions = shapes.rays()
    place = bridge.torch_device or torch.device("cpu")
    given = (shapes.points.copy(), origins, directions, WEIGHTS)
    leaf, o, d, weights = (torch.from_numpy(part).to(place) for part in given)
    leaf.requires_grad_()
    o.requires_grad_()
    scene = rays.Scene(bridge, [rays.Mesh(leaf, shapes.triangles), rays.Spheres(shapes.balls), rays.Boxes(shapes.blocks)], updatable=True)
    seen = spy.Module.load_from_source(bridge, "rays_gradients_torch", SOURCE).seen
    seen(o, d, scene, weights).sum().backward()
    by_origin, _ = ours(device, rays.Scene(device, shapes.items), origins, directions)
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), shapes.tensors[0].grad.to_numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(o.grad.cpu().numpy(), by_origin, rtol=1e-4, atol=1e-4)
    moved = (leaf.detach() + torch.tensor([0.0, 0.0, 0.5], device=place)).requires_grad_()
    scene.refit(moved)
    assert scene.vertices is moved
    seen(o, d, scene, weights).sum().backward()
    assert moved.grad.abs().sum() > 0
