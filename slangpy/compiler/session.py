"""Compiler options, the values that describe a link, and the cursor over a program's reflection.

Nothing here needs the compiler: `slangpy._slang` is imported by `create_session`, at the first compile.
"""

from __future__ import annotations

import copy
import functools
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from ..base import libslang
from ..base.absent import absent
from ..base.folders import LIBRARY
from ..base.own_names import own_names
from ..base.typed import member
from ..config import config
from .enums import (
    ShaderModel as ShaderModel,
    SlangDebugInfoLevel as SlangDebugInfoLevel,
    SlangFloatingPointMode as SlangFloatingPointMode,
    SlangMatrixLayout as SlangMatrixLayout,
    SlangOptimizationLevel as SlangOptimizationLevel,
)

T = TypeVar("T")
_ENUMS = {
    kind.__name__: kind
    for kind in (ShaderModel, SlangDebugInfoLevel, SlangFloatingPointMode, SlangMatrixLayout, SlangOptimizationLevel)
}


def _to_dict(options: Any, skip: Sequence[str] = ()) -> dict[str, Any]:
    return {item.name: getattr(options, item.name) for item in fields(options) if item.name not in skip}


def _check_known(cls: Any, values: Mapping[str, Any]) -> None:
    known = [item.name for item in fields(cls)]
    for name in values:
        if name not in known:
            raise TypeError(f'{cls.__name__} has no field "{name}"; known: {", ".join(known)}')


def _from_dict(cls: Any, values: Any) -> Any:
    if not isinstance(values, Mapping):
        raise TypeError(f"expected {cls.__name__} or a dict of its fields, got {values!r}")
    return cls(**values)


def _read_members(options: Any) -> None:
    """Members of enums may be given by name or number."""
    for item in fields(options):
        kind = _ENUMS.get(str(item.type).partition(" ")[0])
        value = getattr(options, item.name)
        if kind is not None and not isinstance(value, kind) and (value is not None or not str(item.type).endswith("None")):
            setattr(options, item.name, member(f"{type(options).__name__} '{item.name}'", kind, value))


def _check_values(options: Any) -> None:
    """Lists, dicts, flags and members of enums are what they should be."""
    _read_members(options)
    for item in fields(options):
        value = getattr(options, item.name)
        if value is None and isinstance(options, SlangLinkOptions):
            continue
        if item.name == "defines":
            good, expected = isinstance(value, Mapping), "a dict of names and values"
        elif "Sequence" in str(item.type):
            good, expected = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)), "a list"
        elif str(item.type).startswith("bool"):
            good, expected = isinstance(value, bool), "a bool"
        elif str(item.type).startswith("str"):
            good, expected = isinstance(value, str), "a str"
        else:
            continue
        if not good:
            raise TypeError(f"{type(options).__name__}: '{item.name}' must be {expected}, got {value!r}")


def _fields_or_dict(cls: type[T]) -> type[T]:
    """The constructor also takes one dict of fields, and says which fields there are."""
    from_fields = cls.__init__

    @functools.wraps(from_fields)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) == 1 and isinstance(args[0], Mapping):
            args, kwargs = (), {**args[0], **kwargs}
        _check_known(cls, kwargs)
        from_fields(self, *args, **kwargs)
        _read_members(self)

    cls.__init__ = __init__
    return cls


@own_names
@_fields_or_dict
@dataclass
class SlangCompilerOptions:
    """Options of a session. Warnings are named by code, by name, or "all"."""

    include_paths: Sequence[str | os.PathLike[str]] = field(default_factory=list)
    defines: Mapping[str, str] = field(default_factory=dict)
    shader_model: ShaderModel = ShaderModel.unknown
    matrix_layout: SlangMatrixLayout = SlangMatrixLayout.row_major
    enable_warnings: Sequence[str] = field(default_factory=list)
    disable_warnings: Sequence[str] = field(default_factory=list)
    warnings_as_errors: Sequence[str] = field(default_factory=list)
    report_downstream_time: bool = False
    report_perf_benchmark: bool = False
    skip_spirv_validation: bool = False
    floating_point_mode: SlangFloatingPointMode = SlangFloatingPointMode.default
    debug_info: SlangDebugInfoLevel = SlangDebugInfoLevel.none
    optimization: SlangOptimizationLevel = SlangOptimizationLevel.default
    downstream_args: Sequence[str] = field(default_factory=list)
    dump_intermediates: bool = False
    dump_intermediates_prefix: str = ""
    enable_experimental_features: bool = False
    cpu_lanes: bool = True
    """Of CPU devices: calls of functions with loops that end at different times take many elements at once, with the same
    bits, where a kernel gains by it; False, or the environment variable SLANGPY_CPU_LANES=0: none do."""

    @staticmethod
    def given(value: SlangCompilerOptions | Mapping[str, Any] | None) -> dict[str, Any]:
        """What was asked for by name; of an object, what is not the default."""
        if not isinstance(value, SlangCompilerOptions):
            return dict(value or {})
        plain = SlangCompilerOptions()
        return {name: item for name, item in _to_dict(value).items() if item != getattr(plain, name)}

    @staticmethod
    def of(value: SlangCompilerOptions | Mapping[str, Any] | None) -> SlangCompilerOptions:
        """The options that `value` (options, a dict of their fields, or None) stands for."""
        options = value if isinstance(value, SlangCompilerOptions) else _from_dict(SlangCompilerOptions, value or {})
        _check_values(options)
        return options

    def to_dict(self) -> dict[str, Any]:
        """The fields that the compiler reads; the shader model goes into the target instead."""
        return _to_dict(self, skip=("shader_model", "cpu_lanes"))


@own_names
@_fields_or_dict
@dataclass
class SlangLinkOptions:
    """What one program asks for instead of its session's options; None inherits."""

    floating_point_mode: SlangFloatingPointMode | None = None
    debug_info: SlangDebugInfoLevel | None = None
    optimization: SlangOptimizationLevel | None = None
    downstream_args: Sequence[str] | None = None
    dump_intermediates: bool | None = None
    dump_intermediates_prefix: str | None = None

    @staticmethod
    def of(value: SlangLinkOptions | Mapping[str, Any] | None) -> SlangLinkOptions:
        """The options that `value` (options, a dict of their fields, or None) stands for."""
        options = value if isinstance(value, SlangLinkOptions) else _from_dict(SlangLinkOptions, value or {})
        _check_values(options)
        return options

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, by name."""
        return _to_dict(self)


@dataclass(frozen=True)
class TypeConformance:
    """Says that values of `interface_name` may be of type `type_name`. `id` is what tells the types apart at run time; -1 takes
    the next free one of the interface."""

    interface_name: str
    type_name: str
    id: int = -1

    @staticmethod
    def of(value: TypeConformance | Sequence[Any]) -> TypeConformance:
        """From a conformance or a tuple (interface name, type name[, id])."""
        if isinstance(value, TypeConformance):
            return value
        if isinstance(value, str) or not 2 <= len(value) <= 3:
            raise ValueError(
                f"a type conformance is (interface name, type name) or (interface name, type name, id), got {value!r}"
            )
        return TypeConformance(*value)


@dataclass(frozen=True)
class SpecializationArg:
    """Argument of a generic entry point: a type, or an expression such as "4"."""

    text: str
    is_type: bool = True

    @staticmethod
    def from_type(type_name: Any) -> SpecializationArg:
        """A type, by name or as reflected."""
        return SpecializationArg(getattr(type_name, "full_name", None) or str(type_name), True)

    @staticmethod
    def from_expr(expression: Any) -> SpecializationArg:
        """A value, as Slang text."""
        return SpecializationArg(str(expression), False)


@own_names
@_fields_or_dict
@dataclass
class SlangSessionDesc:
    """What a session is made with."""

    compiler_options: SlangCompilerOptions | Mapping[str, Any] = field(default_factory=SlangCompilerOptions)
    add_default_include_paths: bool = True
    cache_path: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.compiler_options, Mapping):
            self.compiler_options = SlangCompilerOptions.of(self.compiler_options)

    @staticmethod
    def of(given: Any, add_default_include_paths: bool, cache_path: Any) -> SlangSessionDesc:
        """Of a desc, a dict of its fields, or the first of these fields beside the others."""
        if isinstance(given, SlangSessionDesc):
            return given
        if isinstance(given, Mapping) and not given.keys().isdisjoint(field.name for field in fields(SlangSessionDesc)):
            return SlangSessionDesc(given)  # pyright: ignore[reportArgumentType]: a dict of all fields
        return SlangSessionDesc(given or {}, add_default_include_paths, cache_path)


def session_desc(session: Any) -> SlangSessionDesc:
    """`SlangSession.desc`: a copy, whose include paths are those that are searched."""
    known: SlangSessionDesc = session._desc
    options = copy.copy(SlangCompilerOptions.of(known.compiler_options))
    options.include_paths = list(session.include_paths)
    cache_path = None if known.cache_path is None else Path(known.cache_path)
    return SlangSessionDesc(options, known.add_default_include_paths, cache_path)


def _target_of(device: Any, options: SlangCompilerOptions) -> dict[str, Any]:
    target = device.compile_target
    values: dict[str, Any] = {
        "format": target.format,
        "profile": target.profile,
        "capabilities": list(target.capabilities),
        "defines": dict(target.defines),
    }
    supported = ShaderModel[str(getattr(device.supported_shader_model, "name", "sm_6_0"))]
    model = options.shader_model or supported
    if not isinstance(model, ShaderModel):
        raise TypeError(f"SlangCompilerOptions: 'shader_model' must be a ShaderModel, got {model!r}")
    if model > supported:
        raise ValueError(
            f"shader_model {model.name} is more than this device supports ({supported.name}); "
            f"ask for {supported.name} or less"
        )
    values["defines"].setdefault("__SHADER_TARGET_MAJOR", str(model // 10))
    values["defines"].setdefault("__SHADER_TARGET_MINOR", str(model % 10))
    if target.format == "hlsl" and options.shader_model:
        values["profile"] = model.name
    return values


def session_values(
    device: Any, options: SlangCompilerOptions | Mapping[str, Any] | None, add_default_include_paths: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the compiler is told of a target, and of the options."""
    options = SlangCompilerOptions.of(options)
    paths = [os.fspath(path) for path in options.include_paths]
    if add_default_include_paths:
        paths = [LIBRARY, *(path for path in paths if path != LIBRARY)]
    values = options.to_dict()
    values["include_paths"] = paths
    values["library_paths"] = [LIBRARY]
    values["rewrites"] = config.rewrites
    return _target_of(device, options), values


def create_session(
    device: Any,
    options: SlangCompilerOptions | Mapping[str, Any] | None = None,
    add_default_include_paths: bool = True,
    cache_path: str | os.PathLike[str] | None = None,
    held_by_device: bool = False,
    format: str = "",
) -> libslang.SlangSession:
    """Makes a compiler session for the code that `device` runs, or for another `format` of it, such as "spirv-asm".

    add_default_include_paths: search this package's own Slang folder before the options' include paths.
    cache_path: where compiled modules of this session are kept; None is the package's cache.
    held_by_device: the device will hold the session, so that this must not hold the device; its modules do.
    """
    target, values = session_values(device, options, add_default_include_paths)
    session: Any = libslang.SlangSession({**target, "format": format} if format else target, values)
    session._get_device = weakref.ref(device) if held_by_device else lambda: device
    session._desc = SlangSessionDesc(SlangCompilerOptions.of(options), add_default_include_paths, cache_path)
    return session


def create_kernel_session(
    search_paths: Sequence[str],
    defines: Mapping[str, str],
    line_directives: bool,
    arguments: Sequence[str],
    float_mode: str = "default",
) -> Any:
    """A session for whole programs of CUDA kernels (the loadModule API), needing no device.

    arguments: more options, as for slangc. float_mode: default, fast or precise.
    """
    values = {
        "include_paths": [*search_paths, LIBRARY],
        "defines": dict(defines),
        "matrix_layout": "column_major",  # the order in which the emitted code unpacks parameters is then the rows'
        "whole_program": True,
        "line_directives": line_directives,
        "arguments": list(arguments),
        "floating_point_mode": float_mode,
        "rewrites": config.rewrites,
    }
    return libslang.SlangSession({"format": "cuda"}, values)


class ReflectionCursor:
    """Walks the parameters of a program by name: `cursor.field`, `cursor["field"]`, `cursor[3]`. Constant buffers and
    parameter blocks are entered by themselves. Keeps the program alive."""

    __slots__ = ("_entry_points", "_layout", "_path", "_program")

    def __init__(self, program: Any, layout: Any = None, path: str = "", entry_points: Any = None) -> None:
        self._layout: Any = None
        if layout is None and entry_points is None and program is not None:
            if not hasattr(program, "layout") or not hasattr(program, "binding_layout"):
                raise TypeError(f"ReflectionCursor: expected a ShaderProgram, got {program!r}")
            layout = program.layout.globals_type_layout
            entry_points = {entry.name: entry for entry in program.layout.entry_points}
        self._program = program
        self._layout = layout
        self._path = path
        self._entry_points = entry_points or {}

    def is_valid(self) -> bool:
        """False for what a `find_` method did not find."""
        return self._layout is not None

    @property
    def type_layout(self) -> Any:
        """Layout of the type here (None when invalid)."""
        return self._layout

    @property
    def type(self) -> Any:
        """Type here (None when invalid)."""
        return self._layout.type if self._layout is not None else None

    def _inner(self) -> Any:
        layout: Any = self._layout
        while layout and layout.kind.name in ("constant_buffer", "parameter_block"):
            layout = layout.element_type_layout
        return layout

    def _fields(self) -> dict[str, Any]:
        inner = self._inner()
        found = {item.name: item.type_layout for item in inner.fields} if inner is not None else {}
        for name, entry in self._entry_points.items():
            found.setdefault(name, entry.type_layout)
        return found

    def find_field(self, name: str) -> ReflectionCursor:
        """The field, or an invalid cursor."""
        return ReflectionCursor(self._program, self._fields().get(name), f"{self._path}.{name}".lstrip("."), {})

    def find_element(self, index: int) -> ReflectionCursor:
        """The element of an array, or an invalid cursor."""
        inner = self._inner()
        found = None
        if inner is not None and inner.kind.name == "array":
            count = inner.type.element_count
            found = inner.element_type_layout if count < 0 or 0 <= index < count else None
        return ReflectionCursor(self._program, found, f"{self._path}[{index}]", {})

    def find_entry_point(self, index: int) -> ReflectionCursor:
        """The parameters of an entry point, or an invalid cursor."""
        names = list(self._entry_points)
        return self.find_field(names[index] if 0 <= index < len(names) else "")

    def has_field(self, name: str) -> bool:
        """True when there is a field of this name."""
        return name in self._fields()

    def has_element(self, index: int) -> bool:
        """True when this is an array with such an element."""
        return self.find_element(index).is_valid()

    __iter__ = None  # arrays without a size have no last element

    def __getitem__(self, key: str | int) -> ReflectionCursor:
        found = self.find_field(key) if isinstance(key, str) else self.find_element(key)
        if found.is_valid():
            return found
        if isinstance(key, str):
            raise ValueError(f'Field "{key}" not found.')
        raise IndexError(f"Element {key} not found.")

    def __getattr__(self, name: str) -> ReflectionCursor:
        if name.startswith("__") or name in ("_program", "_layout", "_path", "_entry_points"):
            raise AttributeError(name)
        found = self.find_field(name)
        if not found.is_valid():
            raise absent(lambda: f'Field "{name}" not found; there are: {", ".join(self._fields()) or "none"}')
        return found

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._fields()]

    def __repr__(self) -> str:
        if not self.is_valid():
            return "ReflectionCursor(invalid)"
        type_name = self.type.full_name if self.type is not None else self._layout.name
        lines = (f"path = {self._path!r}", f"type = {type_name}", f"fields = {list(self._fields())}")
        return "ReflectionCursor(\n  " + ",\n  ".join(lines) + "\n)"
