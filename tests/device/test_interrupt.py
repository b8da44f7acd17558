"""Ctrl-C gets through while native code waits for a device. A timer's signal stands for the key."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, kernel as build
from drawn import LONG

from slangpy import Device, DeviceType, Feature, Module, Tensor, diffPair
from slangpy.config import config

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here"),
]

SOURCE = """
[shader("compute")] [numthreads(1, 1, 1)]
void spin(uint3 tid : SV_DispatchThreadID, uniform uint rounds, RWStructuredBuffer<uint> o)
{
    uint index = tid.y * 4096 + tid.x, x = index + 1;
    for (uint i = 0; i < rounds; ++i) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; } // each round needs the one before
    o[index] = x;
}
"""
ROUNDS = 1 << 15
GROUPS = 1 << 12
"""For each two cores (lavapipe ends loops after 2^16 rounds); a GPU runs groups side by side, so there one does it all."""


class Pressed(Exception):
    pass


@contextmanager
def pressing(after: float) -> Iterator[None]:
    def handler(*_: Any) -> None:
        raise Pressed

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def expected(groups: int, rounds: int) -> np.ndarray:
    """The kernel's values. A round is linear over bits, so `rounds` of them are a power of a 32 x 32 matrix, which is
    kept as what becomes of each single bit."""

    def step(x: int) -> int:
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        return x ^ (x << 5 & 0xFFFFFFFF)

    def apply(matrix: list[int], values: np.ndarray) -> np.ndarray:
        result = np.zeros_like(values)
        for bit, column in enumerate(matrix):
            result ^= np.where(values >> np.uint32(bit) & np.uint32(1), np.uint32(column), np.uint32(0))
        return result

    values = np.arange(1, groups + 1, dtype=np.uint32)
    power = [step(1 << bit) for bit in range(32)]
    while rounds:
        if rounds & 1:
            values = apply(power, values)
        power = apply(power, np.array(power, np.uint32)).tolist()
        rounds >>= 1
    return values


def start_long(device: Device) -> tuple[Any, Callable[[], None], int, int]:
    """A buffer, what launches seconds of work into it, and the groups and rounds of it."""
    on_cores = device.has_feature(Feature.software_device)
    size = [GROUPS, 3 * max(1, (os.cpu_count() or 2) // 2), 1] if on_cores else [1, 1, 1]
    groups, rounds = size[0] * size[1], ROUNDS if on_cores else (1 << 27) - 1
    kernel = build(device, SOURCE, "spin")
    out = device.create_buffer(size=4 * groups, struct_size=4, usage=RW)
    kernel.dispatch([1, 1, 1], rounds=1, o=out)
    out.to_numpy()  # compiled
    return out, lambda: kernel.dispatch(size, rounds=rounds, o=out), groups, rounds


def interrupted_after(action: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    with pytest.raises(Pressed), pressing(0.3):
        action()
    return time.perf_counter() - begin


def test_read(device: Device) -> None:
    out, launch, groups, rounds = start_long(device)

    def run() -> None:
        launch()
        out.to_numpy()

    assert interrupted_after(run) < 1.2
    if device.info.type is DeviceType.cpu:  # the rest of the work was dropped
        launch()
    else:
        begin = time.perf_counter()
        device.wait()
        assert time.perf_counter() - begin > 0.2, "the work was too short for this test"
    got = out.to_numpy().view(np.uint32)
    assert np.array_equal(got, expected(groups, rounds))


def test_waits(device: Device) -> None:
    if device.info.type is DeviceType.cpu:
        pytest.skip("work is done when a call returns")
    _, launch, _, _ = start_long(device)
    fence = device.create_fence()
    launch()
    assert interrupted_after(device.wait) < 1.2
    launch()
    device.submit_command_buffers([device.create_command_encoder().finish()], signal_fences=[fence])
    assert interrupted_after(fence.wait) < 1.2
    launch()
    pool = device.create_query_pool(count=1)
    encoder = device.create_command_encoder()
    encoder.write_timestamp(pool, 0)
    device.submit_command_buffer(encoder.finish())
    assert interrupted_after(lambda: pool.get_result(0)) < 1.2
    device.wait()
    assert pool.get_result(0) > 0 and fence.current_value == 1


def test_close(fresh_device: Device) -> None:
    """An interrupted close leaves the device open."""
    device = fresh_device
    if device.info.type is DeviceType.cpu:
        pytest.skip("work is done when a call returns")
    out, launch, _, rounds = start_long(device)
    launch()
    assert interrupted_after(device.close) < 1.2
    assert not device.is_closed
    assert out.to_numpy().view(np.uint32)[0] == expected(1, rounds)[0]
    device.close()
    assert device.is_closed


def test_compile(device: Device) -> None:
    """Downstream compilers can be left too."""
    if device.info.type is DeviceType.cpu:
        head = 'extern "C" __attribute__((visibility("default"))) int answer() { return f1(7); }'
    elif device.info.type is DeviceType.cuda:
        head = 'extern "C" __global__ void answer(int* out) { *out = f1(7); }'
    else:
        pytest.skip("drivers compile, when the kernel is made")
    body = "\n".join(f"for (int i = 0; i < a; ++i) b += b * {n} + i % (b | 1);" for n in range(1, 2500))
    space = "__device__ " if device.info.type is DeviceType.cuda else ""
    source = f"{space}static int f1(int a) {{ int b = a; {body} return b; }}\n{head}"
    assert interrupted_after(lambda: device.compile(source, "answer", label="long")) < 1.2
    short = source.replace(body, "")
    assert device.compile(short, "answer", label="short")


@pytest.mark.slow
@pytest.mark.one
@pytest.mark.parametrize("in_process", [False, True])
def test_modules_stay_usable(fresh_device: Device, monkeypatch: pytest.MonkeyPatch, in_process: bool) -> None:
    """Wherever in a compile Ctrl-C comes, the module and the others of the device go on."""
    monkeypatch.setattr(config, "compile_in_process", in_process)
    device = fresh_device
    random, unique, x = Random(11), time.time_ns() % 1000, np.arange(5, dtype=np.float32)
    lines = [f"[Differentiable] float f{i}(float x) {{ return x * x + {i} + {unique}; }}" for i in range(20)]
    module = Module.load_from_source(device, "pressed", "\n".join(lines))
    other = Module.load_from_source(device, "other", f"float g(float x, int n) {{ return x + n + {unique}; }}")
    assert np.array_equal(other.g(x, 1, _result="numpy"), x + 1 + unique)
    start = time.perf_counter()
    timed = Module.load_from_source(device, "timed", f"float h(float x) {{ return x - {unique}; }}")
    assert np.array_equal(timed.h(x, _result="numpy"), x - unique)
    takes = time.perf_counter() - start  # on this machine, for about half of what is interrupted
    pressed = 0
    for i in range(20 if LONG else 7):
        try:
            with pressing(random.uniform(0.1, 1.5) * takes):
                late = Module.load_from_source(device, f"late{i}", f"float h(float x) {{ return x - {i} - {unique}; }}")
                assert np.array_equal(late.h(x, _result="numpy"), x - i - unique)
                assert np.array_equal(module[f"f{i}"](x, _result="numpy"), x * x + i + unique)
        except Pressed:
            pressed += 1
        assert np.array_equal(module[f"f{i}"](x, _result="numpy"), x * x + i + unique)
        assert np.array_equal(other.g(x, i, _result="numpy"), x + i + unique)
        late = Module.load_from_source(device, f"late{i}", f"float h(float x) {{ return x - {i} - {unique}; }}")
        assert np.array_equal(late.h(x, _result="numpy"), x - i - unique)
    assert pressed > (3 if LONG else 1)


@pytest.mark.parametrize(("invocations", "rounds"), [(8, 1 << 26), (3000, 1 << 18)])
def test_few_long_invocations_of_a_call(device: Device, invocations: int, rounds: int) -> None:
    """On the CPU they are the blocks between which Ctrl-C is heard, and which threads share."""
    if device.info.type is not DeviceType.cpu:
        pytest.skip("what a GPU has begun, it ends")
    text = "uint spin(uint x, uint rounds) { for (uint i = 0; i < rounds; ++i) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; } return x; }"
    spin = Module.load_from_source(device, "long_invocations", text).spin
    x = np.arange(1, invocations + 1, dtype=np.uint32)
    one = time.perf_counter()
    spin(x[:1], rounds, _result="numpy")
    one = time.perf_counter() - one
    blocks = -(-invocations // 64)
    assert interrupted_after(lambda: spin(x, rounds * 4, _result="numpy")) < 1.2 + 8 * one * blocks
    np.testing.assert_array_equal(spin(x, 1000, _result="numpy"), expected(invocations, 1000))


def test_waiting_for_the_gradients_of_another_thread(device: Device) -> None:
    """On the CPU, launches that add to gradients run one after the other."""
    if device.info.type is not DeviceType.cpu:
        pytest.skip("the device has a queue")
    text = """
    [BackwardDerivative(back)] float slow(float a, no_diff uint rounds) { return a; }
    void back(inout DifferentialPair<float> a, uint rounds, float g)
    {
        uint x = 1 + uint(g);
        for (uint i = 0; i < rounds; ++i) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
        a = diffPair(a.p, x == 0 ? 0 : g);
    }
    """
    slow = Module.load_from_source(device, "slow_gradients", text).slow
    seed = Tensor.from_numpy(device, np.zeros(64, np.float32)).with_grads()
    seed.grad.copy_from_numpy(np.ones(64, np.float32))

    def run(rounds: int) -> float:
        a = diffPair(1.0)
        slow.bwds(a, np.full(64, rounds, np.uint32), _result=seed)
        return float(a.grad)

    assert run(1) == 64
    other = threading.Thread(target=run, args=(1 << 24,))
    other.start()
    time.sleep(0.1)
    assert interrupted_after(lambda: run(1 << 24)) < 1.2
    other.join()
    assert run(1) == 64
