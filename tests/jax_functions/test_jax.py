"""JAX arrays as arguments, and Slang functions inside jit, grad and vmap."""

from __future__ import annotations

import importlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tiers import gate

import slangpy as spy

jax = pytest.importorskip("jax")
jnp = jax.numpy
jax_handlers = importlib.import_module("slangpy.jax.handlers")  # needs JAX
pytestmark = pytest.mark.needs_kernels

SOURCE = """
[Differentiable] float wave(float k, float x) { return k * sin(k * x); }
[Differentiable] float3 scaled(float3 v, float s) { return v * s * s; }
[Differentiable] float total(float w[4], float x) { return (w[0] + w[1] * x) * w[2] + w[3]; }
[Differentiable] float indexed(float x, int n) { return x * x * n; }
struct Line { float slope; float start; }
[Differentiable] float line(Line line, float x) { return line.slope * x * x + line.start; }
float plain(float x) { return floor(x); }
int counted(int n) { return n + 1; }
void nothing(float x) {}
Line made(float x) { return { x, x }; }
"""


@pytest.fixture
def m(device: spy.Device) -> Any:
    return spy.Module.load_from_source(device, "jax_calls", SOURCE)


def wave(k: Any, x: Any) -> Any:
    return k * jnp.sin(k * x)


SHAPES = [((), (33,)), ((31,), (31,)), ((), ()), ((5, 1), (3,)), ((1,), (0,)), ((2, 3, 4), (4,))]


@pytest.mark.elsewhere("shapes7-True")
@pytest.mark.parametrize(
    ("shapes", "jit"),
    gate(
        itertools.product(SHAPES, [False, True]), lambda case: case[1] == (case[0] not in (SHAPES[1], SHAPES[2]))
    ),
)
def test_values_and_gradients(m: Any, shapes: Any, jit: bool) -> None:
    rng = np.random.default_rng(1)
    k, x = (jnp.asarray(rng.uniform(0.5, 2, shape), jnp.float32) for shape in shapes)
    own = spy.jax_function(m.wave)
    wrap = jax.jit if jit else (lambda f: f)
    np.testing.assert_allclose(wrap(own)(k, x), wave(k, x), rtol=1e-5, atol=1e-6)
    weights = jnp.asarray(rng.normal(size=jnp.broadcast_shapes(*shapes)), jnp.float32)

    def loss(f: Any) -> Any:
        return lambda a, b: jnp.sum(weights * f(a, b))

    found = wrap(jax.grad(loss(own), argnums=(0, 1)))(k, x)
    expected = jax.grad(loss(wave), argnums=(0, 1))(k, x)
    for a, b, given in zip(found, expected, (k, x), strict=True):
        assert a.shape == given.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def test_vectors_arrays_and_integers(m: Any) -> None:
    rng = np.random.default_rng(2)
    v, s = jnp.asarray(rng.normal(size=(31, 3)), jnp.float32), jnp.asarray(rng.normal(size=31), jnp.float32)
    own = jax.jit(jax.grad(lambda v, s: spy.jax_function(m.scaled)(v, s)[:, 1].sum(), argnums=(0, 1)))
    found = own(v, s)
    expected = jax.grad(lambda v, s: (v * s[:, None] ** 2)[:, 1].sum(), argnums=(0, 1))(v, s)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    w, x = jnp.arange(1.0, 5.0), jnp.linspace(0, 1, 7)
    got = jax.grad(lambda w: spy.jax_function(m.total)(w, x).sum())(w)
    np.testing.assert_allclose(got, jax.grad(lambda w: ((w[0] + w[1] * x) * w[2] + w[3]).sum())(w), rtol=1e-5)
    n = jnp.arange(7)
    np.testing.assert_allclose(jax.grad(lambda x: spy.jax_function(m.indexed)(x, n).sum())(x), 2 * x * n, rtol=1e-6)
    counted = spy.jax_function(m.counted)(n)
    assert counted.dtype == jnp.int32 and counted.tolist() == list(range(1, 8))


def test_fixed_values(m: Any, device: spy.Device) -> None:
    x = jnp.linspace(-1, 1, 33)
    f = spy.jax_function(m.line, line={"slope": 2.0, "start": 1.0})
    np.testing.assert_allclose(jax.jit(f)(x), 2 * x * x + 1, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), 4 * x, rtol=1e-6)
    tensor = spy.Tensor.from_numpy(device, np.arange(5, dtype=np.float32))
    np.testing.assert_allclose(spy.jax_function(m.wave, x=tensor)(2.0), wave(2.0, np.arange(5)), rtol=1e-5, atol=1e-6)


def test_vmap_and_training(m: Any) -> None:
    f = spy.jax_function(m.wave)
    k, x = jnp.asarray([1.0, 2.0, 3.0]), jnp.linspace(0, 1, 5)
    np.testing.assert_allclose(jax.vmap(f, in_axes=(0, None))(k, x), wave(k[:, None], x), rtol=1e-5, atol=1e-6)
    target = wave(1.7, x)
    step = jax.jit(lambda k: k - 0.05 * jax.grad(lambda k: jnp.mean((f(k, x) - target) ** 2))(k))
    guess = jnp.asarray(1.2)
    for _ in range(100):
        guess = step(guess)
    assert abs(float(guess) - 1.7) < 1e-3


def test_errors(m: Any) -> None:
    with pytest.raises(TypeError, match="returns void, which cannot be a JAX array"):
        spy.jax_function(m.nothing)(1.0)
    with pytest.raises(TypeError, match="returns Line, which cannot be a JAX array"):
        spy.jax_function(m.made)(1.0)
    with pytest.raises(TypeError, match="expected a function of a module"):
        spy.jax_function(np.sin)
    with pytest.raises(TypeError, match="leave _result out"):
        spy.jax_function(m.wave, _result="numpy")
    with pytest.raises(spy.ShapeError):
        spy.jax_function(m.wave)(jnp.ones(3), jnp.ones(4))
    with pytest.raises(Exception, match="Function is not differentiable"):
        jax.grad(spy.jax_function(m.plain))(1.0)
    assert spy.jax_function(m.wave).__name__ == "wave" and "float wave(" in (spy.jax_function(m.wave).__doc__ or "")


def test_arrays_as_arguments(m: Any, device: spy.Device) -> None:
    """Without jax_function: calls take JAX arrays as they take NumPy's, and Tensors go to JAX."""
    x = jnp.linspace(0, 1, 33)
    np.testing.assert_allclose(m.wave(2.0, x, _result="numpy"), wave(2.0, x), rtol=1e-5, atol=1e-6)
    tensor = spy.Tensor.from_dlpack(device, x)
    np.testing.assert_array_equal(tensor.to_numpy(), x)
    if device.info.type is spy.DeviceType.cpu:
        np.testing.assert_array_equal(jnp.from_dlpack(tensor), x)
    np.testing.assert_array_equal(jnp.asarray(tensor.to_numpy()), x)


def test_programs_on_the_cpu_use_their_own_memory(m: Any) -> None:
    f, x = spy.jax_function(m.wave), jnp.linspace(0, 1, 33)
    for program in (f, jax.grad(lambda k, x: f(k, x).sum())):
        text = jax.jit(program).lower(2.0, x).as_text()
        assert "slangpy_call" in text and "callback" not in text
    compiled = jax.jit(lambda k, x: spy.jax_function(m.wave)(k, x)).lower(2.0, x).compile()  # the function is gone
    np.testing.assert_allclose(compiled(2.0, x), wave(2.0, x), rtol=1e-5, atol=1e-6)


def test_without_the_interface(m: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_handlers, "available", lambda: False)
    f, x = spy.jax_function(m.wave), jnp.linspace(0, 1, 33)
    assert "callback" in jax.jit(f).lower(2.0, x).as_text()
    np.testing.assert_allclose(jax.jit(f)(2.0, x), wave(2.0, x), rtol=1e-5, atol=1e-6)
    found = jax.grad(lambda k: f(k, x).sum())(2.0)
    np.testing.assert_allclose(found, jax.grad(lambda k: wave(k, x).sum())(2.0), rtol=1e-5)


def test_arrays_of_all_dtypes_reach_a_handler_and_errors_come_back() -> None:
    assert jax_handlers.available()
    seen: list[Any] = []

    def twice(arrays: Any, outputs: Any) -> None:
        seen.append((arrays[0].dtype, arrays[0].shape, arrays[0].flags.writeable and arrays[0].size > 0))
        if arrays[0].shape == (13,):
            raise ValueError("thirteen, \u00fc")
        outputs[0][...] = arrays[0]
        outputs[1][...] = arrays[0].sum()

    task = jax_handlers.add_task(twice)

    def run(x: Any) -> Any:
        return jax_handlers.call(task, (jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((), jnp.float32)), x)

    names = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "bfloat16"]
    for name in names:
        for shape in ((), (1,), (0,), (3, 2), (2, 0)):
            x = jnp.ones(shape, name)
            same, total = jax.jit(run)(x)
            assert same.dtype == x.dtype and same.shape == shape and (same == x).all() and total == x.size
            assert seen[-1] == (x.dtype, shape, False)
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: thirteen, \u00fc"):
        jax.jit(run)(jnp.ones(13)).__getitem__(0).block_until_ready()
    assert jax.jit(run)(jnp.ones(3))[1] == 3


def test_several_threads(m: Any) -> None:
    f, x = jax.jit(spy.jax_function(m.wave)), jnp.linspace(0, 1, 1000)

    def work(i: int) -> None:
        for _ in range(50):
            np.testing.assert_allclose(f(float(i), x), wave(float(i), x), rtol=1e-4, atol=1e-5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1, 5)))
