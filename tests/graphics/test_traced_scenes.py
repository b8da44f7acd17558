"""Scenes of `slangpy.rays` that the driver's ray queries answer for: what they hit beside what the hierarchy hits."""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

import numpy as np
import pytest
from tracing import needs

import slangpy as spy
from slangpy import rays

pytestmark = pytest.mark.traces
Array = np.ndarray[Any, Any]
FAR = 3.402823466e38
SOURCE = """
import slangpy;
import slangpy.rays;

/// Every third primitive is a hole.
struct Holes : rays::IFilter { bool accepts(rays::Hit candidate) { return candidate.primitive % 3 != 0; } }

uint[7] hit(float3 origin, float3 direction, rays::Scene scene, float t_min, float t_max, uint mask, bool holes)
{
    rays::Hit hit;
    bool any;
    if (holes)
    {
        hit = scene.closest_of(Holes(), origin, direction, t_min, t_max, mask);
        any = scene.occluded_by(Holes(), origin, direction, t_min, t_max, mask);
    }
    else
    {
        hit = scene.closest(origin, direction, t_min, t_max, mask);
        any = scene.occluded(origin, direction, t_min, t_max, mask);
    }
    return {
        asuint(hit.t), uint(hit.primitive), uint(hit.instance), uint(hit.is_hit() ? scene.id(hit) : -1), any ? 1u : 0u,
        asuint(hit.barycentrics.x), asuint(hit.barycentrics.y) };
}
"""
FOUND = np.dtype([("t", "f4"), ("primitive", "i4"), ("instance", "i4"), ("id", "i4"), ("any", "u4"), ("weights", "f4", 2)])


@pytest.fixture
def tracer(device: spy.Device) -> spy.Device:
    return needs(device, "acceleration_structure", "ray_query")


@cache
def module_of(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "rays_by_driver", SOURCE)


def trace(
    scene: rays.Scene, origins: Array, directions: Array, t_min: float = 0.0, t_max: float = FAR, mask: int = 0xFFFFFFFF,
    holes: bool = False,
) -> Array:  # fmt: skip
    return numbers(start(scene, origins, directions, t_min, t_max, mask, holes))


def start(scene: rays.Scene, origins: Array, directions: Array, *limits: Any) -> spy.Tensor:
    on_device = [spy.Tensor.from_numpy(scene.device, part, target_slang_dtype="float3") for part in (origins, directions)]
    return module_of(scene.device).hit(*on_device, scene, *limits)


def numbers(found: spy.Tensor) -> Array:
    return np.ascontiguousarray(found.to_numpy()).view(FOUND)[..., 0]


def without_hierarchy(scene: rays.Scene) -> rays.Scene:
    """Whose nodes are empty: what is hit now, the driver finds."""
    nodes: spy.Tensor = scene.get_this()["nodes"]
    nodes.copy_from_numpy(np.zeros((nodes.shape[0], 4), np.float32))
    return scene


def soup(count: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (count, 1, 3)) + rng.normal(0, count ** (-1 / 3), (count, 3, 3))
    return points.reshape(-1, 3).astype(np.float32), np.arange(3 * count, dtype=np.int32).reshape(-1, 3)


def rays_through(count: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    origins = 3 * rng.normal(size=(count, 3))
    return origins.astype(np.float32), (rng.uniform(-1, 1, (count, 3)) - origins).astype(np.float32)


def a_scene(device: spy.Device, hardware: bool) -> rays.Scene:
    """Triangles, spheres and boxes, in places of their own, with masks."""
    rng = np.random.default_rng(7)
    low = rng.uniform(-1, 1, (40, 3))
    mesh, balls = rays.Mesh(*soup(200, 5)), rays.Spheres(np.hstack([rng.uniform(-1, 1, (60, 3)), rng.uniform(0.02, 0.2, (60, 1))]))
    crates = rays.Boxes(np.hstack([low, low + rng.uniform(0.02, 0.3, (40, 3))]))
    turned = np.array([[0.2, -0.9, 0.1, 0.3], [0.8, 0.3, -0.2, -0.4], [0.1, 0.2, 0.7, 0.2]])
    items = [
        mesh, rays.Instance(mesh, turned, id=11, mask=1), rays.Instance(balls, turned, id=12, mask=2),
        rays.Instance(balls, mask=4), rays.Instance(crates, turned, mask=0x82), crates,
    ]  # fmt: skip
    return rays.Scene(device, items, updatable=True, hardware=hardware)


def near_edge(points: Array, triangles: Array, numbers: Array, origins: Array, directions: Array) -> Array:
    """Whether a ray passes a triangle's edge by less than rounding, in float64. False for number -1."""
    a, b, c = (points[triangles[numbers, k]].astype(np.float64) for k in range(3))
    p, s = np.cross(directions, c - a), origins - a
    scale = np.sum(p * (b - a), axis=1)
    u, v = np.sum(p * s, axis=1) / scale, np.sum(np.cross(s, b - a) * directions, axis=1) / scale
    return (numbers >= 0) & (np.min([u, v, 1 - u - v], axis=0) < 1e-4)


def test_triangles(tracer: spy.Device) -> None:
    """The same hits to the last bit, but where a ray meets an edge, or two triangles at once."""
    points, triangles = soup(1000, 3)
    triangles = np.concatenate([triangles, triangles[:50]])
    origins, directions = rays_through(4000)
    rng = np.random.default_rng(1)
    aimed = points[triangles[rng.integers(0, len(triangles), 1000)]]
    directions[::4] = (aimed[:, 0] + rng.uniform(0, 1, (1000, 1)) * (aimed[:, 1] - aimed[:, 0])) - origins[::4]
    ours = trace(rays.Scene(tracer, rays.Mesh(points, triangles)), origins, directions)
    theirs = trace(rays.Scene(tracer, rays.Mesh(points, triangles), hardware=True), origins, directions)
    differs = ours != theirs
    plain = np.arange(4000) % 4 != 0
    assert (ours["primitive"] >= 0).mean() > 0.4 and (differs & plain).sum() < 40 and differs.mean() < 0.1
    edges = [near_edge(points, triangles, found["primitive"], origins, directions) for found in (ours, theirs)]
    assert ((ours["t"] == theirs["t"]) | edges[0] | edges[1])[differs].all()
    hits = theirs["primitive"] >= 0
    assert (theirs["any"] == hits)[plain].all() and (theirs["t"][~hits] == np.float32(FAR)).all()


@pytest.mark.parametrize("limits", [{}, {"t_min": 0.7, "t_max": 1.1}, {"mask": 2}, {"mask": 0x105}, {"t_min": -0.5}, {"holes": True}])
def test_shapes_masks_and_filters(tracer: spy.Device, limits: dict[str, Any]) -> None:
    origins, directions = rays_through(2500, seed=2)
    ours, theirs = (trace(a_scene(tracer, hardware), origins, directions, **limits) for hardware in (False, True))
    assert 0.1 < (ours["primitive"] >= 0).mean() < 0.95
    assert len(np.unique(ours["instance"])) >= 3 and (ours != theirs).sum() <= 5


def test_it_is_the_driver_that_answers(tracer: spy.Device) -> None:
    """And for rays that it does not take, the hierarchy: here an empty one."""
    origins, directions = rays_through(500, seed=3)
    scene = without_hierarchy(a_scene(tracer, True))
    expected = trace(a_scene(tracer, True), origins, directions)
    assert (trace(scene, origins, directions)["instance"] == expected["instance"]).mean() > 0.97
    assert (trace(scene, origins, directions, mask=0x100)["primitive"] == -1).all()
    odd = np.where(np.arange(500)[:, None] % 2, directions, np.float32(np.nan))
    assert (trace(scene, origins, odd)["primitive"][::2] == -1).all()


def test_scenes_that_change(tracer: spy.Device) -> None:
    origins, directions = rays_through(1500, seed=4)
    scenes = [a_scene(tracer, hardware) for hardware in (False, True)]
    addresses = [structure.device_address for structure in [*scenes[1]._structures, scenes[1]._structure]]
    for change in range(3):
        for scene in scenes:
            if change:
                scene.move([np.hstack([np.eye(3), place[:, None]]) for place in np.random.default_rng(change).normal(0, 0.3, (6, 3))])
            scene.refit(soup(200, 20 + change)[0])
        ours, theirs = (trace(scene, origins, directions) for scene in scenes)
        assert (ours["primitive"] >= 0).mean() > 0.3 and (ours != theirs).sum() <= 5
    after = [structure.device_address for structure in [*scenes[1]._structures, scenes[1]._structure]]
    assert after == addresses  # updated where they are, not built again


def test_kernels_with_cursors_take_the_hierarchy(tracer: spy.Device) -> None:
    """Which gives the same hits."""
    module = spy.Module.load_from_source(tracer, "rays_by_cursors", """
        import slangpy;
        import slangpy.rays;
        [shader("compute")] [numthreads(64, 1, 1)]
        void main(uint3 t: SV_DispatchThreadID, uniform rays::Scene scene, StructuredBuffer<float3> rays, RWStructuredBuffer<int> found)
        {
            if (t.x < 500)
                found[t.x] = scene.closest(rays[2 * t.x], rays[2 * t.x + 1]).primitive;
        }
    """)  # fmt: skip
    origins, directions = rays_through(500, seed=7)
    scene = a_scene(tracer, True)
    expected = trace(a_scene(tracer, False), origins, directions)["primitive"]
    kernel = tracer.create_compute_kernel(module.session.link_program([module.device_module], [module.device_module.entry_point("main")]))
    given = tracer.create_buffer(data=np.stack([origins, directions], 1), struct_size=12, usage=spy.BufferUsage.shader_resource)
    found = tracer.create_buffer(size=2000, struct_size=4, usage=spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access)
    kernel.dispatch([500, 1, 1], scene=scene, rays=given, found=found)
    assert (expected >= 0).mean() > 0.3 and (found.to_numpy().view(np.int32) == expected).all()


def test_a_scene_that_is_dropped_while_a_call_runs(tracer: spy.Device) -> None:
    origins, directions = rays_through(20_000, seed=5)
    expected = trace(a_scene(tracer, True), origins, directions)
    scene = a_scene(tracer, True)
    found = start(scene, origins, directions, 0.0, FAR, 0xFFFFFFFF, False)
    del scene
    gc.collect()
    others = [a_scene(tracer, True) for _ in range(2)]  # take what memory is free
    assert (numbers(found) == expected).all() and others


def test_two_scenes_in_one_call(tracer: spy.Device) -> None:
    """One by the driver, one by the hierarchy."""
    module = spy.Module.load_from_source(tracer, "rays_by_both", """
        import slangpy;
        import slangpy.rays;
        float2 both(float3 origin, float3 direction, rays::Scene a, rays::Scene b)
        {
            return float2(a.closest(origin, direction).t, b.closest(origin, direction).t);
        }
    """)  # fmt: skip
    origins, directions = rays_through(500, seed=6)
    scenes = [a_scene(tracer, True), a_scene(tracer, False)]
    found = module.both(origins, directions, *scenes, _result="numpy")
    assert (found[:, 0] == found[:, 1]).mean() > 0.98 and (found[:, 0] < FAR).mean() > 0.3


def test_masks_that_do_not_fit(tracer: spy.Device) -> None:
    item = rays.Instance(rays.Spheres([[0, 0, 0, 1]]), mask=0x100)
    with pytest.raises(ValueError, match=r"instances\[0\]: mask 0x100: with hardware=True masks have 8 bits"):
        rays.Scene(tracer, item, hardware=True)
