"""Fits the coefficients of a polynomial written in Slang with a torch optimiser.

    python torch_polynomial.py [--device auto|cpu|cuda] [--steps 400]

The call takes torch tensors and gives one that belongs to torch's graph. Gradients are computed for what requires
them: the two parameters; the sample points are constants.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import slangpy as spy


def gradients(module: spy.Module, device: torch.device) -> None:
    """One call and its backward pass."""
    x = torch.tensor([1, 2, 3, 4], dtype=torch.float32, device=device, requires_grad=True)
    result = module.polynomial(a=2, b=8, c=-1, x=x)
    print("values   ", result.tolist())
    result.backward(torch.ones_like(result))
    assert x.grad is not None
    print("gradients", x.grad.tolist())


def fit(module: spy.Module, device: torch.device, steps: int) -> tuple[float, float]:
    """Coefficients found from samples of 3 x^2 + 2 x."""
    a = torch.nn.Parameter(torch.tensor([0.5], device=device))
    b = torch.nn.Parameter(torch.zeros(1, device=device))
    x = torch.linspace(-1, 1, 1000, device=device)
    target = 3 * x * x + 2 * x
    optimiser = torch.optim.Adam([a, b], lr=0.05)
    for step in range(steps):
        optimiser.zero_grad()
        loss = ((module.polynomial(a=a, b=b, c=0, x=x) - target) ** 2).mean()
        loss.backward()
        optimiser.step()
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss.item():.6f}")
    return a.item(), b.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    kind = spy.DeviceType.automatic if options.device == "auto" else spy.DeviceType[options.device]
    device = spy.create_torch_device(type=kind)
    module = spy.Module.load_from_file(device, Path(__file__).with_name("polynomial.slang"))
    where = torch.device("cuda" if device.info.type == spy.DeviceType.cuda else "cpu")
    gradients(module, where)
    a, b = fit(module, where, options.steps)
    print(f"found {a:.3f} x^2 + {b:.3f} x, sampled from 3 x^2 + 2 x")


if __name__ == "__main__":
    main()
