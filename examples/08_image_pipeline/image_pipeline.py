"""A camera's image pipeline in both APIs, from one set of Slang functions, with gradients for all of its parameters.

    python image_pipeline.py [--device cuda] [--pixels 10000] [--time]

Prints how far outputs and gradients are from a plain torch version in float64; --time prints how long a forward and a
backward pass take, in both APIs and in torch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import slangpy as spy

FILE = Path(__file__).with_name("pipeline.slang")
CAMERAS, FRAMES = 6, 200
NAMES = ("exposure", "vignetting", "color", "response")
SIZES = ((FRAMES, 1), (CAMERAS, 5), (FRAMES, 8), (CAMERAS, 9))
Tensors = tuple[torch.Tensor, ...]
Pipeline = Callable[[torch.Tensor, torch.Tensor, int, int, Tensors], torch.Tensor]


def in_torch(rgb: torch.Tensor, at: torch.Tensor, camera: int, frame: int, parameters: Tensors) -> torch.Tensor:
    exposure, vignetting, color, response = parameters
    v, h = vignetting[camera], color[frame]
    r = ((at - v[:2]) ** 2).sum(1, keepdim=True)
    rgb = rgb * torch.exp2(exposure[frame, 0]) * (1 + r * (v[2] + r * (v[3] + r * v[4])))
    red, green, total = rgb[:, 0], rgb[:, 1], rgb.sum(1) + 1e-4
    x = (1 + h[0]) * red + h[1] * green + h[2] * total
    y = h[3] * red + (1 + h[4]) * green + h[5] * total
    scale = total / (h[6] * red + h[7] * green + total)
    seen = torch.stack([x * scale, y * scale, total - (x + y) * scale], 1).clamp(min=1e-4)
    gain, power, contrast = response[camera].reshape(3, 3).unbind(1)
    out = (1 - torch.exp(-gain.exp() * seen)) ** power.exp()
    return out + contrast * out * (1 - out) * (2 * out - 1)


def through_module(device: str) -> Pipeline:
    """Calls of `develop`: each pixel is one invocation, and the call joins torch's graph by itself."""
    spy_device = spy.create_torch_device() if device == "cuda" else spy.create_device(spy.DeviceType.cpu)
    module = spy.Module.load_from_file(spy_device, str(FILE))

    def develop(rgb: torch.Tensor, at: torch.Tensor, camera: int, frame: int, parameters: Tensors) -> torch.Tensor:
        fields = dict(zip(NAMES, parameters, strict=True))
        return module.develop(rgb=rgb, at=at, camera=camera, frame=frame, c=fields, _result="torch")

    return develop


def through_kernels() -> Pipeline:
    """Launches of `develop_all` in a torch.autograd.Function."""
    m = spy.loadModule(FILE, cudaFastMath=False)

    class Develop(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, rgb: torch.Tensor, at: torch.Tensor, camera: int, frame: int, *parameters: torch.Tensor) -> Any:
            result = torch.empty_like(rgb)
            m.develop_all(rgb, at, camera, frame, parameters, result).launch(len(rgb))
            ctx.save_for_backward(rgb, at, result, *parameters)
            ctx.place = camera, frame
            return result

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            rgb, at, result, *parameters = ctx.saved_tensors
            d_rgb = torch.empty_like(rgb)
            found = [torch.zeros_like(p) for p in parameters]
            pairs = tuple(zip(parameters, found, strict=True))
            # The kernel writes its result again, so it gets another one than what torch has saved.
            outcome = (torch.empty_like(result), gradient.contiguous())
            m.develop_all.bwd((rgb, d_rgb), at, *ctx.place, pairs, outcome).launch(len(rgb))
            return d_rgb, None, None, None, *found

    return lambda rgb, at, camera, frame, parameters: Develop.apply(rgb, at, camera, frame, *parameters)


def make_inputs(count: int, device: str) -> tuple[torch.Tensor, torch.Tensor, Tensors]:
    generator = torch.Generator().manual_seed(4)
    rgb = torch.rand(count, 3, generator=generator) * 0.9 + 0.05
    at = torch.rand(count, 2, generator=generator) * 2 - 1
    parameters = tuple(torch.randn(size, generator=generator) * 0.05 for size in SIZES)
    leaves = tuple(p.to(device).requires_grad_() for p in parameters)
    return rgb.to(device).requires_grad_(), at.to(device), leaves


def run(pipeline: Pipeline, rgb: torch.Tensor, at: torch.Tensor, parameters: Tensors) -> Tensors:
    """The result for one image, and the gradients of a weighted sum of it."""
    result = pipeline(rgb, at, 2, 17, parameters)
    weights = torch.linspace(-1, 2, result.numel(), dtype=torch.float64).reshape(result.shape).to(result)
    return (result.detach(), *torch.autograd.grad(result, (rgb, *parameters), weights))


def errors(got: Tensors, expected: Tensors) -> tuple[float, float]:
    """Largest error of the result, and of the gradients, relative to the largest of each."""
    worst = [float((g.double() - e).abs().max() / e.abs().max()) for g, e in zip(got, expected, strict=True)]
    return worst[0], max(worst[1:])


def clock(pipeline: Pipeline, rgb: torch.Tensor, at: torch.Tensor, parameters: Tensors) -> tuple[float, float]:
    """Milliseconds of a forward and of a backward pass."""
    wait = torch.cuda.synchronize if rgb.is_cuda else lambda: None
    ones, best = torch.ones_like(rgb), [float("inf")] * 2
    for _ in range(10 if rgb.is_cuda else 2):
        wait()
        begin = time.perf_counter()
        result = pipeline(rgb, at, 2, 17, parameters)
        wait()
        middle = time.perf_counter()
        torch.autograd.grad(result, (rgb, *parameters), ones)
        wait()
        passed = middle - begin, time.perf_counter() - middle
        best = [min(b, p * 1e3) for b, p in zip(best, passed, strict=True)]
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--pixels", type=int, default=10000)
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    pipelines = {"slangpy.Module": through_module(options.device), "slangpy.loadModule": through_kernels()}
    rgb, at, parameters = make_inputs(options.pixels, options.device)
    exact = tuple(p.detach().double().requires_grad_() for p in (rgb, *parameters))
    expected = run(in_torch, exact[0], at.double(), exact[1:])
    for name, pipeline in pipelines.items():
        forward, backward = errors(run(pipeline, rgb, at, parameters), expected)
        print(f"{name}: error of the result {forward:.1e}, of the gradients {backward:.1e}")
        assert forward <= 1e-5 and backward <= 1e-4
    counts = (100_000, 1_000_000) if options.device == "cuda" else (100_000,)
    for count in counts if options.time else ():
        rgb, at, parameters = make_inputs(count, options.device)
        for name, pipeline in {**pipelines, "torch": in_torch}.items():
            forward, backward = clock(pipeline, rgb, at, parameters)
            print(f"{count} pixels, {name}: forward {forward:.3f} ms, backward {backward:.3f} ms")


if __name__ == "__main__":
    main()
