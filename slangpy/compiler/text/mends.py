"""What is wrong in Slang's own preludes of C++ and CUDA (2026.12), and what stands there instead."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

_ROUND = ((b"return ::roundf(f);", b"return ::rintf(f);"), (b"return ::round(f);", b"return ::rint(f);"))
"""Ties go to the even number, as on other devices."""

_CPP = (
    *_ROUND,
    # The unary operators of matrices take a row of a row, and do not compile.
    (b"result[i].rows[i][j] = op thisVal.rows[i][j];", b"result.rows[i][j] = op thisVal.rows[i][j];"),
    (b"return 63 - __builtin_clz(v);", b"return 63 - __builtin_clzll(v);"),  # firstbithigh of 64 bits
    (b"return __builtin_ctz(v);", b"return __builtin_ctzll(v);"),  # firstbitlow of 64 bits
)
_HALF_MOD = b"""#if SLANG_CUDA_ENABLE_HALF
SLANG_FORCE_INLINE SLANG_CUDA_CALL __half _slang_fmod(__half x, __half y)
{
    return __float2half(_slang_fmod(__half2float(x), __half2float(y)));
}
SLANG_CUDA_FLOAT_VECTOR_MOD(__half)
#endif
"""
_CUDA = (
    *_ROUND,
    # WaveMatch asks whether all lanes have one value, not which have this lane's.
    (b"__match_all_sync(mask, val, &pred), 0", b"__match_any_sync(mask, val), 0"),
    (b"matchBits & __match_all_sync(mask, src[i], &pred)", b"matchBits & __match_any_sync(mask, src[i])"),
    (b"return (f < 0) ? -f : f;", b"return (f < 0) ? _spy_minus(f) : f;"),
    # Remainders of vectors of half are missing.
    (b"SLANG_CUDA_FLOAT_VECTOR_MOD(double)\n", b"SLANG_CUDA_FLOAT_VECTOR_MOD(double)\n" + _HALF_MOD),
    # firstbithigh takes the highest bit of uint for a sign.
    (b"    if ((int32_t)v < 0)\n        v = ~v;\n", b""),
    (b"    return U32_firstbithigh(uint32_t(v));", b"    return U32_firstbithigh(uint32_t(v < 0 ? ~v : v));"),
    (b"int64_t U64_abs(uint64_t f)", b"uint64_t U64_abs(uint64_t f)"),
    (b"\nSLANG_SELECT_T(double)\n", b"\nSLANG_SELECT_T(double)\nSLANG_SELECT_T(longlong)\nSLANG_SELECT_T(ulonglong)\n"),
    (
        b"0 - _slang_vector_get_element(thisVal.rows[i], j);",
        b"_spy_minus(_slang_vector_get_element(thisVal.rows[i], j));",
    ),
)
_HALF_BITS = re.compile(rb"uint32_t f32tof16\(const float value\)\n\{.*?\n\}\n", re.DOTALL)
"""It rounds ties upwards, and what is nearest to the least subnormal number to 0."""
_EXACT_HALF_BITS = b"""uint32_t f32tof16(const float value)
{
#if defined(__FLT16_MANT_DIG__) && defined(__F16C__)
    const _Float16 half = static_cast<_Float16>(value);
    uint16_t bits;
    SPY_COPY(&bits, &half, sizeof(bits));
    return bits;
#else
    return _spy_half_of_bits(_bitCastFloatToUInt(value));
#endif
}
"""

_OPERATORS = re.compile(rb"#define SLANG_(?:CUDA_VECTOR_INT_OP\(T, n\)|INT_MATRIX_OPS\(T\)) *\\\n(?:.*\\\n)+.*\n")
_OPERATOR = re.compile(rb"\bSLANG_(?:CUDA_)?(VECTOR|MATRIX)_(BI|U)NARY_OP(?=\(T(?:, n)?, (?:\+|-|\*)\))")


def mended_cpp(prelude: bytes) -> bytes:
    for wrong, right in _CPP:
        prelude = prelude.replace(wrong, right)
    return _HALF_BITS.sub(_EXACT_HALF_BITS, prelude)


@cache
def mends() -> bytes:
    """All that decides what is made of a prelude; part of what names kernels in the disk cache."""
    return Path(__file__).read_bytes()


@lru_cache(maxsize=8)
def mended_cuda(prelude: bytes) -> bytes:
    for wrong, right in _CUDA:
        prelude = prelude.replace(wrong, right)
    return _OPERATORS.sub(lambda match: _OPERATOR.sub(rb"SPY_\1_\2NARY_OP", match[0]), prelude)
