"""Kernels as text for NVRTC, and the options that go with it."""

from __future__ import annotations

import re
from typing import Any

from slangpy import _native
from slangpy.base import libslang
from slangpy.compiler.text.prelude import with_prelude
from slangpy.pytorch.raw.options import LoadOptions
from slangpy.pytorch.raw.program import KernelRecord, ModuleRecord
from slangpy.pytorch.raw.scan import EmittedKernel, mended, only


def cuda_layout(record: KernelRecord, emitted: EmittedKernel) -> Any:
    """Where the parameters lie, for the driver's numbers to be compared with."""
    fields = []
    for p in record.parameters:
        if p.type.kind != "empty":
            type_ = _native._make_type_layout(kind="struct", name=p.type.name, size=p.type.size, alignment=p.type.align)
            fields.append({"name": p.name, "type": type_, "offset": p.offset})
    struct = _native._make_type_layout(kind="struct", name=record.name, size=record.size, fields=fields)
    return _native._make_program_layout(
        entry_point_name=emitted.symbol, entry_point=struct, scope_sizes=[0, record.size]
    )


_OFFSET = re.compile(r"strides\[(\w+)\] \* ")
_VIEW_BEGIN, _VIEW_END = "struct TensorView\n", "\n};\n"


_INDEX = re.compile(r"(\(uint64_t\)strides\[(\w+)\] \* )(\w+(?:\.\w|\[\w+\])?)")
_MEMBERS = "    uint32_t dimensionCount;\n"
_CHECK = """
    __device__ uint32_t spy_inside(uint32_t index, uint32_t axis) const
    {
        const uint32_t size = axis < dimensionCount ? sizes[axis] : 1;
        if (index < size)
            return index;
        printf("slangpy: %s: index %u is outside of a TensorView's dimension %u, which has the size %u\\n", SPY_KERNEL, index, axis, size);
        __trap();
        return 0;
    }
"""


def _views(prelude: str, checked: str, wide: bool) -> str:
    """Slang's views compute offsets in 32 bits, which wrap beyond 4 GiB. checked: a kernel's name, to stop where one of its
    indices is outside of its view. wide: strides of 64 bits."""
    begin = prelude.find(_VIEW_BEGIN)
    end = prelude.find(_VIEW_END, begin)
    view = _OFFSET.sub(r"(uint64_t)strides[\1] * ", prelude[begin:end])
    if wide:
        view = view.replace("uint32_t strides[", "uint64_t strides[", 1)
    if checked:
        view = _INDEX.sub(r"\1spy_inside(\3, \2)", view).replace(_MEMBERS, _MEMBERS + _CHECK, 1)
        view = f'#define SPY_KERNEL "{checked}"\n{view}'
    return prelude[:begin] + view + prelude[end:]


def cuda_text(record: ModuleRecord, symbols: list[str], checked: str = "", wide: bool = False) -> bytes:
    """These kernels for NVRTC. checked: the name of the only one, whose indices are checked. wide: with wide views."""
    program = mended(only(record.program, set(symbols)))
    for symbol in symbols:  # found by their own names in the compiled code
        program = re.sub(
            rf"^__global__ void {symbol}\(", f'extern "C" __global__ void {symbol}(', program, flags=re.MULTILINE
        )
    return with_prelude((_views(libslang.prelude("cuda"), checked, wide) + program).encode(), "cuda", {})


def cuda_options(options: LoadOptions) -> dict[str, Any]:
    return {
        "float_mode": "fast" if options.fast_math else "default",
        "downstream_args": [
            f"-I{options.folder}",
            *(f"-I{path}" for path in options.include_paths),
            *options.cuda_flags,
        ],
        "debug_info": options.cuda_line_info,
    }
