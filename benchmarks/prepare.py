"""A prepared call beside the ordinary one, and beside the same kernel launched bare.

    python benchmarks/prepare.py [--device cpu|vulkan|cuda] [--calls 4000]

Four elements, y = a + b. Prints microseconds of one call: the median of blocks of 20, blocks of all variants in turns.
The device is drained after each block, inside the measured time. A C compiler ($CC, else cc) makes the bare launches:
on CUDA a loop of cuLaunchKernel in C over a kernel of the same work, on the CPU a loop that calls a C function through
a pointer, and the same function through ctypes. Without a compiler they are left out. Results are compared first.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import slangpy as spy
from slangpy.base.optional import find_package

SOURCE = "float add(float a, float b) { return a + b; }"
BLOCK = 20
COUNT = 4

BARE_C = """
#include <stddef.h>
typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int launch_loop(Launch launch, void* function, unsigned groups, unsigned threads, void* stream, void** parameters, int n)
{
    for (int i = 0; i < n; ++i) {
        int result = launch(function, groups, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
        if (result)
            return result;
    }
    return 0;
}
void add(const float* a, float b, float* y, int count)
{
    for (int i = 0; i < count; ++i)
        y[i] = a[i] + b;
}
void add_loop(void (*volatile function)(const float*, float, float*, int), const float* a, float b, float* y, int count,
              int n)
{
    for (int i = 0; i < n; ++i)
        function(a, b, y, count);
}
"""

PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 a, .param .f32 b, .param .u64 y, .param .u32 count)
{
    .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [a]; ld.param.f32 %f1, [b]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p, %r5, %r1;
    @%p bra done;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    add.f32 %f3, %f2, %f1;
    st.global.f32 [%rd5], %f3;
done:
    ret;
}
"""

Block = Callable[[int], object]


def repeated(call: Callable[[], object]) -> Block:
    def block(count: int) -> None:
        for _ in range(count):
            call()

    return block


def bare_library(folder: str) -> ctypes.CDLL | None:
    source, library = Path(folder, "bare.c"), Path(folder, "bare.so")
    source.write_text(BARE_C)
    command = [*os.environ.get("CC", "cc").split(), "-O2", "-shared", "-fPIC", "-o", str(library), str(source)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no bare launches: {error}")
        return None
    return ctypes.CDLL(str(library))


def check_cuda(result: int, what: str) -> None:
    if result:
        raise RuntimeError(f"{what} failed with CUDA error {result}")


def bare_cuda(library: ctypes.CDLL, x: int, y: int) -> Block:
    """A loop in C; the kernel is loaded into the primary context, which the device uses."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check_cuda(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    check_cuda(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    check_cuda(driver.cuModuleLoadData(ctypes.byref(module), PTX.encode()), "cuModuleLoadData")
    check_cuda(driver.cuModuleGetFunction(ctypes.byref(function), module, b"add"), "cuModuleGetFunction")
    values = [ctypes.c_uint64(x), ctypes.c_float(2.0), ctypes.c_uint64(y), ctypes.c_uint32(COUNT)]
    pointers = (ctypes.c_void_p * 4)(*[ctypes.addressof(value) for value in values])
    launch = ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p)
    loop = library.launch_loop

    def block(count: int, keep: object = values) -> None:
        check_cuda(loop(launch, function, 1, 256, None, pointers, count), "cuLaunchKernel")

    return block


def bare_cpu(library: ctypes.CDLL, x: np.ndarray, y: np.ndarray) -> dict[str, Block]:
    a, out, number = ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_float(2.0)
    count, function = ctypes.c_int(COUNT), ctypes.cast(library.add, ctypes.c_void_p)
    add, loop = library.add, library.add_loop
    return {
        "C function, loop in C": lambda n: loop(function, a, number, out, count, ctypes.c_int(n)),
        "C function through ctypes": repeated(lambda: add(a, number, out, count)),
    }


def variants(
    device: spy.Device, library: ctypes.CDLL | None, check: list[Callable[[], np.ndarray]]
) -> dict[str, Block]:
    module = spy.Module.load_from_source(device, "prepare", SOURCE)
    values, host = np.random.default_rng().standard_normal(COUNT, dtype=np.float32), np.zeros(COUNT, np.float32)
    x, other = spy.Tensor.from_numpy(device, values), spy.Tensor.from_numpy(device, values)
    y, bare = spy.Tensor.from_numpy(device, host), spy.Tensor.from_numpy(device, host)
    add, prepared = module.add, module.add.prepare(x, 2.0, _result=y)
    found: dict[str, Block] = {}
    if library is not None and device.info.type == spy.DeviceType.cuda:
        found["bare: cuLaunchKernel, loop in C"] = bare_cuda(library, x.device_address, bare.device_address)
        check.append(bare.to_numpy)
    elif library is not None and device.info.type == spy.DeviceType.cpu:
        found.update(bare_cpu(library, values, host))
        check.append(lambda: host)
    found["prepared()"] = repeated(prepared)
    found["prepared(b=2.0)"] = repeated(lambda: prepared(b=2.0))
    found["prepared(a=Tensor)"] = repeated(lambda: prepared(a=other))
    found["add(Tensor, 2.0, _result=Tensor)"] = repeated(lambda: add(x, 2.0, _result=y))
    check.append(y.to_numpy)
    if torch := find_package("torch"):
        found.update(torch_variants(device, module, torch, values, check))
    check.append(lambda: values + np.float32(2))
    return found


def torch_variants(device: spy.Device, module: spy.Module, torch, values: np.ndarray, check: list) -> dict[str, Block]:
    if device.info.type == spy.DeviceType.vulkan:
        return {}
    place = "cuda" if device.info.type == spy.DeviceType.cuda else "cpu"
    x = torch.from_numpy(values.copy()).to(place)
    out, scale = torch.zeros_like(x), torch.full_like(x, 2.0)
    prepared = module.add.prepare(x, 2.0, _result=out)
    check.append(lambda: out.cpu().numpy())
    return {
        "prepared(), torch tensors": repeated(prepared),
        "torch.add(x, y, out=z)": repeated(lambda: torch.add(x, scale, out=out)),
    }


def measure(blocks: dict[str, Block], drain: Callable[[], object], calls: int) -> dict[str, float]:
    """Median microseconds of one call: blocks of all variants in turns."""
    times: dict[str, list[float]] = {name: [] for name in blocks}
    for turn in range(max(calls // BLOCK, 5) + 2):
        for name, block in blocks.items():
            start = time.perf_counter()
            block(BLOCK)
            drain()
            if turn >= 2:
                times[name].append((time.perf_counter() - start) / BLOCK * 1e6)
    return {name: float(np.median(taken)) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "vulkan", "cuda"])
    parser.add_argument("--calls", type=int, default=4000)
    options = parser.parse_args()
    device = spy.create_device(type=spy.DeviceType[options.device])
    with tempfile.TemporaryDirectory() as folder:
        check: list[Callable[[], np.ndarray]] = []
        blocks = variants(device, bare_library(folder), check)
        torch = find_package("torch")

        def drain() -> None:
            device.wait()
            if torch and options.device == "cuda":
                torch.cuda.synchronize()

        for block in blocks.values():
            block(1)
        drain()
        for result in check[:-1]:
            np.testing.assert_allclose(result(), check[-1](), rtol=1e-6)
        times = measure(blocks, drain, options.calls)
    print(f"{device.info.api_name}, {device.info.adapter_name}; microseconds a call")
    first = next(iter(times))
    for name, taken in times.items():
        print(f"{name:36} {taken:8.3f}   {taken / times[first]:6.2f} of {first}")


if __name__ == "__main__":
    main()
