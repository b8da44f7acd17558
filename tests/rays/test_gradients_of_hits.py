"""Derivatives of hits by vertices, rays, spheres and boxes, against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from ray_scenes import grid, soup
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


def good_rays(target: Array, count: int, seed: int) -> tuple[Array, Array]:
    """From around to near the target, few of them grazing."""
    rng = np.random.default_rng(seed)
    origins = rng.normal(size=(count, 3))
    origins = target.mean(0) + 4 * origins / np.linalg.norm(origins, axis=1, keepdims=True)
    ends = target[rng.integers(0, len(target), count)] + rng.normal(0, 0.02, (count, 3))
    return origins.astype(np.float32), ((ends - origins) * rng.uniform(0.5, 2, (count, 1))).astype(np.float32)


def close(found: Array, expected: Array) -> None:
    scale = np.abs(expected).max()
    assert scale > 0 and np.abs(found - expected).max() < 1e-3 * scale, np.abs(found - expected).max() / scale


def smooth_surface() -> tuple[Array, Array]:
    """Hills that are seen from above and below."""
    points, triangles = grid(8, 0.3)
    return points, triangles


def cases() -> dict[str, tuple[Any, ...]]:
    rng = np.random.default_rng(3)
    points, triangles = smooth_surface()
    spheres = np.concatenate([rng.uniform(-1, 1, (30, 3)), rng.uniform(0.1, 0.3, (30, 1))], 1).astype(np.float32)
    low = rng.uniform(-1, 1, (30, 3))
    boxes = np.concatenate([low, low + rng.uniform(0.1, 0.4, (30, 3))], 1).astype(np.float32)
    return {
        "triangles": (triangle_seen, points, triangles, lambda v: rays.Mesh(v, triangles)),
        "spheres": (sphere_seen, spheres, np.arange(30), rays.Spheres),
        "boxes": (box_seen, boxes, np.arange(30), rays.Boxes),
    }


def rays_for(name: str, data: Array, rows: Any) -> tuple[Array, Array]:
    if name == "triangles":
        rng = np.random.default_rng(4)
        centres = data[rows].mean(1)
        origins = centres[rng.integers(0, len(rows), 60)] + [0, 0, 2] + rng.normal(0, 0.2, (60, 3))
        ends = centres[rng.integers(0, len(rows), 60)] + rng.normal(0, 0.02, (60, 3))
        return origins.astype(np.float32), (ends - origins).astype(np.float32)
    return good_rays(data[:, :3].astype(np.float64), 60, 5)


def ours(device: spy.Device, scene: rays.Scene, origins: Array, directions: Array) -> tuple[Array, Array]:
    """Gradients of the sum by origins and directions; those of shapes are added to their tensors."""
    o, d = (spy.Tensor.from_numpy(device, part, target_slang_dtype="float3").with_grads() for part in (origins, directions))
    seen = module_of(device).seen
    result = seen(o, d, scene, WEIGHTS, _result="tensor").with_grads()
    result.grad.copy_from_numpy(np.ones(len(origins), np.float32))
    seen.bwds(o, d, scene, WEIGHTS, _result=result)
    return o.grad.to_numpy(), d.grad.to_numpy()


@pytest.mark.parametrize("name", ["triangles", "spheres", "boxes"])
def test_gradients(device: spy.Device, name: str):
    seen, data, rows, make = cases()[name]
    tensor = spy.Tensor.from_numpy(device, data).with_grads()
    scene = rays.Scene(device, make(tensor))
    origins, directions = rays_for(name, data, rows)
    which = module_of(device).which(origins, directions, scene, _result="numpy")
    assert (which[:, 1] >= 0).sum() > 20
    identity = np.eye(4)[None, :3]
    by_data, by_origin, by_direction = expected_gradients(seen, data, rows, which, origins, directions, identity)
    found = ours(device, scene, origins, directions)
    close(found[0], by_origin)
    close(found[1], by_direction)
    close(tensor.grad.to_numpy(), by_data)


def test_gradients_through_transforms(device: spy.Device):
    points, triangles = smooth_surface()
    transforms = random_transforms(3)
    vectors = spy.Tensor.from_numpy(device, points, target_slang_dtype="float3").with_grads()
    mesh = rays.Mesh(vectors, triangles)
    scene = rays.Scene(device, [rays.Instance(mesh, t) for t in transforms])
    rng = np.random.default_rng(6)
    centres = points[triangles].mean(1) + rng.normal(0, 0.01, (len(triangles), 3))
    normals = np.cross(*(points[triangles][:, k] - points[triangles][:, 0] for k in (1, 2)))
    pick = rng.integers(0, len(triangles), 60)
    place = transforms[np.arange(60) % 3]
    starts = centres[pick] + normals[pick] / np.linalg.norm(normals[pick], axis=1, keepdims=True) * 0.5 + rng.normal(0, 0.05, (60, 3))
    origins, ends = ((place[:, :, :3] @ p[..., None])[..., 0] + place[..., 3] for p in (starts, centres[pick]))
    origins, directions = origins.astype(np.float32), (ends - origins).astype(np.float32)
    which = module_of(device).which(origins, directions, scene, _result="numpy")
    assert len(set(which[:, 0].tolist()) - {-1}) == 3
    by_data, by_origin, by_direction = expected_gradients(
        triangle_seen, points, triangles, which, origins, directions, transforms
    )
    found = ours(device, scene, origins, directions)
    close(found[0], by_origin)
    close(found[1], by_direction)
    close(vectors.grad.to_numpy(), by_data)


def test_misses_have_no_gradient(device: spy.Device):
    points, triangles = soup(4, seed=2)
    tensor = spy.Tensor.from_numpy(device, points).with_grads()
    scene = rays.Scene(device, rays.Mesh(tensor, triangles))
    origins = np.float32([[9, 9, 9], [9, 9, 9]])
    found = ours(device, scene, origins, np.float32([[1, 0, 0], [np.nan, 0, 0]]))
    assert not found[0].any() and not found[1].any() and not tensor.grad.to_numpy().any()


def test_attributes(device: spy.Device):
    """Interpolated values by the values and by vertices: a linear function is met at the point itself."""
    points, triangles = smooth_surface()
    tensor = spy.Tensor.from_numpy(device, points).with_grads()
    scene = rays.Scene(device, rays.Mesh(tensor, triangles))
    slope = np.float32([0.3, -0.7, 0.2])
    values = spy.Tensor.from_numpy(device, points @ slope).with_grads()
    origins, directions = rays_for("triangles", points, triangles)
    attribute = module_of(device).attribute
    result = attribute(origins, directions, scene, values, _result="tensor").with_grads()
    which = module_of(device).which(origins, directions, scene, _result="numpy")
    hit = which[:, 1] >= 0
    t = np.array([triangle_t(points[triangles[p]], o, d) for o, d, p in zip(origins, directions, which[:, 1], strict=True)])
    np.testing.assert_allclose(result.to_numpy()[hit], ((origins + t[:, None] * directions) @ slope)[hit], atol=1e-5)
    result.grad.copy_from_numpy(np.ones(len(origins), np.float32))
    attribute.bwds(origins, directions, scene, values, _result=result)
    assert np.isclose(values.grad.to_numpy().sum(), hit.sum(), rtol=1e-5)  # weights of a hit are 1 together
    assert np.abs(tensor.grad.to_numpy()).max() > 0.01


def triangle_t(corners: Array, o: Array, d: Array) -> Any:
    a, b, c = corners.astype(np.float64)
    n = np.cross(b - a, c - a)
    return n @ (a - o) / (n @ d)


@pytest.mark.one
def test_torch(device: spy.Device):
    """The mesh's own torch tensor is the leaf; a scene that is refitted sees the new one."""
    torch = pytest.importorskip("torch")
    bridge = spy.create_torch_device(type=device.type)
    points, triangles = smooth_surface()
    leaf = torch.from_numpy(points).requires_grad_()
    scene = rays.Scene(bridge, rays.Mesh(leaf, triangles), updatable=True)
    origins, directions = (torch.from_numpy(part) for part in rays_for("triangles", points, triangles))
    origins.requires_grad_()
    seen = spy.Module.load_from_source(bridge, "rays_gradients_torch", SOURCE).seen
    seen(origins, directions, scene, torch.from_numpy(WEIGHTS)).sum().backward()
    tensor = spy.Tensor.from_numpy(device, points).with_grads()
    by_origin, _ = ours(device, rays.Scene(device, rays.Mesh(tensor, triangles)), origins.detach().numpy(), directions.numpy())
    np.testing.assert_allclose(leaf.grad.numpy(), tensor.grad.to_numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(origins.grad.numpy(), by_origin, rtol=1e-4, atol=1e-4)
    moved = (leaf.detach() + torch.tensor([0.0, 0.0, 0.5])).requires_grad_()
    scene.refit(moved)
    assert scene.vertices is moved
    seen(origins, directions, scene, torch.from_numpy(WEIGHTS)).sum().backward()
    assert moved.grad.abs().sum() > 0
