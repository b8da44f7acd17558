"""Small things of programs written by others: names, forms of arguments, and what messages say."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler import code
from slangpy.compiler.code import target_code
from slangpy.config import config
from slangpy.experimental.diffinstancelist import InstanceDifferentiableBuffer

SOURCE = """
struct Dot { float2 p; float2 v; __init(float2 p, float2 v) { this.p = p; this.v = v; }
             [mutating] void step(float dt) { p += v * dt; }   float speed() { return length(v); } };
struct Weight : IDifferentiable { float w; [Differentiable] float times(float x) { return w * x; } };
extern static const int N = 1;
extern static const float K = 2;
float add(float a, float b) { return a + b; }
float scaled(float x) { return x * N * K; }
float sum(float x[2][2]) { return x[0][0] + x[0][1] + x[1][0] + x[1][1]; }
"""


@pytest.fixture
def module(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "small_things", SOURCE)


@pytest.mark.needs_kernels
def test_instances_are_counted_and_indexed(module: spy.Module) -> None:
    """Parts of an InstanceTensor are instances in the same memory."""
    dots = spy.InstanceTensor(module.Dot, shape=(3, 2))
    dots.construct(p=spy.float2(0), v=spy.float2(3, 4))
    assert len(dots) == 3 and len(dots[0]) == 2
    dots[1].step(0.5)
    dots[-1, :1].step(2.0)
    assert dots.to_numpy(structured=True)["p"][..., 0].tolist() == [[0, 0], [1.5, 1.5], [6, 0]]
    assert [part.shape for part in dots] == [(2,)] * 3
    assert dots[:, 0].speed().to_numpy().tolist() == [5, 5, 5]
    with pytest.raises(IndexError, match="3"):
        dots[3]
    with pytest.raises(AttributeError, match=r"Dot has no field or method named 'strides'; the Tensor has it: \.data\.strides"):
        _ = dots.strides
    with pytest.raises(AttributeError, match="named 'spede'; did you mean speed"):
        _ = dots.spede
    with pytest.raises(AttributeError, match="named 'to_nump'; did you mean to_numpy"):
        _ = dots.to_nump


@pytest.mark.needs_kernels
def test_parts_of_instances_have_their_gradients(module: spy.Module) -> None:
    weights = InstanceDifferentiableBuffer(module.Weight, shape=(3,))
    weights.construct(2.0)
    part, x = weights[1:], spy.Tensor.from_numpy(module.device, np.array([3, 4], np.float32))
    result = part.times(x, _result="tensor").with_grads()
    result.grad.copy_from_numpy(np.ones(2, np.float32))
    part.times.bwds(x, _result=result)
    assert result.to_numpy().tolist() == [6, 8]
    assert weights.grad.to_numpy(structured=True)["w"].tolist() == [0, 3, 4]


@pytest.mark.needs_kernels
def test_constants_by_keyword(module: spy.Module) -> None:
    f = module.scaled
    assert f.constants(N=5)(1.0) == 10
    assert f.constants(N=5).constants({"K": 3.0})(1.0) == 15
    assert f.constants(constants={"N": 4})(1.0) == 8
    assert f.constants()(1.0) == 2
    with pytest.raises(ValueError, match="'M' is declared extern; there are: N, K|'M' is declared extern; there are: K, N"):
        f.constants(M=5)(1.0)
    with pytest.raises(ValueError, match="either a dict or keywords"):
        f.constants({"N": 5}, K=3.0)


@pytest.mark.parametrize("name", ["NDBuffer", "NDDifferentiableBuffer"])
def test_names_of_older_tutorials(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}', which became Tensor: use Tensor.empty"):
        getattr(spy, name)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("typ", "type"), ("include_path", "include_paths"), ("debug", "enable_debug_layers"), ("hot_reload", "enable_hot_reload")],
)
def test_keywords_of_create_device(wrong: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"create_device.*unexpected keyword argument '{wrong}'; did you mean '{meant}'"):
        spy.create_device(**{wrong: True})  # pyright: ignore[reportArgumentType]


def test_keywords_of_loading(device: spy.Device) -> None:
    with pytest.raises(TypeError, match="load_from_source.*'sources'; did you mean 'source'.*It takes device, name, source"):
        spy.Module.load_from_source(device, "a", sources="int f() { return 1; }")  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"load_from_file.*'zzz'\. It takes device, path"):
        spy.Module.load_from_file(device, "a", zzz=1)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("kind", [str, Path])
def test_one_include_path(kind: Any, tmp_path: Path) -> None:
    """A path alone is no list of its letters."""
    (tmp_path / "lonely.slang").write_text("int one() { return 1; }")
    device = spy.create_device(type="cpu", include_paths=kind(tmp_path))
    assert spy.Module.load_from_file(device, "lonely").require_function("one") is not None
    device.close()
    with spy.Device("cpu") as device:  # pyright: ignore[reportArgumentType]
        assert device.info.type == spy.DeviceType.cpu
    device.close()
    for wrong in (3, [3]):
        with pytest.raises(TypeError, match="create_device 'include_paths': expected .*got 3"):
            spy.create_device(type="cpu", include_paths=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="'label': expected a str, got 3"):
        spy.create_device(type="cpu", label=3)  # pyright: ignore[reportArgumentType]


def test_modules_of_text_are_found_by_name(device: spy.Device) -> None:
    text = '[shader("compute")] [numthreads(1, 1, 1)] void go(RWStructuredBuffer<int> y) { y[0] = 7; }'
    session = device.create_slang_session()
    module = session.load_module_from_source("from_text", text)
    assert session.load_module("from_text").entry_point("go").name == "go"
    assert session.load_module("from_text").name == module.name
    assert session.load_program("from_text", ["go"]).layout.entry_points[0].name == "go"
    with pytest.raises(spy.SlangCompileError, match='"from_nowhere": no such file'):
        session.load_module("from_nowhere")


def test_ranges_of_buffers(device: spy.Device) -> None:
    """As numbers, as a BufferRange, and as a dict of its fields."""
    buffer = device.create_buffer(size=16, usage=spy.BufferUsage.unordered_access)
    for part in ((4, 4), spy.BufferRange(4, 4), spy.BufferRange({"offset": 4, "size": 4}), {"offset": 4, "size": 4}):
        encoder = device.create_command_encoder()
        encoder.fill_buffer(buffer, 7)
        encoder.clear_buffer(buffer, range=part)
        encoder.fill_buffer(buffer, 9, {"offset": 12})
        device.submit_command_buffer(encoder.finish())
        assert buffer.to_numpy().view(np.uint32).tolist() == [7, 0, 7, 9]
    with pytest.raises(TypeError, match="unknown field 'length'; known fields: offset, size"):
        device.create_command_encoder().clear_buffer(buffer, {"length": 4})
    with pytest.raises(TypeError, match="BufferRange: unknown field 'length'"):
        spy.BufferRange({"length": 4})


def test_layouts_as_dtypes(module: spy.Module) -> None:
    for layout in (module.Dot.buffer_layout, module.Dot.buffer_layout.reflection):
        assert spy.Tensor.zeros(module.device, (2,), layout).dtype.full_name == "Dot"


def test_functions_on_the_current_device(device: spy.Device) -> None:
    """Every create_*, load_* and convert_* of a device is a function, too."""
    names = [name for name in dir(spy.Device) if name.startswith(("create_", "load_", "convert_")) and name != "create_kernel"]
    assert [name for name in names if not callable(getattr(spy, name, None))] == []
    with device:
        assert spy.create_sampler().device is device


@pytest.mark.needs_kernels
def test_shapes_of_vectors_in_messages(module: spy.Module) -> None:
    """Their components are what clashes."""
    with pytest.raises(spy.ShapeError, match=r"shapes: a float3, b float2"):
        module.add(spy.float3(1), spy.float2(1))
    with pytest.raises(spy.ShapeError, match=r"shapes: a float3, b \[2\]"):
        module.add(spy.float3(1), np.zeros(2, np.float32))


@pytest.mark.needs_kernels
def test_what_messages_name(module: spy.Module, device: spy.Device) -> None:
    with pytest.raises(ValueError, match=r"equal lengths: \[1\] has 1 elements"):
        module.sum([[1, 2], [3]])
    with pytest.raises(ValueError, match=r"equal lengths: \[1\]\[0\] is a list"):
        module.sum([[1, 2], [[3], 4]])
    with pytest.raises(ValueError, match=r"equal lengths: \[1\] is no list"):
        module.sum([[1, 2], 3])
    with pytest.raises(TypeError, match="^ones: elements of type Dot are structs"):
        spy.Tensor.ones(device, (2,), module.Dot)
    text = '[shader("compute")] [numthreads(1, 1, 1)] void go(uniform float a, RWStructuredBuffer<float> y) { y[0] = a; }'
    loaded = device.load_module_from_source("small_kernel", text)
    root = device.create_root_shader_object(device.link_program([loaded], [loaded.entry_point("go")]))
    with pytest.raises(AttributeError, match="^the root has no field 'b'"):
        _ = spy.ShaderCursor(root).b
    with pytest.raises(IndexError, match=r"^Element 3 not found\. the root has 0 elements"):
        _ = spy.ShaderCursor(root)[3]


@pytest.mark.parametrize("where", ["f.slang", "diff.meta.slang"])
def test_loops_that_cannot_be_unrolled(device: spy.Device, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slang's refusal, which takes it long, says what to write instead, and is remembered."""
    asked: list[int] = []
    key = f"{where}_{uuid.uuid4()}"  # the id of an object may come again, and the disk cache would know it

    class Refused:
        stages = ("compute",) * 8

        def code(self, entry_point: int) -> bytes:
            asked.append(entry_point)
            raise spy.SlangCompileError(f"error[E40020]: loop unrolling failed\n --> {where}:1:2")

        def content_key(self, entry_point: int) -> str:
            return f"{key}_{entry_point}"

        def binding_layout(self, entry_point: int) -> Any:
            return device.create_root_shader_object  # never looked at: the device has no HLSL

    if device.info.type == spy.DeviceType.d3d12:
        pytest.skip("asks for the layout first")
    monkeypatch.setattr(code, "_refused", {})
    program = Refused()
    for new_process in (False, False, True):
        if new_process:
            code._refused.clear()
        with pytest.raises(spy.SlangCompileError, match="E40020") as caught:
            target_code(device, program, 0, "kernel")
        assert ("[MaxIters(n)] instead of" in str(caught.value)) == (where == "f.slang")
        assert ("declare the size" in str(caught.value)) == (where != "f.slang")
    assert len(asked) == (1 if config.cache_enabled else 2)
