"""Views in the call structure, and their use as tensors: storage, strides and sizes."""

from __future__ import annotations

from ...base.scalars import SIZES
from ..bind.base import TENSOR
from ..derive.gradients import NONE
from ..records import Placed
from ..slang_text import slang_name, stored_name
from . import Kernel
from .elements import offset_of


def declare_view(kernel: Kernel, name: str, element: str, lead: int, inner: int, rank: int) -> None:
    stored = stored_name(element) if rank < 0 else slang_name(element)  # a tensor gives its memory to the function
    kernel.fields.append(f"_spy_Storage<{stored}> {name}")
    if lead:
        kernel.fields.append(f"int {name}_lead[{lead}]")
    if inner or rank >= 0:
        kernel.fields.append(f"int {name}_inner[{max(inner, 1)}]")
    if rank >= 0:
        kernel.fields.append(f"uint {name}_shape[{max(rank, 1)}]")
        kernel.fields.append(f"int64_t {name}_first")


def declare_views(kernel: Kernel, placed: Placed) -> None:
    """The view of a container, and those of its gradients."""
    binding, ident = placed.binding, placed.ident
    grad = kernel.facts.grads.get(ident, NONE)
    stored = {ident: binding.stored, **{f"{ident}_{view}": grad.view_type(view) for view in grad.views}}
    for name, element in stored.items():
        declare_view(kernel, name, element, len(placed.map), len(binding.inner), binding.rank)


def tensor_value(kernel: Kernel, placed: Placed) -> str:
    """A tensor parameter: its view moved to this invocation's part."""
    binding, ident = placed.binding, placed.ident
    lines = kernel.body if placed.map or ident in kernel.bases else kernel.hoisted
    var = f"_v_{ident}"
    found = TENSOR.match(binding.type_name)
    assert found is not None
    interface, access, diff, _, _ = found.groups()
    if interface:
        lines.append(f"_spy_T_{ident} {var};")
        _fill_view(kernel, placed, ident, var, lines)
        _fill_gradients(kernel, placed, access, var, lines)
        return var
    lines.append(f"_spy_T_{ident} {var} = {{}};")
    primal = f"{var}._primal" if diff else var
    _fill_view(kernel, placed, ident, primal, lines)
    if kernel.facts.options.bwds and access == "W":
        lines.append(f"{primal}._data = {{}};")
    for field, name in _gradient_members(kernel, placed):
        if name:
            cast = _fill_wide(kernel, placed, name, f"{var}.{field.replace('grad_', '')}_wide", lines)
            _fill_view(kernel, placed, name, f"{var}.{field}", lines, cast)
    return var


def _fill_wide(kernel: Kernel, placed: Placed, name: str, flag: str, lines: list[str]) -> str:
    """Says where the gradient of halves is kept in float; gives the cast to the type that the tensor names."""
    kept = kernel.facts.grads[placed.ident].view_type(name[-2:])
    if kept != "float" or placed.binding.stored != "half":
        return ""
    lines.append(f"{flag} = true;")
    return ".cast<half>()"


def _gradient_members(kernel: Kernel, placed: Placed) -> tuple[tuple[str, str], tuple[str, str]]:
    """The members of tensor types that hold gradients (forward mode: tangents), with the views that fill them."""
    grad = kernel.facts.grads.get(placed.ident, NONE)
    read = f"{placed.ident}_{grad.seed_view}" if grad.seed else ""
    written = f"{placed.ident}_{grad.target_view}" if grad.target else ""
    return ("_grad_in", written if grad.forward else read), ("_grad_out", read if grad.forward else written)


def _fill_gradients(kernel: Kernel, placed: Placed, access: str, var: str, lines: list[str]) -> None:
    """The gradients of the types that the interface names stand for, absent ones included."""
    rank = placed.binding.rank
    grad = kernel.facts.grads.get(placed.ident, NONE)
    for field, name in _gradient_members(kernel, placed):
        if field == ("_grad_out" if access == "W" else "_grad_in" if access == "" else ""):
            continue
        value = f"_spy_Gradient<{rank}>.none()"
        if name:
            storage = f"_call.{name}.at({offset_of(kernel, placed, name)})"
            kept = grad.view_type(name[-2:])
            usual = "float" if placed.binding.view else placed.binding.stored
            wide = ", true" if (usual, kept) in (("half", "float"), ("float", "double")) else ""
            value = f"_spy_Gradient<{rank}>.of<{slang_name(kept)}>({storage}, _call.{name}_inner{wide})"
        lines.append(f"{var}.{field} = {value};")
    if access == "W":
        lines.append(f"{var}._discard = {'true' if kernel.facts.options.bwds or not placed.writes else 'false'};")


def _fill_view(kernel: Kernel, placed: Placed, name: str, var: str, lines: list[str], cast: str = "") -> None:
    base = kernel.base_of(name)
    row = _aligned_row(kernel, placed) if name == placed.ident else 0
    lines.append(f"{var}._data = {base}.{name}{'.aligned()' if row else ''}.at(-{base}.{name}_first){cast};")
    lines.append(f"{var}._offset = {base}.{name}_first + {offset_of(kernel, placed, name)};")
    lines.append(f"{var}._shape = {base}.{name}_shape;")
    lines.append(f"{var}._strides = {base}.{name}_inner;")
    if kernel.facts.variant.near and name == placed.ident and placed.binding.rank > 0:
        lines.append(f"{var}._strides[{placed.binding.rank - 1}] = 1;")
    if row:  # shows compilers what is so anyhow
        lines += [f"{var}._strides[{k}] = {base}.{name}_inner[{k}] & -{row};" for k in range(placed.binding.rank - 1)]


def _aligned_row(kernel: Kernel, placed: Placed) -> int:
    """Elements in 16 bytes of a tensor whose rows begin at multiples of that; 0 of others. `rows_are_aligned` in
    src/native/call/stages/select/select.cpp says which variant may be run."""
    binding = placed.binding
    if not kernel.facts.variant.aligned or not has_rows(placed) or placed.ident in kernel.bases:
        return 0
    return 16 // SIZES[binding.stored]


def has_rows(placed: Placed) -> bool:
    """Whether a tensor of scalars with two dimensions or more is one for all invocations."""
    binding = placed.binding
    return binding.rank >= 2 and not placed.map and binding.stored in SIZES and binding.stored != "bool"
