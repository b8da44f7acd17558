"""FunctionNode: a Slang function with its modifiers, callable from Python."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import _native
from .base.absent import absent
from .base.labelled import labelled
from .base.shared import Shared
from .compiler.modules.facts import may_name
from .compiler.modules.reload import reload_changed, source_changed
from .compiler.session import TypeConformance
from .errors import ResolveException
from .inspection import (
    OfInstance,
    description_of,
    documentation_of,
    signature_of,
)
from .plan.constants import merged_constants
from .plan.declared import instead_of_setting
from .plan.map_entries import holds_only_dims, plain_entry
from .plan.records import Options
from .plan.resolve.constructors import FieldParameter, OfSpecialized, Overloads, constructors_without_fields
from .plan.resolve.target import MemberWise, Target, stores_argument
from .reflection import SlangType
from .run.globals import answered, asks, result_beside, write_globals
from .run.modifiers import given_globals, group_size, slang_text, stream_number, tile_sizes
from .run.plans import plan_call
from .run.prepared import PreparedCall
from .run.raw import dispatch as raw_dispatch
from .run.ray_options import ray_tracing_of, refuse_derivative_of_rays
from .run.snapshots import frozen

if TYPE_CHECKING:
    from .module import Module


def watcher_of(device: Any) -> Any:
    """The watcher of a device's source files; None where hot reload is off."""
    return device._state.watcher


def native_device(device: Any) -> Any:
    """The device, None where code is only generated."""
    return device if isinstance(device, _native.Device) else None


class FunctionCore:
    """A function of a module by name, looked up for each plan: what held its reflection would hold replaced code."""

    def __init__(
        self,
        module: Any,
        name: str,
        struct: SlangType | None = None,
        is_constructor: bool = False,
    ) -> None:
        self.module = module
        self.name = name
        self.struct = struct
        self.is_constructor = is_constructor

    @property
    def identity(self) -> str:
        owner = self.struct.full_name + "." if self.struct is not None else ""
        return owner + self.name

    def node(self) -> FunctionNode:
        """The function without modifiers."""
        return FunctionNode.of(self.module, self)

    @property
    def is_open(self) -> bool:
        """Whether it is of a generic type without arguments, which can be looked at and not called."""
        struct = self.struct
        return struct is not None and struct.is_generic and self.module.layout.find_type_by_name(struct.full_name) is None

    def target(self) -> Target:
        """The function as the compiler sees it now (a reload may have replaced it)."""
        module = self.module
        layout = module.layout
        struct = self.struct
        if struct is not None and self.is_open:
            name = struct.full_name
            raise ResolveException(
                f"{module._stem}::{name} is generic: name its arguments, such as module['{name.partition('<')[0]}<float>']"
            )
        if struct is not None:
            struct = layout.require_type_by_name(struct.full_name)
        if self.is_constructor:
            assert struct is not None
            if struct.kind != "struct":
                own_ones = constructors_without_fields(f"{module._stem}::{struct.full_name}", struct, layout)
                return Target(layout, self.name, own_ones, struct, True, module)
            reflection = struct.type_reflection.constructors
            if not reflection:
                fields = [FieldParameter(f) for f in struct.type_reflection.fields]
                return Target(layout, self.name, MemberWise(fields), struct, True, module, True)
            if struct.type_reflection.generic is not None:
                reflection = [OfSpecialized(function, struct) for function in reflection]
            own = not may_name(module, "__init")  # else Slang's cannot be told from the user's
            return Target(layout, self.name, Overloads(reflection), struct, True, module, own)
        if struct is not None:
            reflection = layout.reflect_method(struct, self.name)
        else:
            reflection = layout.reflect_function(self.name)
        if reflection is None:
            raise ResolveException(f"Function '{self.identity}' not found in module '{module._stem}'")
        return Target(layout, self.name, reflection, struct, False, module)


_MOST_MAPPED = 16  # nodes that a node keeps for calls that map at each call
_append = _native.CallSite._append  # unbound: torch.compile loses what native methods are bound to


class FunctionNode(_native.CallSite, Shared):
    """A Slang function, with the modifiers applied so far. Immutable: each modifier gives a new node.

    Call it with values for the function's parameters: numbers, vectors, lists, dicts, arrays, Tensors, torch tensors.
    """

    core: FunctionCore
    options: Options
    module: Module
    parent: FunctionNode | None
    _globals: tuple[Any, ...]
    _bound: Any
    _stream: int
    _bwds: FunctionNode | None
    _fwds: FunctionNode | None
    _second: FunctionNode | None
    _mapped: dict[Any, FunctionNode]

    def __init__(self, module: Any, function: Any, struct: Any = None, options: dict[str, Any] | None = None) -> None:
        del options
        if isinstance(function, FunctionCore):
            core = function
        else:
            name = function if isinstance(function, str) else function.name
            owner = getattr(struct, "type", struct)
            layout = module.layout
            found = layout.reflect_function(name) if owner is None else layout.reflect_method(owner, name)
            if found is None:
                raise ValueError(f"Function '{name}' not found")
            core = FunctionCore(module, name, owner)
        self._setup(module, core, Options(convert=module.options["convert"]), None, (), None, 0)

    @staticmethod
    def of(module: Any, core: FunctionCore) -> FunctionNode:
        """The function of that module, without modifiers."""
        return FunctionNode(module, core)

    def _setup(
        self, module: Any, core: FunctionCore, options: Options, parent: FunctionNode | None,
        globals_: tuple[Any, ...], bound: Any, stream: int,
    ) -> None:  # fmt: skip
        vars(self).update(  # at once: nodes are made in calls that map anew each time
            module=module, core=core, options=options, parent=parent, _globals=globals_, _bound=bound, _stream=stream,
            _bwds=None, _fwds=None, _second=None, _mapped={},
        )  # fmt: skip
        table = module._plan_table((core.identity, core.is_constructor, options))
        uniforms = self._make_uniforms if globals_ else None
        derives = options.bwds or options.fwds
        super().__init__(
            table, plan_call, bound, uniforms, stream, derives, watcher_of(module.device), native_device(module.device)
        )

    def _reload(self) -> None:
        """Called by native code before a call when a watched file has changed."""
        reload_changed(self.module.device)

    def _with(
        self, *, globals_: Any = None, bound: Any = None, stream: int | None = None, **changes: Any
    ) -> FunctionNode:
        node = FunctionNode.__new__(FunctionNode)
        node._setup(
            self.module, self.core, replace(self.options, **changes) if changes else self.options, self,
            self._globals if globals_ is None else globals_, self._bound if bound is None else bound,
            self._stream if stream is None else stream,
        )  # fmt: skip
        return node

    # --- identity
    @property
    def name(self) -> str:
        """Name in the source."""
        return self.core.name

    @property
    def label(self) -> str:
        """module::function, as messages name it."""
        return f"{self.module._stem}::{self.core.identity.replace('$init', '__init')}"

    @property
    def root(self) -> FunctionNode:
        """The function without modifiers."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def _parameter_at(self, position: int) -> str | None:
        """Name of the parameter that a positional argument goes to; None where overloads differ."""
        overloads = self.core.target().overloads
        names = {o.parameters[position].name for o in overloads if position < len(o.parameters)}
        return names.pop() if len(names) == 1 else None

    def _stores_argument(self, argument: str) -> bool:
        return stores_argument(self.core.target(), argument)

    def _unbound(self) -> FunctionNode:
        node = FunctionNode.__new__(FunctionNode)
        node._setup(self.module, self.core, self.options, self, self._globals, None, self._stream)
        return node

    def as_func(self) -> FunctionNode:
        """This function."""
        return self

    def as_struct(self) -> Any:
        """Raises ValueError: a function is no struct."""
        raise ValueError("Cannot convert a function to a struct")

    def __repr__(self) -> str:
        return f"FunctionNode({description_of(self)})"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    @property
    def __name__(self) -> str:
        core = self.core
        return core.struct.name if core.is_constructor and core.struct is not None else core.name

    __signature__ = OfInstance("_signature")

    def _signature(self) -> inspect.Signature:
        return signature_of(self)

    def _documentation(self) -> str:
        return documentation_of(self)

    # --- modifiers
    def map(self, /, *args: Any, **kwargs: Any) -> FunctionNode:
        """Says which call dimension each dimension of an argument goes to, or what type it is bound as."""
        if not (holds_only_dims(args) and holds_only_dims(kwargs.values())):
            return self._map(args, kwargs)
        key = (args, *kwargs.items()) if kwargs else args
        known = self._mapped.get(key)
        if known is None:
            if len(self._mapped) == _MOST_MAPPED:
                self._mapped.clear()
            known = self._mapped[key] = self._map(args, kwargs)
        return known

    @labelled
    def _map(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionNode:
        return self._with(
            map_args=tuple(plain_entry(a) for a in args),
            map_kwargs=tuple(sorted(("this" if k == "_this" else k, plain_entry(v)) for k, v in kwargs.items())),
        )

    @labelled
    def set(self, /, *args: Any, **kwargs: Any) -> FunctionNode:
        """Values of the module's globals at each dispatch: a dict, keywords, or a function that gives a dict.

        A dict is copied with its lists, arrays and vectors, but not tensors, textures and objects with get_this(). With a torch
        tensor in it, calls return torch tensors.
        """
        value = given_globals(args, kwargs)
        given = (*self._globals, ("set", frozen(value), (), {}))
        return self._with(globals_=given, return_type=self.options.return_type or result_beside(value))

    @labelled
    def write(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> FunctionNode:
        """Calls `function(cursor, *args, **kwargs)` at each dispatch, with a ShaderCursor on the globals."""
        if not callable(function):
            raise ValueError(f"write requires a callable, write(f) with f(cursor), got {type(function).__name__}; set() takes values")
        return self._with(globals_=(*self._globals, ("write", function, frozen(args), frozen(kwargs))))

    @labelled
    def constants(self, constants: dict[str, Any] | None = None, /, **named: Any) -> FunctionNode:
        """Values for `extern static const` names of the program, as a dict or as keywords; later ones win."""
        merged = merged_constants(self.options.constants, constants, named)
        return self._with(constants=merged)

    @labelled
    def prelude(self, text: str) -> FunctionNode:
        """Slang text for the generated module, before the kernel."""
        return self._with(preludes=(*self.options.preludes, slang_text(text)))

    @labelled
    def type_conformances(self, conformances: Sequence[Any]) -> FunctionNode:
        """Types that interfaces may hold: TypeConformance or (interface, type[, id])."""
        plain = tuple(
            (c.interface_name, c.type_name, c.id) for c in (TypeConformance.of(item) for item in conformances)
        )
        return self._with(conformances=(*self.options.conformances, *plain))

    @labelled
    def return_type(self, return_type: Any) -> FunctionNode:
        """What a call returns: a class or "tensor", "numpy", "texture", "torch"."""
        if not isinstance(return_type, (str, type)) and return_type is not None:
            raise ValueError(f"return_type takes a class or a text such as 'numpy', got a {type(return_type).__name__}")
        return self._with(return_type=return_type)

    @property
    def bwds(self) -> FunctionNode:
        """The backward call: adds gradients into what is passed."""
        refuse_derivative_of_rays(self, "bwds")
        if self.options.bwds or self.options.fwds:
            raise ValueError(f"{self.label}: bwds of {'bwds' if self.options.bwds else 'fwds'} is not available")
        if self._bwds is None:
            self._bwds = self._with(bwds=True)
        return self._bwds

    @property
    def _bwds_twice(self) -> FunctionNode:
        """The gradient of a backward call (see pytorch/second.py), for torch's create_graph."""
        if self._second is None:
            self._second = self._with(bwds=True, second=True)
        return self._second

    @property
    def fwds(self) -> FunctionNode:
        """The forward-mode derivative: the call with a tangent beside each value.

        Tangents are kept where backward calls keep gradients. They are read from `grad_in` and written to `grad_out`
        of a `Tensor`; where only one is attached it serves as both (`with_grads()` attaches one tensor as both). The
        tangent of a `DiffPair` or of a torch `diff_pair` is its `grad`. An input without tangent has a tangent of zero;
        the tangent of an output without storage is dropped. Outputs get their value too, except a `diff_pair` whose
        primal is None.

        Returns the value with its tangent: for calls of rank 0 a `DiffPair`, else a `Tensor` with gradient; for torch
        tensors a `diff_pair`; with `_result="numpy"` a tuple (value, tangent). What is passed as `_result` is written
        and returned. Results that have no derivative are returned as by a plain call.
        """
        refuse_derivative_of_rays(self, "fwds")
        if self.options.bwds or self.options.fwds:
            raise ValueError(f"{self.label}: fwds of {'bwds' if self.options.bwds else 'fwds'} is not available")
        if self._fwds is None:
            self._fwds = self._with(fwds=True)
        return self._fwds

    @labelled
    def thread_group_size(self, size: Any) -> FunctionNode:
        """Threads of a group: three ints. For functional calls the product counts."""
        return self._with(thread_group_size=group_size(size))

    @labelled
    def call_group_shape(self, shape: Any) -> FunctionNode:
        """Tiles the call: the invocations of one tile of this shape run in one hardware group.

        shape: sizes of the last dimensions of a tile (1 in those before); () for a call without groups. The call shape
        need not be a multiple. The tile is checked when a call is planned.
        """
        return self._with(call_group_shape=tile_sizes(shape))

    @labelled
    def convert(self, mode: str = "safe") -> FunctionNode:
        """Lets elements of containers convert to the parameter's type: "safe" (exact) or "any"."""
        if mode not in ("none", "safe", "any"):
            raise ValueError(f"convert must be 'none', 'safe' or 'any', got {mode!r}")
        return self._with(convert=mode)

    @labelled
    def cuda_stream(self, stream: Any) -> FunctionNode:
        """The CUDA stream that calls run on."""
        return self._with(stream=stream_number(stream))

    def bind(self, this: Any) -> FunctionNode:
        """Fixes `this`: it is passed as first argument."""
        return self._with(bound=this)

    def ray_tracing(
        self,
        hit_groups: Sequence[Any],
        miss_entry_points: Sequence[str] = (),
        hit_group_names: Sequence[str] | None = None,
        callable_entry_points: Sequence[str] = (),
        max_recursion: int = 1,
        max_ray_payload_size: int = 32,
        max_attribute_size: int = 8,
        flags: Any = _native.RayTracingPipelineFlags.none,
    ) -> FunctionNode:
        """Calls run as a ray generation shader, one ray generation for each element, so the function may call TraceRay.

        hit_groups: HitGroupDesc or dicts. All entry points are those of the function's module, by name. hit_group_names:
        the hit records in order, where they are not all groups in theirs. Sizes in bytes. ValueError for a name that
        there is not. Needs Feature.ray_tracing.
        """
        return self._with(
            rays=ray_tracing_of(
                self, hit_groups, miss_entry_points, hit_group_names, callable_entry_points,
                (max_recursion, max_ray_payload_size, max_attribute_size), flags,
            )
        )  # fmt: skip

    # --- calling
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function. torch.compile reads this method; Python itself takes the native slot (see below)."""
        if sys.modules.get("torch") is None:  # it need not be installed
            return _native.CallSite.__call__(self, *args, **kwargs)
        from .pytorch.compile import is_compiling, traced_call

        return traced_call(self, args, kwargs) if is_compiling() else _native.CallSite.__call__(self, *args, **kwargs)

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the node."""
        return self(*args, **kwargs)

    def prepare(self, /, *args: Any, **kwargs: Any) -> PreparedCall:
        """A call whose arguments are read once, now: what is returned only launches (see PreparedCall)."""
        return PreparedCall(self, args, kwargs)

    def append_to(self, encoder: Any, /, *args: Any, **kwargs: Any) -> None:
        """Records the call into a command encoder; nothing runs before it is submitted."""
        if not isinstance(encoder, _native.CommandEncoder):
            raise TypeError(
                f"{self.label}: append_to takes a CommandEncoder first, then the arguments, got {type(encoder).__name__}; pass "
                "what device.create_command_encoder() gives"
            )
        _append(self, encoder, args, kwargs)

    def dispatch(
        self, /, thread_count: Any, vars: dict[str, Any] | None = None, command_encoder: Any = None, **kwargs: Any
    ) -> None:
        """Runs the function as a raw kernel, without vectorisation.

        thread_count: an int or up to three. vars: values of the module's globals by name. The function's arguments are
        given by name.
        """
        raw_dispatch(self, thread_count, vars, command_encoder, kwargs)

    def _recorded(self) -> FunctionNode:
        """This node, for both passes of a call in torch's graph: what is asked at each dispatch is asked once, now."""
        if not any(kind == "set" and asks(value) for kind, value, _, _ in self._globals):
            return self
        entries = [(kind, answered(self, value), (), {}) if kind == "set" else (kind, value, args, kwargs)
                   for kind, value, args, kwargs in self._globals]  # fmt: skip
        return self._with(globals_=tuple(entries))

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_":
            raise absent(lambda: self._instead_of(name), name=name, obj=self)
        super().__setattr__(name, value)

    def _instead_of(self, name: str) -> str:
        """What is to be written in place of `function.name = value`."""
        is_made = hasattr(self, "module")
        text = f"{self.label if is_made else 'function'}: a FunctionNode is not changed, so '{name}' cannot be set"
        if not is_made:
            return text
        if callable(getattr(type(self), name, None)):
            return f"{text}: f = module.{self.name}.{name}(...) gives a new one"
        instead = instead_of_setting(self.module, name)
        return f"{text}: {instead}" if instead else f"{text}; modifiers such as .map(), .set(), .constants() give a new one"

    def _make_uniforms(self, callbacks: Any) -> Any:
        """ShaderObject with the globals of this node, for native code."""
        return write_globals(self, callbacks.plan)

    # --- inspection
    def debug_build_call_data(self, /, *args: Any, **kwargs: Any) -> Any:
        """Plans a call without running it; the plan shows `.code`, `.call_dimensionality`, `.pipeline`, ..."""
        source_changed(self.module.device)
        return self._plan_of(*args, **kwargs).plan

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """How each argument is bound, and the generated kernel."""
        view = self.debug_build_call_data(*args, **kwargs)
        return f"{self.label}\n{view.for_arguments(self._describe(*args, **kwargs)).explain()}\n\n{view.code}"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


_native._take_call_slot(FunctionNode)
FunctionNode.__doc__ = OfInstance("_documentation", FunctionNode.__doc__)  # type: ignore[assignment]

Function = FunctionNode


def explain(function: FunctionNode, /, *args: Any, **kwargs: Any) -> str:
    """The table of how each argument of a call is bound (and the generated kernel)."""
    return function.explain(*args, **kwargs)


__all__ = ["Function", "FunctionNode", "FunctionCore", "explain"]
