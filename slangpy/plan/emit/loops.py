"""The loops of kernels: from the index of a thread or block to call indices, around the lines of the writers."""

from __future__ import annotations

from ..slang_text import indent
from ..trampoline import Kernel, Wide
from .groups import TileLoops, whole_place
from .patches import PatchLoops
from .sums import group_limit, sums_in_groups


def _split(kernel: Kernel, flat: str) -> list[str]:
    """Call indices _c0 ... from the flat index."""
    facts = kernel.facts
    kind = facts.index
    if facts.rank == 0:
        return []
    if facts.rank == 1:
        return [f"{kind} _c0 = {flat};"]
    if facts.divides_by_products and not facts.variant.wide:
        return _split_by_products(facts.rank, flat)
    lines = [f"{kind} _rest = {flat};"]
    for dim in range(facts.rank - 1, 0, -1):
        size = f"{kind}(_call._shape[{dim}])"
        lines += [f"{kind} _c{dim} = _rest % {size};", f"_rest = _rest / {size};"]
    return [*lines, f"{kind} _c0 = _rest;"]


def _split_by_products(rank: int, flat: str) -> list[str]:
    """The same without divisions, each of which takes a GPU as long as the rest of a short call."""
    lines = [f"uint _rest = uint({flat});"]
    for dim in range(rank - 1, 0, -1):
        lines += [
            f"uint _quotient{dim} = _spy_quotient(_rest, _call._divisor[{dim}]);",
            f"int _c{dim} = int(_rest - _quotient{dim} * uint(_call._shape[{dim}]));",
            f"_rest = _quotient{dim};",
        ]
    return [*lines, "int _c0 = int(_rest);"]


def _call_index(kernel: Kernel) -> list[str]:
    facts = kernel.facts
    return [f"{facts.index} _c0 = _i;"] if facts.rank == 1 else []


def cpu_loop(kernel: Kernel, wide: Wide | None) -> list[str]:
    """The body in a loop over one block. `wide`: the same for neighbours, where they are moved together."""
    facts = kernel.facts
    lines = [
        f"int64_t _first = ({_flat_group()}) * _call._block;",
        "int64_t _last = _first + _call._block;",
        "if (_last > _call._total) _last = _call._total;",
        *kernel.hoisted,
    ]
    if facts.plan.tile:
        return [*lines, *TileLoops(facts.plan.tile, facts.index).cpu(kernel.row, kernel.body), *kernel.after]
    if facts.variant.flat or facts.rank <= 1:
        begin = "_first"
        if wide is not None:
            begin = "_at"
            lines += _streaming_loop(kernel, wide)
        lines += [f"for (int64_t _i = {begin}; _i < _last; _i++)", "{"]
        if facts.rank == 1:
            lines.append("    int64_t _c0 = _i;")
        lines += [*indent(kernel.row), *indent(kernel.body), "}"]
    else:
        last = facts.rank - 1
        lines += ["for (int64_t _i = _first; _i < _last;)", "{"]
        lines += indent(_split(kernel, "_i"))
        lines += [
            f"    int64_t _stop = _i + _call._shape[{last}] - _c{last};",
            "    if (_stop > _last) _stop = _last;",
            *indent(kernel.row),
            f"    for (; _i < _stop; _i++, _c{last}++)",
            "    {",
            *indent(indent(kernel.body)),
            "    }",
            "}",
        ]
    return lines + kernel.after


def _streaming_loop(kernel: Kernel, wide: Wide) -> list[str]:
    """Large results: computed in small pieces that are written around the caches."""
    width = kernel.facts.variant.width
    return [
        "int64_t _at = _first;",
        "if (_call._flags != 0)",
        f"    for (; _at + {width} <= _last; _at += {width})",
        "    {",
        *indent(indent(wide.loads)),
        f"        for (int _k = 0; _k < {width}; _k++)",
        "        {",
        "            int64_t _i = _at + _k;",
        *indent(indent(indent(_call_index(kernel) + wide.body))),
        "        }",
        *indent(indent(wide.stores)),
        "    }",
    ]


def _flat_group() -> str:
    return "int64_t(_group.x) + int64_t(_group.y) * 0xffffffffll"


def _gpu_group(kernel: Kernel) -> str:
    """The number of a group. CUDA's grids are long enough for all groups of 2^31 invocations in one row."""
    kind = kernel.facts.index
    if kernel.facts.on_cuda and not kernel.facts.variant.wide:
        return f"{kind}(_group.x)"
    return f"({kind}(_group.x) + {kind}(_group.y) * {kind}(_call._block))"


def gpu_body(kernel: Kernel, wide: Wide | None) -> list[str]:
    """The body of one thread: one invocation, several of them, or every so many."""
    facts = kernel.facts
    if facts.plan.tile:
        strides = group_limit(facts.plan, facts.grads, facts.variant) > 0
        return TileLoops(facts.plan.tile, facts.index).gpu(
            kernel.hoisted, kernel.row + kernel.body, kernel.after, strides
        )
    if facts.variant.patch is not None and wide is not None:
        return PatchLoops(kernel, wide, facts.variant.patch).gpu()
    if wide is not None:
        if facts.moves_together:
            return _wide_body(kernel, wide)
        return _spread_body(kernel, wide) if facts.takes_tensors else _spaced_body(kernel, wide)
    if facts.plan.whole:
        return _whole_body(kernel)
    if group_limit(facts.plan, facts.grads, facts.variant):
        return _striding_body(kernel)
    size, kind = facts.variant.group_size, facts.index
    first = f"{kind} _i = {_gpu_group(kernel)} * {size} + {kind}(_thread);"
    place = _call_index(kernel) if facts.variant.flat else _split(kernel, "_i")
    if sums_in_groups(facts.plan, facts.grads, facts.variant):
        inside = ["{", *indent([*place, *kernel.row, *kernel.body]), "}"]
        return [first, *kernel.hoisted, f"if (_i < {kind}(_call._total))", *inside, *kernel.after]
    last = f"if (_i >= {kind}(_call._total)) return;"
    return [first, last, *place, *kernel.hoisted, *kernel.row, *kernel.body, *kernel.after]


def _wide_body(kernel: Kernel, wide: Wide) -> list[str]:
    """Each thread moves `width` neighbours with one access each; the last thread may have fewer."""
    facts = kernel.facts
    size, kind, width = facts.variant.group_size, facts.index, facts.variant.width
    return [
        f"{kind} _q = {_gpu_group(kernel)} * {size} + {kind}(_thread);",
        f"{kind} _begin = _q * {width};",
        f"if (_begin >= {kind}(_call._total)) return;",
        *kernel.hoisted,
        f"if (_begin + {width} <= {kind}(_call._total))",
        "{",
        *indent(wide.loads),
        f"    [ForceUnroll] for (int _k = 0; _k < {width}; _k++)",
        "    {",
        f"        {kind} _i = _begin + _k;",
        *indent(indent(_call_index(kernel) + wide.body)),
        "    }",
        *indent(wide.stores),
        "}",
        "else",
        "{",
        f"    for ({kind} _i = _begin; _i < {kind}(_call._total); _i++)",
        "    {",
        *indent(indent(_call_index(kernel) + kernel.body)),
        "    }",
        "}",
    ]


def _spaced_body(kernel: Kernel, wide: Wide) -> list[str]:
    """Each thread handles `width` elements, a group's width apart, and stores when all are there: so their loads are under
    way together, and the neighbours of a group still lie side by side."""
    facts = kernel.facts
    size, kind, width = facts.variant.group_size, facts.index, facts.variant.width
    each = [
        f"[ForceUnroll] for (int _k = 0; _k < {width}; _k++)",
        "{",
        f"    if (_k * {size} < {kind}(_call._total) - _begin)",
        "    {",
    ]
    return [
        f"{kind} _begin = {_gpu_group(kernel)} * {size * width} + {kind}(_thread);",
        f"if (_begin >= {kind}(_call._total)) return;",
        *kernel.hoisted,
        *wide.loads,
        *each,
        f"        {kind} _i = _begin + _k * {size};",
        *indent(indent([*_split(kernel, "_i"), *kernel.row, *wide.body])),
        "    }",
        "}",
        *each,
        *indent(indent(wide.stores)),
        "    }",
        "}",
    ]


def _spread_body(kernel: Kernel, wide: Wide) -> list[str]:
    """The same of functions that pick elements. They may be long: their compiler decides whether it repeats them."""
    facts = kernel.facts
    size, kind, width = facts.variant.group_size, facts.index, facts.variant.width
    place = [f"{kind} _i = _begin + _k * {size};", *(_call_index(kernel) if facts.variant.flat else _split(kernel, "_i"))]
    each = f"for (int _k = 0; _k < {width}; _k++)"
    inside = f"if (_k * {size} < {kind}(_call._total) - _begin)"
    return [
        f"{kind} _begin = {_gpu_group(kernel)} * {size * width} + {kind}(_thread);",
        f"if (_begin >= {kind}(_call._total)) return;",
        *kernel.hoisted,
        f"if ({size * (width - 1)} < {kind}(_call._total) - _begin)",
        "{",
        *indent([*wide.loads, each, "{", *indent([*place, *kernel.row, *wide.body]), "}"]),
        *indent([each, "{", *indent(wide.stores), "}"]),
        "}",
        "else",
        "{",
        *indent([f"[loop] {each}", "{", f"    {inside}", "    {"]),
        *indent(indent(indent([*place, *kernel.row, *kernel.body]))),
        "        }",
        "    }",
        "}",
    ]


def _whole_body(kernel: Kernel) -> list[str]:
    """A group runs whole, or not at all: its threads work together in the function."""
    facts = kernel.facts
    size, kind = facts.variant.group_size, facts.index
    place = [*whole_place(kernel), *(_call_index(kernel) if facts.variant.flat else _split(kernel, "_i"))]
    inside = ["{", *indent([*place, *kernel.row, *kernel.body]), "}"]
    if group_limit(facts.plan, facts.grads, facts.variant):
        unsigned = "uint64_t" if facts.variant.wide else "uint"
        step = f"{unsigned}(_call._block) * {size}"
        loop = f"for ({unsigned} _first = _group.x * {size}; _first < {unsigned}(_call._total); _first += {step})"
        return [*kernel.hoisted, loop, *inside, *kernel.after]
    first = f"{kind} _first = {_gpu_group(kernel)} * {size};"
    return [first, *kernel.hoisted, f"if (_first < {kind}(_call._total))", *inside, *kernel.after]


def _striding_body(kernel: Kernel) -> list[str]:
    """All threads live to the end, where groups sum: each handles every `_stride`-th invocation."""
    facts = kernel.facts
    size, kind = facts.variant.group_size, facts.index
    unsigned = "uint64_t" if facts.variant.wide else "uint"
    lines = [f"{kind} _i = {kind}(_n);"]
    if not facts.variant.flat:
        lines += _split(kernel, "_i")
    elif facts.rank == 1:
        lines.append(f"{kind} _c0 = _i;")
    return [
        f"{unsigned} _stride = {unsigned}(_call._block) * {size};",
        *kernel.hoisted,
        f"for ({unsigned} _n = _group.x * {size} + _thread; _n < {unsigned}(_call._total); _n += _stride)",
        "{",
        *indent(lines + kernel.row + kernel.body),
        "}",
        *kernel.after,
    ]
