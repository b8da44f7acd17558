"""Trains a linear layer written in Slang, beside the same training in NumPy.

    python linear_layer.py [--device cpu|cuda|vulkan|d3d12] [--steps 200]

Layer, loss and optimiser are functions for one element; `.bwds` gives the gradients of weights and bias, summed over
all outputs and samples that read them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import slangpy as spy

SAMPLES, INPUTS, OUTPUTS, RATE = 64, 8, 4, 0.05


class LinearLayer:
    """weights (outputs, inputs) and bias (outputs), float32, on a device."""

    def __init__(self, device: spy.Device, weights: np.ndarray, bias: np.ndarray) -> None:
        path = Path(__file__).with_name("layer.slang")
        self.module = spy.Module.load_from_file(device, path)
        self.weights = spy.Tensor.from_numpy(device, weights).with_grads()
        self.bias = spy.Tensor.from_numpy(device, bias).with_grads()

    def forward(self, inputs: spy.Tensor) -> spy.Tensor:
        """inputs (samples, inputs) -> (samples, outputs)."""
        shape = (inputs.shape[0], self.weights.shape[0])
        outputs = spy.Tensor.empty(self.module.device, shape, "float")
        self.module.linear(spy.grid(shape), self.weights, self.bias, inputs, outputs)
        return outputs

    def backward(self, inputs: spy.Tensor, outputs: spy.Tensor) -> None:
        """Adds to the gradients of the parameters what the gradient of `outputs` asks for."""
        self.module.linear.bwds(spy.grid(outputs.shape), self.weights, self.bias, inputs, outputs)

    def step(self, inputs: spy.Tensor, targets: spy.Tensor, rate: float) -> float:
        """One step of gradient descent on the mean squared error; gives the error before it."""
        outputs = self.forward(inputs).with_grads()
        errors = self.module.squared_error(outputs, targets).with_grads()
        count = int(np.prod(tuple(errors.shape)))
        errors.grad.copy_from_numpy(np.full(tuple(errors.shape), 1 / count, np.float32))  # of the mean
        self.module.squared_error.bwds(outputs, targets, _result=errors)
        self.backward(inputs, outputs)
        for parameter in (self.weights, self.bias):
            self.module.descend(parameter.detach(), parameter.grad, rate)
            parameter.grad.clear()
        return float(errors.to_numpy().mean())


def numpy_step(w: np.ndarray, b: np.ndarray, x: np.ndarray, t: np.ndarray, rate: float) -> float:
    """The same step, in place, on arrays."""
    error = x @ w.T + b - t
    gradient = 2 * error / error.size
    w -= rate * (gradient.T @ x)
    b -= rate * gradient.sum(0)
    return float((error * error).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="automatic", choices=["automatic", "cpu", "cuda", "vulkan", "d3d12"])
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()

    random = np.random.default_rng(1)
    x = random.standard_normal((SAMPLES, INPUTS)).astype(np.float32)
    t = (x @ random.standard_normal((INPUTS, OUTPUTS)) + random.standard_normal(OUTPUTS)).astype(np.float32)
    w = (random.standard_normal((OUTPUTS, INPUTS)) / 8).astype(np.float32)
    b = np.zeros(OUTPUTS, np.float32)

    device = spy.create_device(type=spy.DeviceType[options.device])
    layer = LinearLayer(device, w, b)
    inputs, targets = spy.Tensor.from_numpy(device, x), spy.Tensor.from_numpy(device, t)
    print("step   loss, Slang   loss, NumPy")
    for step in range(options.steps):
        loss = layer.step(inputs, targets, RATE)
        expected = numpy_step(w, b, x, t, RATE)
        if step % (options.steps // 5 or 1) == 0 or step == options.steps - 1:
            print(f"{step:4d}   {loss:11.6f}   {expected:11.6f}")
    difference = max(abs(layer.weights.to_numpy() - w).max(), abs(layer.bias.to_numpy() - b).max())
    print(f"largest difference of a parameter: {difference:.1e}")


if __name__ == "__main__":
    main()
