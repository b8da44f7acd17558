"""Host functions: `[TorchEntryPoint]` functions, which run on the host, make tensors and launch kernels.

Slang has one target that contains them, C++ text for torch's headers. That text is translated to Python once, and the
Python is what is kept; no C++ compiler is needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from slangpy.base.optional import torch_for
from slangpy.errors import CompileError, TensorError
from slangpy.pytorch.raw.convert import Packing, fields_of, to_number
from slangpy.pytorch.raw.entry_points.runtime import NAMES, ArrayCall, HostCall, f16, f32
from slangpy.pytorch.raw.entry_points.translate import own_name, translate
from slangpy.pytorch.raw.place import default_device
from slangpy.pytorch.raw.tensors import summary, torch_module
from slangpy.pytorch.raw.types import KernelType, TypeReader, short

__all__ = ["HostFunction", "compile_host_functions", "host_functions"]

Plain = tuple[Any, ...]


def compile_host_functions(text: str, find: Callable[[str], Any], reader: TypeReader) -> tuple[str, tuple[Plain, ...]]:
    """Python source of the functions in the compiler's text, and for each its name, parameters, result, place and what
    could not be translated."""
    source, exports, failed = translate(text)
    functions = []
    for name, symbol in exports.items():
        if name.startswith("__"):  # what Slang tells of a struct with [PyExport]
            continue
        reflected, place = find(name)
        why = failed.get(symbol, "")
        parameters: tuple[Any, ...] = ()
        returns: Any = None
        if reflected is None or reflected.is_overloaded:
            why = why or "it is overloaded; give it a name of its own"
        else:
            parameters = tuple((p.name, reader.read(p.type).to_plain()) for p in reflected.parameters)
            if reflected.return_type is not None and reflected.return_type.full_name != "void":
                returns = reader.read(reflected.return_type).to_plain()
        functions.append((name, symbol, parameters, returns, place, why))
    for symbol, why in failed.items():  # who calls it must learn of it
        source += f"def {own_name(symbol)}(rt, *_):\n    raise rt.untranslated({symbol!r}, {why!r})\n"
    return source, tuple(functions)


def host_functions(
    host: tuple[str, tuple[Plain, ...]], kernels: Callable[[str], Any], options: Any
) -> dict[str, HostFunction]:
    source, functions = host
    if not functions:
        return {}
    names = dict(NAMES)
    exec(compile(source, "<host functions>", "exec"), names)  # our own translation, of our own cache
    return {plain[0]: HostFunction(plain, names.get(own_name(plain[1])), kernels, options) for plain in functions}


class _Untranslated:
    _label: str

    def untranslated(self, name: str, why: str) -> CompileError:
        return CompileError(
            f"{self._label}: the host function '{name}' cannot run: {why} is not supported in host functions"
        )


class _Call(_Untranslated, HostCall):
    pass


class _ArrayCall(_Untranslated, ArrayCall):
    pass


class HostFunction:
    """A Slang function that runs on the host."""

    def __init__(
        self, plain: Plain, body: Callable[..., Any] | None, kernels: Callable[[str], Any], options: Any
    ) -> None:
        self.__name__, _, parameters, returns, (file, line), self._why = plain
        self._parameters = [(name, KernelType.from_plain(type_)) for name, type_ in parameters]
        self._returns = None if returns is None else KernelType.from_plain(returns)
        self._body = body
        self._kernels = kernels
        self._options = options  # of the file that it is in
        listed = ", ".join(f"{name}: {short(type_.name)}" for name, type_ in self._parameters)
        result = "void" if self._returns is None else short(self._returns.name)
        self.__doc__ = f"{self.__name__}({listed}) -> {result}" + (f"\n\n{file}:{line}" if file else "")

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name, _ in self._parameters])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._why or self._body is None:
            raise CompileError(f"{self.__name__}: the host function cannot run: {self._why}")
        values = self._match(args, kwargs)
        packing = Packing(self.__name__, "", lambda device, fresh: (0, None))
        tensors: list[Any] = []
        given = [
            _to_host(type_, value, packing, name, tensors)
            for (name, type_), value in zip(self._parameters, values, strict=True)
        ]
        torch = torch_module()
        if torch is None and (tensors or default_device()[0] == "cpu"):
            call = _ArrayCall(self.__name__, self._kernels, None, None)
        else:
            torch = torch or torch_for("calling a host function")
            call = _Call(self.__name__, self._kernels, torch, _device(torch, tensors, self.__name__))
        result = self._body(call, *given)
        return None if self._returns is None else _from_host(self._returns, result)

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        names = [name for name, _ in self._parameters]
        listed = ", ".join(names) or "none"
        if len(args) > len(names):
            raise ValueError(f"{self.__name__}: takes {len(names)} arguments ({listed}), got {len(args)}")
        values = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise ValueError(f"{self.__name__}: no parameter '{name}'; its parameters are {listed}")
            if name in values:
                raise ValueError(f"{self.__name__}: '{name}' is given twice")
            values[name] = value
        for name in names:
            if name not in values:
                raise ValueError(f"{self.__name__}: '{name}' is missing; its parameters are {listed}")
        return [values[name] for name in names]

    def __copy__(self) -> HostFunction:
        return self

    def __deepcopy__(self, memo: Any) -> HostFunction:
        return self

    def __repr__(self) -> str:
        return f"<host function {(self.__doc__ or '').splitlines()[0]}>"


def _device(torch: Any, tensors: list[Any], label: str) -> Any:
    if not tensors:
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    first = tensors[0].device
    for tensor in tensors:
        if tensor.device != first:
            raise TensorError(
                f"{label}: the tensors lie on different devices: {summary(tensors[0])} and {summary(tensor)}"
            )
    return first


def _to_host(type_: KernelType, value: Any, call: Packing, path: str, tensors: list[Any]) -> Any:
    """A Python value as translated functions take it: nested tuples."""
    kind = type_.kind
    if kind == "tensor":
        tensor = _tensor(value, call.where(path))
        tensors.append(tensor)
        return tensor
    if kind in ("scalar", "enum"):
        return _rounded(type_.scalar, to_number(type_.scalar, value, call, path))
    if kind == "vector":
        items = _items(type_, value, type_.count, call, path)
        return tuple(
            _rounded(type_.scalar, to_number(type_.scalar, v, call, f"{path}[{i}]")) for i, v in enumerate(items)
        )
    if kind == "matrix":
        row = KernelType("vector", type_.name, scalar=type_.scalar, count=type_.columns)
        rows = _items(type_, value, type_.count, call, path)
        return tuple(_to_host(row, v, call, f"{path}[{i}]", tensors) for i, v in enumerate(rows))
    if kind == "array":
        element = type_.element
        assert element is not None
        items = _items(type_, value, type_.count, call, path, ValueError)
        return tuple(_to_host(element, v, call, f"{path}[{i}]", tensors) for i, v in enumerate(items))
    if kind in ("struct", "empty"):
        listed = tuple(value) if isinstance(value, list) else value
        items = fields_of(type_, listed, call.where(path))
        return tuple(
            _to_host(inner, item, call, f"{path}.{name}", tensors)
            for (name, inner, _), item in zip(type_.fields, items, strict=True)
        )
    raise TypeError(f"{call.where(path)}: host functions cannot take a {type_.name}")


def _items(
    type_: KernelType, value: Any, count: int, call: Packing, path: str, error: type[Exception] = TypeError
) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (tuple, list)) or len(value) != count:
        raise error(
            f"{call.where(path)}: expected a tuple or list of {count} for {type_.name}, got {summary(value)}"
        )
    return list(value)


def _tensor(value: Any, where: str) -> Any:
    torch = torch_module()
    if torch is not None and isinstance(value, torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return value if torch is None else torch.from_numpy(value)
    if not any(hasattr(value, name) for name in ("to_torch", "__dlpack__")):
        raise TensorError(f"{where}: expected a tensor, got {summary(value)}")
    if torch is None and not hasattr(value, "to_torch") and value.__dlpack_device__()[0] == 1:
        return np.from_dlpack(value)
    torch = torch or torch_for("calling a host function")
    if hasattr(value, "to_torch"):
        return value.to_torch()
    return torch.from_dlpack(value)


def _rounded(scalar: str, number: Any) -> Any:
    return f32(number) if scalar == "float" else f16(number) if scalar == "half" else number


def _from_host(type_: KernelType, value: Any) -> Any:
    """Aggregates as nested tuples. The compiler repeats the rows of matrices."""
    if type_.kind == "matrix":
        return tuple(tuple(row[0]) if isinstance(row[0], (tuple, list)) else tuple(row) for row in value)
    if type_.kind == "array":
        return tuple(_from_host(type_.element, item) for item in value)  # type: ignore[arg-type]
    if type_.kind in ("struct", "tuple"):
        return tuple(_from_host(inner, item) for (_, inner, _), item in zip(type_.fields, value, strict=True))
    return tuple(value) if isinstance(value, (list, tuple)) else value
