"""Networks whose weights are Tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..device.device import Device
from ..tensor import Tensor
from .encodings import Encoding
from .kernels import Batch, run_backward, run_forward, share_of
from .shape import DTYPES, Shape


class Network:
    """A small network: an encoding, `hidden_layers` layers of `width`, and a layer of `outputs`, all with biases.

    `network(x)` runs it for many samples in one kernel, `network.backward(x, dy)` its derivatives in another. Functions take
    it as a parameter of the Slang type `network.type_name` (`import slangpy.neural;`) and call its `eval`.
    """

    def __init__(
        self, device: Device, inputs: int, outputs: int, *, width: int = 64, hidden_layers: int = 2, activation: str = "relu",
        output_activation: str = "none", encoding: Encoding | None = None, dtype: str = "float", seed: int = 0,
    ) -> None:  # fmt: skip
        """inputs: 1 to 64; outputs, width: 1 to 128; hidden_layers: 1 to 8. activation, output_activation: see ACTIVATIONS.
        encoding: None takes the inputs as they are. dtype: "float" or "half", of weights, inputs and outputs; sums are
        kept in float. seed: of the first weights.

        ValueError for other sizes, names and encodings.
        """
        if not isinstance(device, Device):
            raise TypeError(f"Network: device: expected a Device, got {type(device).__name__}")
        self._device = device
        self.shape = Shape.checked(
            "Network", inputs, outputs, width, hidden_layers, activation, output_activation, encoding, dtype
        )
        random = np.random.default_rng(seed)
        self._nothing = {kind: Tensor.zeros(device, (1, 1), kind) for kind in {"float", dtype}}
        self._flat = Tensor.zeros(device, (1,), "float")
        self.weights = _learnt(device, self.shape.first_weights(random))
        """Of each layer in turn its matrix, a row for each of its outputs, then its biases; with gradients."""
        self.table: Tensor | None = None
        """The entries of a HashGrid, else None; with gradients."""
        self._levels: Tensor | None = None
        if (levels := self.shape.encoding.levels(inputs)) is not None:
            self.table = _learnt(device, self.shape.first_table(random))
            self._levels = Tensor.from_numpy(device, levels.reshape(-1))

    # --- what there is
    @property
    def device(self) -> Device:
        return self._device

    @property
    def type_name(self) -> str:
        """The Slang type."""
        return self.shape.type_name

    @property
    def parameters(self) -> dict[str, Tensor]:
        """What is learnt, by name."""
        return {"weights": self.weights, **({"table": self.table} if self.table is not None else {})}

    def get_this(self) -> dict[str, Any]:
        """The value of a parameter of the type; gradients of calls go to `parameters`."""
        return this_of(self.shape, self.weights, self.table, self._levels)

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
        run_forward(self._device, self.shape, self._plain(), self._batch(given, count, y=y))
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
        workers = share_of(self._device, self.shape, count, True).workers
        batch = self._batch(
            given, count, dy=gradients, parts=Tensor.zeros(self._device, (max(workers, 1), self.shape.weight_count), "float"),
            wants_dx=int(input_gradients), **({"dx": dx} if dx is not None else {}),
            **({"table": _floats(self.table.grad)} if self.table is not None else {}),
        )  # fmt: skip
        run_backward(self._device, self.shape, self._plain(), batch, _floats(self.weights.grad))
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
        return this_of(self.shape, self.weights.detach(), table, self._levels)

    def _batch(self, x: Tensor, count: int, **given: Any) -> Batch:
        plain, floats = self._nothing[self.shape.dtype], self._nothing["float"]
        return Batch(**{"x": x, "y": plain, "dy": plain, "dx": floats, "parts": floats, "table": self._flat, "count": count, **given})

    def _rows(self, name: str, value: Any, columns: int) -> Tensor:
        """A Tensor of rows that lie one after the other."""
        if not isinstance(value, Tensor):
            value = np.ascontiguousarray(value, DTYPES[self.shape.dtype])
            check_rows("Network", name, value.shape, columns)
            if not value.shape[0]:
                return Tensor.zeros(self._device, (0, columns), self.shape.dtype)
            return Tensor.from_numpy(self._device, value)
        if value.device is not self._device:
            raise ValueError(f"Network: {name}: the Tensor lies on another device ({value.device.type.name}) than the network")
        check_rows("Network", name, tuple(value.shape), columns)
        if value.dtype.full_name != self.shape.dtype:
            raise TypeError(f"Network: {name}: expected a Tensor of {self.shape.dtype}, got one of {value.dtype.full_name}")
        if tuple(value.strides) != (columns, 1) and value.shape[0] > 1:
            raise ValueError(f"Network: {name}: rows must lie one after the other, got strides {tuple(value.strides)}: copy it")
        return value.detach()


def this_of(shape: Shape, weights: Any, table: Any, levels: Any) -> dict[str, Any]:
    """The struct of network.slang, of Tensors or torch tensors."""
    encoding = {"unused": 0} if levels is None else {"table": table, "levels": levels}
    return {"_type": shape.type_name, "encoding": encoding, "weights": weights}


def check_rows(what: str, name: str, shape: tuple[int, ...], columns: int) -> None:
    if len(shape) != 2 or shape[1] != columns:
        raise ValueError(f"{what}: {name}: expected shape (n, {columns}), got {tuple(shape)}")
    if shape[0] >= 1 << 31:
        raise ValueError(f"{what}: {name}: {shape[0]} rows; at most {(1 << 31) - 1} are possible in a call")


def _learnt(device: Device, values: np.ndarray[Any, Any]) -> Tensor:
    """With a gradient of floats."""
    gradient = Tensor.zeros(device, values.shape, "float")
    return Tensor.from_numpy(device, values).with_grads(gradient, gradient)


def _floats(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise RuntimeError("Network: the parameter has no gradient any more: make another network and load_state_dict()")
    return tensor
