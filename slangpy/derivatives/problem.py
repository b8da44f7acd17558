"""A call as a function from vectors to vectors, with its derivatives in both directions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._native import DeviceType, DiffPair, ValueRef
from ..function import FunctionNode
from ..plan.derive.gradients import flows
from ..plan.records import Parameter, Placed, Value
from ..pytorch.integration import is_torch_tensor
from ..tensor import Tensor
from .leaves import BACKWARD, FORWARD, PLAIN, HostLeaf, Leaf, TensorLeaf, TorchLeaf, Vector

Build = Callable[[dict[int, Any]], Any]
"""Makes one argument from the containers of its leaves."""
_NEW_RESULT = -2


def _clone(value: Any) -> Any:
    """A copy of something that the call writes, so that the caller's own stays as it is."""
    if isinstance(value, Tensor):
        return value.copy()
    if isinstance(value, ValueRef):
        return ValueRef(value.value)
    if isinstance(value, DiffPair):
        return DiffPair(value.primal, value.grad, value.needs_grad)
    for method in ("clone", "copy"):
        if hasattr(value, method):
            return getattr(value, method)()
    return value


def quiet_plan(node: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The plan of a call; derivatives take plain values for outputs, so nothing is said of these."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".* is an output, and ", RuntimeWarning)
        return node._plan_of(*args, **kwargs).plan


class Problem:
    """The arguments of one call, with what can be differentiated in it.

    Leaves are numbered as the call's values are. Nothing that the caller passed is changed.
    """

    def __init__(self, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str) -> None:
        if not isinstance(node, FunctionNode):
            raise TypeError(
                f"{what}: expected a function of a module, got a {type(node).__name__}; pass the function and its arguments, "
                f"{what}(f, x), not what it returns, {what}(f(x))"
            )
        if node.options.bwds or node.options.fwds:
            raise ValueError(
                f"{what}: pass the function itself, not {node.label}.{'bwds' if node.options.bwds else 'fwds'}"
            )
        if node._bound is not None:
            args = (node._bound, *args)
            node = node._unbound()
        if isinstance(kwargs.get("_result"), (str, type)):
            kwargs = {name: value for name, value in kwargs.items() if name != "_result"}
        self.node, self.device = node, node.module.device
        view = quiet_plan(node, args, kwargs)
        plan = view.planned().vectorized
        self.resolved = plan.resolved
        self.call_rank: int = plan.call_rank
        if not self.resolved.differentiable:
            raise ValueError(f"{what}: {node.label} is not differentiable; mark it [Differentiable]")
        self._placed = {p.leaf: p for p in plan.placed if p.leaf >= 0}
        self._parameters = {p.name: p for p in self.resolved.parameters}
        self.leaves: dict[int, Leaf] = {}
        self.reads_back = False
        """Whether the function reads tensors that it writes: elements that it leaves alone pass their gradients on, which
        the call does not say, and a second store hides the first."""
        self.untried: list[str] = []
        """Differentiable values that cannot be varied, with the reason."""
        names = [a.name for a in view.arguments]
        positional = iter(args)
        objects = [next(positional) if name is None else kwargs[name] for name in names]
        builds = [self._argument(a.value, o) for a, o in zip(view.arguments, objects, strict=True)]
        self._args = [b for b, name in zip(builds, names, strict=True) if name is None]
        self._kwargs = {name: b for b, name in zip(builds, names, strict=True) if name is not None}
        self._fixed = {name: value for name, value in kwargs.items() if name not in names}
        if self._makes_result() and "_result" not in kwargs:
            self._add_result()

    # --- the arguments
    def _argument(self, value: Value, given: Any) -> Build:
        while hasattr(given, "get_this") and not isinstance(given, type):
            given = given.get_this()
        if value.kind == "dict" and isinstance(given, dict) and value.fields:
            parts = {str(name): self._argument(child, given[str(name)]) for name, child in value.fields}
            return lambda found: {**given, **{name: build(found) for name, build in parts.items()}}
        if value.kind == "list" and isinstance(given, (list, tuple)) and len(value.fields) == len(given) > 0:
            items = [self._argument(child, item) for (_, child), item in zip(value.fields, given, strict=True)]
            return lambda found: [build(found) for build in items]
        if value.kind == "dict":
            self.untried.append(f"a {value.summary()}")
        placed = None if value.kind == "dict" else self._placed.get(value.leaf)
        if placed is None:
            return lambda found: given
        leaf = self._leaf(self._parameters[placed.parameter], placed, given)
        if leaf is not None and leaf.values.size == 0 and not leaf.writes:
            leaf = None
        if leaf is None:
            return (lambda found: _clone(given)) if placed.writes else (lambda found: given)
        self.leaves[value.leaf] = leaf
        return lambda found: found[value.leaf]

    def _leaf(self, parameter: Parameter, placed: Placed, given: Any) -> Leaf | None:
        if not flows(parameter, placed):
            return None
        binding, access = placed.binding, (placed.path, placed.reads, placed.writes)
        self.reads_back |= binding.rank >= 0 and placed.reads and placed.writes
        one_gradient = binding.view.startswith("Diff")
        if binding.kind == "view" and isinstance(given, np.ndarray):
            given = Tensor.from_numpy(self.device, given)
        if binding.kind == "view" and isinstance(given, Tensor):
            return TensorLeaf(*access, given, one_gradient)
        if binding.kind == "view" and is_torch_tensor(given):
            is_number = given.dim() == 0 and given.device.type == "cpu"
            if is_number and self.device.info.type is DeviceType.cuda:  # calls move the number, but no gradients of it
                given = given.to(self.device.torch_device)
            return TorchLeaf(*access, given, one_gradient)
        if binding.kind == "packed" and isinstance(given, (list, tuple)):
            kind = {"half": np.float16, "double": np.float64}.get(binding.stored, np.float32)
            return TensorLeaf(*access, Tensor.from_numpy(self.device, np.array(given, kind)))
        if binding.kind == "reference":
            if self.call_rank and not placed.reads:
                return None  # holds what one of the invocations wrote, nobody says which
            given = given.value if isinstance(given, ValueRef) else given.primal
            if given is None and binding.type.kind == "scalar":
                given = 0.0
        if binding.kind in ("value", "reference") and not binding.widen and given is not None:
            return HostLeaf(*access, given, binding.type)
        self.untried.append(f"{placed.path} ({type(given).__name__})")
        return None

    # --- the result
    def _makes_result(self) -> bool:
        return self.resolved.return_type_name != "void" and bool(self.resolved.return_type.differentiable)

    def _add_result(self) -> None:
        containers = {i: leaf.container(leaf.values) for i, leaf in self.leaves.items()}
        made = self._call(self.node, containers, {"_result": "tensor"})
        self.leaves[_NEW_RESULT] = TensorLeaf("_result", False, True, made)

    def _call(self, node: Any, containers: dict[int, Any], more: dict[str, Any]) -> Any:
        args = [build(containers) for build in self._args]
        kwargs = {name: build(containers) for name, build in self._kwargs.items()}
        if _NEW_RESULT in containers:
            more = {"_result": containers[_NEW_RESULT]}
        return node(*args, **kwargs, **self._fixed, **more)

    # --- as a function
    @property
    def inputs(self) -> dict[int, Leaf]:
        return {i: leaf for i, leaf in self.leaves.items() if leaf.reads}

    @property
    def outputs(self) -> dict[int, Leaf]:
        return {i: leaf for i, leaf in self.leaves.items() if leaf.writes}

    def evaluate(self, changed: dict[int, Vector]) -> dict[int, Vector]:
        """The outputs, where some inputs have other values."""
        containers = {i: leaf.container(changed.get(i, leaf.values)) for i, leaf in self.leaves.items()}
        self._call(self.node, containers, {})
        return {i: leaf.read(containers[i]) for i, leaf in self.outputs.items()}

    def pull(self, seeds: dict[int, Vector], node: Any = None) -> dict[int, Vector]:
        """Gradients of all inputs of sum(seed . output), by a backward call."""
        found = {i: leaf.container(leaf.values, seeds.get(i), BACKWARD) for i, leaf in self.leaves.items()}
        self._call((node or self.node).bwds, found, {})
        return {i: leaf.read_gradient(found[i]) for i, leaf in self.inputs.items()}

    def push(self, tangents: dict[int, Vector], node: Any = None) -> dict[int, Vector]:
        """Tangents of all outputs, by a forward-mode call."""
        found = {i: leaf.container(leaf.values, tangents.get(i), FORWARD) for i, leaf in self.leaves.items()}
        self._call((node or self.node).fwds, found, {})
        return {i: leaf.read_gradient(found[i]) for i, leaf in self.outputs.items()}


__all__ = ["PLAIN", "Problem"]
