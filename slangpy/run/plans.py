"""Plans as running calls have them: from disk or made, with their kernels, for native code and for users."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from .. import _native
from ..compiler.modules.reload import code_lock
from ..config import config
from ..errors import PLAIN_ERRORS
from ..plan import layout as layout_stage, store as plan_disk
from ..plan.bind.custom import mentions_custom, release
from ..plan.emit.sums import gradient_class
from ..plan.emit.variants import decode_variant
from ..plan.explain import table
from ..plan.kernels import Kernels, default_variant, group_size
from ..plan.planner import Planned, Request, decode, make_plan
from ..plan.records import Argument, Options
from ..plan.specification import LeafSpec, NativePlan, Specification
from .callbacks import Callbacks
from .debug import bindings_of
from .globals import warn_of_unset
from .results import result_mode, torch_leaves

_native._set_check_bounds(config.check_bounds)  # the environment may ask for it


def request_of(
    node: Any, arguments: tuple[Argument, ...], mode: str, result_class: Any = None, deterministic: bool = False
) -> Request:
    """What decides the plan of a call of `node`."""
    options: Options = replace(node.options, deterministic=True) if deterministic else node.options
    if config.check_bounds or dict(node.module.device.compile_target.defines).get("SPY_BOUNDS_CHECKS") == "1":
        options = replace(options, check_bounds=True)
    return Request(node.module, node.core, node.label, options, arguments, mode, result_class)


class PlanView:
    """One plan: its arguments as described, and, once the compiler was needed, every stage's record."""

    spec: Specification

    def __init__(self, request: Request) -> None:
        self.request = request
        this = weakref.ref(self)  # no cycles: what a reload replaces goes at once, with all that Slang made for it
        self.kernels = Kernels(request, lambda: this().planned())  # type: ignore[union-attr]
        self._callbacks: weakref.ref[Callbacks] | None = None
        self.result_type: Any = None
        self.tangent_type: Any = None
        self._planned: Planned | None = None
        self._has_marshalls = mentions_custom(request.arguments) or request.result_mode == "custom"
        self.graph: Any = None
        """What autograd keeps for calls of this plan."""

    @property
    def label(self) -> str:
        return self.request.label

    @property
    def module(self) -> Any:
        return self.request.module

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.request.arguments

    def for_arguments(self, description: list[Any]) -> PlanView:
        """The same plan as other values of the same key see it: their shapes are in its table. Runs the stages."""
        view = PlanView(replace(self.request, arguments=decode(description)))
        view.planned()
        return view

    # --- planning
    def planned(self) -> Planned:
        """Runs the stages up to code generation; needs the compiler."""
        if self._planned is None:
            with code_lock:
                self._planned = make_plan(self.request)
        return self._planned

    def _warn(self) -> None:
        for text in self.spec.notes.warnings:
            warnings.warn(text, RuntimeWarning, stacklevel=5)

    def build_spec(self) -> None:
        """The native plan, without kernels: native code asks for the one that the values at hand need."""
        planned, layout = self.planned(), self.kernels.layout()
        self.spec = layout_stage.specification(self.request, planned, layout, self.kernels.program.find_element_layout)
        self.result_type = planned.resolved.return_type
        if self.spec.result.tangent is not None:
            self.tangent_type = self.result_type.derivative
        self._warn()

    def native_spec(self) -> NativePlan:
        """What native code takes."""
        device = self.module.device
        unchecked = self.request.options.bwds and getattr(device, "check_gradients", False)
        callbacks = Callbacks(self)  # held by the native plan, and holding this one
        self._callbacks = weakref.ref(callbacks)
        return NativePlan(self.spec, device, callbacks, bool(unchecked))

    # --- disk
    def _disk_key(self) -> str:
        return plan_disk.disk_key(self.request)

    def store(self) -> None:
        """Keeps the plan and its kernels' names on disk."""
        options = self.request.options
        if not self.module._cacheable or options.conformances or self._has_marshalls or options.rays is not None:
            return
        if not self.kernels.is_current:
            return  # a reload came between planning and building: the key would be that of the new code
        if options.second and options.preludes:
            return  # what a prelude includes was read by another process, which does not say
        plan = plan_disk.StoredPlan(self.spec, self.kernels.variants, self.result_type, self.tangent_type)
        plan_disk.store(self.module, self._disk_key(), plan)

    def restore(self) -> bool:
        """Takes the plan from disk; False when it (or a kernel of it) is not there."""
        if not self.module._cacheable or self._has_marshalls:
            return False
        found = plan_disk.load(self.module, self._disk_key(), self.request.kernel_label)
        if found is None:
            return False
        self.spec = found.spec
        self.kernels.take(found.variants)
        self.result_type, self.tangent_type = found.result_type, found.tangent_type
        self._warn()
        return True

    def torch_leaves(self) -> list[LeafSpec]:
        """The native plans of the torch tensors among the arguments, in the order of the walk."""
        unused = LeafSpec(reads=False)
        leaves = self.spec.leaves
        return [leaves[i] if i < len(leaves) else unused for i in torch_leaves(self.arguments)]

    # --- what users see (debug_build_call_data)
    def explain(self, shapes: Sequence[Any] = ()) -> str:
        """How each argument is bound, as a table. shapes: of the leaves, if not those of the call that was planned."""
        if self._planned is None:
            return table(self.arguments, None, shapes=shapes)
        plan, grads, request = self._planned.vectorized, self._planned.derivatives, self.request
        if not request.options.bwds:
            return table(self.arguments, plan, shapes=shapes)
        shape = decode_variant(default_variant(request, self._planned), plan, request.on_cpu, group_size(request, self._planned))
        classes = {p.ident: gradient_class(p, grads[p.ident], shape) for p in plan.placed if p.ident in grads}
        mode = "deterministic (exact sums)" if request.options.deterministic else "in any order"
        return f"{table(self.arguments, plan, classes, shapes)}\ngradients: {mode}"

    @property
    def code(self) -> str:
        """Generated Slang."""
        return self.kernels.code

    @property
    def call_dimensionality(self) -> int:
        return self.spec.call_rank

    @property
    def call_mode(self) -> str:
        return self.request.call_mode

    @property
    def pipeline(self) -> Any:
        """The kernel; equal generated code gives the same object."""
        return self.kernels.first.kernel

    @property
    def debug_only_bindings(self) -> Any:
        """How each argument is bound: `.args[i]` and `.kwargs[name]`, see `debug.DebugBinding`."""
        return bindings_of(self.planned().vectorized)

    def call(self, options: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with this plan's modifiers; `options` is not used: values of globals belong to nodes."""
        del options
        ours = [field.name for field in fields(Options) if field.name not in ("deterministic", "check_bounds")]
        changes = {name: getattr(self.request.options, name) for name in ours}  # the device says the other two
        return self.request.function.node()._with(**changes)(*args, **kwargs)

    @property
    def last_call_shape(self) -> Any:
        callbacks = self._callbacks() if self._callbacks is not None else None
        if callbacks is None:
            raise RuntimeError(f"{self.label}: no call has run with this plan since its code was made; call the function first")
        return _native.Shape(callbacks.native.last_call_shape)


def plan_call(
    node: Any, description: list[Any], result_type: Any, key: bytes, deterministic: bool = False
) -> NativePlan:
    """Plans one kind of call: from disk where it is known, else through all stages. Called by native code on a miss."""
    del key
    try:
        return _plan_call(node, description, result_type, deterministic)
    except (ValueError, TypeError, RuntimeError) as error:
        if node.label in str(error) or type(error) not in PLAIN_ERRORS:
            raise
        raise type(error)(f"{node.label}: {error}") from None


def _plan_call(node: Any, description: list[Any], result_type: Any, deterministic: bool) -> NativePlan:
    with code_lock:
        node.module._follow_compiler()
        arguments = decode(description)
        mode = result_mode(result_type, node, arguments)
        result_class = node.options.return_type if result_type is None else result_type
        view = PlanView(request_of(node, arguments, mode, result_class, deterministic))
        if not view.restore():
            view.build_spec()
            release(arguments)
        warn_of_unset(node, view.spec.notes.globals)
        return view.native_spec()


__all__ = ["PlanView", "plan_call", "request_of"]
