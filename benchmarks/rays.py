"""Rays per second against a hierarchy of slangpy.rays, beside Embree (CPU), a kernel by hand and Warp's wp.Mesh (CUDA) where these
are installed, and the driver's own RayQuery on Vulkan devices that have it.

    python benchmarks/rays.py [--device cpu] [--triangles 1000000] [--rays 1000000] [--seconds 1] [--keep "one H200"]

Three meshes: a sphere with bumps, as many small triangles at random places, and a room with walls, furniture, bars and bumpy
spheres. Three sets of rays: a camera's (neighbours go the same way), random ones through the scene, and shadow rays (any hit)
from the surface. Prints the median of calls that alternate between the packages, the ratio of their shortest times (above 1:
ours is faster), the build, and how many rays find another triangle than the other package's (they round differently).
Embree is called through `embreex`, which traces one ray after the other on one thread: on the CPU, seconds are those of
processors, so that threads count alike. The kernel by hand is rays_cuda.cu, over the same hierarchy. --keep writes the run to
results/rays.json, in place of an earlier one of this device and machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rays_cuda

import slangpy as spy
from slangpy import rays
from slangpy.rays import driver

SOURCE = """
import slangpy;
import slangpy.rays;
int closest(float3 origin, float3 direction, rays::Scene scene) { return scene.closest(origin, direction).primitive; }
int occluded(float3 origin, float3 direction, rays::Scene scene) { return scene.occluded(origin, direction) ? 1 : 0; }
"""
QUERY = """
RayDesc ray_of(float3 origin, float3 direction) { return { origin, 0, direction, 3.402823466e38 }; }
int closest(float3 origin, float3 direction, RaytracingAccelerationStructure scene)
{
    RayQuery<RAY_FLAG_FORCE_OPAQUE> query;
    query.TraceRayInline(scene, RAY_FLAG_FORCE_OPAQUE, 0xff, ray_of(origin, direction));
    while (query.Proceed()) { }
    return query.CommittedStatus() == COMMITTED_NOTHING ? -1 : int(query.CommittedPrimitiveIndex());
}
int occluded(float3 origin, float3 direction, RaytracingAccelerationStructure scene)
{
    const uint flags = RAY_FLAG_FORCE_OPAQUE | RAY_FLAG_ACCEPT_FIRST_HIT_AND_END_SEARCH;
    RayQuery<RAY_FLAG_FORCE_OPAQUE> query;
    query.TraceRayInline(scene, flags, 0xff, ray_of(origin, direction));
    while (query.Proceed()) { }
    return query.CommittedStatus() == COMMITTED_NOTHING ? 0 : 1;
}
"""
Array = np.ndarray[Any, Any]
RESULTS = Path(__file__).with_name("results") / "rays.json"


@dataclass(frozen=True)
class Tracer:
    """One package: it takes origins and directions and gives a function that traces them and waits, and one for results."""

    name: str
    build_seconds: float
    prepare: Callable[[Array, Array, bool], tuple[Callable[[], Any], Callable[[], Array]]]


def bumpy_sphere(count: int) -> tuple[Array, Array]:
    """About `count` triangles."""
    rows = max(int((count / 4) ** 0.5), 2)
    columns = 2 * rows
    v, u = np.meshgrid(np.linspace(0, np.pi, rows + 1), np.linspace(0, 2 * np.pi, columns, endpoint=False), indexing="ij")
    radius = 1 + 0.05 * np.sin(13 * u) * np.sin(11 * v) + 0.01 * np.sin(97 * u) * np.sin(83 * v)
    points = radius[..., None] * np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], -1)
    first = np.arange(rows)[:, None] * columns + np.arange(columns)
    right = np.arange(rows)[:, None] * columns + (np.arange(columns) + 1) % columns
    quads = np.stack([first, right, first + columns, right, right + columns, first + columns], -1)
    return points.reshape(-1, 3).astype(np.float32), quads.reshape(-1, 3).astype(np.int32)


def soup(count: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(1)
    centres = generator.uniform(-1, 1, (count, 1, 3))
    points = centres + generator.normal(0, 0.7 * count ** (-1 / 3), (count, 3, 3))
    return points.reshape(-1, 3).astype(np.float32), np.arange(3 * count, dtype=np.int32).reshape(-1, 3)


def room(count: int) -> tuple[Array, Array]:
    """Large triangles, slivers and small ones together, around where rays start."""
    generator = np.random.default_rng(3)
    corners = np.array(list(np.ndindex(2, 2, 2)))
    sides = np.array([
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ], np.int32)  # fmt: skip
    half = np.array([4, 2.5, 4])
    boxes = [np.stack([-half, half])]
    for size in [(0.3, 0.4, 0.3)] * 150 + [(2, 0.02, 0.02)] * 50:  # furniture and bars
        low = generator.uniform(-half, half - np.array(size))
        boxes.append(np.stack([low, low + size]))
    meshes: list[tuple[Array, Array]] = [(box[corners, np.arange(3)], sides) for box in boxes]
    for _ in range(20):
        points, triangles = bumpy_sphere(count // 20)
        meshes.append((points * generator.uniform(0.1, 0.5) + generator.uniform(-half, half) * 0.8, triangles))
    starts = np.cumsum([0] + [len(points) for points, _ in meshes])
    rows = [triangles + start for (_, triangles), start in zip(meshes, starts, strict=False)]
    return np.concatenate([points for points, _ in meshes]).astype(np.float32), np.concatenate(rows).astype(np.int32)


def camera_rays(count: int) -> tuple[Array, Array]:
    side = int(count**0.5)
    y, x = np.meshgrid(np.linspace(-0.5, 0.5, side), np.linspace(-0.5, 0.5, side), indexing="ij")
    directions = np.stack([x, y, np.full_like(x, -1.0)], -1).reshape(-1, 3)
    return np.tile(np.float32([0, 0, 3]), (side * side, 1)), directions.astype(np.float32)


def random_rays(count: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(2)
    origins = generator.normal(size=(count, 3))
    origins *= 2 / np.linalg.norm(origins, axis=1, keepdims=True)
    return origins.astype(np.float32), (generator.uniform(-0.8, 0.8, (count, 3)) - origins).astype(np.float32)


def preparation(device: spy.Device, module: spy.Module, scene: Any) -> Any:
    """Of a tracer whose kernels are `closest` and `occluded` of a module."""

    def prepare(origins: Array, directions: Array, any_hit: bool) -> tuple[Callable[[], Any], Callable[[], Array]]:
        o, d = (spy.Tensor.from_numpy(device, part, target_slang_dtype="float3") for part in (origins, directions))
        found = spy.Tensor.empty(device, (len(origins),), "int")
        step = (module.occluded if any_hit else module.closest).prepare(o, d, scene, _result=found)

        def run() -> None:
            step()
            device.wait()

        return run, found.to_numpy

    return prepare


def our_tracer(device: spy.Device, points: Array, triangles: Array, hardware: bool = False) -> Tracer:
    module = spy.Module.load_from_source(device, "rays_benchmark", SOURCE)
    mesh = rays.Mesh(spy.Tensor.from_numpy(device, points), spy.Tensor.from_numpy(device, triangles))
    rays.Scene(device, mesh, hardware=hardware)  # compiles
    device.wait()
    begin = time.perf_counter()
    scene = rays.Scene(device, mesh, hardware=hardware)
    device.wait()
    seconds = time.perf_counter() - begin

    return Tracer("slangpy, hardware=True" if hardware else "slangpy", seconds, preparation(device, module, scene))


def query_tracer(device: spy.Device, points: Array, triangles: Array) -> Tracer:
    usage = spy.BufferUsage.acceleration_structure_build_input
    inputs = spy.AccelerationStructureBuildInputTriangles({
        "vertex_buffers": [device.create_buffer(data=points, usage=usage)], "vertex_format": spy.Format.rgb32_float,
        "vertex_count": len(points), "vertex_stride": 12, "index_format": spy.IndexFormat.uint32,
        "index_buffer": device.create_buffer(data=triangles.astype(np.uint32), usage=usage), "index_count": triangles.size,
    })  # fmt: skip
    device.wait()
    begin = time.perf_counter()
    mesh = driver.build(device, inputs)
    instances = device.create_acceleration_structure_instance_list(1)
    instances.write(0, {"instance_mask": 0xFF, "acceleration_structure": mesh.handle})
    scene = driver.build(device, instances.build_input_instances())
    device.wait()
    seconds = time.perf_counter() - begin
    module = spy.Module.load_from_source(device, "rays_benchmark_query", QUERY)
    return Tracer("RayQuery", seconds, preparation(device, module, scene))


def embree_tracer(points: Array, triangles: Array) -> Tracer:
    core = importlib.import_module("embreex.rtcore_scene")
    mesh = importlib.import_module("embreex.mesh_construction")
    begin = time.perf_counter()
    scene = core.EmbreeScene()
    mesh.TriangleMesh(scene, points[triangles])
    scene.run(np.float32([[0, 0, 9]]), np.float32([[0, 0, -1]]))  # commits
    seconds = time.perf_counter() - begin

    def prepare(origins: Array, directions: Array, any_hit: bool) -> tuple[Callable[[], Any], Callable[[], Array]]:
        results: list[Array] = []

        def run() -> None:
            results[:] = [scene.run(origins, directions, query="OCCLUDED" if any_hit else "INTERSECT")]

        return run, lambda: (results[0] >= 0).astype(np.int32) if any_hit else results[0]

    return Tracer("embree", seconds, prepare)


def hand_tracer(device: spy.Device, points: Array, triangles: Array) -> Tracer:
    scene = rays.Scene(device, rays.Mesh(points, triangles))
    return Tracer("CUDA by hand", 0.0, rays_cuda.make(device, scene))


def warp_tracer(points: Array, triangles: Array) -> Tracer:
    kernels = importlib.import_module("rays_warp")
    return Tracer("warp", *kernels.make(points, triangles))


def tracers(device: spy.Device, points: Array, triangles: Array) -> list[Tracer]:
    found = [our_tracer(device, points, triangles)]
    if device.has_feature(spy.Feature.ray_query):
        found += [query_tracer(device, points, triangles), our_tracer(device, points, triangles, hardware=True)]
    if device.type is spy.DeviceType.cuda:
        found.append(hand_tracer(device, points, triangles))
    others = {spy.DeviceType.cpu: ("embreex", embree_tracer), spy.DeviceType.cuda: ("warp", warp_tracer)}
    name, make = others.get(device.type, ("", None))
    try:
        if make is not None:
            importlib.import_module(name)
            found.append(make(points, triangles))
    except ImportError:
        print(f"{name} is not installed: not compared")
    return found


def measure(steps: list[Callable[[], Any]], seconds: float, clock: Callable[[], float]) -> list[list[float]]:
    """The times of each, of calls in turn."""
    times: list[list[float]] = [[] for _ in steps]
    for step in steps:
        step()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds * len(steps) or len(times[0]) < 3:
        for step, own in zip(steps, times, strict=True):
            start = clock()
            step()
            own.append(clock() - start)
    return times


def clock_of(device: spy.Device) -> Callable[[], float]:
    return time.process_time if device.type is spy.DeviceType.cpu else time.perf_counter


def report(device: spy.Device, name: str, mesh: tuple[Array, Array], count: int, seconds: float) -> dict[str, Any]:
    """What is kept of a mesh, by package: milliseconds of the build and, by kind of rays, millions a second."""
    found = tracers(device, *mesh)
    builds = "  ".join(f"{t.name} {1e3 * t.build_seconds:.1f} ms" for t in found)
    print(f"{name}: {len(mesh[1])} triangles; build: {builds}")
    clock = clock_of(device)
    kept = {t.name: {"build, ms": round(1e3 * t.build_seconds, 1)} for t in found}
    for kind, (origins, directions), any_hit in (
        ("camera", camera_rays(count), False),
        ("random", random_rays(count), False),
        ("shadow", random_rays(count), True),
    ):
        prepared = [tracer.prepare(origins, directions, any_hit) for tracer in found]
        times = measure([run for run, _ in prepared], seconds, clock)
        results = [result() for _, result in prepared]
        speeds = {t.name: len(origins) / statistics.median(s) / 1e6 for t, s in zip(found, times, strict=True)}
        for package, speed in speeds.items():
            kept[package][kind] = round(speed, 2)
        rates = "  ".join(f"{package} {speed:8.2f}" for package, speed in speeds.items())
        print(f"  {kind}: million rays/s: {rates}  hits {np.mean(results[0] > (0 if any_hit else -1)):.2f}")
        for tracer, own, result in zip(found[1:], times[1:], results[1:], strict=True):
            ratio = kept["slangpy"][f"{kind}, beside {tracer.name}"] = round(min(own) / min(times[0]), 2)
            print(f"    beside {tracer.name}: {ratio:.2f}; other results: {np.count_nonzero(results[0] != result)}", flush=True)
    return kept


def keep(run: dict[str, Any]) -> None:
    """In place of a run of the same device and machine."""
    record = json.loads(RESULTS.read_text("utf-8"))
    others = [old for old in record["runs"] if (old["device"], old["machine"]) != (run["device"], run["machine"])]
    RESULTS.write_text(json.dumps({**record, "runs": [*others, run]}, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--triangles", type=int, default=1_000_000)
    parser.add_argument("--rays", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--keep", metavar="MACHINE", default="", help="write the run, of the machine of this name")
    options = parser.parse_args()
    device = spy.create_device(type=spy.DeviceType[options.device])
    print(f"{device.info.adapter_name}, {device.type.name}")
    run: dict[str, Any] = {
        "device": options.device, "machine": options.keep, "adapter": device.info.adapter_name, "triangles": options.triangles,
        "rays": options.rays, "seconds": clock_of(device).__name__, "meshes": {},
    }  # fmt: skip
    for name, make in (("sphere", bumpy_sphere), ("soup", soup), ("room", room)):
        run["meshes"][name] = report(device, name, make(options.triangles), options.rays, options.seconds)
    if options.keep:
        keep(run)


if __name__ == "__main__":
    main()
