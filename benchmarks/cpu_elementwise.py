"""The polynomial over many floats on the CPU device, beside a streaming copy in C, np.copyto and NumPy, in one run.

    python benchmarks/cpu_elementwise.py [--elements 16777216] [--seconds 2]

Bandwidth counts one read and one write of each element. Inputs are random, outputs are poisoned before every variant
and checked after it. Prints the median of calls that alternate between the variants, so that all see the same machine,
and the least, which tells more where other programs use the machine. The streaming copy uses as many threads as there are
cores and writes around the caches; a C compiler ($CC, else cc) makes it, and without one it is left out.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import slangpy as spy

SOURCE = """
float polynomial(float a, float b, float c, float x)
{
    return a * x * x + b * x + c;
}
"""


COPY = """
#include <pthread.h>
#include <stddef.h>
#include <string.h>

typedef long long Line __attribute__((vector_size(64), aligned(64)));
typedef long long Loose __attribute__((vector_size(64), aligned(1)));
struct Job { char* to; const char* from; size_t size, next; };
enum { piece = 1 << 18 };

static void copy_bytes(char* to, const char* from, size_t size)
{
    size_t i = 0;
#if defined(__AVX512F__)
    for (; i < size && ((size_t)(to + i) & 63); i++) to[i] = from[i];
    for (; i + 64 <= size; i += 64) __builtin_ia32_movntdq512((Line*)(to + i), *(const Loose*)(from + i));
    __builtin_ia32_sfence();
#elif defined(__AVX__)
    typedef long long Half __attribute__((vector_size(32), aligned(32)));
    typedef long long LooseHalf __attribute__((vector_size(32), aligned(1)));
    for (; i < size && ((size_t)(to + i) & 31); i++) to[i] = from[i];
    for (; i + 32 <= size; i += 32) __builtin_ia32_movntdq256((Half*)(to + i), *(const LooseHalf*)(from + i));
    __builtin_ia32_sfence();
#endif
    memcpy(to + i, from + i, size - i);
}

static void* copy_pieces(void* data)
{
    struct Job* job = data;
    for (;;) {
        const size_t at = __atomic_fetch_add(&job->next, piece, __ATOMIC_RELAXED);
        if (at >= job->size) return NULL;
        copy_bytes(job->to + at, job->from + at, job->size - at < piece ? job->size - at : piece);
    }
}

void streaming_copy(char* to, const char* from, size_t size, int threads)
{
    pthread_t started[64];
    struct Job job = {to, from, size, 0};
    for (int i = 1; i < threads && i < 64; i++) pthread_create(&started[i], NULL, copy_pieces, &job);
    copy_pieces(&job);
    for (int i = 1; i < threads && i < 64; i++) pthread_join(started[i], NULL);
}
"""


def streaming_copy(to: np.ndarray, source: np.ndarray) -> Callable[[], object] | None:
    """A copy by all cores; None where there is no compiler."""
    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder, "copy.c"), Path(folder, "copy.so")
        text.write_text(COPY)
        command = [
            *os.environ.get("CC", "cc").split(),
            "-O3",
            "-shared",
            "-fPIC",
            "-pthread",
            "-o",
            str(library),
            str(text),
        ]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        copy = ctypes.CDLL(str(library)).streaming_copy
    arguments = (ctypes.c_void_p(to.ctypes.data), ctypes.c_void_p(source.ctypes.data), ctypes.c_size_t(to.nbytes))
    return lambda: copy(*arguments, len(os.sched_getaffinity(0)))


def machine() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        name = "unknown processor"
    return f"{name}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores"


def measure(variants: dict[str, Callable[[], object]], seconds: float) -> dict[str, tuple[float, float]]:
    """Median and least seconds of each variant."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for call in variants.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[next(iter(times))]) < 5:
        for name, call in variants.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: (statistics.median(values), min(values)) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring, for each variant")
    options = parser.parse_args()

    x = np.random.default_rng().standard_normal(options.elements, dtype=np.float32)
    expected = np.float32(2) * x * x + np.float32(8) * x + np.float32(-1)
    device = spy.create_device(type=spy.DeviceType.cpu)
    polynomial = spy.Module.load_from_source(device, "cpu_elementwise", SOURCE).polynomial
    inputs = spy.Tensor.from_numpy(device, x)
    outputs = spy.Tensor.empty_like(inputs)
    array = np.empty_like(x)

    def with_tensors() -> None:
        polynomial(2.0, 8.0, -1.0, inputs, _result=outputs)
        device.wait()

    variants: dict[str, Callable[[], object]] = {
        "np.copyto": lambda: np.copyto(array, x),
        "NumPy": lambda: 2 * x * x + 8 * x - 1,
        "slangpy, arrays": lambda: polynomial(2.0, 8.0, -1.0, x, _result=array),
        "slangpy, Tensor": with_tensors,
    }
    copied = np.empty_like(x)
    copy = streaming_copy(copied, x)
    if copy is not None:
        copy()
        np.testing.assert_array_equal(copied, x)
        variants = {"streaming copy": copy, **variants}
    for name, result in (("slangpy, arrays", lambda: array), ("slangpy, Tensor", outputs.to_numpy)):
        array.fill(np.nan)
        outputs.copy_from_numpy(array)
        variants[name]()
        np.testing.assert_allclose(result(), expected, rtol=1e-5, atol=1e-5, err_msg=name)

    show(measure(variants, options.seconds * len(variants)), options.elements)


def show(times: dict[str, tuple[float, float]], elements: int) -> None:
    print(f"{machine()}; {elements} float32; shares: of medians, of least times")
    copies = [name for name in ("streaming copy", "np.copyto") if name in times]
    print("variant              ms   least     GB/s" + "".join(f"   of {name:14}" for name in copies))
    for name, (median, least) in times.items():
        shares = "".join(f"   {times[copy][0] / median:5.2f} {times[copy][1] / least:5.2f}      " for copy in copies)
        print(f"{name:16} {median * 1e3:7.2f} {least * 1e3:7.2f} {8 * elements / median / 1e9:8.2f}{shares}")


if __name__ == "__main__":
    main()
