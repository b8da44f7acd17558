"""C++ code of kernels on the CPU: groups whose threads wait for each other, group-shared memory, waves, textures.

Slang emits a function of one thread, in which group-shared variables are local, and around it loops over the threads of a
group and over groups, all of them exported.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ...base.folders import LIBRARY_PATH

END_OF_PRELUDE = b"\n#ifdef SLANG_PRELUDE_NAMESPACE\nusing namespace SLANG_PRELUDE_NAMESPACE;\n#endif\n"
"""What Slang writes last before its own code of a program."""
KERNEL = b"\n// --- the kernel\n"
"""Stands between what is here put in front of a kernel, and what Slang emitted."""
_HOST = b'extern "C" __attribute__((visibility("default"))) const SpyHost* _spy_host = nullptr;\n'
_GROUPS = re.compile(rb"\b_spy_(?:group_sync|wave_|fetch_|fence|bits4|lanes_before)")
_TEXTURES = re.compile(rb"\b(?:RW)?(?:Buffer|Texture(?:1D|2D|3D|Cube|2DMS)(?:Array)?)<")
_WAITS = re.compile(rb"\b_spy_group_sync\(")
_WAVES = re.compile(rb"\b_spy_(?:wave_|lanes_before)")
_SHARED = re.compile(rb"^    ([^\n;=]+ (\w+);\n(?=    \(&\w+\)->\w+ = &\2;\n))", re.MULTILINE)
_LOOP = re.compile(
    rb"// \[numthreads\((\d+), (\d+), (\d+)\)\]\nSLANG_PRELUDE_EXPORT\nvoid (\w+)_Group\(ComputeVaryingInput\* varyingInput, "
    rb"void\* entryPointParams, void\* globalParams\)\n\{\n.*?\b(\w+)\(&threadInput, entryPointParams, globalParams\);.*?\n\}\n",
    re.DOTALL,
)
_PARAMETERS = rb"varyingInput, void\* entryPointParams, void\* globalParams\)\n"
_OF_ONE_THREAD = re.compile(
    rb"// \[numthreads\([^\n]*\)\]\nSLANG_PRELUDE_EXPORT\nvoid \w+_Thread\(ComputeThreadVaryingInput\* " + _PARAMETERS +
    rb"\{\n    (\w+)\(varyingInput, entryPointParams, globalParams\);\n\}\n"
)  # fmt: skip
_OF_A_GROUP = re.compile(rb"SLANG_PRELUDE_EXPORT\n(void \w+_Group\(ComputeVaryingInput\* " + _PARAMETERS + rb")")
_FIBERS = b"""
static void %(name)s_fiber(void* data, uint32_t index)
{
    const _spy_group& group = *static_cast<const _spy_group*>(data);
    ComputeThreadVaryingInput input = {};
    input.groupID = group.id;
    input.groupThreadID = uint3(index %% %(x)su, index / %(x)su %% %(y)su, index / (%(x)su * %(y)su));
    %(thread)s(&input, group.arguments, group.globals);
}
SLANG_PRELUDE_EXPORT
void %(name)s_Group(ComputeVaryingInput* varyingInput, void* entryPointParams, void* globalParams)
{
    _spy_group group{varyingInput->startGroupID, entryPointParams, globalParams};
    _spy_host->run_group(%(x)su * %(y)su * %(z)su, SPY_WAVE_LANES, %(name)s_fiber, &group);
}
"""


@cache
def _file(name: str) -> bytes:
    return (LIBRARY_PATH / name).read_bytes().replace(b"#pragma once\n", b"", 1)


@cache
def host_inputs() -> bytes:
    """All that decides what `with_host` makes of kernels; part of what names them in the disk cache."""
    return _file("host_cpp.h") + _file("groups_cpp.h") + _file("textures_cpp.h") + Path(__file__).read_bytes()


def with_host(code: bytes, wave_lanes: str) -> bytes:
    """Code that Slang emitted, with what it calls of the device, and its groups made of fibers where threads wait."""
    at = code.rfind(END_OF_PRELUDE)
    body = code[at:]
    textures = _TEXTURES.search(body)
    if at < 0 or not (textures or _GROUPS.search(body) or _SHARED.search(body)):
        return code
    # a thread of the pool runs one group at a time
    body = _SHARED.sub(rb"    static thread_local \1", body)
    if _WAITS.search(body) or (wave_lanes != "1" and _WAVES.search(body)):
        body = _LOOP.sub(_fibers, body)
    parts = (
        code[:at],
        END_OF_PRELUDE,
        b"#define SPY_WAVE_LANES %s\n" % wave_lanes.encode(),
        _file("host_cpp.h"),
        _HOST,
        _file("groups_cpp.h"),
        _file("textures_cpp.h") if textures else b"",
        KERNEL,
        body[len(END_OF_PRELUDE) :],
    )
    return b"".join(parts)


def _fibers(match: re.Match[bytes]) -> bytes:
    x, y, z, name, thread = match.groups()
    return _FIBERS % {b"x": x, b"y": y, b"z": z, b"name": name, b"thread": thread}


def with_one_entry(code: bytes) -> bytes:
    """Code in which the loop over groups, the only function that the device calls, is the only one exported.

    The C++ compiler made each kernel up to four times: for one thread, for one group, for all groups, and by itself.
    Kernels of calls, whose groups are blocks of the call, also stay apart from that loop: GCC would write them twice.
    """
    exported = _OF_ONE_THREAD.search(code, max(code.rfind(END_OF_PRELUDE), 0))
    if exported is None:
        return code
    thread = re.compile(rb"^(?=void %s\(void\* )" % exported[1], re.MULTILINE)
    head = thread.sub(b"static ", code[: exported.start()], 1)
    apart = b"__attribute__((noinline)) " if exported[1] == b"__spy_main" else b""
    return head + _OF_A_GROUP.sub(b"static " + apart + rb"\1", code[exported.end() :])
