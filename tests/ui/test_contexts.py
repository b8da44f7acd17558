"""What a `Context` leaves behind when it goes, whenever that is."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from panel import Panel

import slangpy as spy
from slangpy import ui
from slangpy.ui.library import load_imgui
from slangpy.ui.textures import TEXTURES

pytestmark = pytest.mark.draws


class Clip:
    """As much of a window as has a clipboard."""

    def __init__(self) -> None:
        self.text = "pasted"

    def get_clipboard(self) -> str:
        return self.text

    def set_clipboard(self, text: str) -> None:
        self.text = text


class Dropping(ui.Text):
    """Lets go of what a list holds, while its context draws it."""

    held: list[Any]

    def _show(self, imgui: Any, calls: Any) -> None:
        self.held.clear()
        gc.collect()
        super()._show(imgui, calls)


def test_one_goes_in_a_frame_of_another(drawer: spy.Device) -> None:
    """It was the current one before that frame, which must not make it current again: ImGui would count in freed memory."""
    imgui = load_imgui()
    other, panel = ui.Context(drawer), Panel(drawer)
    imgui.set_current_context(other._context)
    gone = weakref.ref(other)
    text = Dropping(ui.Window(panel.screen, "x"), "a text")
    text.held = [other]
    del other
    assert panel.frame().any()
    assert gone() is None and imgui.get_current_context() is panel.context._context
    assert panel.frame(2).any()


def test_textures_go_too(drawer: spy.Device) -> None:
    gc.collect()
    before = dict(TEXTURES._own)
    panel = Panel(drawer)
    ui.Text(ui.Window(panel.screen, "x"), "a text")
    panel.frame(2)
    assert len(TEXTURES._own) > len(before)
    del panel
    gc.collect()
    assert before == TEXTURES._own


def test_windows_are_not_kept(drawer: spy.Device) -> None:
    """Their clipboard is used as long as they are there."""
    context = ui.Context(drawer)
    field = ui.InputText(ui.Window(context.screen, "x", (0, 0), (120, 90)), "##text")
    clips = [Clip()]

    def frame(*events: Any) -> None:
        for event in events:
            (context.handle_mouse_event if isinstance(event, spy.MouseEvent) else context.handle_keyboard_event)(event)
        context.begin_frame(128, 96, clips[0])

    mouse, key = spy.MouseEventType, spy.KeyboardEventType
    frame(spy.MouseEvent(mouse.move, spy.float2(40, 32)))
    for type in (mouse.button_down, mouse.button_up):
        frame(spy.MouseEvent(type, spy.float2(40, 32), button=spy.MouseButton.left))
    for code in (spy.KeyCode.v, spy.KeyCode.a, spy.KeyCode.x):
        frame(spy.KeyboardEvent(key.key_press, code, spy.KeyModifierFlags.ctrl))
        frame(spy.KeyboardEvent(key.key_release, code, spy.KeyModifierFlags.ctrl))
        if code == spy.KeyCode.v:
            assert field.value == "pasted"
            clips[0].text = ""
    frame()
    assert (field.value, clips[0].text) == ("", "pasted")
    gone = weakref.ref(clips.pop())
    gc.collect()
    assert gone() is None
    context.begin_frame(128, 96)
