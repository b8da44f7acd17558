"""Widgets: the tree, values, what a mouse and a keyboard do to them, and their pixels."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from panel import Panel, box

import slangpy as spy
from slangpy import ui

pytestmark = pytest.mark.draws
FIRST_LINE = 10 + 19 + 8 + 9
"""Row of the first widget's middle, in a window at row 10: title bar, padding, half a line."""
STEP = 19 + 4
"""From one widget to the next."""


def window(panel: Panel) -> ui.Window:
    return ui.Window(panel.screen, "panel", position=(10, 10), size=(300, 200))


@pytest.fixture
def large(drawer: spy.Device) -> Panel:
    return Panel(drawer, 320, 240)


def test_pixels_of_a_window(panel: Panel) -> None:
    shown = ui.Window(panel.screen, "x", position=spy.float2(10, 10), size=spy.float2(100, 60))
    assert box(panel.frame(3)) == (10, 109, 10, 69)
    shown.position = (20, 30)
    shown.size = (50, 40)
    assert box(panel.frame(3)) == (20, 69, 30, 69)
    assert (shown.position, shown.size) == (spy.float2(20, 30), spy.float2(50, 40))
    shown.close()
    assert not shown.visible and not panel.frame()[..., :3].any()
    shown.show()
    assert box(panel.frame(2)) == (20, 69, 30, 69)


@pytest.mark.parametrize("format", ["rgba8_unorm", "bgra8_unorm_srgb", "rgba8_unorm_srgb", "rgba16_float"])
def test_formats_look_alike(drawer: spy.Device, format: str) -> None:
    """Targets that encode what is written show the same bytes, to what blending of edges differs by."""
    images = []
    for name in ("rgba8_unorm", format):
        panel = Panel(drawer, format=spy.Format[name])
        ui.Text(ui.Window(panel.screen, "x", (10, 10), (100, 60)), "text")
        image = panel.frame(3).astype(np.float64)
        if name == "rgba16_float":
            image *= 255
        images.append(image[..., [2, 1, 0]] if name.startswith("bgra") else image[..., :3])
    same = np.abs(images[0] - images[1]).max(-1) <= 2
    assert same.mean() > 0.9
    assert box(images[1]) == (10, 109, 10, 69)


def test_the_tree(panel: Panel) -> None:
    top = window(panel)
    a, b, c = ui.Text(top, "a"), ui.Button(top, "b"), ui.Text(None, "c")
    assert panel.screen.children == [top] and list(top) == [a, b] and len(top) == 2 and bool(c) and c.parent is None
    top.add_child_at(c, 1)
    assert [top.child_index(item) for item in (a, c, b)] == [0, 1, 2] and top[1] is c and c.parent is top
    del top[0]
    assert a.parent is None and top.children == [c, b] and top.child_index(a) == -1
    group = ui.Group(top, "more")
    b.parent = group
    assert top.children == [c, group] and group.children == [b]
    top.remove_child(c)
    top.remove_all_children()
    assert len(top) == 0 and group.parent is None and b.parent is group
    panel.screen.remove_child_at(0)
    assert list(panel.screen) == []


def test_buttons(large: Panel) -> None:
    pressed: list[int] = []
    top = window(large)
    first = ui.Button(top, "one", lambda: pressed.append(1))
    ui.Button(top, "one", callback=lambda: pressed.append(2))  # the same label
    large.frame(3)
    large.click(30, FIRST_LINE)
    assert pressed == [1]
    large.click(30, FIRST_LINE + STEP)
    assert pressed == [1, 2]
    first.enabled = False
    large.click(30, FIRST_LINE)
    first.visible = False  # the second moves up
    large.frame()
    large.click(30, FIRST_LINE)
    assert pressed == [1, 2, 2]


def test_check_boxes_and_values(large: Panel) -> None:
    told: list[Any] = []
    top = window(large)
    check = ui.CheckBox(top, "check", callback=told.append)
    assert check.value is False
    large.frame(3)
    large.click(25, FIRST_LINE)
    assert check.value is True and told == [True]
    check.value = False
    large.frame()
    assert told == [True]  # of what the user does alone


def test_sliders(large: Panel) -> None:
    told: list[Any] = []
    top = window(large)
    slider = ui.SliderFloat(top, "a", value=0.25, callback=told.append, min=0, max=2)
    number = ui.SliderInt(top, "b", 3, told.append, 0, 10)
    pair = ui.SliderFloat2(top, "c", (0.5, 1), told.append, 0, 2)
    assert (slider.value, number.value, pair.value) == (0.25, 3, spy.float2(0.5, 1))
    large.frame(3)
    for line in range(3):
        large.click(60, FIRST_LINE + line * STEP)
    assert 0 < slider.value < 2 and slider.value != 0.25 and told[0] == slider.value
    assert number.value != 3 and isinstance(number.value, int) and told[1] == number.value
    assert pair.value.x != 0.5 and pair.value.y == 1 and told[2] == pair.value and isinstance(told[2], spy.float2)


def test_combo_and_list_boxes(large: Panel) -> None:
    told: list[Any] = []
    top = window(large)
    combo = ui.ComboBox(top, "choice", 0, told.append, ["first", "second", "third"])
    chosen = ui.ListBox(top, "list", 1, told.append, ["x", "y", "z"], height_in_items=3)
    large.frame(3)
    large.click(60, FIRST_LINE)
    large.frame(3)
    large.click(60, FIRST_LINE + 2 * STEP)
    assert combo.value in (1, 2) and told == [combo.value]
    large.click(60, FIRST_LINE + STEP + 2)
    assert chosen.value == 0 and told[1:] == [0]


def test_text_input(large: Panel) -> None:
    told: list[str] = []
    top = window(large)
    text = ui.InputText(top, "name", callback=told.append)
    assert text.value == ""
    large.frame(3)
    large.click(60, FIRST_LINE)
    assert large.context.handle_keyboard_event(spy.KeyboardEvent(key=spy.KeyCode.home)) is True
    large.frame(2)
    large.type("hü!")
    large.press(spy.KeyCode.backspace)
    assert text.value == "hü" and told == ["h", "hü", "hü!", "hü"]


def test_number_input(large: Panel) -> None:
    value = ui.InputInt(window(large), "n", 5, step=2)
    large.frame(3)
    large.click(45, FIRST_LINE)
    large.press(spy.KeyCode.a, spy.KeyModifierFlags.ctrl)
    large.type("42")
    large.press(spy.KeyCode.enter)
    assert value.value == 42


EVERY = [
    ui.CheckBox, ui.InputText, ui.ComboBox, ui.ListBox,
    *(getattr(ui, f"{kind}{scalar}{count}") for kind in ("Slider", "Drag", "Input") for scalar in ("Float", "Int") for count in ("", 2, 3, 4)),
]  # fmt: skip


def test_every_widget_draws(large: Panel) -> None:
    top = window(large)
    top.size = (300, 230)
    empty = large.frame(3)
    for kind in EVERY:
        widget = kind(top, kind.__name__)
        first = kind(None).value
        assert type(widget.value) is type(first) and widget.value == first
        assert (large.frame(2) != empty).any(), kind
        top.remove_child(widget)
    for widget in (ui.Text(top, "100 %s"), ui.ProgressBar(top, 0.5), ui.Group(top, "a group"), ui.InputText(top, multi_line=True)):
        assert (large.frame(2) != empty).any(), widget
        top.remove_child(widget)


def test_flags(large: Panel) -> None:
    assert (int(ui.SliderFlags.logarithmic), int(ui.SliderFlags.always_clamp)) == (32, 1536)
    assert (int(ui.InputTextFlags.read_only), int(ui.InputTextFlags.password)) == (512, 1024)
    top = window(large)
    fixed = ui.InputText(top, "fixed", "as it is", flags=ui.InputTextFlags.read_only)
    digits = ui.InputText(top, "digits", flags=ui.InputTextFlags.chars_decimal)
    large.frame(3)
    for line in range(2):
        large.click(60, FIRST_LINE + line * STEP)
        large.type("1x2")
    assert (fixed.value, digits.value) == ("as it is", "12")
    with pytest.raises(NotImplementedError, match="callback_"):
        ui.InputText(top, flags=ui.InputTextFlags.callback_always)


def test_what_the_panel_wants(large: Panel) -> None:
    window(large)
    large.frame(3)
    large.point(50, 100)
    large.frame()
    assert large.point(51, 100) is True
    large.point(315, 235)
    large.frame()
    assert large.point(316, 235) is False


def test_escape(large: Panel) -> None:
    """A chosen panel has the keyboard, and leaves Escape to the program; a text that is edited and an open list do not."""
    top = window(large)
    ui.Button(top, "press")
    text = ui.InputText(top, "##text", "old")
    ui.ComboBox(top, "##list", 0, items=["a", "b"])
    kinds = spy.KeyboardEventType

    def wants(key: spy.KeyCode) -> bool:
        wanted = large.context.handle_keyboard_event(spy.KeyboardEvent(kinds.key_press, key))
        large.context.handle_keyboard_event(spy.KeyboardEvent(kinds.key_release, key))
        large.frame(2)
        return wanted

    escape, other = spy.KeyCode.escape, spy.KeyCode.f5
    large.frame(3)
    assert not wants(escape)
    large.click(30, FIRST_LINE)
    assert wants(other) and not wants(escape)
    large.click(30, FIRST_LINE + STEP)
    large.type("new")
    assert wants(escape) and text.value == "old" and not wants(escape)
    large.click(30, FIRST_LINE + 2 * STEP)
    large.frame(2)
    assert wants(other) and wants(escape) and not wants(escape)


def test_exceptions_come_out_of_begin_frame(large: Panel) -> None:
    def fail() -> None:
        raise KeyError("of the callback")

    button = ui.Button(window(large), "fail", fail)
    large.frame(3)
    with pytest.raises(KeyError, match="of the callback"):
        large.click(30, FIRST_LINE)
    button.callback = None
    large.frame(2)


def test_two_contexts(drawer: spy.Device) -> None:
    panels = [Panel(drawer), Panel(drawer)]
    for i, panel in enumerate(panels):
        ui.Window(panel.screen, "x", (10 * (i + 1), 20), (60, 50))
    for _ in range(3):
        images = [panel.frame() for panel in panels]
    assert [box(image) for image in images] == [(10, 69, 20, 69), (20, 79, 20, 69)]


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda p: ui.Context(3), TypeError, "ui.Context: 'device' must be a Device, got 3"),
        (lambda p: ui.Text(3), TypeError, "Text 'parent': expected a widget, got 3"),
        (lambda p: p.screen.add_child(p.screen), ValueError, "a widget cannot be inside itself"),
        (lambda p: p.screen.remove_child(ui.Text()), ValueError, "is no child of"),
        (lambda p: p.screen[0], IndexError, "Screen: no child 0; there are 0"),
        (lambda p: ui.SliderInt(value=1.5), TypeError, "SliderInt 'value': expected an int, got 1.5"),
        (lambda p: ui.DragFloat3(value=(1, 2)), TypeError, r"DragFloat3 'value': expected 3 numbers, got \(1, 2\)"),
        (lambda p: ui.InputText(value=3), TypeError, "InputText 'value': expected a str, got 3"),
        (lambda p: p.context.begin_frame(0, 5), ValueError, "begin_frame 'width': expected at least 1, got 0"),
        (lambda p: p.context.end_frame(p.target, None), RuntimeError, "end_frame: no frame was begun"),
        (lambda p: p.context.begin_frame("a", 5), TypeError, "begin_frame 'width': expected an int, got 'a'"),
        (lambda p: p.context.begin_frame(4, 5, 3), TypeError, "begin_frame 'window': expected a Window or None, got 3"),
        (lambda p: p.context.handle_mouse_event(None), TypeError, "handle_mouse_event: expected a MouseEvent, got None"),
        (lambda p: p.context.handle_keyboard_event(3), TypeError, "handle_keyboard_event: expected a KeyboardEvent, got 3"),
        (lambda p: p.context.render_draw_data(None, 3, None), TypeError, "render_draw_data 'target': expected a Texture"),
        (lambda p: p.context.render_draw_data(None, p.target, 3), TypeError, "'command_encoder': expected a CommandEnc"),
    ],
)
def test_errors(panel: Panel, make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make(panel)


@pytest.mark.null
def test_devices_that_do_not_draw() -> None:
    pytest.importorskip("imgui_bundle")
    with spy.Device(type=spy.DeviceType.cpu) as device:
        with pytest.raises(NotImplementedError, match="ui.Context: .*does not have the feature 'rasterization'; use a vulkan"):
            ui.Context(device)
        device.close()


@pytest.mark.null
def test_without_the_package() -> None:
    code = (
        "import sys\nsys.modules['imgui_bundle'] = None\nimport slangpy as spy\n"
        "spy.ui.Text()\n"
        "try:\n    spy.ui.Context(spy.Device(type=spy.DeviceType.null))\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "slangpy.ui needs imgui-bundle: pip install slangpy[ui]\n"


def test_one_that_cannot_be_drawn_is_named_and_goes(panel: Panel) -> None:
    """ImGui refuses the range; the windows round it are closed, so that the next frame is as if nothing had been."""
    window = ui.Window(panel.screen, "outer")
    group = ui.Group(window, "inner")
    slider = ui.SliderInt(group, "wide", 5, min=-(1 << 31), max=(1 << 31) - 1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"begin_frame: SliderInt\(label = 'wide', value = 5\) cannot be drawn: IM_ASSERT"):
            panel.frame()
    slider.min, slider.max = 0, 10
    assert panel.frame(2)[..., :3].any()
