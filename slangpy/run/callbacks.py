"""What native code asks of Python while a planned call runs: kernels, results, errors, and registered classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..compiler.modules.reload import code_lock
from ..errors import ShapeError
from ..plan.kernels import Variant
from ..plan.textures import make_texture
from ..tensor import Tensor
from .custom import CustomLeaves
from .globals import raise_unset, raise_unset_tensor
from .kept_memory import keep, keep_written, memory_of
from .results import dual_result
from .torch_side import torch_side

if TYPE_CHECKING:
    from .plans import PlanView


class Callbacks:
    """The Python side of one native plan; `plan` is what users see of it."""

    def __init__(self, plan: PlanView) -> None:
        self.plan = plan
        self.label = plan.label
        self.native: Any = None
        self._custom: CustomLeaves | None = None

    # --- kernels
    def attach(self, native: Any) -> None:
        """Gives the native plan the kernels that are there."""
        self.native = native
        for key, variant in self.plan.kernels.variants.items():
            self._give(key, variant)

    def _give(self, key: int, variant: Variant) -> None:
        needs_globals = bool(variant.built.used_globals or self._unset_tensors())
        self.native.add_variant(key, variant.built.kernel, *variant.items, needs_globals)

    def _unset_tensors(self) -> Any:
        """Tensors in globals, which nothing has set where a node has no `set` or `write`."""
        return () if self.plan.module.device.info.type.name == "null" else self.plan.spec.notes.tensors

    def build_variant(self, key: int) -> None:
        """Called when a launch needs a kernel that is not there yet."""
        with code_lock:
            self._give(key, self.plan.kernels.build(key))
            self.plan.store()

    # --- registered classes
    def _leaves(self) -> CustomLeaves:
        if self._custom is None:
            request = self.plan.request
            plan = self.plan.planned().vectorized
            self._custom = CustomLeaves(self.label, request.module.device, plan, request.call_mode)
        return self._custom

    def custom_shape(self, leaf: int, value: Any) -> tuple[int, ...]:
        return self._leaves().shape(leaf, value)

    def custom_calldata(self, leaf: int, value: Any) -> Any:
        return self._leaves().calldata(leaf, value, self.native.last_call_shape)

    def custom_create(self) -> Any:
        return self._leaves().create_output(self.native.last_call_shape)

    def custom_result(self, value: Any, data: Any) -> Any:
        return self._leaves().read_output(value, data, self.native.last_call_shape)

    def custom_read(self, leaf: int, value: Any, data: Any) -> None:
        self._leaves().read(leaf, value, data, self.native.last_call_shape)

    # --- results
    def make_tensor(self, buffer: Any, shape: tuple[int, ...], is_tangent: bool = False) -> Any:
        plan = self.plan
        result = plan.spec.result
        shown = result.tangent if is_tangent else result
        layout = None if shown is None else shown.element
        return Tensor._from_result(buffer, plan.tangent_type if is_tangent else plan.result_type, shape, layout)

    def make_dual(self, primal: Any, tangent: Any) -> Any:
        """What a forward-mode call returns."""
        return dual_result(self.plan.spec.result.mode, primal, tangent)

    def keep_memory(self, result: Any, objects: list[Any], globals_: Any) -> Any:
        """What the call gave or wrote holds addresses, and keeps alive what they point to. `objects`: of the leaves."""
        spec, memory = self.plan.spec, memory_of(objects, globals_)
        for leaf in spec.result.keeps:
            if leaf >= 0:
                written = spec.leaves[leaf]
                keep_written(objects[leaf], getattr(written.kind, "out", None), memory, written.reads)
            elif result is not None:
                result = keep(result, spec.result.element, memory)
        return result

    def torch_like(self) -> Any:
        """A torch tensor where results go that no torch argument gives a device."""
        return torch_side().empty(self.plan.module.device)

    def make_texture(self, shape: tuple[int, ...]) -> Any:
        return make_texture(self.plan.module.device, self.plan.spec.result.format, shape, f"result of {self.label}")

    # --- errors
    def _expected(self, leaf: int) -> str:
        """Programs look for "the expected shape" of arrays, and for "expected shape" of torch tensors."""
        values = (value for argument in self.plan.arguments for value in argument.value.walk())
        return "expected" if any(v.leaf == leaf and v.details.get("torch") for v in values) else "the expected"

    def _shown(self, leaf: int, shape: Any) -> str:
        """A shape, and of a vector or matrix its class: its components may be what makes a dimension."""
        values = (value for argument in self.plan.arguments for value in argument.value.walk())
        maths = [value.summary() for value in values if value.leaf == leaf and value.kind in ("vector", "matrix")]
        return maths[0] if maths and not len(shape) else str(list(shape))

    def fail_shape(self, kind: str, leaf: int, dim: int, got: int, expected: int, shapes: list[Any]) -> None:
        leaves = self.plan.spec.leaves
        spec = leaves[leaf]
        name = spec.name
        if kind == "mismatch":
            text = f"Shape mismatch for {name} between value ({got}) and call ({expected}) in call dimension {dim}"
        elif kind == "rank":
            text = f"{name} has {got} dimensions, expected {expected}"
        else:
            text = (
                f"{name} of shape {list(shapes[leaf])} does not match slang type {spec.type}: size {got} of dimension "
                f"{dim} does not match {self._expected(leaf)} shape: the parameter takes {expected} there"
            )
        named = [(i, leaves[i].name) for i in range(min(len(shapes), len(leaves))) if leaves[i].name]
        shown = ", ".join(f"{name} {self._shown(i, shapes[i])}" for i, name in named)
        self.plan.planned()  # a plan from disk does not know yet how arguments are bound
        raise ShapeError(f"{self.label}: {text}\nshapes: {shown}\n{self.plan.explain(shapes)}")

    def fail_device(self, leaf: int, what: str, theirs: str) -> None:
        name = self.plan.spec.leaves[leaf].name
        is_tensor = what in ("tensor", "grad_in", "grad_out", "the tensor")
        advice = (
            "copy it with Tensor.from_numpy(device, tensor.to_numpy())" if is_tensor else "create it on that device"
        )
        ours = self.plan.module.device.info.api_name
        both = f"; both are {ours} devices, made by two calls of create_device" if theirs == ours else ""
        raise ValueError(
            f"{self.label}: {what} of argument {name} is on another device ({theirs}) than the "
            f"module's {ours} device{both}; {advice}"
        )

    def fail_unset(self) -> None:
        """Called when a kernel that needs global resources has no `set` or `write`."""
        layout = self.plan.kernels.first.layout
        for place in self._unset_tensors():
            raise_unset_tensor(self.label, layout, place)
        raise_unset(self.label, layout, self.plan.kernels.used_globals[0])


__all__ = ["Callbacks"]
