"""A file with a function of a pixel, on a device, as it is now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...generators import call_id
from ...module import Module
from ...tensor import Tensor
from .controls import PixelFunction, Value, choose, functions_of, value_of

_DTYPES = {"vector<float,4>": "float4", "vector<float,3>": "float3", "float": "float"}


class Program:
    """The function of a pixel in a file. ValueError where none fits, SlangCompileError where the file does not compile,
    FileNotFoundError where there is none."""

    function: PixelFunction

    def __init__(self, device: Any, path: str | os.PathLike[str], name: str | None = None) -> None:
        self.device = device
        self.path = os.path.abspath(path)
        if not os.path.isfile(self.path):
            raise FileNotFoundError(f"view: there is no file {os.fspath(path)}")
        self._name = name
        self._module = Module.load_from_file(device, self.path)
        self._places: Any = None
        self.look_again()

    def look_again(self) -> None:
        """Chooses among the functions that the file has now, after a reload. ValueError where none fits."""
        self.function = choose(os.path.basename(self.path), *functions_of(self._module), self._name)

    def defaults(self) -> dict[str, Value]:
        return {control.name: control.default for control in self.function.controls if control.is_known}

    def render(
        self, width: int, height: int, values: Mapping[str, Value], time: float = 0.0, mouse: tuple[float, float] | None = None
    ) -> Tensor:
        """The picture: shape (height, width), elements as the function returns them.

        time: seconds. mouse: in pixels, without it the middle. values: of controls; those that lack have their defaults.
        """
        place = (width / 2, height / 2) if mouse is None else mouse
        known = {"time": (time,), "mouse": place, "resolution": (width, height)}
        given = {name: value_of(type_name, known[name]) for name, type_name in self.function.given}
        result = Tensor.empty(self.device, shape=(height, width), dtype=_DTYPES[self.function.result])
        call = getattr(self._module, self.function.name)
        call(pixel=self._pixels(width, height), **{**self.defaults(), **given, **values}, _result=result)
        return result

    def _pixels(self, width: int, height: int) -> Any:
        if self.function.pixel != "vector<float,2>":
            return call_id()
        if self._places is None or tuple(self._places.shape) != (height, width):
            y, x = np.mgrid[0:height, 0:width].astype(np.float32)
            self._places = Tensor.empty(self.device, shape=(height, width), dtype="float2")
            self._places.copy_from_numpy(np.stack([x, y], -1))
        return self._places
