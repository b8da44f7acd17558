"""A room with a mirror and a ring, by a path tracer in Slang that runs on the CPU, Vulkan, Direct3D 12 and CUDA.

    python path_tracer.py [--device cpu] [--size 256] [--samples 32] [--mesh FILE] [--out .]

The scene's hierarchy is built on the device; rays need no special hardware. --mesh puts a file that trimesh reads (OBJ, glTF,
PLY, STL) where the ring is.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import slangpy as spy
from slangpy import rays

WHITE, RED, GREEN, LAMP, MIRROR, GOLD = range(6)
COLORS = np.float32([[0.75, 0.75, 0.75], [0.7, 0.1, 0.08], [0.15, 0.5, 0.12], [0, 0, 0], [0.9, 0.9, 0.95], [0.85, 0.55, 0.2]])
LIGHT = np.float32([14, 11, 8])


def matrix(x: tuple[float, ...], y: tuple[float, ...], z: tuple[float, ...], origin: tuple[float, ...]) -> np.ndarray:
    """3 x 4: the axes of a shape and its origin, as columns."""
    return np.float32([x, y, z, origin]).T


def room() -> list[rays.Instance]:
    """Five walls of one square, 2 x 2 x 2, open to the camera."""
    wall = rays.Mesh(np.float32([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]), np.int32([[0, 1, 2], [0, 2, 3]]))
    x, y, z = np.eye(3)
    places = [
        (matrix(x, y, z, (0, 0, 0)), WHITE),
        (matrix(x, y, -z, (0, 0, 2)), WHITE),
        (matrix(x, z, -y, (0, 1, 1)), WHITE),
        (matrix(y, z, x, (-1, 0, 1)), RED),
        (matrix(y, z, -x, (1, 0, 1)), GREEN),
    ]
    return [rays.Instance(wall, place, id=material) for place, material in places]


def ring(around: int = 64, across: int = 24) -> rays.Mesh:
    """A torus of radii 0.3 and 0.11."""
    v, u = np.meshgrid(np.arange(across) * 2 * np.pi / across, np.arange(around) * 2 * np.pi / around, indexing="ij")
    radius = 0.3 + 0.11 * np.cos(v)
    points = np.stack([radius * np.cos(u), radius * np.sin(u), 0.11 * np.sin(v)], -1).reshape(-1, 3)
    row, column = (part.reshape(-1) for part in np.indices((across, around)))
    right, up = (column + 1) % around, (row + 1) % across
    a, b, c, d = row * around + column, row * around + right, up * around + column, up * around + right
    return rays.Mesh(points.astype(np.float32), np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)]).astype(np.int32))


def figure(path: Path | None) -> list[rays.Instance]:
    """The ring, leaning, or the meshes of a file at its size and place."""
    c, s = np.cos(1.1), np.sin(1.1)
    lean = np.array([[1, 0, 0, -0.4], [0, c, -s, 0.1], [0, s, c, 0.37], [0, 0, 0, 1]])
    if path is None:
        return [rays.Instance(ring(), lean, id=GOLD)]
    items = rays.load(path)
    corners = np.concatenate([np.asarray(item.shape.vertices) @ to[:3, :3].T + to[:3, 3] for item, to in map(placed, items)])
    low, high = corners.min(0), corners.max(0)
    scale = 0.8 / (high - low).max()
    shift = np.array([-0.4, 0.1, 0]) - scale * np.array([(low + high)[0] / 2, (low + high)[1] / 2, low[2]])
    to_room = np.vstack([np.column_stack([scale * np.eye(3), shift]), [0, 0, 0, 1]])
    return [rays.Instance(item.shape, to_room @ to, id=GOLD) for item, to in map(placed, items)]


def placed(item: rays.Instance) -> tuple[rays.Instance, np.ndarray]:
    return item, np.eye(4) if item.transform is None else np.asarray(item.transform)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="automatic", help="cpu, vulkan, cuda, d3d12; default: the best here")
    parser.add_argument("--size", type=int, default=256, help="width and height")
    parser.add_argument("--samples", type=int, default=32, help="for each pixel")
    parser.add_argument("--mesh", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    device = spy.create_device(type=spy.DeviceType[options.device])
    module = spy.Module.load_from_file(device, Path(__file__).with_name("path_tracer.slang"))

    corner, size = np.float32([-0.3, -0.3, 1.98]), np.float32([0.6, 0.6])
    lamp = rays.Boxes(np.concatenate([corner, corner + [*size, 0.01]])[None])
    scene = rays.Scene(device, [
        *room(), *figure(options.mesh), rays.Instance(lamp, id=LAMP),
        rays.Instance(rays.Spheres([[0.4, 0.1, 0.38, 0.38]]), id=MIRROR),
    ])  # fmt: skip
    light = np.zeros_like(COLORS)
    light[LAMP] = LIGHT
    materials = {
        "color": spy.Tensor.from_numpy(device, COLORS, target_slang_dtype="float3"),
        "light": spy.Tensor.from_numpy(device, light, target_slang_dtype="float3"),
        "is_mirror": spy.Tensor.from_numpy(device, np.float32(np.arange(6) == MIRROR)),
    }
    shape = (options.size, options.size)
    arguments = (spy.grid(shape), spy.int2(*shape), options.samples, scene, materials, {"corner": corner, "size": size, "light": LIGHT})
    picture = module.render(*arguments, _result="tensor")  # compiles
    device.wait()
    begin = time.perf_counter()
    module.render(*arguments, _result=picture)
    device.wait()
    seconds = time.perf_counter() - begin
    paths = options.size**2 * options.samples
    print(f"{scene} on {device.info.adapter_name}")
    print(f"{paths} paths in {1e3 * seconds:.1f} ms: {paths / seconds / 1e6:.2f} million a second")
    image = picture.to_numpy()
    print(f"mean brightness {image.mean():.4f}")
    spy.save_image(options.out / "path_tracer.png", np.clip(image, 0, 1), srgb=True)
    print(f"saved {options.out / 'path_tracer.png'}")


if __name__ == "__main__":
    main()
