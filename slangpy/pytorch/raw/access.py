"""What kernels do with the views that they are given, from the text of their files. It decides where tensors with strides
of 0 may stand: nothing that is written can be shared by several indices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slangpy.base import libslang
from slangpy.pytorch.raw.types import KernelType

_DERIVATIVES = ("BackwardDerivative", "ForwardDerivative", "PrimalSubstitute")


@dataclass(frozen=True)
class ViewAccess:
    """Of one view or pair. `reads`: the calls ("", "fwd", "bwd") in which it is only read. `reads_gradient`: those in which
    its gradient is only read, or not touched. `consumes`: those that take its gradient and leave zeros."""

    reads: tuple[str, ...] = ()
    reads_gradient: tuple[str, ...] = ()
    consumes: tuple[str, ...] = ()


class KernelText:
    """The files of a module. `macros`: what is defined from outside."""

    def __init__(self, sources: Iterable[str], macros: Iterable[str]) -> None:
        self._facts = libslang.SourceFacts("\n".join(sources), list(macros))
        # own derivatives may do anything with a view
        self._has_own = any(word.startswith(_DERIVATIVES) for word in self._facts.words())

    def access(self, kernel: str, types: Iterable[KernelType]) -> tuple[tuple[tuple[int, str], ViewAccess], ...]:
        """By number of the parameter, and path of the field in it."""
        found = {
            (index, ".".join(fields)): self._of_view(kernel, index, fields, type_.kind == "diff_view")
            for index, parameter in enumerate(types)
            for fields, type_ in _views(parameter, ())
        }
        return tuple((key, access) for key, access in found.items() if access != ViewAccess())

    def _of_view(self, kernel: str, index: int, fields: tuple[str, ...], is_pair: bool) -> ViewAccess:
        uses = self._facts.view_uses(kernel, index, fields)
        reads = uses <= {"reads", "gradient"}
        derived = ("fwd", "bwd") if not self._has_own else ()
        access = ViewAccess(("", *derived) if reads else ())
        if not is_pair or fields:
            return access
        inner = self._facts.differentiates(kernel, index)
        stores = [self._facts.view_uses(name, at) == {"stores"} for name, at in inner or ()]
        return ViewAccess(
            access.reads,
            (*(("",) if uses <= {"reads", "stores"} else ()), *(("fwd",) if reads and derived else ())),
            (*(("",) if stores and all(stores) else ()), *(("bwd",) if uses == {"stores"} and derived else ())),
        )


def _views(type_: KernelType, fields: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], KernelType]]:
    """The views in a parameter and the fields that lead to each; those in arrays are not followed."""
    if type_.kind in ("view", "diff_view"):
        yield fields, type_
    elif type_.kind == "struct":
        for name, inner, _ in type_.fields:
            yield from _views(inner, (*fields, name))


__all__ = ["KernelText", "ViewAccess"]
