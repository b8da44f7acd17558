"""What people write who come from NumPy or torch: it works, or the message says what to write here."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

CODE = """
float add(float a, float b) { return a + b; }
void halve(float x, out float h) { h = x / 2; }
float3 place(uint2 at) { return float3(at.x, at.y, 0); }
float texel(int2 at, Texture2D<float4> image) { return image[at].y; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    return spy.Module.load_from_source(device, "newcomers", CODE)


@pytest.fixture
def t(device: Any) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.arange(3, dtype=np.float32))


OPERATORS = {
    "+": lambda t: t + 1, "-": lambda t: t - t, "*": lambda t: 2 * t, "/": lambda t: 1.0 / t, "**": lambda t: t**2,
    "//": lambda t: t // 2, "%": lambda t: 5 % t, "@": lambda t: t @ t, "<": lambda t: t < 1, "<=": lambda t: t <= t,
    ">": lambda t: t > 1, ">=": lambda t: t >= 1, "abs()": lambda t: abs(t), "in": lambda t: 2.0 in t,
    "== for numbers": lambda t: t == 2,
}  # fmt: skip


@pytest.mark.parametrize("sign", OPERATORS)
def test_operators_say_what_to_use(sign: str, t: spy.Tensor) -> None:
    with pytest.raises(TypeError) as error:
        OPERATORS[sign](t)
    assert f"Tensor has no operator {sign}" in str(error.value) and "np.asarray(tensor)" in str(error.value)


def test_numpy_takes_tensors_as_arrays(t: spy.Tensor) -> None:
    one = np.ones(3, np.float32)
    assert np.asarray(t + one).tolist() == np.add(one, t).tolist() == [1, 2, 3]
    assert (t == np.array([0, 5, 2], np.float32)).tolist() == [True, False, True]
    assert np.sum(t) == 3 and np.mean(t) == 1 and np.maximum(t, 1).tolist() == [1, 1, 2]


def test_tensors_are_equal_to_themselves_only(t: spy.Tensor) -> None:
    other = t.copy()
    assert t == t and t != other and t in [other, t] and {t: 1}[t] == 1 and t not in {other: 1}
    assert t != None and t != "text"  # noqa: E711


def test_format_and_numpy(t: spy.Tensor) -> None:
    assert f"{t[1]:.2f}" == "1.00" and f"{t}" == str(t)
    with pytest.raises(TypeError, match=r"Tensor of shape \[3\]: only a tensor of one number"):
        f"{t:.2f}"
    assert t.numpy().tolist() == [0, 1, 2]
    with pytest.warns(DeprecationWarning, match="from_numpy"):
        assert spy.Tensor.numpy(t.device, np.ones(2, np.float32)).tolist() == [1, 1]


ABSENT = {
    "size": "element_count", "numel": "element_count", "clone": r"copy\(\)", "flatten": r"reshape\(-1\)",
    "requires_grad_": "with_grads", "cpu": "to_numpy", "fill_": r"tensor\[...\] = value", "mean": r"np.mean\(tensor\)",
    "astype": "asarray", "strids": "did you mean strides", "__array_interface__": r"np.asarray\(tensor\)", "qqqq": "$",
}  # fmt: skip


@pytest.mark.parametrize("name", ABSENT)
def test_absent_members_name_what_is_there(name: str, t: spy.Tensor) -> None:
    assert not hasattr(t, name)
    with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}'.*{ABSENT[name]}"):
        getattr(t, name)


def test_what_messages_name_is_there(t: spy.Tensor) -> None:
    from slangpy.tensor import absent

    for advice in absent._OTHER_NAMES.values():
        word = advice.replace("(", " ").replace(",", " ").replace(".", " ").split()[0]
        assert word in ("tensor[None]", "tensor[", "np", "function", "a") or hasattr(spy.Tensor, word), advice
    for name in absent._COMPUTED:
        assert callable(getattr(np, name)), name
        assert not hasattr(t, name)
    assert np.asarray(t[None]).shape == (1, 3)


@pytest.mark.parametrize("index", [[0, 1], np.array([True, False, True])])
def test_masks_and_lists_of_indices(index: Any, t: spy.Tensor) -> None:
    with pytest.raises(TypeError, match=r"no masks and no lists of indices: index np.asarray\(tensor\)"):
        t[index]


def test_dtypes_by_their_numpy_names(device: Any) -> None:
    for name in ("float32", "int32", "uint8", "float16", "int64"):
        assert spy.Tensor.zeros(device, (2,), name).to_numpy().dtype == np.dtype(name)
    with pytest.raises(ValueError, match="type 'flot' is no built-in type; did you mean float?"):
        spy.Tensor.zeros(device, (2,), "flot")


def test_keywords_and_outputs(m: Any) -> None:
    with pytest.raises(spy.ResolveException, match=r"No parameter named 'result'; did you mean _result\?"):
        m.add(1, 2, result="numpy")
    with pytest.raises(spy.ResolveException, match=r"'h' not specified; it is an output: pass spy.ValueRef\(\)"):
        m.halve(3.0)
    half = spy.ValueRef()
    m.halve(3.0, half)
    assert half.value == 1.5


def test_shapes_of_grids(m: Any) -> None:
    with pytest.raises(spy.KernelGenException, match=r"spy.grid\(shape\) in its place"):
        m.place(spy.call_id())
    assert m.place(spy.grid((4, 3)), _result="numpy").shape == (4, 3, 3)
    with pytest.raises(ValueError, match=r"a shape is one tuple: grid\(\(4, 3\)\)"):
        spy.grid(4, 3)  # pyright: ignore[reportArgumentType]


def test_textures(m: Any, device: Any) -> None:
    image = np.random.default_rng(1).random((5, 3, 4), np.float32)
    with pytest.raises(spy.ResolveException, match=r"copy it into a texture: device.create_texture"):
        m.texel(spy.grid((5, 3)), image)
    with pytest.raises(TypeError, match=r"expected a Format such as slangpy.Format.rgba32_float, got"):
        device.create_texture(format="rgba32f", width=3, height=5)
    with pytest.raises(TypeError, match=r"'format': expected a Format, got 7 \(int\)"):
        device.create_texture(format=7, width=3, height=5)
    usage = spy.TextureUsage.shader_resource
    texture = device.create_texture(format=spy.Format.rgba32_float, width=3, height=5, data=image, usage=usage)
    assert np.array_equal(np.asarray(texture), image)
    assert np.asarray(texture, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="cannot be a NumPy array without a copy"):
        texture.__array__(copy=False)
    assert np.array_equal(np.asarray(m.texel(spy.grid((5, 3)), texture)), image[..., 1])
    buffer = device.create_buffer(data=np.arange(4, dtype=np.uint8), usage=spy.BufferUsage.shader_resource)
    assert np.asarray(buffer).tolist() == [0, 1, 2, 3]


def test_names_of_the_package() -> None:
    for name, advice in {"zeros": r"Tensor.zeros\(device", "from_numpy": r"Tensor.from_numpy\(device"}.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; use {advice}"):
            getattr(spy, name)
    with pytest.raises(TypeError, match="the product of a matrix and a vector is a @ b"):
        spy.float4x4.identity() * spy.float4(1)  # pyright: ignore


def test_a_missing_file_names_each_folder_once(device: Any) -> None:
    with pytest.raises(spy.SlangCompileError) as error:
        spy.Module.load_from_file(device, "is_not_there.slang")
    folders = str(error.value).partition("looked in ")[2].rstrip(")").split(", ")
    assert len(folders) == len(set(folders))


STRUCTS = """
enum Mode { fast, slow };
struct Particle { float3 pos; float mass; float energy() { return mass; } };
float total(Particle p, float x) { return p.mass + x; }
Particle make(float x) { return Particle(float3(x), x); }
float chosen(Mode mode) { return mode == Mode::slow ? 1 : 0; }
float3 twice(float3 v, float x) { return v * x; }
"""


@pytest.fixture
def structs(device: Any) -> Any:
    return spy.Module.load_from_source(device, "newcomers_structs", STRUCTS)


def test_fields_of_struct_tensors(structs: Any) -> None:
    made = structs.make(np.array([1, 2], np.float32))
    for read in (lambda: made.pos, lambda: made["pos"]):
        with pytest.raises((AttributeError, TypeError), match=r"tensor.to_numpy\(structured=True\)\['pos'\]"):
            read()
    assert made.to_numpy(structured=True)["pos"].tolist() == [[1, 1, 1], [2, 2, 2]]
    instances = spy.InstanceTensor(structs.Particle, shape=(2,), data=made)
    with pytest.raises(AttributeError, match=r"read it with .to_numpy\(structured=True\)\['mass'\]"):
        _ = instances.mass
    assert instances.to_numpy(structured=True)["mass"].tolist() == [1, 2]


def test_names_in_structs(structs: Any) -> None:
    for owner in (structs.Particle, spy.InstanceTensor(structs.Particle, shape=(2,))):
        with pytest.raises(AttributeError, match=r"named 'enrgy'; did you mean energy\?"):
            _ = owner.enrgy
    with pytest.raises(AttributeError, match="'pos'; that is a field, which values have"):
        _ = structs.Particle.pos
    with pytest.raises(AttributeError, match="it is an enum: pass its values as numbers, or as members of a Python enum.IntEnum"):
        _ = structs.Mode.slow
    assert structs.chosen(1) == structs.chosen(enum.IntEnum("Mode", [("fast", 0), ("slow", 1)]).slow) == 1  # type: ignore
    with pytest.raises(spy.ResolveException, match="Particle.__init: No parameter named 'mas'"):
        structs.Particle(pos=[1, 2, 3], mas=4)


def test_tables_show_the_lists_of_this_call(m: Any, structs: Any) -> None:
    """Not those of the call for which the plan was made."""
    m.add([1, 2, 3], [1, 2, 3])
    with pytest.raises(spy.ShapeError, match=r"\nb +list \[2\] ") as error:
        m.add([1, 2, 3], [1, 2])
    assert "shapes: a [3], b [2]\n" in str(error.value)
    balls = [{"pos": spy.float3(1), "mass": 1.0} for _ in range(3)]
    structs.total(balls, [1, 2, 3])
    with pytest.raises(spy.ShapeError, match=r"\np.mass +list \[2\] ") as error:
        structs.total(balls[:2], [1, 2, 3])
    assert "shapes: p.mass [2]" in str(error.value)
    structs.twice([spy.float3(1)] * 3, 1.0)
    with pytest.raises(spy.ShapeError, match=r"\nv +list \[2\] "):
        structs.twice([spy.float3(1)] * 2, [1, 2, 3])
