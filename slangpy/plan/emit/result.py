"""What a call returns: where the kernel stores it."""

from __future__ import annotations

from .. import textures
from ..bind.base import fixed_size
from ..kinds import KINDS
from ..kinds.texel import declare_texture, write_texel
from ..records import Placed
from ..slang_text import slang_name
from ..trampoline import Kernel
from ..trampoline.elements import keep, strided, wide_store


def declare_result(kernel: Kernel) -> None:
    plan = kernel.facts.plan
    if plan.result_mode == "texture":
        _declare_texture_result(kernel)
    if plan.result_mode in ("value", "tensor", "numpy", "torch"):
        kernel.aliases.append(f"typealias _spy_R = {slang_name(fixed_size(plan.resolved.return_type_name))};")
        kernel.fields.append("_spy_Storage<_spy_R> _out")
        if plan.result_mode != "value" and kernel.facts.rank:
            kernel.fields.append(f"int _out_lead[{kernel.facts.rank}]")
        if kernel.facts.options.fwds and plan.resolved.return_type.differentiable:
            kernel.fields.append("_spy_Storage<_spy_R.Differential> _out_tangent")


def store_result(kernel: Kernel) -> None:
    mode = kernel.facts.plan.result_mode
    if mode == "value":
        kernel.body.append("_call._out.write(0, _r);")
    elif mode in ("tensor", "numpy", "torch"):
        if kernel.wide is not None and kernel.facts.moves_together:
            wide_store(kernel, "_out", kernel.facts.plan.resolved.return_type_name, "_r", False)
            return
        if kernel.facts.variant.flat:
            at = "int64_t(_i)"
        else:
            at = strided(kernel, "_out_lead", tuple(range(kernel.facts.rank))) if kernel.facts.rank else "0"
        if kernel.wide is not None:
            kept, at = keep(kernel, "_out", "_spy_R", "_r", at)
            kernel.wide.stores.append(f"_call._out.write({at}, {kept});")
            return
        kernel.body.append(f"_call._out.write({at}, _r);")
    elif mode == "texture":
        _store_texture_result(kernel)
    elif mode in ("leaf", "custom"):
        for placed in kernel.facts.leaves.get("_result", []):
            if placed.writes:
                store_leaf(kernel, placed, "_r" + placed.path[len("_result") :])


def _declare_texture_result(kernel: Kernel) -> None:
    texel = textures.texel_of(kernel.facts.result_format)
    kernel.aliases.append(f"typealias _spy_R = {slang_name(kernel.facts.plan.resolved.return_type_name)};")
    declare_texture(kernel, "_out", f"{kernel.facts.rank}D", kernel.facts.result_format, texel.name, True)


def _store_texture_result(kernel: Kernel) -> None:
    texel = textures.texel_of(kernel.facts.result_format)
    at = [f"int(_c{dim})" for dim in reversed(range(kernel.facts.rank))]
    same = texel.name == kernel.facts.plan.resolved.return_type_name
    write_texel(
        kernel, "_out", kernel.facts.result_format, texel.name, at, "_r" if same else f"{slang_name(texel.name)}(_r)"
    )


def store_leaf(kernel: Kernel, placed: Placed, var: str) -> None:
    """Stores a variable in a leaf that the call writes."""
    store = KINDS[placed.binding.kind].store
    assert store is not None
    store(kernel, placed, var)
