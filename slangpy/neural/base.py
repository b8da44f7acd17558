"""What networks of Tensors and of torch tensors share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..device.device import Device
from .encodings import Encoding
from .kernels import Kernels
from .shape import Shape


class NetworkBase:
    """A shape, a device, and what is learnt."""

    shape: Shape
    _device: Device
    _kept_kernels: Kernels | None = None
    _name: ClassVar[str]
    """In messages."""

    def __init__(
        self, device: Device, inputs: int, outputs: int, *, width: int = 64, hidden_layers: int = 2, activation: str = "relu",
        output_activation: str = "none", encoding: Encoding | None = None, dtype: str = "float", seed: int = 0,
    ) -> None:  # fmt: skip
        """inputs: 1 to 64; outputs, width: 1 to 128; hidden_layers: 1 to 8. activation, output_activation: see ACTIVATIONS.
        encoding: None takes the inputs as they are. dtype: "float" or "half", of weights, inputs and outputs; sums are
        kept in float. seed: of the first weights.

        ValueError for other sizes, names and encodings.
        """
        super().__init__()
        self._device = _checked(device, self._name)
        self.shape = Shape.checked(
            self._name, inputs, outputs, width, hidden_layers, activation, output_activation, encoding, dtype
        )
        self._kept_type_name = self.shape.type_name
        random = np.random.default_rng(seed)
        weights, levels = self.shape.first_weights(random), self.shape.encoding.levels(inputs)
        table = None if levels is None else self.shape.first_table(random)
        self._set_first(weights, table, None if levels is None else levels.reshape(-1))

    def _set_first(
        self, weights: np.ndarray[Any, Any], table: np.ndarray[Any, Any] | None, levels: np.ndarray[Any, Any] | None
    ) -> None:
        """Puts these where kernels find them. The table and the levels are there of a HashGrid."""
        raise NotImplementedError

    @property
    def device(self) -> Device:
        """Where kernels run."""
        return self._device

    @property
    def type_name(self) -> str:
        """The Slang type."""
        return self._kept_type_name

    def _use(self, device: Device) -> None:
        self._device = _checked(device, self._name)
        self._kept_kernels = None

    @property
    def _kernels(self) -> Kernels:
        if self._kept_kernels is None:
            self._kept_kernels = Kernels(self._device, self.shape)
        return self._kept_kernels

    def _this_of(self, weights: Any, table: Any, levels: Any) -> dict[str, Any]:
        """The struct of network.slang, of Tensors or torch tensors."""
        encoding = {"unused": 0} if levels is None else {"table": table, "levels": levels}
        return {"_type": self.type_name, "encoding": encoding, "weights": weights}

    def _check_rows(self, name: str, shape: tuple[int, ...], columns: int) -> None:
        if len(shape) != 2 or shape[1] != columns:
            raise ValueError(f"{self._name}: {name}: expected shape (n, {columns}), got {tuple(shape)}")
        if shape[0] >= 1 << 31:
            raise ValueError(f"{self._name}: {name}: {shape[0]} rows; at most {(1 << 31) - 1} are possible in a call")


def _checked(device: Any, name: str) -> Device:
    if not isinstance(device, Device):
        raise TypeError(f"{name}: device: expected a slangpy.Device, got {type(device).__name__}")
    return device
