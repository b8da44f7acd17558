"""Slang functions in JAX programs: inside `jax.jit`, `jax.grad` and `jax.vmap`.

On the CPU, XLA's programs run the call on their own memory (jax_handlers). On other devices they call back to the host, with
copies. Imported with `spy.jax_function`, because it needs JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from ..base.scalars import BY_DTYPE, SCALARS
from ..errors import ResolveException, ShapeError
from ..function import FunctionNode
from ..inspection import signature_of
from ..tensor import Tensor
from ..values.references import diffPair
from . import handlers as jax_handlers


def jax_function(function: FunctionNode, **fixed: Any) -> Callable[..., Any]:
    """A function of JAX arrays that calls a Slang function, element by element as any call, with its gradient.

    fixed: values by the names of parameters that are no arguments of the result: structs, Tensors, textures, numbers.
    The result takes the other parameters by position, as JAX arrays or numbers, and returns an array of the call's shape
    and the element's. Gradients are those of `function.bwds`; what is integer or fixed has none. TypeError for functions
    that return nothing or a struct, and for arrays of types that Slang has not.
    """
    if not isinstance(function, FunctionNode):
        raise TypeError(f"jax_function: expected a function of a module, got {type(function).__name__}")
    if "_result" in fixed:
        raise TypeError(f"jax_function of {function.label}: the result is a JAX array; leave _result out")
    bridge = _Bridge(function, fixed)
    run, run_backward = jax.jit(bridge.traced), jax.jit(bridge.traced_backward)

    @jax.custom_vjp
    def call(*arrays: Any) -> Any:
        return run(*arrays)

    def call_forward(*arrays: Any) -> tuple[Any, Any]:
        return call(*arrays), arrays

    def call_backward(arrays: Any, seed: Any) -> tuple[Any, ...]:
        floats = [i for i, a in enumerate(arrays) if _is_float(a)]
        given = run_backward(seed, *arrays) if floats else []
        found = dict(zip(floats, given, strict=True))
        return tuple(found.get(i, np.zeros(np.shape(a), jax.dtypes.float0)) for i, a in enumerate(arrays))

    call.defvjp(call_forward, call_backward)

    def wrapped(*arrays: Any) -> Any:
        return call(*(jax.numpy.asarray(a) for a in arrays))

    wrapped.__name__ = wrapped.__qualname__ = function.__name__
    wrapped.__doc__ = function.__doc__
    return wrapped


def _is_float(array: Any) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.floating))


def _on_host(bridge: _Bridge, task: str, callback: Callable[..., Any], result: Any, arrays: Sequence[Any]) -> Any:
    """A call in a JAX program: by XLA itself on the CPU, else by a callback."""

    def by_callback(*given: Any) -> Any:
        return jax.pure_callback(callback, result, *given, vmap_method="sequential")

    if not jax_handlers.available():
        return by_callback(*arrays)
    return jax.lax.platform_dependent(
        *arrays, cpu=lambda *given: jax_handlers.call(bridge.task(task), result, *given), default=by_callback
    )


class _Bridge:
    """The two calls of a function, on host arrays."""

    def __init__(self, function: FunctionNode, fixed: dict[str, Any]) -> None:
        self._function, self._fixed = function, fixed
        self._device = function.module.device
        self._tasks: dict[str, int] = {}
        self._names: list[str] = []
        """Of the parameters that arrays go to, where others are fixed: of overloaded functions only the last can be."""
        if fixed:
            names = list(signature_of(function).parameters)
            self._names = [] if "args" in names else [n for n in names if n not in fixed and n != "_result"]

    def _call(self, function: FunctionNode, given: Sequence[Any], result: Any) -> Any:
        named = dict(zip(self._names, given, strict=False))
        return function(*given[len(named) :], **named, **self._fixed, _result=result)

    def result_of(self, arrays: Sequence[Any]) -> jax.ShapeDtypeStruct:
        """Shape and dtype of the result, from a plan: nothing is run."""
        label = self._function.label
        for i, array in enumerate(arrays):
            if str(array.dtype) not in BY_DTYPE:
                raise TypeError(f"{label}: argument {i} is an array of {array.dtype}, which Slang does not have; pass another dtype")
        # Arrays without memory of their own: a plan reads types, ranks and sizes only.
        stand_ins = [_argument(np.broadcast_to(np.zeros((), a.dtype), a.shape)) for a in arrays]
        named = dict(zip(self._names, stand_ins, strict=False))
        rest = stand_ins[len(named) :]
        view = self._function.debug_build_call_data(*rest, **named, **self._fixed, _result="numpy")
        plan = view.planned().vectorized
        result = plan.resolved.return_type
        scalar = SCALARS.get(result.scalar or "") if result is not None and result.kind != "struct" else None
        if result is None or scalar is None or plan.resolved.return_type_name == "void":
            raise TypeError(f"{label}: returns {plan.resolved.return_type_name}, which cannot be a JAX array")
        sizes = [1] * plan.call_rank
        by_name = {p.name: i for i, p in enumerate(p for p in plan.resolved.parameters if p.name not in self._fixed)}
        for placed in plan.placed:
            if placed.path not in by_name or by_name[placed.path] >= len(arrays):
                self._widen(sizes, placed.map, getattr(placed.binding.value, "shape", ()) or ())
                continue
            self._widen(sizes, placed.map, arrays[by_name[placed.path]].shape)
        return jax.ShapeDtypeStruct((*sizes, *result.shape), np.dtype(scalar.numpy))

    def _widen(self, sizes: list[int], places: Sequence[int], shape: Sequence[int]) -> None:
        for place, size in zip(places, shape, strict=False):
            if size != 1 and size >= 0:
                if sizes[place] not in (1, size):
                    raise ShapeError(f"{self._function.label}: sizes {sizes[place]} and {size} of one dimension differ")
                sizes[place] = size

    def traced(self, *arrays: Any) -> Any:
        """The function in a JAX program."""
        result = self.result_of(arrays)
        return _on_host(self, "fill_result", partial(self.forward, result.dtype), result, arrays)

    def traced_backward(self, seed: Any, *arrays: Any) -> Any:
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays if _is_float(a)]
        return _on_host(self, "fill_gradients", self.backward, shapes, (seed, *arrays))

    def task(self, name: str) -> int:
        """The number by which compiled programs know a method."""
        if name not in self._tasks:
            self._tasks[name] = jax_handlers.add_task(getattr(self, name))
        return self._tasks[name]

    def fill_result(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        [output] = outputs
        given = [_argument(a) for a in arrays]
        if output.ndim and output.size:
            self._call(self._function, given, output)
        else:
            output[...] = self._call(self._function, given, "numpy")

    def fill_gradients(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        for output, gradient in zip(outputs, self.backward(*arrays), strict=True):
            output[...] = gradient

    def forward(self, dtype: Any, *arrays: Any) -> Any:
        given = [_argument(np.asarray(a)) for a in arrays]
        result = self._call(self._function, given, "numpy")
        return np.asarray(result, dtype)

    def backward(self, seed: Any, *arrays: Any) -> list[Any]:
        """The gradients of the float arrays."""
        given = [self._with_gradient(np.asarray(a)) for a in arrays]
        seeds = np.asarray(seed)
        if seeds.ndim:
            result: Any = Tensor.from_numpy(self._device, np.zeros_like(seeds)).with_grads()
            if seeds.size:
                result.grad.copy_from_numpy(np.ascontiguousarray(seeds))
        else:
            result = diffPair(0.0, seeds.item())
        try:
            self._call(self._function.bwds, given, result)
        except ResolveException as error:
            raise TypeError(f"jax.grad through {self._function.label}: {error}") from error
        found = []
        for array, value in zip(arrays, given, strict=True):
            if _is_float(array):
                grad = value.grad.to_numpy() if isinstance(value, Tensor) else value.grad
                found.append(np.asarray(grad, array.dtype).reshape(np.shape(array)))
        return found

    def _with_gradient(self, array: np.ndarray[Any, Any]) -> Any:
        if not _is_float(array):
            return _argument(array)
        if array.ndim == 0:
            return diffPair(array.item(), 0.0)
        return Tensor.from_numpy(self._device, array).with_grads()


def _argument(array: np.ndarray[Any, Any]) -> Any:
    return array.item() if array.ndim == 0 else array


__all__ = ["jax_function"]
