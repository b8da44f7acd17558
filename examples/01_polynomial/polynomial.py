"""Values and gradients of 2x^2 + 8x - 1, and a plot of both.

python polynomial.py [--device cpu|cuda|vulkan|d3d12] [--plot file.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy


def values_and_gradient(module: spy.Module, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The polynomial at each x and its derivative there, both float32 and shaped as x."""
    inputs = spy.Tensor.from_numpy(module.device, x).with_grads()
    outputs = module.polynomial(a=2, b=8, c=-1, x=inputs)

    # The gradient of the result is what flows backwards: ones give dy/dx for every element.
    outputs = outputs.with_grads()
    outputs.grad.copy_from_numpy(np.ones_like(x))
    module.polynomial.bwds(a=2, b=8, c=-1, x=inputs, _result=outputs)
    return outputs.to_numpy(), inputs.grad.to_numpy()


def save_plot(module: spy.Module, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: pip install matplotlib")
        return
    x = np.linspace(-6, 2, 400, dtype=np.float32)
    y, gradient = values_and_gradient(module, x)
    axes: Any = Figure(figsize=(6, 4)).add_subplot()
    axes.plot(x, y, label="2x² + 8x − 1")
    axes.plot(x, gradient, "--", label="gradient, 4x + 8")
    axes.legend()
    axes.figure.savefig(path)
    print(f"plot saved to {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="automatic", choices=["automatic", "cpu", "cuda", "vulkan", "d3d12"])
    parser.add_argument("--plot", type=Path, default=Path("polynomial.png"))
    options = parser.parse_args()

    device = spy.create_device(type=spy.DeviceType[options.device])
    module = spy.Module.load_from_file(device, Path(__file__).with_name("polynomial.slang"))
    print(f"device: {device.info.api_name}, {device.info.adapter_name}")
    save_plot(module, options.plot)

    y, gradient = values_and_gradient(module, np.arange(1, 5, dtype=np.float32))
    print(y)
    print(gradient)


if __name__ == "__main__":
    main()
