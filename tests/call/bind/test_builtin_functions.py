"""Functions of Slang's core module, called through a user's module: NumPy's values for every kind of argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiers import gate

import slangpy as spy

pytestmark = pytest.mark.needs_kernels
SOURCE = """
interface IOne {} interface ITwo {}
extension float : IOne {} extension float : ITwo {}
float either<T : IOne>(T x) { return 1; }
float either<T : ITwo>(T x) { return 2; }
float near(half3 x) { return 1; }
float near(float3 x) { return 2; }
"""
ONE: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "ceil": np.ceil, "cos": np.cos,
    "cosh": np.cosh, "degrees": np.degrees, "exp": np.exp, "exp2": np.exp2, "floor": np.floor,
    "frac": lambda x: x - np.floor(x), "log": np.log, "log10": np.log10, "log2": np.log2, "radians": np.radians,
    "rcp": lambda x: 1 / x, "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x), "saturate": lambda x: np.clip(x, 0, 1),
    "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
MORE: dict[str, tuple[Callable[..., Any], int]] = {
    "atan2": (np.arctan2, 2), "fmod": (np.fmod, 2), "max": (np.maximum, 2), "min": (np.minimum, 2), "pow": (np.power, 2),
    "step": (lambda y, x: x >= y, 2), "clamp": (np.clip, 3), "lerp": (lambda x, y, s: x + (y - x) * s, 3),
    "smoothstep": (lambda a, b, x: _smooth(np.clip((x - a) / (b - a), 0, 1)), 3), "fma": (lambda a, b, c: a * b + c, 3),
    "mad": (lambda a, b, c: a * b + c, 3),
}  # fmt: skip
DOUBLES = {"abs", "ceil", "floor", "max", "min", "sqrt", "clamp", "lerp", "saturate", "sign", "trunc", "frac"}
"""What every device computes in double, too."""
WHOLE = {
    "abs": (np.abs, 1),
    "sign": (np.sign, 1),
    "max": (np.maximum, 2),
    "min": (np.minimum, 2),
    "clamp": (np.clip, 3),
}
VECTORS: dict[str, tuple[Callable[..., Any], int]] = {
    "dot": (lambda u, v: (u * v).sum(-1), 2), "cross": (np.cross, 2), "length": (lambda u: np.linalg.norm(u, axis=-1), 1),
    "distance": (lambda u, v: np.linalg.norm(u - v, axis=-1), 2), "normalize": (lambda u: u / _norm(u), 1),
    "reflect": (lambda i, n: i - 2 * n * (i * n).sum(-1, keepdims=True), 2), "max": (np.maximum, 2),
    "min": (np.minimum, 2), "lerp": (lambda x, y, s: x + (y - x) * s, 3), "abs": (np.abs, 1), "sin": (np.sin, 1),
    "clamp": (np.clip, 3), "pow": (np.power, 2),
}  # fmt: skip
NUMBERS = {**{name: (f, 1) for name, f in ONE.items()}, **MORE}
ALONE = ("abs", "sign", "saturate", "rcp", "log", "atan2", "pow", "step", "clamp", "smoothstep", "fma")
"""Functions that the gate calls one by one; the values of all are those of test_all_at_once."""


def _smooth(t: Any) -> Any:
    return t * t * (3 - 2 * t)


def _norm(u: Any) -> Any:
    return np.linalg.norm(u, axis=-1, keepdims=True)


def _arrays(count: int, *shape: int) -> list[np.ndarray]:
    """In (0.05, 0.95), where all these are defined; each argument larger than the one before, as clamp and smoothstep ask."""
    rng = np.random.default_rng(len(shape))
    return [((rng.random(shape) * 0.9 / count) + 0.05 + 0.3 * i) for i in range(count)]


@cache
def load(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "core_functions", SOURCE)


@pytest.fixture
def module(device: spy.Device) -> spy.Module:
    return load(device)


def _close(got: Any, expected: Any, name: str, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(np.asarray(got, np.float64), expected, tolerance, 2e-6, err_msg=name)


def _tolerance(device: spy.Device, name: str) -> float:
    loose = name in ("acos", "asin") and device.info.type == spy.DeviceType.vulkan  # as precise as Vulkan asks
    return 1e-3 if loose else 2e-5


@pytest.mark.one
@pytest.mark.parametrize("name", gate(NUMBERS, lambda name: name in ALONE))
def test_arrays(module: spy.Module, name: str) -> None:
    """Each function's values, in float and, where all devices have it, in double."""
    function, count = NUMBERS[name]
    values = _arrays(count, 4, 5)
    single = [v.astype(np.float32) for v in values]
    expected = function(*[v.astype(np.float64) for v in single])
    node = getattr(module, name)
    _close(node(*single, _result="numpy"), expected, name, _tolerance(module.device, name))
    if name in DOUBLES:
        doubles = node(*values, _result="numpy")
        assert doubles.dtype == (np.int32 if name == "sign" else np.float64)
        _close(doubles, function(*values), name, 1e-12)


TYPES = {"float": np.float32, "double": np.float64, "float3": np.float32}
OF_TYPE: dict[str, dict[str, tuple[Callable[..., Any], int]]] = {
    "float": NUMBERS,
    "double": {name: NUMBERS[name] for name in NUMBERS if name in DOUBLES},
    "float3": VECTORS,
}


@pytest.mark.parametrize("kind", TYPES)
def test_all_at_once(device: spy.Device, kind: str) -> None:
    """The values on each device, of a function that calls them all."""
    table, shape = OF_TYPE[kind], (7, 3) if kind == "float3" else (20,)
    lines, results = "", []
    for i, (name, (function, count)) in enumerate(table.items()):
        values = [v.astype(TYPES[kind]).astype(np.float64) for v in _arrays(count, *shape)]
        results.append(function(*values))
        arguments = ", ".join(f"{letter}{count}" for letter in "xyz"[:count])
        lines += f"    r{i} = {name}({arguments});\n"
    inputs = [f"{letter}{count}" for count in (1, 2, 3) for letter in "xyz"[:count]]
    scalar = kind.rstrip("3")
    outputs = [kind if result.shape == shape else scalar for result in results]
    parameters = [f"{kind} {name}" for name in inputs] + [f"out {type_} r{i}" for i, type_ in enumerate(outputs)]
    text = f"void all({', '.join(parameters)})\n{{\n{lines}}}"
    arrays = [v.astype(TYPES[kind]) for count in (1, 2, 3) for v in _arrays(count, *shape)]
    tensors = [spy.Tensor.from_numpy(device, v, target_slang_dtype=kind) for v in arrays]
    found = [spy.Tensor.zeros(device, shape[:1], type_) for type_ in outputs]
    spy.Module.load_from_source(device, f"all_functions_of_{kind}", text).all(*tensors, *found)
    for name, result, out in zip(table, results, found, strict=True):
        _close(out.to_numpy(), result, name, 1e-12 if kind == "double" else _tolerance(device, name))


@pytest.mark.elsewhere("clamp")
@pytest.mark.parametrize("name", gate(NUMBERS, lambda name: name in ("abs", "sign", "atan2", "clamp")))
def test_numbers_and_tensors(module: spy.Module, name: str) -> None:
    """The ways to pass arguments, with functions of one, two and three of them: what is computed is that of test_arrays."""
    function, count = NUMBERS[name]
    values = _arrays(count, 4, 5)
    single = [v.astype(np.float32) for v in values]
    expected = function(*[v.astype(np.float64) for v in single])
    node = getattr(module, name)
    tolerance = 1e-3 if name in ("acos", "asin") else 2e-5
    _close(node(*[spy.Tensor.from_numpy(module.device, v) for v in single]).to_numpy(), expected, name, tolerance)
    numbers = [float(v[0, 0]) for v in single]
    got = node(*numbers)
    assert isinstance(got, int if name == "sign" else float)  # Slang's sign gives an int
    _close(got, expected[0, 0], name, tolerance)
    if count > 1:  # an array beside numbers
        _close(node(single[0], *numbers[1:], _result="numpy"), function(values[0], *numbers[1:]), name)


@pytest.mark.elsewhere("sign", "clamp")
@pytest.mark.parametrize("name", WHOLE)
def test_integers_stay_integers(module: spy.Module, name: str) -> None:
    function, count = WHOLE[name]
    values = [np.arange(-6, 6, dtype=np.int32).reshape(3, 4) * (i + 1) - 2 + 4 * i for i in range(count)]
    if name == "clamp":
        values = [values[0], np.full((3, 4), -3, np.int32), np.full((3, 4), 2, np.int32)]
    node = getattr(module, name)
    got = node(*values, _result="numpy")
    assert got.dtype == np.int32
    assert np.array_equal(got, function(*values))
    number = node(*[int(v[1, 1]) for v in values])
    assert isinstance(number, int)
    assert number == function(*values)[1, 1]


@pytest.mark.one
@pytest.mark.parametrize("name", gate(VECTORS, lambda name: name in ("dot", "cross", "length", "clamp", "pow")))
def test_arrays_of_vectors(module: spy.Module, name: str) -> None:
    function, count = VECTORS[name]
    values = [v.astype(np.float32) for v in _arrays(count, 7, 3)]
    expected = function(*[v.astype(np.float64) for v in values])
    node = getattr(module, name)
    _close(node.map(*["float3"] * count)(*values, _result="numpy"), expected, name)


@pytest.mark.elsewhere("cross")
@pytest.mark.parametrize("name", gate(VECTORS, lambda name: name in ("dot", "cross", "normalize", "lerp")))
def test_vectors_and_tensors_of_them(module: spy.Module, name: str) -> None:
    function, count = VECTORS[name]
    values = [v.astype(np.float32) for v in _arrays(count, 7, 3)]
    tensors = []
    for v in values:
        tensors.append(spy.Tensor.empty(module.device, (7,), "float3"))
        tensors[-1].copy_from_numpy(v)
    expected = function(*[v.astype(np.float64) for v in values])
    node = getattr(module, name)
    _close(node(*tensors).to_numpy().reshape(expected.shape), expected, name)
    one = node(*[spy.float3(*map(float, v[0])) for v in values])
    _close(one if isinstance(one, float) else [one.x, one.y, one.z], expected[0], name)


def test_products_of_matrices(module: spy.Module) -> None:
    m = spy.float2x2([1, 2, 3, 4])
    got = module.mul(m, spy.float2(1, 2))
    assert (got.x, got.y) == (5, 11)
    _close(module.mul(m, m).to_numpy(), [[7, 10], [15, 22]], "mul")
    _close(module.transpose(m).to_numpy(), [[1, 3], [2, 4]], "transpose")
    assert module.determinant(m) == -2


@pytest.mark.elsewhere("cross")
@pytest.mark.parametrize("name", ["max", "pow", "cross"])
def test_gradients(module: spy.Module, name: str) -> None:
    check_gradients_of(module, name)


@pytest.mark.one
@pytest.mark.parametrize(
    "name", gate(["sin", "exp", "sqrt", "lerp", "dot", "normalize", "length"], lambda name: name in ("lerp", "dot", "normalize"))
)
def test_gradients_of_others(module: spy.Module, name: str) -> None:
    check_gradients_of(module, name)


def check_gradients_of(module: spy.Module, name: str) -> None:
    torch = pytest.importorskip("torch")
    functions: dict[str, Any] = {
        "max": torch.maximum, "dot": lambda u, v: (u * v).sum(-1), "length": lambda u: u.norm(dim=-1),
        "normalize": lambda u: u / u.norm(dim=-1, keepdim=True),
    }  # fmt: skip
    function = functions.get(name) or getattr(torch, name)
    count = VECTORS[name][1] if name in VECTORS else NUMBERS[name][1]
    values = [v.astype(np.float32) for v in _arrays(count, 5, 3)]
    node = getattr(module, name)
    if name in ("dot", "normalize", "length", "cross"):
        node = node.map(*["float3"] * count)
    inputs = [spy.Tensor.from_numpy(module.device, v).with_grads(zero=True) for v in values]
    result = node(*inputs).with_grads()
    seed = np.random.default_rng(3).random(result.to_numpy().shape).astype(np.float32)
    result.grad.copy_from_numpy(seed)
    node.bwds(*inputs, _result=result)
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    function(*leaves).backward(torch.tensor(seed, dtype=torch.float64).reshape(function(*leaves).shape))
    for ours, theirs in zip(inputs, leaves, strict=True):
        np.testing.assert_allclose(ours.grad.to_numpy(), theirs.grad.numpy(), 1e-4, 1e-5)


def test_torch_tensors(module: spy.Module, device: spy.Device) -> None:
    torch = pytest.importorskip("torch")
    if device.info.type == spy.DeviceType.cuda:
        pytest.skip("tensors of the host")
    x = torch.tensor([0.25, 0.5], requires_grad=True)
    y = torch.tensor([0.3, 0.1])
    got = module.max(x, y)
    got.sum().backward()
    assert torch.equal(got, torch.maximum(x, y))
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0]


def test_what_has_no_derivative_says_so(module: spy.Module) -> None:
    with pytest.raises(spy.ResolveException, match="Could not call function 'floor': Function is not differentiable"):
        module.floor.bwds(spy.diffPair(1.5), _result=spy.diffPair(None, 1.0))
    assert module.floor(1.5) == 1.0


def test_overloads_that_slang_cannot_tell_apart_stay_ambiguous(module: spy.Module) -> None:
    with pytest.raises(spy.ResolveException, match="Ambiguous call"):
        module.either(1.0)


def test_a_mapped_type_means_the_overload_of_that_type(module: spy.Module) -> None:
    x = np.ones((2, 3), np.float32)
    assert module.near.map("float3")(x, _result="numpy").tolist() == [2, 2]
    assert module.near.map("half3")(x, _result="numpy").tolist() == [1, 1]
