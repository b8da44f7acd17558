"""HLSL between Slang and DXC: halves in memory where the device has no 16-bit types, and what the language has not."""

from __future__ import annotations

import re
from typing import Any

_HALF_AT = b"""float _spy_half_at(ByteAddressBuffer from, uint at)
{ uint word = from.Load(at & ~3u); return f16tof32((at & 2) != 0 ? word >> 16 : word & 0xffff); }
float _spy_half_at(RWByteAddressBuffer from, uint at)
{ uint word = from.Load(at & ~3u); return f16tof32((at & 2) != 0 ? word >> 16 : word & 0xffff); }
#define _spy_half2_at(from, at) float2(_spy_half_at(from, at), _spy_half_at(from, (at) + 2))
#define _spy_half3_at(from, at) float3(_spy_half2_at(from, at), _spy_half_at(from, (at) + 4))
#define _spy_half4_at(from, at) float4(_spy_half3_at(from, at), _spy_half_at(from, (at) + 6))
"""
_LOAD = re.compile(rb"\((\w+(?:\[\w+\])?)\)\.Load<(?:half|vector<half,(\d)>) >\(")
"""A half, or vector of halves, that lies in 16 bits each; DXC reads 32."""

_FUNCTIONS = re.compile(
    rb"\b(sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|exp|exp2|log|log2|log10|pow|sqrt|rsqrt|floor|ceil|round|trunc|"
    rb"frac|fmod)\("
)
_LACKS = (
    (re.compile(rb"\b_spy_lacks_atomics_of_64_bits\b"), "atomic additions to double, or other atomics of 64 bits"),
    (re.compile(rb"\bPtr<|\w\*[\s,>)]"), "pointers"),
    (re.compile(rb"\bu?int8_t\b"), "8-bit integers"),
)
_STORED = re.compile(rb"^void _spy_store_\d+\(uint64_t \w+, ([\w<>, ]+?) \w+\)", re.M)


def with_halves(code: bytes) -> bytes:
    """The code with the loads of halves that DXC would read as floats replaced."""
    changed, count = _LOAD.subn(lambda m: b"_spy_half%s_at(%s, " % (m[2] or b"", m[1]), code)
    return _HALF_AT + changed if count else code


def check_hlsl(device: Any, text: bytes, label: str) -> None:
    """NotImplementedError for what HLSL has not; DXC would say it of generated names, or compute something else."""
    found = next((what for pattern, what in _LACKS if pattern.search(text)), None)
    double = _FUNCTIONS.search(text) if re.search(rb"\bdouble\b", text) else None
    if found is None and double is not None:
        found = f"{double[1].decode()} beside numbers of type double (functions of double are float's)"
    features = {feature.name for feature in device.features}
    if found is None and "int16" not in features and re.search(rb"\bu?int16_t\b", text):
        found = "16-bit integers"
    if found is None and "half" not in features and _stores_halves(text):
        found = "structs or matrices with halves that are written to memory"
    if found is not None:
        raise NotImplementedError(
            f"{label} uses {found}, which HLSL has not on this device ({device.info.adapter_name}), so the d3d12 device "
            "cannot run it; devices that can: cpu, cuda, vulkan"
        )


def _stores_halves(text: bytes) -> bool:
    for kind in _STORED.findall(text):
        if kind.startswith(b"matrix<half"):
            return True
        struct = re.search(rb"^struct " + re.escape(kind) + rb"\s*\{(.*?)^\}", text, re.M | re.S)
        if struct is not None and re.search(rb"\bhalf\b", struct[1]):
            return True
    return False


__all__ = ["check_hlsl", "with_halves"]
