"""Attributes of events and widgets take what they are annotated with, and say so of everything else. Nothing is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import ui

pytestmark = pytest.mark.null


def refuses(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text), str(caught.value)


def test_events_take_what_stands_for_their_values() -> None:
    event = spy.MouseEvent(spy.MouseEventType.move, (1, 2))  # type: ignore[arg-type]
    assert isinstance(event.pos, spy.float2) and event.pos == spy.float2(1, 2)
    event.scroll = np.array([0, -1])  # type: ignore[assignment]
    assert event.scroll == spy.float2(0, -1)
    event.button = 2  # type: ignore[assignment]
    assert event.button is spy.MouseButton.right
    event.mods = spy.KeyModifier.ctrl  # type: ignore[assignment]
    assert event.mods is spy.KeyModifierFlags.ctrl and event.has_modifier(spy.KeyModifier.ctrl)
    assert event.has_modifier(spy.KeyModifierFlags.ctrl) and not event.has_modifier(spy.KeyModifier.shift)  # type: ignore[arg-type]
    assert spy.KeyboardEvent(key=65).key is spy.KeyCode.a  # type: ignore[arg-type]
    state = spy.GamepadState(buttons=np.int64(2))  # type: ignore[arg-type]
    assert type(state.buttons) is int and state.is_button_down(spy.GamepadButton.a)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: spy.KeyboardEvent(type="x"), ValueError, "KeyboardEvent 'type': expected a KeyboardEventType (key_press,"),
        (lambda: spy.KeyboardEvent(type=9), ValueError, "KeyboardEvent 'type': expected a KeyboardEventType (key_press,"),
        (lambda: spy.KeyboardEvent(key=None), TypeError, "KeyboardEvent 'key': expected a KeyCode (space,"),
        (lambda: spy.KeyboardEvent(codepoint="a"), TypeError, "KeyboardEvent 'codepoint': expected an int, got 'a'"),
        (lambda: spy.MouseEvent(button=spy.MouseEventType.move), TypeError, "MouseEvent 'button': expected a MouseButton"),
        (lambda: spy.MouseEvent(pos=3), TypeError, "MouseEvent 'pos': expected 2 numbers, got 3"),
        (lambda: spy.MouseEvent(pos=(1, 2, 3)), TypeError, "MouseEvent 'pos': expected 2 numbers, got (1, 2, 3)"),
        (lambda: spy.MouseEvent(pos=("a", 2)), TypeError, "MouseEvent 'pos': expected a number, got 'a'"),
        (lambda: setattr(spy.MouseEvent(), "position", 1), AttributeError, "MouseEvent has no attribute 'position'"),
        (lambda: spy.KeyboardEvent().has_modifier(1.5), TypeError, "has_modifier 'modifier': expected a KeyModifierFlags"),
        (lambda: spy.GamepadState(buttons=1.0), TypeError, "GamepadState 'buttons': expected an int, got 1.0"),
        (lambda: spy.WindowHandle(1, -2), ValueError, "WindowHandle 'xwindow': expected at least 0, got -2"),
        (lambda: spy.platform.FileDialogFilter(1, "*"), TypeError, "FileDialogFilter 'name': expected a str, got 1"),
        (lambda: spy.platform.open_file_dialog(3), TypeError, "open_file_dialog 'filters': expected a list"),
        (lambda: setattr(spy.Logger(), "name", 3), TypeError, "Logger 'name': expected a str, got 3"),
        (lambda: ui.Text(None, 3), TypeError, "Text 'text': expected a str, got 3"),
        (lambda: ui.Button(None, label=3), TypeError, "Button 'label': expected a str, got 3"),
        (lambda: ui.Window(None, "", 3), TypeError, "Window 'position': expected 2 numbers, got 3"),
        (lambda: ui.ProgressBar(None, "x"), TypeError, "ProgressBar 'fraction': expected a number, got 'x'"),
        (lambda: ui.CheckBox(None, "", "no"), TypeError, "CheckBox 'value': expected a bool, got 'no'"),
        (lambda: ui.Text(None, visible="no"), TypeError, "Text 'visible': expected a bool, got 'no'"),
        (lambda: ui.ListBox(None, items=["a", 3]), TypeError, "ListBox 'items'[1]: expected a str, got 3"),
        (lambda: ui.SliderFloat(None, min="a"), TypeError, "SliderFloat 'min': expected a number, got 'a'"),
        (lambda: ui.SliderInt(None, value=1 << 31), ValueError, "SliderInt 'value': expected -2147483648 to 2147483647, got 2147483648"),
        (lambda: ui.DragFloat(None, speed=None), TypeError, "DragFloat 'speed': expected a number, got None"),
        (lambda: ui.InputText(None, flags="x"), ValueError, "InputText 'flags': expected a InputTextFlags"),
        (lambda: ui.Group(None).add_child_at(ui.Group(None), "a"), TypeError, "add_child_at 'index': expected an int"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    refuses(call, kind, text)


@pytest.mark.parametrize("format", ["", "%%", "%.2f m", "a%+08.3eb", "50%% %g"])
def test_formats_of_floats(format: str) -> None:
    assert ui.SliderFloat(None, format=format).format == format


@pytest.mark.parametrize("format", ["%s", "%n", "%d", "%f %f", "%*f", "%", "%.2", "%lf"])
def test_formats_that_would_read_what_is_not_there(format: str) -> None:
    slider = ui.SliderFloat2(None)
    refuses(lambda: setattr(slider, "format", format), ValueError, "SliderFloat2 'format': expected at most one place for a float")
    assert slider.format == "%.3f"
    whole = format.replace("d", "f").replace("lf", "f").replace("%f %f", "%f") if "f" in format else "%s"
    refuses(lambda: ui.DragInt(None, format=whole), ValueError, "DragInt 'format': expected at most one place for an integer")


def test_widgets_that_fail_leave_nothing_in_their_parent() -> None:
    parent = ui.Group(None)
    refuses(lambda: ui.SliderInt(parent, value="a"), TypeError, "SliderInt 'value'")
    refuses(lambda: ui.ComboBox(parent, items=3), TypeError, "ComboBox 'items'")
    refuses(lambda: ui.Window(parent, size=(1, 2, 3)), TypeError, "Window 'size'")
    assert len(parent) == 0


def test_annotations_of_users_are_their_own() -> None:
    class Mine(ui.Text):
        number: int = 0
        there: Nowhere  # type: ignore[name-defined]  # noqa: F821

    mine = Mine(None, "text")
    mine.number = "a"  # type: ignore[assignment]
    refuses(lambda: setattr(mine, "text", 3), TypeError, "Mine 'text': expected a str, got 3")
    assert mine.number == "a"
