"""Panels of widgets over Dear ImGui (the package imgui-bundle), drawn into textures and windows."""

from __future__ import annotations

from . import imgui_bundle as imgui_bundle
from .context import Context as Context
from .values import (
    CheckBox as CheckBox,
    ComboBox as ComboBox,
    DragFloat as DragFloat,
    DragFloat2 as DragFloat2,
    DragFloat3 as DragFloat3,
    DragFloat4 as DragFloat4,
    DragInt as DragInt,
    DragInt2 as DragInt2,
    DragInt3 as DragInt3,
    DragInt4 as DragInt4,
    InputFloat as InputFloat,
    InputFloat2 as InputFloat2,
    InputFloat3 as InputFloat3,
    InputFloat4 as InputFloat4,
    InputInt as InputInt,
    InputInt2 as InputInt2,
    InputInt3 as InputInt3,
    InputInt4 as InputInt4,
    InputText as InputText,
    InputTextFlags as InputTextFlags,
    ListBox as ListBox,
    SliderFlags as SliderFlags,
    SliderFloat as SliderFloat,
    SliderFloat2 as SliderFloat2,
    SliderFloat3 as SliderFloat3,
    SliderFloat4 as SliderFloat4,
    SliderInt as SliderInt,
    SliderInt2 as SliderInt2,
    SliderInt3 as SliderInt3,
    SliderInt4 as SliderInt4,
    ValueWidget as ValueWidget,
)
from .widgets import (
    Button as Button,
    Group as Group,
    ProgressBar as ProgressBar,
    Screen as Screen,
    Text as Text,
    Widget as Widget,
    Window as Window,
)
