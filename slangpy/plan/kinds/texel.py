"""Textures reached one texel per invocation.

Everywhere but on CUDA a texel is loaded and stored as float, uint or int, and the device converts it to the format.
CUDA loads through texture objects do the same, but its surfaces hold bare bits: there a writable texture is declared
with the components that are stored, and slang/slangpy_texture.slang converts.
"""

from __future__ import annotations

from .. import textures
from ..records import Derivative, Placed
from ..slang_text import slang_name
from ..slots import Slots
from ..specification import ResourceSpec
from ..trampoline import Facts, Kernel
from .kind import LeafKind, up_to_one

_STORED = {("unorm", 8): "uint8_t", ("unorm", 16): "uint16_t", ("snorm", 8): "int8_t", ("snorm", 16): "int16_t",
           ("float", 16): "half", ("uint", 8): "uint8_t", ("uint", 16): "uint16_t", ("sint", 8): "int8_t",
           ("sint", 16): "int16_t", ("unorm_srgb", 8): "uint8_t"}  # fmt: skip


def _declare(kernel: Kernel, placed: Placed) -> None:
    """The texture of a leaf that is reached texel by texel, and its step in each call dimension (0 or 1)."""
    value = placed.binding.value
    assert value is not None
    shape = textures.texel_shape(value.details["texture_type"])
    declare_texture(kernel, placed.ident, shape, value.details["format"], placed.binding.stored, _is_rw(placed))
    if _reads_apart(kernel, placed):
        declare_texture(kernel, f"{placed.ident}_in", shape, value.details["format"], placed.binding.stored, False)
    kernel.fields.append(f"int {placed.ident}_lead[{len(placed.map)}]")


def declare_texture(kernel: Kernel, ident: str, shape: str, format_name: str, texel: str, writable: bool) -> None:
    if not writable:
        kernel.extra.append(f"uniform Texture{shape}<{slang_name(texel)}> {ident}")
        return
    if kernel.facts.on_cuda:
        kernel.extra.append(f"uniform RWTexture{shape}<{slang_name(_raw(format_name, texel)[0])}> {ident}")
        return
    stated = textures.slang_format(format_name)
    prefix = f'[format("{stated}")] ' if stated else ""
    kernel.extra.append(f"{prefix}uniform RWTexture{shape}<{slang_name(texel)}> {ident}")


def _reads_apart(kernel: Kernel, placed: Placed) -> bool:
    """Whether texels are read as a second, sampled texture: not every device reads storage images of any format."""
    value = placed.binding.value
    assert value is not None
    if kernel.facts.on_cuda or not (placed.reads and placed.writes and value.details["readable"]):
        return False
    return not textures.slang_format(value.details["format"])


def _texel_at(kernel: Kernel, placed: Placed) -> list[str]:
    """Coordinates of this invocation's texel: x first, a layer last."""
    at = [f"int(_c{dim}) * _call.{placed.ident}_lead[{k}]" for k, dim in enumerate(placed.map)]
    value = placed.binding.value
    assert value is not None
    if value.details["texture_type"] == "texture_cube_array":  # cubes and their faces are layers
        at[:2] = [f"{at[0]} * 6 + {at[1]}"]
    return at[::-1]


def _value(kernel: Kernel, placed: Placed) -> str:
    """Declares a variable with this invocation's texel, as the parameter's type."""
    ident, binding = placed.ident, placed.binding
    var = f"_v_{ident}"
    if not placed.reads:
        kernel.body.append(f"_spy_T_{ident} {var};")
        return var
    at = _texel_at(kernel, placed)
    if not _is_rw(placed) or _reads_apart(kernel, placed):
        source = f"{ident}_in" if _reads_apart(kernel, placed) else ident
        text = f"{source}.Load({_vector('int', [*at, '0'])})"
    elif kernel.facts.on_cuda:
        text = _unpacked(kernel, placed, f"{ident}[{_vector('int', at)}]")
    else:
        text = f"{ident}[{_vector('int', at)}]"
    same = binding.stored == binding.type_name
    kernel.body.append(f"_spy_T_{ident} {var} = {text if same else f'_spy_T_{ident}({text})'};")
    return var


def _unpacked(kernel: Kernel, placed: Placed, text: str) -> str:
    """A texel of a CUDA surface as float, uint or int."""
    ident, stored, value = placed.ident, placed.binding.stored, placed.binding.value
    assert value is not None
    raw, functions = _raw(value.details["format"], stored)
    if raw == stored:
        return text
    kernel.body.append(f"{slang_name(raw)} _t_{ident} = {text};")
    if functions is None:
        return f"{slang_name(stored)}(_t_{ident})"
    parts = [
        f"_spy_from_{name}({part})" for name, part in zip(functions, _parts(f"_t_{ident}", functions), strict=True)
    ]
    return _make(stored, parts)


def _store(kernel: Kernel, placed: Placed, var: str) -> None:
    value = placed.binding.value
    assert value is not None
    same = placed.binding.stored == placed.binding.type_name
    text = var if same else f"{slang_name(placed.binding.stored)}({var})"
    write_texel(kernel, placed.ident, value.details["format"], placed.binding.stored, _texel_at(kernel, placed), text)


def write_texel(kernel: Kernel, ident: str, format_name: str, texel: str, at: list[str], text: str) -> None:
    target = f"{ident}[{_vector('int', at)}]"
    raw, functions = _raw(format_name, texel) if kernel.facts.on_cuda else (texel, None)
    if raw == texel:
        kernel.body.append(f"{target} = {text};")
    elif functions is None:
        kernel.body.append(f"{target} = {slang_name(raw)}({text});")
    else:
        kernel.body.append(f"{slang_name(texel)} _s_{ident} = {text};")
        parts = [
            f"_spy_to_{name}({part})" for name, part in zip(functions, _parts(f"_s_{ident}", functions), strict=True)
        ]
        kernel.body.append(f"{target} = {_make(raw, parts)};")


def texture_imports(facts: Facts) -> list[str]:
    """The library of conversions, where a surface holds other components than its texels."""
    if not facts.on_cuda:
        return []
    used = [(p.binding.value.details["format"], p.binding.stored) for p in facts.plan.placed
            if p.binding.kind == "texel" and p.binding.value is not None and _is_rw(p)]  # fmt: skip
    if facts.plan.result_mode == "texture":
        used.append((facts.result_format, textures.texel_of(facts.result_format).name))
    return ["slangpy_texture"] if any(_raw(*item)[1] is not None for item in used) else []


def _is_rw(placed: Placed) -> bool:
    """Whether a texture is bound for unordered access; only such textures without TextureUsage.shader_resource are read so."""
    value = placed.binding.value
    assert value is not None
    return placed.writes or not value.details["readable"]


def _vector(scalar: str, parts: list[str]) -> str:
    return _make(f"{scalar}{len(parts)}", parts)


def _make(type_name: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{slang_name(type_name)}({', '.join(parts)})"


def _parts(var: str, functions: list[str]) -> list[str]:
    return [var] if len(functions) == 1 else [f"{var}[{i}]" for i in range(len(functions))]


def _raw(format_name: str, texel: str) -> tuple[str, list[str] | None]:
    """What a CUDA surface of a format holds in place of `texel`, and how each component is converted (None: a cast)."""
    info = textures.format_info(format_name)
    kind = info.type.name.rstrip("_")
    stored = _STORED.get((kind, info.channel_bit_count[0]))
    if stored is None:
        return texel, None
    count = info.channel_count
    raw = stored if count == 1 else f"vector<{stored},{count}>"
    if not info.is_normalized_format():
        return raw, None
    name = "srgb8" if info.is_srgb_format() else f"{kind}{info.channel_bit_count[0]}"
    return raw, [name if k < 3 or not info.is_srgb_format() else "unorm8" for k in range(count)]


def _spec(slots: Slots, placed: Placed, grad: Derivative) -> ResourceSpec:
    del grad
    ident, fields = placed.ident, slots.fields
    read_slot = fields.slot(ident + "_in") if fields.has_slot(ident + "_in") else -1
    return ResourceSpec(fields.slot(ident), read_slot, fields.offset(ident + "_lead"))


KIND = LeafKind("texel", _declare, _value, _spec, _store, is_movable=False, flattens=up_to_one)
