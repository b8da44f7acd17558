"""Textures in generated kernels: parameters for them, and loads and stores of single texels.

Everywhere but on CUDA a texel is loaded and stored as float, uint or int, and the device converts it to the format.
CUDA loads through texture objects do the same, but its surfaces hold bare bits: there a writable texture is declared
with the components that are stored, and slang/slangpy_texture.slang converts.
"""

from __future__ import annotations

from . import textures
from .emit_state import KernelState
from .ir import Placed
from .text import slang_name

_STORED = {("unorm", 8): "uint8_t", ("unorm", 16): "uint16_t", ("snorm", 8): "int8_t", ("snorm", 16): "int16_t",
           ("float", 16): "half", ("uint", 8): "uint8_t", ("uint", 16): "uint16_t", ("sint", 8): "int8_t",
           ("sint", 16): "int16_t", ("unorm_srgb", 8): "uint8_t"}  # fmt: skip


class TextureWriter(KernelState):
    """Declarations, loads and stores of textures."""

    @property
    def _on_cuda(self) -> bool:
        return "cuda" in self.capabilities

    # --- declarations
    def _declare_texels(self, placed: Placed) -> None:
        """The texture of a leaf that is reached texel by texel, and its step in each call dimension (0 or 1)."""
        value = placed.binding.value
        assert value is not None
        shape = textures.texel_shape(value.details["texture_type"])
        self._declare_texture(placed.ident, shape, value.details["format"], placed.binding.stored, _is_rw(placed))
        if self._reads_apart(placed):
            self._declare_texture(f"{placed.ident}_in", shape, value.details["format"], placed.binding.stored, False)
        self.fields.append(f"int {placed.ident}_lead[{len(placed.map)}]")

    def _declare_texture(self, ident: str, shape: str, format_name: str, texel: str, writable: bool) -> None:
        if not writable:
            self.extra.append(f"uniform Texture{shape}<{slang_name(texel)}> {ident}")
            return
        if self._on_cuda:
            self.extra.append(f"uniform RWTexture{shape}<{slang_name(_raw(format_name, texel)[0])}> {ident}")
            return
        stated = textures.slang_format(format_name)
        prefix = f'[format("{stated}")] ' if stated else ""
        self.extra.append(f"{prefix}uniform RWTexture{shape}<{slang_name(texel)}> {ident}")

    def _declare_resource(self, placed: Placed) -> None:
        """A resource that the function takes whole."""
        binding, ident = placed.binding, placed.ident
        array = binding.array_type
        prefix = self._whole_format([p for p in self.plan.placed if p.ident == ident])
        self.extra.append(f"{prefix}uniform {slang_name(array) if array else f'_spy_T_{ident}'} {ident}")

    def _whole_format(self, parts: list[Placed]) -> str:
        """States the format of writable textures, because not every device reads texels of a format it does not know."""
        found = textures.parse(parts[0].binding.type_name)
        if found is None or not found.writable or self._on_cuda:  # CUDA stores bare bits whatever is stated
            return ""
        values = [p.binding.value for p in parts]
        formats = {value.details["format"] for value in values if value is not None}
        stated = textures.slang_format(formats.pop()) if len(formats) == 1 else ""
        return f'[format("{stated}")] ' if stated else ""

    def _reads_apart(self, placed: Placed) -> bool:
        """Whether texels are read as a second, sampled texture: not every device reads storage images of any format."""
        value = placed.binding.value
        assert value is not None
        if self._on_cuda or not (placed.reads and placed.writes and value.details["readable"]):
            return False
        return not textures.slang_format(value.details["format"])

    # --- coordinates
    def _texel_at(self, placed: Placed) -> list[str]:
        """Coordinates of this invocation's texel: x first, a layer last."""
        at = [f"int(_c{dim}) * _call.{placed.ident}_lead[{k}]" for k, dim in enumerate(placed.map)]
        value = placed.binding.value
        assert value is not None
        if value.details["texture_type"] == "texture_cube_array":  # cubes and their faces are layers
            at[:2] = [f"{at[0]} * 6 + {at[1]}"]
        return at[::-1]

    # --- loads
    def _texel_value(self, placed: Placed) -> str:
        """Declares a variable with this invocation's texel, as the parameter's type."""
        ident, binding = placed.ident, placed.binding
        var = f"_v_{ident}"
        if not placed.reads:
            self.body.append(f"_spy_T_{ident} {var};")
            return var
        at = self._texel_at(placed)
        if not _is_rw(placed) or self._reads_apart(placed):
            source = f"{ident}_in" if self._reads_apart(placed) else ident
            text = f"{source}.Load({_vector('int', [*at, '0'])})"
        elif self._on_cuda:
            text = self._unpacked(placed, f"{ident}[{_vector('int', at)}]")
        else:
            text = f"{ident}[{_vector('int', at)}]"
        same = binding.stored == binding.type_name
        self.body.append(f"_spy_T_{ident} {var} = {text if same else f'_spy_T_{ident}({text})'};")
        return var

    def _unpacked(self, placed: Placed, text: str) -> str:
        """A texel of a CUDA surface as float, uint or int."""
        ident, stored, value = placed.ident, placed.binding.stored, placed.binding.value
        assert value is not None
        raw, functions = _raw(value.details["format"], stored)
        if raw == stored:
            return text
        self.body.append(f"{slang_name(raw)} _t_{ident} = {text};")
        if functions is None:
            return f"{slang_name(stored)}(_t_{ident})"
        parts = [
            f"_spy_from_{name}({part})" for name, part in zip(functions, _parts(f"_t_{ident}", functions), strict=True)
        ]
        return _make(stored, parts)

    # --- stores
    def _store_texel(self, placed: Placed, var: str) -> None:
        value = placed.binding.value
        assert value is not None
        same = placed.binding.stored == placed.binding.type_name
        text = var if same else f"{slang_name(placed.binding.stored)}({var})"
        self._write_texel(placed.ident, value.details["format"], placed.binding.stored, self._texel_at(placed), text)

    def _write_texel(self, ident: str, format_name: str, texel: str, at: list[str], text: str) -> None:
        target = f"{ident}[{_vector('int', at)}]"
        raw, functions = _raw(format_name, texel) if self._on_cuda else (texel, None)
        if raw == texel:
            self.body.append(f"{target} = {text};")
        elif functions is None:
            self.body.append(f"{target} = {slang_name(raw)}({text});")
        else:
            self.body.append(f"{slang_name(texel)} _s_{ident} = {text};")
            parts = [
                f"_spy_to_{name}({part})"
                for name, part in zip(functions, _parts(f"_s_{ident}", functions), strict=True)
            ]
            self.body.append(f"{target} = {_make(raw, parts)};")

    # --- results
    def _declare_texture_result(self) -> None:
        texel = textures.texel_of(self.result_format)
        self.aliases.append(f"typealias _spy_R = {slang_name(self.plan.resolved.return_type_name)};")
        self._declare_texture("_out", f"{self.rank}D", self.result_format, texel.name, True)

    def _store_texture_result(self) -> None:
        texel = textures.texel_of(self.result_format)
        at = [f"int(_c{dim})" for dim in reversed(range(self.rank))]
        same = texel.name == self.plan.resolved.return_type_name
        self._write_texel("_out", self.result_format, texel.name, at, "_r" if same else f"{slang_name(texel.name)}(_r)")

    # --- what the library adds
    def _texture_imports(self) -> list[str]:
        """The library of conversions, where a surface holds other components than its texels."""
        if not self._on_cuda:
            return []
        used = [(p.binding.value.details["format"], p.binding.stored) for p in self.plan.placed
                if p.binding.kind == "texel" and p.binding.value is not None and _is_rw(p)]  # fmt: skip
        if self.plan.result_mode == "texture":
            used.append((self.result_format, textures.texel_of(self.result_format).name))
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


__all__ = ["TextureWriter"]
