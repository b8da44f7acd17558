"""What must not be asked of a device: a clear error, and the device works on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, in_process, kernel

import slangpy as spy

DOUBLE = """
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<float> y, uniform uint n) { if (tid.x < n) y[tid.x] *= 2; }"""
POINTER = """
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, uniform float* y, uniform uint n) { if (tid.x < n) y[tid.x] *= 2; }"""


@pytest.fixture
def usable(device: spy.Device) -> Iterator[spy.Device]:
    """A device that must still run kernels after the test."""
    yield device
    buffer = device.create_buffer(data=np.arange(10, dtype=np.float32), struct_size=4, usage=RW)
    if device.type is not spy.DeviceType.null:
        kernel(device, DOUBLE).dispatch([10, 1, 1], y=buffer, n=10)
        assert buffer.to_numpy().view(np.float32).tolist() == [2.0 * i for i in range(10)]
    device.wait()


@pytest.fixture
def other(device_type: spy.DeviceType) -> Iterator[spy.Device]:
    device = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
    yield device
    device.close()


def test_out_of_memory(usable: spy.Device) -> None:
    limit = usable.info.limits.max_buffer_size or (1 << 62)
    if limit < 1 << 62:
        with pytest.raises((MemoryError, ValueError), match=str(limit + 4)):
            usable.create_buffer(size=limit + 4)
    size = min(limit // 4 * 4, 1 << 60)
    with pytest.raises(MemoryError) as error:
        kept = [usable.create_buffer(size=size, usage=RW, label="huge") for _ in range(64)]
        del kept
    assert re.search(r"\d+ bytes", str(error.value))
    assert str(size) in str(error.value)
    assert "in use" in str(error.value)


def test_out_of_memory_by_many(usable: spy.Device) -> None:
    """What was taken before is given back once it is dropped."""
    limit = usable.info.limits.max_buffer_size or (1 << 40)
    with pytest.raises((MemoryError, ValueError)):
        usable.create_buffer(element_count=1 << 40, struct_size=1 << 16, usage=RW)
    with pytest.raises(OverflowError, match="64-bit"):
        usable.create_buffer(element_count=1 << 62, struct_size=16)
    del limit


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "has no size"),
        ({"size": 0}, "has no size"),
        ({"data": np.zeros(0, np.float32)}, "size"),
        ({"element_count": 0, "struct_size": 4}, "has no size"),
        ({"size": -4}, "size"),
        ({"size": 1 << 64}, "size"),
        ({"size": 4, "format": 3}, "format"),
        ({"sizes": 4}, "sizes"),
    ],
)
def test_buffer_sizes(usable: spy.Device, fields: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError), match=text):
        usable.create_buffer(**fields)


@pytest.mark.parametrize("fields", [{"width": 0}, {"width": 1 << 20}, {"width": 4, "mip_count": 9}, {"width": 1 << 33}])
def test_texture_sizes(usable: spy.Device, fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        usable.create_texture(format=spy.Format.rgba8_unorm, usage=spy.TextureUsage.shader_resource, **fields)


def test_texture_out_of_memory(usable: spy.Device) -> None:
    limits = usable.info.limits
    if usable.type in (spy.DeviceType.cpu, spy.DeviceType.cuda):
        pytest.skip("no textures, or more memory than the largest texture takes")
    side = limits.max_texture_dimension_2d
    with pytest.raises(MemoryError, match="bytes"):
        kept = [
            usable.create_texture(
                type=spy.TextureType.texture_2d_array, width=side, height=side, array_length=limits.max_texture_layers,
                format=spy.Format.rgba32_float, usage=spy.TextureUsage.shader_resource,
            )
            for _ in range(64)
        ]  # fmt: skip
        del kept


def test_buffer_of_another_device(usable: spy.Device, other: spy.Device) -> None:
    theirs = other.create_buffer(data=np.zeros(10, np.float32), struct_size=4, usage=RW)
    ours = usable.create_buffer(size=40, struct_size=4, usage=RW)
    with pytest.raises(ValueError, match="another device"):
        usable.create_command_encoder().copy_buffer(ours, 0, theirs, 0, 40)
    if usable.type is spy.DeviceType.null:
        return
    with pytest.raises(ValueError, match="another device") as error:
        kernel(usable, DOUBLE).dispatch([10, 1, 1], y=theirs, n=10)
    assert "'y'" in str(error.value)
    with pytest.raises(ValueError, match="another device"):
        kernel(usable, POINTER).dispatch([10, 1, 1], y=theirs, n=10)


BLOCK = "struct P { float k; };\nParameterBlock<P> block;\n" + DOUBLE.replace("*= 2", "*= block.k")


def test_code_of_another_device(usable: spy.Device, other: spy.Device) -> None:
    """It may be for another target, and what it is recorded into may be of another kind."""
    module = other.load_module_from_source("foreign_code", BLOCK)
    program = other.link_program([module], [module.entry_point("main")])
    for make in (usable.create_compute_kernel, usable.create_compute_pipeline, usable.create_root_shader_object):
        with pytest.raises(ValueError, match=f"{make.__name__}: the program belongs to another device"):
            make(program)
    with pytest.raises(ValueError, match="Module 'own': linked module 'foreign_code' belongs to another device"):
        spy.Module.load_from_source(usable, "own", "int f() { return 1; }", link=[module])
    with pytest.raises(ValueError, match="load_from_module: module 'foreign_code' belongs to another device"):
        spy.Module.load_from_module(usable, module)
    assert spy.Module.load_from_module(other, module).name == "foreign_code"
    own = kernel(usable, BLOCK)
    root = usable.create_root_shader_object(own.program)
    with pytest.raises(ValueError, match="block: the shader object belongs to another device"):
        spy.ShaderCursor(root).block = other.create_shader_object(program.reflection.block)
    compute = usable.create_command_encoder().begin_compute_pass()
    with pytest.raises(ValueError, match="bind_pipeline: the root object belongs to another device"):
        compute.bind_pipeline(own.pipeline, other.create_root_shader_object(program))
    compute.end()
    recorder = other.create_command_encoder()
    if usable.type is not spy.DeviceType.null:
        twice = spy.Module.load_from_source(usable, "twice", "float twice(float x) { return 2 * x; }").twice
        x, y = spy.Tensor.zeros(usable, (3,), "float"), spy.Tensor.zeros(usable, (3,), "float")
        with pytest.raises(ValueError, match="twice: the encoder of append_to: .* belongs to another device"):
            twice.append_to(recorder, x, _result=y)
    buffer = usable.create_buffer(size=16, struct_size=4, usage=RW)
    with pytest.raises(ValueError, match="Kernel 'main' belongs to another device"):
        own.dispatch(1, {"block": {"k": 1.0}}, command_encoder=recorder, y=buffer, n=1)


@pytest.mark.needs_kernels
def test_tensor_of_another_device(usable: spy.Device, other: spy.Device) -> None:
    module = spy.Module.load_from_source(usable, "bad_input", "float twice(float x) { return 2 * x; }")
    theirs = spy.Tensor.from_numpy(other, np.ones(8, np.float32))
    with pytest.raises(ValueError, match="device"):
        module.twice(theirs)
    assert module.twice(spy.Tensor.from_numpy(usable, np.ones(8, np.float32))).to_numpy().tolist() == [2.0] * 8


@pytest.mark.needs_kernels
def test_resource_of_a_closed_device(usable: spy.Device, device_type: spy.DeviceType) -> None:
    gone = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
    buffer = gone.create_buffer(size=40, struct_size=4, usage=RW)
    tensor = spy.Tensor.from_numpy(gone, np.ones(8, np.float32))
    double = kernel(gone, DOUBLE)
    module = spy.Module.load_from_source(gone, "closed", "float twice(float x) { return 2 * x; }")
    assert module.twice(2.0) == 4.0
    gone.close()
    with pytest.raises((ValueError, RuntimeError), match="device"):
        kernel(usable, DOUBLE).dispatch([10, 1, 1], y=buffer, n=10)
    with pytest.raises(RuntimeError, match="closed"):
        double.dispatch([10, 1, 1], y=buffer, n=10)
    with pytest.raises(RuntimeError, match="closed"):
        tensor.to_numpy()
    with pytest.raises(RuntimeError, match="closed"):
        module.twice(2.0)
    with pytest.raises(RuntimeError, match="closed"):
        module.twice(np.ones(4, np.float32))


@pytest.mark.needs_kernels
def test_too_large_a_dispatch(usable: spy.Device) -> None:
    double = kernel(usable, DOUBLE)
    y = usable.create_buffer(size=40, struct_size=4, usage=RW)
    limit = usable.info.limits.max_compute_dispatch_thread_groups
    with pytest.raises(ValueError, match=str(limit[1])):
        double.dispatch([1, limit[1] + 1, 1], y=y, n=0)
    with pytest.raises(ValueError, match=str(limit[0])):
        double.dispatch([64 * (limit[0] + 1), 1, 1], y=y, n=0)
    with pytest.raises((ValueError, TypeError, OverflowError)):
        double.dispatch([1 << 70, 1, 1], y=y, n=0)
    for count in ([-1, 1, 1], [1, 2, 3, 4], "many", [1.5]):
        with pytest.raises((ValueError, TypeError)):
            double.dispatch(count, y=y, n=0)


@pytest.mark.needs_kernels
def test_wrong_arguments(usable: spy.Device) -> None:
    double = kernel(usable, DOUBLE)
    y = usable.create_buffer(size=40, struct_size=4, usage=RW)
    with pytest.raises(RuntimeError, match="'y'.*never set"):
        double.dispatch([1, 1, 1], n=1)
    with pytest.raises(TypeError, match="y"):
        double.dispatch([1, 1, 1], y=3.0, n=1)
    with pytest.raises((ValueError, TypeError), match="n"):
        double.dispatch([1, 1, 1], y=y, n=1.5)
    with pytest.raises((ValueError, OverflowError), match="n"):
        double.dispatch([1, 1, 1], y=y, n=-1)
    with pytest.raises(ValueError, match="unordered_access"):
        double.dispatch([1, 1, 1], y=usable.create_buffer(size=40, usage=spy.BufferUsage.shader_resource), n=1)
    with pytest.warns(RuntimeWarning, match="no parameter 'z'.*y, n"):
        double.dispatch([1, 1, 1], y=y, n=1, z=1)


@pytest.mark.needs_kernels
def test_deferred_pipelines_fail_when_bound(usable: spy.Device) -> None:
    """With the compiler's words, not as something that is no pipeline."""
    module = usable.load_module_from_source(
        "unspecialised",
        """[shader("compute")] [numthreads(1, 1, 1)]
        void main<let N : int>(RWStructuredBuffer<int> y) { y[0] = N; }""",
    )
    program = usable.link_program([module], [module.entry_point("main")])
    pipeline = usable.create_compute_pipeline(program, defer_target_compilation=True)
    compute_pass = usable.create_command_encoder().begin_compute_pass()
    with pytest.raises(spy.SlangCompileError, match="Failed to generate code"):
        compute_pass.bind_pipeline(pipeline)
    with pytest.raises(TypeError, match="expected a compute pipeline"):
        compute_pass.bind_pipeline(program)


@pytest.mark.needs_kernels
def test_bad_code(usable: spy.Device) -> None:
    double = kernel(usable, DOUBLE)
    layout = double.pipeline.layout
    with pytest.raises((RuntimeError, spy.SlangCompileError)):
        usable.create_kernel(usable.compile(b"this is no program", layout.entry_point_name), layout)
    with pytest.raises(RuntimeError):
        usable.create_kernel(b"neither is this", layout)
    with pytest.raises(spy.SlangCompileError, match="undefined"):
        usable.load_module_from_source("bad_code", "void f() { undefined_name(); }")


NULLS = """
struct Row { float a; uint b[3]; };
[shader("compute")] [numthreads(32, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, StructuredBuffer<Row> x, ByteAddressBuffer raw, RWStructuredBuffer<Row> w,
          RWByteAddressBuffer wraw, RWStructuredBuffer<float> o, uniform bool write) {
    if (write) { w[tid.x].a = 7; wraw.Store(4 * tid.x, 9); }
    o[tid.x] = x[tid.x].a + raw.Load(4 * tid.x);
}"""


@pytest.mark.needs_kernels
def test_arrays_of_python_objects(usable: spy.Device) -> None:
    """Their bytes are addresses in this process."""
    objects: Any = np.zeros((2, 4, 2), object)
    buffer = usable.create_buffer(size=256, usage=RW)
    with pytest.raises(TypeError, match=r"copy_from_numpy: the array holds Python objects.*astype"):
        buffer.copy_from_numpy(objects)
    with pytest.raises(TypeError, match=r"create_buffer.*: the array holds Python objects"):
        usable.create_buffer(data=objects, usage=RW)
    with pytest.raises(TypeError, match="create_texture 'data': the array holds Python objects"):
        usable.create_texture(format=spy.Format.rgba32_float, width=4, height=2, data=objects)
    with pytest.raises(TypeError, match="upload_buffer_data: the array holds Python objects"):
        usable.create_command_encoder().upload_buffer_data(buffer, 0, objects)


def test_integers_out_of_range(usable: spy.Device) -> None:
    """The message names the argument: nanobind's own would say that no overload takes an int."""
    buffer, fence, pool = usable.create_buffer(size=16, usage=RW), usable.create_fence(), usable.create_query_pool(count=2)
    texture = usable.create_texture(format=spy.Format.r8_unorm, width=2, height=2)
    encoder, texels = usable.create_command_encoder(), np.zeros((2, 2), np.uint8)
    calls: dict[str, Any] = {
        "copy_buffer 'size': -1": lambda: encoder.copy_buffer(buffer, 0, buffer, 8, -1),
        "fill_buffer 'value': 4294967296": lambda: encoder.fill_buffer(buffer, 1 << 32),
        "upload_buffer_data 'offset': -4": lambda: encoder.upload_buffer_data(buffer, -4, texels),
        "resolve_query 'count': -1": lambda: encoder.resolve_query(pool, 0, -1, buffer, 0),
        "copy_texture 'src_mip': -1": lambda: encoder.copy_texture(texture, 0, 0, (0, 0, 0), texture, 0, -1, (0, 0, 0)),
        "copy_texture_to_buffer 'dst_size': -1": lambda: encoder.copy_texture_to_buffer(buffer, 0, -1, 2, texture, 0, 0),
        "upload_texture_data 'layer': -1": lambda: encoder.upload_texture_data(texture, -1, 0, texels),
        "to_numpy 'mip': -1": lambda: texture.to_numpy(mip=-1),
        "get_result 'index': -1": lambda: pool.get_result(-1),
        "Fence.wait 'value': -5": lambda: fence.wait(-5),
        f"Fence.signal 'value': {1 << 64}": lambda: fence.signal(1 << 64),
        "wait_for_submit 'id': -1": lambda: usable.wait_for_submit(-1),
    }
    for text, call in calls.items():
        with pytest.raises(ValueError, match=f"{text} is out of range; expected 0 to"):
            call()
    seven: Any = np.uint32(7)
    encoder.fill_buffer(buffer, seven)
    usable.submit_command_buffer(encoder.finish())


def test_sample_counts(usable: spy.Device) -> None:
    with pytest.raises(ValueError, match=r"Invalid sample count \(3\): expected a power of two"):
        usable.create_texture(type=spy.TextureType.texture_2d_ms, format=spy.Format.rgba8_unorm, sample_count=3)


@pytest.mark.needs_kernels
def test_null_buffers(usable: spy.Device) -> None:
    """Reading one gives zeros, writing to one does nothing that shows; never bound is an error."""
    null_reader = kernel(usable, NULLS)
    for write in (False, True, False):
        o = usable.create_buffer(data=np.ones(64, np.float32), struct_size=4, usage=RW)
        null_reader.dispatch([64, 1, 1], x=None, raw=None, w=None, wraw=None, o=o, write=write)
        assert not o.to_numpy().any()
    with pytest.raises(RuntimeError, match="'x'.*never set"):
        null_reader.dispatch([64, 1, 1], raw=None, w=None, wraw=None, o=o, write=False)


@pytest.mark.needs_kernels
def test_wrong_types_in_dispatches(usable: spy.Device) -> None:
    double = kernel(usable, DOUBLE)
    y = usable.create_buffer(size=40, struct_size=4, usage=RW)
    with pytest.raises(TypeError, match="'command_encoder' must be a CommandEncoder"):
        double.dispatch([1, 1, 1], command_encoder=3, y=y, n=1)
    with pytest.raises(TypeError, match="'queue': expected a CommandQueueType"):
        double.dispatch([1, 1, 1], queue=3, y=y, n=1)
    with pytest.raises(ValueError, match="n: 1.0 is not an integer"):
        double.dispatch([1, 1, 1], y=y, n=1.0)
    if usable.type is not spy.DeviceType.cuda:
        with pytest.raises(ValueError, match="cuda_stream"):
            double.dispatch([1, 1, 1], cuda_stream=spy.NativeHandle.from_cuda_stream(8), y=y, n=1)
    for create in (usable.create_compute_kernel, usable.create_compute_pipeline, usable.create_root_shader_object):
        with pytest.raises(TypeError, match="must be a ShaderProgram"):
            create(y)


MISSING = """
import slangpy as spy
print([a.name for a in spy.Device.enumerate_adapters(spy.DeviceType.{name})])
try:
    spy.Device(type=spy.DeviceType.{name})
except RuntimeError as error:
    print(error)
print(spy.create_device().type.name)
"""


def test_missing_vulkan_driver() -> None:
    result = in_process(
        MISSING.format(name="vulkan"), VK_DRIVER_FILES="/nowhere.json", VK_ICD_FILENAMES="/nowhere.json",
        SLANGPY_DEVICE_TYPE_OVERRIDE="cpu",
    )  # fmt: skip
    adapters, *lines, opened = result.stdout.splitlines()
    assert (adapters, opened, result.stderr) == ("[]", "cpu", "")
    text = "\n".join(lines)
    assert "cannot open a vulkan device" in text
    assert "driver" in text
    assert "can be opened here: cpu" in text


def test_missing_cuda_driver() -> None:
    if spy.Device.enumerate_adapters(spy.DeviceType.cuda):
        result = in_process(MISSING.format(name="cuda"), CUDA_VISIBLE_DEVICES="", SLANGPY_DEVICE_TYPE_OVERRIDE="cpu")
    else:
        result = in_process(MISSING.format(name="cuda"), SLANGPY_DEVICE_TYPE_OVERRIDE="cpu")
    adapters, *lines, opened = result.stdout.splitlines()
    assert (adapters, opened, result.stderr) == ("[]", "cpu", "")
    text = "\n".join(lines)
    assert "cannot open a cuda device" in text
    assert "CUDA is not available" in text
    assert "can be opened here: cpu" in text


def test_missing_nvrtc() -> None:
    if not hasattr(spy._native, "cuda_compile"):
        pytest.skip("built without CUDA")
    code = """
import ctypes.util, sys
from slangpy import _native
_native._set_nvrtc_search_paths(["/nowhere"])
try:
    _native.cuda_compile(b'extern "C" __global__ void k() {}', "k", "sm_80")
    print("found")
except RuntimeError as error:
    print(error)
"""
    result = in_process(code, PATH="/nowhere", LD_LIBRARY_PATH=_slang_folder(), CUDA_HOME="", CUDA_PATH="")
    assert result.returncode == 0, result.stderr
    if result.stdout.strip() != "found":  # a system may have one
        for part in ("NVRTC", "pip install nvidia-cuda-nvrtc"):
            assert part in result.stdout


def test_missing_cpp_compiler() -> None:
    code = """
import slangpy as spy
device = spy.Device(type=spy.DeviceType.cpu)
spy._native._configure_cpu(threads=1, compilers=[["no-such-compiler"]])
module = spy.Module.load_from_source(device, "m", "float twice(float x) { return 2 * x; }")
try:
    module.twice(1.0)
except RuntimeError as error:
    print(error)
"""
    result = in_process(code, SLANGPY_DISABLE_CACHE="1")
    assert result.stderr == ""
    for part in ("no C++ compiler", "no-such-compiler", "ziglang"):
        assert part in result.stdout


def _slang_folder() -> str:
    import os

    return os.environ.get("LD_LIBRARY_PATH", "")
