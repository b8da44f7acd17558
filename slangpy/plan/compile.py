"""From generated Slang to a kernel of the device, through the caches."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._native import words_in
from ..base.folders import working_folder
from ..base.locks import new_rlock
from ..compiler import target_code
from ..compiler.cache import cache_of
from ..compiler.executable import dump, make_executable
from ..compiler.expected import expect_kernel
from ..compiler.generated import generated_name, load_generated, with_bounds
from ..compiler.kernel import root_layout
from ..compiler.library import CORE, PARTS, load_library
from ..compiler.modules import inputs as module_inputs
from ..compiler.modules.facts import dependent_defaults, recursive_functions
from ..compiler.modules.files import imports_of, load_text_modules
from ..compiler.options import target_options
from ..compiler.reports import report_step
from ..compiler.session_state import state_of
from ..compiler.text.globals_used import used_slots
from ..compiler.text.literals import remember
from ..config import config
from ..errors import CompilerDiedError, KernelGenException, NativeValueError, ResolveException, SlangCompileError
from .rays import make_ray_kernel, ray_entry_points
from .records import RayTracing

_lock = new_rlock()

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


@dataclass(frozen=True)
class Started:
    """A generated module up to code generation, which takes most of a compilation's time. `inputs`: as BuiltKernel has
    them; code generation looks for no files."""

    inputs: dict[str, Any] | None
    linked: Any
    seconds: float

    @property
    def layout(self) -> Any:
        return root_layout(self.linked)


def known_kernel(program: Any, source: str, conformances: Any = ()) -> BuiltKernel | None:
    """The kernel of a source that this or another plan built before."""
    return program.kernels.get((source, conformances))


def start(program: Any, name: str, source: str, conformances: Any = (), rays: RayTracing | None = None) -> Started:
    """What `build` begins with: it tells where arguments lie. Raises as `build` does."""
    others = ray_entry_points(program, name, rays) if rays is not None else []
    with _lock:
        session = program.session
        load_library(session, source)
        expect_kernel(program.device, source)
        inputs = GeneratedInputs(program, source)
        begin = time.perf_counter()
        with _explained(program, name, source):
            module = load_generated(program, generated_name(name, source, conformances), source)
            modules = [module, *program.modules]
            linked = session.link(modules, [module.entry_point("_spy_main"), *others], list(conformances) or None)
        return Started(inputs.record(), linked, time.perf_counter() - begin)


def build(
    program: Any, name: str, source: str, conformances: Any = (), link: Any = None, label: str = "",
    started: Started | None = None, rays: RayTracing | None = None,
) -> BuiltKernel:  # fmt: skip
    """Compiles the generated module `source` against the modules of `program` (a module.LoadedModule).

    link: what makes target code and its layout of the source, if not the session of `program` does. label: what profiles
    and debuggers show, if not the name. started: what `start` gave for the same source, if it was asked.
    Raises KernelGenException when Slang rejects generated code, SlangCompileError for the user's own code.
    """
    global builds
    with _lock:
        known = known_kernel(program, source, conformances)
        if known is not None:
            return known
        _show(name, source)
        device = program.device
        if link:
            load_library(program.session, source)
            watched = GeneratedInputs(program, source)
            text, layout = link(program, name, source, conformances)
            inputs = watched.record()
        else:
            started = started or start(program, name, source, conformances, rays)
            inputs, layout = started.inputs, started.layout
            if rays is not None:
                with _explained(program, name, source):
                    kernel, used = make_ray_kernel(device, started.linked, layout, rays, label or name)
                builds += 1
                built = program.kernels[(source, conformances)] = BuiltKernel(source, kernel, layout, "", used, inputs)
                return built
            text = _generate(program, name, source, started)
        made = make_executable(device, text, layout, name, target_options(device))
        builds += made.is_new
        kernel = device.create_kernel(made.code, layout, label or name)
        used = used_slots(text, device.compile_target.format, layout)
        built = program.kernels[(source, conformances)] = BuiltKernel(
            source, kernel, layout, made.key, used, inputs
        )
        return built


class GeneratedInputs:
    """Watches what the compiler looks for while it makes a generated module."""

    def __init__(self, program: Any, source: str) -> None:
        self.program = program
        known = {CORE, *PARTS, *program.import_names}
        words = imports_of(source)
        self.text = "\n".join(f"import {word};" for word in words if word.strip('"<>') not in known)
        if self.text:
            load_text_modules(program.device, program.session, "", self.text)
        self.since = program.session.lookups(0)[0]

    def record(self) -> dict[str, Any] | None:
        """After the compilation; None where nothing was asked for but the module."""
        session, device = self.program.session, self.program.device
        if not self.text and not module_inputs.users(session.lookups(self.since)[1]):
            return None
        scan = module_inputs.Scan(device, [("cwd", working_folder(), self.text)])
        files = [path for path in session.read_files if path in scan.found]
        record = module_inputs.collect(device, session, self.since, scan, files, "", self.text)
        given = state_of(session).sources
        used = module_inputs.text_modules_used(device, "", self.text)
        outdated = any(given.get(name) != text for name, text in used.items())
        return {**record, "text": self.text, "outdated": outdated}


def from_cache(
    program: Any, name: str, source: str, layout: Any, code_key: str, inputs: dict[str, Any] | None = None,
    used_globals: tuple[int, ...] = (),
) -> BuiltKernel | None:  # fmt: skip
    """The kernel of a plan found on disk; None when its binary is gone, or an input of it is another now."""
    with _lock:
        if inputs is not None and not module_inputs.still_holds(program.device, inputs, "", inputs["text"]):
            return None
        known = known_kernel(program, source)
        if known is not None:
            return known
        code = cache_of(program.device).read_bytes("kernel", code_key)
        if code is None:
            return None
        kernel = program.device.create_kernel(code, layout, name)
        built = program.kernels[(source, ())] = BuiltKernel(source, kernel, layout, code_key, used_globals, inputs)
        return built


def _generate(program: Any, name: str, source: str, started: Started) -> bytes:
    """Target code."""
    device, linked = program.device, started.linked
    begin = time.perf_counter()
    with _explained(program, name, source):
        code = with_bounds(device, source, target_code(device, linked, 0, name, source))
    if device.desc.enable_compilation_reports:
        report_step(device, "front_end", name, started.seconds, len(source))
        report_step(device, "code_generation", name, time.perf_counter() - begin, len(code))
    remember(device, linked)
    return code


@contextmanager
def _explained(program: Any, name: str, source: str) -> Iterator[None]:
    """Says of the compiler's errors what they mean for the call."""
    try:
        yield
    except NotImplementedError:
        raise
    except CompilerDiedError:
        if told := _dependent_default(program, name):
            raise told from None
        raise
    except SlangCompileError as error:
        raise _refusal(program, name, source, str(error)) from None
    except NativeValueError as error:  # a name that there is not
        raise NativeValueError(f"{name}: {error}") from None
    except RuntimeError as error:  # an operation that the device lacks
        raise RuntimeError(f"{name}: {error}") from None


def _refusal(program: Any, name: str, source: str, text: str) -> Exception:
    """What to say of a generated kernel that the compiler refuses."""
    hidden = re.search(r"'([^']+)' is not accessible", text)
    if hidden:
        return ResolveException(
            f"{name}: '{hidden.group(1)}' is not public: a module that begins with `module name;`, marks anything "
            "`public`, or has parts (`implementing`) lets only what is public be called; write `public` before its "
            "declaration, or leave `module name;` out"
        )
    if missing := _missing_modifier(name, text):
        return missing
    short = name.rpartition("::")[2]
    if "E41022" in text and f"function `{short}`" in text and short not in program.declared_names:
        return ResolveException(
            f"{name}: Could not call function '{short}': Function is not differentiable: Slang has no derivative of its own "
            "function for these types"
        )
    if "E40020" in text and "diff.meta.slang" in text:
        return ResolveException(f"{name}: {text}")
    shared = _shared_names(program, source, text)
    if shared:
        return ResolveException(
            f"{name}: '{shared[0]}' is declared by the module and by slangpy's own library; give it another name or put "
            f"it into a namespace\n{text}"
        )
    if "circularity during codegen" in text or "E55201" in text:  # the latter of GPUs
        return _recursion(name, recursive_functions(program, short), text)
    if "decl catch-all" in text and (told := _dependent_default(program, name)):
        return told
    path = _dump_failed(name, source)
    if not {"bwd_diff", "fwd_diff"}.isdisjoint(words_in(source)) and _INTERNAL.search(text):
        return KernelGenException(
            f"{name}: Slang failed inside while it made the derivative of this function; known to cause that are `return` "
            "inside loops (set a variable and break), `while` and `do` loops that come out of macros (write for (; c; )), "
            "a % b of floating-point numbers (write fmod(a, b)), and no_diff parameters that macros put into vectors, arrays or "
            "elements (write detach(value) there); docs/compiler-faults.md has "
            f"the list. The kernel is in {path}. Slang said:\n{text}"
        )
    return KernelGenException(f"{name}: Slang rejected the kernel generated for this call ({path}):\n{text}")


def _dependent_default(program: Any, name: str) -> Exception | None:
    """What to say where the compiler fails on a default value that it would have to work out for the call."""
    found = dependent_defaults(program, name.rpartition("::")[2].removesuffix(".__init"))
    if not found:
        return None
    own = ", ".join(f"'{parameter}' (line {line})" for parameter, line in found)
    those = "the default value of {} names another parameter or field" if len(found) == 1 else "the default values of {} name others"
    return ResolveException(
        f"{name}: {those.format(own)}, which Slang cannot work out for a call: pass {'it' if len(found) == 1 else 'them'}"
    )


def _recursion(name: str, functions: list[tuple[str, int]], text: str) -> Exception:
    """What to say of functions, with their lines, that call themselves or each other. None are known of what macros write; then
    the compiler's text tells what it knows."""
    advice = "kernels have no recursion: write a loop, with an array for what is still to do"
    if not functions:
        called = re.search(r"recursion detected in call to '([^']+)'", text)
        own = f"'{called.group(1)}'" if called else "a function that it reaches"
        return KernelGenException(f"{name}: {own} calls itself, perhaps by way of others, and {advice}. Slang said:\n{text}")
    own = ", ".join(f"'{function}' (line {line})" for function, line in functions)
    what = "call each other" if len(functions) > 1 else "calls itself"
    return KernelGenException(f"{name}: {own} {what}, and {advice}")


def _missing_modifier(name: str, text: str) -> Exception | None:
    """What the compiler says where the call lacks a modifier."""
    if "E36107" in text and "'TraceRay'" in text:
        return ResolveException(
            f"{name}: the function calls TraceRay, which needs a ray generation shader: use "
            f".ray_tracing(hit_groups=[...], miss_entry_points=[...]) before the call, or a RayQuery in the function\n{text}"
        )
    if "no type conformances found" in text:
        return RuntimeError(
            f"{name}: no type conformances found for an interface; name the types with .type_conformances([...])\n"
            + text
        )
    return None


def _shared_names(program: Any, source: str, text: str) -> list[str]:
    """Names that the user's module and the library both declare, where that is what the compiler complains of."""
    shared = [word for word in re.findall(r"ambiguous reference to '(\w+)'", text) if word in program.declared_names]
    if not shared and any(t in text for t in ("expected a type", "generic argument", "member not found")):
        # a generic type of the user's own that is called like one of the library
        named = {word for word in words_in(source) if word.endswith(("Tensor", "TensorView"))}
        shared = sorted(n for n in named if {n, n[0].lower() + n[1:]} & program.declared_names)
    return shared


def _show(name: str, source: str) -> None:
    if config.print_generated_shaders:
        line = "=" * 80
        sys.stdout.write(f"{line}\nGENERATED SHADER: {name}\n{line}\n{source}{line}\nEND SHADER: {name}\n{line}\n")
    if config.dump_generated_shaders:
        dump(f"{name}.slang", source.encode())


def _dump_failed(name: str, source: str) -> str:
    handle, path = tempfile.mkstemp(prefix="slangpy-", suffix=".slang")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(f"// generated for {name}\n{source}")
    return path
