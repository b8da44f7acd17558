"""NVRTC reads only what a kernel uses of the text in front of it, and makes the same machine code of it."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import _native
from slangpy.testing import CudaCodegen, nvrtc_available

SOURCE = """
import slangpy;
[Differentiable] float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }
float compared(float3 a, int3 n) { bool3 less = a < float3(1) && n << 1 > 3; return dot(select(less, a, -a), float3(1, 2, 3)); }
float2x3 twice(float2x3 m, half3 h) { return 2 * m % float2x3(float3(h), float3(3)); }
uint counted(Tensor<uint, 1> x, int i) { return WaveActiveSum(x[i]) + countbits(x[i]) + firstbithigh(x[i]); }
float own(float x) { __intrinsic_asm "(F32_sqrt(make_float2($0).y))"; }
"""
X = np.zeros(4, np.float32)
CALLS: dict[str, Callable[[spy.Module], tuple[Any, tuple[Any, ...]]]] = {
    "scalars": lambda m: (m.polynomial, (2, 8, -1, X)),
    "gradient": lambda m: (m.polynomial.bwds, (spy.diffPair(2.0), 8, -1, X, spy.diffPair(0.0, 1.0))),
    "vectors": lambda m: (m.compared, (np.zeros((4, 3), np.float32), np.zeros((4, 3), np.int32))),
    "matrices": lambda m: (m.twice, (np.zeros((4, 2, 3), np.float32), np.zeros((4, 3), np.float16))),
    "waves": lambda m: (m.counted, (np.zeros(4, np.uint32), np.zeros(4, np.int32))),
    "own text": lambda m: (m.own, (X,)),
}

pytestmark = [
    pytest.mark.one,
    pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed"),
]


def machine_code(cubin: bytes) -> dict[str, bytes]:
    """The sections of an ELF file that hold functions."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    texts = {}
    for name, _, _, _, begin, length in sections:
        at = sections[names][4] + name
        texts[cubin[at : cubin.index(b"\0", at)].decode()] = cubin[begin : begin + length]
    return {name: text for name, text in texts.items() if name.startswith(".text")}


class Recording(CudaCodegen):
    """Keeps the text and the machine code of the last kernel."""

    source = part = b""

    def compile(self, source: bytes, entry_point_name: str, *, label: str = "", **options: Any) -> bytes:
        self.source, self.part = source, super().compile(source, entry_point_name, label=label, **options)
        return self.part


@pytest.fixture(scope="module")
def module() -> spy.Module:
    device = Recording("sm_80")
    device.compiler_fingerprint += f" {uuid.uuid4()}"  # nothing comes from the disk cache
    return device.load_from_source("parts", SOURCE)


@pytest.mark.parametrize("name", CALLS)
def test_same_machine_code(module: spy.Module, name: str) -> None:
    device = module.device
    function, arguments = CALLS[name](module)
    device.build(function, *arguments)
    # What includes files of somebody's own is compiled with the whole library, and what is left out cannot be wrong.
    whole = _native.cuda_compile(device.source + b'\n// #include "nothing"\n', "_spy_main", "sm_80")
    assert machine_code(device.part) and machine_code(device.part) == machine_code(whole)
    end = device.source.rfind(b"\n#endif")
    wrong = device.source[:end] + b"\n__device__ int _spy_unused() { return no_such_name; }" + device.source[end:]
    assert machine_code(_native.cuda_compile(wrong, "_spy_main", "sm_80")) == machine_code(whole)


def test_errors_name_the_whole_text(module: spy.Module) -> None:
    device = module.device
    device.build(module.own, X)
    with pytest.raises(RuntimeError, match=r"failed to compile 'broken'[\s\S]*no_such_function"):
        _native.cuda_compile(device.source.replace(b"F32_sqrt(make", b"no_such_function(make"), "_spy_main", "sm_80", "broken")
