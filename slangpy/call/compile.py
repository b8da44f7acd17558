"""From generated Slang to a kernel of the device, through the caches."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import module_inputs
from ..cache import cache_of, digest
from ..compiler import target_code
from ..config import config
from ..errors import CompilerDiedError, KernelGenException, ResolveException, SlangCompileError
from ..module_files import load_texts
from ..package_files import library_hash as library_hash, planner_hash as planner_hash
from ..prelude import check_resources, prelude_key, with_prelude
from .globals_used import used_slots
from .text import import_statement

_LIBRARY = Path(__file__).resolve().parent.parent / "slang"
_lock = threading.RLock()

_INTERNAL = re.compile(
    r"internal (?:compiler )?error|E99999|assert(?:ion)? fail|unimplemented|unexpected exception", re.I
)
"""What Slang says when the fault is its own."""

builds = 0
"""Kernels built by a compiler in this process (cache hits do not count)."""


@dataclass
class BuiltKernel:
    """A kernel with the layout of its arguments; one for all plans with equal source."""

    source: str
    kernel: Any
    layout: Any
    code_key: str
    used_globals: tuple[int, ...] = ()
    """Slots of the global resources that the kernel reads or writes."""
    inputs: dict[str, Any] | None = None
    """What its source asks for beyond the module it belongs to (a prelude may): a record of `module_inputs`."""


def device_key(device: Any) -> str:
    """What of a device decides generated code: target, compiler, driver."""
    known = device.__dict__.get("_state_code_key")
    if known is None:
        target = device.compile_target
        known = digest(
            target.format, target.profile, repr(sorted(target.capabilities)), repr(sorted(dict(target.defines).items())),
            device.compiler_fingerprint, prelude_key(target.format), repr(sorted(target_options(device).items())),
            options_key(device),
        )  # fmt: skip
        device.__dict__["_state_code_key"] = known
    return known


def options_key(device: Any) -> str:
    """What else a compiler session is told, and what Slang reads from the environment; without the include path."""
    from ..session import SlangCompilerOptions

    options = SlangCompilerOptions.of(getattr(device.__dict__.get("_state_desc"), "compiler_options", None))
    values = {**vars(options), "include_paths": None, "defines": sorted(dict(options.defines).items())}
    environment = sorted(item for item in os.environ.items() if item[0].startswith("SLANG_"))
    return digest(repr(sorted(values.items())), repr(environment))


def target_options(device: Any) -> dict[str, Any]:
    """What the compiler behind Slang is told, after the device's `compiler_options`. Sums and products are rounded one by
    one (the same bits on all devices) unless these ask for fast arithmetic."""
    from ..session import SlangCompilerOptions, SlangFloatingPointMode

    options = SlangCompilerOptions.of(getattr(device.__dict__.get("_state_desc"), "compiler_options", None))
    mode = options.floating_point_mode
    return {
        "float_mode": "uncontracted" if mode == SlangFloatingPointMode.default else mode.name,
        "optimization": int(options.optimization),
        "debug_info": int(options.debug_info) != 0,
        "downstream_args": list(options.downstream_args),
    }


def _library_key() -> str:
    from .. import _slang

    return digest(library_hash(), str(_slang.version()))


def library_blob(device: Any) -> bytes | None:
    """Our library precompiled: as shipped, or as the cache has it; None where it is not compiled yet."""
    key = _library_key()
    shipped = _LIBRARY / "slangpy.slang-module.bin"
    if shipped.exists():
        data = shipped.read_bytes()
        if data[:64].decode("ascii", "replace") == key:
            return data[64:]
    return cache_of(device, "module_cache").read_bytes("library", key)


def load_library(session: Any) -> None:
    """Makes `import slangpy;` cheap: the library is loaded precompiled, compiled once per machine where it is not."""
    if getattr(session, "_library_loaded", False):
        return
    blob = library_blob(session.device)
    if blob is not None:
        session.load_module_from_blob("slangpy", str(_LIBRARY / "slangpy.slang"), blob)
    else:
        module = session.load_module("slangpy")
        cache_of(session.device, "module_cache").write_bytes("library", _library_key(), module.serialize())
    session._library_loaded = True


def build(program: Any, name: str, source: str, conformances: Any = (), link: Any = None) -> BuiltKernel:
    """Compiles the generated module `source` against the modules of `program` (a module.LoadedModule).

    link: what makes target code and its layout of the source, if not the session of `program` does.
    Raises KernelGenException when Slang rejects generated code, SlangCompileError for the user's own code.
    """
    global builds
    with _lock:
        known = program.kernels.get((source, conformances))
        if known is not None:
            return known
        _show(name, source)
        session, device = program.session, program.device
        load_library(session)
        inputs = GeneratedInputs(program, source)
        text, layout = (link or _link)(program, name, source, conformances)
        code_key = digest(text, device_key(device), layout.serialize())
        cache = cache_of(device)
        code = cache.read_bytes("kernel", code_key)
        if code is None:
            builds += 1
            code = _target_compile(device, text, layout, name)
            cache.write_bytes("kernel", code_key, code)
        kernel = device.create_kernel(code, layout, name)
        used = used_slots(text, device.compile_target.format, layout)
        built = program.kernels[(source, conformances)] = BuiltKernel(
            source, kernel, layout, code_key, used, inputs.record()
        )
        return built


class GeneratedInputs:
    """Watches what the compiler looks for while it makes a generated module."""

    def __init__(self, program: Any, source: str) -> None:
        self.program = program
        known = {"slangpy", *program.import_names}
        words = module_inputs.imports_of(source)
        self.text = "\n".join(f"import {word};" for word in words if word.strip('"<>') not in known)
        if self.text:
            load_texts(program.device, program.session, "", self.text)
        self.since = program.session.lookups(0)[0]

    def record(self) -> dict[str, Any] | None:
        """After the compilation; None where nothing was asked for but the module."""
        session, device = self.program.session, self.program.device
        if not self.text and not module_inputs.users(session.lookups(self.since)[1]):
            return None
        scan = module_inputs.Scan(device, [(os.getcwd(), self.text)])
        files = [path for path in session.read_files if path in scan.found]
        record = module_inputs.collect(device, session, self.since, scan, files, "", self.text)
        given = session.__dict__.get("_sources", {})
        used = module_inputs.texts_used(device, "", self.text)
        behind = any(given.get(name) != text for name, text in used.items())
        return {**record, "text": self.text, "behind": behind}


def from_cache(
    program: Any, name: str, source: str, layout: Any, code_key: str, inputs: dict[str, Any] | None = None
) -> BuiltKernel | None:  # fmt: skip
    """The kernel of a plan found on disk; None when its binary is gone, or an input of it is another now."""
    with _lock:
        if inputs is not None and not module_inputs.still_holds(program.device, inputs, "", inputs["text"]):
            return None
        known = program.kernels.get((source, ()))
        if known is not None:
            return known
        code = cache_of(program.device).read_bytes("kernel", code_key)
        if code is None:
            return None
        kernel = program.device.create_kernel(code, layout, name)
        built = program.kernels[(source, ())] = BuiltKernel(source, kernel, layout, code_key, (), inputs)
        return built


def load_generated(program: Any, name: str, source: str) -> Any:
    """The generated module. Where it names types that the user's module imports without `__exported`, it imports them
    too; not before, because functions that the user's module does not see as its own would join its overloads."""
    try:
        return program.session.load_module_from_source(name, source, f"{name}.slang")
    except SlangCompileError as error:
        known = set(program.import_names)
        hidden = [
            other
            for module in program.modules
            for other in module.imports
            if other not in known and not (_LIBRARY / f"{other}.slang").exists()
        ]
        if not hidden or "undefined identifier" not in str(error):
            raise
        source = "\n".join(import_statement(other) for other in dict.fromkeys(hidden)) + "\n" + source
        return program.session.load_module_from_source(f"{name}_i", source, f"{name}_i.slang")


def _link(program: Any, name: str, source: str, conformances: Any) -> tuple[bytes, Any]:
    session = program.session
    module_name = generated_name(name, source, conformances)
    begin = time.perf_counter()
    try:
        module = load_generated(program, module_name, source)
        modules = [module, *program.modules]
        linked = session.link(modules, [module.entry_point("_spy_main")], list(conformances) or None)
        middle = time.perf_counter()
        code = with_bounds(program.device, source, target_code(program.device, linked, 0, name, source))
        if getattr(program.device.__dict__.get("_state_desc"), "enable_compilation_reports", False):
            from ..device_reports import _report_step

            _report_step(program.device, "front_end", name, middle - begin, len(source))
            _report_step(program.device, "code_generation", name, time.perf_counter() - middle, len(code), digest(code))
        from .. import printing  # needs NumPy, which a build of the package may lack

        printing.remember(program.device, linked)
        return code, linked.binding_layout(0)
    except CompilerDiedError:
        raise
    except SlangCompileError as error:
        raise _refusal(program, name, source, str(error)) from None
    except RuntimeError as error:  # an operation that the device lacks
        raise RuntimeError(f"{name}: {error}") from None


def generated_name(name: str, source: str, conformances: Any) -> str:
    """What the compiler knows a generated module by."""
    return "_spy_" + digest(source, name, repr(conformances))[:24]


def with_bounds(device: Any, source: str, code: bytes) -> bytes:
    """Target code with the checks of what backward derivatives index on the CPU."""
    backward = "bwd_diff(" in source or b"s_bwdProp" in code  # ours, or the user's own
    if backward and device.compile_target.format == "cpp":
        return (_LIBRARY / "bounds_cpp.h").read_bytes() + b"\n" + code
    return code


def _refusal(program: Any, name: str, source: str, text: str) -> Exception:
    """What to say of a generated kernel that the compiler refuses."""
    hidden = re.search(r"'([^']+)' is not accessible", text)
    if hidden:
        return ResolveException(
            f"{name}: '{hidden.group(1)}' is not public: a module that marks anything `public`, or has parts "
            "(`implementing`), lets only what is public be called; write `public` before its declaration"
        )
    if "no type conformances found" in text:
        return RuntimeError(
            f"{name}: no type conformances found for an interface; name the types with .type_conformances([...])\n"
            + text
        )
    shared = [word for word in re.findall(r"ambiguous reference to '(\w+)'", text) if word in program.declared_names]
    if not shared and any(t in text for t in ("expected a type", "generic argument", "member not found")):
        # a generic type of the user's own that is called like one of the library
        named = set(re.findall(r"\b(I?\w*Tensor(?:View)?)<", source))
        shared = sorted(n for n in named if {n, n[0].lower() + n[1:]} & program.declared_names)
    if shared:
        return ResolveException(
            f"{name}: '{shared[0]}' is declared by the module and by slangpy's own library; give it another name or put "
            f"it into a namespace\n{text}"
        )
    path = _dump_failed(name, source)
    if re.search(r"_diff\(", source) and _INTERNAL.search(text):
        return KernelGenException(
            f"{name}: Slang failed inside while it made the derivative of this function; known to cause that are `return` "
            "inside loops (set a variable and break), `while` and `do` loops that come out of macros (write for (; c; )), and "
            "no_diff values in vector constructors under .fwds (write detach(value) there); docs/gradients.md has "
            f"the list. The kernel is in {path}. Slang said:\n{text}"
        )
    return KernelGenException(f"{name}: Slang rejected the kernel generated for this call ({path}):\n{text}")


def _target_compile(device: Any, text: bytes, layout: Any, name: str) -> bytes:
    check_resources(device, layout, text, name)
    text = with_prelude(text, device.compile_target.format)
    if config.dump_slang_intermediates:
        _dump(f"{name}.{device.compile_target.format}", text)
    return device.compile(
        text, layout.entry_point_name, label=name, group_size=layout.group_size, **target_options(device)
    )


def _show(name: str, source: str) -> None:
    if config.print_generated_shaders:
        line = "=" * 80
        sys.stdout.write(f"{line}\nGENERATED SHADER: {name}\n{line}\n{source}{line}\nEND SHADER: {name}\n{line}\n")
    if config.dump_generated_shaders:
        _dump(f"{name}.slang", source.encode())


def _dump(name: str, data: bytes) -> str:
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    folder = Path(".temp")
    folder.mkdir(exist_ok=True)
    path = folder / safe
    path.write_bytes(data)
    return str(path)


def _dump_failed(name: str, source: str) -> str:
    import tempfile

    handle, path = tempfile.mkstemp(prefix="slangpy-", suffix=".slang")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(f"// generated for {name}\n{source}")
    return path
