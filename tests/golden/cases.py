"""The calls whose kernels are kept, and the source of their kernels for each target, without any device that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy
from slangpy.plan.kernels import default_variant
from slangpy.run.plans import PlanView

from .code_only import CodeOnly, plan_of

FOLDER = Path(__file__).parent
KERNELS = FOLDER / "kernels"
CAPABILITIES = {
    "cpp": (),
    "cuda": (),
    "spirv": ("spvAtomicFloat32AddEXT", "spvGroupNonUniformArithmetic", "spvGroupNonUniformVote"),
}
GENERAL = 0


@cache
def null_device() -> spy.Device:
    """The device of the arguments: their kernels are generated for others."""
    return spy.Device(type=spy.DeviceType.null, enable_hot_reload=False)


@cache
def module(target: str, name: str = "golden") -> spy.Module:
    return spy.Module.load_from_file(CodeOnly(target, CAPABILITIES[target]), FOLDER / f"{name}.slang")


def tensor(*shape: int, grads: bool = False, dtype: Any = "float") -> spy.Tensor:
    made = spy.Tensor.zeros(null_device(), shape, dtype)
    return made.with_grads() if grads else made


def inout(*shape: int) -> spy.Tensor:
    """A tensor whose gradient is read from one place and added to another."""
    grads = [spy.Tensor.zeros(null_device(), shape, "float") for _ in range(2)]
    return tensor(*shape).with_grads(*grads)


def texture(*shape: int, format: Any = spy.Format.rgba32_float, writable: bool = False) -> spy.Texture:
    usage = spy.TextureUsage.shader_resource
    if writable:
        usage |= spy.TextureUsage.unordered_access
    kind = {1: spy.TextureType.texture_1d, 2: spy.TextureType.texture_2d, 3: spy.TextureType.texture_3d}[len(shape)]
    sizes = dict(zip(("width", "height", "depth"), reversed(shape), strict=False))
    return null_device().create_texture(type=kind, format=format, usage=usage, **sizes)


def buffer(count: int) -> spy.Buffer:
    return null_device().create_buffer(size=4 * count, usage=spy.BufferUsage.shader_resource)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


Call = Callable[[Any], tuple[Any, tuple[Any, ...], dict[str, Any]]]
CALLS: dict[str, Call] = {
    # values and views
    "numbers": lambda m: (m.poly, (2, 8, 3.0), {}),
    "elements": lambda m: (m.poly, (2.0, 8.0, tensor(5)), {}),
    "elements_2d": lambda m: (m.poly, (2.0, tensor(5, 1), tensor(5, 4)), {}),
    "elements_given": lambda m: (m.poly, (2.0, 8.0, tensor(5)), {"_result": tensor(5)}),
    "elements_numpy": lambda m: (m.poly, (2.0, 8.0, zeros(5)), {"_result": "numpy"}),
    "mapped": lambda m: (m.poly.map(x=(1, 0)), (), {"a": 1.0, "b": 2.0, "x": tensor(2, 3)}),
    "vectors": lambda m: (m.shade, (tensor(5, 3), 2.0), {}),
    "arrays": lambda m: (m.sum4, (tensor(5, 4),), {}),
    "matrices": lambda m: (m.twice, (tensor(5, 2, 3),), {}),
    "outputs": lambda m: (m.split, (tensor(5), tensor(5), tensor(5)), {}),
    "structs": lambda m: (m.lit, ({"color": tensor(5, 3), "power": 1.0}, tensor(5)), {}),
    "struct_in_part": lambda m: (m.lit, ({"power": 1.0}, tensor(5)), {}),
    "method": lambda m: (m.Light.at, ({"color": [1.0, 1.0, 1.0], "power": 1.0}, tensor(5)), {}),
    "constructor": lambda m: (m.Light._constructor(), ([1.0, 1.0, 1.0], tensor(5)), {}),
    "list": lambda m: (m.poly, (1.0, 2.0, [1.0, 2.0, 3.0]), {}),
    "bfloat16": lambda m: (m.narrow.convert("safe"), (tensor(5, dtype="BFloat16"),), {}),
    "references": lambda m: (m.split, (1.0, spy.floatRef(), spy.floatRef(2.0)), {}),
    "constants": lambda m: (m.stepped.constants({"STEPS": 3}).prelude("// stated before the kernel"), (tensor(5),), {}),
    "pointer": lambda m: (m.pointed, (buffer(8), tensor(5, dtype="int")), {}),
    # generators
    "grid": lambda m: (m.place, (spy.grid((4, 5)),), {}),
    "call_id": lambda m: (m.place, (spy.call_id(),), {"_result": tensor(4, 5, dtype="int")}),
    "thread_id": lambda m: (m.thread, (spy.thread_id(),), {"_result": tensor(4, dtype="int")}),
    "wang_hash": lambda m: (m.hashed, (spy.wang_hash(1, seed=3),), {"_result": tensor(4, dtype="uint")}),
    "rand_float": lambda m: (m.random, (spy.rand_float(0, 1, dim=2),), {"_result": tensor(4)}),
    # whole tensors and resources
    "tensor_read": lambda m: (m.looked, (tensor(8), tensor(5, dtype="int")), {}),
    "tensor_2d": lambda m: (m.neighbours, (tensor(5, 5), spy.grid((5, 4))), {}),
    "tensors": lambda m: (m.of_four, (tensor(8), tensor(8), tensor(8), tensor(8), tensor(5, dtype="int")), {}),
    "tensor_written": lambda m: (m.copied, (tensor(8), tensor(8), tensor(5, dtype="int")), {}),
    "tensor_interface": lambda m: (m.gather, (tensor(8), tensor(5, dtype="int")), {}),
    "tensor_atomic": lambda m: (m.counted, (tensor(8), tensor(5)), {}),
    "buffer": lambda m: (m.buffered, (buffer(8), tensor(5, dtype="int")), {}),
    "handle": lambda m: (m.handled, (buffer(8).descriptor_handle_ro, tensor(5, dtype="int")), {}),
    "texture": lambda m: (m.sampled, (texture(4, 5), tensor(5, dtype="int")), {}),
    "texels": lambda m: (m.twice4, (texture(4, 5),), {"_result": "texture"}),
    "texels_unorm": lambda m: (
        m.twice4, (texture(4, 5, format=spy.Format.rgba8_unorm),),
        {"_result": texture(4, 5, format=spy.Format.rgba8_unorm, writable=True)},
    ),
    # lists of containers
    "list_of_tensors": lambda m: (m.looked, ([tensor(8), tensor(8)], tensor(2, dtype="int")), {}),
    "list_of_views": lambda m: (m.poly, (1.0, 2.0, [tensor(8), tensor(8)]), {}),
    "list_of_buffers": lambda m: (m.buffered, ([buffer(8), buffer(8)], tensor(2, dtype="int")), {}),
    "list_of_generators": lambda m: (m.hashed, ([spy.wang_hash(1, seed=3), spy.wang_hash(1, seed=4)],), {"_result": tensor(2, dtype="uint")}),
    # groups
    "groups": lambda m: (m.poly.call_group_shape((2, 4)), (1.0, 2.0, tensor(5, 4)), {}),
    "position": lambda m: (m.called, (tensor(5, dtype="int"),), {}),
    "position_groups": lambda m: (m.called.call_group_shape((2,)), (tensor(5, dtype="int"),), {}),
    # backward
    "bwds_elements": lambda m: (m.poly.bwds, (2.0, 8.0, tensor(5, grads=True), tensor(5, grads=True)), {}),
    "bwds_broadcast": lambda m: (
        m.poly.bwds, (spy.diffPair(2.0), tensor(1, grads=True), tensor(5, grads=True), tensor(5, grads=True)), {}
    ),
    "bwds_rows": lambda m: (
        m.poly.bwds, (1.0, tensor(1, 4, grads=True), tensor(5, 4, grads=True), tensor(5, 4, grads=True)), {}
    ),
    "bwds_windows": lambda m: (  # each shares its last element with the next one
        m.poly.bwds, (1.0, 2.0, tensor(5, grads=True).view((2, 3), (2, 1)), tensor(2, 3, grads=True)), {}
    ),
    "bwds_vectors": lambda m: (m.shade.bwds, (tensor(5, 3, grads=True), 2.0, tensor(5, 3, grads=True)), {}),
    "bwds_struct": lambda m: (
        m.colored.bwds,
        ({"color": tensor(5, 3, grads=True), "power": tensor(1, grads=True)}, 1.0, tensor(5, 3, grads=True)), {},
    ),
    "bwds_outputs": lambda m: (m.split.bwds, (tensor(5, grads=True), tensor(5, grads=True), inout(5)), {}),
    "bwds_tensor": lambda m: (
        m.gather.bwds, (tensor(8, grads=True), tensor(5, dtype="int"), tensor(5, grads=True)), {}
    ),
    "bwds_tensor_stated": lambda m: (
        m.gather_stated.bwds, (tensor(8, grads=True), tensor(5, dtype="int"), tensor(5, grads=True)), {}
    ),
    "bwds_halves": lambda m: (
        m.halves.bwds,
        (tensor(1, grads=True, dtype="half"), tensor(5, grads=True, dtype="half"), tensor(5, grads=True, dtype="half")),
        {},
    ),
    # forward mode
    "fwds_elements": lambda m: (m.poly.fwds, (2.0, 8.0, tensor(5, grads=True)), {}),
    "fwds_outputs": lambda m: (m.split.fwds, (tensor(5, grads=True), tensor(5, grads=True), tensor(5, grads=True)), {}),
    "fwds_pair": lambda m: (m.poly.fwds, (2.0, spy.diffPair(1.0, 1.0), 3.0), {}),
    "fwds_tensor": lambda m: (m.gather.fwds, (tensor(8, grads=True), tensor(5, dtype="int")), {}),
    # second derivatives
    "second": lambda m: (
        m.poly._bwds_twice, (2.0, 8.0, inout(5), inout(5)), {}
    ),
}  # fmt: skip
EXACT = ("bwds_tensor", "bwds_rows", "bwds_halves")
"""Calls whose kernels are kept with sums that do not depend on an order, too."""
ASKS = ("position", "position_groups")
"""Calls of functions that ask where they are."""
CHECKED = ("tensor_written", "bwds_tensor")
"""Calls whose kernels are kept with checks of what they index, too."""
MORE = {
    "elements_2d": {
        "64-bit indices": 2, "any strides, several elements": 4,
        "patches, x transposed": 4 << 55 | 1 << 59 | 1 << 61 | 3 << 5, "patches of columns": 1 << 55 | 1 << 61,
    },
    "vectors": {"neighbours together": 5 | 1 << 3},
    "tensor_2d": {"patches": 4 << 55 | 1 << 61},
    "tensors": {"several invocations of a thread": 4 | 1 << 61},
    "bwds_rows": {"a repeated row": 3 << 3 | 1 << 5 | 1 << 7},
    "bwds_vectors": {"one row for all": 2 << 3 | 1 << 5},
    "bwds_tensor": {"copies of gradients": 1 << 62, "copies added up": 1 << 62 | 1 << 63},
}
"""Other variants: the bits are those of VariantKey in src/native/call/plan/plan.h."""
GPU_FORMS = 4 | 15 << 55 | 1 << 62


def sources(target: str, name: str) -> dict[str, str]:
    """Kernels of a call by the name of their variant."""
    function, arguments, named = CALLS[name](module(target, "where" if name in ASKS else "golden"))
    plan = plan_of(function, arguments, named)
    guessed = default_variant(plan.request, plan.planned())
    found = {"as these arguments are": plan.kernels.source(guessed)}
    if guessed != GENERAL:
        found["any strides"] = plan.kernels.source(GENERAL)
    more = {what: key for what, key in MORE.get(name, {}).items() if target != "cpp" or not key & GPU_FORMS}
    found.update({what: plan.kernels.source(key) for what, key in more.items()})
    if name in CHECKED:
        plan = PlanView(replace(plan.request, options=replace(plan.request.options, check_bounds=True)))
        found["checked"] = plan.kernels.source(guessed)
    if name in EXACT:
        found.update(exact_sources(function, arguments, named))
    return found


def exact_sources(function: Any, arguments: Any, named: Any) -> dict[str, str]:
    """The kernel that adds into exact sums, and those that bring the sums into the gradients."""
    plan = plan_of(function, arguments, named, deterministic=True)
    found = {"exact sums": plan.kernels.source(default_variant(plan.request, plan.planned()))}
    planned = plan.planned()
    grads = planned.derivatives
    for placed in planned.vectorized.placed:
        if placed.ident in grads and grads[placed.ident].sums is not None:
            found[f"exact sums of {placed.path}"] = plan.kernels.source(1 << 63 | placed.leaf)
    return found


def text_of(target: str, name: str) -> str:
    """The file of a call and target. Lines that are made of what the machine has are not in it."""
    parts = [f"// {name} for {target}: {variant}\n{source}" for variant, source in sources(target, name).items()]
    return "\n".join(parts)


def exists(target: str, name: str) -> bool:
    """The CPU has no textures."""
    return target != "cpp" or not name.startswith("tex")


def all_files() -> dict[Path, tuple[str, str]]:
    """Path of each file, with its target and call."""
    return {KERNELS / target / f"{name}.slang": (target, name) for target in CAPABILITIES for name in CALLS
            if exists(target, name)}  # fmt: skip


__all__ = ["CALLS", "CAPABILITIES", "KERNELS", "all_files", "sources", "text_of"]
