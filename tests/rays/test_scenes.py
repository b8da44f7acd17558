"""Scenes of several shapes: instances with transforms, ids and masks, and scenes that change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ray_brute as brute
from ray_scenes import grid, open_room, rays_at, soup
from test_hits import check, trace

import slangpy as spy
from slangpy import rays

pytestmark = pytest.mark.needs_kernels
rng = np.random.default_rng(12)


def random_transforms(count: int) -> np.ndarray[Any, Any]:
    """(count, 3, 4): turned, stretched, mirrored and moved."""
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    linear = turns * rng.uniform(0.3, 1.5, (count, 1, 3))
    return np.concatenate([linear, rng.uniform(-3, 3, (count, 3, 1))], axis=2)


def world_triangles(points: Any, triangles: Any, transform: Any) -> Any:
    """Corners in the world, (m, 3, 3)."""
    return points.astype(np.float64)[triangles] @ transform[:, :3].T + transform[:, 3]


def test_instances(device: spy.Device):
    """Against the same triangles in the world, in float64: what is surely hit is hit, in the instance that it belongs to."""
    meshes = [soup(30, seed=1), grid(6, 0.3)]
    shapes = [rays.Mesh(*mesh) for mesh in meshes]
    transforms = random_transforms(14)
    kinds = [k % 2 for k in range(14)]
    items = [rays.Instance(shapes[k], t, id=100 + i) for i, (k, t) in enumerate(zip(kinds, transforms, strict=True))]
    scene = rays.Scene(device, items)
    assert len(scene.shapes) == 2 and len(scene.instances) == 14
    corners = [world_triangles(*meshes[k], t) for k, t in zip(kinds, transforms, strict=True)]
    owners = np.concatenate([np.full(len(part), i) for i, part in enumerate(corners)])
    points = np.concatenate(corners).reshape(-1, 3)
    triangles = np.arange(len(points)).reshape(-1, 3)
    assert (scene.bounds[0] <= points.min(0)).all() and (scene.bounds[1] >= points.max(0)).all()
    origins, directions = rays_at(points, triangles, 1000)
    found = trace(scene, origins, directions)
    inner, outer = brute.surely_hit(points, triangles, origins, directions, 1e-4)
    t = np.where(found["primitive"] >= 0, found["t"].astype(np.float64), np.inf)
    assert np.isfinite(inner).sum() > 300
    assert (t <= inner * (1 + 1e-4) + 1e-4).all() and (t >= outer * (1 - 1e-4) - 1e-4).all()
    hit = found["instance"] >= 0
    assert (found["id"][hit] == 100 + found["instance"][hit]).all()
    first = np.searchsorted(owners, found["instance"][hit])
    at = origins[hit] + t[hit, None] * directions[hit]
    own = points[triangles[first + found["primitive"][hit]]]
    weights = np.concatenate([1 - found["weights"][hit].sum(1, keepdims=True), found["weights"][hit]], axis=1)
    scale = 1 + np.abs(origins[hit]).max()
    grazing = np.abs(np.sum(np.cross(own[:, 1] - own[:, 0], own[:, 2] - own[:, 0]) * directions[hit], axis=1)) < 1e-3
    assert np.abs((weights[..., None] * own).sum(1) - at)[~grazing].max() < 2e-4 * scale


def test_order_of_equal_hits(device: spy.Device):
    """Of hits at the same t, the first instance counts, then the first primitive."""
    points, triangles = grid(3)
    mesh, again = rays.Mesh(points, triangles), rays.Mesh(points, np.concatenate([triangles, triangles]))
    origins, directions = rays_at(points, triangles, 200)
    alone = trace(rays.Scene(device, mesh), origins, directions)
    for items in ([mesh, again, mesh], [again, mesh], [rays.Instance(again, id=5)]):
        found = trace(rays.Scene(device, items), origins, directions)
        assert (found["primitive"] == alone["primitive"]).all() and (found["t"] == alone["t"]).all()
        assert (found["instance"] == np.where(alone["primitive"] >= 0, 0, -1)).all()


def test_masks(device: spy.Device):
    sphere = rays.Spheres(np.float32([[0, 0, 0, 0.4]]))
    places = [np.hstack([np.eye(3), [[0], [0], [z]]]) for z in (0, 1, 2)]
    scene = rays.Scene(device, [rays.Instance(sphere, place, mask=1 << k) for k, place in enumerate(places)])
    origin, direction = np.float32([[0, 0, -5]]), np.float32([[0, 0, 1]])
    for mask, instance in ((7, 0), (0xFFFFFFFF, 0), (6, 1), (4, 2), (8, -1), (0, -1)):
        found = trace(scene, origin, direction, mask=mask)[0]
        assert found["instance"] == instance and found["any"] == (instance >= 0)
        assert instance < 0 or np.isclose(found["t"], 4.6 + instance)
    alone = rays.Scene(device, rays.Instance(sphere, mask=2))
    assert [int(trace(alone, origin, direction, mask=mask)["instance"][0]) for mask in (1, 2, 3)] == [-1, 0, 0]


def test_shapes_together(device: spy.Device):
    """Triangles, spheres and boxes in one scene, each where it is."""
    floor = rays.Mesh(np.float32([[-9, -9, 0], [9, -9, 0], [0, 18, 0]]))
    spheres = rays.Spheres(np.float32([[2, 0, 1, 0.5], [-2, 0, 1, 0.25]]))
    boxes = rays.Boxes(np.float32([[-0.5, -0.5, 0.5, 0.5, 0.5, 1.5]]))
    scene = rays.Scene(device, [floor, spheres, boxes])
    origins = np.float32([[2, 0, 9], [-2, 0, 9], [0, 0, 9], [1, 1, 9], [50, 0, 9]])
    found = trace(scene, origins, np.tile(np.float32([0, 0, -1]), (5, 1)))
    assert found["instance"].tolist() == [1, 1, 2, 0, -1] and found["primitive"].tolist() == [0, 1, 0, 0, -1]
    np.testing.assert_allclose(found["t"][:4], [7.5, 7.75, 7.5, 9], rtol=1e-6)


def test_refit(device: spy.Device):
    points, triangles = open_room()
    scene = rays.Scene(device, rays.Mesh(points, triangles), updatable=True)
    for step in range(3):
        changed = points + np.float32(0.3 * step) * np.sin(7 * points[:, [1, 2, 0]])
        scene.refit(changed)
        origins, directions = rays_at(changed, triangles, 400, seed=step)
        check(scene, brute.Triangles(changed, triangles), origins, directions)
    assert np.array_equal(scene.vertices.to_numpy(), changed)
    assert np.allclose(scene.bounds, [changed.min(0), changed.max(0)])


def test_refit_and_move_in_scenes_of_many(device: spy.Device):
    first, second = grid(4), soup(50, seed=3)
    balls = np.concatenate([rng.uniform(-1, 1, (20, 3)), np.full((20, 1), 0.1)], 1).astype(np.float32)
    shapes = [rays.Mesh(*first), rays.Mesh(*second), rays.Spheres(balls)]
    places = random_transforms(3)
    scene = rays.Scene(device, shapes, updatable=True)
    scene.refit(second[0] * 2, shape=1)
    scene.refit(balls + np.float32([0, 0, 1, 0]), shape=2)
    scene.move(list(places))
    new = [rays.Mesh(*first), rays.Mesh(second[0] * 2, second[1]), rays.Spheres(balls + np.float32([0, 0, 1, 0]))]
    expected = rays.Scene(device, [rays.Instance(s, p) for s, p in zip(new, places, strict=True)])
    origins = rng.uniform(-4, 4, (2000, 3)).astype(np.float32)
    directions = rng.normal(size=(2000, 3)).astype(np.float32)
    one, other = (trace(each, origins, directions) for each in (scene, expected))
    assert (one["instance"] >= 0).sum() > 20 and (one == other).all()
    assert np.array_equal(scene.vertices.to_numpy(), expected.vertices.to_numpy())
    scene.move([None] * 3)
    np.testing.assert_allclose(scene.bounds, rays.Scene(device, new).bounds, rtol=1e-6)


def test_flat_scenes_that_move(device: spy.Device):
    """A scene without a hierarchy over instances gets one, and loses it again."""
    points, triangles = soup(60, seed=4)
    scene = rays.Scene(device, rays.Mesh(points, triangles), updatable=True)
    origins, directions = (part[::8] for part in rays_at(points, triangles, 2400))  # at no borders
    before = trace(scene, origins, directions)
    scene.move([np.hstack([np.eye(3), [[3], [0], [0]]])])
    shifted = trace(scene, origins + np.float32([3, 0, 0]), directions)
    assert (shifted["primitive"] == before["primitive"]).mean() > 0.98  # the shift rounds
    scene.refit(points * 2)
    scene.move([None])
    check(scene, brute.Triangles(points * np.float32(2), triangles), origins, directions)


@pytest.mark.one
def test_containers(device: spy.Device):
    """NumPy of any type and order, Tensors of float and float3, lists."""
    points, triangles = soup(20, seed=5)
    origins, directions = rays_at(points, triangles, 100)
    expected = trace(rays.Scene(device, rays.Mesh(points, triangles)), origins, directions)
    for vertices, rows in (
        (points.astype(np.float64), triangles.astype(np.int64)),
        (np.asfortranarray(points), triangles.astype(np.uint16)),
        (points.tolist(), triangles.tolist()),
        (spy.Tensor.from_numpy(device, points), spy.Tensor.from_numpy(device, triangles)),
        (spy.Tensor.from_numpy(device, points, target_slang_dtype="float3"), spy.Tensor.from_numpy(device, triangles.astype(np.int64))),
        (spy.Tensor.from_numpy(device, np.repeat(points, 2, axis=0))[::2], None),
        (points, None),
    ):
        assert (trace(rays.Scene(device, rays.Mesh(vertices, rows)), origins, directions) == expected).all()


@pytest.mark.one
def test_other_ways_to_call(device: spy.Device):
    """Scenes in `dispatch`, in structs, in prepared and in recorded calls."""
    source = """
        import slangpy;
        import slangpy.rays;
        struct World { rays::Scene scene; float3 up; }
        float height(float3 at, World world) { return world.scene.closest(at, -world.up).t; }
        void heights(uint3 dispatchThreadID, rays::Scene scene, RWTensor<float, 1> found)
        {
            const uint i = dispatchThreadID.x;
            if (i < found.shape[0])
                found[i] = scene.closest(float3(0.1 * i, 0.2, 5), float3(0, 0, -1)).t;
        }
    """
    module = spy.Module.load_from_source(device, "rays_other_ways", source)
    scene = rays.Scene(device, rays.Boxes([[-1, -1, 0, 1, 1, 2]]))
    found = spy.Tensor.zeros(device, (8,), "float")
    module.heights.dispatch([8, 1, 1], scene=scene, found=found)
    np.testing.assert_allclose(found.to_numpy(), 3, rtol=1e-6)
    places = np.float32([[0.1, 0.2, 7], [0.3, 0.1, 9]])
    world = {"_type": "World", "scene": scene, "up": spy.float3(0, 0, 1)}
    np.testing.assert_allclose(module.height(places, world, _result="numpy"), [5, 7], rtol=1e-6)
    at, into = spy.Tensor.from_numpy(device, places, target_slang_dtype="float3"), spy.Tensor.zeros(device, (2,), "float")
    step = module.height.prepare(at, world, _result=into)
    step()
    np.testing.assert_allclose(into.to_numpy(), [5, 7], rtol=1e-6)
    into.clear()
    with device.create_command_encoder() as encoder:
        module.height.append_to(encoder, at, world, _result=into)
    np.testing.assert_allclose(into.to_numpy(), [5, 7], rtol=1e-6)


@pytest.mark.nightly
def test_memory(device: spy.Device):
    """A thousand scenes, and refits of one, keep nothing."""
    points, triangles = soup(500, seed=6)
    used = []
    scene = rays.Scene(device, [rays.Mesh(points, triangles), rays.Mesh(points + 3, triangles)], updatable=True)
    for step in range(1000):
        rays.Scene(device, [rays.Mesh(points, triangles), rays.Spheres([[0, 0, 0, 1]])])
        scene.refit(points * (1 + step / 1000), shape=step % 2)
        if step % 250 == 249:
            device.wait()
            used.append(memory_in_use())
    assert used[-1] - used[1] < 4 << 20, used


def memory_in_use() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
