"""The picture of a file under a panel of its parameters, drawn into any texture, and made again when the file changes."""

from __future__ import annotations

import os
import textwrap
import time as clock
from collections.abc import Callable, Mapping
from typing import Any

from ... import ui
from ..._native import Feature, Format, Texture, TextureUsage
from ...device import SHADER_PATH, create_device
from ...errors import SlangCompileError
from ...module import Module
from ...tensor import Tensor
from .controls import Control, Value
from .program import Program

_SECONDS = 0.2
"""Between two looks at the files."""
_COLUMNS = 90
"""Of the text of an error."""
_FAULTS = (SlangCompileError, RuntimeError, ValueError, TypeError, OSError)
"""What a file that is being written may cause: the window stays, and says it."""


class Viewer:
    """A program with what its user has set. device: that runs the function; `shower` is the one that draws, the same where
    it can. ImportError without the package imgui-bundle."""

    program: Program
    values: dict[str, Value]
    error: str

    def __init__(self, device: Any, path: str, function: str | None = None) -> None:
        self._name = function
        self.program = Program(device, path, function)
        self.shower = device if device.has_feature(Feature.rasterization) else create_device("vulkan")
        self.context = ui.Context(self.shower)
        self._texels = Module.load_from_file(self.shower, os.path.join(SHADER_PATH, "slangpy_view.slang"))
        self._panel = ui.Window(self.context.screen, "parameters", position=(10, 10), size=(300, 60))
        self._message = ui.Window(self.context.screen, "error", position=(10, 10), size=(640, 200), visible=False)
        self._text = ui.Text(self._message)
        self.values = {}
        self.error = ""
        self._picture: Texture | None = None
        self._watched = _times(self.program.files())
        self._looked = clock.monotonic()
        self._lay_out()

    # --- the file

    def follow_files(self) -> None:
        """Loads the file again where it, or one that it imports, has changed. What does not compile leaves the last picture
        and shows its error."""
        if clock.monotonic() - self._looked < _SECONDS:
            return
        self._looked = clock.monotonic()
        if _times(list(self._watched)) != self._watched:
            self.reload()

    def reload(self) -> None:
        """Values stay where a control of that name and type stays."""
        self._watched = _times(self.program.files())
        try:
            program = Program(self.program.device, self.program.path, self._name)
            program.render(1, 1, {})
        except _FAULTS as error:
            self._say(str(error))
            return
        before = {control.name: control.type_name for control in self.program.function.controls}
        after = {control.name: control.type_name for control in program.function.controls}
        self.values = {name: value for name, value in self.values.items() if after.get(name) == before.get(name, "")}
        self.program = program
        self._watched = _times(program.files())
        self._say("")
        self._lay_out()

    def _say(self, text: str) -> None:
        self.error = text
        self._text.text = "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, _COLUMNS) or [""])
        self._message.visible = bool(text)
        self._panel.visible = not text and bool(self.program.function.controls)

    # --- the panel

    def set(self, values: Mapping[str, Value]) -> None:
        """Sets controls, as their user does."""
        self.values.update(values)
        self._lay_out()

    def _lay_out(self) -> None:
        self._panel.remove_all_children()
        controls = self.program.function.controls
        for control in controls:
            self._widget(control)
        self._panel.size = (300, 40 + 24 * len(controls))
        self._panel.visible = bool(controls)

    def _widget(self, control: Control) -> None:
        value = self.values.get(control.name, control.default)
        if control.scalar == "bool":
            ui.CheckBox(self._panel, control.name, value, self._setter(control))
            return
        kind = "Float" if control.scalar == "float" else "Int"
        widget = getattr(ui, f"Slider{kind}{control.count if control.count > 1 else ''}")
        numbers = value if control.count == 1 else list(value)
        widget(self._panel, control.name, numbers, self._setter(control), min=control.low, max=control.high)

    def _setter(self, control: Control) -> Callable[[Any], None]:
        def set_value(value: Any) -> None:
            self.values[control.name] = control.value([value] if control.count == 1 else list(value))

        return set_value

    # --- the picture

    def draw(
        self, target: Texture, encoder: Any, time: float = 0.0, mouse: tuple[float, float] | None = None, window: Any = None
    ) -> None:
        """Records the picture and the panel, over all of a texture of the shower with the usage render_target."""
        size = (target.width, target.height)
        self.context.begin_frame(*size, window)  # takes what the user has done to the panel
        try:
            result = self.program.render(*size, self.values, time, mouse)
        except _FAULTS as error:
            self._say(str(error))
        else:
            self._show(result, size)
        if self._picture is None:
            encoder.clear_texture_float(target, clear_value=(0.0, 0.0, 0.0, 1.0))
        else:
            encoder.blit(target, self._picture)
        self.context.end_frame(target, encoder)

    def _show(self, result: Tensor, size: tuple[int, int]) -> None:
        if self._picture is None or (self._picture.width, self._picture.height) != size:
            usage = TextureUsage.shader_resource | TextureUsage.unordered_access
            self._picture = self.shower.create_texture(
                format=Format.rgba32_float, width=size[0], height=size[1], usage=usage
            )
        if self.shower is not self.program.device:
            shown = Tensor.empty(self.shower, shape=tuple(result.shape), dtype=result.dtype.full_name)
            shown.copy_from_numpy(result.to_numpy())
            result = shown
        self._texels.texel(result, _result=self._picture)


def _times(files: list[str]) -> dict[str, int]:
    """When each file was changed; -1 where there is none."""
    return {path: os.stat(path).st_mtime_ns if os.path.exists(path) else -1 for path in files}
