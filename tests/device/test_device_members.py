"""Names of the device layer and what is known of them without running anything."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, TEXTURE_RW

import slangpy as spy

ENUMS = {
    "DeviceType": "automatic d3d12 vulkan metal cpu cuda wgpu null",
    "MemoryType": "device_local upload read_back",
    "ResourceState": "undefined general vertex_buffer index_buffer constant_buffer stream_output shader_resource "
    "unordered_access render_target depth_read depth_write present indirect_argument copy_source copy_destination "
    "resolve_source resolve_destination acceleration_structure_read acceleration_structure_write "
    "acceleration_structure_build_output",
    "TextureType": "texture_1d texture_1d_array texture_2d texture_2d_array texture_2d_ms texture_2d_ms_array texture_3d "
    "texture_cube texture_cube_array",
    "TextureFilteringMode": "point linear",
    "TextureAddressingMode": "wrap clamp_to_edge clamp_to_border mirror_repeat mirror_once",
    "TextureReductionOp": "average comparison minimum maximum",
    "ComparisonFunc": "never less equal less_equal greater not_equal greater_equal always",
    "FormatType": "float unorm unorm_srgb snorm uint sint unknown",
    "LogLevel": "none debug info warn error fatal",
    "NativeHandleType": "CUdevice CUdeviceptr CUstream CUcontext CUtexObject VkInstance VkPhysicalDevice VkDevice VkQueue "
    "VkCommandBuffer VkBuffer VkImage VkImageView VkSampler VkPipeline VkSemaphore D3D12Device D3D12CommandQueue "
    "D3D12GraphicsCommandList D3D12Resource D3D12Fence file_descriptor win32 undefined",
    "Feature": "hardware_device software_device parameter_block bindless rasterization combined_texture_sampler "
    "acceleration_structure ray_tracing ray_query timestamp_query timestamp_calibration realtime_clock half double int16 "
    "int64 atomic_float atomic_half atomic_int64 wave_ops pointer bfloat16 float8 cooperative_vector cooperative_matrix "
    "sm_5_1 sm_6_0 sm_6_1 sm_6_2 sm_6_3 sm_6_4 sm_6_5 sm_6_6 sm_6_7 sm_6_8 sm_6_9 sm_6_10 surface pipeline_cache "
    "mesh_shader barycentrics multi_view rasterizer_ordered_views conservative_rasterization custom_border_color "
    "fragment_shading_rate sampler_feedback",
    "ModifierID": "shared nodiff static const export extern differentiable mutating inn out inout",
    "SlangOptimizationLevel": "none default high maximal",
    "SlangFloatingPointMode": "default fast precise",
    "SlangDebugInfoLevel": "none minimal standard maximal",
    "SlangMatrixLayout": "row_major column_major",
    "ShaderModel": "unknown sm_6_0 sm_6_1 sm_6_2 sm_6_3 sm_6_4 sm_6_5 sm_6_6 sm_6_7",
}
BUFFER_USAGE = (
    "none vertex_buffer index_buffer constant_buffer shader_resource unordered_access indirect_argument copy_source "
    "copy_destination acceleration_structure acceleration_structure_build_input shader_table shared"
)
TEXTURE_USAGE = (
    "none shader_resource unordered_access render_target depth_stencil present copy_source copy_destination resolve_source "
    "resolve_destination typeless shared"
)
FORMATS = (
    [f"{base}8_{kind}" for base in ("r", "rg", "rgba") for kind in ("uint", "sint", "unorm", "snorm")]
    + [f"{base}16_{kind}" for base in ("r", "rg", "rgba") for kind in ("uint", "sint", "unorm", "snorm", "float")]
    + [f"{base}32_{kind}" for base in ("r", "rg", "rgb", "rgba") for kind in ("uint", "sint", "float")]
    + "rgba8_unorm_srgb bgra8_unorm bgra8_unorm_srgb bgrx8_unorm bgrx8_unorm_srgb r64_uint r64_sint bgra4_unorm".split()
    + "b5g6r5_unorm bgr5a1_unorm rgb9e5_ufloat rgb10a2_uint rgb10a2_unorm r11g11b10_float".split()
    + "d16_unorm d32_float d32_float_s8_uint bc4_unorm bc4_snorm bc5_unorm bc5_snorm bc6h_ufloat bc6h_sfloat".split()
    + [f"{b}_unorm{s}" for b in ("bc1", "bc2", "bc3", "bc7", "astc4x4", "astc6x6", "astc8x8") for s in ("", "_srgb")]
)
CLASSES = (
    "AdapterInfo Attribute Buffer BufferCursor BufferDesc BufferElementCursor BufferOffsetPair CommandBuffer CommandEncoder "
    "ComputeKernel ComputePassEncoder ComputePipeline ConsoleLoggerOutput DeclReflection Device DeviceDesc DeviceInfo "
    "DeviceLimits EntryPointLayout Fence FileLoggerOutput FormatInfo FunctionReflection HeapReport LogFrequency Logger "
    "LoggerOutput NativeHandle ProgramLayout QueryPool ReflectionCursor SHA1 Sampler SamplerDesc ShaderCursor "
    "ShaderHotReloadEvent ShaderObject ShaderProgram SlangCompilerOptions SlangEntryPoint SlangLinkOptions SlangModule "
    "SlangSession SpecializationArg SubresourceRange Texture TextureDesc TextureView TextureViewDesc Timer TypeConformance "
    "TypeLayoutReflection TypeReflection VariableLayoutReflection VariableReflection"
)


@pytest.mark.parametrize("name", ENUMS)
def test_enums(name: str) -> None:
    enum = getattr(spy, name)
    for member in ENUMS[name].split():
        value = getattr(enum, member if hasattr(enum, member) else f"{member}_")
        assert value is getattr(enum, value.name)


@pytest.mark.parametrize(("name", "members"), [("BufferUsage", BUFFER_USAGE), ("TextureUsage", TEXTURE_USAGE)])
def test_flags(name: str, members: str) -> None:
    enum = getattr(spy, name)
    for i, member in enumerate(members.split()):
        assert getattr(enum, member).value == (0 if i == 0 else 1 << (i - 1)), member
    both = enum.shader_resource | enum.unordered_access
    assert both & enum.unordered_access == enum.unordered_access and not both & enum.shared


def test_data_types() -> None:
    """The names that `to_torch` takes."""
    names = "void bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
    for name in names:
        assert spy.DataType[name].name == name
    assert spy.DataType is spy.TypeReflection.ScalarType


@pytest.mark.parametrize("name", ["AppWindowDesc", "ComputePipelineDesc"])
def test_later_classes(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"slangpy.{name} is not implemented; "):
        getattr(spy, name)(1)


@pytest.mark.parametrize("name", ["thread"])
def test_later_modules(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"slangpy.{name}\.Window is not implemented; "):
        getattr(spy, name).Window


def test_compiler_options_from_fields_and_dicts() -> None:
    options = spy.SlangCompilerOptions({"defines": {"A": "1"}}, debug_info=spy.SlangDebugInfoLevel.minimal)
    assert (options.defines, options.debug_info) == ({"A": "1"}, spy.SlangDebugInfoLevel.minimal)
    assert spy.SlangLinkOptions({"optimization": spy.SlangOptimizationLevel.high}).optimization.name == "high"
    for options in (spy.SlangCompilerOptions, spy.SlangLinkOptions):
        for call in (lambda o=options: o(colour=1), lambda o=options: o({"colour": 1})):
            with pytest.raises(TypeError, match='has no field "colour"; known: .*optimization'):
                call()


@pytest.mark.parametrize(
    "options",
    [
        {"include_paths": "abc"}, {"include_paths": 3}, {"defines": ["A"]}, {"dump_intermediates": 1}, {"shader_model": 7},
        {"downstream_args": "-O3"}, {"dump_intermediates_prefix": 3}, 3, "text",
    ],
)  # fmt: skip
def test_wrong_compiler_options(device: spy.Device, options: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="SlangCompilerOptions"):
        device.create_slang_session(options)


def test_wrong_link_options(device: spy.Device) -> None:
    with pytest.raises(TypeError, match="link_options"):
        device.link_program([], [], 3)


def test_formats() -> None:
    for name in FORMATS:
        info = spy.get_format_info(spy.Format[name])
        assert info.format is spy.Format[name] and info.name == name
        assert info.bytes_per_block > 0 and 0 < info.channel_count <= 4
        assert len(info.channel_bit_count) == 4
        compressed = name.startswith(("bc", "astc"))
        assert info.is_compressed == compressed
        assert (info.block_width > 1) == compressed == (info.block_height > 1)
        if not compressed and name not in ("bgrx8_unorm", "bgrx8_unorm_srgb", "d32_float_s8_uint", "rgb9e5_ufloat"):
            assert sum(info.channel_bit_count) == 8 * info.bytes_per_block, name
        assert info.is_srgb_format() == name.endswith("_srgb")
        assert info.is_depth == name.startswith("d") and info.is_stencil == name.endswith("s8_uint")
        assert info.is_depth_stencil() == name.startswith("d")
        assert info.is_integer_format() == (name.endswith(("uint", "sint")) and not name.startswith("d32"))
        assert info.is_normalized_format() == ("norm" in name)


@pytest.mark.parametrize(
    ("name", "size", "channels", "bits", "dxgi", "vulkan"),
    [
        ("rgb32_float", 12, 3, [32, 32, 32, 0], 6, 106),
        ("d32_float_s8_uint", 8, 2, [32, 8, 0, 0], 20, 130),
        ("r8_unorm", 1, 1, [8, 0, 0, 0], 61, 9),
        ("rgba8_unorm_srgb", 4, 4, [8, 8, 8, 8], 29, 43),
        ("bgra8_unorm", 4, 4, [8, 8, 8, 8], 87, 44),
        ("rgba16_float", 8, 4, [16, 16, 16, 16], 10, 97),
        ("r11g11b10_float", 4, 3, [11, 11, 10, 0], 26, 122),
        ("bc7_unorm_srgb", 16, 4, None, 99, 146),
        ("r32_uint", 4, 1, [32, 0, 0, 0], 42, 98),
    ],
)
def test_format_numbers(name: str, size: int, channels: int, bits: Any, dxgi: int, vulkan: int) -> None:
    """Against the tables of DXGI and Vulkan."""
    info = spy.get_format_info(spy.Format[name])
    assert (info.bytes_per_block, info.channel_count) == (size, channels)
    assert (int(info.dxgi_format), int(info.vk_format)) == (dxgi, vulkan)
    if bits is not None:
        assert list(info.channel_bit_count) == bits
        assert info.has_equal_channel_bits() == (len({b for b in bits if b}) == 1)
        assert info.get_channel_bits(spy.FormatChannels.r) == bits[0]


def test_classes() -> None:
    for name in CLASSES.split():
        assert isinstance(getattr(spy, name), type), name
    assert spy.ALL_MIPS == spy.ALL_LAYERS == 0xFFFFFFFF


def test_free_functions_of_devices() -> None:
    """What a device creates, tells and converts is to be had of the current one, too."""
    names = {name for name in dir(spy.Device) if name.startswith(("create_", "get_", "convert_"))}
    not_free = {"create_kernel", "get_created_devices"}
    assert {name for name in names if not callable(getattr(spy, name, None))} == not_free


@pytest.mark.parametrize(
    "name", ["AccelerationStructureBuildInputSpheres", "AppWindowDesc", "CpuTimestampDomain", "TimestampCalibration"]
)
def test_later(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"slangpy.{name} is not implemented; "):
        getattr(spy, name)()
    with pytest.raises(AttributeError):
        _ = spy.NoSuchThing  # pyright: ignore[reportAttributeAccessIssue]


def test_compiler_stays_unloaded() -> None:
    code = "import sys, slangpy\nslangpy.ComputeKernel, slangpy.Timer\nassert 'slangpy._slang' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_timer() -> None:
    timer = spy.Timer()
    time.sleep(0.02)
    first = timer.elapsed_s()
    assert 0.02 <= first < 5
    assert first <= timer.elapsed_ms() / 1e3 <= timer.elapsed_us() / 1e6 <= timer.elapsed_ns() / 1e9
    timer.reset()
    assert timer.elapsed_s() < first


def test_sha1() -> None:
    assert spy.SHA1("abc").hex_digest() == "a9993e364706816aba3e25717850c26c9cd0d89d"
    parts = spy.SHA1().update(b"a").update("bc")
    assert parts.digest() == hashlib.sha1(b"abc").digest()
    with pytest.raises(TypeError, match="bytes or str"):
        spy.SHA1(3)  # pyright: ignore[reportArgumentType]


def test_every_object_prints_its_fields(device: spy.Device) -> None:
    encoder = device.create_command_encoder()
    buffer = device.create_buffer(size=64, usage=RW)
    things: list[Any] = [
        device, device.info, device.info.limits, device.desc, buffer, buffer.desc, encoder, device.create_fence(),
        device.create_query_pool(count=2), device.create_command_encoder().finish(), spy.BufferOffsetPair(buffer, 4),
        *spy.Device.enumerate_adapters(device.info.type), *device.report_heaps(), spy.Logger(), spy.SubresourceRange(),
    ]  # fmt: skip
    if device.info.type is not spy.DeviceType.cpu:
        texture = device.create_texture(width=4, height=4, format=spy.Format.rgba32_float, usage=TEXTURE_RW)
        view = texture.create_view()
        things += [texture, texture.desc, view, view.desc, device.create_sampler(), texture.get_subresource_layout(0)]
    source = 'struct S { float3 a; int b; }; [shader("compute")] [numthreads(8, 1, 1)]\n'
    source += "void go(uint3 t : SV_DispatchThreadID, RWStructuredBuffer<S> r) { r[t.x].b = 1; }"
    module = device.load_module_from_source("prints_its_fields", source)
    program = device.link_program([module], [module.entry_point("go")])
    layout = program.layout.get_type_layout(program.layout.find_type_by_name("S"))
    things += [
        device.slang_session, module, module.entry_point("go"), program, program.layout, layout, layout.fields[0],
        program.layout.entry_points[0], module.module_decl, device.create_compute_kernel(program),
    ]  # fmt: skip
    with encoder.begin_compute_pass() as compute:
        things.append(compute)
        for thing in things:
            text = repr(thing)
            assert " object at 0x" not in text, text
            assert text.startswith(type(thing).__name__.removeprefix("Py")) or text.startswith("LogLevel"), text
            assert "\n" in text, text


def test_descriptors_read_back(device: spy.Device) -> None:
    fields = {"size": 64, "struct_size": 4, "usage": RW, "label": "mine"}
    for buffer in (
        device.create_buffer(**fields),
        device.create_buffer(fields),
        device.create_buffer(spy.BufferDesc(**fields)),
    ):
        assert (buffer.desc.size, buffer.desc.struct_size, buffer.desc.label) == (64, 4, "mine")
    with pytest.raises(TypeError, match="siz"):
        device.create_buffer(siz=4)
    assert device.desc.type is device.info.type


def test_adapters(device: spy.Device) -> None:
    adapters = spy.Device.enumerate_adapters(device.info.type)
    assert adapters and all(len(adapter.luid) == 16 for adapter in adapters)
    assert device.info.adapter_name in [adapter.name for adapter in adapters]
    for missing in (spy.DeviceType.d3d12,):
        if not spy.Device.enumerate_adapters(missing):
            with pytest.raises(RuntimeError, match="can be opened"):
                spy.Device(type=missing)
    for never in (spy.DeviceType.metal, spy.DeviceType.wgpu):
        with pytest.raises(NotImplementedError):
            spy.Device(type=never)


def test_limits(device: spy.Device) -> None:
    limits = device.info.limits
    assert limits.max_compute_threads_per_group >= 128 or device.info.type is spy.DeviceType.null
    assert len(list(limits.max_compute_thread_group_size)) == 3
    assert limits.min_wave_size <= limits.max_wave_size
    assert device.info.optix_version == 0
    for name in dir(limits):
        if not name.startswith("_"):
            assert np.all(np.array(list(v) if hasattr(v := getattr(limits, name), "__len__") else v) >= 0), name
    assert (
        spy.Feature.hardware_device in device.features
        or spy.Feature.software_device in device.features
        or (device.info.type is spy.DeviceType.null)
    )
    assert device.supported_shader_model >= spy.ShaderModel.sm_6_0


def test_compilation_report_of_a_program(device_type: spy.DeviceType) -> None:
    if device_type is spy.DeviceType.null:
        pytest.skip("compiles nothing")
    device = spy.Device(type=device_type, enable_compilation_reports=True, enable_hot_reload=False)
    source = '[shader("compute")] [numthreads(8, 1, 1)] void {0}(uint3 t : SV_DispatchThreadID, RWStructuredBuffer<int> r) {{ r[t.x] = {1}; }}'
    module = device.load_module_from_source("reported", source.format("one", 1) + source.format("two", 2))
    programs = [device.link_program([module], [module.entry_point(name)]) for name in ("one", "two")]
    buffer = device.create_buffer(size=32, struct_size=4, usage=RW)
    assert programs[0].get_compilation_report()["entry_point_reports"] == []
    for program in programs:
        device.create_compute_kernel(program).dispatch([8, 1, 1], r=buffer)
    assert buffer.to_numpy().view(np.int32).tolist() == [2] * 8
    reports = [program.get_compilation_report() for program in programs]
    assert [report["label"] for report in reports] == ["one", "two"] and device.get_compilation_reports() == reports
    for report in reports:
        for name in ("create", "compile", "compile_slang", "compile_downstream", "create_pipeline"):
            assert 0 <= report[f"{name}_time"] < 60
        assert (report["compile_downstream_time"] > 0) == (not report["entry_point_reports"][0]["is_cached"])
    device.close()


FREE = ("create", "get", "convert")


@pytest.mark.null
def test_free_functions_of_the_current_device() -> None:
    """Of the same names as the device's methods; create_kernel and get_created_devices are the older name and a static one."""
    names = {name for name in dir(spy.Device) if name.split("_")[0] in FREE} - {"create_kernel", "get_created_devices"}
    assert sorted(name for name in names if not callable(getattr(spy, name, None))) == []
    device = spy.Device(type=spy.DeviceType.null)
    assert spy.get_format_support(spy.Format.rgba8_unorm) == device.get_format_support(spy.Format.rgba8_unorm)
    with pytest.raises(NotImplementedError, match="get_timestamp_calibration is not implemented; compare timestamps"):
        spy.get_timestamp_calibration()


@pytest.mark.one
def test_the_library_does_not_warn(caplog: pytest.LogCaptureFixture) -> None:
    """Imported by a module of the device's own session, as kernels of pipelines do."""
    device = spy.Device(type=spy.DeviceType.cpu)
    device.load_module_from_source("importing_slangpy", "import slangpy;\nfloat twice(float x) { return 2 * x; }")
    assert [record.getMessage() for record in caplog.records] == []
    device.load_module_from_source("narrowing", "int narrow(int64_t x) { return x; }")
    assert "E30081" in caplog.text or "narrow" in caplog.text
