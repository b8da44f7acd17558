"""The CUDA programs of the other tests compile with NVRTC, without a GPU, wherever it is installed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from slangpy import _native
from slangpy.pytorch.raw.cuda import cuda_layout, cuda_options, cuda_text
from slangpy.pytorch.raw.program import wide_record
from slangpy.testing import nvrtc_available

from . import (
    test_arguments,
    test_blocks,
    test_host_functions,
    test_large,
    test_loading,
    test_programs,
    test_square,
    test_views,
)

pytestmark = pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
CONSTANTS = """
static const float3 splat = float3(2);
static const float3 table[3] = { float3(1, 2, 3), float3(int3(4)), splat * 2 };
static const float roots[2] = { 1, sqrt(3.0) };
[CUDAKernel] [AutoPyBindCUDA] void go(TensorView<float> x)
{
    let i = cudaThreadIdx().x;
    x[i] = x[i] * table[i % 3].y + roots[i % 2] + splat.x;
}
"""
SOURCES = {
    "constants": CONSTANTS,
    "square": test_square.SOURCE,
    "layout": test_arguments.LAYOUT,
    "structs": test_arguments.STRUCTS,
    "tuples": test_arguments.TUPLES,
    "scalars": test_arguments.SCALARS,
    "blocks": test_blocks.SOURCE,
    "atomics": test_blocks.ATOMICS,
    "host": test_host_functions.SQUARE,
    "host_values": test_host_functions.VALUES,
    "box": test_programs.BOX,
    "methods": test_loading.METHODS,
    "wide": test_loading.WIDE,
    "views": test_views.SOURCE,
    "large": test_large.WIDE,
}


def sizes(kernel: Any, emitted: Any) -> str:
    """Checks that the bytes which we write are those that the compiler reads."""
    return "\n".join(
        f"static_assert(sizeof({type_}) == {size} && {offset} % alignof({type_}) == 0, \"{kernel.name}\");"
        for (type_, _), (offset, size) in zip(emitted.parameters, kernel.places, strict=True)
    )


@pytest.mark.parametrize("name", SOURCES)
def test_compiles(load: Any, name: str) -> None:
    programs = load(SOURCES[name])._programs
    chosen = [(k, e) for k in programs.record.kernels for e in k.emitted if not k.trouble]
    options = cuda_options(programs.options)
    assert "-I" + programs.options.folder in options["downstream_args"]
    text = cuda_text(programs.record, [e.symbol for _, e in chosen])
    assert b"(uint64_t)strides[0] * " in text
    text += "\n".join(sizes(kernel, emitted) for kernel, emitted in chosen).encode()
    code = _native.cuda_compile(text, chosen[0][1].symbol, "sm_80", name)
    assert code[:4] == b"\x7fELF"
    for kernel, emitted in chosen:
        assert emitted.symbol.encode() in code
        assert cuda_layout(kernel, emitted).scopes[1]["size"] == kernel.size


def test_strides_of_more_than_32_bits(load: Any) -> None:
    """The variant for such tensors: its views are 72 bytes, so that other parameters lie elsewhere."""
    programs = load(test_large.WIDE)._programs
    for kernel in programs.record.kernels:
        wide = wide_record(kernel)
        assert wide.size > kernel.size
        for emitted in kernel.emitted:
            text = cuda_text(programs.record, [emitted.symbol], wide=True) + sizes(wide, emitted).encode()
            assert b"uint64_t strides[" in text
            assert _native.cuda_compile(text, emitted.symbol, "sm_80", "wide")[:4] == b"\x7fELF"
            assert cuda_layout(wide, emitted).scopes[1]["size"] == wide.size


def test_checked_indices(load: Any) -> None:
    """Every use of an index in Slang's view is checked; whether it stops a kernel is for a GPU to show."""
    source = test_views.SOURCE
    programs = load(source, extraCudaFlags=["-D", "SPY_BOUNDS_CHECK"])._programs
    assert programs.options.checks_bounds and not load(source)._programs.options.checks_bounds
    kernel, emitted = next((k, e) for k in programs.record.kernels for e in k.emitted if not k.trouble)
    text = cuda_text(programs.record, [emitted.symbol], "some.kernel").decode()
    view = text[text.index("struct TensorView\n") :].split("\n};\n")[0]
    assert view.count("strides[") - 1 == view.count("* spy_inside(") > 40
    assert '#define SPY_KERNEL "some.kernel"' in text and kernel.name in text
    assert _native.cuda_compile(text.encode(), emitted.symbol, "sm_80", "checked")[:4] == b"\x7fELF"
