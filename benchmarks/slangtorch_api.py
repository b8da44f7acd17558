"""The loadModule API: loading cold and in a second process, and one launch beside torch.mul(out=).

python benchmarks/slangtorch_api.py [--device cuda]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import slangpy

SOURCE = """
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void square(DiffTensorView input, DiffTensorView output)
{
    uint3 at = cudaThreadIdx() + cudaBlockIdx() * cudaBlockDim();
    if (at.x >= input.size(0)) return;
    output[at.x] = input[at.x] * input[at.x];
}
[CudaKernel] void scale_kernel(TensorView<float> x, float k, TensorView<float> y)
{ uint i = cudaBlockIdx().x * cudaBlockDim().x + cudaThreadIdx().x; if (i < x.size(0)) y[i] = k * x[i]; }
[TorchEntryPoint] TorchTensor<float> scale(TorchTensor<float> x, float k)
{
    var y = TorchTensor<float>.emptyLike(x);
    let block = uint3(256, 1, 1);
    let grid = uint3((x.size(0) + 255) / 256, 1, 1);
    __dispatch_kernel(scale_kernel, grid, block)(x, k, y);
    return y;
}
"""


def load_and_launch(path: str, device: str) -> None:
    """What a fresh process does; prints the seconds of the load and of the first launch."""
    x = torch.ones(4, device=device)
    y = torch.zeros_like(x)
    begin = time.perf_counter()
    m = slangpy.loadModule(path)
    loaded = time.perf_counter()
    m.square(input=x, output=y).launchRaw(blockSize=(32, 1, 1), gridSize=(1, 1, 1))
    if x.is_cuda:
        torch.cuda.synchronize()
    print(f"{loaded - begin:.4f} {time.perf_counter() - loaded:.4f} {'slangpy._slang' in sys.modules}")


def per_call(calls: dict[str, Callable[[], object]], count: int) -> dict[str, float]:
    """Microseconds, the best of several rounds; each round runs all calls, so that all meet the same machine."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(15):
        for name, run in calls.items():
            begin = time.perf_counter()
            for _ in range(count):
                run()
            best[name] = min(best[name], time.perf_counter() - begin)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
    return {name: seconds / count * 1e6 for name, seconds in best.items()}


def main(device: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "square.slang")
        path.write_text(SOURCE)
        for what in ("nothing cached", "second process"):
            command = [sys.executable, __file__, "--device", device, "--child", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            load, first, compiler = done.stdout.split()
            print(f"{what}: loadModule {load} s, first launch {first} s, compiler loaded: {compiler}")
        m = slangpy.loadModule(path)
        x, y = torch.ones(4, device=device), torch.zeros(4, device=device)
        gx, gy = torch.zeros(4, device=device), torch.ones(4, device=device)
        calls = {
            "torch.mul(out=)": lambda: torch.mul(x, x, out=y),
            "launchRaw": lambda: m.square(input=x, output=y).launchRaw(blockSize=(32, 1, 1), gridSize=(1, 1, 1)),
            "launchRaw, .bwd with two pairs": lambda: m.square.bwd(input=(x, gx), output=(y, gy)).launchRaw(
                blockSize=(32, 1, 1), gridSize=(1, 1, 1)
            ),
            "host function with one dispatch": lambda: m.scale(x, 2.0),
        }
        times = per_call(calls, 1000)
        for name, value in times.items():
            print(f"{name}: {value:.2f} us, {value / times['torch.mul(out=)']:.2f} x torch.mul(out=)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--child", default="")
    options = parser.parse_args()
    if options.child:
        load_and_launch(options.child, options.device)
    else:
        main(options.device)
