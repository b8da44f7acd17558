"""What editors and notebooks show: signatures, comments of the source, names for completion, pictures."""

from __future__ import annotations

import inspect
import io
from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

pytestmark = pytest.mark.one

SOURCE = """
extern static const int N = 3;
float factor;

/// Adds two numbers.
///
/// The second has a default.
[Differentiable]
float add(float a, float b = 2.0) { return a + b * factor; }

/** A point
 * in a plane. */
struct Point { float2 at; float weight; struct Mark { int id; };
    /// How far it is.
    float length() { return sqrt(dot(at, at)); } static Point origin(float w) { Point p = {}; p.weight = w; return p; }
};

int twice(int a) { return 2 * a; }
float twice(float a, out float half_of) { half_of = a / 2; return 2 * a; }
struct Box<T> { T item; T get(int times) { return item; } static int size() { return 1; } struct Lid { T top; }; };
extension Point { float heavier(float by) { return weight + by; } }
namespace inner { float halved(float x) { return x / 2; } }
void no_comment(inout float3 x, int count = 4) {}
"""


@pytest.fixture
def m(device: spy.Device) -> Any:
    return source(device, "shown", SOURCE)


def test_signatures(m: Any) -> None:
    def text(function: Any) -> str:
        return str(inspect.signature(function)).replace("'", "")

    assert text(m.add) == "(a: float, b: float = 2.0, *, _result=None) -> float"
    assert text(m.add.bwds) == "(a: float, b: float = 2.0, *, _result=None) -> None"
    assert text(m.Point.length) == "(this: Point, *, _result=None) -> float"
    assert text(spy.InstanceList(m.Point, {}).length) == "(*, _result=None) -> float"
    assert text(m.Point.origin) == "(w: float, *, _result=None) -> Point"
    assert text(m["Box<float>"].get) == "(this: Box<float>, times: int, *, _result=None) -> float"
    assert text(m.twice) == "(*args, **kwargs)"
    assert text(m.no_comment) == "(x: inout vector<float,3>, count: int = 4) -> void"
    inspect.signature(m.add).bind(1.0, b=3.0, _result="numpy")
    assert m.add.__name__ == "add" and m.Point._constructor().__name__ == "Point"
    inspect.signature(spy.FunctionNode)


def test_comments_of_the_source(m: Any) -> None:
    assert m.add.__doc__ == "float add(float a, float b)\n\nAdds two numbers.\n\nThe second has a default."
    assert m.Point.length.__doc__ == "float length(Point this)\n\nHow far it is."
    assert m.Point.origin.__doc__ == "Point origin(float w)", "the comment of what stands before it in the line"
    assert sorted(m.twice.__doc__.split("\n")) == ["float twice(float a, out float half_of)", "int twice(int a)"]
    assert m.Point._constructor().__doc__.endswith("A point\nin a plane.")
    assert spy.FunctionNode.__doc__.startswith("A Slang function")


def test_comments_of_files(device: spy.Device, tmp_path: Any) -> None:
    path = tmp_path / "commented.slang"
    path.write_text("/// Of a file.\nfloat f(float x) { return x; }\n")
    module = spy.Module.load_from_file(device, path)
    assert module.f.__doc__ == "float f(float x)\n\nOf a file."
    path.unlink()
    assert module.f.__doc__ == "float f(float x)"


def test_reprs(m: Any, device: spy.Device) -> None:
    assert repr(m.add.bwds) == "FunctionNode(shown::add.bwds)"
    node = m.add.map((0,), b=(1,)).set(factor=2.0).constants({"N": 4}).return_type("numpy").convert("any")
    assert repr(node) == (
        "FunctionNode(shown::add.map((0,), b=(1,)).set(factor).constants(N=4).return_type('numpy').convert('any'))"
    )
    assert repr(m.add.map("float", None)) == "FunctionNode(shown::add.map('float', None))"
    assert repr(spy.grid((3, 4))) == "grid(shape=(3, 4))"
    assert repr(spy.grid((3,), offset=(1,), stride=(-2,))) == "grid(shape=(3,), offset=(1,), stride=(-2,))"
    assert repr(spy.rand_float(seed=5)).startswith("rand_float(min=0, max=1, dim=-1, seed=5")


def test_print_lists_functions(m: Any) -> None:
    lines = str(m).splitlines()
    assert lines[0].startswith("Module 'shown' on ")
    assert {"  float add(float a, float b)", "  int twice(int a)", "  float twice(float a, out float half_of)"} <= set(lines)
    assert "      float length(Point this)" in lines[lines.index(next(line for line in lines if "struct Point {" in line)) :]
    assert not any("_spy" in line or "$" in line for line in lines)


def test_completion(m: Any) -> None:
    names = dir(m)
    assert {"add", "twice", "Point", "no_comment"} <= set(names)
    assert not [name for name in names if "$" in name or name.startswith("_spy")]
    assert not {"N", "factor", "inner"} & set(names)  # neither functions nor types
    assert not [name for thing in (m, m.Point, m.add) for name in dir(thing) if name.startswith("_")]
    assert {"add", "Point"} <= set(m._ipython_key_completions_()) and "load_from_file" not in m._ipython_key_completions_()
    assert {"length", "origin", "Mark", "heavier"} <= set(dir(m.Point)) and "heavier" not in dir(m["Box<float>"])
    for box in (m.Box, m["Box<float>"]):
        assert {"get", "size", "Lid"} <= set(dir(box))


@pytest.mark.needs_kernels
def test_what_is_no_function_is_explained(m: Any) -> None:
    with pytest.raises(AttributeError, match=r"named 'inner', which is a namespace.*module\['inner\.function'\]"):
        m.inner
    assert m["inner.halved"](3.0) == 1.5
    with pytest.raises(AttributeError, match=r"a variable is set by function\.set\(\{'factor': value\}\)"):
        m.factor
    assert m.add.set({"factor": 3.0})(1.0, 2.0) == 7


@pytest.mark.needs_kernels
def test_tensors_of_structs_show_fields(m: Any, device: spy.Device) -> None:
    tensor = spy.Tensor.zeros(device, (33,), m.Point)
    cursor = tensor.cursor()
    cursor[1].write({"at": spy.float2(1, 2), "weight": 3.5})
    cursor.apply()
    assert "([1., 2.], 3.5)" in repr(tensor)
    html = tensor._repr_html_()
    assert "<th>weight</th>" in html and "<td>3.5</td>" in html and "and 13 more" in html
    large = spy.Tensor.zeros(device, (1000, 31), m.Point)
    assert "..." in repr(large) and "([0., 0.], 0.)" in repr(large)
    assert "&lt;float&gt;" in spy.Tensor.zeros(device, (2,), m["Box<float>"])._repr_html_()


@pytest.mark.needs_kernels
@pytest.mark.parametrize("dtype", ["float3", "float4", "half4"])
def test_pictures(device: spy.Device, dtype: str) -> None:
    image = pytest.importorskip("PIL.Image")
    channels = int(dtype[-1])
    values = np.random.default_rng(2).uniform(-0.5, 1.5, (33, 31, channels)).astype(np.float32)
    values[0, 0, 0] = np.nan
    given = values.astype(np.float16) if dtype.startswith("half") else values
    tensor = spy.Tensor.from_numpy(device, given, target_slang_dtype=dtype)
    shown = np.asarray(image.open(io.BytesIO(tensor._repr_png_() or b"")))
    expected = np.clip(np.nan_to_num(given.astype(np.float32), nan=0), 0, 1) * 255
    assert shown.shape == values.shape and np.abs(shown - expected).max() <= 0.51
    assert tensor._repr_html_() is None, "the picture is shown instead"
    assert spy.Tensor.zeros(device, (33, 31), "float")._repr_png_() is None
    assert spy.Tensor.zeros(device, (2, 3), dtype)._repr_png_() is None
    large = spy.Tensor.zeros(device, (2048, 16), dtype)
    assert image.open(io.BytesIO(large._repr_png_() or b"")).size == (8, 1024)


@pytest.mark.needs_kernels
def test_textures_are_pictures(device: spy.Device) -> None:
    image = pytest.importorskip("PIL.Image")
    values = np.random.default_rng(3).integers(0, 256, (9, 17, 4)).astype(np.uint8)
    texture = device.create_texture(
        format=spy.Format.rgba8_unorm, width=17, height=9, usage=spy.TextureUsage.shader_resource, data=values
    )
    assert (np.asarray(image.open(io.BytesIO(texture._repr_png_() or b""))) == values).all()

    def has(format: spy.Format) -> bool:
        return bool(device.get_format_support(format) & spy.FormatSupport.shader_load)

    assert has(spy.Format.bgra8_unorm) or device.type is spy.DeviceType.cuda
    if has(spy.Format.bgra8_unorm):
        swapped = device.create_texture(format=spy.Format.bgra8_unorm, width=17, height=9, usage=spy.TextureUsage.shader_resource)
        swapped.copy_from_numpy(np.ascontiguousarray(values[..., [2, 1, 0, 3]]))
        assert (np.asarray(image.open(io.BytesIO(swapped._repr_png_() or b""))) == values).all()
    for format in filter(has, (spy.Format.r32_float, spy.Format.rg16_float, spy.Format.bc1_unorm, spy.Format.rgb10a2_unorm)):
        other = device.create_texture(format=format, width=9, height=8, usage=spy.TextureUsage.shader_resource)
        assert (other._repr_png_() or b"").startswith(b"\x89PNG")


def test_hints_of_messages(m: Any, device: spy.Device) -> None:
    with pytest.raises(spy.ResolveException, match=r"No parameter named '_reslt'; did you mean _result\?"):
        m.add(1.0, _reslt="numpy")
    with pytest.raises(spy.ResolveException, match=r"Function is not differentiable; mark it \[Differentiable\]"):
        m.twice.bwds(1, _result=spy.diffPair(0, 1))
    with pytest.raises(spy.ResolveException, match=r"convert\(\"any\"\).*x\.astype\(np\.float32\)"):
        m.add(np.zeros(3), 1.0)
    with pytest.raises(AttributeError, match=r"no attribute 'Tensr'; did you mean Tensor\?"):
        spy.Tensr  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"'gpu' is no type of device; known: .*\"cpu\""):
        spy.Device(type="gpu")  # type: ignore[arg-type]


def test_devices_by_name() -> None:
    device = spy.Device(type="cpu")  # type: ignore[arg-type]
    assert device.info.type is spy.DeviceType.cpu
    device.close()
    device = spy.create_device("CPU")
    assert device.info.type is spy.DeviceType.cpu
    device.close()
