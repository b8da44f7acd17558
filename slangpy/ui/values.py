"""Widgets that hold a value, which the user changes."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .._native import float2, float3, float4, int2, int3, int4
from ..base.typed import integer, member, number, text, texts, truth
from .widgets import Calls, Widget

Callback = Callable[[Any], Any]


class SliderFlags(enum.IntFlag):
    none = 0
    logarithmic = 32
    no_round_to_format = 64
    no_input = 128
    always_clamp = 1536


class InputTextFlags(enum.IntFlag):
    none = 0
    chars_decimal = 1
    chars_hexadecimal = 2
    chars_scientific = 4
    chars_uppercase = 8
    chars_no_blank = 16
    allow_tab_input = 32
    enter_returns_true = 64
    escape_clears_all = 128
    ctrl_enter_for_new_line = 256
    read_only = 512
    password = 1024
    always_overwrite = 2048
    auto_select_all = 4096
    no_horizontal_scroll = 32768
    no_undo_redo = 65536
    callback_completion = 262144
    callback_history = 524288
    callback_always = 1048576
    callback_char_filter = 2097152


_CALLBACKS = (
    InputTextFlags.callback_completion | InputTextFlags.callback_history | InputTextFlags.callback_always
    | InputTextFlags.callback_char_filter
)  # fmt: skip
"""Of ImGui's own callbacks, of which we have none."""
_THEIRS = {
    InputTextFlags.chars_decimal: "chars_decimal", InputTextFlags.chars_hexadecimal: "chars_hexadecimal",
    InputTextFlags.chars_scientific: "chars_scientific", InputTextFlags.chars_uppercase: "chars_uppercase",
    InputTextFlags.chars_no_blank: "chars_no_blank", InputTextFlags.allow_tab_input: "allow_tab_input",
    InputTextFlags.enter_returns_true: "enter_returns_true", InputTextFlags.escape_clears_all: "escape_clears_all",
    InputTextFlags.ctrl_enter_for_new_line: "ctrl_enter_for_new_line", InputTextFlags.read_only: "read_only",
    InputTextFlags.password: "password", InputTextFlags.always_overwrite: "always_overwrite",
    InputTextFlags.auto_select_all: "auto_select_all", InputTextFlags.no_horizontal_scroll: "no_horizontal_scroll",
    InputTextFlags.no_undo_redo: "no_undo_redo",
}  # fmt: skip


def _slider_flags(imgui: Any, flags: SliderFlags) -> int:
    theirs = imgui.SliderFlags_
    names = ("logarithmic", "no_round_to_format", "no_input", "always_clamp")
    return sum(getattr(theirs, name).value for name in names if flags & SliderFlags[name])


def _text_flags(imgui: Any, flags: InputTextFlags) -> int:
    """By name: the numbers are not the same in all versions of ImGui."""
    return sum(getattr(imgui.InputTextFlags_, name).value for flag, name in _THEIRS.items() if flags & flag)


class ValueWidget(Widget):
    """callback(value): when the user has changed the value."""

    label: str
    callback: Callback | None

    def __init__(
        self, parent: Widget | None = None, label: str = "", value: Any = None, callback: Callback | None = None, **common: bool
    ) -> None:
        self.label = label
        self.callback = callback
        self.value = self._default() if value is None else value
        super().__init__(parent, **common)

    @property
    def value(self) -> Any:
        """What the user sees and changes; may be set."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = self._checked(value)

    def _default(self) -> Any:
        raise NotImplementedError

    def _checked(self, value: Any) -> Any:
        """The value as this widget holds it; TypeError for others."""
        raise NotImplementedError

    def _shown_label(self) -> str:
        return self.label or "##"

    def _take(self, change: tuple[bool, Any], calls: Calls) -> None:
        """What ImGui returned: whether there is a change, and the value."""
        if not change[0]:
            return
        self.value = change[1]
        if self.callback is not None:
            calls.append((self.callback, (self.value,)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(label = {self.label!r}, value = {self._value!r})"


class CheckBox(ValueWidget):
    def _default(self) -> bool:
        return False

    def _checked(self, value: Any) -> bool:
        return truth("CheckBox 'value'", value)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        self._take(imgui.checkbox(self._shown_label(), self.value), calls)


class ComboBox(ValueWidget):
    """value: the place of the chosen item."""

    items: list[str]

    def __init__(
        self, parent: Widget | None = None, label: str = "", value: int = 0, callback: Callback | None = None,
        items: Sequence[str] = (), **common: bool,
    ) -> None:  # fmt: skip
        self.items = texts(f"{type(self).__name__} 'items'", items)
        super().__init__(parent, label, value, callback, **common)

    def _default(self) -> int:
        return 0

    def _checked(self, value: Any) -> int:
        return _number(self, int, value)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        self._take(imgui.combo(self._shown_label(), self.value, self.items), calls)


class ListBox(ComboBox):
    height_in_items: int
    """-1: as ImGui likes."""

    def __init__(
        self, parent: Widget | None = None, label: str = "", value: int = 0, callback: Callback | None = None,
        items: Sequence[str] = (), height_in_items: int = -1, **common: bool,
    ) -> None:  # fmt: skip
        self.height_in_items = height_in_items
        super().__init__(parent, label, value, callback, items, **common)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        self._take(imgui.list_box(self._shown_label(), self.value, self.items, self.height_in_items), calls)


def _number(widget: Widget, kind: type, value: Any) -> Any:
    what = f"{type(widget).__name__} 'value'"
    return integer(what, value, -(1 << 31), (1 << 31) - 1) if kind is int else float(number(what, value))


_FORMATS = {float: re.compile(r"%[-+ #0]*\d{0,3}(\.\d{1,3})?[aAeEfFgG]"), int: re.compile(r"%[-+ #0]*\d{0,3}(\.\d{1,3})?[diouxX]")}
"""What C's printf may do with the value: anything else would read what is not there."""


def _checked_format(widget: Widget, kind: type, format: str) -> str:
    rest, count = _FORMATS[kind].subn("", text(f"{type(widget).__name__} 'format'", format).replace("%%", ""))
    if "%" in rest or count > 1:
        example, numbers = ("'%d'", "an integer") if kind is int else ("'%.3f'", "a float")
        raise ValueError(f"{type(widget).__name__} 'format': expected at most one place for {numbers}, such as {example}, got {format!r}")
    return format


class NumberWidget(ValueWidget):
    """Of one number or a vector."""

    _function: ClassVar[str]
    """Of ImGui."""
    _scalar: ClassVar[type]
    _vector: ClassVar[type | None]
    _count: ClassVar[int]

    def __init_subclass__(cls, of: type | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if of is None:
            return
        cls._function = f"{cls.__bases__[0].__name__[1:]}_{of.__name__}".lower()
        cls._vector = None if of in (float, int) else of
        cls._scalar = float if of.__name__.startswith("float") else int
        cls._count = 1 if cls._vector is None else len(cls._vector())

    def _default(self) -> Any:
        return self._scalar(0) if self._vector is None else self._vector()

    def _checked(self, value: Any) -> Any:
        if self._vector is None:
            return _number(self, self._scalar, value)
        parts = list(value) if hasattr(value, "__len__") else [value] * self._count
        if len(parts) != self._count:
            raise TypeError(f"{type(self).__name__} 'value': expected {self._count} numbers, got {value!r}")
        return self._vector(*(_number(self, self._scalar, part) for part in parts))

    def _raw(self) -> Any:
        return self.value if self._vector is None else list(self.value)

    @property
    def format(self) -> str:
        """How the value is written, as in C's printf: "%.3f", "%d"; may be set."""
        return self._format

    @format.setter
    def format(self, format: str) -> None:
        self._format = _checked_format(self, self._scalar, format)

    def _set_format(self, format: str | None) -> None:
        self.format = format if format is not None else "%d" if self._scalar is int else "%.3f"


class _Slider(NumberWidget):
    """min, max: what the slider reaches."""

    min: float
    max: float
    flags: SliderFlags

    def _speed(self) -> list[float]:
        """What drags have besides."""
        return []

    def __init__(
        self, parent: Widget | None = None, label: str = "", value: Any = None, callback: Callback | None = None,
        min: float = 0, max: float = 0, format: str | None = None, flags: SliderFlags = SliderFlags.none, **common: bool,
    ) -> None:  # fmt: skip
        self.min = min
        self.max = max
        self.flags = flags
        self._set_format(format)
        super().__init__(parent, label, value, callback, **common)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        bounds = self._scalar(self.min), self._scalar(self.max)
        flags = _slider_flags(imgui, self.flags)
        function = getattr(imgui, self._function)
        self._take(function(self._shown_label(), self._raw(), *self._speed(), *bounds, self.format, flags), calls)


class _Drag(_Slider):
    """min, max: without effect where they are equal. speed: of the value, a pixel."""

    speed: float

    def __init__(
        self, parent: Widget | None = None, label: str = "", value: Any = None, callback: Callback | None = None,
        speed: float = 1.0, min: float = 0, max: float = 0, format: str | None = None,
        flags: SliderFlags = SliderFlags.none, **common: bool,
    ) -> None:  # fmt: skip
        self.speed = speed
        super().__init__(parent, label, value, callback, min, max, format, flags, **common)

    def _speed(self) -> list[float]:
        return [float(self.speed)]


class _Input(NumberWidget):
    """step, step_fast: of the buttons of a single number."""

    step: float
    step_fast: float
    flags: InputTextFlags

    def __init__(
        self, parent: Widget | None = None, label: str = "", value: Any = None, callback: Callback | None = None,
        step: float = 1, step_fast: float = 100, format: str | None = None,
        flags: InputTextFlags = InputTextFlags.none, **common: bool,
    ) -> None:  # fmt: skip
        self.step = step
        self.step_fast = step_fast
        self.flags = flags
        self._set_format(format)
        super().__init__(parent, label, value, callback, **common)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        flags = _text_flags(imgui, self.flags)
        function = getattr(imgui, self._function)
        more: list[Any] = []
        if self._vector is None:
            more += [self._scalar(self.step), self._scalar(self.step_fast)]
        if self._scalar is float:
            more.append(self.format)
        self._take(function(self._shown_label(), self._raw(), *more, flags), calls)


class InputText(ValueWidget):
    multi_line: bool
    flags: InputTextFlags

    def __init__(
        self, parent: Widget | None = None, label: str = "", value: str = "", callback: Callback | None = None,
        multi_line: bool = False, flags: InputTextFlags = InputTextFlags.none, **common: bool,
    ) -> None:  # fmt: skip
        if member("InputText 'flags'", InputTextFlags, flags) & _CALLBACKS:
            raise NotImplementedError("InputText: the flags callback_... are not implemented; `callback` is told of changes")
        self.multi_line = multi_line
        self.flags = flags
        super().__init__(parent, label, value, callback, **common)

    def _default(self) -> str:
        return ""

    def _checked(self, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"InputText 'value': expected a str, got {value!r}")
        return value

    def _draw(self, imgui: Any, calls: Calls) -> None:
        flags = _text_flags(imgui, self.flags)
        if self.multi_line:
            self._take(imgui.input_text_multiline(self._shown_label(), self.value, flags=flags), calls)
        else:
            self._take(imgui.input_text(self._shown_label(), self.value, flags), calls)


class SliderFloat(_Slider, of=float): ...
class SliderFloat2(_Slider, of=float2): ...
class SliderFloat3(_Slider, of=float3): ...
class SliderFloat4(_Slider, of=float4): ...
class SliderInt(_Slider, of=int): ...
class SliderInt2(_Slider, of=int2): ...
class SliderInt3(_Slider, of=int3): ...
class SliderInt4(_Slider, of=int4): ...
class DragFloat(_Drag, of=float): ...
class DragFloat2(_Drag, of=float2): ...
class DragFloat3(_Drag, of=float3): ...
class DragFloat4(_Drag, of=float4): ...
class DragInt(_Drag, of=int): ...
class DragInt2(_Drag, of=int2): ...
class DragInt3(_Drag, of=int3): ...
class DragInt4(_Drag, of=int4): ...
class InputFloat(_Input, of=float): ...
class InputFloat2(_Input, of=float2): ...
class InputFloat3(_Input, of=float3): ...
class InputFloat4(_Input, of=float4): ...
class InputInt(_Input, of=int): ...
class InputInt2(_Input, of=int2): ...
class InputInt3(_Input, of=int3): ...
class InputInt4(_Input, of=int4): ...
