"""Nothing leaks, and everything may be dropped in any order: before its device is closed, after, or never."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_kernels import RW, in_process, kernel
from drawn import LONG
from tiers import gate

import slangpy as spy

ADD = """
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> y) { y[tid.x] += 1; }"""


def memory_kib() -> int:
    """Resident memory of this process."""
    if not sys.platform.startswith("linux"):
        pytest.skip("resident memory is read from /proc")
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def grows(cycle: Callable[[], None], limit: int) -> bool:
    """Whether each of three rounds of `cycle` adds more than `limit` KiB to this process. A leak does; what other tests
    left behind in this process grows at most once."""
    for _ in range(3):
        before = memory_kib()
        cycle()
        if memory_kib() - before < limit:
            return False
    return True


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def has_textures(device: spy.Device) -> bool:
    return device.type is not spy.DeviceType.cpu


def make_all(device: spy.Device) -> list[Any]:
    """One of each kind of object."""
    encoder = device.create_command_encoder()
    made = [
        device.create_buffer(size=4096, usage=RW),
        device.create_fence(),
        device.create_query_pool(spy.QueryType.timestamp, 2),
        device.create_command_encoder(),
        encoder.finish(),
    ]
    if has_textures(device):
        texture = device.create_texture(
            width=16, height=16, format=spy.Format.rgba8_unorm, usage=spy.TextureUsage.shader_resource
        )
        made += [texture, texture.create_view(), device.create_sampler()]
    return made


def heaps(device: spy.Device) -> list[tuple[str, int, int]]:
    return [(heap.label, heap.total_allocated, heap.num_allocations) for heap in device.report_heaps()]


def test_ten_thousand_resources(device_type: spy.DeviceType) -> None:
    # Without validation layers, which keep records of their own.
    device = spy.Device(type=device_type)

    def cycle(count: int) -> None:
        for _ in range(count):
            make_all(device)
        gc.collect()
        device.wait()

    cycle(1000)
    files_before, heaps_before = open_files(), heaps(device)
    software = device.has_feature(spy.Feature.software_device)
    # NVIDIA's driver for Vulkan takes about 20 ms to make them all, and keeps 1 KiB for each at times.
    many = 10_000 if software or device_type is not spy.DeviceType.vulkan else 2_000
    assert not grows(lambda: cycle(many), 4096 if software else 16384)
    assert open_files() <= files_before
    assert heaps(device) == heaps_before
    assert not device._live_objects()
    device.close()


def test_many_devices(device_type: spy.DeviceType) -> None:
    """300 of them, or 10 000."""
    rounds = 10_000 if LONG else 300

    def cycle(count: int) -> None:
        for i in range(count):
            device = spy.Device(type=device_type)
            buffer = device.create_buffer(data=np.ones(100, np.float32), usage=RW)
            if i % 3 == 0:
                del buffer
            device.close()
        gc.collect()

    cycle(20)
    files_before, open_before = open_files(), len(spy.Device.get_created_devices())
    assert not grows(lambda: cycle(rounds), 65536 if device_type is spy.DeviceType.cuda else 8192)
    assert open_files() <= files_before
    assert len(spy.Device.get_created_devices()) == open_before


@pytest.mark.parametrize("seed", gate(range(5), lambda seed: seed < 2))
def test_release_in_any_order(device_type: spy.DeviceType, seed: int) -> None:
    device = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
    live: list[Any] = [*make_all(device), *make_all(device)]
    if device_type is not spy.DeviceType.null:
        add = kernel(device, ADD)
        add.dispatch([64, 1, 1], y=device.create_buffer(size=256, struct_size=4, usage=RW))
        live += [add, add.pipeline, add.program]
    live.append(device)
    random.Random(seed).shuffle(live)
    close_at = random.Random(seed + 100).randrange(len(live))
    del device
    for i in range(len(live)):
        if i == close_at:
            spy.current_device().close()
        live.pop()
        gc.collect()


def test_objects_outlive_their_device(device_type: spy.DeviceType) -> None:
    device = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
    buffer, fence, pool, encoder, commands, *textures = make_all(device)
    device.close()
    calls = [
        buffer.to_numpy,
        lambda: buffer.copy_from_numpy(np.zeros(4, np.uint8)),
        fence.signal,
        lambda: pool.get_results(0, 1),
        lambda: encoder.clear_buffer(buffer),
        lambda: device.submit_command_buffer(commands),
        lambda: device.create_buffer(size=4),
        device.wait,
        device.report_heaps,
    ]
    if textures:
        calls += [textures[0].to_numpy, textures[0].create_view]
    for call in calls:
        with pytest.raises(RuntimeError, match="device is closed"):
            call()
    for thing in (buffer, fence, pool, encoder, commands, device, *textures):
        assert repr(thing)
    device.close()  # does nothing


def test_every_method_of_a_closed_device(device_type: spy.DeviceType) -> None:
    device = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
    module = device.load_module_from_source("closed", ADD)
    program = device.link_program([module], [module.entry_point("main")])
    pipeline = device.create_compute_pipeline(program, defer_target_compilation=True)
    number = device.register_device_close_callback(lambda _: None)
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    device.close()
    calls = [
        lambda: device.create_compute_pipeline(program),
        lambda: device.create_compute_kernel(program),
        lambda: device.create_root_shader_object(program),
        lambda: device.create_shader_object(program),
        lambda: device.create_slang_session(),
        lambda: device.slang_session,
        lambda: device.has_feature(spy.Feature.half),
        lambda: device.features,
        lambda: device.supported_shader_model,
        lambda: device.has_capability("cpp"),
        lambda: device.cuda_context_scope(),
        lambda: device.unregister_device_close_callback(number),
        device.hot_reload_check,
        lambda: device.set_hot_reload_delay(1),
        device.reload_all_programs,
        device.flush_print_to_string,
        lambda: device.shader_cache_stats,
        lambda: device.wait_for_submit(0),
        lambda: compute_pass.bind_pipeline(pipeline),
    ]
    for i, call in enumerate(calls):
        with pytest.raises(RuntimeError, match="device is closed"):
            call()
            pytest.fail(f"call {i}")
    with pytest.raises(RuntimeError, match="device is closed"), device:
        pass
    assert device.desc.type is device_type and device.is_closed


def test_close_during_launches(device_type: spy.DeviceType) -> None:
    """Calls of other threads end with a result or with "device is closed"."""
    import threading

    if device_type is spy.DeviceType.null:
        pytest.skip("runs no kernels")
    for _ in range(5):
        device = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
        add = kernel(device, ADD)
        add.dispatch([64, 1, 1], y=device.create_buffer(size=256, struct_size=4, usage=RW))
        unexpected: list[BaseException] = []
        started = threading.Barrier(4)

        def work(device: spy.Device = device, add: Any = add, started: Any = started) -> None:
            started.wait()
            try:
                while True:
                    y = device.create_buffer(size=256, struct_size=4, usage=RW)
                    add.dispatch([64, 1, 1], y=y)
                    y.to_numpy()
            except RuntimeError as error:
                if "device is closed" not in str(error):
                    unexpected.append(error)  # noqa: B023 (joined below)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        started.wait()
        device.wait()
        device.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert not unexpected


EXIT = """
import numpy as np, slangpy as spy
device = spy.Device(type=spy.DeviceType[{name!r}], compiler_options={{}}, enable_hot_reload=False)
other = spy.Device(type=spy.DeviceType[{name!r}])
RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
buffer = device.create_buffer(data=np.arange(64, dtype=np.uint32), struct_size=4, usage=RW)
encoder = device.create_command_encoder()
commands = other.create_command_encoder().finish()
fence = device.create_fence()
if {kernels}:
    module = device.load_module_from_source("m", {source!r})
    k = device.create_compute_kernel(device.link_program([module], [module.entry_point("main")]))
    k.dispatch([64, 1, 1], y=buffer)
    cycle = [k, buffer, device]
    cycle.append(cycle)
    tensor = spy.Tensor.from_numpy(other, np.ones(5, np.float32))
    view = tensor.to_numpy()
"""


@pytest.mark.parametrize("hold", ["", "import builtins; builtins.kept = (device, buffer, fence)", "device.close()"])
def test_exit_with_live_objects(device_type: spy.DeviceType, hold: str) -> None:
    kernels = device_type is not spy.DeviceType.null
    result = in_process(EXIT.format(name=device_type.name, kernels=kernels, source=ADD) + hold)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_exported_memory_outlives_its_device(device_type: spy.DeviceType) -> None:
    if device_type not in (spy.DeviceType.cpu, spy.DeviceType.null, spy.DeviceType.cuda):
        pytest.skip("this device does not export memory by DLPack")
    torch = pytest.importorskip("torch")
    if device_type is spy.DeviceType.cuda and not torch.cuda.is_available():
        pytest.skip("torch without CUDA")
    device = spy.Device(type=device_type)
    buffer = device.create_buffer(data=np.arange(1000, dtype=np.uint8), usage=RW)
    shared = buffer.to_torch()
    device.close()
    del buffer, device
    gc.collect()
    assert shared.cpu().tolist() == np.arange(1000, dtype=np.uint8).tolist()


COPIES = """
import sys, threading, time
import numpy as np
import slangpy as spy

for _ in range(12):
    device = spy.Device(type=spy.DeviceType[sys.argv[1]], compiler_options={}, enable_hot_reload=False)
    tensor = spy.Tensor.zeros(device, (1 << 23,), dtype="float")
    data = np.ones(1 << 23, np.float32)
    started = threading.Barrier(4)

    def work(copy):
        started.wait()
        try:
            while True:
                copy()
        except RuntimeError as error:
            assert "device is closed" in str(error), error

    copies = (tensor.to_numpy, lambda: tensor.copy_from_numpy(data), lambda: tensor[::2].to_numpy())
    threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
    for thread in threads:
        thread.start()
    started.wait()
    time.sleep(0.01)
    device.close()
    for thread in threads:
        thread.join()
print("done")
"""


def test_close_during_copies(device_type: spy.DeviceType) -> None:
    """close() waits for copies of other threads; it freed the memory under them."""
    done = subprocess.run(
        [sys.executable, "-c", COPIES, device_type.name], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0 and done.stdout == "done\n", f"{done.returncode}\n{done.stderr}"
