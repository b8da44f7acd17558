"""Tensors: containers of any Slang type. What they share with NumPy arrays is here too."""

from __future__ import annotations

import re
from typing import Any

from ...base.scalars import SCALARS, SIZES
from ...reflection import SlangType
from ..records import Binding, Value
from .base import (
    TENSOR,
    TENSOR_NAME,
    Context,
    NoMatch,
    RankTooSmall,
    converts,
    converts_whole,
    enum_storage,
    fixed_size,
    no_match,
    number_cost,
    pattern_kind,
    register,
    split_element,
    stores,
    strip_to,
    structured_element,
    tensor_candidates,
)
from .views import VIEW, bind_tensor_view

_VECTOR = re.compile(r"vector<(\w+),(\d)>")
READ_ONLY = "read-only: create it with BufferUsage.unordered_access, or set flags.writeable of an array"


def _element_name(value: Value) -> str:
    return value.details["type_name"] if value.kind == "tensor" else value.details["scalar"]


def _bind_whole(value: Value, type_: SlangType, context: Context) -> Binding:
    """A parameter of tensor type takes the last dimensions."""
    found = TENSOR.match(type_.full_name)
    assert found is not None
    _, access, _, element, rank_text = found.groups()
    rank = int(rank_text)
    own = _element_name(value)
    writes = access in ("RW", "W", "Atomic")
    if writes and not value.details["writable"]:
        kind = "tensor" if value.kind == "tensor" or "torch" in value.details else "array"
        raise NoMatch(
            f"{value.summary()} does not match slang type {type_.full_name}: Can't pass a read-only {kind} to a writable tensor "
            f"({type_.full_name}): {how_to_write(value)}"
        )
    packed = _bind_vectors(value, type_, context, own)
    if packed is not None:
        return packed
    if own.replace(" ", "") != element.replace(" ", ""):
        raise NoMatch(
            f"{value.summary()} does not match slang type {type_.full_name}: Can't convert tensor with element type "
            f"{own} to tensor with element type {element} ({type_.full_name}); {_how_to_convert(value, element, type_.full_name)}"
        )
    dims = len(value.shape) - rank
    if dims < 0:
        raise RankTooSmall(
            f"Could not resolve dimensionality: {value.summary()} has {len(value.shape)} dimensions, "
            f"{type_.full_name} takes {rank}"
        )
    return Binding(
        "view", value, type_.full_name, type_, dims, (-1,) * rank, element, rank=rank, cost=(0, 1 if dims else 0)
    )


def _bind_vectors(value: Value, type_: SlangType, context: Context, own: str) -> Binding | None:
    """An array of numbers for a tensor of vectors, which are in its last dimension: arrays have no vectors of their own."""
    found = TENSOR.match(type_.full_name)
    vector = _VECTOR.fullmatch(found[4].replace(" ", "")) if found is not None else None
    if found is None or vector is None or vector[1] != own or value.kind != "array":
        return None
    if found[1] or found[3] or found[2] == "Atomic":
        return None  # a gradient would need a view of its own
    rank, count = int(found[5]), int(vector[2])
    element = context.find(found[4])
    if not rank or len(value.shape) <= rank or element is None or element.element_layout.stride != SIZES[own] * count:
        return None
    access = found[2]
    inner = context.layout.require_type_by_name(f"{access}Tensor<{own}, {rank + 1}>")
    sizes = (-1,) * rank + (count,)
    dims = len(value.shape) - len(sizes)
    return Binding(
        "view", value, inner.full_name, inner, dims, sizes, own, rank=rank + 1, cost=(1, 1 if dims else 0),
        view=f"{access}Tensor<{found[4]}, {rank}>", packs=count,
    )  # fmt: skip


def _how_to_convert(value: Value, element: str, type_name: str) -> str:
    """What to write where a container has other elements than a tensor parameter."""
    found = _VECTOR.fullmatch(element.replace(" ", ""))
    rank = len(value.shape)
    if found is None or found[1] != _element_name(value) or rank < 2:
        return "convert the container, or take elements as parameters with .convert()"
    wider = re.sub(r"<.*>", f"<{found[1]}, {rank}>", type_name)
    name = f"{found[1]}{found[2]}"
    if value.kind == "tensor":
        makes = f"a Tensor of {name}"
    elif "torch" in value.details:
        makes = f"Tensor.from_torch(device, tensor, dtype='{name}')"
    else:
        makes = f"Tensor.from_numpy(device, array, target_slang_dtype='{name}')"
    return f"declare the parameter as {wider}, or pass {makes}, whose last dimension has {found[2]} numbers"


def how_to_write(value: Value) -> str:
    """What to do about a container that is read-only."""
    if value.kind == "tensor":
        return "create it with BufferUsage.unordered_access"
    if "torch" in value.details:
        return (
            "the call works on a copy of it, which `convert` makes of bfloat16 and of floats of 8 bits, pack() of what it holds, and "
            "torch of what is negated lazily; pass a float32 tensor"
        )
    return "set flags.writeable or pass a copy"


def _check_layout(value: Value, context: Context) -> None:
    """A tensor of structs fits the struct that it was made for, not another of that name or an edited one."""
    made_for = value.details.get("layout")
    if made_for is None or getattr(context.module.device, "plans_for_others", False):
        return
    found = context.find(value.details["type_name"])
    if found is not None and found.element_layout.serialize() != made_for:
        raise NoMatch(
            f"{value.summary()} was made for another struct {found.full_name} with other fields (from another module, or "
            "from the source before it was edited): make the tensor again"
        )


def _converts(value: Value, element: str, target: str, context: Context) -> bool:
    """Whether elements of a container convert in the directions that the parameter asks for. Torch tensors of bfloat16, which
    no function computes with, are stored to wherever they are read."""
    mode = context.convert
    rounds = element == "BFloat16" and "torch" in value.details and mode == "safe"
    reads, writes = context.reads, context.writable
    stores_too = not writes or converts(target, element, "any" if rounds else mode)
    return (not reads or converts(element, target, mode)) and stores_too


def bind_container(value: Value, type_: SlangType, context: Context, element: str) -> Binding:
    """A container of `element`, spread over the call or consumed from the right."""
    _check_layout(value, context)
    if TENSOR.match(type_.full_name):
        return _bind_whole(value, type_, context)
    if type_.kind in ("resource", "pointer"):
        return _bind_resource(value, type_, context, element)
    if VIEW.match(type_.full_name):
        return bind_tensor_view(value, type_, context, element, _bind_whole)
    if type_.kind == "array" and type_.shape[0] < 0:
        type_ = _sized_by(element, type_, context)
    inner = [] if fixed_size(type_.full_name) == element else strip_to(type_, element)
    stored = element
    if type_.kind == "enum" and enum_storage(type_) == element:
        inner = []
    if inner is None:
        target, sizes = split_element(type_)
        own = context.find(element)
        if own is not None and own.kind != "scalar" and _converts_whole(own, type_, context):
            target, sizes = own, []
        elif not (stores(target.full_name, element, context) or _converts(value, element, target.full_name, context)):
            raise no_match(value, type_, _dtype_hint(value, element, target.full_name))
        inner = sizes
    if -1 in inner:
        raise no_match(value, type_, "the size of the parameter is unknown")
    dims = len(value.shape) - len(inner)
    if dims < 0:
        raise RankTooSmall(
            f"Could not resolve dimensionality: {value.summary()} has {len(value.shape)} dimensions, "
            f"{type_.full_name} takes {len(inner)}"
        )
    scalar = element if element in SIZES else getattr(context.find(element), "scalar", "")
    cost = number_cost(scalar, type_.scalar) if scalar in SIZES and type_.scalar in SIZES else 0
    return Binding("view", value, type_.full_name, type_, dims, tuple(inner), stored, cost=(cost, 1 if dims else 0))


def _converts_whole(own: SlangType, type_: SlangType, context: Context) -> bool:
    reads = not context.reads or converts_whole(own, type_, context)
    return reads and (not context.writable or converts_whole(type_, own, context))


def _sized_by(element: str, type_: SlangType, context: Context) -> SlangType:
    """An array of unknown size, with that of the container's elements where those are such arrays."""
    own = context.find(element)
    inner = own.element_type if own is not None and own.kind == "array" else None
    same = inner is not None and type_.element_type is not None and inner.full_name == type_.element_type.full_name
    return own if own is not None and same else type_


def _dtype_hint(value: Value, element: str, target: str) -> str:
    if element == "BFloat16" and target in ("float", "double"):
        return f'element type {element}, expected {target}; f.convert("safe") reads it'
    if element not in SIZES or target not in SIZES:
        return f"element type {element}"
    text = f'element type {element}, expected {target}; f.convert("any") converts elements'
    return f"{text}, or pass {cast}" if (cast := _cast(value, target)) else text


def _cast(value: Value, target: str) -> str:
    """How to get an array with elements of a scalar type; empty for what is no array."""
    if value.kind != "array" or target not in SIZES:
        return ""
    how = f"to(torch.{SCALARS[target].torch})" if value.details.get("torch") else f"astype(np.{SCALARS[target].numpy})"
    return f"x.{how}"


def _bind_resource(value: Value, type_: SlangType, context: Context, element: str) -> Binding:
    name = type_.full_name
    if type_.kind == "pointer":
        target = type_.element_type
        if element == "uint64_t" and not (target and target.full_name == element):
            return Binding("view", value, name, type_, len(value.shape), (), "uint64_t", cost=(1, 1))
        if element == name:  # a tensor of pointers: one per invocation
            return Binding("view", value, name, type_, len(value.shape), (), "uint64_t", cost=(0, 1))
        if value.kind != "tensor":
            raise no_match(value, type_, "pass a Tensor, a Buffer or a device address")
        if target and target.full_name != element:
            raise no_match(value, type_, f"element type {element}, expected {target.full_name}")
        return Binding("pointer", value, name, type_, stored=name)
    writes = name.startswith("RW")
    if writes and not value.details["writable"]:
        raise no_match(value, type_, READ_ONLY)
    if "ByteAddressBuffer" in name:
        return Binding("resource", value, name, type_, stored=element)
    wanted = structured_element(name)
    if wanted and wanted.replace(" ", "") == element.replace(" ", ""):
        return Binding("resource", value, name, type_, stored=element)
    if "Texture" in name.partition("<")[0]:
        how = "device.create_texture(format=..., width=..., height=..., usage=TextureUsage.shader_resource, data=...)"
        raise no_match(value, type_, f"copy it into a texture: {how}")
    expected = f", expected {wanted}" if wanted else ""
    advice = f"; pass {cast}" if wanted and (cast := _cast(value, wanted)) else ""
    raise no_match(value, type_, f"element type {element}{expected}{advice}")


def container_candidates(value: Value, pattern: Any, context: Context) -> list[SlangType]:
    element = _element_name(value)
    own = context.find(element)
    if own is None:
        return []
    kind = pattern_kind(pattern)
    name = pattern.full_name
    base = name.split("<")[0]
    if base in ("TensorView", "DiffTensorView"):
        return [context.find(f"{base}<{element}>")]  # type: ignore[list-item]
    if TENSOR_NAME.match(base):
        return tensor_candidates(element, value.shape, pattern, context)
    if base.endswith("StructuredBuffer"):
        found = context.find(f"{base}<{element}>")
        return [found] if found is not None else []
    if kind == "pointer":
        found = context.find(f"Ptr<{element}>") if value.kind == "tensor" else None
        return [found] if found is not None else []
    if kind == "vector":
        return _sized(own, pattern, "vector", context)
    if kind == "matrix":
        return _sized(own, pattern, "matrix", context)
    if kind == "array":
        return _array_candidates(own, pattern, context) or _array_by_shape(value, own, pattern, context)
    if kind in ("generic_type_parameter", "interface", "none"):
        whole = context.find(f"Tensor<{element}, {len(value.shape)}>") if value.shape else None
        return [own] + ([whole] if whole is not None else [])
    if kind == "struct":
        return [own]
    return []


def _sized(own: SlangType, pattern: Any, kind: str, context: Context) -> list[SlangType]:
    if own.kind == kind:
        return [own]
    if own.kind != "scalar":
        return []
    text = pattern.full_name.split("<", 1)[1].rstrip(">").split(",")
    sizes = [part.strip() for part in text[1:3]]
    if not all(size.isdigit() and int(size) > 0 for size in sizes[: 1 if kind == "vector" else 2]):
        return []
    sizes = sizes[: 1 if kind == "vector" else 2]
    found = context.find(f"{kind}<{own.full_name},{','.join(sizes)}>")
    return [found] if found is not None else []


def _array_candidates(own: SlangType, pattern: Any, context: Context) -> list[SlangType]:
    sizes: list[int] = []
    while pattern is not None and pattern_kind(pattern) == "array":
        sizes.append(pattern.element_count)
        pattern = pattern.element_type
    inner = pattern_kind(pattern) if pattern is not None else ""
    if own.kind == "scalar" and inner in ("vector", "matrix"):  # its sizes are stated, or cannot be known
        sized = _sized(own, pattern, inner, context)
        if not sized:
            return []
        own = sized[0]
    own_sizes = list(own.shape) if own.kind == "array" else []
    found: list[SlangType] = []
    for taken in range(len(own_sizes) + 1):  # how many of the declared sizes the element type already has
        missing = sizes[: len(sizes) - taken]
        if taken > len(sizes) or any(size <= 0 for size in missing):
            continue
        name = own.full_name + "".join(f"[{size}]" for size in reversed(missing))
        type_ = context.find(name)
        if type_ is not None:
            found.append(type_)
    return found


def _array_by_shape(value: Value, own: SlangType, pattern: Any, context: Context) -> list[SlangType]:
    """An array of open sizes and a stated element, `half[N]`: the last dimensions tell. `float[N]` is refused, as by
    shader-slang/slangpy: there it is `map` that tells an array from its elements."""
    sizes: list[int] = []
    while pattern is not None and pattern_kind(pattern) == "array":
        sizes.append(pattern.element_count)
        pattern = pattern.element_type
    if pattern is None or pattern.full_name != own.full_name or own.kind != "scalar" or own.full_name == "float":
        return []
    last = value.shape[len(value.shape) - len(sizes) :]
    if len(last) < len(sizes) or 0 in last or any(size not in (n, -1, 0) for n, size in zip(last, sizes, strict=True)):
        return []
    context.size_dependent = context.shape_dependent = True
    found = context.find(own.full_name + "".join(f"[{n}]" for n in reversed(last)))
    return [found] if found is not None else []


def _bind_tensor(value: Value, type_: SlangType, context: Context) -> Binding:
    if context.writable and not value.details["writable"] and not TENSOR.match(type_.full_name):
        raise no_match(value, type_, READ_ONLY)
    return bind_container(value, type_, context, value.details["type_name"])


register(("tensor",), _bind_tensor, container_candidates)
