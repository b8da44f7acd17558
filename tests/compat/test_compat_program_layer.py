"""Program layer and sessions as programs written for shader-slang/slangpy use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.core.utils import find_type_layout_for_buffer

pytestmark = pytest.mark.one

INC = "float inc(float x) { return x + 1; }"
FILL = """
[shader("compute")] [numthreads(4, 1, 1)]
void fill(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> y) { y[tid.x] = tid.x; }
[shader("compute")] [numthreads(4, 1, 1)]
void twice(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> y) { y[tid.x] = 2 * tid.x; }
"""
RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access


def test_options_object_serves_modules(device_type: spy.DeviceType, tmp_path: Path) -> None:
    (tmp_path / "first.slang").write_text("float base() { return BASE; }\n" + INC)
    options = spy.SlangCompilerOptions({"include_paths": [tmp_path], "defines": {"BASE": "7"}})
    device = spy.Device(type=device_type, compiler_options=options, enable_hot_reload=False)
    try:
        from_file = spy.Module.load_from_file(device, "first.slang")
        from_text = spy.Module.load_from_source(device, "second", "import first;\nfloat next() { return base() + 1; }")
        if device_type is not spy.DeviceType.null:
            assert from_file.base() == 7.0 and from_text.next() == 8.0
        assert device.load_module("first").name == "first"
    finally:
        device.close()


def test_session_desc(device: spy.Device, tmp_path: Path) -> None:
    made = device.create_slang_session(
        compiler_options={"include_paths": [tmp_path], "defines": {"K": "3"}}, cache_path=tmp_path / "cache"
    )
    desc = made.desc
    assert isinstance(desc, spy.SlangSessionDesc) and isinstance(desc.compiler_options, spy.SlangCompilerOptions)
    assert desc.add_default_include_paths is True and desc.cache_path == tmp_path / "cache"
    assert desc.compiler_options.include_paths == [spy.SHADER_PATH, str(tmp_path)]
    assert desc.compiler_options.defines == {"K": "3"}
    bare = device.create_slang_session(compiler_options={"include_paths": [tmp_path]}, add_default_include_paths=False)
    assert bare.desc.compiler_options.include_paths == [str(tmp_path)]
    assert bare.desc.add_default_include_paths is False and bare.desc.cache_path is None
    with pytest.raises(AttributeError):
        bare.desc = desc  # type: ignore[misc]


def test_session_like_the_device(device: spy.Device, tmp_path: Path) -> None:
    """Two sessions with shared options."""
    (tmp_path / "shared.slang").write_text(INC)
    first = device.create_slang_session(compiler_options={"include_paths": [tmp_path]})
    paths = first.desc.compiler_options.include_paths
    second = device.create_slang_session({"include_paths": paths, "defines": {"A": "1"}})
    assert second.desc.compiler_options.include_paths == paths
    assert second.load_module("shared").name == "shared"
    assert device.slang_session.desc.compiler_options.include_paths[0] == spy.SHADER_PATH


def test_session_desc_is_made_like_options() -> None:
    empty = spy.SlangSessionDesc()
    assert empty.add_default_include_paths is True and empty.cache_path is None
    desc = spy.SlangSessionDesc({"compiler_options": {"defines": {"A": "1"}}, "add_default_include_paths": False})
    assert desc.compiler_options.defines == {"A": "1"} and not desc.add_default_include_paths
    with pytest.raises(TypeError, match="no field"):
        spy.SlangSessionDesc({"include_paths": []})


def test_keyword_names(device: spy.Device, tmp_path: Path) -> None:
    (tmp_path / "on_disk.slang").write_text(INC)
    session = device.create_slang_session(compiler_options={"include_paths": [tmp_path]})
    new = session.load_module_from_source(module_name="kw_new", source=INC, path="kw_new.slang")
    old = session.load_module_from_source(name="kw_old", source=INC)
    assert session.load_module(module_name="on_disk").name == session.load_module(name="on_disk").name == "on_disk"
    assert session.compose_modules(name="both", modules=[new, old], type_conformances=[]).name == "both"
    assert device.load_module_from_source(module_name="kw_device", source=INC).name == "kw_device"
    assert device.load_module_from_source(name="kw_device_old", source=INC, path=None).name == "kw_device_old"
    with pytest.raises(TypeError):
        session.load_module_from_source(modul_name="kw_typo", source=INC)


def test_shader_stage(device: spy.Device) -> None:
    expected = (
        "none vertex hull domain geometry fragment compute ray_generation intersection any_hit closest_hit miss "
        "callable mesh amplification"
    ).split()
    assert [spy.ShaderStage[name].value for name in expected] == list(range(15))
    module = device.load_module_from_source("staged", FILL)
    stage = module.entry_point("fill").stage
    assert stage is spy.ShaderStage.compute and stage == "compute" and stage != "vertex"
    assert module.entry_point("fill").layout.stage is spy.ShaderStage.compute
    assert {stage: 1}[spy.ShaderStage.compute] == 1


CONFORMING = """
interface IShape { float area(); }
struct Square : IShape { float a; float area() { return a * a; } }
RWStructuredBuffer<float> result;
[shader("compute")] [numthreads(1, 1, 1)] void go() { IShape s = createDynamicObject<IShape>(0, 3.0f); result[0] = s.area(); }
[shader("compute")] [numthreads(1, 1, 1)] void typed<T : IShape>() { T t; result[0] = t.area(); }
"""


@pytest.mark.parametrize(
    ("conformances", "text"),
    [
        ([("INone", "Square")], 'Interface type "INone" not found'),
        ([("IShape", "None_")], 'Type "None_" not found'),
        ([("IShape", "Square", 0), ("IShape", "Square", 1)], "Duplicate type conformance entry"),
    ],
)
def test_conformance_errors_are_both(device: spy.Device, conformances: Any, text: str) -> None:
    module = device.load_module_from_source("conforming", CONFORMING)
    for cls in (RuntimeError, ValueError):
        with pytest.raises(cls, match=text):
            module.entry_point("go", conformances)


def test_specialization_error_is_both(device: spy.Device) -> None:
    module = device.load_module_from_source("conforming", CONFORMING)
    for cls in (RuntimeError, ValueError):
        with pytest.raises(cls, match='Specialization type "Nope" not found'):
            module.entry_point("typed").specialize([spy.SpecializationArg.from_type("Nope")])


def test_upload_error_is_both(device: spy.Device) -> None:
    buffer = device.create_buffer(size=16, usage=RW)
    for cls in (RuntimeError, IndexError):
        with pytest.raises(cls, match="upload would exceed the size of the destination buffer"):
            encoder = device.create_command_encoder()
            encoder.upload_buffer_data(buffer, 8, np.zeros(4, np.float32))


def test_cursor_error_is_both(device: spy.Device) -> None:
    module = device.load_module_from_source("cursed", "struct S { float a; }\nRWStructuredBuffer<S> all;")
    layout = module.layout.get_type_layout(module.layout.find_type_by_name("StructuredBuffer<S>")).element_type_layout
    cursor = spy.BufferCursor(device.info.type, layout, 2)
    for cls in (RuntimeError, TypeError):
        with pytest.raises(cls, match="Expected dict"):
            cursor[0].write(3.0)


def test_constructors_by_name(device: spy.Device) -> None:
    source = """struct One { float a; __init(float q) { a = q; } }
    struct Two { float a; int b; __init(float q) { a = q; b = 0; } __init(float q, int r) { a = q; b = r; } }"""
    layout = spy.Module.load_from_source(device, "constructed", source).layout
    one = layout.find_function_by_name_in_type(layout.find_type_by_name("One"), "$init")
    assert one is not None and one.is_constructor and [p.name for p in one.parameters] == ["q"]
    two = layout.find_function_by_name_in_type(layout.find_type_by_name("Two"), "$init")
    assert two is not None and two.is_overloaded
    assert {1, 2} <= {len(overload.parameters) for overload in two.overloads}
    found = two.specialize_with_arg_types([layout.find_type_by_name("float"), layout.find_type_by_name("int")])
    assert found is not None and [p.name for p in found.parameters] == ["q", "r"]


def test_constructors_of_the_compilers_layout(device: spy.Device) -> None:
    """`ProgramLayout` knows them as `module.layout` does, and only them by this name."""
    source = """struct One { float a; __init(float q) { a = q; } }
    struct Two { float a; int b; __init(float q) { a = q; b = 0; } __init(float q, int r) { a = q; b = r; } }
    float init(float x) { return x; }"""
    layout = device.load_module_from_source("constructed_by_compiler", source).layout
    one = layout.find_function_by_name_in_type(layout.find_type_by_name("One"), "$init")
    assert one is not None and [p.name for p in one.parameters] == ["q"] and not one.is_overloaded
    assert layout.find_function_by_name_in_type(layout.find_type_by_name("One"), "__init").name == "$init"
    two = layout.find_function_by_name_in_type(layout.find_type_by_name("Two"), "$init")
    assert two is not None and two.is_overloaded
    assert sorted(len(overload.parameters) for overload in two.overloads) == [1, 2]
    found = two.specialize_with_arg_types([layout.find_type_by_name("float"), layout.find_type_by_name("int")])
    assert found is not None and [p.name for p in found.parameters] == ["q", "r"]
    vector = layout.find_function_by_name_in_type(layout.find_type_by_name("float3"), "$init")
    assert vector is None or all(len(overload.parameters) <= 3 for overload in vector.overloads)
    for name in ("$", "$in", "init$", "$init2"):
        assert layout.find_function_by_name_in_type(layout.find_type_by_name("Two"), name) is None
    assert layout.find_function_by_name_in_type(layout.find_type_by_name("One[3]"), "$init") is None
    assert layout.find_function_by_name("$init") is None


REPORT = {
    "label", "alive", "create_time", "compile_time", "compile_slang_time", "compile_downstream_time",
    "create_pipeline_time", "entry_point_reports", "pipeline_reports",
}  # fmt: skip
ENTRY = {
    "name", "start_time", "end_time", "create_time", "compile_time", "compile_slang_time", "compile_downstream_time",
    "is_cached", "cache_size",
}  # fmt: skip
PIPELINE = {"type", "start_time", "end_time", "create_time", "is_cached", "cache_size"}


@pytest.mark.needs_kernels
def test_compilation_report(device_type: spy.DeviceType) -> None:
    device = spy.Device(type=device_type, enable_compilation_reports=True, enable_hot_reload=False)
    try:
        module = device.load_module_from_source("reported", FILL)
        program = device.link_program([module], [module.entry_point("fill")])
        before = program.get_compilation_report()
        assert set(before) == REPORT and before["entry_point_reports"] == [] and before["alive"] is True
        kernel = device.create_compute_kernel(program)
        y = device.create_buffer(element_count=4, struct_size=4, usage=RW)
        kernel.dispatch([4, 1, 1], y=y)
        report = program.get_compilation_report()
        assert set(report) == REPORT and report["label"] == "fill" and report["alive"] is True
        assert [set(entry) for entry in report["entry_point_reports"]] == [ENTRY]
        assert [set(entry) for entry in report["pipeline_reports"]] == [PIPELINE]
        entry, pipeline = report["entry_point_reports"][0], report["pipeline_reports"][0]
        assert entry["name"] == "fill" and entry["end_time"] >= entry["start_time"] and entry["cache_size"] > 0
        assert pipeline["type"] == "compute" and pipeline["end_time"] >= pipeline["start_time"]
        assert report["compile_time"] == pytest.approx(report["compile_slang_time"] + report["compile_downstream_time"])
        assert report["create_time"] > 0
        assert device.get_compilation_reports() == [report]
        del kernel, program
        assert [item["alive"] for item in device.get_compilation_reports()] == [False]
    finally:
        device.close()


def test_type_layout_for_buffers(device: spy.Device) -> None:
    source = "struct P { float3 x; int n; }\nfloat f(P p) { return p.x.y + p.n; }"
    module = spy.Module.load_from_source(device, "laid_out", source)
    native = module.device_module.layout
    for layout in (native, module.layout):
        for slang_type in ("P", module.P, native.find_type_by_name("P"), module.layout.find_type_by_name("P")):
            found = find_type_layout_for_buffer(layout, slang_type)
            assert isinstance(found, spy.TypeLayoutReflection) and found.type.full_name == "P"
            assert (found.size, found.stride) == (16, 16)
    array = find_type_layout_for_buffer(native, "float2[4]")
    assert array.stride == 32
    tensor = spy.Tensor.empty(device, (3,), dtype=array)
    assert tensor.dtype.full_name == "vector<float,2>[4]" and tensor.storage.size == 96
    points = spy.Tensor.empty(device, (5,), dtype=find_type_layout_for_buffer(native, "P"))
    assert points.storage.size == 80 and points.dtype.full_name == "P"
    with pytest.raises(ValueError, match="Could not find type 'Nope'"):
        find_type_layout_for_buffer(native, "Nope")


def test_enums_are_numbers_and_print_names() -> None:
    assert str(spy.ShaderModel.sm_6_2) == "ShaderModel.sm_6_2" and spy.ShaderModel.sm_6_2 == 62
    assert f"{spy.SlangOptimizationLevel.high}" == "SlangOptimizationLevel.high"
    assert int(RW) == 24 and str(spy.LogLevel.warn) == "LogLevel.warn"
    assert spy.LogLevel.warn >= spy.LogLevel.info and not spy.LogLevel.debug > spy.LogLevel.fatal
    assert int(spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access) == 3
    assert (RW & spy.BufferUsage.unordered_access) == spy.BufferUsage.unordered_access
    assert isinstance(spy.Feature.half, int) and spy.Feature(int(spy.Feature.half)) is spy.Feature.half
    assert str(spy.DeviceType.cpu) == "DeviceType.cpu"
