"""Raw kernels: dispatch rules, worked examples, blocks and pointers."""

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels


@pytest.fixture(scope="module", params=["cpu", "cuda", "vulkan"])
def device(request):
    try:
        device = spy.create_device(type=getattr(spy.DeviceType, request.param))
    except RuntimeError as error:
        pytest.skip(str(error))
    yield device
    device.close()


RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
count = iter(range(1000))


def make_kernel(device, source, name):
    module = device.load_module_from_source(f"cursor_kernel_{next(count)}", source)
    return device.create_compute_kernel(device.link_program([module], [module.entry_point(name)]))


def float_buffer(device, values):
    return device.create_buffer(data=np.asarray(values, np.float32), struct_size=4, usage=RW)


def floats(buffer):
    return buffer.to_numpy().view(np.float32).tolist()


SAXPY = """
[shader("compute")] [numthreads(64, 1, 1)]
void saxpy(uint3 tid : SV_DispatchThreadID, uniform float a, StructuredBuffer<float> x, RWStructuredBuffer<float> y,
           uniform uint n) {
    if (tid.x < n) y[tid.x] += a * x[tid.x];
}"""


def test_saxpy(device):
    kernel = make_kernel(device, SAXPY, "saxpy")
    x, y = float_buffer(device, range(5)), float_buffer(device, np.ones(5))
    kernel.dispatch([5, 1, 1], a=2.0, x=x, y=y, n=5)
    assert floats(y) == [1, 3, 5, 7, 9]
    kernel.dispatch(5, a=1, x=x, y=y, n=np.int64(5))
    assert floats(y) == [1, 4, 7, 10, 13]
    kernel.dispatch((0, 1, 1), a=1.0, x=x, y=y, n=5)
    kernel.dispatch(spy.uint3(5, 1, 1), x=x, y=y, n=5)  # uniforms that are not set are zero
    assert floats(y) == [1, 4, 7, 10, 13]
    assert kernel.pipeline.thread_group_size == [64, 1, 1]


def test_tensors_that_were_never_set(device):
    source = """
import slangpy;
Tensor<float, 1> everywhere;
[shader("compute")] [numthreads(1, 1, 1)] void main(uniform Tensor<float, 1> t, RWStructuredBuffer<float> o) { o[0] = t[0]; }
[shader("compute")] [numthreads(1, 1, 1)] void other(RWStructuredBuffer<float> o) { o[0] = everywhere[0]; }
"""
    out = float_buffer(device, [0.0])
    kernel = make_kernel(device, source, "main")
    with pytest.raises(RuntimeError, match=r"parameter 't' of 'main' was never set: assign a tensor"):
        kernel.dispatch(1, o=out)
    seven = spy.Tensor.from_numpy(device, np.array([7], np.float32))
    kernel.dispatch(1, o=out, t=seven)
    assert floats(out) == [7]
    with pytest.raises(RuntimeError, match=r"parameter 'everywhere' of 'other' was never set"):
        make_kernel(device, source, "other").dispatch(1, o=out)


def test_unknown_and_unset_names(device):
    kernel = make_kernel(device, SAXPY, "saxpy")
    x, y = float_buffer(device, range(5)), float_buffer(device, np.ones(5))
    with pytest.warns(RuntimeWarning, match=r"saxpy: no parameter 'zz'. Parameters here: .*a, x, y, n"):
        kernel.dispatch([5, 1, 1], a=2.0, x=x, y=y, n=5, zz=1)
    with pytest.warns(RuntimeWarning, match="no parameter 'a'; it is set through keyword arguments"):
        kernel.dispatch([5, 1, 1], vars={"a": 2.0}, x=x, y=y, n=5)
    with pytest.raises(RuntimeError, match=r"parameter 'x' of .* was never set: assign a buffer"):
        kernel.dispatch([5, 1, 1], a=2.0, y=y, n=5)
    with pytest.raises(OverflowError, match=r"^n: -1 is out of range for uint"):
        kernel.dispatch([5, 1, 1], a=2.0, x=x, y=y, n=-1)
    for threads in ((1, 2, 3, 4), (), -1, [-1]):
        with pytest.raises(ValueError, match="thread_count"):
            kernel.dispatch(threads, a=2.0, x=x, y=y, n=5)
    with pytest.raises(TypeError, match="thread_count"):
        kernel.dispatch("5", a=2.0, x=x, y=y, n=5)


BLOCKS = """
struct Light { float3 tint; int id; StructuredBuffer<float> curve; }
struct Scene { float gain; ConstantBuffer<Light> light; bool on; float2x3 m; half h; }
ParameterBlock<Scene> scene;
ConstantBuffer<Light> sun;
uniform float offset;
RWStructuredBuffer<float> result;
struct Extra { int a[3]; bool2 flags; }
[shader("compute")] [numthreads(1, 1, 1)]
void main(uniform Extra e, uniform uint2 pair) {
    result[0] = scene.gain; result[1] = scene.light.tint.y; result[2] = scene.light.id;
    result[3] = scene.light.curve[1];
    result[4] = sun.tint.z; result[5] = sun.curve[0]; result[6] = offset; result[7] = scene.on ? 1 : 0;
    result[8] = scene.m[1][2]; result[9] = e.a[2]; result[10] = e.flags.y ? 1 : 0; result[11] = pair.y;
    result[12] = float(scene.h);
}"""


def block_values(device):
    result = float_buffer(device, np.zeros(13))
    curve = float_buffer(device, [3, 4])
    light = {"tint": (1, 2, 3), "id": 7, "curve": curve}
    scene = {"gain": 0.5, "light": light, "on": True, "m": np.arange(6, dtype=np.float32).reshape(2, 3), "h": 1.5}
    return result, {"scene": scene, "sun": light, "offset": 9, "result": result}


EXPECTED = [0.5, 2, 7, 4, 3, 3, 9, 1, 5, 12, 1, 21, 1.5]


def test_blocks_by_dicts(device):
    kernel = make_kernel(device, BLOCKS, "main")
    result, variables = block_values(device)
    kernel.dispatch(1, vars=variables, e={"a": [10, 11, 12], "flags": (False, True)}, pair=(20, 21))
    assert floats(result) == EXPECTED
    with pytest.raises(ValueError, match="sun: Light has no field 'color'"):
        kernel.dispatch(1, vars=variables | {"sun": {"color": 1}}, e={}, pair=(0, 0))


def test_blocks_by_shader_objects(device):
    kernel = make_kernel(device, BLOCKS, "main")
    result, variables = block_values(device)
    block = device.create_shader_object(kernel.program.reflection.scene)
    spy.ShaderCursor(block).write(variables["scene"])
    kernel.dispatch(1, vars=variables | {"scene": block}, e={"a": [10, 11, 12], "flags": (False, True)}, pair=(20, 21))
    assert floats(result) == EXPECTED


def test_root_objects_are_filled_ahead(device):
    kernel = make_kernel(device, BLOCKS, "main")
    result, variables = block_values(device)
    root = device.create_root_shader_object(kernel.program)
    cursor = spy.ShaderCursor(root)
    cursor.write(variables)
    cursor["offset"] = 2.0
    cursor.find_entry_point(0).pair = (1, 2)
    pipeline = device.create_compute_pipeline(kernel.program)
    for expected in (2, 5):
        cursor.offset = expected
        encoder = device.create_command_encoder()
        with encoder.begin_compute_pass() as compute_pass:
            compute_pass.bind_pipeline(pipeline, root)
            compute_pass.dispatch([1, 1, 1])
        device.submit_command_buffer(encoder.finish())
        assert floats(result)[6] == expected and floats(result)[11] == 2


def test_recording_and_timestamps(device):
    source = """[shader("compute")] [numthreads(32, 1, 1)]
    void inc(uint3 t : SV_DispatchThreadID, RWStructuredBuffer<float> y, uniform uint n) {
        if (t.x < n) y[t.x] += 1;
    }"""
    kernel = make_kernel(device, source, "inc")
    y = float_buffer(device, np.zeros(100))
    pool = device.create_query_pool(spy.QueryType.timestamp, 2)
    encoder = device.create_command_encoder()
    encoder.write_timestamp(pool, 0)
    for _ in range(3):
        kernel.dispatch([100, 1, 1], command_encoder=encoder, y=y, n=100)
    encoder.write_timestamp(pool, 1)
    assert floats(y) == [0] * 100
    device.wait_for_submit(device.submit_command_buffer(encoder.finish()))
    assert floats(y) == [3] * 100
    start, end = pool.get_timestamp_results(0, 2)
    assert 0 <= end - start < 60
    kernel.dispatch([100, 1, 1], query_pool=pool, query_index_before=0, query_index_after=1, y=y, n=50)
    assert floats(y) == [4] * 50 + [3] * 50
    with pytest.raises(ValueError, match="cuda_stream"):
        encoder = device.create_command_encoder()
        kernel.dispatch(1, command_encoder=encoder, cuda_stream=spy.NativeHandle.from_cuda_stream(1), y=y, n=1)


def test_pointers_and_arrays_of_buffers(device):
    source = """[shader("compute")] [numthreads(1, 1, 1)]
    void sum(uniform float* p, StructuredBuffer<float> b[2], RWStructuredBuffer<float> y) {
        y[0] = p[1] + b[0][0] + b[1][1];
    }"""
    if device.info.type == spy.DeviceType.d3d12:
        pytest.skip("no pointers")
    kernel = make_kernel(device, source, "sum")
    p, y = float_buffer(device, [1, 20]), float_buffer(device, [0])
    buffers = [float_buffer(device, [300, 0]), float_buffer(device, [0, 4000])]
    for pointer in (p, p.device_address, np.uint64(p.device_address)):
        kernel.dispatch(1, p=pointer, b=buffers, y=y)
        assert floats(y) == [4320]


def test_link_time_constants_and_buffers_sized_from_reflection(device):
    main = device.load_module_from_source(
        "cursor_kernel_main",
        """extern static const uint N; RWStructuredBuffer<uint> r;
        [shader("compute")] [numthreads(N, 1, 1)] void go(uint3 t : SV_DispatchThreadID) { r[t.x] = t.x * N; }""",
    )
    eight = device.load_module_from_source("cursor_kernel_eight", "export static const uint N = 8;")
    program = device.link_program([main, eight], [main.entry_point("go")])
    assert list(program.layout.entry_points[0].compute_thread_group_size) == [8, 1, 1]
    r = device.create_buffer(element_count=8, resource_type_layout=program.reflection.r, usage=RW)
    device.create_compute_kernel(program).dispatch([8, 1, 1], vars={"r": r})
    assert r.to_numpy().view(np.uint32).tolist() == list(range(0, 64, 8))


def test_structured_host_access(device):
    module = device.load_module_from_source("cursor_kernel_mat", "struct Mat { float3 albedo; int id; float w[2]; }")
    layout = module.layout.get_type_layout(module.layout.find_type_by_name("StructuredBuffer<Mat>"))
    mats = device.create_buffer(element_count=2, resource_type_layout=layout, usage=RW)
    cursor = spy.BufferCursor(layout.element_type_layout, mats)
    assert cursor.element_stride == 24 and cursor.element_type.full_name == "Mat"
    assert cursor.element_type_layout is layout.element_type_layout
    assert spy.BufferCursor(layout, mats).element_type_layout is layout.element_type_layout
    for i in range(2):
        cursor[i].write({"albedo": (1, 2, 3), "id": 10 + i, "w": [0.0, 0.0]})
    cursor[1].w[0] = 4.0
    cursor.apply()
    read = spy.BufferCursor(layout.element_type_layout, mats)[1].read()
    assert read == {"albedo": spy.float3(1, 2, 3), "id": 11, "w": [4.0, 0.0]}


TEXTURES = """
[shader("compute")] [numthreads(8, 8, 1)]
void ramp(uint3 tid : SV_DispatchThreadID, RWTexture2D<float4> t) {
    uint w, h; t.GetDimensions(w, h);
    if (tid.x < w && tid.y < h) t[tid.xy] = float4(tid.x, tid.y, w, 1);
}
[shader("compute")] [numthreads(1, 1, 1)]
void probe(Texture2D<float4> t, SamplerState s, uniform float2 uv, RWStructuredBuffer<float4> o) {
    o[0] = t.SampleLevel(s, uv, 0);
}"""


def test_textures(device):
    usage = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
    texture = device.create_texture(width=4, height=2, format=spy.Format.rgba32_float, usage=usage)
    make_kernel(device, TEXTURES, "ramp").dispatch([4, 2, 1], t=texture)
    assert texture.to_numpy()[1, 3].tolist() == [3, 1, 4, 1]
    edge = spy.TextureAddressingMode.clamp_to_edge
    out = device.create_buffer(size=16, struct_size=16, usage=RW)
    sampler = device.create_sampler(address_u=edge, address_v=edge)
    make_kernel(device, TEXTURES, "probe").dispatch([1, 1, 1], t=texture, s=sampler, uv=(0.5, 0.5), o=out)
    assert floats(out) == [1.5, 0.5, 4, 1]
