"""`jvp` and `vjp`: products with the Jacobian of a function, with arrays in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._native import DiffPair, TorchPair
from ..base.optional import torch_for
from ..packed import PackedArg
from ..pytorch.integration import is_torch_tensor
from ..tensor import Tensor
from ..values.references import ValueRef, diffPair
from .problem import quiet_plan


def jvp(function: Any, primals: Sequence[Any], tangents: Sequence[Any], **fixed: Any) -> tuple[Any, Any]:
    """The outputs of a function, and how they change when its arguments change along `tangents`.

    function: a differentiable function of a module. primals: its positional arguments: numbers, vectors, NumPy arrays,
    Tensors, torch tensors, dicts of such. tangents: one for each, of the same kind and shape (for Tensors arrays will
    do); None: the argument does not change. fixed: further arguments, by name, which are passed as they are.

    Returns (outputs, tangents of the outputs). Outputs are the return value and then the primals that the function
    writes, which are copied first; a single one stands for itself, several are tuples. They are torch tensors when a
    primal is one, else Tensors when a primal is one, else NumPy arrays or numbers. Outputs among `fixed` are written as
    by `.fwds`.

    TypeError or ValueError for tangents that do not fit; else what `.fwds` raises.
    """
    call = _Call("jvp", function, primals, fixed)
    if len(tangents) != len(primals):
        raise ValueError(f"jvp: {len(primals)} primals need as many tangents, got {len(tangents)} (None: no change)")
    duals = [call.dual(i, primal, tangent) for i, (primal, tangent) in enumerate(zip(primals, tangents, strict=True))]
    result = call.run(function.fwds, duals)
    pairs = [_split(result, call.kind)] if call.returns else []
    pairs += [_split(duals[i], call.kind, primals[i]) for i in call.written]
    return _bare([value for value, _ in pairs]), _bare([tangent for _, tangent in pairs])


def vjp(function: Any, primals: Sequence[Any], cotangents: Any, **fixed: Any) -> tuple[Any, tuple[Any, ...]]:
    """The outputs of a function, and the gradients of sum(cotangent * output) by its arguments.

    function, primals, fixed: as for `jvp`. cotangents: one for each output in `jvp`'s order, as a list or tuple; a single
    output takes its cotangent itself; that of a struct may be a dict of its fields (left out: zero). None: zero.

    Returns (outputs, gradients): a gradient for each primal, of its kind; None for integers and others without
    derivative. The function runs twice, forwards and backwards.
    """
    call = _Call("vjp", function, primals, fixed)
    copies = [_receiver(primal) if i in call.written else primal for i, primal in enumerate(primals)]
    made = call.run(function, copies)
    outputs = ([made] if call.returns else []) + [_received(copies[i]) for i in call.written]
    seeds = list(cotangents) if isinstance(cotangents, (list, tuple)) and len(outputs) != 1 else [cotangents]
    if len(seeds) != len(outputs):
        raise ValueError(f"vjp: {call.label} has {len(outputs)} outputs, got {len(seeds)} cotangents; pass one for each")
    by_primal = dict(zip(call.written, seeds[len(seeds) - len(call.written) :], strict=True))
    duals = [call.receiver(i, primal, by_primal.get(i), i in by_primal) for i, primal in enumerate(primals)]
    more = {"_result": call.seed(made, seeds[0])} if call.returns and call.result_flows else {}
    function.bwds(*duals, **fixed, **more)
    gradients = [_gradient(dual, primal) for dual, primal in zip(duals, primals, strict=True)]
    for i in call.not_read:
        gradients[i] = _without_seed(duals[i], gradients[i])
    return _bare([call.finish(output) for output in outputs]), tuple(gradients)


class _Call:
    """What both have to know of a call."""

    def __init__(self, name: str, function: Any, primals: Sequence[Any], fixed: dict[str, Any]) -> None:
        if function.options.bwds or function.options.fwds:
            raise ValueError(f"{name}: pass the function itself, not its derivative ({function.label})")
        if not isinstance(primals, (list, tuple)):
            raise TypeError(f"{name}: primals must be a list or tuple of arguments, got {type(primals).__name__}")
        if "_result" in fixed:
            raise ValueError(f"{name}: the result is returned; leave _result out")
        self.name, self.label, self.fixed = name, function.label, fixed
        self.device = function.module.device
        view = quiet_plan(function, primals, fixed)
        planned = view.planned()
        resolved = planned.resolved
        views = {p.parameter: p.writes for p in planned.vectorized.placed if p.binding.view.startswith("Diff")}
        positions = [a.position for a in view.arguments if a.name is None]
        first = 1 if function._bound is not None else 0
        by_position = {a.position: p for p in resolved.parameters if (a := p.argument) is not None}
        written = [i - first for i in positions if _is_output(by_position[i], views)]
        self.written = [i for i in written if i >= 0]
        self.not_read = [i for i in self.written if by_position[i + first].io == "out"]
        self._check_written(primals)
        self.one_gradient = {i - first for i in positions if by_position[i].name in views}
        self.returns = resolved.return_type_name != "void"
        self.result_flows = self.returns and bool(resolved.return_type.differentiable)
        kinds = {_kind(primal) for primal in primals}
        self.kind = "torch" if "torch" in kinds else "tensor" if "tensor" in kinds else "numpy"

    def _check_written(self, primals: Sequence[Any]) -> None:
        for i in self.written:
            if isinstance(primals[i], (list, tuple, PackedArg)):
                raise TypeError(
                    f"{self.name}: {self.label} writes primal {i}, and a {type(primals[i]).__name__} cannot be written; "
                    "pass a NumPy array, a Tensor or a number"
                )

    def run(self, node: Any, args: list[Any]) -> Any:
        if not self.returns:
            return node(*args, **self.fixed)
        return node(*args, **self.fixed, _result="tensor" if self.kind == "numpy" else self.kind)

    def finish(self, output: Any) -> Any:
        """An output as the caller wants it."""
        return _numbers(output) if self.kind == "numpy" and isinstance(output, Tensor) else output

    # --- containers
    def dual(self, place: int, primal: Any, tangent: Any) -> Any:
        """A primal with its tangent; one that is written has room for its tangent."""
        if place in self.written:
            primal = _copy(primal)
        elif tangent is None:
            return primal
        return self._paired(f"primal {place}", primal, tangent, FORWARD)

    def receiver(self, place: int, primal: Any, seed: Any, is_output: bool) -> Any:
        """A primal with room for its gradient, and with the cotangent where it is an output."""
        if not is_output:
            return self._paired(f"primal {place}", primal, seed, INPUT)
        mode = VIEW if place in self.one_gradient else OUTPUT
        return self._paired(f"primal {place}", _copy(primal), _copy(seed) if mode == VIEW else seed, mode)

    def seed(self, made: Any, cotangent: Any) -> Any:
        """The container that holds the cotangent of the result."""
        if is_torch_tensor(made):
            return TorchPair(None, None, _like_torch(made, cotangent))
        return made.with_grads(grad_in=_like_tensor(self.name, "the result", made, cotangent))

    def _paired(self, what: str, primal: Any, other: Any, mode: int) -> Any:
        if isinstance(primal, dict):
            self._check_dict(what, primal, other)
            return {
                key: value if key == "_type" else self._paired(f"{what}['{key}']", value, (other or {}).get(key), mode)
                for key, value in primal.items()
            }
        if isinstance(primal, np.ndarray) and primal.dtype.kind == "f":
            primal = Tensor.from_numpy(self.device, primal)
        if isinstance(primal, Tensor) and primal.dtype.derivative is not None:
            primal = primal.detach()
            if mode == INPUT:
                return primal.with_grads()
            read = _like_tensor(self.name, what, primal, other)
            written = read if mode in (FORWARD, VIEW) else _zeros(primal, read.dtype)
            return primal.with_grads(grad_in=read, grad_out=written)
        pair = _torch_pair(primal, other, mode) if is_torch_tensor(primal) else None
        if pair is not None:
            return pair
        if _is_number(primal):
            return diffPair(primal, _like_number(other))
        if other is not None:
            raise TypeError(
                f"{self.name}: {what} is a {type(primal).__name__}, which has no derivative; pass None for it"
            )
        return primal

    def _check_dict(self, what: str, primal: dict[str, Any], other: Any) -> None:
        if other is None:
            return
        if not isinstance(other, dict):
            raise TypeError(f"{self.name}: {what} is a dict, so its {_other(self.name)} must be a dict, too, got {type(other).__name__}")
        unknown = [key for key in other if key not in primal]
        if unknown:
            raise ValueError(f"{self.name}: {what} has no field '{unknown[0]}'; its fields are {', '.join(primal)}")


FORWARD, INPUT, OUTPUT, VIEW = range(4)
"""VIEW: an output of a DiffTensorView, whose one gradient is read and added to."""


def _is_output(parameter: Any, views: dict[str, bool]) -> bool:
    """Whether the function may write what a parameter takes; `views`: which DiffTensorViews it writes."""
    if parameter.name in views:
        return views[parameter.name]
    if parameter.io in ("out", "inout"):
        return True
    name = parameter.binding.type_name
    return parameter.binding.rank >= 0 and name.startswith(("RW", "W", "Atomic", "IRW", "IW"))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.floating)) or (
        hasattr(value, "element_type") and not hasattr(value, "storage")
    )


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        kinds = {_kind(item) for item in value.values()}
        return "torch" if "torch" in kinds else "tensor" if "tensor" in kinds else "numpy"
    return "torch" if is_torch_tensor(value) else "tensor" if isinstance(value, Tensor) else "numpy"


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if is_torch_tensor(value):
        return value.detach().clone()
    return value.copy() if isinstance(value, (Tensor, np.ndarray)) else value


def _receiver(value: Any) -> Any:
    """A copy that the function can write."""
    if isinstance(value, dict):
        return {key: item if key == "_type" else _receiver(item) for key, item in value.items()}
    return ValueRef(value) if _is_number(value) else _copy(value)


def _received(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _received(item) for key, item in value.items()}
    return value.value if isinstance(value, ValueRef) else value


def _without_seed(dual: Any, gradient: Any) -> Any:
    """The gradient of an argument that is written and never read: zero, where a pair still holds the seed."""
    if isinstance(dual, dict):
        return {key: _without_seed(dual[key], value) for key, value in gradient.items()}
    return gradient * 0 if isinstance(dual, DiffPair) and gradient is not None else gradient


def _other(name: str) -> str:
    return "tangent" if name == "jvp" else "cotangent"


def _like_tensor(name: str, what: str, primal: Tensor, values: Any) -> Tensor:
    """The values as a tensor of the primal's derivative; None: zeros."""
    derivative = primal.dtype.derivative
    assert derivative is not None
    if isinstance(values, Tensor):
        return values
    zeros = _zeros(primal, derivative)
    if values is None:
        return zeros
    if derivative.kind == "struct":
        array = _like_structs(name, what, zeros.to_numpy(structured=True), values)
    else:
        array = _like_array(name, what, zeros.to_numpy(), values)
    return Tensor.from_numpy(primal.device, array, target_slang_dtype=derivative)


def _like_structs(name: str, what: str, zeros: Any, values: Any) -> Any:
    """Structs from a structured array of such, or from a dict with a value for each of some fields."""
    if not isinstance(values, dict):
        array = np.asarray(values)
        if array.dtype.names is None:
            raise TypeError(
                f"{name}: {what} is a struct; its {_other(name)} must be a dict of its fields {list(zeros.dtype.names)} or a "
                f"structured array, got {type(values).__name__}"
            )
        return array
    for field, value in values.items():
        if field == "_type" or value is None:
            continue
        if field not in zeros.dtype.names:
            raise ValueError(f"{name}: {what} has no field '{field}'; its fields are {', '.join(zeros.dtype.names)}")
        like = _like_structs if zeros.dtype[field].names else _like_array
        zeros[field] = like(name, f"{what}['{field}']", zeros[field], value)
    return zeros


def _like_array(name: str, what: str, zeros: Any, values: Any) -> Any:
    """Numbers as an array like `zeros`."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "OSUMm":
            raise TypeError
        array = array.astype(zeros.dtype)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: {what} is {zeros.dtype} of shape {list(zeros.shape)}; its {_other(name)} must be a number or an array "
            f"of that shape, got {type(values).__name__}"
        ) from None
    if array.shape != zeros.shape:
        raise ValueError(f"{name}: {what} has shape {list(zeros.shape)}, its {_other(name)} {list(array.shape)}")
    return array


def _zeros(like: Tensor, dtype: Any) -> Tensor:
    shape = tuple(like.shape)
    return Tensor.zeros(like.device, shape or (1,), dtype).reshape(shape)


def _torch_pair(primal: Any, other: Any, mode: int) -> Any:
    if not primal.is_floating_point():
        return None
    primal = primal.detach()
    read = None if mode == INPUT else _like_torch(primal, other)
    return TorchPair(primal, read if mode in (FORWARD, VIEW) else _like_torch(primal, None), read)


def _like_torch(primal: Any, values: Any) -> Any:
    torch = torch_for("a torch tensor")
    if values is None:
        return torch.zeros_like(primal)
    if isinstance(values, (dict, str)):
        raise TypeError(
            f"a {type(values).__name__} cannot be the tangent or cotangent of a torch tensor of {primal.dtype}; pass a "
            "tensor, an array or a number"
        )
    return torch.as_tensor(values, dtype=primal.dtype, device=primal.device)


def _like_number(value: Any) -> Any:
    return float(value) if isinstance(value, (int, np.number)) else value


def _numbers(tensor: Tensor) -> Any:
    array = tensor.to_numpy(structured=True) if tensor.dtype.kind == "struct" else tensor.to_numpy()
    return array if array.shape else array[()]


def _split(dual: Any, kind: str, primal: Any = None) -> tuple[Any, Any]:
    """Value and tangent of what a forward-mode call has filled, as arrays of the caller's kind."""
    if isinstance(dual, dict):
        parts = {
            key: (value, None) if key == "_type" else _split(value, kind, primal[key]) for key, value in dual.items()
        }
        return {k: v for k, (v, _) in parts.items()}, {k: t for k, (_, t) in parts.items() if k != "_type"}
    if isinstance(dual, (DiffPair, TorchPair)):
        return dual.primal, dual.grad
    if not isinstance(dual, Tensor):
        return dual, None
    tangent = dual.grad_out
    value = dual.detach()
    if isinstance(primal, np.ndarray) or (primal is None and kind == "numpy"):
        return _numbers(value), None if tangent is None else _numbers(tangent)
    return value, tangent


def _gradient(dual: Any, primal: Any) -> Any:
    if isinstance(dual, dict):
        return {key: _gradient(value, primal[key]) for key, value in dual.items() if key != "_type"}
    if isinstance(dual, (DiffPair, TorchPair)):
        return dual.grad
    found = dual.grad_out if isinstance(dual, Tensor) else None
    return _numbers(found) if found is not None and isinstance(primal, np.ndarray) else found


def _bare(items: list[Any]) -> Any:
    return items[0] if len(items) == 1 else tuple(items)


__all__ = ["jvp", "vjp"]
