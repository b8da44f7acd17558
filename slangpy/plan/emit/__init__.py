"""The Slang text of a kernel: one structure with all stored arguments, and an entry point that loads, calls, stores.

`emit` lays a kernel out in the order of its text. Its lines come from `kinds` (leaves), forward, backward, forward_mode
and second_order (the call), and loops (what is around it)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...compiler.generated import import_statement
from ..kinds.table import over_places
from ..kinds.texel import texture_imports
from ..records import Derivative, Options, Vectorized
from ..slang_text import entry_point, from_memory, indent
from ..trampoline import Facts, Kernel, Wide
from ..trampoline.variant import VariantTraits
from .backward import emit_backward
from .forward import declare, emit_forward
from .forward_mode import emit_forward_mode
from .groups import has_threads, position_lines, within
from .library import RESET, library_settings, set_globals, statics_functions
from .loops import cpu_loop, gpu_body
from .result import declare_result
from .second_order import emit_second_order


def emit(
    plan: Vectorized, grads: dict[str, Derivative], options: Options, variant: VariantTraits, imports: list[str],
    capabilities: Iterable[str] = (), result_format: str = "",
) -> str:  # fmt: skip
    """Complete source of the generated module; its entry point is `_spy_main`. `result_format`: of a texture result."""
    if options.fwds:
        variant = replace(variant, width=1)
    facts = Facts(plan, grads, options, variant, tuple(imports), frozenset(capabilities), result_format)
    kernel = Kernel(facts)
    for placed in plan.placed:
        declare(kernel, placed)
    declare_result(kernel)
    wrapper = _write_call(kernel)
    wide = _write_neighbours(facts)
    kernel.body = over_places(kernel, kernel.body)
    if plan.positions:
        kernel.body = [*position_lines(facts.rank, plan.tile), *kernel.body]
    if facts.resets_statics:  # what CallShapeInfo gives is among them
        kernel.body = [RESET, *kernel.body]
    return "\n".join(_page(kernel, wrapper, wide)) + "\n"


def _write_call(kernel: Kernel) -> list[str]:
    """Fills the body with the call; gives the differentiable wrapper of the user's function."""
    options = kernel.facts.options
    if options.second:
        return emit_second_order(kernel)
    if options.bwds:
        wrapper = emit_backward(kernel)
    elif options.fwds:
        return emit_forward_mode(kernel)
    else:
        wrapper = []
        emit_forward(kernel)
    if kernel.facts.plan.whole:
        within(kernel, kernel.called)
    return wrapper


def _write_neighbours(facts: Facts) -> Wide | None:
    """The same call for neighbours that one thread moves together."""
    if facts.variant.width == 1 or facts.options.bwds:
        return None
    wide = Wide()
    kernel = Kernel(facts, wide=wide)
    emit_forward(kernel)
    wide.body = [RESET, *kernel.body] if facts.resets_statics else kernel.body
    return wide


def _page(kernel: Kernel, wrapper: list[str], wide: Wide | None) -> list[str]:
    """The text from top to bottom."""
    facts = kernel.facts
    added = [p.binding.code for p in facts.plan.placed if p.binding.code is not None]
    imports = [*facts.imports, *(name for code in added for name in code.imports), *texture_imports(facts)]
    return [
        *(import_statement(name) for name in dict.fromkeys(imports)),
        *facts.options.preludes,
        *dict.fromkeys("\n".join(code.lines) for code in added if code.lines),
        *library_settings(kernel),
        *(["export static const bool _spy_check_bounds = true;"] if facts.checks_bounds else []),
        *(["export static const bool _spy_near = true;"] if facts.variant.near and facts.takes_tensors else []),
        *kernel.aliases,
        *kernel.shared,
        "struct _spy_Call",
        "{",
        *(f"    {field};" for field in [*_header(facts), *kernel.fields]),
        *from_memory(facts.on_d3d12),
        "}",
        *statics_functions(kernel),
        *wrapper,
        *_entry_point(kernel, wide),
    ]


def _header(facts: Facts) -> list[str]:
    """The fields that all kernels have, and those of backward calls, checks and sums."""
    header = ["int64_t _total", "int64_t _block", "int64_t _flags", f"int64_t _shape[{max(facts.rank, 1)}]"]
    if facts.divides_by_products:
        header.append(f"uint64_t _divisor[{facts.rank}]")
    if facts.options.bwds:
        header.append("int64_t _period")
    if facts.checks_bounds:
        header.append("uint64_t _bounds")
    sum_table = facts.can_privatize or any(g.sums is not None for g in facts.grads.values())
    return [*header, "uint64_t _sum_table"] if sum_table else header


def _entry_point(kernel: Kernel, wide: Wide | None) -> list[str]:
    variant, thread = kernel.facts.variant, ""
    threads = has_threads(kernel.facts.plan, variant.cpu)
    body = gpu_body(kernel, wide) if threads else cpu_loop(kernel, wide)
    first = set_globals(kernel)
    if threads:
        first = ["uint _thread = _threads.x;", *first]  # SV_GroupIndex would have CUDA read sizes that are 1 here
        thread = ", uint3 _threads : SV_GroupThreadID"
    extra = "".join(f", {parameter}" for parameter in kernel.extra)
    if kernel.facts.options.rays is not None:  # a launch has one ray for each group, of one thread
        first = ["uint3 _group = DispatchRaysIndex();", "uint _thread = 0;", *set_globals(kernel)]
        head = [f"// {kernel.facts.options.rays}", '[shader("raygeneration")]']  # the table decides the kernel, too
        return [*head, f"void _spy_main(uniform _spy_Call _call{extra})", "{", *indent([*first, *body]), "}"]
    return [
        '[shader("compute")]',
        f"[numthreads({variant.group_size if threads else 1}, 1, 1)]",
        *entry_point(f"uint3 _group : SV_GroupID{thread}", extra, kernel.facts.on_d3d12),
        *indent([*first, *body]),
        "}",
    ]
