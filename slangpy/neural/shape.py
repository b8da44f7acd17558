"""What a network is made of, its weights in order, and the Slang type that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.typed import integer
from .encodings import Encoding

ACTIVATIONS = ("none", "relu", "leaky_relu", "sigmoid", "tanh", "silu", "gelu", "sine")
"""In the order of slang/neural/activations.slang; "swish" is another name of "silu"."""
DTYPES = {"float": np.float32, "half": np.float16}
_WIDEST, _MOST_FEATURES = 128, 256


def activation_named(what: str, name: str, given: Any) -> str:
    found = "silu" if given == "swish" else "none" if given is None else given
    if found not in ACTIVATIONS:
        raise ValueError(f"{what}: {name}: expected one of {', '.join(ACTIVATIONS)}, got {given!r}")
    return found


@dataclass(frozen=True)
class Shape:
    """The layers of a network."""

    inputs: int
    outputs: int
    width: int
    hidden_layers: int
    activation: str
    output_activation: str
    encoding: Encoding
    dtype: str

    @staticmethod
    def checked(what: str, inputs: int, outputs: int, width: int, hidden_layers: int, activation: str,
                output_activation: str, encoding: Encoding | None, dtype: str) -> Shape:  # fmt: skip
        limits = {"inputs": (inputs, 64), "outputs": (outputs, _WIDEST), "width": (width, _WIDEST), "hidden_layers": (hidden_layers, 8)}
        for name, (value, most) in limits.items():
            integer(f"{what}: {name}", value, 1, most)
        if encoding is not None and not isinstance(encoding, Encoding):
            raise TypeError(f"{what}: encoding: expected an Encoding such as HashGrid(), got {type(encoding).__name__}")
        if dtype not in DTYPES:
            raise ValueError(f"{what}: dtype: expected 'float' or 'half', got {dtype!r}")
        encoding = encoding or Encoding()
        features = encoding.features(inputs)
        if features > _MOST_FEATURES:
            raise ValueError(f"{what}: encoding: {features} features of {inputs} inputs; at most {_MOST_FEATURES} are possible")
        return Shape(inputs, outputs, width, hidden_layers, activation_named(what, "activation", activation),
                     activation_named(what, "output_activation", output_activation), encoding, dtype)  # fmt: skip

    @property
    def features(self) -> int:
        return self.encoding.features(self.inputs)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(outputs, inputs) of each layer's matrix."""
        hidden = ((self.width, self.width),) * (self.hidden_layers - 1)
        return ((self.width, self.features), *hidden, (self.outputs, self.width))

    @property
    def weight_count(self) -> int:
        """Of matrices and biases."""
        return sum(rows * (columns + 1) for rows, columns in self.layers)

    @property
    def table_size(self) -> int:
        return self.encoding.table_size(self.inputs)

    @property
    def type_name(self) -> str:
        """The Slang type, for functions that take the network."""
        activations = (ACTIVATIONS.index(name) for name in (self.activation, self.output_activation))
        numbers = (self.width, self.hidden_layers, self.outputs, *activations)
        encoding = self.encoding.type_name(self.inputs, self.dtype)
        return f"neural::Network<{self.dtype}, {self.inputs}, {self.features}, {encoding}, {', '.join(map(str, numbers))}>"

    def first_weights(self, random: np.random.Generator) -> np.ndarray[Any, Any]:
        """Even between +-sqrt(6 / (rows + columns)), of networks of sines +-sqrt(6 / columns); biases 0.

        Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010; Sitzmann et al.,
        Implicit Neural Representations with Periodic Activation Functions, 2020.
        """
        parts = []
        for rows, columns in self.layers:
            limit = np.sqrt(6 / (columns if self.activation == "sine" else rows + columns))
            parts += [random.uniform(-limit, limit, rows * columns), np.zeros(rows)]
        return np.concatenate(parts).astype(DTYPES[self.dtype])

    def first_table(self, random: np.random.Generator) -> np.ndarray[Any, Any]:
        """Even between +-1e-4, as in the paper that HashGrid names."""
        return random.uniform(-1e-4, 1e-4, self.table_size).astype(DTYPES[self.dtype])
