"""Between Slang and the downstream compiler: what our library needs in front of the text, and what no text can do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ... import _native
from ...base.folders import LIBRARY_PATH
from ..cache import digest
from ..package_files import remembered
from .arguments import with_local_arguments
from .divisions import division_inputs, with_checked_divisions
from .globals_used import used_slots
from .handles import with_texture_handles
from .hlsl import check_hlsl, with_any_index, with_halves
from .host import END_OF_PRELUDE, host_inputs, with_host, with_one_entry
from .mends import mended_cpp, mended_cuda, mends
from .short import short_inputs
from .spirv import instructions
from .statics import with_statics
from .stores import store_inputs, with_whole_stores
from .wrapping import names_narrow, wrapping, wrapping_header, wrapping_inputs

_FILES = {
    "cpp": ("prelude_integers.h", "adds_cpp.h", "prelude_cpp.h", "halves_cpp.h"),
    "cuda": ("wrapping.h", "prelude_integers.h", "prelude_cuda.h"),
}

_END_OF_CUDA_PRELUDE = b"\n#endif"
"""The last in front of a program."""
_MISSING = (b"asinh", b"acosh", b"atanh")


@cache
def _prelude_of(target: str) -> bytes:
    return b"".join(
        (LIBRARY_PATH / name).read_bytes().replace(b"#pragma once", b"", 1) + b"\n" for name in _FILES[target]
    )


@cache
def _checks() -> bytes:
    return (LIBRARY_PATH / "indices_cpp.h").read_bytes()


@cache
def _additions() -> bytes:
    return (LIBRARY_PATH / "additions_cpp.h").read_bytes().replace(b"#pragma once", b"", 1) + b"\n"


def _with_additions(code: bytes) -> bytes:
    """What adds to memory goes after Slang's prelude, so that this begins alike for all kernels."""
    if b"_spy_atomic_add_" not in code:
        return code
    at = code.rfind(END_OF_PRELUDE) + len(END_OF_PRELUDE)
    return code[:at] + _additions() + code[at:] if at >= len(END_OF_PRELUDE) else _additions() + code


# Components of vectors and rows of matrices, which Slang's prelude indexes without a macro.
_PARTS = (
    (b"{ return *((T*)(this) + index); }", b"{ return *_spy_part((T*)(this), index, sizeof(*this) / sizeof(T)); }"),
    (b"{ return index == 0 ? x : y; }", b"{ return index == 0 ? x : index == 1 ? y : *_spy_nowhere((T*)&y); }"),
    (b"    Vector<T, COLS> rows[ROWS];\n", b"""    struct Rows : FixedArray<Vector<T, COLS>, ROWS>
    {
        Vector<T, COLS>* operator+(int i) { return &(*this)[i]; } // a row that a function writes
    } rows;
"""),
)  # fmt: skip


def _checked_parts(code: bytes) -> bytes:
    for plain, checked in _PARTS:
        code = code.replace(plain, checked)
    return code


@cache
def prelude_key(target: str) -> str:
    """Hash of all that `with_prelude` adds for a target; part of what names a kernel in the disk cache."""
    return remembered(f"prelude {target}", lambda: _hash_of_prelude(target))


def _hash_of_prelude(target: str) -> str:
    return digest(
        Path(__file__).read_bytes(), Path(__file__).with_name("hlsl.py").read_bytes(),
        _prelude_of(target) if target in _FILES else b"",
        host_inputs() + _checks() + _additions() + short_inputs() + division_inputs() if target == "cpp" else b"",
        Path(__file__).with_name("statics.py").read_bytes() if target == "cpp" else b"",
        Path(__file__).with_name("arguments.py").read_bytes() if target == "cpp" else b"",
        Path(__file__).with_name("handles.py").read_bytes() if target == "cpp" else b"",
        wrapping_inputs() + mends() + store_inputs() if target in _FILES else b"",
    )  # fmt: skip


_LEAST = b"-9223372036854775808LL"
_LEAST_WRITTEN = b"(-9223372036854775807LL - 1LL)"
"""C++ takes the number after the minus for itself, and for one of 128 bits."""


def with_prelude(code: bytes, target: str, defines: Mapping[str, str]) -> bytes:
    """Code of a compile target ("cpp", "cuda", "spirv", ...) as its downstream compiler takes it.

    defines: those of the compile target.
    """
    if target == "hlsl":
        code = code.replace(b"[noinline]", b"")  # DXC: "Vector type is not allowed", of such a function's parameters
        return _with_last_returns(with_halves(with_any_index(code)), b"    return (%s)0;\n")
    if target not in _FILES:
        return code
    code = code.replace(_LEAST, _LEAST_WRITTEN)
    if target == "cpp":
        at = max(code.rfind(END_OF_PRELUDE), 0)
        code = with_checked_divisions(_with_narrow_integers(code[:at] + with_whole_stores(code[at:])))
        code = with_host(with_statics(code), defines.get("SPY_WAVE_LANES", "1"))
        code = with_local_arguments(with_one_entry(code))
        code = _with_additions(code)
        at = max(code.rfind(END_OF_PRELUDE), 0)
        head, body = code[:at], code[at:]
        has_halves = (b"Vector<half" in code, b"Matrix<half" in code)
        head = _head(head, defines.get("SPY_BOUNDS_CHECKS") == "1", *has_halves)
        code = head + _with_prototypes(_with_last_returns(with_texture_handles(body)))
    else:
        at = code.rfind(_END_OF_CUDA_PRELUDE) + 1
        code = mended_cuda(code[:at]) + wrapping(_with_last_returns(with_whole_stores(code[at:])))
    return _prelude_of(target) + _double_functions(code, target)


def _with_narrow_integers(code: bytes) -> bytes:
    """C++ code whose integers of 8 and 16 bits have as many; wider ones wrap around by -fwrapv."""
    at = code.rfind(END_OF_PRELUDE) + len(END_OF_PRELUDE)
    if at < len(END_OF_PRELUDE) or not names_narrow(code[at:]):
        return code
    return code[:at] + wrapping_header() + wrapping(code[at:])


@lru_cache(maxsize=8)
def _head(code: bytes, has_checks: bool, vectors: bool, matrices: bool) -> bytes:
    """What stands in front of a C++ kernel: a long text, and nearly always the same."""
    if has_checks:
        code = _checks() + _checked_parts(code)
    if vectors or matrices:  # Slang's own prelude defines operators for float and double alone
        code = code.replace(_VECTOR_MOD, _HALF_MOD + _VECTOR_MOD, 1)
    for is_used, macro in ((vectors, b"VECTOR_OPS"), (vectors, b"VECTOR_MOD"), (matrices, b"MATRIX_OPS"), (matrices, b"MATRIX_MOD")):
        line = b"\nSLANG_FLOAT_" + macro + b"(double)\n"
        if is_used:
            code = code.replace(line, line + b"SLANG_FLOAT_" + macro + b"(half)\n", 1)
    return _with_mixed_operators(mended_cpp(code))


# A function that Slang wrote, which number their names, and whose result is no reference.
_FUNCTION = re.compile(
    rb"^(?!(?:static |__device__ )*void )([A-Za-z_][^\n;&=]*?) +\*?\w+_\d+\([^\n]*\)\n\{\n", re.MULTILINE
)


def _with_last_returns(code: bytes, text: bytes = b"    return {};\n") -> bytes:
    """Functions that may end without a value return zeros: Slang only warns, and C++ compilers let the processor run on
    into what follows; DXC refuses them. `text`: the statement, may name the type by %s."""
    parts, done = [], 0
    for function in _FUNCTION.finditer(code):
        end = code.find(b"\n}\n", function.end() - 1)
        last = code[code.rfind(b"\n", 0, end) + 1 : end]
        if end >= 0 and not last.startswith(b"    return"):
            parts.append(code[done : end + 1] + (text % function[1] if b"%s" in text else text))
            done = end + 1
    return b"".join(parts) + code[done:]


def _double_functions(code: bytes, target: str) -> bytes:
    """Slang's preludes take the logarithm of a double as a float, and leave out functions that emitted code calls."""
    code = code.replace(b"double F64_log10(float f)", b"double F64_log10(double f)", 1)
    missing = [n for n in _MISSING if b"F64_%s((" % n in code and b"INLINE double F64_%s(" % n not in code]
    head = b"__device__ inline" if target == "cuda" else b"#include <math.h>\nstatic inline"
    return b"".join(b"%s double F64_%s(double x) { return ::%s(x); }\n" % (head, n, n) for n in missing) + code


_VECTOR_MOD = b"#define SLANG_FLOAT_VECTOR_MOD(T)"
_HALF_MOD = b"inline half _slang_fmod(half a, half b) { return half(_slang_fmod(float(a), float(b))); }\n"

# Before the matrices of Slang's C++ prelude, whose operators take two vectors or two matrices only, of the same type:
# in constants, Slang leaves a number beside them, and shifts may be by vectors of another type.
_BEFORE_MATRICES = b"\n#undef SLANG_FLOAT_VECTOR_MOD\n"
_MIXED = b"""template<typename T, int ROWS, int COLS> struct Matrix;
template<typename T> struct _spy_same { typedef T type; };
template<typename T, typename U> struct _spy_differ { typedef int type; };
template<typename T> struct _spy_differ<T, T> { };
"""
_SHIFT = b"""
template<typename T, typename U, int N, typename = typename _spy_differ<T, U>::type>
inline Vector<T, N> operator@(const Vector<T, N>& a, const Vector<U, N>& b)
{
    Vector<T, N> result;
    for (int i = 0; i < N; i++)
        result[i] = T(a[i] @ b[i]);
    return result;
}
template<typename T, typename U, int R, int C, typename = typename _spy_differ<T, U>::type>
inline Matrix<T, R, C> operator@(const Matrix<T, R, C>& a, const Matrix<U, R, C>& b)
{
    Matrix<T, R, C> result;
    for (int i = 0; i < R; i++)
        for (int j = 0; j < C; j++)
            result.rows[i][j] = T(a.rows[i][j] @ b.rows[i][j]);
    return result;
}
"""
_MIXED_OPERATOR = b"""
template<typename T, int N>
inline auto operator@(const Vector<T, N>& a, typename _spy_same<T>::type b) { return a @ Vector<T, N>(b); }
template<typename T, int N>
inline auto operator@(typename _spy_same<T>::type a, const Vector<T, N>& b) { return Vector<T, N>(a) @ b; }
template<typename T, int R, int C>
inline auto operator@(const Matrix<T, R, C>& a, typename _spy_same<T>::type b) { return a @ Matrix<T, R, C>(b); }
template<typename T, int R, int C>
inline auto operator@(typename _spy_same<T>::type a, const Matrix<T, R, C>& b) { return Matrix<T, R, C>(a) @ b; }
"""
_OPERATORS = (b"+", b"-", b"*", b"/", b"%", b"&", b"|", b"^", b"<<", b">>", b"<", b"<=", b">", b">=", b"==", b"!=")


def _with_mixed_operators(code: bytes) -> bytes:
    operators = b"".join(_MIXED_OPERATOR.replace(b"@", operator) for operator in _OPERATORS)
    operators += b"".join(_SHIFT.replace(b"@", operator) for operator in (b"<<", b">>"))
    return code.replace(_BEFORE_MATRICES, _BEFORE_MATRICES + _MIXED + operators, 1)


_CONSTANT = re.compile(rb"^static const [^;]*?=[^;]*;", re.MULTILINE)
_CALL = re.compile(rb"\b(\w+_\d+)\(")


def _with_prototypes(code: bytes) -> bytes:
    """Before constants of a C++ program, the functions that make them, which Slang may define after them. In CUDA text they
    stand before them; what is mended there (src/native/cuda/constants.cpp) is that NVRTC fills no variable at run time."""
    parts, done, known = [], 0, set()
    for constant in _CONSTANT.finditer(code):
        for name in _CALL.findall(constant.group()):
            head = re.compile(rb"^([^\n;{}=#]+\b%s\([^\n;{}]*\))\n\{" % name, re.MULTILINE).search(code, constant.end())
            if head and name not in known:
                parts += [code[done : constant.start()], head.group(1), b";\n"]
                done = constant.start()
                known.add(name)
    return b"".join(parts) + code[done:] if parts else code


_ON_CPU = ("structured_buffer", "byte_address_buffer", "texel_buffer", "texture", "sampler", "combined_texture_sampler")


def check_resources(device: Any, layout: Any, text: bytes, label: str) -> None:
    """NotImplementedError for kernels that use what the CPU device lacks (the C++ compiler would only say what it
    misses), or functions of double that SPIR-V has for float only (drivers give any number).

    Globals that the kernel (`text`, of the compile target) does not reach are no obstacle.
    """
    if device.compile_target.format == "spirv":
        _check_doubles(text, label)
    if device.compile_target.format == "hlsl":
        check_hlsl(device, text, label)
    if device.compile_target.format != "cpp" or device.info.type is not _native.DeviceType.cpu:
        return
    used = used_slots(text, "cpp", layout)
    for index, slot in enumerate(layout.slots):
        if slot["kind"] == "texel_buffer" and slot["element_stride"] != 1:  # Slang drops accesses of its own: used or not
            raise NotImplementedError(
                f"{label}: the cpu device takes typed buffers as Buffer<T> and RWBuffer<T>; write the type of '{slot['path']}' so"
            )
        if slot["kind"] in _ON_CPU:
            continue
        if index >= layout.entry_point_slot or index in used:
            raise NotImplementedError(
                f"{label} uses the parameter '{slot['path']}', an acceleration structure, which the "
                "cpu device does not have; use a vulkan device, or the Slang module slangpy.rays, which traces rays on "
                "every device"
            )


_FLOAT_ONLY = dict(
    enumerate(
        "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 pow exp log exp2 log2".split(),
        start=13,
    )
)
"""Instructions of GLSL.std.450 that take numbers of 16 or 32 bits."""


def _check_doubles(code: bytes, label: str) -> None:
    doubles: set[int] = set()
    for opcode, operands in instructions(code):
        if (opcode == 22 and operands[1] == 64) or (opcode == 23 and operands[1] in doubles):  # OpTypeFloat, -Vector
            doubles.add(operands[0])
        elif opcode == 54 and not doubles:  # OpFunction: types are all known
            return
        elif opcode == 12 and operands[0] in doubles and operands[3] in _FLOAT_ONLY:  # OpExtInst
            raise NotImplementedError(
                f"{label} uses {_FLOAT_ONLY[operands[3]]} of double (other functions, such as log10, sinpi or ldexp, use it "
                "too), which Vulkan has for float only; convert to float there, or use a cpu or cuda device"
            )
