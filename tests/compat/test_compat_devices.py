"""Devices, resources and commands as programs written for shader-slang/slangpy use them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy

RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
TEXTURE = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access


def kernel(device: spy.Device, source: str, name: str = "go") -> Any:
    module = device.load_module_from_source(f"d_{abs(hash(source))}", source)
    return device.create_compute_kernel(device.link_program([module], [module.entry_point(name)]))


def runs(device: spy.Device) -> bool:
    return device.info.type is not spy.DeviceType.null


SPARSE = """
struct Scene { StructuredBuffer<float> unused; float k; };
ParameterBlock<Scene> scene;
StructuredBuffer<float> global_unused;
uniform float q;
[shader("compute")] [numthreads(4, 1, 1)]
void go(uint3 t : SV_DispatchThreadID, StructuredBuffer<float> a, RWStructuredBuffer<float> b) { b[t.x] = scene.k + q + t.x; }
[shader("compute")] [numthreads(4, 1, 1)]
void reads(uint3 t : SV_DispatchThreadID, StructuredBuffer<float> a, RWStructuredBuffer<float> b) { b[t.x] = a[t.x] + t.x; }
"""


def test_unset_parameters(device: spy.Device) -> None:
    """What the kernel does not read needs no value; unset uniforms are 0; unknown names warn."""
    b = device.create_buffer(size=16, usage=RW)
    run = kernel(device, SPARSE)
    with pytest.warns(RuntimeWarning, match="nonsense"):
        run.dispatch([4, 1, 1], vars={"scene": {"k": 2.0}}, b=b, nonsense=3)
    if runs(device):
        assert b.to_numpy().view(np.float32).tolist() == [2, 3, 4, 5]
    encoder = device.create_command_encoder()
    with encoder.begin_compute_pass() as compute_pass:
        root = compute_pass.bind_pipeline(run.pipeline)
        spy.ShaderCursor(root).find_entry_point(0).b = b
        compute_pass.dispatch([4, 1, 1])
    device.submit_command_buffer(encoder.finish())
    if runs(device):
        assert b.to_numpy().view(np.float32).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="'a' of 'reads' was never set"):
        kernel(device, SPARSE, "reads").dispatch([4, 1, 1], b=b)


def test_usage_is_what_was_asked_for(device: spy.Device) -> None:
    assert device.create_buffer(size=16, usage=RW).desc.usage == RW
    asked = RW | spy.BufferUsage.copy_source
    assert device.create_buffer(size=16, usage=asked).desc.usage == asked


def test_texture_data_counts_bytes(device: spy.Device) -> None:
    if device.info.type is spy.DeviceType.cpu and not _has_textures(device):
        pytest.skip("no textures on this device")
    values = np.arange(32, dtype=np.float32)
    for shape in ((32,), (4, 8), (4, 8, 1)):
        texture = device.create_texture(
            format=spy.Format.r32_float, width=8, height=4, usage=TEXTURE, data=values.reshape(shape)
        )
        if runs(device):
            assert np.array_equal(texture.to_numpy().reshape(-1), values)
    device.create_texture(
        type=spy.TextureType.texture_1d,
        format=spy.Format.r32_float,
        width=8,
        usage=TEXTURE,
        data=values[:8].reshape(8, 1),
    )
    with pytest.raises(ValueError, match="got 124 bytes .*expected 128"):
        device.create_texture(format=spy.Format.r32_float, width=8, height=4, usage=TEXTURE, data=values[:31])
    with pytest.raises(RuntimeError, match=r"numpy array has wrong number of dimensions \(expected 2\)"):
        texture.copy_from_numpy(values.reshape(4, 8, 1))


def _has_textures(device: spy.Device) -> bool:
    try:
        device.create_texture(format=spy.Format.r32_float, width=1, height=1, usage=TEXTURE)
    except NotImplementedError:
        return False
    return True


def test_device_on_the_handles_of_another(device_type: spy.DeviceType) -> None:
    """A buffer of one is bound in a kernel of the other."""
    if device_type in (spy.DeviceType.cpu, spy.DeviceType.null):
        pytest.skip("has no native handles")
    first = spy.Device(type=device_type)
    second = spy.Device(type=device_type, existing_device_handles=first.native_handles)
    source = """[shader("compute")] [numthreads(4, 1, 1)]
    void go(uint3 t : SV_DispatchThreadID, RWStructuredBuffer<float> b) { b[t.x] = 2 * b[t.x] + t.x; }"""
    try:
        b = first.create_buffer(data=np.ones(4, np.float32), struct_size=4, usage=RW)
        kernel(second, source).dispatch([4, 1, 1], b=b)
        kernel(first, source).dispatch([4, 1, 1], b=b)
        encoder = second.create_command_encoder()
        kernel(second, source).dispatch([4, 1, 1], b=b, command_encoder=encoder)
        second.submit_command_buffer(encoder.finish())
        assert b.to_numpy().view(np.float32).tolist() == [8, 15, 22, 29]
        third = spy.Device(type=device_type)
        with pytest.raises(ValueError, match="belongs to another device"):
            kernel(third, source).dispatch([4, 1, 1], b=b)
        third.close()
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize("end", ["first.close(); second.close()", "second.close(); first.close()", ""])
def test_closing_imported_devices(device_type: spy.DeviceType, end: str) -> None:
    """In any order, or left to the end of the interpreter."""
    if device_type is not spy.DeviceType.vulkan:
        pytest.skip("the crash was Vulkan's")
    program = f"""
        import slangpy as spy
        first = spy.Device(type=spy.DeviceType.vulkan)
        second = spy.Device(type=spy.DeviceType.vulkan, existing_device_handles=first.native_handles)
        held = second.create_buffer(size=64, usage=spy.BufferUsage.shader_resource), first.create_buffer(size=64)
        {end}
        print("done")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


def test_names_of_all_handles() -> None:
    names = {item.name for item in spy.NativeHandleType}
    assert {"MTLDevice", "MTLBuffer", "WGPUDevice", "WGPUTexture", "OptixDeviceContext"} <= names
    assert {"OptixTraversableHandle", "D3D12CpuDescriptorHandle", "D3D12DeviceAddress"} <= names
    assert spy.NativeHandle(spy.NativeHandleType.MTLDevice, 5).value == 5


def halved(level: np.ndarray) -> np.ndarray:
    """Means over axes of even size, which must be the first two."""
    height, width = level.shape[:2]
    rows = level.reshape(height // 2, 2, *level.shape[1:]).mean(1) if height > 1 else level
    return rows.reshape(rows.shape[0], width // 2, 2, *level.shape[2:]).mean(2) if width > 1 else rows


@pytest.mark.parametrize("usage", [TEXTURE, spy.TextureUsage.shader_resource | spy.TextureUsage.render_target])
def test_generate_mips(device: spy.Device, usage: spy.TextureUsage) -> None:
    """Every mip is the mean of the one above, in the layer asked for."""
    if device.info.type is spy.DeviceType.cpu and not _has_textures(device):
        pytest.skip("no textures on this device")
    texture = device.create_texture(
        type=spy.TextureType.texture_2d_array,
        format=spy.Format.rgba32_float,
        width=16,
        height=4,
        array_length=2,
        mip_count=spy.ALL_MIPS,
        usage=usage,
    )
    level = np.random.default_rng(1).random((4, 16, 4)).astype(np.float32)
    texture.copy_from_numpy(level, layer=1)
    encoder = device.create_command_encoder()
    encoder.generate_mips(texture, 1)
    device.submit_command_buffer(encoder.finish())
    for mip in range(1, texture.mip_count if runs(device) else 0):
        level = halved(level)
        assert np.allclose(texture.to_numpy(layer=1, mip=mip), level, atol=1e-6)
    with pytest.raises(IndexError, match="'layer' must be less than 2"):
        device.create_command_encoder().generate_mips(texture, 2)


@pytest.mark.parametrize("kind", [spy.TextureType.texture_cube, spy.TextureType.texture_cube_array])
def test_generate_mips_of_cubes(device: spy.Device, kind: spy.TextureType) -> None:
    """The mips of one face."""
    if not runs(device) or (device.info.type is spy.DeviceType.cpu and not _has_textures(device)):
        pytest.skip("no texels to read")
    cubes = 2 if kind is spy.TextureType.texture_cube_array else 1
    usage = spy.TextureUsage.shader_resource | spy.TextureUsage.render_target
    texture = device.create_texture(
        type=kind,
        format=spy.Format.r32_float,
        width=4,
        height=4,
        array_length=cubes,
        mip_count=spy.ALL_MIPS,
        usage=usage,
    )
    generator = np.random.default_rng(3)
    for layer in range(6 * cubes):
        level = generator.random((4, 4)).astype(np.float32)
        texture.copy_from_numpy(level, layer=layer)
        encoder = device.create_command_encoder()
        encoder.generate_mips(texture, layer)
        device.submit_command_buffer(encoder.finish())
        for mip in (1, 2):
            level = halved(level)
            assert np.allclose(texture.to_numpy(layer=layer, mip=mip), level, atol=1e-6)


def test_layouts_of_buffers_only(device: spy.Device) -> None:
    module = device.load_module_from_source("d8", "struct S { float a; float3 b; };\nRWStructuredBuffer<S> all;")
    plain = module.layout.find_type_by_name("S")
    wrong = (plain, module.layout.get_type_layout(plain))
    for given in wrong:
        with pytest.raises(TypeError, match="resource_type_layout"):
            device.create_buffer(element_count=2, resource_type_layout=given, usage=RW)
    right = module.layout.get_type_layout(module.layout.find_type_by_name("RWStructuredBuffer<S>"))
    assert (
        device.create_buffer(element_count=2, resource_type_layout=right, usage=RW).size
        == 2 * right.element_type_layout.stride
    )


PRINTS = """
import sgl.device.print;
import sgl.device.rhi;
void named(PrintableString name, float value) { print("{} = {}", name, value); }
[shader("compute")] [numthreads(1, 1, 1)]
void go(RWStructuredBuffer<rhi::IndirectDispatchArguments> arguments)
{
    print("{} {} {} {}", 400.0f, -65504.0f, 3.4028235e+38f, 0.1f);
    print("{:.2f} {:>6} {}", 3.0f, 3.0f, float2(1, 2.5));
    named("size", 7);
    arguments[0].thread_group_count_x = 3;
}
"""


def test_print(device_type: spy.DeviceType, capfd: pytest.CaptureFixture[str]) -> None:
    """Floats as C++ prints them, literals as arguments, and the text on stdout."""
    if device_type is spy.DeviceType.null:
        pytest.skip("runs no kernel")
    device = spy.Device(type=device_type, enable_print=True)
    try:
        run = kernel(device, PRINTS)
        arguments = device.create_buffer(size=12, struct_size=12, usage=RW)
        run.dispatch([1, 1, 1], arguments=arguments)
        device.wait()
        expected = "400 -65504 3.4028235e+38 0.1\n3.00      3 {1, 2.5}\nsize = 7\n"
        assert capfd.readouterr().out == expected
        assert device.flush_print_to_string() == expected
        run.dispatch([1, 1, 1], arguments=arguments)
        device.flush_print()
        assert capfd.readouterr().out == expected
        assert device.flush_print_to_string() == ""
        assert arguments.to_numpy().view(np.uint32)[0] == 3
    finally:
        device.close()


def test_format_info() -> None:
    assert spy.get_format_info(spy.Format.bc7_unorm_srgb).channel_bit_count == [128, 0, 0, 0]
    assert spy.get_format_info(spy.Format.bc1_unorm).channel_bit_count == [64, 0, 0, 0]
    assert spy.get_format_info(spy.Format.rgb32_float).channel_bit_count == [32, 32, 32, 0]


def test_render_targets_without_rasterisation(device: spy.Device) -> None:
    """The flag is taken where nothing can be drawn."""
    if device.info.type is spy.DeviceType.cpu and not _has_textures(device):
        pytest.skip("no textures on this device")
    usage = spy.TextureUsage.render_target | TEXTURE
    texture = device.create_texture(format=spy.Format.rgba8_unorm, width=4, height=4, usage=usage)
    assert texture.desc.usage & usage == usage


def test_missing_debug_layers(device_type: spy.DeviceType, tmp_path: Path) -> None:
    """A machine without Vulkan's validation layer says so once, names the package, and goes on."""
    if device_type is not spy.DeviceType.vulkan:
        pytest.skip("the layer is Vulkan's")
    program = """
import slangpy as spy
for _ in range(2):
    device = spy.create_device(type=spy.DeviceType.vulkan, enable_debug_layers=True)
    print(spy.Module.load_from_source(device, "layers", "float twice(float x) { return 2 * x; }").twice(4.0))
"""
    empty = {**os.environ, "VK_LAYER_PATH": str(tmp_path), "VK_ADD_LAYER_PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=empty, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["8.0", "8.0"]
    assert done.stderr.count("enable_debug_layers has no effect") == 1 and "vulkan-validationlayers" in done.stderr
