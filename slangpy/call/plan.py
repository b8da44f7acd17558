"""A plan as Python keeps it: the records of its stages, and what native code asks back for (variants, errors, results)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from .. import _native
from ..config import config
from ..errors import BoundVariableException, KernelGenException, ResolveException, ShapeError
from ..marshall.views import VIEW
from ..reload import code_lock
from . import compile as compile_stage, layout as layout_stage, plan_disk
from .backward_check import warn_lost_shares
from .child_link import ChildLink
from .constants import render_constants
from .custom import CustomLeaves, mentions_custom, release, with_class
from .device_types import check_bfloat, check_pointer_sized
from .emit import emit
from .emit_backward import gradient_class, group_limit
from .explain import table
from .forward_check import check_forward
from .forward_mode import dual_result, has_tangent, tangents
from .gradients import carriers, derivatives, has_storage
from .groups import asks_position, tile_shape
from .ir import Argument, Derivative, Options, Value, Vectorized
from .resolve import resolve
from .results import numpy_result, result_mode, torch_leaves
from .second_order import second_derivatives
from .settle import settle_source
from .text import avoid_names, product
from .textures import check_device, make_texture, result_format
from .torch_outputs import check_torch_outputs
from .uniforms import raise_unset
from .variants import decode_variant, guess_variant, vector_width
from .vectorize import check_map_count, vectorize

_native._set_check_bounds(config.check_bounds)  # the environment may ask for it


def decode(description: list[Any]) -> tuple[Argument, ...]:
    return tuple(Argument(name, Value.decode(data), i) for i, (name, data) in enumerate(description))


class PlanView:
    """One plan: its arguments as described, and, once the compiler was needed, every stage's record."""

    def __init__(
        self, node: Any, arguments: tuple[Argument, ...], result_mode: str, key: bytes, result_class: Any = None,
        deterministic: bool = False,
    ) -> None:  # fmt: skip
        self.function = node.core
        self.options: Options = replace(node.options, deterministic=True) if deterministic else node.options
        if config.check_bounds:
            self.options = replace(self.options, check_bounds=True)
        self.arguments = arguments
        self.result_mode = result_mode
        self.key = key
        self.label = node.label
        self.module = node.module
        self._loaded: Any = None
        self._epoch = node.module.layout.epoch
        self.native: Any = None
        self.spec: dict[str, Any] = {}
        self.variants: dict[int, dict[str, Any]] = {}
        self.sized = False
        self.result_type: Any = None
        self.result_format = ""
        self.tangent_type: Any = None
        self._planned: tuple[Vectorized, dict[str, Derivative]] | None = None
        self._code = ""
        self._result_class = result_class  # with result mode "custom"
        self._has_marshalls = mentions_custom(arguments) or result_mode == "custom"
        self._custom: CustomLeaves | None = None
        self.graph: Any = None
        """What autograd keeps for calls of this plan."""

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def loaded(self) -> Any:
        """The code that this plan was made of, which a reload during a call leaves as it was."""
        if self._loaded is None:
            self._loaded = self.module.loaded
            if self.module.layout.epoch != self._epoch:
                raise RuntimeError(f"{self.label}: its source was replaced during the call; call it again")
        return self._loaded

    def for_arguments(self, node: Any, description: list[Any]) -> PlanView:
        """The same plan as other values of the same key see it: their shapes are in its table. Runs the stages."""
        arguments, options = decode(description), self.options
        view = PlanView(node, arguments, self.result_mode, self.key, self._result_class, options.deterministic)
        view.planned()
        return view

    # --- planning
    def planned(self) -> tuple[Vectorized, dict[str, Derivative]]:
        """Runs the stages up to code generation; needs the compiler."""
        if self._planned is None:
            with code_lock:
                self._planned = self._plan()
        return self._planned

    def _plan(self) -> tuple[Vectorized, dict[str, Derivative]]:
        options = self.options
        check_device(self.arguments, self.result_mode, self.module.device, self.label)
        try:
            target = self.function.target()
            resolved, sized, shaped = resolve(target, self.arguments, options)
            if options.fwds:
                check_forward(self.module, resolved.call_name)
            check_bfloat(resolved, self.module.device, self.label)
            check_pointer_sized(resolved, self.module.device, self.label)
            check_map_count(options, resolved, sum(a.name is None for a in self.arguments))
            strict = bool(self.module.options.get("strict_broadcasting", False))
            check_torch_outputs(resolved, options)
            plan = vectorize(resolved, options, strict, self.result_mode, sized)
            if plan.result_mode == "custom":
                plan = with_class(plan, self._result_class, target.context(options))
            limit = min(self.module.device.info.limits.max_compute_threads_per_group or 1024, 1024)
            tile = tile_shape(options.call_group_shape, plan.call_rank, limit)
            plan = replace(
                plan, tile=tile, shape_dependent=shaped, positions=asks_position(self.module, options.preludes)
            )
            self.result_format = result_format(plan, self.module.device) if plan.result_mode == "texture" else ""
            grads = {}
            if options.second:
                grads = second_derivatives(plan, self.module, options.deterministic)
            elif options.bwds:
                grads = derivatives(plan, options.deterministic)
            elif options.fwds:
                grads = tangents(plan)
        except (ResolveException, BoundVariableException, ShapeError, KernelGenException, NotImplementedError) as error:
            raise type(error)(f"{self.label}: {error}\n{table(self.arguments, None)}") from None
        if self._lacks_storage(grads):
            self._warn_no_storage(7)
        if options.bwds:
            warn_lost_shares(self.module, resolved.call_name, self.label, 7)
        return plan, grads

    def _lacks_storage(self, grads: dict[str, Derivative]) -> bool:
        """Whether a derivative is asked for, but no argument has memory that takes part."""
        if self.options.fwds:
            return not has_tangent(grads)
        return self.options.bwds and not has_storage(grads)

    def _warn_no_storage(self, stacklevel: int) -> None:
        missing = "has a tangent" if self.options.fwds else "has storage for a gradient"
        warnings.warn(
            f"{self.label}.{self.call_mode}: no argument {missing}; attach one with with_grads() or a DiffPair",
            RuntimeWarning,
            stacklevel=stacklevel,
        )

    def source(self, key: int) -> str:
        plan, grads = self.planned()
        device = self.module.device
        if key >> 63:
            leaf = next(p for p in plan.placed if p.leaf == key & 0xFFFFFFFF)
            return settle_source(grads[leaf.ident].sums, self.on_cpu, ["slangpy", *self.loaded.import_names])
        shape = decode_variant(key, plan, device.compile_target.format == "cpp", self.group_size)
        imports = ["slangpy", *self.loaded.import_names]
        constants = render_constants(self.loaded, self.label, self.options.constants)
        options = replace(self.options, preludes=(*self.options.preludes, *constants))
        try:
            target = device.compile_target
            capabilities = (target.format, *target.capabilities)
            text = emit(plan, grads, options, shape, imports, capabilities, self.result_format)
            return avoid_names(text, self.loaded.declared_names)
        except (KernelGenException, ValueError) as error:
            raise KernelGenException(f"{self.label}: {error}\n{table(self.arguments, plan)}") from None

    @property
    def group_size(self) -> int:
        group = self.options.call_group_shape or self.options.thread_group_size
        return product(tuple(group)) if group else 256

    def can_widen(self) -> bool:
        """Whether flat kernels of this plan may move several neighbours per thread (GPU devices only)."""
        return not self.on_cpu and not (self.options.bwds or self.options.fwds) and vector_width(self.planned()[0]) > 1

    # --- native side
    def build_spec(self) -> dict[str, Any]:
        """The native plan, without kernels: its offsets come from compiling the general variant's layout."""
        plan, grads = self.planned()
        built = self._build(0, self._default_variant())
        find = self.loaded.find_element_layout
        four = self.module.device.compile_target.format in ("spirv", "hlsl")
        spec = layout_stage.plan_spec(plan, grads, layout_stage.Fields(built.layout), find, four)
        if spec["result"]["mode"] == "numpy":
            spec["result"].update(numpy_result(plan.resolved.return_type, spec["result"]["element"]))
            if "tangent" in spec["result"]:
                tangent = spec["result"]["tangent"]
                tangent.update(numpy_result(plan.resolved.return_type.derivative, tangent["element"]))
        if spec["result"]["mode"] == "texture":
            spec["result"]["format"] = self.result_format
        self.result_type = plan.resolved.return_type
        if "tangent" in spec["result"]:
            self.tangent_type = self.result_type.derivative
        views = {p.name for p in plan.resolved.parameters if VIEW.match(p.type_name)}
        for placed in plan.placed:
            if placed.leaf >= 0 and placed.binding.rank >= 0:
                spec["leaves"][placed.leaf]["whole"] = True
                spec["leaves"][placed.leaf]["float_gradient"] = placed.parameter in views
        if self.call_mode == "prim":
            for leaf in carriers(plan):
                spec["leaves"][leaf]["carries"] = True
            spec["result"]["carries"] = self.result_type is not None and bool(self.result_type.differentiable)
        self.sized = plan.size_dependent
        warns = self._lacks_storage(grads)
        self.spec = {
            **spec,
            "label": self.label,
            "can_widen": self.can_widen(),
            "no_storage": warns,
            "used_globals": built.used_globals,
            "is_forward_mode": self.options.fwds,
        }
        return self.spec

    def _default_variant(self) -> int:
        """Variant that the shapes at hand most likely need, so that the first build is the right one."""
        return guess_variant(self.planned()[0], self.can_widen())

    def native_spec(self) -> dict[str, Any]:
        unchecked = self.options.bwds and getattr(self.module.device, "check_gradients", False)
        return {**self.spec, "device": self.module.device, "view": self, "is_unchecked": unchecked}

    def attach(self, plan: Any) -> None:
        self.native = plan
        for key, variant in self.variants.items():
            if variant.get("built") is not None:
                plan.add_variant(key, variant["built"].kernel, *variant["items"])

    def build_variant(self, key: int) -> None:
        """Called by native code when a launch needs a kernel that is not there yet."""
        with code_lock:
            built = self._build(key, key)
            self.native.add_variant(key, built.kernel, *self.variants[key]["items"])
            self.store()

    def _build(self, key: int, variant: int) -> Any:
        with code_lock:
            known = self.variants.get(variant)
            if known is not None and known.get("built") is not None:
                return known["built"]
            loaded = self.loaded
            source = self.source(variant)
            if not variant >> 63:
                self._code = source
            link = ChildLink(self.module).link if self.options.second and not variant >> 63 else None
            built = compile_stage.build(loaded, self.label, source, self.options.conformances, link)
            self.variants[variant] = {"built": built, "items": self._items(variant)}
            return built

    def _items(self, variant: int) -> tuple[int, int]:
        """Invocations of one group (0 for the CPU, whose blocks are sized at launch), and most groups (0: any)."""
        if variant >> 63:
            return (0 if self.on_cpu else 256), 0
        plan, grads = self.planned()
        limit = group_limit(plan, grads, decode_variant(variant, plan, self.on_cpu, self.group_size))
        if self.on_cpu:
            return 0, limit
        if plan.tile:
            return 1, limit  # a launch counts tiles
        return self.group_size * (vector_width(plan) if variant & 4 else 1), limit

    @property
    def on_cpu(self) -> bool:
        return self.module.device.compile_target.format == "cpp"

    # --- disk
    def _disk_key(self) -> str:
        return plan_disk.disk_key(self.module, self.function, self.options, self.result_mode, self.arguments)

    def store(self) -> None:
        """Keeps the plan and its kernels' names on disk."""
        if not self.module.cacheable or self.options.conformances or self._has_marshalls:
            return
        if self.options.second and self.options.preludes:
            return  # what a prelude includes was read by another process, which does not say
        plan = plan_disk.StoredPlan(self.spec, self.variants, self.result_type, self.tangent_type, self.sized)
        plan_disk.store(self.module, self._disk_key(), plan)

    def restore(self) -> bool:
        """Takes the plan from disk; False when it (or a kernel of it) is not there."""
        if not self.module.cacheable or self._has_marshalls:
            return False
        found = plan_disk.load(self.module, self._disk_key(), self.label)
        if found is None:
            return False
        self.spec, self.variants = found.spec, found.variants
        self.result_type, self.tangent_type = found.result_type, found.tangent_type
        for key, variant in self.variants.items():
            if not key >> 63:
                self._code = variant["built"].source
        if self.spec["no_storage"]:
            self._warn_no_storage(5)
        return True

    def torch_leaves(self) -> list[dict[str, Any]]:
        """The native plans of the torch tensors among the arguments, in the order of the walk."""
        unused = {"name": "", "reads": False, "writes": False}
        leaves = self.spec["leaves"]
        return [leaves[i] if i < len(leaves) else unused for i in torch_leaves(self.arguments)]

    # --- registered classes
    def _custom_leaves(self) -> CustomLeaves:
        if self._custom is None:
            self._custom = CustomLeaves(self.label, self.module.device, self.planned()[0], self.call_mode)
        return self._custom

    def custom_shape(self, leaf: int, value: Any) -> tuple[int, ...]:
        return self._custom_leaves().shape(leaf, value)

    def custom_calldata(self, leaf: int, value: Any) -> Any:
        return self._custom_leaves().calldata(leaf, value, self.native.last_call_shape)

    def custom_create(self) -> Any:
        return self._custom_leaves().create_output(self.native.last_call_shape)

    def custom_result(self, value: Any, data: Any) -> Any:
        return self._custom_leaves().read_output(value, data, self.native.last_call_shape)

    def custom_read(self, leaf: int, value: Any, data: Any) -> None:
        self._custom_leaves().read(leaf, value, data, self.native.last_call_shape)

    # --- results and errors
    def make_tensor(self, buffer: Any, shape: tuple[int, ...], is_tangent: bool = False) -> Any:
        from ..tensor import Tensor

        result = self.spec["result"]
        layout = (result["tangent"] if is_tangent else result).get("element")
        return Tensor._from_result(buffer, self.tangent_type if is_tangent else self.result_type, shape, layout)

    def make_dual(self, primal: Any, tangent: Any) -> Any:
        """What a forward-mode call returns."""
        return dual_result(self.spec["result"]["mode"], primal, tangent)

    def torch_like(self) -> Any:
        """A torch tensor where results go that no torch argument gives a device."""
        import torch  # pyright: ignore[reportMissingImports]

        return torch.empty(0, device=self.module.device.torch_device)

    def make_texture(self, shape: tuple[int, ...]) -> Any:
        return make_texture(self.module.device, self.spec["result"]["format"], shape, f"result of {self.label}")

    def fail_shape(self, kind: str, leaf: int, dim: int, got: int, expected: int, shapes: list[Any]) -> None:
        spec = self.spec["leaves"][leaf]
        name = spec["name"]
        if kind == "mismatch":
            text = f"Shape mismatch for {name} between value ({got}) and call ({expected}) in call dimension {dim}"
        elif kind == "rank":
            text = f"{name} has {got} dimensions, expected {expected}"
        else:
            text = (
                f"{name} of shape {list(shapes[leaf])} does not match slang type {spec['type']}: size {got} of dimension "
                f"{dim} does not match the expected shape: the parameter takes {expected} there"
            )
        shown = ", ".join(
            f"{self.spec['leaves'][i]['name']} {list(s)}" for i, s in enumerate(shapes) if i < len(self.spec["leaves"])
        )
        raise ShapeError(f"{self.label}: {text}\nshapes: {shown}\n{self.explain()}")

    def fail_device(self, leaf: int, what: str) -> None:
        name = self.spec["leaves"][leaf]["name"]
        is_tensor = what in ("tensor", "grad_in", "grad_out", "the tensor")
        advice = (
            "copy it with Tensor.from_numpy(device, tensor.to_numpy())" if is_tensor else "create it on that device"
        )
        raise ValueError(
            f"{self.label}: {what} of argument {name} is on another device than the module's "
            f"{self.module.device.info.api_name} device; {advice}"
        )

    def fail_unset(self) -> None:
        """Called by native code when a kernel that needs global resources has no `set` or `write`."""
        layout = next(iter(self.variants.values()))["built"].layout
        raise_unset(self.label, layout, self.spec["used_globals"][0])

    def explain(self) -> str:
        if self._planned is None:
            return table(self.arguments, None)
        plan, grads = self._planned
        if not self.options.bwds:
            return table(self.arguments, plan)
        shape = decode_variant(self._default_variant(), plan, self.on_cpu, self.group_size)
        classes = {p.ident: gradient_class(p, grads[p.ident], shape) for p in plan.placed if p.ident in grads}
        mode = "deterministic (exact sums)" if self.options.deterministic else "in any order"
        return f"{table(self.arguments, plan, classes)}\ngradients: {mode}"

    # --- what users see (debug_build_call_data)
    @property
    def code(self) -> str:
        """Generated Slang."""
        return self._code

    @property
    def call_dimensionality(self) -> int:
        return self.spec["call_rank"]

    @property
    def call_mode(self) -> str:
        return "bwds" if self.options.bwds else "fwds" if self.options.fwds else "prim"

    @property
    def pipeline(self) -> Any:
        """The kernel; equal generated code gives the same object."""
        return next(iter(self.variants.values()))["built"].kernel

    @property
    def debug_only_bindings(self) -> Any:
        """How each argument is bound: `.args[i]` and `.kwargs[name]`, see `debug.DebugBinding`."""
        from .debug import bindings_of

        return bindings_of(self.planned()[0])

    def call(self, options: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with this plan's modifiers; `options` is not used: values of globals belong to nodes."""
        from dataclasses import fields

        from ..function import FunctionNode

        del options
        changes = {field.name: getattr(self.options, field.name) for field in fields(Options)}
        return FunctionNode.of(self.module, self.function)._with(**changes)(*args, **kwargs)

    @property
    def last_call_shape(self) -> Any:
        return _native.Shape(self.native.last_call_shape)


def plan_call(
    node: Any, description: list[Any], result_type: Any, key: bytes, deterministic: bool = False
) -> dict[str, Any]:
    """Plans one kind of call: from disk where it is known, else through all stages. Called by native code on a miss."""
    try:
        return _plan_call(node, description, result_type, key, deterministic)
    except (ValueError, TypeError, RuntimeError) as error:
        if node.label in str(error) or type(error) not in (ValueError, TypeError, RuntimeError, NotImplementedError):
            raise
        raise type(error)(f"{node.label}: {error}") from None


def _plan_call(node: Any, description: list[Any], result_type: Any, key: bytes, deterministic: bool) -> dict[str, Any]:
    with code_lock:
        arguments = decode(description)
        mode = result_mode(result_type, node, arguments)
        result_class = node.options.return_type if result_type is None else result_type
        view = PlanView(node, arguments, mode, key, result_class, deterministic)
        if not view.restore():
            view.build_spec()
            view.store()
            release(arguments)
        return view.native_spec()
