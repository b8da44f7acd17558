"""Moves the vertices of a mesh until its picture is that of another one: drawn by the rasteriser, fitted by gradients.

    python fit_mesh.py [--device vulkan|d3d12] [--steps 60] [--size 192] [--out .]

Each step draws the mesh into a texture that says which triangle a pixel shows, and where in it; a Slang function shades
the pixels, and torch's autograd asks it for the gradient of every vertex. The same shading in torch gives the same
gradient to 1e-4, and the error of the picture falls to a tenth. Works without a GPU, on Mesa's lavapipe.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import slangpy as spy

SMOOTH = 2.0  # vertices
LAMPS = (
    ((1.0, 0.45, 0.15), (2.0, 0.5, 1.0)),
    ((0.1, 0.5, 0.3), (-1.0, 2.0, 1.0)),
    ((0.15, 0.25, 0.9), (-1.0, -2.0, 1.0)),
)
"""Colours and places, as in relief.slang."""


def grid(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A flat sheet of count x count vertices, (n, 3), and its triangles, (m, 3)."""
    axis = torch.linspace(-1.6, 1.6, count)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    first = (torch.arange(count - 1)[:, None] * count + torch.arange(count - 1)).reshape(-1)
    right, up = first + 1, first + count
    triangles = torch.stack([first, right, up, up, right, up + 1], -1).reshape(-1, 3)
    return torch.stack([x, y, torch.zeros_like(x)], -1).reshape(-1, 3), triangles.int()


def rosette(positions: torch.Tensor) -> torch.Tensor:
    """The sheet with a flower pressed into it: what is looked for."""
    x, y, _ = positions.unbind(1)
    radius, angle = torch.hypot(x, y), torch.atan2(y, x)
    petals = torch.sigmoid((0.62 + 0.2 * torch.cos(6 * angle) - radius) * 14)
    height = 0.16 * petals + 0.05 * torch.cos(22 * radius) * torch.exp(-3 * radius)
    return torch.stack([x, y, height], -1)


def camera() -> np.ndarray:
    """From the sheet to clip space: seen from a little below."""
    tilt, distance, zoom, near, far = 0.35, 3.0, 2.9, 0.1, 10.0
    view = np.eye(4)
    view[1:3, 1:3] = [[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]]
    view[2, 3] = -distance
    projection = np.diag([zoom, zoom, -far / (far - near), 0.0])
    projection[2, 3], projection[3, 2] = -near * far / (far - near), -1.0
    return (projection @ view).astype(np.float32)


def lift(sheet: torch.Tensor, heights: torch.Tensor) -> torch.Tensor:
    """The sheet with heights, (count, count), which are smoothed: each vertex alone would go its own way."""
    weights = torch.exp(-0.5 * (torch.arange(-4, 5, device=sheet.device) / SMOOTH) ** 2)
    weights = weights / weights.sum()
    smooth = heights[None, None]
    for shape in ((1, 1, 9, 1), (1, 1, 1, 9)):
        padding = (0, 0, 4, 4) if shape[2] == 9 else (4, 4, 0, 0)
        smooth = torch.nn.functional.conv2d(torch.nn.functional.pad(smooth, padding, "replicate"), weights.view(shape))
    return torch.cat([sheet[:, :2], smooth.reshape(-1, 1)], dim=1)


class Picture:
    """Draws and shades meshes of the same triangles."""

    def __init__(self, device: spy.Device, triangles: torch.Tensor, size: int) -> None:
        self.device, self.size = device, size
        self.module = spy.Module.load_from_file(device, Path(__file__).with_name("relief.slang"))
        # Tensors whose storage is also a vertex buffer: a call writes it, the pass reads it.
        usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access | spy.BufferUsage.vertex_buffer
        self.triangles = spy.Tensor.from_torch(device, triangles, "int3")
        self.order = spy.Tensor.from_torch(device, triangles.reshape(-1))
        self.corners = spy.Tensor.empty(device, (triangles.numel(),), "float3", usage=usage)
        self.seen = spy.Tensor.empty(device, (size, size), "float4")
        target = {"width": size, "height": size, "usage": spy.TextureUsage.render_target}
        self.target = device.create_texture(format=spy.Format.rgba32_float, **target)
        depth = {**target, "usage": spy.TextureUsage.depth_stencil}
        self.depth = device.create_texture(format=spy.Format.d32_float, **depth)
        self.pipeline = self.create_pipeline()

    def create_pipeline(self) -> spy.RenderPipeline:
        code = self.module.device_module
        entries = [code.entry_point("seen_vertex"), code.entry_point("seen_fragment")]
        return self.device.create_render_pipeline(
            self.device.link_program([code], entries),
            self.device.create_input_layout(
                [{"semantic_name": "POSITION", "format": spy.Format.rgb32_float}], [{"stride": 12}]
            ),
            targets=[{"format": self.target.format}],
            depth_stencil={"format": self.depth.format, "depth_test_enable": True},
        )

    def look(self, positions: torch.Tensor) -> None:
        """Fills `seen`: which triangle each pixel shows. One encoder: a call, a pass, a copy from texture to tensor."""
        encoder = self.device.create_command_encoder()
        now = spy.Tensor.from_torch(self.device, positions.detach(), "float3")
        self.module.corner.append_to(encoder, self.order, now, _result=self.corners)
        with encoder.begin_render_pass(
            color_attachments=[{"view": self.target}],
            depth_stencil_attachment={"view": self.depth, "depth_store_op": spy.StoreOp.dont_care},
        ) as render_pass:
            cursor = spy.ShaderCursor(render_pass.bind_pipeline(self.pipeline))
            cursor.to_clip = camera()
            render_pass.set_render_state(vertex_buffers=[self.corners])
            render_pass.draw(vertex_count=self.corners.element_count)
        encoder.copy_texture_to_tensor(self.seen, self.target)
        self.device.submit_command_buffer(encoder.finish())

    def shade(self, positions: torch.Tensor) -> torch.Tensor:
        """(size, size, 3), part of torch's graph."""
        return self.module.shade(self.seen, self.triangles, positions)


def shade_in_torch(seen: torch.Tensor, triangles: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """What relief.slang computes."""
    shown = seen[..., 0] > 0.5
    a, b, c = positions[triangles[(seen[..., 0].long() - 1).clamp(min=0)].long()].unbind(-2)
    normal = torch.nn.functional.normalize(torch.linalg.cross(b - a, c - a), dim=-1)
    at = seen[..., 1:2] * a + seen[..., 2:3] * b + seen[..., 3:4] * c
    total = torch.full_like(at, 0.03)
    for color, place in LAMPS:
        towards = torch.nn.functional.normalize(torch.tensor(place, device=at.device) - at, dim=-1)
        light = (normal * towards).sum(-1, keepdim=True).clamp(min=0)
        total = total + torch.tensor(color, device=at.device) * light
    return total * shown[..., None]


def gradients(picture: Picture, triangles: torch.Tensor, positions: torch.Tensor, target: torch.Tensor) -> float:
    """The largest difference between the gradient of Slang and that of torch, relative to the largest gradient."""
    found = []
    seen = torch.from_numpy(picture.seen.to_numpy()).to(positions.device)
    for shade in (picture.shade, lambda leaf: shade_in_torch(seen, triangles, leaf)):
        leaf = positions.detach().clone().requires_grad_(True)
        ((shade(leaf) - target) ** 2).mean().backward()
        assert leaf.grad is not None
        found.append(leaf.grad)
    return float((found[0] - found[1]).abs().max() / found[1].abs().max())


def fit(picture: Picture, sheet: torch.Tensor, triangles: torch.Tensor, target: torch.Tensor, steps: int) -> torch.Tensor:
    """The positions that show the target, from the flat sheet on."""
    count = round(len(sheet) ** 0.5)
    heights = torch.zeros(count, count, device=sheet.device, requires_grad=True)
    optimiser = torch.optim.Adam([heights], lr=0.04)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
    for step in range(steps + 1):
        positions = lift(sheet, heights)
        picture.look(positions)
        loss = ((picture.shade(positions) - target) ** 2).mean()
        if step % 20 == 0 or step == steps:
            difference = gradients(picture, triangles, positions, target)
            print(f"step {step:3}  mean squared error {loss.item():.6f}  gradient differs from torch's by {difference:.1e}")
        if step < steps:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return lift(sheet, heights).detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan", choices=("vulkan", "d3d12"))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--size", type=int, default=192, help="width and height")
    parser.add_argument("--vertices", type=int, default=72, help="along each side")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    device = spy.create_torch_device(type=spy.DeviceType[options.device])
    torch.set_num_threads(1)  # small tensors: threads that spin would only take the cores from the driver
    sheet, triangles = (part.to(device.torch_device) for part in grid(options.vertices))
    picture = Picture(device, triangles, options.size)
    shown = []
    for positions in (sheet, rosette(sheet)):
        picture.look(positions)
        shown.append(picture.shade(positions))
    start = time.perf_counter()
    found = fit(picture, sheet, triangles, shown[1], options.steps)
    print(f"{1e3 * (time.perf_counter() - start) / (options.steps + 1):.1f} ms a step on {device.info.adapter_name}")
    shown.append(picture.shade(found))  # as `look` has left it
    spy.save_image(options.out / "fit_mesh.png", torch.cat(shown, dim=1))
    print(f"before, target, after: saved {options.out / 'fit_mesh.png'}")


if __name__ == "__main__":
    main()
