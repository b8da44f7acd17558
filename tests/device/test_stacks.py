"""Kernels with large local variables on the CPU device: a stack that is large enough, or an error that says what is too large."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, in_process, kernel

import slangpy as spy

LOCALS = """
float far(float x)
{
    float a[SIZE];
    for (int i = 0; i < SIZE; i++) a[i] = x * i;
    float sum = 0;
    for (int i = 0; i < SIZE; i += SIZE / 4) sum += a[(int(x) + i) % SIZE];
    return sum;
}
[Differentiable] float shrink(float x, int n)
{
    float s = x;
    [MaxIters(TRIPS)] for (int i = 0; i < n; i++) { [MaxIters(TRIPS)] for (int j = 0; j < n; j++) s = s * 0.9 + x * x; }
    return s;
}
"""
GROUP = """
groupshared float shared_values[THREADS];
[shader("compute")] [numthreads(THREADS, 1, 1)]
void main(uint3 t : SV_DispatchThreadID, uint i : SV_GroupIndex, RWStructuredBuffer<float> o)
{
    float a[SIZE];
    for (int k = 0; k < SIZE; k++) a[k] = float(t.x) + k;
    shared_values[i] = a[t.x * 7 % SIZE];
    GroupMemoryBarrierWithGroupSync();
    o[t.x] = shared_values[(i + 1) % THREADS] + a[t.x];
}
"""


@pytest.fixture(scope="module")
def cpu() -> spy.Device:
    return spy.Device(type="cpu")


def load(device: Any, size: int = 1000, trips: int = 20) -> Any:
    text = LOCALS.replace("SIZE", str(size)).replace("TRIPS", str(trips))
    return spy.Module.load_from_source(device, f"stacks_{size}_{trips}", text)


@pytest.mark.parametrize("size", [30_000, 4_000_000])
def test_large_arrays(cpu: Any, size: int) -> None:
    module, x = load(cpu, size), np.arange(5, dtype=np.float32)
    at = (x.astype(np.int64)[:, None] + np.arange(0, size, size // 4)) % size
    expected = (x[:, None] * at.astype(np.float32)).sum(1)
    np.testing.assert_allclose(module.far(x, _result="numpy"), expected, rtol=1e-6)
    found: list[Any] = []
    before = threading.stack_size(64 << 10)  # a thread with hardly any
    try:
        thread = threading.Thread(target=lambda: found.append(module.far(x, _result="numpy")))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_recorded_states_of_nested_loops(cpu: Any) -> None:
    module = load(cpu, trips=1500)
    x = spy.Tensor.from_numpy(cpu, np.array([0.5, 0.25], np.float32)).with_grads()
    y = spy.Tensor.from_numpy(cpu, np.zeros(2, np.float32)).with_grads()
    y.grad.copy_from_numpy(np.ones(2, np.float32))
    module.shrink.bwds(x, 3, _result=y)
    host = np.array([0.5, 0.25])
    expected = 0.9**9 + 2 * host * sum(0.9**k for k in range(9))
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(("threads", "size"), [(64, 80_000), (96, 600_000), (256, 1000)])
def test_groups_with_large_arrays(cpu: Any, threads: int, size: int) -> None:
    """Each thread of a group has a stack of its own."""
    count = 3 * threads
    program = kernel(cpu, GROUP.replace("SIZE", str(size)).replace("THREADS", str(threads)))
    out = cpu.create_buffer(size=4 * count, usage=RW)
    program.dispatch([count, 1, 1], o=out)
    t = np.arange(count)
    neighbour = t // threads * threads + (t + 1) % threads
    expected = neighbour + neighbour * 7 % size + 2.0 * t
    np.testing.assert_array_equal(out.to_numpy().view(np.float32), expected.astype(np.float32))


def test_too_large_arrays_are_refused(cpu: Any) -> None:
    with pytest.raises(RuntimeError, match=r"stacks_40000000_20::far.* 1600000\d\d bytes.*smaller local arrays.*MaxIters"):
        load(cpu, 40_000_000).far(1.0)
    program = kernel(cpu, GROUP.replace("SIZE", "4000000").replace("THREADS", "512"))
    out = cpu.create_buffer(size=4 * 512, usage=RW)
    with pytest.raises(RuntimeError, match=r"main: .*stacks of the threads of a group.*1600\d{4} bytes.*smaller groups"):
        program.dispatch([512, 1, 1], o=out)
    assert load(cpu, 30_000).far(0.0) == 0.0  # the device goes on


def test_vulkan_is_given_no_kernel_that_it_would_compile_for_hours(device: Any) -> None:
    """Mesa's processor driver takes 46 s for 8 KB of variables, and crashes at 1 MB."""
    if device.info.type != spy.DeviceType.vulkan:
        pytest.skip("a matter of drivers for Vulkan")
    module = load(device, 200_000)
    with pytest.raises(RuntimeError, match=r"stacks_200000_20::far.* keep \d+ bytes in variables.*smaller arrays.*MaxIters"):
        module.far(1.0)
    assert load(device, 100).far(0.0) == 0.0


def test_memory_for_stacks_may_run_out() -> None:
    """An error then, not the end of the process."""
    code = f"""
import resource, numpy as np, slangpy as spy
device = spy.Device(type="cpu")
module = spy.Module.load_from_source(device, "limited", {LOCALS.replace("SIZE", "15000000").replace("TRIPS", "20")!r})
module.far(1.0)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY))
try:
    module.far(1.0)
except RuntimeError as error:
    print(error)
"""
    done = in_process(code)
    assert "limited::far: there is no memory for its stack" in done.stdout, done.stderr
