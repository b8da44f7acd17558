"""What the Slang library is told by a generated module: the device, sums beside gradients, and checks."""

from __future__ import annotations

from ...reflection import SlangType
from ..derive.accumulate import atomic_hook
from ..derive.gradients import NONE
from ..derive.sums import PRIVATE
from ..records import Placed
from ..trampoline import Kernel
from ..trampoline.variant import LINEAR


def library_settings(kernel: Kernel) -> list[str]:
    """Exports that tell the Slang library about the device and about elements it cannot add atomically by itself."""
    lines = atomic_hook(_atomic_types(kernel))
    if mode := sum_mode(kernel):
        lines.append(f"export static const int _spy_sum_mode = {mode};")
    if any(_is_structure(placed) for placed in kernel.facts.plan.placed):
        lines.append("export static const bool _spy_ray_queries = true;")
    if not (lines or kernel.facts.options.bwds) or "spirv" not in kernel.facts.capabilities:
        return lines
    for name, capability, default in (
        ("_spy_has_atomic_f32", "spvAtomicFloat32AddEXT", True),
        ("_spy_has_atomic_f64", "spvAtomicFloat64AddEXT", False),
        ("_spy_has_atomic_f16", "spvAtomicFloat16AddEXT", False),
        ("_spy_has_wave_sum", "spvGroupNonUniformArithmetic spvGroupNonUniformVote", True),
    ):
        present = kernel.facts.capabilities.issuperset(capability.split())
        if present != default:
            lines.append(f"export static const bool {name} = {'true' if present else 'false'};")
    return lines


def _is_structure(placed: Placed) -> bool:
    """Whether it is the field of a rays::Scene that is for the driver's ray queries (rays/scene.py: False in other scenes)."""
    value = placed.binding.value
    return placed.path.endswith("._spy_structure") and value is not None and value.kind == "int"


def _atomic_types(kernel: Kernel) -> list[SlangType]:
    """Element types of gradients, and of AtomicTensor arguments."""
    found: list[SlangType] = []
    for placed in kernel.facts.plan.placed:
        binding, grad = placed.binding, kernel.facts.grads.get(placed.ident, NONE)
        program = binding.type.program
        element = program.find_type_by_name(binding.stored) if binding.rank >= 0 else binding.type
        if binding.type_name.startswith("AtomicTensor<") and element is not None:
            found.append(element)
        if not grad.target or grad.forward or element is None:
            continue
        derivative = element.derivative
        assert derivative is not None
        stored = derivative.full_name if grad.target == "reference" else grad.grad_type
        if stored == "BFloat16":
            continue  # has a function of its own
        found.append(derivative if stored == derivative.full_name else SlangType(stored, source=program))
    return found


def sum_mode(kernel: Kernel) -> int:
    """Which gradients this kernel adds to sums beside them: sums.HALF, EXACT, PRIVATE or none (0)."""
    if kernel.facts.variant.privatized:
        return PRIVATE
    modes = [
        grad.sums.mode
        for placed in kernel.facts.plan.placed
        if (grad := kernel.facts.grads.get(placed.ident, NONE)).sums is not None
        and not (placed.binding.rank < 0 and placed.binding.kind == "view" and kernel.access_of(placed) == LINEAR)
    ]
    return max(modes, default=0)


RESET = "_spy_reset_statics();"
"""Makes the variables of a thread what they were at `_spy_keep_statics()` (compiler/text/statics.py)."""


def statics_functions(kernel: Kernel) -> list[str]:
    """What marks these places."""
    names = ("_spy_keep_statics", "_spy_reset_statics") if kernel.facts.resets_statics else ()
    return [f'void {name}() {{ __intrinsic_asm "{name}()"; }}' for name in names]


def set_globals(kernel: Kernel) -> list[str]:
    """Statements at the begin of the entry point that fill the library's variables."""
    lines = ["_spy_bounds = _call._bounds;"] if kernel.facts.checks_bounds else []
    mode = sum_mode(kernel)
    if mode:
        lines.append("_spy_sum_table = _call._sum_table;")
    if mode == PRIVATE:
        lines.append(f"_spy_choose_copy(_group.x * {kernel.facts.variant.group_size} + _thread);")
    return [*lines, "_spy_keep_statics();"] if kernel.facts.resets_statics else lines
