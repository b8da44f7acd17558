"""What all widgets have, and those that hold no value: a tree that is drawn anew in each frame."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from .._native import float2
from ..base.own_names import own_names
from ..base.typed import integer, typed_fields, vector

_numbers = itertools.count(1)
Calls = list[tuple[Callable[..., Any], tuple[Any, ...]]]
"""Callbacks of a frame with their arguments, which run when all of it is laid out."""


class DrawError(RuntimeError):
    """A widget whose values ImGui does not take."""


@own_names
@typed_fields
class Widget:
    """A node of the tree. parent: the widget that it is drawn in, or None."""

    visible: bool
    enabled: bool
    """Whether it can be changed by the user."""

    def __init__(self, parent: Widget | None = None, *, visible: bool = True, enabled: bool = True) -> None:
        self._children: list[Widget] = []
        self._parent: Widget | None = None
        self._number = next(_numbers)
        self.visible = visible
        self.enabled = enabled
        self.parent = parent

    # --- the tree

    @property
    def parent(self) -> Widget | None:
        """The widget that holds this one; None for the screen."""
        return self._parent

    @parent.setter
    def parent(self, parent: Widget | None) -> None:
        if parent is not None:
            _check(f"{type(self).__name__} 'parent'", parent)
            parent.add_child(self)
        elif self._parent is not None:
            self._parent.remove_child(self)

    @property
    def children(self) -> list[Widget]:
        """A copy of the list."""
        return list(self._children)

    def child_index(self, child: Widget) -> int:
        """-1 where it is no child."""
        return next((i for i, item in enumerate(self._children) if item is child), -1)

    def add_child(self, child: Widget) -> None:
        """Puts a widget at the end of this one."""
        self.add_child_at(child, len(self._children))

    def add_child_at(self, child: Widget, index: int) -> None:
        """Takes it from its parent, if it has one."""
        _check("add_child 'child'", child)
        above: Widget | None = self
        while above is not None:
            if above is child:
                raise ValueError("add_child: a widget cannot be inside itself")
            above = above._parent
        if child._parent is not None:
            child._parent.remove_child(child)
        if not 0 <= integer("add_child_at 'index'", index) <= len(self._children):
            raise IndexError(f"add_child_at: 'index' is {index}, and there are {len(self._children)} children")
        self._children.insert(index, child)
        child._parent = self

    def remove_child(self, child: Widget) -> None:
        """ValueError where it is no child."""
        index = self.child_index(child)
        if index < 0:
            raise ValueError(f"remove_child: {child!r} is no child of {self!r}")
        self.remove_child_at(index)

    def remove_child_at(self, index: int) -> None:
        """Removes the child of that number, counted from 0."""
        self[index]._parent = None
        del self._children[index]

    def remove_all_children(self) -> None:
        """Removes all children."""
        while self._children:
            self.remove_child_at(len(self._children) - 1)

    def __len__(self) -> int:
        return len(self._children)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Widget]:
        return iter(list(self._children))

    def __getitem__(self, index: int) -> Widget:
        if not -len(self._children) <= integer(f"{type(self).__name__}: index of a child", index) < len(self._children):
            raise IndexError(f"{type(self).__name__}: no child {index}; there are {len(self._children)}")
        return self._children[index]

    def __delitem__(self, index: int) -> None:
        self.remove_child_at(index)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(children = {len(self._children)})"

    # --- drawing

    def _show(self, imgui: Any, calls: Calls) -> None:
        if not self.visible:
            return
        imgui.push_id(self._number)
        imgui.begin_disabled(not self.enabled)
        try:
            self._draw(imgui, calls)
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, DrawError):
                raise
            raise DrawError(f"begin_frame: {self!r} cannot be drawn: {error}") from error
        finally:
            imgui.end_disabled()
            imgui.pop_id()

    def _draw(self, imgui: Any, calls: Calls) -> None:
        self._draw_children(imgui, calls)

    def _draw_children(self, imgui: Any, calls: Calls) -> None:
        for child in list(self._children):
            child._show(imgui, calls)


def _check(what: str, widget: Any) -> None:
    if not isinstance(widget, Widget):
        raise TypeError(f"{what}: expected a widget, got {widget!r}")


class Screen(Widget):
    """The root, made by the context."""


class Window(Widget):
    """position, size: pixels; those that the user has moved it to, and settable."""

    title: str

    def __init__(
        self, parent: Widget | None = None, title: str = "", position: Any = None, size: Any = None, **common: bool
    ) -> None:
        self.title = title
        self.position = float2(10, 10) if position is None else position
        self.size = float2(400, 400) if size is None else size
        super().__init__(parent, **common)

    @property
    def position(self) -> float2:
        """Of the top left corner, in pixels."""
        return self._position

    @position.setter
    def position(self, position: Any) -> None:
        self._position = vector("Window 'position'", float2, position)
        self._is_moved = True

    @property
    def size(self) -> float2:
        """Width and height, in pixels."""
        return self._size

    @size.setter
    def size(self, size: Any) -> None:
        self._size = vector("Window 'size'", float2, size)
        self._is_moved = True

    def show(self) -> None:
        """Makes the window visible."""
        self.visible = True

    def close(self) -> None:
        """Hides the window."""
        self.visible = False

    def _draw(self, imgui: Any, calls: Calls) -> None:
        if self._is_moved:
            imgui.set_next_window_pos(imgui.ImVec2(self._position.x, self._position.y))
            imgui.set_next_window_size(imgui.ImVec2(self._size.x, self._size.y))
            self._is_moved = False
        expanded, is_open = imgui.begin(f"{self.title}###{self._number}", True)
        try:
            if expanded:
                at, size = imgui.get_window_pos(), imgui.get_window_size()
                self._position, self._size = float2(at.x, at.y), float2(size.x, size.y)
                self._draw_children(imgui, calls)
        finally:
            imgui.end()
        self.visible = bool(is_open)


class Group(Widget):
    """With a label, it can be folded."""

    label: str

    def __init__(self, parent: Widget | None = None, label: str = "", **common: bool) -> None:
        self.label = label
        super().__init__(parent, **common)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        if self.label and not imgui.collapsing_header(self.label, imgui.TreeNodeFlags_.default_open.value):
            return
        imgui.begin_group()
        try:
            self._draw_children(imgui, calls)
        finally:
            imgui.end_group()


class Text(Widget):
    text: str

    def __init__(self, parent: Widget | None = None, text: str = "", **common: bool) -> None:
        self.text = text
        super().__init__(parent, **common)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        imgui.text_unformatted(self.text)


class ProgressBar(Widget):
    fraction: float
    """From 0 to 1."""

    def __init__(self, parent: Widget | None = None, fraction: float = 0.0, **common: bool) -> None:
        self.fraction = fraction
        super().__init__(parent, **common)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        imgui.progress_bar(float(self.fraction))


class Button(Widget):
    """callback(): when it was pressed."""

    label: str
    callback: Callable[[], Any] | None

    def __init__(
        self, parent: Widget | None = None, label: str = "", callback: Callable[[], Any] | None = None, **common: bool
    ) -> None:
        self.label = label
        self.callback = callback
        super().__init__(parent, **common)

    def _draw(self, imgui: Any, calls: Calls) -> None:
        if imgui.button(self.label or "##") and self.callback is not None:
            calls.append((self.callback, ()))


__all__ = ["Button", "Calls", "Group", "ProgressBar", "Screen", "Text", "Widget", "Window"]
