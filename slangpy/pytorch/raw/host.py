"""Kernels on the CPU: the program that Slang emits for CUDA, compiled for the host.

The program becomes the body of a struct: its functions are members, the index of the thread and the size of the block are
fields, and group-shared variables are per block by themselves. A driver runs ranges of blocks; threads of kernels with
barriers or warp functions are fibers (slangpy/slang/kernels_fibers.h).
"""

from __future__ import annotations

import re
from functools import cache

from slangpy.base.folders import LIBRARY_PATH
from slangpy.compiler.text.divisions import checked_divisions, division_header
from slangpy.compiler.text.wrapping import names_narrow, wrapping, wrapping_header
from slangpy.pytorch.raw.scan import (
    EmittedKernel,
    mended,
    needs_fibers,
    only,
    without_globals,
    without_idle_ballots,
)

HEADER_BYTES = 64
"""Of `SpyLaunch`, in front of the parameters."""
Places = tuple[tuple[int, int], ...]
"""Offset and size of each parameter."""
FLAGS = ("-ffp-contract=on", "-fsigned-char")
_DRIVER = """
#define SPY_EXPORT extern "C" __attribute__((visibility("default")))
"""

_LAUNCH = """{thread_type}
SPY_EXPORT void {export}(const SpyRange* range, void* arguments, void*)
{{
    const SpyLaunch& launch = *static_cast<const SpyLaunch*>(arguments);
    const char* bytes = static_cast<const char*>(arguments) + {header};
    (void)bytes;
    for (uint32_t z = range->begin[2]; z < range->end[2]; z++)
    for (uint32_t y = range->begin[1]; y < range->end[1]; y++)
    for (uint32_t x = range->begin[0]; x < range->end[0]; x++) {{
        SpyBlock block;
        block.blockIdx = {{x, y, z}};
        block.blockDim = {{launch.block[0], launch.block[1], launch.block[2]}};
        block.gridDim = {{launch.grid[0], launch.grid[1], launch.grid[2]}};
{threads}
    }}
}}
"""
"""A driver: runs a range of blocks."""

_PLAIN = """        for (uint32_t k = 0; k < launch.block[2]; k++)
        for (uint32_t j = 0; j < launch.block[1]; j++)
        for (uint32_t i = 0; i < launch.block[0]; i++) {{
            block.threadIdx = {{i, j, k}};
            block.{export}_(bytes);
        }}"""
"""The threads of a block, one after the other."""

_FIBER = """
struct {export}_thread {{
    SpyBlock* block;
    const char* bytes;
    static void run(void* self) {{ static_cast<{export}_thread*>(self)->block->{export}_(static_cast<{export}_thread*>(self)->bytes); }}
}};"""
_FIBERS = """        {export}_thread thread{{&block, bytes}};
        if (!spy_fibers.run(block.blockDim, &block.threadIdx, {export}_thread::run, &thread)) {{
            __atomic_store_n(launch.failed, 1u, __ATOMIC_RELAXED);
            return;
        }}"""
"""The threads of a block, each a fiber."""


@cache
def _header(fibers: bool, wide: bool) -> str:
    names = ["halves_cpp.h", "kernels_host.h", *(["fibers.h", "kernels_fibers.h"] if fibers else [])]
    text = "".join((LIBRARY_PATH / name).read_text("utf-8").replace("#pragma once", "", 1) for name in names)
    text = "#include <stdint.h>\n" + (division_header() + wrapping_header()).decode() + text
    return text.replace("    uint32_t strides[5];", "    uint64_t strides[5];", 1) if wide else text


def exported(kernel: EmittedKernel) -> str:
    """Name of a kernel's driver in the compiled library."""
    return f"spy_run_{kernel.symbol}"


def _driver(export: str, fibers: bool) -> str:
    threads = (_FIBERS if fibers else _PLAIN).format(export=export)
    thread_type = _FIBER.format(export=export) if fibers else ""
    return _LAUNCH.format(export=export, header=HEADER_BYTES, thread_type=thread_type, threads=threads)


def _call(kernel: EmittedKernel, places: Places) -> list[str]:
    """The member that reads a thread's parameters and calls the kernel."""
    arguments, checks = [], []
    for at, ((type_, _), (offset, size)) in enumerate(zip(kernel.parameters, places, strict=True)):
        arguments.append(f"spy_parameter<{type_}>(bytes + {offset})")
        fits = f"sizeof({type_}) == {size} && {offset} % alignof({type_}) == 0"
        checks.append(f'        static_assert({fits}, "parameter {at} of {kernel.name}");')
    call = ", ".join(arguments)
    return [
        f"    inline void {exported(kernel)}_(const char* bytes)",
        "    {",
        "        (void)bytes;",
        *checks,
        f"        {kernel.symbol}({call});",
        "    }",
    ]


def host_program(program: str, kernels: list[tuple[EmittedKernel, Places]], wide: bool = False) -> str:
    """The C++ text for these kernels: each with the places of its parameters. wide: strides of views have 64 bits."""
    program = only(program, {kernel.symbol for kernel, _ in kernels})
    waits = {kernel.symbol: needs_fibers(program, kernel.symbol) for kernel, _ in kernels}
    body = mended(without_idle_ballots(without_globals(program))).replace(
        "__device__ static constexpr", "__device__ static const"
    )
    body = re.sub(r"__device__ static const\b", "inline static const", body)
    code = body.encode()
    body = checked_divisions(wrapping(code) if names_narrow(code) else code).decode()
    lines = [
        _header(any(waits.values()), wide),
        _DRIVER,
        "struct SpyBlock {",
        "    uint3 threadIdx, blockIdx, blockDim, gridDim;",
        body,
    ]
    for kernel, places in kernels:
        lines += _call(kernel, places)
    lines.append("};")
    for kernel, _ in kernels:
        lines.append(_driver(exported(kernel), waits[kernel.symbol]))
    return "\n".join(lines) + "\n"
