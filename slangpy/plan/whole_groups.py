"""Whole groups: all threads of a group run the function to its end, those beyond the last invocation too.

Slang's `WaveTangledVector` needs that: waves multiply matrices together, in the memory of their group, and wait for each other.
Threads beyond the end run the last invocation again; they store nothing, and the gradients that come in are zero for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..compiler.modules.facts import reached_uses
from ..errors import KernelGenException
from .records import Derivative, Placed, Vectorized
from .slang_text import product

if TYPE_CHECKING:
    from .planner import Request

TYPE = "WaveTangledVector"
_OLDEST_NVRTC = (12, 5)
"""Slang's prelude has its matrices from this version on."""
_INSTEAD = "InlineVector does the same on every device"


def whole_group(request: Request, plan: Vectorized, limit: int) -> int:
    """Threads of a group of this call; 0: as many as usual, each for itself. Raises NotImplementedError where the device or
    the call cannot do it. limit: most that a group may have."""
    options = request.options
    uses = reached_uses(request.module, plan.resolved.call_name, TYPE)
    if not uses:
        return 0
    _check_call(request, plan)
    lanes, waves = _sizes(request, uses)
    _check_device(request.module.device, lanes)
    if options.bwds:
        _check_waves(waves)
    size = lanes * waves
    if options.thread_group_size is not None and product(options.thread_group_size) != size:
        raise KernelGenException(f"{TYPE} has {waves} waves of {lanes} threads here, but thread_group_size is {options.thread_group_size}")
    if size > limit:
        raise KernelGenException(f"{TYPE} has {waves} waves of {lanes} threads here; a group of this device has at most {limit} threads")
    return size


def _sizes(request: Request, uses: list[tuple[str, str]]) -> tuple[int, int]:
    """The threads of a wave and the waves of a group, as all uses say that say it."""
    layout = request.module.layout
    found = {sizes for use in uses if (sizes := _sizes_of(layout, *use)) is not None}
    if len(found) == 1:
        return found.pop()
    if found:
        said = " and ".join(f"{waves} of {lanes} threads" for lanes, waves in sorted(found))
        raise KernelGenException(f"a kernel has one number of waves, but {TYPE} is used for {said}")
    size = request.options.thread_group_size
    if size is None:
        raise KernelGenException(
            f"how many waves {TYPE} has here is not known: write its last two parameters as numbers or constants, or say how many "
            "threads they are together, .thread_group_size((32 * waves, 1, 1))"
        )
    lanes = getattr(request.module.device.info.limits, "min_wave_size", 0) or 32
    return lanes, product(size) // lanes


def _sizes_of(layout: Any, text: str, alias: str) -> tuple[int, int] | None:
    """Its last two parameters, where they are numbers or constants; else what Slang makes of the alias."""
    parameters = text.removesuffix(">").rsplit(",", 2)[1:]
    lanes, waves = (_value(layout, parameter.strip()) for parameter in parameters) if len(parameters) == 2 else (0, 0)
    if not (lanes and waves) and alias:
        type_ = layout.find_type_by_name(alias)
        return _sizes_of(layout, type_.full_name, "") if type_ is not None else None
    return (lanes, waves) if lanes and waves else None


def _value(layout: Any, number: str) -> int:
    """Of a constant; 0 of what Slang does not know outside of the type it stands in."""
    if number.isdigit():
        return int(number)
    array = layout.find_type_by_name(f"float[{number}]")
    return int(array.shape[0]) if array is not None and array.shape and array.shape[0] > 0 else 0


def _check_device(device: Any, lanes: int) -> None:
    target = device.compile_target
    has = getattr(device.info.limits, "min_wave_size", lanes)
    if target.format == "cuda":
        version = [part for part in device.compiler_fingerprint.split()[1].split(".") if part.isdigit()]
        lacks = f"NVRTC {'.'.join(version)} is older than 12.5" if version and tuple(map(int, version)) < _OLDEST_NVRTC else ""
    elif target.format == "spirv":
        has_tiles = "spvCooperativeMatrixKHR" in target.capabilities
        lacks = "" if has_tiles else "it lacks VK_KHR_cooperative_matrix, with tiles of 16 x 16 halves"
    else:
        lacks = "cuda and vulkan devices have matrix products of waves"
    if not lacks and has != lanes:
        lacks = f"its waves have {has} threads, and the type says {lanes}"
    if lacks:
        raise NotImplementedError(f"{TYPE} cannot run on this device: {lacks}. {_INSTEAD}")


def _check_waves(waves: int) -> None:
    """For the gradients of weights each wave keeps two matrices in the group's memory; Slang 2026.12 counts one of them once."""
    if waves > 1:
        raise NotImplementedError(
            f"{TYPE} has {waves} waves here, and Slang's SharedMemorySize reserves too little memory for the gradients of more than one. "
            "Write 1 for its last parameter, and for the number of waves in SharedMemorySize"
        )


def _check_call(request: Request, plan: Vectorized) -> None:
    options = request.options
    if options.fwds or options.second:
        what = "forward-mode" if options.fwds else "second"
        raise NotImplementedError(f"{TYPE} has no {what} derivatives: Slang takes them for zero. {_INSTEAD}, with derivatives")
    if options.rays is not None or options.call_group_shape:
        what = "ray_tracing" if options.rays is not None else "call_group_shape"
        raise NotImplementedError(f"{what} and {TYPE} do not go together: the type decides the groups. {_INSTEAD}, in any groups")
    for placed in plan.placed:
        if placed.binding.rank >= 0 and placed.writes:
            raise NotImplementedError(
                f"{placed.path}: functions that use {TYPE} write no tensors themselves, because groups are run whole, beyond the last "
                f"invocation; return the value, or make it an out parameter. {_INSTEAD}, with such tensors"
            )
        if _is_weights(placed) and placed.map:
            raise NotImplementedError(
                f"{placed.path}: a wave multiplies by the same matrix, and here each invocation has a {placed.binding.type_name} of "
                f"its own. {_INSTEAD}, with such tensors"
            )
    if options.bwds and options.deterministic:
        raise NotImplementedError(f"{TYPE} adds to the gradients of weights in any order. {_INSTEAD}, deterministically")


def _is_weights(placed: Placed) -> bool:
    return placed.binding.type_name.startswith("DiffTensor<")


def addressed(plan: Vectorized) -> Vectorized:
    """The function takes addresses of tensors with gradients, so these are contiguous."""
    return replace(plan, placed=tuple(replace(p, addressed=True) if _is_weights(p) else p for p in plan.placed))


def check_whole_gradients(plan: Vectorized, grads: dict[str, Derivative]) -> None:
    """Raises ValueError where a tensor whose address a backward call takes has no gradient to add to."""
    for placed in plan.placed:
        if _is_weights(placed) and not (placed.ident in grads and grads[placed.ident].target):
            raise ValueError(
                f"{placed.path}: {TYPE} adds to the gradients of all its weights, and this tensor has none; attach one with "
                "with_grads(), or make it require grad"
            )
