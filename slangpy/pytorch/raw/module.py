"""What loadModule returns: kernels, host functions and types of a file as attributes."""

from __future__ import annotations

import collections
import difflib
import enum
import re
from typing import Any

from slangpy.base.absent import absent
from slangpy.pytorch.raw.devices import Programs
from slangpy.pytorch.raw.entry_points import HostFunction, host_functions
from slangpy.pytorch.raw.kernel import Kernel
from slangpy.pytorch.raw.place import default_device
from slangpy.pytorch.raw.program import ModuleRecord
from slangpy.pytorch.raw.types import KernelType, field_names, reached, short

_CORE = ("TensorView", "DiffTensorView", "AtomicAdd", "Optional", "Tuple")


class KernelModule:
    """The kernels of a Slang file. Stays valid when the file changes; `loadModule` again gives the new code."""

    def __init__(self, path: str, record: ModuleRecord, programs: Programs) -> None:
        self.__file__ = path
        self.__slang_version__ = record.slang_version
        self._programs = programs
        self._items: dict[str, Any] = {}
        self._unclear: dict[str, list[str]] = {}
        self._items["DiffTensorView"] = collections.namedtuple("DiffTensorView", ("value", "grad"), defaults=(None,))
        self._add_types([p.type for kernel in record.kernels for p in kernel.parameters], dict(record.names))
        for kernel in record.kernels:
            self._items[kernel.name] = Kernel(kernel, programs)
        self._items.update(host_functions(record.host, self._items.__getitem__, programs.options))
        # found without __getattr__, which takes as long as a launch; a kernel may be called `compile`
        own = {*self.__dict__, *(name for name in dir(type(self)) if name.startswith("_"))}
        self.__dict__.update({name: item for name, item in self._items.items() if name not in own})

    def _add_types(self, types: list[KernelType], names: dict[str, str]) -> None:
        groups: dict[str, list[KernelType]] = {}
        for type_ in reached(types, ("struct", "enum", "empty")).values():
            if type_.short_name not in _CORE:
                groups.setdefault(names.get(type_.short_name, type_.short_name), []).append(type_)
        for name, group in groups.items():
            if len(group) == 1:
                self._items[name] = _python_type(name, group[0])
                continue
            own = _apart(name, group)
            for specialised, type_ in zip(own, group, strict=True):
                self._items[specialised] = _python_type(specialised, type_)
            self._unclear[name] = own

    def compile(self, device: Any = None) -> None:
        """Compiles every kernel now, for a torch device, its name, or the default one."""
        key = default_device() if device is None else _device_key(device)
        for item in self._items.values():
            if isinstance(item, Kernel) and not item._record.trouble:
                for emitted in item._record.emitted:
                    self._programs.kernel(key, item._record, emitted.derivative)

    def __copy__(self) -> KernelModule:
        return self

    def __deepcopy__(self, memo: Any) -> KernelModule:
        return self  # so that a model which holds it can be copied

    def __getattr__(self, name: str) -> Any:
        items = self.__dict__.get("_items", {})
        if name in items:
            return items[name]
        unclear = self.__dict__.get("_unclear", {}).get(name)
        if unclear:
            raise AttributeError(f"'{name}' is the name of several types of this file; use one of: {', '.join(unclear)}")
        if name.startswith("__"):
            raise AttributeError(name)
        raise absent(lambda: self._missing(name))

    def _missing(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._items, 1)
        hint = f"; did you mean '{near[0]}'? There are: " if near else "; there are: "
        return f"{self.__file__} has no '{name}'{hint}{', '.join(sorted(self._items))}"

    def __dir__(self) -> list[str]:
        return sorted(self._items)

    def __repr__(self) -> str:
        rows = []
        for name in sorted(self._items):
            item = self._items[name]
            if isinstance(item, Kernel):
                rows.append((name, "kernel", item._record.signature))
            elif isinstance(item, HostFunction):
                rows.append((name, "host function", (item.__doc__ or "").split("\n")[0]))
            else:
                fields = item._fields if hasattr(item, "_fields") else [case.name for case in item]
                rows.append((name, "type", ", ".join(fields)))
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        lines = [f"  {name:{widths[0]}}  {kind:{widths[1]}}  {text}" for name, kind, text in rows]
        return f"{self.__file__}\n" + "\n".join(lines)


def _device_key(device: Any) -> tuple[str, int]:
    text = str(device)
    kind, _, index = text.partition(":")
    if kind not in ("cpu", "cuda"):
        raise ValueError(
            f"compile: 'device' must be a CUDA or CPU device of torch, got {device!r}; for others use slangpy.Module"
        )
    return (kind, 0) if kind == "cpu" else (kind, int(index) if index else default_device()[1])


def _apart(name: str, group: list[KernelType]) -> list[str]:
    """Names for types that are called the same: with their generic arguments, and where those do not tell them apart, with
    the namespaces that they are in."""
    names = [_specialised(name, type_) for type_ in group]
    if len(set(names)) == len(names):
        return names
    return ["_".join(part for part in re.split(r"\W+", type_.name) if part) for type_ in group]


def _specialised(name: str, type_: KernelType) -> str:
    arguments = type_.name.partition("<")[2].rstrip(">")
    parts = "".join(c if c.isalnum() else "_" for c in arguments).split("_")
    return "_".join([name, *(part for part in parts if part)])


def _member_name(case: str) -> str:
    """Python keeps `mro` and names between underscores for itself."""
    return case + "_" if case == "mro" or (case.startswith("_") and case.endswith("_")) else case


def _python_type(name: str, type_: KernelType) -> Any:
    if type_.kind == "enum":
        return enum.IntEnum(name, [(_member_name(case), value) for case, value in type_.cases])
    made = collections.namedtuple(name, field_names(field for field, _, _ in type_.fields))  # type: ignore[misc]
    made.__doc__ = f"{name}({', '.join(f'{field}: {short(inner.name)}' for field, inner, _ in type_.fields)})"
    return made
