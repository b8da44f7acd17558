"""Tensors and arrays as TensorView and DiffTensorView parameters: bound as the tensor types that they are made from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ...reflection import SlangType
from ..records import Binding, Value
from ..slang_text import slang_name
from .base import TENSOR, Context, NoMatch, no_match

VIEW = re.compile(r"^(Diff|)TensorView<(.*?)(?:, ?\w+)?>$")
MAX_RANK = 5


def bind_tensor_view(
    value: Value, type_: SlangType, context: Context, element: str, bind_whole: Callable[..., Binding]
) -> Binding:
    """The whole tensor, whatever its rank. RuntimeError on devices without such views."""
    found = VIEW.match(type_.full_name)
    assert found is not None
    diff, wanted = found.groups()
    device = getattr(context.module, "device", None)
    if device is not None and device.compile_target.format not in ("cpp", "cuda", "spirv"):
        raise RuntimeError(
            f"{diff}TensorView parameters need a cuda, cpu or vulkan device, not {device.info.api_name}; declare "
            f"I{diff}Tensor<T, D>, which every device takes"
        )
    if diff and not type_.full_name.replace(" ", "").endswith(",AtomicAdd>"):
        raise no_match(value, type_, "gradients of its wrapper cannot come from a tensor; use DiffTensorView<T>")
    view = type_.fields["primal"].type if diff and "primal" in type_.fields else type_
    if "_address" not in view.fields:
        raise no_match(value, type_, "it is Slang's own view, because its file has host functions ([TorchEntryPoint]); "
                       "put those into another file")  # fmt: skip
    rank = len(value.shape)
    vectors = int(wanted[-2]) if element == "float" and re.fullmatch(r"vector<float,[234]>", wanted) else 0
    if wanted.replace(" ", "") != element.replace(" ", "") and (diff or not vectors or not rank):
        raise no_match(value, type_, f"element type {element}, expected {wanted}")
    if rank > MAX_RANK:
        raise NoMatch(f"{value.summary()} does not match slang type {type_.full_name}: at most {MAX_RANK} dimensions")
    inner = context.find(f"{'IRWTensor' if diff else 'RWTensor'}<{element}, {rank}>")
    if inner is None:
        raise no_match(value, type_)
    view = re.sub(r", ?AtomicAdd>$", ">", type_.full_name)
    return replace(bind_whole(value, inner, context), view=view, vectors=vectors or 1)


def view_argument(binding: Binding, name: str) -> str:
    """The expression of a parameter's or field's value: `name` holds the tensor that a view is bound as."""
    if binding.packs:
        found = TENSOR.match(binding.view)
        assert found is not None
        _, access, _, vector, rank = found.groups()
        stored = slang_name(binding.stored)
        return f"_spy_{access}vectors<{slang_name(vector)}, {stored}, {rank}, {binding.rank}>({name}, {binding.packs})"
    found = VIEW.match(binding.view)
    if found is None:
        return name
    diff, wanted = found.groups()
    stored = slang_name(binding.stored)
    if diff:
        return f"_spy_diff_tensor_view<{stored}, {binding.rank}>({name})"
    return f"_spy_tensor_view<{slang_name(wanted)}, {stored}, {binding.rank}>({name})"


__all__ = ["VIEW", "bind_tensor_view", "view_argument"]
