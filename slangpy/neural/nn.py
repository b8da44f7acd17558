"""Networks as `torch.nn.Module`s: `from slangpy.neural import nn`. Needs torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..device.device import Device
from .encodings import Encoding
from .kernels import Batch, run_backward, run_forward, share_of
from .network import check_rows, this_of
from .shape import Shape

_DTYPES = {"float": torch.float32, "half": torch.float16}


class Network(torch.nn.Module):
    """`slangpy.neural.Network` with torch parameters `weights` and, of a HashGrid, `table`: same numbers, same order.

    device: where kernels run; a CUDA or CPU device as the parameters are, after `to()` give that to `use`. The rest: as there.
    Functions take `get_this()` as a parameter of the Slang type `type_name`, and gradients come through.
    """

    def __init__(
        self, device: Device, inputs: int, outputs: int, *, width: int = 64, hidden_layers: int = 2, activation: str = "relu",
        output_activation: str = "none", encoding: Encoding | None = None, dtype: str = "float", seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.shape = Shape.checked(
            "nn.Network", inputs, outputs, width, hidden_layers, activation, output_activation, encoding, dtype
        )
        self._device = device
        where = _place_of(device)
        random = np.random.default_rng(seed)
        self.weights = torch.nn.Parameter(torch.from_numpy(self.shape.first_weights(random)).to(where))
        self.table: torch.nn.Parameter | None = None
        levels = self.shape.encoding.levels(inputs)
        if levels is not None:
            self.table = torch.nn.Parameter(torch.from_numpy(self.shape.first_table(random)).to(where))
            self.register_buffer("levels", torch.from_numpy(levels.reshape(-1)).to(where), persistent=False)

    @property
    def device(self) -> Device:
        """Where kernels run."""
        return self._device

    @property
    def type_name(self) -> str:
        """The Slang type."""
        return self.shape.type_name

    def use(self, device: Device) -> Network:
        """Runs kernels on another device, and moves the parameters there."""
        self.to(_place_of(device))
        self._device = device
        return self

    def get_this(self) -> dict[str, Any]:
        """The value of a parameter of the type."""
        return this_of(self.shape, self.weights, self.table, getattr(self, "levels", None))

    def extra_repr(self) -> str:
        shape = self.shape
        return (
            f"{shape.inputs}, {shape.outputs}, width={shape.width}, hidden_layers={shape.hidden_layers}, activation={shape.activation!r}, "
            f"output_activation={shape.output_activation!r}, encoding={shape.encoding}, dtype={shape.dtype!r}"
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, outputs) for (n, inputs). TypeError for another dtype, ValueError for other sizes and places."""
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"nn.Network: x: expected a torch tensor, got {type(x).__name__}")
        check_rows("nn.Network", "x", tuple(x.shape), self.shape.inputs)
        for name, tensor in (("x", x), *self.named_parameters()):
            if tensor.dtype is not _DTYPES[self.shape.dtype]:
                raise TypeError(f"nn.Network: {name}: expected {_DTYPES[self.shape.dtype]}, got {tensor.dtype}; convert it with .to()")
            if tensor.device.type != _place_of(self._device).type:
                raise ValueError(
                    f"nn.Network: {name} lies on {tensor.device} and kernels run on the {self._device.type.name} device: move it "
                    "with .to(), or give `use` a slangpy.Device of that kind"
                )
        counts = {"weights": self.shape.weight_count, "table": self.shape.table_size}
        for name, parameter in self.named_parameters():
            if tuple(parameter.shape) != (counts[name],):
                raise ValueError(f"nn.Network: {name}: expected {counts[name]} numbers, got shape {tuple(parameter.shape)}")
        return _Run.apply(self, x, self.weights, self.table)  # type: ignore[no-any-return]


class _Run(torch.autograd.Function):
    """The forward kernel, and the backward kernel as its derivative."""

    @staticmethod
    def forward(ctx: Any, network: Network, x: Any, weights: Any, table: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.network = network
        ctx.save_for_backward(x, weights, table)
        given = x.detach().contiguous()
        y = given.new_empty((given.shape[0], network.shape.outputs))
        run_forward(network.device, network.shape, _this(network, weights, table), _batch(given, y=y))
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        network: Network = ctx.network
        x, weights, table = ctx.saved_tensors
        given, count, shape = x.detach().contiguous(), x.shape[0], network.shape
        wants_dx = ctx.needs_input_grad[1]
        floats = {"dtype": torch.float32, "device": x.device}
        dx = torch.zeros((count if wants_dx else 1, shape.inputs), **floats)
        d_weights = torch.zeros(shape.weight_count, **floats)
        d_table = torch.zeros(max(shape.table_size, 1), **floats)
        workers = share_of(network.device, shape, count, True).workers
        parts = torch.zeros((max(workers, 1), shape.weight_count), **floats)
        batch = _batch(given, dy=dy.contiguous(), dx=dx, parts=parts, table=d_table, wants_dx=int(wants_dx))
        run_backward(network.device, shape, _this(network, weights, table), batch, d_weights)
        return (
            None, dx.to(x.dtype) if wants_dx else None, d_weights.to(weights.dtype),
            None if table is None else d_table.to(table.dtype),
        )  # fmt: skip


def _this(network: Network, weights: Any, table: Any) -> dict[str, Any]:
    levels = getattr(network, "levels", None)
    return this_of(network.shape, weights.detach(), None if table is None else table.detach(), levels)


def _batch(x: Any, **given: Any) -> Batch:
    def nothing(*shape: int, dtype: torch.dtype = torch.float32) -> Any:
        return torch.zeros(shape, dtype=dtype, device=x.device)  # each its own: no memory may be written through two names

    makers = {"y": x.dtype, "dy": x.dtype, "dx": torch.float32, "parts": torch.float32}
    values = {name: nothing(1, 1, dtype=dtype) for name, dtype in makers.items() if name not in given}
    if "table" not in given:
        values["table"] = nothing(1)
    return Batch(x=x if x.shape[0] else nothing(1, 1, dtype=x.dtype), count=x.shape[0], **values, **given)


def _place_of(device: Device) -> torch.device:
    """Where torch has the memory that a device's kernels work on."""
    if not isinstance(device, Device):
        raise TypeError(f"nn.Network: device: expected a slangpy.Device, got {type(device).__name__}")
    return torch.device("cuda" if device.type.name == "cuda" else "cpu")
