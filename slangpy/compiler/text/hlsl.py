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
    (re.compile(rb"\b(?:Resource|Sampler)DescriptorHeap\["), "descriptor handles"),
)
_CONSTANTS = re.compile(rb"^cbuffer [^{]*\{\s*(?:#line[^\n]*\s*)?([\w<>, ]+?) +\w+(?:\[int\(\d+\)\])*;", re.M)
_FIELD = re.compile(rb"^ +([\w<>, ]+?) +\w+(?:\[int\(\d+\)\])*(?: : \w+)?;", re.M)
_COMBINED = re.compile(rb"^SamplerState +(\w+)_sampler_\d+(?:\[.*)? : register", re.M)
_STORED = re.compile(rb"^void _spy_store_\d+\(uint64_t \w+, ([\w<>, ]+?) \w+\)", re.M)


_RESOURCES = re.compile(
    rb"\b(?:\w*Buffer|(?:RW)?Texture\w+|SamplerState|SamplerComparisonState)\b(?:<[\w<>, ]+>)? +"
    rb"(\w+)((?:\[int\(\d+\)\])+)"
)
_CONSTANT = re.compile(rb"(?:int\()?\d+U?\)?")


def with_any_index(code: bytes) -> bytes:
    """The code with arrays of resources that each thread may index its own way: the language takes it for granted that
    all threads of a wave take the same, and Slang does not say otherwise."""
    dimensions = {name: sizes.count(b"[") for name, sizes in _RESOURCES.findall(code)}
    dimensions = {name: n for name, n in dimensions.items() if not name.startswith(b"_spy_heap_")}
    if not dimensions:
        return code
    declared = {found.start(1) for found in _RESOURCES.finditer(code)}
    uses = re.compile(rb"\b(" + b"|".join(map(re.escape, dimensions)) + rb")(?=\[)")
    pieces, at = [], 0
    while found := uses.search(code, at):
        pieces.append(code[at : found.end()])
        at = found.end()
        if found.start() in declared:
            continue
        for _ in range(dimensions[found[1]]):
            end = _closing(code, at)
            index = code[at + 1 : end]
            pieces.append(b"[%s]" % (index if _CONSTANT.fullmatch(index) else b"NonUniformResourceIndex(%s)" % index))
            at = end + 1
    return b"".join([*pieces, code[at:]])


def _closing(code: bytes, at: int) -> int:
    depth = 0
    for end in range(at, len(code)):
        depth += (code[end : end + 1] == b"[") - (code[end : end + 1] == b"]")
        if not depth:
            return end
    return len(code)


def with_halves(code: bytes) -> bytes:
    """The code with reads of halves replaced that DXC would take for floats."""
    code = _with_bound_halves(code)
    changed, count = _LOAD.subn(lambda m: b"_spy_half%s_at(%s, " % (m[2] or b"", m[1]), code)
    return _HALF_AT + changed if count else code


def check_hlsl_parameters(layout: Any, label: str) -> None:
    """NotImplementedError for parameters of a texture and its sampler in one: Slang dies of them before there is code."""
    for slot in layout.slots[layout.entry_point_slot :]:
        if slot["kind"] == "combined_texture_sampler":
            raise NotImplementedError(
                f"{label}: the parameter '{slot['path']}' is a texture and its sampler in one, which a d3d12 device "
                "cannot bind; declare a texture and a SamplerState, or use one of the devices that can: cuda, vulkan"
            )


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
    if found is None and "half" not in features and _binds_halves(text):
        found = "halves in constant buffers (globals or parameters of its own entry point)"
    if found is None and _COMBINED.search(text):
        found = "a texture and its sampler in one (a global)"
    if found is not None:
        raise NotImplementedError(
            f"{label} uses {found}, which HLSL has not on this device ({device.info.adapter_name}), so the d3d12 device "
            "cannot run it; devices that can: cpu, cuda, vulkan"
        )


def _binds_halves(text: bytes) -> bool:
    text = _with_bound_halves(text)
    return any(_holds_halves(text, kind) for kind in _CONSTANTS.findall(text))


def _with_bound_halves(code: bytes) -> bytes:
    """The code with halves of constant buffers, which DXC takes for floats, read as the low bits of a word. Those that
    share a word with the next field stay."""
    for kind in _CONSTANTS.findall(code):
        struct = re.search(rb"^struct " + re.escape(kind) + rb"\s*\{(.*?)^\}", code, re.M | re.S)
        fields = list(_FIELD.finditer(struct[1])) if struct else []
        for field, after in zip(fields, [*fields[1:], None], strict=True):
            if not struct or field[1] != b"half" or b"[" in field[0] or (after and b"half" in after[1]):
                continue
            name = re.search(rb"(\w+);", field[0])
            if name is not None:
                code = code.replace(field[0], field[0].replace(b"half", b"uint"), 1)
                code = re.sub(rb"(\w+(?:\.\w+)*\.%s)\b" % name[1], rb"f16tof32(\1 & 0xffff)", code)
    return code


def _stores_halves(text: bytes) -> bool:
    return any(kind.startswith(b"matrix<half") or _in_struct(text, kind) for kind in _STORED.findall(text))


def _in_struct(text: bytes, kind: bytes) -> bool:
    struct = re.search(rb"^struct " + re.escape(kind) + rb"\s*\{(.*?)^\}", text, re.M | re.S)
    return struct is not None and any(_holds_halves(text, field) for field in _FIELD.findall(struct[1]))


def _holds_halves(text: bytes, kind: bytes) -> bool:
    return re.search(rb"\bhalf", kind) is not None or _in_struct(text, kind)


__all__ = ["check_hlsl", "check_hlsl_parameters", "with_any_index", "with_halves"]
