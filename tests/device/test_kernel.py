"""Raw kernels through the native layer: compile, bind, launch."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import slangpy as spy

RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
SAXPY = """
[shader("compute")] [numthreads(64, 1, 1)]
void saxpy(uint3 tid : SV_DispatchThreadID, uniform float a, StructuredBuffer<float> x, RWStructuredBuffer<float> y,
           uniform uint n) {
    if (tid.x < n) y[tid.x] += a * x[tid.x];
}
[shader("compute")] [numthreads(4, 2, 1)]
void index(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> out, uniform uint3 size) {
    if (all(tid < size)) out[(tid.z * size.y + tid.y) * size.x + tid.x] = tid.x + 100 * tid.y + 10000 * tid.z;
}"""

pytestmark = pytest.mark.needs_kernels


def kernel(device: spy.Device, name: str):
    module = device.load_module_from_source("device_tests", SAXPY)
    return device.create_compute_kernel(device.link_program([module], [module.entry_point(name)]))


def test_saxpy(device: spy.Device) -> None:
    k = kernel(device, "saxpy")
    for n in (1, 5, 64, 1000, 300_001):
        x = np.random.default_rng(n).random(n, dtype=np.float32)
        bx = device.create_buffer(data=x, struct_size=4, usage=RW)
        by = device.create_buffer(data=np.ones(n, np.float32), struct_size=4, usage=RW)
        k.dispatch([n, 1, 1], a=2.0, x=bx, y=by, n=n)
        np.testing.assert_allclose(by.to_numpy().view(np.float32), 1 + 2 * x, rtol=1e-6)


@pytest.mark.parametrize("size", [(1, 1, 1), (7, 5, 3), (64, 33, 17), (1, 100, 9), (4, 2, 50)])
def test_three_dimensions(device: spy.Device, size: tuple[int, int, int]) -> None:
    x, y, z = size
    out = device.create_buffer(element_count=x * y * z, struct_size=4, usage=RW)
    kernel(device, "index").dispatch(size, out=out, size=size)
    grid = np.arange(x)[None, None] + 100 * np.arange(y)[None, :, None] + 10000 * np.arange(z)[:, None, None]
    assert np.array_equal(out.to_numpy().view(np.uint32).reshape(z, y, x), grid)


def test_recorded(device: spy.Device) -> None:
    k = kernel(device, "saxpy")
    x = device.create_buffer(data=np.arange(5, dtype=np.float32), struct_size=4, usage=RW)
    y = device.create_buffer(data=np.ones(5, np.float32), struct_size=4, usage=RW)
    encoder = device.create_command_encoder()
    for _ in range(3):
        k.dispatch([5, 1, 1], command_encoder=encoder, a=1.0, x=x, y=y, n=5)
    commands = encoder.finish()
    del x
    device.submit_command_buffer(commands)
    device.submit_command_buffer(commands)
    assert y.to_numpy().view(np.float32).tolist() == [1, 7, 13, 19, 25]


def test_indirect(device: spy.Device) -> None:
    k = kernel(device, "saxpy")
    x = device.create_buffer(data=np.ones(128, np.float32), struct_size=4, usage=RW)
    y = device.create_buffer(data=np.zeros(128, np.float32), struct_size=4, usage=RW)
    plain = device.create_buffer(data=np.array([0, 1, 1, 1], np.uint32))
    groups = device.create_buffer(data=np.array([0, 1, 1, 1], np.uint32), usage=spy.BufferUsage.indirect_argument | RW)
    root = device.create_root_shader_object(k.program)
    cursor = spy.ShaderCursor(root).find_entry_point(0)
    cursor.write({"a": 1.0, "x": x, "y": y, "n": 128})
    encoder = device.create_command_encoder()
    with encoder.begin_compute_pass() as compute_pass:
        compute_pass.bind_pipeline(k.pipeline, root)
        compute_pass.dispatch_compute_indirect(spy.BufferOffsetPair(groups, 4))
        with pytest.raises(ValueError, match="indirect_argument"):
            compute_pass.dispatch_compute_indirect(plain)
        with pytest.raises(IndexError):
            compute_pass.dispatch_compute_indirect(spy.BufferOffsetPair(groups, 8))
        compute_pass.dispatch([0, 1, 1])
    device.submit_command_buffer(encoder.finish())
    assert y.to_numpy().view(np.float32).sum() == 64


def test_usage_flags(device: spy.Device) -> None:
    k = kernel(device, "saxpy")
    x = device.create_buffer(size=16, struct_size=4, usage=spy.BufferUsage.shader_resource)
    y = device.create_buffer(size=16, struct_size=4, usage=RW)
    with pytest.raises(ValueError, match="y.*unordered_access"):
        k.dispatch([4, 1, 1], a=1.0, x=x, y=x, n=4)
    bad = device.create_buffer(size=16, struct_size=4)
    with pytest.raises(ValueError, match="x.*shader_resource"):
        k.dispatch([4, 1, 1], a=1.0, x=bad, y=y, n=4)
    with pytest.raises(RuntimeError, match="x"):
        k.dispatch([4, 1, 1], a=1.0, y=y, n=4)


def test_group_limit(device: spy.Device) -> None:
    k = kernel(device, "saxpy")
    limit = tuple(device.info.limits.max_compute_dispatch_thread_groups)[1]
    y = device.create_buffer(size=16, struct_size=4, usage=RW)
    with pytest.raises(ValueError, match=str(limit)):
        k.dispatch([1, limit + 1, 1], a=1.0, x=y, y=y, n=0)


def test_more_groups_than_64_bits(device: spy.Device) -> None:
    buffer = device.create_buffer(size=16, struct_size=4, usage=RW)
    with pytest.raises(ValueError, match=r"dispatch of index: .* thread groups"):
        kernel(device, "index").dispatch([1 << 31, 1 << 31, 1 << 31], out=buffer, size=(2, 2, 1))


def test_fields_in_one_dict(device: spy.Device) -> None:
    program = kernel(device, "index").program
    assert device.create_compute_pipeline({"program": program, "label": "of a dict"}).thread_group_size == [4, 2, 1]
    assert device.create_compute_kernel({"program": program}).program is program
    with pytest.raises(TypeError, match='create_compute_kernel has no field "label"; known: program'):
        device.create_compute_kernel({"program": program, "label": "x"})
    session = device.create_slang_session({"compiler_options": {"defines": {"A": "1"}}, "add_default_include_paths": False})
    assert session.desc.compiler_options.defines == {"A": "1"} and not session.desc.add_default_include_paths
    assert device.create_slang_session({"defines": {"A": "2"}}).desc.compiler_options.defines == {"A": "2"}


def test_threads(device: spy.Device) -> None:
    k = kernel(device, "saxpy")
    n = 200_000
    x = device.create_buffer(data=np.ones(n, np.float32), struct_size=4, usage=RW)
    outs = [device.create_buffer(data=np.zeros(n, np.float32), struct_size=4, usage=RW) for _ in range(4)]
    k.dispatch([1, 1, 1], a=0.0, x=x, y=outs[0], n=1)

    def body(y: spy.Buffer) -> None:
        for _ in range(20):
            k.dispatch([n, 1, 1], a=1.0, x=x, y=y, n=n)

    threads = [threading.Thread(target=body, args=(y,)) for y in outs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for y in outs:
        assert np.all(y.to_numpy().view(np.float32) == 20)


def test_layout_round_trip(device: spy.Device) -> None:
    k = kernel(device, "saxpy")
    layout = k.pipeline.layout
    data = layout.serialize()
    again = type(layout).deserialize(data)
    assert again.serialize() == data
    assert again.entry_point_name == layout.entry_point_name
    for cut in range(0, len(data), 7):
        with pytest.raises(RuntimeError, match="corrupt"):
            type(layout).deserialize(data[:cut])


def test_without_validation(device_type: spy.DeviceType) -> None:
    device = spy.Device(type=device_type, enable_rhi_validation=False)
    k = kernel(device, "saxpy")
    x = device.create_buffer(data=np.ones(4, np.float32), struct_size=4, usage=RW)
    y = device.create_buffer(data=np.zeros(4, np.float32), struct_size=4, usage=RW)
    assert x.device is device
    k.dispatch([4, 1, 1], a=3.0, x=x, y=y, n=4)
    assert y.to_numpy().view(np.float32).tolist() == [3, 3, 3, 3]
    device.close()
    with pytest.raises(RuntimeError, match="device is closed"):
        y.to_numpy()
