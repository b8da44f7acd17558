"""Networks whose weights are Tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.own_names import own_names
from ..device.device import Device
from ..tensor import Tensor
from .base import NetworkBase
from .kernels import Batch
from .shape import DTYPES


@own_names
class Network(NetworkBase):
    """A small network: an encoding, `hidden_layers` layers of `width`, and a layer of `outputs`, all with biases.

    `network(x)` runs it for many samples in one kernel, `network.backward(x, dy)` its derivatives in another. Functions take
    it as a parameter of the Slang type `network.type_name` (`import slangpy.neural;`) and call its `eval`.
    """

    weights: Tensor
    """Of each layer in turn its matrix, a row for each of its outputs, then its biases; with gradients."""
    table: Tensor | None
    """The entries of a HashGrid, else None; with gradients."""

    _name = "Network"

    def _set_first(
        self, weights: np.ndarray[Any, Any], table: np.ndarray[Any, Any] | None, levels: np.ndarray[Any, Any] | None
    ) -> None:
        device, dtype = self._device, self.shape.dtype
        self._nothing = {kind: Tensor.zeros(device, (1, 1), kind) for kind in {"float", dtype}}
        self._flat = Tensor.zeros(device, (1,), "float")
        self.weights = _learnt(device, weights)
        self.table = None if table is None else _learnt(device, table)
        self._levels: Tensor | None = None if levels is None else Tensor.from_numpy(device, levels)

    # --- what there is
    @property
    def parameters(self) -> dict[str, Tensor]:
        """What is learnt, by name."""
        return {"weights": self.weights, **({"table": self.table} if self.table is not None else {})}

    def get_this(self) -> dict[str, Any]:
        """The value of a parameter of the type; gradients of calls go to `parameters`."""
        return self._this_of(self.weights, self.table, self._levels)

    def __repr__(self) -> str:
        shape = self.shape
        return (
            f"Network({shape.inputs} inputs, {shape.encoding}, {shape.hidden_layers} layers of {shape.width} {shape.activation}, "
            f"{shape.outputs} outputs {shape.output_activation}, {shape.dtype}, {self._device.type.name})"
        )

    # --- what it computes
    def __call__(self, x: Any) -> Tensor:
        """(n, outputs) for (n, inputs), a Tensor or an array. TypeError, ValueError for other arrays."""
        given = self._rows("x", x, self.shape.inputs)
        count = given.shape[0]
        y = Tensor.empty(self._device, (count, self.shape.outputs), self.shape.dtype)
        self._kernels.run_forward(self._plain(), given, y, count)
        return y

    def backward(self, x: Any, dy: Any, input_gradients: bool = False) -> Tensor | None:
        """Adds to the gradients of `parameters`, from (n, outputs) gradients of what `network(x)` gave.

        input_gradients: also returns those of x, (n, inputs) floats.
        """
        given, gradients = self._rows("x", x, self.shape.inputs), self._rows("dy", dy, self.shape.outputs)
        count = given.shape[0]
        if gradients.shape[0] != count:
            raise ValueError(f"Network.backward: dy: expected {count} rows, as x has, got {gradients.shape[0]}")
        dx = Tensor.zeros(self._device, (count, self.shape.inputs), "float") if input_gradients else None
        make = Tensor.empty if self._kernels.on_matrices else Tensor.zeros
        parts = make(self._device, (max(self._kernels.workers(count, True), 1), self.shape.weight_count), "float")
        batch = self._batch(
            given, count, dy=gradients, parts=parts, wants_dx=int(input_gradients), **({"dx": dx} if dx is not None else {}),
            **({"table": _floats(self.table.grad)} if self.table is not None else {}),
        )  # fmt: skip
        self._kernels.run_backward(self._plain(), batch, _floats(self.weights.grad))
        return dx

    def zero_grad(self) -> None:
        """Sets the gradients of `parameters` to 0."""
        for tensor in self.parameters.values():
            _floats(tensor.grad).clear()

    # --- files
    def state_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of `parameters`, by name: for `numpy.savez`."""
        return {name: tensor.to_numpy() for name, tensor in self.parameters.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Sets `parameters`. ValueError for other names and counts, TypeError for another dtype."""
        checked = {}
        if set(state) != set(self.parameters):
            raise ValueError(f"Network.load_state_dict: expected {', '.join(self.parameters)}, got {', '.join(state) or 'nothing'}")
        for name, tensor in self.parameters.items():
            value = np.ascontiguousarray(state[name])
            if value.dtype != DTYPES[self.shape.dtype]:
                raise TypeError(f"Network.load_state_dict: {name}: expected {np.dtype(DTYPES[self.shape.dtype])}, got {value.dtype}")
            if value.shape != tuple(tensor.shape):
                raise ValueError(f"Network.load_state_dict: {name}: this network has {tensor.shape[0]} numbers, got shape {value.shape}")
            checked[name] = value
        for name, value in checked.items():
            self.parameters[name].copy_from_numpy(value)

    # --- arguments
    def _plain(self) -> dict[str, Any]:
        table = None if self.table is None else self.table.detach()
        return self._this_of(self.weights.detach(), table, self._levels)

    def _batch(self, x: Tensor, count: int, **given: Any) -> Batch:
        plain, floats = self._nothing[self.shape.dtype], self._nothing["float"]
        return Batch(**{"x": x, "y": plain, "dy": plain, "dx": floats, "parts": floats, "table": self._flat, "count": count, **given})

    def _rows(self, name: str, value: Any, columns: int) -> Tensor:
        """A Tensor of rows that lie one after the other."""
        if not isinstance(value, Tensor):
            try:
                value = np.ascontiguousarray(value, DTYPES[self.shape.dtype])
            except (TypeError, ValueError) as error:
                raise TypeError(f"Network: {name}: expected a Tensor or an array of numbers (n, {columns}), got {value!r}") from error
            self._check_rows(name, value.shape, columns)
            if not value.shape[0]:
                return Tensor.zeros(self._device, (0, columns), self.shape.dtype)
            return Tensor.from_numpy(self._device, value)
        if value.device is not self._device:
            raise ValueError(f"Network: {name}: the Tensor lies on another device ({value.device.type.name}) than the network")
        self._check_rows(name, tuple(value.shape), columns)
        if value.dtype.full_name != self.shape.dtype:
            raise TypeError(f"Network: {name}: expected a Tensor of {self.shape.dtype}, got one of {value.dtype.full_name}")
        if tuple(value.strides) != (columns, 1) and value.shape[0] > 1:
            raise ValueError(f"Network: {name}: rows must lie one after the other, got strides {tuple(value.strides)}: copy it")
        return value.detach()


def _learnt(device: Device, values: np.ndarray[Any, Any]) -> Tensor:
    """With a gradient of floats."""
    gradient = Tensor.zeros(device, values.shape, "float")
    return Tensor.from_numpy(device, values).with_grads(gradient, gradient)


def _floats(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise RuntimeError("Network: the parameter has no gradient any more: make another network and load_state_dict()")
    return tensor
