"""The CPU device: compiler, errors, threads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from device_kernels import RW

import slangpy as spy
from slangpy import _native
from slangpy.compiler.text.prelude import with_prelude

SOURCE = """
#include <cstddef>
#include <cstdint>
struct Range { uint32_t begin[3], end[3]; };
struct Arguments { float* y; size_t n; };
extern "C" __attribute__((visibility("default"))) void scale(Range* r, void* entry_point, void* globals) {
    auto* p = static_cast<Arguments*>(globals);
    float a = *static_cast<float*>(entry_point);
    for (uint32_t z = r->begin[2]; z < r->end[2]; ++z)
        for (uint32_t y = r->begin[1]; y < r->end[1]; ++y)
            for (uint32_t x = r->begin[0]; x < r->end[0]; ++x)
                if (size_t i = (z * 5u + y) * 300u + x; i < p->n) p->y[i] *= a;
}
"""


@pytest.fixture
def cpu() -> Iterator[spy.Device]:
    device = spy.Device(type=spy.DeviceType.cpu)
    yield device
    device.close()


def layout() -> object:
    return _native._make_program_layout(
        entry_point_name="scale",
        scope_sizes=[16, 4],
        slots=[{"kind": "byte_address_buffer", "path": "y", "writable": True}],
    )


def test_compile_error_keeps_source(cpu: spy.Device) -> None:
    with pytest.raises(RuntimeError, match="compiling the C\\+\\+ code of bad failed") as caught:
        cpu.compile("int f() { return nonsense; }", "f", label="bad")
    text = str(caught.value)
    assert "nonsense" in text
    kept = re.search(r"source kept in (\S+?\.cpp)", text)
    assert kept and os.path.exists(kept[1])
    os.unlink(kept[1])
    os.rmdir(os.path.dirname(kept[1]))


@pytest.mark.parametrize(
    ("threads", "barrier"), [(1, ""), (64, ""), (64, "GroupMemoryBarrierWithGroupSync();")], ids=["one", "group", "fibers"]
)
def test_kernels_export_one_function(cpu: spy.Device, threads: int, barrier: str) -> None:
    source = f"""
        [shader("compute")] [numthreads({threads}, 1, 1)]
        void add_Thread(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> y) {{ {barrier} y[tid.x] += 1; }}"""
    module = cpu.load_module_from_source(f"exports_{threads}_{len(barrier)}", source)
    program = cpu.link_program([module], [module.entry_point("add_Thread")])
    kernel = cpu.create_compute_kernel(program)
    buffer = cpu.create_buffer(data=np.arange(64, dtype=np.uint32), struct_size=4, usage=RW)
    kernel.dispatch([64, 1, 1], y=buffer)
    np.testing.assert_array_equal(buffer.to_numpy().view(np.uint32), np.arange(64) + 1)
    text = with_prelude(program.code(0), "cpp", {})
    assert re.findall(rb"SLANG_PRELUDE_EXPORT\nvoid (\w+)\(", text) == [b"add_Thread"]
    assert re.findall(rb"^void (\w+)\(", text, re.MULTILINE) == [b"add_Thread"]


def test_missing_function(cpu: spy.Device) -> None:
    code = cpu.compile("int x;", "scale")
    with pytest.raises(RuntimeError, match="no function 'scale'"):
        cpu.create_kernel(code, layout())
    with pytest.raises(RuntimeError, match="cannot load"):
        cpu.create_kernel(b"not a library", layout(), "junk")


def test_no_compiler() -> None:
    code = """
import slangpy as spy
from slangpy import _native
from slangpy.device.backends import configure_backends
configure_backends()
_native._configure_cpu(compilers=[["surely-not-a-compiler"]])
device = spy.Device(type=spy.DeviceType.cpu)
try:
    device.compile("int x;", "x")
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "no C++ compiler found" in done.stdout, done.stderr
    assert "surely-not-a-compiler" in done.stdout
    assert "ziglang" in done.stdout and "g++" in done.stdout


def test_fingerprint_and_modes(cpu: spy.Device) -> None:
    assert cpu.compiler_fingerprint == cpu.compiler_fingerprint
    for mode in ("default", "fast", "precise"):
        assert cpu.compile(SOURCE, "scale", float_mode=mode)
    with pytest.raises(ValueError, match="float_mode"):
        cpu.compile(SOURCE, "scale", float_mode="sloppy")


def test_fast_mode_leaves_denormals_alone(cpu: spy.Device) -> None:
    code = cpu.compile(SOURCE, "scale", float_mode="fast")
    cpu.create_kernel(code, layout())
    tiny = np.float32(1e-40)
    assert tiny * np.float32(1) != 0


def test_launch(cpu: spy.Device) -> None:
    kernel = cpu.create_kernel(cpu.compile(SOURCE, "scale"), layout(), "scale")
    assert kernel.layout.entry_point_name == "scale" and kernel.device is cpu
    count = 300 * 5 * 7
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    y = cpu.create_buffer(data=np.arange(count, dtype=np.float32), usage=usage)
    for groups in ([300, 5, 7], [300, 5, 7], [1, 1, 1]):
        cpu.launch(kernel, groups, [b"", np.float32(3)], [y])
    expected = np.arange(count, dtype=np.float32) * 9
    expected[0] *= 3
    assert np.array_equal(y.to_numpy().view(np.float32), expected)


def test_parallel_compiles(cpu: spy.Device) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda i: cpu.compile(SOURCE + f"// {i}", "scale"), range(8)))
    assert all(code[:4] == b"\x7fELF" for code in codes)


def test_thread_count_from_environment() -> None:
    code = """
import os, threading
import slangpy as spy
device = spy.Device(type=spy.DeviceType.cpu)
print("ok", len(os.listdir("/proc/self/task")))
"""
    env = dict(os.environ, SLANGPY_CPU_THREADS="3")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.startswith("ok"), done.stderr


def test_unsupported_feature_message() -> None:
    text = _native._unsupported_feature_message("blur", "group barriers", spy.DeviceType.cpu)
    assert "blur" in text and "group barriers" in text and "cuda, vulkan, d3d12" in text


BESIDE = """
import sys, slangpy as spy
device = spy.Device(type=spy.DeviceType.cpu, enable_debug_layers=sys.argv[1] == "layers")
m = spy.Module.load_from_source(device, "beside", "float at(float* p, int i) { return p[i]; }")
for count in (1, 1000, 1 << 20):
    for uninitialized in (0, 1):
        x = (spy.Tensor.empty if uninitialized else spy.Tensor.zeros)(device, (count,), "float")
        x[...] = 2
        assert (x.to_numpy() == 2).all() and m.at(x.storage, count - 1) == 2
        del x
x = spy.Tensor.zeros(device, (1000,), "float")
print("before", flush=True)
print("read", m.at(x.storage, int(sys.argv[2])), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="looks for a signal")
@pytest.mark.parametrize("index", [999, 1016, 15000])
def test_memory_ends_at_pages_that_fault_under_debug_layers(index: int) -> None:
    """Less than 64 bytes after the last element."""
    run = subprocess.run(
        [sys.executable, "-c", BESIDE, "layers", str(index)], capture_output=True, text=True, timeout=300, check=False
    )
    assert "before" in run.stdout, run.stderr
    if index == 999:
        assert run.returncode == 0 and "read 0.0" in run.stdout
    else:
        assert run.returncode == -signal.SIGSEGV and "read" not in run.stdout
