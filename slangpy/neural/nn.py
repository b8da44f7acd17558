"""Networks as `torch.nn.Module`s: `from slangpy.neural import nn`. Needs torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from ..device.device import Device
from .base import NetworkBase
from .kernels import Batch

_DTYPES = {"float": torch.float32, "half": torch.float16}


class Network(NetworkBase, torch.nn.Module):
    """`slangpy.neural.Network` with torch parameters `weights` and, of a HashGrid, `table`: same numbers, same order.

    device: where kernels run; a CUDA or CPU device as the parameters are, after `to()` give that to `use`. The rest: as there.
    Functions take `get_this()` as a parameter of the Slang type `type_name`, and gradients come through.
    """

    _name = "nn.Network"

    def _set_first(
        self, weights: np.ndarray[Any, Any], table: np.ndarray[Any, Any] | None, levels: np.ndarray[Any, Any] | None
    ) -> None:
        where = _place_of(self._device)
        self._kept_fillers: dict[torch.device, dict[str, Any]] = {}
        self.weights = torch.nn.Parameter(torch.from_numpy(weights).to(where))
        self.table: torch.nn.Parameter | None = None
        if table is not None:
            self.table = torch.nn.Parameter(torch.from_numpy(table).to(where))
        if levels is not None:
            self.register_buffer("levels", torch.from_numpy(levels).to(where), persistent=False)

    def use(self, device: Device) -> Network:
        """Runs kernels on another device, and moves the parameters there."""
        self._use(device)
        self.to(_place_of(device))
        return self

    def _fillers(self, where: torch.device) -> dict[str, Any]:
        """For fields of `Batch` that a call has no use for; each its own, as no memory may be written through two names."""
        if where not in self._kept_fillers:
            types = {"y": _DTYPES[self.shape.dtype], "dx": torch.float32}
            self._kept_fillers[where] = {
                **{name: torch.zeros((1, 1), dtype=dtype, device=where) for name, dtype in types.items()},
                "table": torch.zeros(1, dtype=torch.float32, device=where),
            }
        return self._kept_fillers[where]

    def get_this(self) -> dict[str, Any]:
        """The value of a parameter of the type."""
        return self._this_of(self.weights, self.table, getattr(self, "levels", None))

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
        self._check_rows("x", tuple(x.shape), self.shape.inputs)
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
        network._kernels.run_forward(_this(network, weights, table), given, y, given.shape[0])
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        network: Network = ctx.network
        x, weights, table = ctx.saved_tensors
        given, count, shape = x.detach().contiguous(), x.shape[0], network.shape
        wants_dx = ctx.needs_input_grad[1]
        kernels, floats = network._kernels, {"dtype": torch.float32, "device": x.device}
        d_weights = torch.zeros(shape.weight_count, **floats)
        make = torch.empty if kernels.on_matrices else torch.zeros
        results = {
            "x": given, "dy": dy.contiguous(), "parts": make((max(kernels.workers(count, True), 1), shape.weight_count), **floats),
            **({"dx": torch.zeros((count, shape.inputs), **floats)} if wants_dx else {}),
            **({"table": torch.zeros(shape.table_size, **floats)} if table is not None else {}),
        }  # fmt: skip
        batch = Batch(**{**network._fillers(x.device), **results}, count=count, wants_dx=int(wants_dx))
        kernels.run_backward(_this(network, weights, table), batch, d_weights)
        return (
            None, batch.dx.to(x.dtype) if wants_dx else None, d_weights.to(weights.dtype),
            None if table is None else batch.table.to(table.dtype),
        )  # fmt: skip


def _this(network: Network, weights: Any, table: Any) -> dict[str, Any]:
    levels = getattr(network, "levels", None)
    return network._this_of(weights.detach(), None if table is None else table.detach(), levels)


def _place_of(device: Device) -> torch.device:
    """Where torch has the memory that a device's kernels work on."""
    return torch.device("cuda" if device.type.name == "cuda" else "cpu")
