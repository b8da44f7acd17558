"""The host side of the CUDA backend, against a driver of which the test decides what it does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slangpy as spy

pytestmark = pytest.mark.skipif(
    not hasattr(spy._native, "cuda_compile") or shutil.which("g++") is None or not sys.platform.startswith("linux"),
    reason="needs the CUDA backend, Linux and g++",
)

BEGIN = """
import ctypes, gc, signal, sys, time
import numpy as np
import slangpy as spy
driver = ctypes.CDLL("libcuda.so.1")
driver.stand_in_log.restype = ctypes.c_char_p
driver.stand_in_live.restype = ctypes.c_longlong
def behave(name, value): driver.stand_in_set(name.encode(), ctypes.c_longlong(value))
def log(): return driver.stand_in_log().decode().split("\\n")[:-1]
def live(): return {kind: driver.stand_in_live(kind.encode()) for kind in
                    ("memory", "host", "array", "texture", "surface", "module", "stream", "event")}
RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
SOURCE = '''[shader("compute")] [numthreads(64, 1, 1)]
void {0}(uint3 t : SV_DispatchThreadID, RWStructuredBuffer<uint> y) {{ y[t.x] = 1; }}'''
def kernel(device, name="main"):
    module = device.load_module_from_source("m_" + name, SOURCE.format(name))
    program = device.link_program([module], [module.entry_point(name)])
    return device.create_kernel(b"machine code", program.binding_layout(0), name), program
def launch(device, kernel, buffer, stream=0):
    handle = spy.NativeHandle.from_cuda_stream(stream) if stream else spy.NativeHandle()
    device.launch(kernel, (1, 1, 1), [], [buffer], [], handle)
def fails(action, kind, *parts):
    try:
        action()
    except kind as error:
        for part in parts:
            assert part in str(error), str(error)
        return
    raise AssertionError("nothing was raised")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("cuda_stand_in.cpp")
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", str(path / "libcuda.so.1"), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture
def run(folder: Path):
    def call(code: str, **environment: str) -> str:
        paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        result = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", BEGIN + code], capture_output=True, text=True, timeout=100, check=False,
            env={**os.environ, "LD_LIBRARY_PATH": ":".join(paths), **environment},
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout

    return call


def test_null_buffers_have_memory(run) -> None:
    """Made at the first launch that needs it, zeroed, and given back."""
    run("""
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
code, program = kernel(device)
buffer = device.create_buffer(size=1024, usage=RW)
launch(device, code, buffer)
before = live()["memory"]
launch(device, code, None)
launch(device, code, None)
assert live()["memory"] == before + 1, live()
device.wait()
device.close()
del buffer, code, program
gc.collect()
assert not any(live().values()), live()
""")


def test_everything_is_given_back(run) -> None:
    run("""
for i in range(20):
    device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
    assert device.info.adapter_name == "Stand-in 0"
    things = [device.create_buffer(size=1000 * n, usage=RW) for n in range(1, 9)]
    things += [device.create_buffer(size=64, memory_type=spy.MemoryType.upload), device.create_fence(), device.create_sampler()]
    usage = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
    things.append(device.create_texture(width=8, height=8, mip_count=2, format=spy.Format.rgba32_float, usage=usage))
    pool = device.create_query_pool(count=4)
    encoder = device.create_command_encoder()
    encoder.write_timestamp(pool, 1)
    device.submit_command_buffer(encoder.finish())
    assert pool.get_result(1) > 0
    code, program = kernel(device)
    launch(device, code, things[0])
    data = np.arange(100000, dtype=np.uint32)
    buffer = device.create_buffer(data=data, usage=RW)
    assert np.array_equal(buffer.to_numpy().view(np.uint32), data)
    device.wait()
    if i % 2:
        del things, buffer, pool, code, program, encoder
        gc.collect()
    if i % 4 == 2:
        dropped = device
        del things, buffer, pool, code, program, encoder, dropped
        device.close()
        del device
    else:
        device.close()
    spy.Device.get_created_devices()
    gc.collect()
    assert not any(live().values()), live()
context = ctypes.c_void_p()
driver.cuCtxGetCurrent(ctypes.byref(context))
assert context.value is None  # the caller's context stays as it was
""")


def test_order_of_streams(run) -> None:
    """Work of one device forms one order: a stream that takes over waits for the one before."""
    run("""
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
code, program = kernel(device)
buffer = device.create_buffer(size=256, usage=RW)
device.wait()
log()
launch(device, code, buffer)
launch(device, code, buffer)
assert log() == ["launch 0"] * 2
launch(device, code, buffer, 64)
launch(device, code, buffer, 64)
assert log() == ["record 0", "wait 64", "launch 64", "record 64", "launch 64", "record 64"]
launch(device, code, buffer, 128)
assert log() == ["wait 128", "launch 128", "record 128"]
launch(device, code, buffer)
assert log() == ["wait 0", "launch 0"]
behave("capturing", 64)
launch(device, code, buffer, 64)
assert log() == ["launch 64"]  # no event of another stream enters a graph
behave("capturing", 0)
device.sync_to_cuda(64)
assert log() == ["record 64", "wait 0"]
device.sync_to_device(64)
assert log() == ["record 0", "wait 64"]
device.close()
""")


def test_out_of_memory(run) -> None:
    run("""
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
behave("memory", 1 << 20)
kept = device.create_buffer(size=900_000, usage=RW)
log()
fails(lambda: device.create_buffer(size=500_000, usage=RW, label="mine"), MemoryError, "500000 bytes", "'mine'", "900000 bytes are in use",
      "12345 of", "Stand-in 0")
assert "trim" in log()
assert device.create_buffer(size=100_000, usage=RW).size == 100_000
del kept
assert device.create_buffer(size=900_000, usage=RW).size == 900_000
device.close()
""")


def test_a_fault_names_its_kernel(run) -> None:
    run("""
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
buffer = device.create_buffer(size=256, usage=RW)
code, program = kernel(device, "guilty")
device.wait()
launch(device, code, buffer, 64)
behave("fault", 700)
fails(buffer.to_numpy, RuntimeError, "a kernel fault", "'guilty'", "compute-sanitizer")
fails(lambda: device.create_buffer(size=4), RuntimeError, "a kernel fault")
fails(device.close, RuntimeError, "a kernel fault")
assert device.is_closed
""")


def test_waits_end_with_a_signal(run) -> None:
    """Kernels that never end: every wait can be left, and goes on to work once they do end."""
    run("""
class Pressed(Exception): pass
def press(*_): raise Pressed
signal.signal(signal.SIGALRM, press)
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
code, program = kernel(device)
small = device.create_buffer(data=np.arange(64, dtype=np.uint32), usage=RW)
large = device.create_buffer(data=np.arange(1 << 20, dtype=np.uint32), usage=RW)
upload = device.create_buffer(size=64, memory_type=spy.MemoryType.upload)
texture = device.create_texture(width=8, height=8, format=spy.Format.rgba32_float, usage=spy.TextureUsage.shader_resource)
pool = device.create_query_pool(count=1)
encoder = device.create_command_encoder()
encoder.write_timestamp(pool, 0)
encoder.resolve_query(pool, 0, 1, small, 0)
again = encoder.finish()
device.submit_command_buffer(again)
arguments = device.create_buffer(data=np.ones(3, np.uint32), usage=RW | spy.BufferUsage.indirect_argument)
fence = device.create_fence()
launch(device, code, small)
behave("busy", 1)
waits = [device.wait, small.to_numpy, large.to_numpy, lambda: large.copy_from_numpy(np.zeros(1 << 20, np.uint32)),
         lambda: upload.copy_from_numpy(np.zeros(4, np.uint32)), texture.to_numpy, lambda: fence.wait(7),
         lambda: pool.get_result(0), lambda: device.submit_command_buffer(again), device.close]
for wait in waits:
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    begin = time.perf_counter()
    fails(wait, Pressed)
    assert time.perf_counter() - begin < 3
assert not device.is_closed
behave("busy", 0)
for wait in waits:
    if wait is not waits[6]:
        wait()
assert device.is_closed
""")


def test_several_devices(run) -> None:
    run("""
behave("devices", 2)
adapters = spy.Device.enumerate_adapters(spy.DeviceType.cuda)
assert [a.name for a in adapters] == ["Stand-in 0", "Stand-in 1"]
second = spy.Device(type=spy.DeviceType.cuda, adapter_luid=adapters[1].luid, enable_hot_reload=False)
first = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
assert (first.info.adapter_name, second.info.adapter_name) == ("Stand-in 0", "Stand-in 1")
assert first.native_handles[1] != second.native_handles[1]
ours, theirs = first.create_buffer(size=4, usage=RW), second.create_buffer(size=4, usage=RW)
context = ctypes.c_void_p()
for device in (first, second):
    with device.cuda_context_scope():
        driver.cuCtxGetCurrent(ctypes.byref(context))
        assert context.value == device.native_handles[1].value
        assert [h.value for h in spy.get_cuda_current_context_native_handles()] == [h.value for h in device.native_handles][:2]
        (second if device is first else first).create_buffer(size=4)  # leaves the current context alone
        driver.cuCtxGetCurrent(ctypes.byref(context))
        assert context.value == device.native_handles[1].value
encoder = first.create_command_encoder()
fails(lambda: encoder.copy_buffer(ours, 0, theirs, 0, 4), ValueError, "another device")
fails(lambda: spy.Device(type=spy.DeviceType.cuda, adapter_luid=[9] * 16), RuntimeError, "LUID 0909", "Stand-in 1")
handles = list(second.native_handles)
third = spy.Device(type=spy.DeviceType.cuda, existing_device_handles=handles, enable_hot_reload=False)
assert third.info.adapter_name == "Stand-in 1" and third.native_handles[1] == second.native_handles[1]
for device in (third, first, second):
    device.close()
assert not any(live().values()), live()
""")


def test_interop_without_a_match(run) -> None:
    if not spy.Device.enumerate_adapters(spy.DeviceType.vulkan):
        pytest.skip("no Vulkan")
    run("""
name = spy.Device.enumerate_adapters(spy.DeviceType.vulkan)[0].name
try:
    spy.Device(type=spy.DeviceType.vulkan).close()
except RuntimeError: # NVIDIA's driver asks the CUDA driver
    sys.exit()
fails(lambda: spy.Device(type=spy.DeviceType.vulkan, enable_cuda_interop=True), RuntimeError, name, "Stand-in 0")
""")


def test_exit_with_work_in_flight(run) -> None:
    run("""
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
code, program = kernel(device)
kept = [device.create_buffer(size=256, usage=RW) for _ in range(10)]
launch(device, code, kept[0])
""")


def test_launches_by_hand(run) -> None:
    """loadModule's launches: blocks, threads, dynamic memory, stream and the bytes of the parameters reach the driver."""
    run("""
driver.stand_in_launch.restype = ctypes.c_char_p
behave("threads", 128)
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
type_ = spy._native._make_type_layout(kind="struct", name="T", size=8, alignment=1)
struct = spy._native._make_type_layout(kind="struct", name="k", size=8, fields=[{"name": "x", "type": type_, "offset": 0}])
layout = spy._native._make_program_layout(entry_point_name="k", entry_point=struct, scope_sizes=[0, 8])
native = device.create_kernel(b"machine code", layout, "k")
class Kernel(spy._native.RawKernel):
    prepared = []
    def _prepare(self, place):
        self.prepared.append(place)
        return device, native
    def _stream(self, index):
        return 0x70 + index
kernel = Kernel("k", None, 8, False)
launchable = spy._native.Launchable(kernel, ("cuda", 3), b"ABCDEFGH", [])
assert repr(launchable) == "<k with its arguments, for launchRaw(blockSize, gridSize) on cuda:3>"
log()
launchable.launchRaw((32, 2, 1), (3, 1, 5), 100)
assert driver.stand_in_launch() == b"3 1 5 32 2 1 100 ABCDEFGH", driver.stand_in_launch()
assert "launch 115" in log()
launchable.launchTotal(64, (100, 3))
assert driver.stand_in_launch() == b"2 3 1 64 1 1 0 ABCDEFGH", driver.stand_in_launch()
assert "launch 115" in log()
launchable.launch((20, 20), (8, 8), stream=5)
assert driver.stand_in_launch() == b"3 3 1 8 8 1 0 ABCDEFGH", driver.stand_in_launch()
assert "launch 5" in log()
launchable.launchRaw(8, (1, 0, 1))
assert not any(line.startswith("launch") for line in log()), "no blocks: nothing runs"
fails(lambda: launchable.launch((20, 20)), ValueError, "'k'", "256 threads", "can have 128", "registers")
fails(lambda: launchable.launchRaw((1024, 2, 1), 1), ValueError, "k: 'blockSize' (1024, 2, 1) has 2048 threads")
fails(lambda: launchable.launchRaw(1, (1, 65536, 1)), ValueError, "k: 'gridSize' (1, 65536, 1) is more than")
fails(lambda: launchable.launchRaw((1, 1, 1, 1), 1), ValueError, "k: 'blockSize' must be one to three ints of at least 1")
fails(lambda: launchable.launchRaw(1, 1.5), ValueError, "k: 'gridSize' must be", "1.5")
fails(lambda: launchable.launchRaw(1, 1, "many"), ValueError, "k: 'sharedMem' must be a number of bytes, got 'many'")
fails(lambda: launchable.launchRaw(1, 1, 0, "one"), TypeError, "k: 'stream' must be an int handle, a torch stream")
assert kernel.prepared == [("cuda", 3)]
""")


def test_profiles_stand_between_events(run) -> None:
    """Of the stream that the launch goes to; a stream that is recorded into a graph gets none. All are given back."""
    run("""
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
code, program = kernel(device)
buffer = device.create_buffer(size=1024, usage=RW)
launch(device, code, buffer)
device.wait()
before = live()["event"]
with device.profile() as p:
    launch(device, code, buffer)
    log()
    launch(device, code, buffer)
    done = log()
    assert done == ["record 0", "launch 0", "record 0"], done
    launch(device, code, buffer, 0x5000)
    done = log()
    at = done.index("launch 20480")
    assert done[at - 1] == done[at + 1] == "record 20480", done
    behave("capturing", 0x7000)
    launch(device, code, buffer, 0x7000)
    done = log()
    assert done == ["launch 28672"], done
    with device.create_command_encoder() as encoder:
        encoder.clear_buffer(buffer)
assert [(e.name, e.shape) for e in p.events] == [("main", (64, 1, 1))] * 3 + [("clear_buffer", (1024,))], p.events
del p
gc.collect()
device.wait()
assert live()["event"] <= before + 4, live()  # those that the queue keeps for later
launch(device, code, buffer)
log()
launch(device, code, buffer)
done = log()
assert done == ["launch 0"], done
device.close()
assert not any(live().values()), live()
""")


def test_ranges_of_nvtx(run, tmp_path: Path) -> None:
    """A tool that NVTX loads sees each launch in a range with the function's name; others see nothing."""
    here = Path(__file__).parent
    tool, record = tmp_path / "tool.so", tmp_path / "ranges"
    headers = str(here.parents[1] / "third_party" / "nvtx")
    command = ["gcc", "-shared", "-fPIC", "-I", headers, "-o", str(tool), str(here / "nvtx_recorder.c")]
    subprocess.run(command, check=True, capture_output=True)
    code = """
device = spy.Device(type=spy.DeviceType.cuda, enable_hot_reload=False)
code, program = kernel(device)
buffer = device.create_buffer(size=1024, usage=RW)
launch(device, code, buffer)
launch(device, code, buffer, 0x5000)
device.close()
"""
    run(code, NVTX_INJECTION64_PATH=str(tool), NVTX_RECORD=str(record))
    assert record.read_text().splitlines() == ["domain slangpy", *["push main", "pop"] * 2]
    record.unlink()
    run(code, NVTX_RECORD=str(record))
    assert not record.exists()
