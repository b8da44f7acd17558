"""Gradients of large arrays on one device: times beside torch's for the same formula, results against float64.

    python gpu_gradients.py [cuda|vulkan|cpu] [--small]

`2x² + 8x - 1` throughout. Inputs are fresh random numbers; gradients start poisoned where a call must overwrite them.
torch lines appear where torch sees the device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from gpu_calls import timed

import slangpy as spy

SOURCE = "[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"


def tensor_rows(device: spy.Device, polynomial: spy.Function, small: bool) -> list[tuple[str, str]]:
    """`.bwds` with `Tensor`s: a gradient for each element, and one for an argument that all invocations share."""
    rng = np.random.default_rng()
    rows = []
    count = 1 << (18 if small else 26)
    values, seeds = rng.random(count, dtype=np.float32), rng.random(count, dtype=np.float32)
    x = spy.Tensor.from_numpy(device, values).with_grads()
    seed = spy.Tensor.from_numpy(device, seeds)
    y = spy.Tensor.empty(device, (count,), "float").with_grads(grad_in=seed)
    polynomial.bwds(2.0, 8.0, -1.0, x, _result=y)
    expected = (4.0 * values.astype(np.float64) + 8.0) * seeds
    error = np.abs(x.grad.to_numpy() - expected).max() / np.abs(expected).max()
    assert error < 1e-5, error
    seconds = timed(device, lambda: polynomial.bwds(2.0, 8.0, -1.0, x, _result=y))
    rows.append((f"bwds, Tensors of {count}, added to x.grad", f"{1e3 * seconds:.3f} ms, error {error:.0e}"))
    del x, y, seed

    count = 1 << (16 if small else 24)
    values, seeds = rng.random(count, dtype=np.float32), rng.random(count, dtype=np.float32)
    expected = float(np.sum(values.astype(np.float64) ** 2 * seeds))
    for dtype in ("float", "half"):
        a = spy.Tensor.from_numpy(device, np.array([2.0], np.float32)).with_grads()
        if dtype == "half":
            a = spy.Tensor.from_numpy(device, np.array([2.0], np.float16)).with_grads(
                grad_out=spy.Tensor.zeros(device, (1,), "float")
            )
        x = spy.Tensor.from_numpy(device, values)
        y = spy.Tensor.empty(device, (count,), "float").with_grads(grad_in=spy.Tensor.from_numpy(device, seeds))
        call = polynomial.bwds if dtype == "float" else polynomial.convert("any").bwds
        call(a, 8.0, -1.0, x, _result=y)
        error = abs(float(a.grad.to_numpy()[0]) - expected) / expected
        assert error < 1e-5, error
        seconds = timed(device, lambda call=call, a=a, x=x, y=y: call(a, 8.0, -1.0, x, _result=y))
        label = f"bwds, one {dtype} argument shared by {count}"
        rows.append((label, f"{1e3 * seconds:.3f} ms, relative error {error:.0e}"))
    return rows


def torch_rows(name: str, small: bool) -> list[tuple[str, str]]:
    """Forward and backward through torch's graph, beside torch's own operations."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        return []
    if name not in ("cpu", "cuda") or (name == "cuda" and not torch.cuda.is_available()):
        return []
    device = spy.create_torch_device(type=spy.DeviceType[name])
    polynomial = spy.Module.load_from_source(device, "gpu_gradients_torch", SOURCE).polynomial
    count = 1 << (18 if small else 28)
    x = torch.rand(count, device=name, requires_grad=True)
    seed, spare = torch.rand(count, device=name), torch.empty(count, device=name)

    def passes(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
        def run() -> None:
            x.grad = None
            function(x).backward(seed)

        return run

    def synchronised(function: Callable[[], None]) -> float:
        class Waiting:
            def wait(self) -> None:
                if name == "cuda":
                    torch.cuda.synchronize()

        return timed(Waiting(), function, 10)  # pyright: ignore[reportArgumentType]

    ours = synchronised(passes(lambda x: polynomial(2, 8, -1, x)))
    assert x.grad is not None
    part = slice(0, 1 << 20)
    error = float((x.grad[part].double() - (4 * x.detach()[part].double() + 8) * seed[part]).abs().max())
    assert error < 1e-5, error
    eager = synchronised(passes(lambda x: 2 * x * x + 8 * x - 1))
    copied = synchronised(lambda: spare.copy_(x.detach()))
    return [
        (f"forward + backward, torch tensors of {count}", f"{1e3 * ours:.3f} ms"),
        ("the same in torch eager", f"{1e3 * eager:.3f} ms"),
        ("one copy of as many floats in torch", f"{1e3 * copied:.3f} ms"),
    ]


def main() -> None:
    name = next((a for a in sys.argv[1:] if not a.startswith("-")), "cuda")
    small = "--small" in sys.argv
    device = spy.create_device(spy.DeviceType[name])
    polynomial = spy.Module.load_from_source(device, "gpu_gradients", SOURCE).polynomial
    rows = [("device", device.info.adapter_name), *tensor_rows(device, polynomial, small), *torch_rows(name, small)]
    print()
    for label, figure in rows:
        print(f"{label:52} {figure}")


if __name__ == "__main__":
    main()
