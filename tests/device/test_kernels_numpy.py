"""Kernels as people write them, on every device that can run them, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from device_kernels import RW, TEXTURE_RW, kernel

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

REDUCE = """
groupshared float part[256];
[shader("compute")] [numthreads(256, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, uint3 local : SV_GroupThreadID, uint3 group : SV_GroupID,
          StructuredBuffer<float> x, RWStructuredBuffer<float> sums, uniform uint n) {
    part[local.x] = tid.x < n ? x[tid.x] : 0.0f;
    GroupMemoryBarrierWithGroupSync();
    for (uint half_size = 128; half_size > 0; half_size /= 2) {
        if (local.x < half_size) part[local.x] += part[local.x + half_size];
        GroupMemoryBarrierWithGroupSync();
    }
    if (local.x == 0) sums[group.x] = part[0];
}"""

BLUR = """
[shader("compute")] [numthreads(8, 8, 1)]
void main(uint3 tid : SV_DispatchThreadID, Texture2D<float4> image, RWTexture2D<float4> blurred, uniform int radius) {
    uint width, height;
    image.GetDimensions(width, height);
    if (tid.x >= width || tid.y >= height) return;
    float4 sum = 0;
    for (int dy = -radius; dy <= radius; ++dy)
        for (int dx = -radius; dx <= radius; ++dx)
            sum += image[uint2(clamp(int2(tid.xy) + int2(dx, dy), int2(0), int2(width - 1, height - 1)))];
    blurred[tid.xy] = sum / float((2 * radius + 1) * (2 * radius + 1));
}"""

INDIRECT = """
[shader("compute")] [numthreads(1, 1, 1)]
void plan(RWStructuredBuffer<uint> groups, uniform uint n) {
    groups[0] = (n + 63) / 64; groups[1] = 2; groups[2] = 1;
}
[shader("compute")] [numthreads(64, 1, 1)]
void count(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> counts, uniform uint n) {
    if (tid.x < n) counts[tid.y * n + tid.x] += 1 + tid.y;
}"""

PARTICLES = """
struct Particle { float3 position; uint id; float3 velocity; float weights[3]; bool alive; };
[shader("compute")] [numthreads(32, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<Particle> particles, uniform float dt, uniform uint n) {
    if (tid.x >= n || !particles[tid.x].alive) return;
    particles[tid.x].position += dt * particles[tid.x].velocity;
    for (int i = 0; i < 3; ++i) particles[tid.x].weights[i] *= 2;
    particles[tid.x].alive = particles[tid.x].id % 2 == 0;
}"""


@pytest.mark.parametrize("n", [1, 255, 256, 100_003])
def test_groupshared_reduction(device: spy.Device, n: int) -> None:
    x = np.random.default_rng(n).random(n, dtype=np.float32)
    groups = (n + 255) // 256
    sums = device.create_buffer(element_count=groups, struct_size=4, usage=RW)
    source = device.create_buffer(data=x, struct_size=4, usage=RW)
    kernel(device, REDUCE).dispatch([n, 1, 1], x=source, sums=sums, n=n)
    padded = np.zeros(groups * 256, np.float32)
    padded[:n] = x
    expected = padded.reshape(groups, 256).sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(sums.to_numpy().view(np.float32), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "count"),
    # 1024 fill their groups: what a barrier does that not all threads of a group reach is not defined
    [("AllMemoryBarrierWithGroupSync(); return x;", 1024), ("return WaveActiveSum(x) / WaveActiveSum(1.0);", 4)],
)
def test_functional_call_with_barriers_and_waves(device: spy.Device, body: str, count: int) -> None:
    module = spy.Module.load_from_source(device, "grouped", f"float grouped(float x) {{ {body} }}")
    assert module.grouped(np.ones(count, np.float32), _result="numpy").tolist() == [1] * count


def test_functional_call_of_what_a_cpu_lacks() -> None:
    source = "float ok(float x) { return x + 1; }\nfloat grouped(float x) { return QuadReadAcrossX(x); }"
    device = spy.Device(type=spy.DeviceType.cpu)
    module = spy.Module.load_from_source(device, "cpu_lacks", source)
    with pytest.raises(RuntimeError) as error:
        module.grouped(np.ones(4, np.float32), _result="numpy")
    for part in ("cpu_lacks::grouped", "wave operations (QuadReadAcrossX)", "cuda, vulkan"):
        assert part in str(error.value)
    assert module.ok(1.0) == 2.0


@pytest.mark.parametrize("radius", [0, 1, 3])
@pytest.mark.parametrize("size", [(1, 1), (17, 9), (64, 40)])
def test_blur_into_a_texture(device: spy.Device, size: tuple[int, int], radius: int) -> None:
    width, height = size
    pixels = np.random.default_rng(3).random((height, width, 4), dtype=np.float32)
    image, blurred = (
        device.create_texture(width=width, height=height, format=spy.Format.rgba32_float, usage=TEXTURE_RW, data=data)
        for data in (pixels, None)
    )
    kernel(device, BLUR).dispatch([width, height, 1], image=image, blurred=blurred, radius=radius)
    rows = np.clip(np.arange(height)[:, None] + np.arange(-radius, radius + 1), 0, height - 1)
    columns = np.clip(np.arange(width)[:, None] + np.arange(-radius, radius + 1), 0, width - 1)
    expected = pixels[rows].mean(axis=1)[:, columns].mean(axis=2)
    np.testing.assert_allclose(blurred.to_numpy(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 64, 1000])
def test_indirect_dispatch_planned_by_a_kernel(device: spy.Device, n: int) -> None:
    groups = device.create_buffer(
        element_count=3, struct_size=4, usage=RW | spy.BufferUsage.indirect_argument | spy.BufferUsage.copy_source
    )
    counts = device.create_buffer(data=np.full(2 * n, 5, np.uint32), struct_size=4, usage=RW)
    module = device.load_module_from_source("indirect", INDIRECT)
    plan, count = (device.link_program([module], [module.entry_point(name)]) for name in ("plan", "count"))
    pipeline = device.create_compute_pipeline(count)
    encoder = device.create_command_encoder()
    device.create_compute_kernel(plan).dispatch([1, 1, 1], command_encoder=encoder, groups=groups, n=n)
    with encoder.begin_compute_pass() as compute_pass:
        cursor = spy.ShaderCursor(compute_pass.bind_pipeline(pipeline)).find_entry_point(0)
        cursor.counts, cursor.n = counts, n
        compute_pass.dispatch_compute_indirect(groups)
    device.submit_command_buffer(encoder.finish())
    assert groups.to_numpy().view(np.uint32).tolist() == [(n + 63) // 64, 2, 1]
    assert counts.to_numpy().view(np.uint32).tolist() == [6] * n + [7] * n


def test_structs_through_a_cursor(device: spy.Device) -> None:
    n = 37
    module = device.load_module_from_source("particles", PARTICLES)
    layout = module.layout.get_type_layout(module.layout.find_type_by_name("StructuredBuffer<Particle>"))
    particles = device.create_buffer(element_count=n, resource_type_layout=layout, usage=RW)
    cursor = spy.BufferCursor(layout.element_type_layout, particles)
    assert len(cursor) == n
    for i in range(n):
        cursor[i].write({
            "position": (i, 2 * i, -i), "id": i, "velocity": spy.float3(1, 2, 3), "weights": [i, i + 1, 0.5],
            "alive": i % 3 != 0,
        })  # fmt: skip
    cursor.apply()
    program = device.link_program([module], [module.entry_point("main")])
    device.create_compute_kernel(program).dispatch([n, 1, 1], particles=particles, dt=0.5, n=n)
    after = spy.BufferCursor(layout.element_type_layout, particles)
    for i in range(n):
        alive, element = i % 3 != 0, after[i].read()
        moved = np.array([i, 2 * i, -i]) + (0.5 * np.array([1, 2, 3]) if alive else 0)
        assert list(element["position"]) == moved.tolist()
        assert element["id"] == i
        assert element["weights"] == [w * (2 if alive else 1) for w in (i, i + 1, 0.5)]
        assert element["alive"] == (alive and i % 2 == 0)


def test_group_size_is_a_vector(device: spy.Device) -> None:
    module = device.load_module_from_source("particles", PARTICLES)
    program = device.link_program([module], [module.entry_point("main")])
    size = program.layout.entry_points[0].compute_thread_group_size
    assert isinstance(size, spy.uint3)
    assert size == [32, 1, 1]
    assert list(size) == [32, 1, 1]
    assert size == spy.uint3(32, 1, 1)
