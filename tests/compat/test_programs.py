"""Whole programs of the kind that users of shader-slang/slangpy have, on every device that can run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
import slangpy.reflection as refl
from slangpy.core.utils import find_type_layout_for_buffer

pytestmark = pytest.mark.elsewhere(
    "test_cursor_fills_a_structured_tensor", "test_image_read_resampled_filtered_written", "test_hot_reload_with_callbacks",
    "test_mip_chain", "test_print_from_a_function",
)  # fmt: skip
RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access


@pytest.fixture
def running(device: spy.Device) -> spy.Device:
    if device.info.type is spy.DeviceType.null:
        pytest.skip("runs no kernel")
    return device


def test_two_sessions_with_shared_options(running: spy.Device, tmp_path: Path) -> None:
    """One library, two variants of a kernel: the second session takes the first one's options and adds to them."""
    (tmp_path / "scale.slang").write_text("public int scaled(int x) { return FACTOR * x; }")
    main = """import scale;
    [shader("compute")] [numthreads(4, 1, 1)]
    void go(uint3 t : SV_DispatchThreadID, RWStructuredBuffer<int> y) { y[t.x] = scaled(t.x); }"""
    first = running.create_slang_session({"include_paths": [tmp_path], "defines": {"FACTOR": "2"}})
    known = first.desc.compiler_options
    second = running.create_slang_session(
        {"include_paths": known.include_paths, "defines": {**known.defines, "FACTOR": "3"}}
    )
    found = []
    for session in (first, second):
        module = session.load_module_from_source("main", main)
        run = running.create_compute_kernel(session.link_program([module], [module.entry_point("go")]))
        y = running.create_buffer(size=16, usage=RW)
        run.dispatch([4, 1, 1], y=y)
        found.append(y.to_numpy().view(np.int32).tolist())
    assert found == [[0, 2, 4, 6], [0, 3, 6, 9]]


PARTICLES = """
struct Particle { float3 position; float mass; int tags[2]; float2x2 spin; };
float energy(Particle p) { return p.mass * dot(p.position, p.position) + p.tags[1] + p.spin[0][1]; }
"""


def test_cursor_fills_a_structured_tensor(running: spy.Device) -> None:
    module = spy.Module.load_from_source(running, "particles", PARTICLES)
    tensor = spy.Tensor.empty(running, (3,), module.Particle)
    cursor = tensor.cursor()
    assert cursor.element_type.name == "Particle" and cursor.element_count == 3
    for i in range(3):
        spin = spy.float2x2([0, i + 0.5, 0, 0])
        cursor[i].write({"position": spy.float3(i, 1, 2), "mass": 2.0, "tags": [7, 10 * i], "spin": spin})
    cursor[2].mass = 4.0
    cursor.apply()
    assert module.energy(tensor, _result="numpy").tolist() == [10.5, 23.5, 58.5]
    assert tensor.cursor()[1].read()["tags"] == [7, 10]
    layout = find_type_layout_for_buffer(module.device_module.layout, module.Particle)
    assert layout.stride == tensor.dtype.buffer_layout.stride


GENERIC = """
interface IShape { float area(float k); }
struct Square : IShape { float side; float area(float k) { return k * side * side; } };
struct Disc : IShape { float radius; float area(float k) { return 3 * k * radius * radius; } };
float measure<S : IShape>(S shape, float k) { return shape.area(k); }
int twice(int x) { return 2 * x; }
float twice(float x) { return 2 * x; }
"""


def test_typed_reflection_with_specialisation(device: spy.Device) -> None:
    """A tool that lists functions and picks the specialisation for the values it has."""
    module = spy.Module.load_from_source(device, "generic_shapes", GENERIC)
    measure = module.layout.require_function_by_name("measure")
    disc, real = (
        module.layout.require_type_by_name("Disc"),
        module.layout.scalar_type(spy.TypeReflection.ScalarType.float32),
    )
    special = measure.specialize_with_arg_types([disc, real])
    assert special is not None and special.full_name.startswith("measure<Disc")
    assert special.parameters[0].type is disc and special.parameters[1].type is real
    assert isinstance(special.return_type, refl.ScalarType) and special.parameters[0].io_type is refl.IOType.inn
    overloaded = module.layout.require_function_by_name("twice")
    assert overloaded.is_overloaded and {o.return_type.full_name for o in overloaded.overloads} == {"int", "float"}
    integer = module.layout.scalar_type(spy.TypeReflection.ScalarType.int32)
    assert overloaded.specialize_with_arg_types([integer]).return_type is integer
    if device.info.type is not spy.DeviceType.null:
        assert module.measure({"_type": "Disc", "radius": 2.0}, 0.5) == 6.0
        assert module.measure({"_type": "Square", "side": 2.0}, 0.5) == 2.0


def has_textures(device: spy.Device) -> bool:
    try:
        device.create_texture(format=spy.Format.r32_float, width=1, height=1, usage=spy.TextureUsage.shader_resource)
    except NotImplementedError:
        return False
    return True


FILTER = """
float4 sharpen(int2 p, Texture2D<float4> image, int2 size)
{
    float4 sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            sum += image[uint2(clamp(p + int2(dx, dy), int2(0), size - 1))];
    return image[uint2(p)] + 0.5 * (image[uint2(p)] - sum / 9);
}
"""


def test_image_read_resampled_filtered_written(running: spy.Device, tmp_path: Path) -> None:
    """An image from a file, made smaller on the host, sharpened by a kernel, with a mip chain, written to a file."""
    pytest.importorskip("OpenImageIO")
    if not has_textures(running):
        pytest.skip("no textures on this device")
    y, x = np.mgrid[0:24, 0:32].astype(np.float32)
    pixels = np.stack([x / 31, y / 23, np.sin(x / 5) ** 2, np.ones_like(x)], -1).astype(np.float32)
    spy.Bitmap((pixels * 255 + 0.5).astype(np.uint8)).write(tmp_path / "in.png")
    read = spy.Bitmap(tmp_path / "in.png").convert(component_type=spy.DataStruct.Type.float32, srgb_gamma=False)
    small = read.resample(16, 12, spy.TentFilter())
    texture = spy.TextureLoader(running).load_texture(small, {"allocate_mips": True, "generate_mips": True})
    assert (texture.width, texture.height, texture.mip_count) == (16, 12, 5)
    given = texture.to_numpy()
    assert np.abs(texture.to_numpy(mip=1) - given.reshape(6, 2, 8, 2, 4).mean((1, 3))).max() < 2e-3
    module = spy.Module.load_from_source(running, "sharpen", FILTER)
    done = module.sharpen(spy.grid((12, 16)), texture, spy.int2(16, 12), _result="numpy")
    padded = np.pad(given.astype(np.float64), ((1, 1), (1, 1), (0, 0)), mode="edge")
    mean = sum(padded[dy : dy + 12, dx : dx + 16] for dy in range(3) for dx in range(3)) / 9
    assert np.abs(done - (given + 0.5 * (given - mean))).max() < 2e-3
    result = spy.Bitmap(np.clip(done, 0, 1).astype(np.float32))
    result.convert(component_type=spy.DataStruct.Type.uint8, srgb_gamma=True).write(tmp_path / "out.png")
    assert spy.Bitmap(tmp_path / "out.png").width == 16


RESULTS = """
int count(int i) { return 3 * i - 4; }
float half_of(int i) { return 0.5 * i; }
float3 spread(float x) { return float3(x, -x, 2.75 * x); }
[Differentiable] float product(float a, float b) { return a * b; }
"""


def test_results_of_another_type_and_plain_numbers(running: spy.Device) -> None:
    module = spy.Module.load_from_source(running, "results", RESULTS)
    indices = spy.Tensor.from_numpy(running, np.arange(5, dtype=np.int32))
    reals = spy.Tensor.empty(running, (5,), float)
    module.count(indices, _result=reals)
    assert reals.to_numpy().tolist() == [-4, -1, 2, 5, 8]
    whole = spy.Tensor.empty(running, (5,), int)
    module.half_of(indices, _result=whole)
    assert whole.to_numpy().tolist() == [0, 0, 1, 1, 2]
    rows = np.zeros((2, 3), np.int32)
    module.spread(np.array([1, -2], np.float32), _result=rows)
    assert rows.tolist() == [[1, -1, 2], [-2, 2, -5]]
    assert module.product.bwds(2.0, 3.0, 1.0) is None
    a, b = spy.diffPair(2.0, 0.0), spy.diffPair(3.0, 0.0)
    module.product.bwds(a, b, spy.diffPair(0.0, 1.0))
    assert (a.grad, b.grad) == (3.0, 2.0)


def test_circular_imports(device_type: spy.DeviceType, tmp_path: Path) -> None:
    shape = "import material;\npublic float lit(float x) { return shade(x) + 1; }\npublic float base(float x) { return 10 * x; }"
    material = "import shape;\npublic float tint(float x) { return base(x) + 2; }\npublic float shade(float x) { return 3 * x; }"
    both = "import shape;\nimport material;\nfloat both(float x) { return lit(x) + tint(x); }"
    (tmp_path / "shape.slang").write_text(shape)
    (tmp_path / "material.slang").write_text(material)
    device = spy.create_device(device_type, include_paths=[tmp_path])
    try:
        module = spy.Module.load_from_file(device, "shape")
        other = spy.Module.load_from_file(device, "material")
        user = spy.Module.load_from_source(device, "uses_both", both)
        if device_type is not spy.DeviceType.null:
            assert module.lit(2.0) == 7.0 and other.tint(2.0) == 22.0 and user.both(1.0) == 16.0
        assert device.load_module("material").name == "material"
    finally:
        device.close()


def test_hot_reload_with_callbacks(device_type: spy.DeviceType, tmp_path: Path) -> None:
    """Callbacks are called once for each reload, forced or not; what was loaded stays usable."""
    path = tmp_path / "live.slang"
    path.write_text("int version() { return 1; }")
    device = spy.create_device(device_type, include_paths=[tmp_path])
    try:
        seen: list[str] = []
        ids: dict[str, int] = {}

        def once(event: spy.ShaderHotReloadEvent) -> None:
            seen.append("once")
            device.unregister_shader_hot_reload_callback(ids["once"])

        ids["once"] = device.register_shader_hot_reload_callback(once)
        ids["all"] = device.register_shader_hot_reload_callback(lambda event: seen.append("all"))
        device.reload_all_programs()
        assert seen == ["once", "all"]
        session = device.create_slang_session({"include_paths": [tmp_path]})
        program_of = session.load_module("live")
        layout = program_of.layout
        function = layout.find_function_by_name("version")
        module = spy.Module.load_from_file(device, "live.slang")
        device.reload_all_programs()
        assert seen == ["once", "all", "all"]
        assert not function.is_valid
        with pytest.raises(RuntimeError, match="Reflection object has been invalidated"):
            _ = function.name
        assert program_of.layout.find_function_by_name("version").name == "version"
        if device_type is not spy.DeviceType.null:
            assert module.version() == 1
            path.write_text("int version() { return 2; }")
            device.hot_reload_check()
            assert module.version() == 2 and seen[3:] == ["all"]
        path.write_text("int version( { return 3; }")
        device.reload_all_programs()  # logged; the old code stays
        assert seen[-1] == "all" and module.find_function("version") is not None
    finally:
        device.close()


LEVELS = """
[shader("compute")] [numthreads(8, 8, 1)]
void paint(uint3 t : SV_DispatchThreadID, RWTexture2D<float4> image)
{
    uint width, height;
    image.GetDimensions(width, height);
    if (t.x < width && t.y < height)
        image[t.xy] = float4(t.x, t.y, (t.x ^ t.y) & 1, 1);
}
[shader("compute")] [numthreads(1, 1, 1)]
void read(Texture2D<float4> image, SamplerState smp, uniform int levels, RWStructuredBuffer<float4> means)
{
    for (int mip = 0; mip < levels; mip++)
        means[mip] = image.SampleLevel(smp, float2(0.5), mip);
}
"""


def test_mip_chain(running: spy.Device) -> None:
    """Painted by one kernel, averaged level by level by the encoder, sampled by another, in one command buffer."""
    if not has_textures(running):
        pytest.skip("no textures on this device")
    usage = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
    image = running.create_texture(
        format=spy.Format.rgba32_float, width=16, height=8, mip_count=spy.ALL_MIPS, usage=usage
    )
    assert image.mip_count == 5
    module = running.load_module_from_source("levels", LEVELS)
    paint, read = (
        running.create_compute_kernel(running.link_program([module], [module.entry_point(name)]))
        for name in ("paint", "read")
    )
    linear = running.create_sampler(
        min_filter=spy.TextureFilteringMode.linear, mag_filter=spy.TextureFilteringMode.linear
    )
    means = running.create_buffer(size=5 * 16, struct_size=16, usage=RW)
    encoder = running.create_command_encoder()
    paint.dispatch([16, 8, 1], command_encoder=encoder, image=image)
    encoder.generate_mips(image)
    read.dispatch([1, 1, 1], command_encoder=encoder, image=image, smp=linear, levels=5, means=means)
    running.submit_command_buffer(encoder.finish())
    y, x = np.mgrid[0:8, 0:16].astype(np.float32)
    level = np.stack([x, y, (x.astype(int) ^ y.astype(int)) & 1, np.ones_like(x)], -1)
    for mip in range(5):
        rows, columns = level.shape[:2]
        assert image.to_numpy(mip=mip) == pytest.approx(level, abs=1e-5)
        step = (2 if rows > 1 else 1, 2)
        if mip < 4:
            level = level.reshape(rows // step[0], step[0], columns // step[1], step[1], 4).mean((1, 3))
    assert means.to_numpy().view(np.float32).reshape(5, 4) == pytest.approx(
        np.tile(np.float32([7.5, 3.5, 0.5, 1]), (5, 1)), abs=1e-5
    )


VIEWS = """
void scale(int i, TensorView<float> x, TensorView<float> y, float factor)
{
    if (i < x.size(0))
        y[i] = factor * x[i];
}
[Differentiable] void cube(int i, DiffTensorView x, DiffTensorView y) { y[i] = x[i] * x[i] * x[i]; }
"""


def test_tensor_views_without_import(running: spy.Device) -> None:
    """A module of kernels as torch programs have them imports nothing; arrays, tensors and gradients go in."""
    module = spy.Module.load_from_source(running, "views", VIEWS)
    x = spy.Tensor.from_numpy(running, np.arange(1, 6, dtype=np.float32))
    y = spy.Tensor.zeros(running, (5,), float)
    module.scale(spy.grid((5,)), x, y, 0.5)
    assert y.to_numpy().tolist() == [0.5, 1, 1.5, 2, 2.5]
    array = np.zeros(5, np.float32)
    module.scale(i=spy.grid((5,)), x=x.to_numpy(), y=array, factor=3.0)
    assert array.tolist() == [3, 6, 9, 12, 15]
    inputs, outputs = x.with_grads(), spy.Tensor.zeros(running, (5,), float).with_grads()
    module.cube(spy.grid((5,)), inputs, outputs)
    assert outputs.to_numpy().tolist() == [1, 8, 27, 64, 125]
    outputs.grad.copy_from_numpy(np.ones(5, np.float32))
    module.cube.bwds(spy.grid((5,)), inputs, outputs)
    assert inputs.grad.to_numpy().tolist() == [3, 12, 27, 48, 75]


TRACED = """
import sgl.device.print;
float root(float x)
{
    float r = x;
    for (int i = 0; i < 8 && abs(r * r - x) > 0.001; i++)
    {
        r = 0.5 * (r + x / r);
        print("{} of {}: {:.3f} {}", i, x, r, bool2(i > 0, r < x));
    }
    return r;
}
"""


def test_print_from_a_function(device_type: spy.DeviceType) -> None:
    """What a function prints, call by call, on a device that prints; nothing on one that does not."""
    if device_type is spy.DeviceType.null:
        pytest.skip("runs no kernel")
    for prints in (True, False):
        device = spy.Device(type=device_type, enable_print=prints)
        try:
            module = spy.Module.load_from_source(device, "traced", TRACED)
            assert module.root(4.0) == pytest.approx(2, abs=1e-3)
            lines = device.flush_print_to_string().splitlines()
            assert lines == (
                ["0 of 4: 2.500 {false, true}", "1 of 4: 2.050 {true, true}", "2 of 4: 2.001 {true, true}",
                 "3 of 4: 2.000 {true, true}"] if prints else []
            )  # fmt: skip
            module.root(np.array([9.0, 16.0], np.float32))
            starts = sorted(line for line in device.flush_print_to_string().splitlines() if line.startswith("0 of"))
            assert starts == (["0 of 16: 8.500 {false, true}", "0 of 9: 5.000 {false, true}"] if prints else [])
        finally:
            device.close()


SHARED_NAMES = """
interface ITensor<T> { T get(int i); }
struct Tensor : ITensor<float> { float base; float get(int i) { return base + i; } };
extension<T : ITensor<float>> T { float twice(int i) { return 2 * this.get(i); } }
float through<T : ITensor<float>>(T t, int i) { return t.get(i); }
float run(int i) { Tensor t = { 3.0 }; return t.twice(i) + through(t, i); }
"""


def test_names_of_their_own_like_ours(running: spy.Device, tmp_path: Path) -> None:
    """A module that imports nothing of ours keeps its own names, also for those that import it."""
    module = spy.Module.load_from_source(running, "own_names", SHARED_NAMES)
    assert module.run(2) == 15.0
    text = "import own_names;\nstruct More : ITensor<float> { float get(int i) { return 5; } };\nfloat more(int i) { More m; return through(m, i) + run(i); }"
    assert spy.Module.load_from_source(running, "own_names_user", text).more(2) == 20.0


def test_macros_of_one_module(running: spy.Device, tmp_path: Path) -> None:
    """Defines of a module; a file beside the program."""
    (tmp_path / "scaled.slang").write_text("import factor;\nfloat scaled(float x) { return factor() * x; }")
    (tmp_path / "factor.slang").write_text("public float factor() { return FACTOR; }")
    modules = [
        spy.Module.load_from_file(running, tmp_path / "scaled.slang", defines={"FACTOR": value}) for value in (2, "3.5")
    ]
    assert [module.scaled(2.0) for module in modules] == [4.0, 7.0]
    text = "#if !defined(ON)\n#error off\n#endif\nint on() { return ON; }"
    assert spy.Module.load_from_source(running, "switched", text, defines={"ON": True}).on() == 1
    with pytest.raises(TypeError, match="'defines' must be a dict"):
        spy.Module.load_from_source(running, "switched", text, defines=["ON"])  # type: ignore[arg-type]
    (tmp_path / "beside.slang").write_text("int one() { return 1; }")
    namespace: dict[str, Any] = {"__file__": str(tmp_path / "program.py"), "__name__": "program", "device": running}
    exec("import slangpy\nfound = slangpy.Module.load_from_file(device, 'beside.slang')", namespace)
    assert namespace["found"].name == "beside.slang"  # as given


def test_experimental_modules(device_type: spy.DeviceType) -> None:
    """Slang's standard module of neural networks."""
    text = "import neural;\nfloat f(float x) { return 2 * x; }"
    device = spy.Device(type=device_type, compiler_options={"enable_experimental_features": True})
    plain = spy.Device(type=device_type)
    try:
        assert device.load_module_from_source("with_neural", text).name == "with_neural"
        assert device.load_module_from_source("with_path", text.replace("neural", "slang.neural")).name == "with_path"
        if device_type is not spy.DeviceType.null:
            assert spy.Module.load_from_source(device, "neural_user", text).f(2.0) == 4.0
        before = plain.load_module_from_source("without", "float g() { return 1; }")
        assert plain.load_module_from_source("by_itself", text).name == "by_itself"  # the session gets the option
        assert plain.slang_session.experimental and before.layout.find_function_by_name("g") is not None
    finally:
        device.close()
        plain.close()


def test_completion_shows_the_users_names(running: spy.Device) -> None:
    module = spy.Module.load_from_source(
        running, "completed", "[Differentiable] float sq(float x) { return no_diff sin(x) * x; }\nstruct S { float a; }"
    )
    module.sq.bwds(spy.diffPair(1.0, 0.0), spy.diffPair(0.0, 1.0))
    names = dir(module)
    assert {"sq", "S"} <= set(names) and not [name for name in names if "$" in name or name.startswith("_spy")]


def test_values_fill_a_struct_tensor_with_gaps(running: spy.Device) -> None:
    """An array without the gaps, which are a matter of the device."""
    module = spy.Module.load_from_source(
        running,
        "h5_gaps",
        "struct In { int2 v; uint8_t b; };\nstruct S { float a; float2 b; In n[2]; };\n"
        "float f(S s) { return s.a + 10 * s.b.y + 100 * s.n[1].v.y + s.n[1].b; }"
        if running.type is not spy.DeviceType.d3d12
        else "struct S { float a; float2 b; };\nfloat f(S s) { return s.a + 10 * s.b.y; }",
    )
    items: list[Any] = [("a", "<f4"), ("b", "<f4", 2)]
    if running.type is not spy.DeviceType.d3d12:
        items.append(("n", [("v", "<i4", 2), ("b", "u1")], 2))
    packed = np.zeros(3, items)
    packed["a"], packed["b"] = [1, 2, 3], np.arange(6).reshape(3, 2)
    expected = packed["a"] + 10 * packed["b"][:, 1]
    if len(items) == 3:
        packed["n"]["v"], packed["n"]["b"] = np.arange(12).reshape(3, 2, 2), [[7, 8], [9, 10], [11, 12]]
        expected = expected + 100 * packed["n"]["v"][:, 1, 1] + packed["n"]["b"][:, 1]
    tensor = spy.Tensor.empty(running, (3,), module.S)
    tensor.copy_from_numpy(np.frombuffer(packed.tobytes(), np.int16))
    assert module.f(tensor, _result="numpy").tolist() == expected.tolist()
    tensor.copy_from_numpy(np.zeros(tensor.nbytes // 4, np.float32))  # with them
    assert module.f(tensor, _result="numpy").tolist() == [0] * 3
    with pytest.raises(TypeError, match=f"{tensor.nbytes} bytes"):
        tensor.copy_from_numpy(np.zeros(packed.nbytes // 2 + 1, np.int16))


def test_bytes_fill_a_struct_tensor(running: spy.Device) -> None:
    module = spy.Module.load_from_source(
        running, "h5", "struct S { float a; float2 b; };\nfloat f(S s) { return s.a + 10 * s.b.y; }"
    )
    tensor = spy.Tensor.empty(running, (4,), module.S)
    width = tensor.layout.stride // 4  # CUDA aligns a float2 to 8 bytes: there is a gap after `a`
    bytes_ = np.arange(4 * width, dtype=np.float32).reshape(4, width)
    tensor.copy_from_numpy(bytes_)
    assert module.f(tensor, _result="numpy").tolist() == (bytes_[:, 0] + 10 * bytes_[:, -1]).tolist()
    if has_textures(running):
        texture = running.create_texture(
            format=spy.Format.rgba32_float,
            width=width,
            height=1,
            usage=spy.TextureUsage.shader_resource,
            data=tensor.to_numpy(),
        )
        assert texture.to_numpy().reshape(-1).tolist() == list(range(4 * width))
    tensor.copy_from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3))  # without a gap, on every device
    assert module.f(tensor, _result="numpy").tolist() == [20, 53, 86, 119]
    with pytest.raises(TypeError, match=f"{16 * width} bytes"):
        tensor.copy_from_numpy(np.zeros(11, np.float32))
