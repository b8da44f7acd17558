"""The picture of a file under a panel of its parameters, drawn into any texture; edits of the file show in the next one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ... import ui
from ..._native import Feature, Format, Texture, TextureUsage
from ...device import SHADER_PATH, create_device
from ...device.live import LiveCode
from ...module import Module
from ...tensor import Tensor
from ...window.notice import Notice
from .controls import Control, Value
from .program import Program


class Viewer:
    """A program with what its user has set. device: that runs the function, and reloads it if it has hot reload; `shower` is
    the one that draws, the same where it can. ImportError without the package imgui-bundle."""

    program: Program
    values: dict[str, Value]

    def __init__(self, device: Any, path: str, function: str | None = None) -> None:
        self.program = Program(device, path, function)
        self.shower = device if device.has_feature(Feature.rasterization) else create_device("vulkan")
        self.context = ui.Context(self.shower)
        self._texels = Module.load_from_file(self.shower, os.path.join(SHADER_PATH, "slangpy_view.slang"))
        self._panel = ui.Window(self.context.screen, "parameters", position=(10, 10), size=(300, 60))
        self._live = LiveCode(device)
        self._notice = Notice(self.shower)
        self._reloads = 0
        self.values = {}
        self._picture: Texture | None = None
        self._lay_out()

    @property
    def error(self) -> str:
        """What is wrong with the file as it is; "" where nothing is."""
        return self._live.error

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
        self._live.refresh()
        self.context.begin_frame(*size, window)  # takes what the user has done to the panel
        self._live.attempt(lambda: self._make(size, time, mouse))  # else the last picture stays
        if self._picture is None:
            encoder.clear_texture_float(target, clear_value=(0.0, 0.0, 0.0, 1.0))
        else:
            encoder.blit(target, self._picture)
        self.context.end_frame(target, encoder)
        self._notice.draw(self.error, target, encoder)

    def _make(self, size: tuple[int, int], time: float, mouse: tuple[float, float] | None) -> None:
        if self._live.reloads != self._reloads:
            self._look_again()
        self._show(self.program.render(*size, self.values, time, mouse), size)

    def _look_again(self) -> None:
        """Values stay where a control of that name and type stays."""
        before = {control.name: control.type_name for control in self.program.function.controls}
        self.program.look_again()
        after = {control.name: control.type_name for control in self.program.function.controls}
        self.values = {name: value for name, value in self.values.items() if after.get(name) == before.get(name, "")}
        self._reloads = self._live.reloads
        self._lay_out()

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
