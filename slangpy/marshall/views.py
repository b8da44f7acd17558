"""Tensors and arrays as TensorView and DiffTensorView parameters: bound as the tensor types that they are made from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ..call.ir import Binding, Value
from ..call.text import slang_name
from ..reflection import SlangType
from .base import Context, NoMatch, no_match

VIEW = re.compile(r"^(Diff|)TensorView<(.*?)(?:, ?AtomicAdd)?>$")
MAX_RANK = 5


def bind_tensor_view(
    value: Value, type_: SlangType, context: Context, element: str, bind_whole: Callable[..., Binding]
) -> Binding:
    """The whole tensor, whatever its rank. RuntimeError on devices without such views."""
    found = VIEW.match(type_.full_name)
    assert found is not None
    diff, wanted = found.groups()
    device = getattr(context.module, "device", None)
    if device is not None and device.compile_target.format not in ("cpp", "cuda"):
        raise RuntimeError(
            f"{diff}TensorView parameters need a cuda or cpu device, not {device.info.api_name}; declare "
            f"I{diff}Tensor<T, D>, which every device takes"
        )
    if ("primal" if diff else "_address") not in type_.fields or (diff and ", " in type_.full_name):
        raise no_match(value, type_, "import slangpy in the module: calls bind the view types of that library")
    rank = len(value.shape)
    vectors = int(wanted[-2]) if element == "float" and wanted in ("vector<float,2>", "vector<float,4>") else 0
    if wanted.replace(" ", "") != element.replace(" ", "") and (diff or not vectors or not rank):
        raise no_match(value, type_, f"element type {element}, expected {wanted}")
    if rank > MAX_RANK:
        raise NoMatch(f"{value.describe()} does not match slang type {type_.full_name}: at most {MAX_RANK} dimensions")
    inner = context.find(f"{'IRWTensor' if diff else 'RWTensor'}<{element}, {rank}>")
    if inner is None:
        raise no_match(value, type_)
    return replace(bind_whole(value, inner, context), vectors=vectors)


def view_argument(type_name: str, binding: Binding, name: str) -> str:
    """The expression of a view parameter's argument: `name` holds the tensor that it is bound as."""
    found = VIEW.match(type_name)
    if found is None or binding.rank < 0:
        return name
    diff, wanted = found.groups()
    stored = slang_name(binding.stored)
    if diff:
        return f"_spy_diff_tensor_view<{stored}, {binding.rank}>({name})"
    return f"_spy_tensor_view<{slang_name(wanted)}, {stored}, {binding.rank}>({name})"


__all__ = ["VIEW", "bind_tensor_view", "view_argument"]
