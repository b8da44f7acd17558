"""A file of kernels through the Slang compiler: its CUDA text, and its declarations as plain data.

A `ModuleRecord` is all that later steps know of a file: it is stored on disk, so that the next process needs no compiler.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slangpy.base import libslang
from slangpy.base.folders import LIBRARY
from slangpy.compiler.cache import digest
from slangpy.compiler.session import create_kernel_session
from slangpy.errors import CompileError
from slangpy.pytorch.raw.access import KernelText, ViewAccess
from slangpy.pytorch.raw.constants import constant
from slangpy.pytorch.raw.declarations import COMMENT, Declarations
from slangpy.pytorch.raw.entry_points import compile_host_functions
from slangpy.pytorch.raw.headers import included_files
from slangpy.pytorch.raw.options import LoadOptions
from slangpy.pytorch.raw.scan import EmittedKernel, find_kernels, functions, trouble
from slangpy.pytorch.raw.types import KernelType, TypeReader, short, widened


@dataclass(frozen=True)
class Parameter:
    name: str
    type: KernelType
    offset: int
    default: Any = None  # a number, where the declaration gives one

    @property
    def needed(self) -> bool:
        return self.default is None and self.type.kind != "empty"


@dataclass(frozen=True)
class KernelRecord:
    """A kernel with its derivatives. `emitted`: "", "fwd" or "bwd" -> its `__global__` function."""

    name: str
    parameters: tuple[Parameter, ...]
    size: int  # bytes of the parameters
    bound: bool  # [AutoPyBindCUDA]
    differentiable: bool
    place: tuple[str, int]
    trouble: str  # why it cannot be called
    emitted: tuple[EmittedKernel, ...]
    views: tuple[tuple[str, ViewAccess], ...] = ()  # by path, those of which something is known

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Offset and size of the parameters that the emitted functions have."""
        return tuple((p.offset, p.type.size) for p in self.parameters if p.type.kind != "empty")

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(f'{p.name}: {short(p.type.name)}' for p in self.parameters)})"


def wide_record(record: KernelRecord) -> KernelRecord:
    """The kernel with views whose strides have 64 bits."""
    parameters, at = [], 0
    for p in record.parameters:
        type_ = widened(p.type)
        if type_.kind != "empty":
            at = -(-at // type_.align) * type_.align
        parameters.append(replace(p, type=type_, offset=at))
        at += type_.size
    return replace(record, parameters=tuple(parameters), size=at)


@dataclass(frozen=True)
class ModuleRecord:
    program: str  # CUDA text without Slang's own library
    kernels: tuple[KernelRecord, ...]
    host: tuple[str, tuple[Any, ...]]  # Python source of the host functions, and what is known of them
    names: tuple[tuple[str, str], ...]  # type -> the name that [PyExport] gives it
    warnings: tuple[str, ...]
    slang_version: str
    headers: str = ""  # digest of the headers that the program includes


_UNSIGNED = re.compile(r"\bTorchTensor\s*<\s*uint(?!8)\w*\s*>")
"""Element types at which Slang's host target stops."""
_OUR_METHOD = re.compile(r"\.\s*(?:dim|fillZero|fillValue)\s*\(")
"""Methods of slangpy_kernels.slang."""


def compile_program(options: LoadOptions, log: Callable[[str], None]) -> tuple[ModuleRecord, Any]:
    """The record of a file, and the session that read it."""
    start = time.perf_counter()
    session, module, text, linked = _emitted(options)
    emitted = time.perf_counter()
    prelude = libslang.prelude("cuda")
    begin = text.find(prelude)
    text = text[:begin] + text[begin + len(prelude) :] if begin >= 0 else text
    log(
        f"Slang {libslang.version()}, front end {(linked - start) * 1e3:.0f} ms, emit {(emitted - linked) * 1e3:.0f} ms "
        f"({len(text) / 1000:.0f} kB)"
    )
    sources = _sources(session, options)
    warned = session.take_warnings()
    declarations = Declarations(session, module, sources)
    find = declarations.find
    reader = TypeReader(module.layout.find_type_by_name, declarations.enum_cases)
    shaders = {entry.name for entry in module.entry_points}
    files = KernelText(sources.values(), [word for define in options.defines for word in re.findall(r"\w+", " ".join(define))])
    kernels = tuple(_with_access(kernel, files) for kernel in _kernels(text, declarations, reader, shaders))
    dropped = _dropped(options.path, sources, declarations.generic - {kernel.name for kernel in kernels})
    host: tuple[str, tuple[Any, ...]] = ("", ())
    if any("TorchEntryPoint" in source for source in sources.values()):
        host = compile_host_functions(_binding_text(options, sources.values()), find, reader)
    names = tuple(exported_names(sources.values()).items())
    notes = (*warned, *dropped)
    headers = digest(*(Path(path).read_bytes() for path in included_files(text, options.search_paths)))
    return ModuleRecord(text, kernels, host, names, notes, libslang.version(), headers), session


_HELPERS = {"CudaHost": "TorchEntryPoint", "CUDAHost": "TorchEntryPoint"}
"""Slang 2026.12 puts helpers of host functions into the CUDA text, and stops at what they take; entry points stay out."""


def _emitted(options: LoadOptions, helpers: bool = False) -> tuple[Any, Any, str, float]:
    """The session, the module and its CUDA text; the time in between."""
    defines = {**dict(options.defines), **(_HELPERS if helpers else {})}
    session = create_kernel_session(
        options.search_paths, defines, options.line_info, options.slang_flags, options.float_mode
    )
    module = _load(session, options)
    program = session.link([module], [])
    linked = time.perf_counter()
    try:
        return session, module, program.whole_code().decode("utf-8"), linked
    except CompileError:
        sources = "".join(_sources(session, options).values())
        if helpers or not any(name in sources for name in _HELPERS):
            raise
    return _emitted(options, True)


def _load(session: Any, options: LoadOptions) -> Any:
    """The file as a module."""
    named = _with_methods(options)
    return session.load_module_from_source(Path(options.path).stem, named, options.path) if named else session.load_module(options.path)


def _with_methods(options: LoadOptions) -> str:
    """The file's text with our methods of TensorView, where it names one; else nothing."""
    text = Path(options.path).read_text("utf-8-sig", "replace")  # a mark of byte order is none after a line of ours
    is_other = "\ufffd" in text  # perhaps no UTF-8, which the compiler's own reading of the file refuses
    if not _OUR_METHOD.search(text) or "import slangpy_kernels" in text or is_other:
        return ""
    return f"import slangpy_kernels;\n#line 1\n{text}"


def _binding_text(options: LoadOptions, sources: Iterable[str]) -> str:
    """The compiler's text of the host functions. The attribute for Python kernels makes this target crash, and so does
    [shader]: both are replaced by harmless ones."""
    arguments = ["-DAutoPyBindCUDA=CudaKernel"]
    if any("[shader(" in source for source in sources):
        arguments.append("-Dshader=deprecated")
    arguments += [f"-D{name}={value}" for name, value in options.defines]
    for path in (*options.search_paths, LIBRARY):
        arguments += ["-I", path]
    try:
        return libslang.torch_binding_text(options.path, [*arguments, *options.slang_flags], _with_methods(options))
    except CompileError as error:
        found = next(filter(None, map(_UNSIGNED.search, sources)), None)
        if found is None or "internal error" not in str(error):
            raise
        raise CompileError(f"{error}\nSlang's host target has no {found.group()}; use TorchTensor<int>") from None


def _sources(session: Any, options: LoadOptions) -> dict[str, str]:
    """The texts of the user's files."""
    texts = {}
    for path in {options.path, *session.read_files}:
        if not path.startswith(LIBRARY) and not path.endswith(".slang-module"):
            texts[path] = Path(path).read_text("utf-8", "replace")
    return texts


def _kernels(
    text: str, declarations: Declarations, reader: TypeReader, shaders: set[str]
) -> tuple[KernelRecord, ...]:
    emitted: dict[str, list[EmittedKernel]] = {}
    for kernel in find_kernels(text):
        emitted.setdefault(kernel.name, []).append(kernel)
    # A user's kernel may be called as the derivative of another would be.
    for name in [n for n in emitted if n not in shaders and all(k.derivative for k in emitted[n])]:
        for kernel in emitted.pop(name):
            own = f"{name}_{kernel.derivative}_diff"
            emitted.setdefault(own, []).append(EmittedKernel(own, kernel.symbol, "", kernel.bound, kernel.parameters))
    records = []
    for name, parts in emitted.items():
        if name not in shaders:
            records.append(_kernel(text, name, parts, declarations, reader))
            records += _hidden(name, parts, declarations.find)
    return tuple(records)


def _with_access(kernel: KernelRecord, files: KernelText) -> KernelRecord:
    known = files.access(kernel.name, [p.type for p in kernel.parameters])
    names = [p.name for p in kernel.parameters]
    views = ((f"{names[index]}.{path}" if path else names[index], access) for (index, path), access in known)
    return replace(kernel, views=tuple(views))


def _hidden(name: str, parts: list[EmittedKernel], find: Callable[[str], Any]) -> list[KernelRecord]:
    """Kernels that a user has given the names of the derivatives of another."""
    found = []
    for derivative in ("fwd", "bwd"):
        own = f"{name}_{derivative}_diff"
        if [part.derivative for part in parts].count(derivative) > 1 and find(own)[0] is not None:
            why = f"the derivative of '{name}' has this name, too; rename one"
            found.append(KernelRecord(own, (), 0, True, False, find(own)[1], why, ()))
    return found


def _kernel(
    text: str, name: str, parts: list[EmittedKernel], declarations: Declarations, reader: TypeReader
) -> KernelRecord:
    reflected, place = declarations.find(name)
    why = ""
    parameters: list[Parameter] = []
    size = 0
    if len({part.derivative for part in parts}) < len(parts):
        why = "two kernels have this name; rename one"
    elif reflected is None or reflected.is_overloaded:
        why = "reflection does not tell its parameters: it is overloaded, or hidden; give it a name of its own"
    else:
        parameters, size, why = _parameters(reflected, reader, declarations.defaults(name))
        main = next((part for part in parts if not part.derivative), parts[0])
        why = why or next((found for part in parts if (found := trouble(text, part))), "")
        count = sum(p.type.kind != "empty" for p in parameters)
        if not why and any(len(part.parameters) != count for part in parts):
            why = (
                f"the compiler's text has {len(main.parameters)} parameters, its reflection {count}: please report this"
            )
    derivatives = {part.derivative for part in parts}
    bound = any(part.bound for part in parts)
    return KernelRecord(name, tuple(parameters), size, bound, "bwd" in derivatives, place, why, tuple(parts))


def _parameters(
    function: Any, reader: TypeReader, texts: dict[str, str]
) -> tuple[list[Parameter], int, str]:
    at, why = 0, ""
    parameters: list[Parameter] = []
    for p in function.parameters:
        type_ = reader.read(p.type)
        if type_.kind in ("unsupported", "tensor"):
            why = why or f"its parameter '{p.name}' is a {type_.name}: {type_.note or 'pass a TensorView'}"
        if p.has_modifier(libslang.ModifierID.out) or p.has_modifier(libslang.ModifierID.inout):
            why = why or f"its parameter '{p.name}' is out or inout; pass a TensorView"
        if type_.kind != "empty":
            at = -(-at // type_.align) * type_.align
        default = _default(p, type_, texts.get(p.name, "")) if p.has_default else None
        parameters.append(Parameter(p.name, type_, at, default))
        at += type_.size
    return parameters, at, why


def _default(parameter: Any, type_: KernelType, text: str) -> Any:
    """The number that a declaration gives: reflection has literals, of the wrong type where one is converted."""
    if type_.kind not in ("scalar", "enum"):
        return None
    whole, real = parameter.default_int, parameter.default_float
    is_float = type_.scalar in ("half", "float", "double", "BFloat16")
    value = real if is_float and real is not None else whole
    if value is None or (is_float and real is None):
        names = {f"{type_.short_name}.{case}": number for case, number in type_.cases}
        told = constant(text, names)
        value = value if told is None else told
    if value is None or is_float:
        return value if value is None else float(value)
    return bool(value) if type_.scalar == "bool" else int(value)


_BOUND = re.compile(r"\[\s*AutoPyBindCUDA\s*\](?:\s*\[[^\]]*\])*\s*(?:\w+\s+)*?void\s+(\w+)\s*[(<]")
_EXPORT = re.compile(r'\[\s*PyExport\s*\(\s*"(\w+)"\s*\)\s*\](?:\s*\[[^\]]*\])*\s*(?:public\s+)?struct\s+(\w+)')


def _dropped(main: str, sources: dict[str, str], generic: set[str]) -> tuple[str, ...]:
    """Generic kernels that are marked for Python: the compiler leaves them out without a word."""
    notes = []
    for path, text in sources.items():
        where = "" if path == main else f"{path}: "
        for name in _BOUND.findall(COMMENT.sub("", text)):
            if name in generic:
                notes.append(
                    f"{where}the kernel '{name}' is marked [AutoPyBindCUDA], but generic, so that the compiler left it out; "
                    "write a kernel for each type that is needed"
                )
    return tuple(notes)


def exported_names(texts: Any) -> dict[str, str]:
    """Struct -> the name that [PyExport("...")] gives it."""
    return {struct: name for text in texts for name, struct in _EXPORT.findall(COMMENT.sub("", text))}


def line_count(record: ModuleRecord) -> int:
    return record.program.count("\n")


__all__ = ["KernelRecord", "ModuleRecord", "Parameter", "compile_program", "functions", "line_count", "wide_record"]
