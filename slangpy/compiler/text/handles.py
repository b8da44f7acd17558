"""Handles of textures in C++ code. Where a program also has textures and samplers in one, Slang 2026.12 makes a struct of a
texture and a sampler of each handle of a texture, which is twice as large as it tells, and calls the texture's methods on it.
Here these structs become the texture."""

from __future__ import annotations

import re

_STRUCT = re.compile(
    rb"struct ((?:RW)?Texture(?:1D|2D|3D|Cube)(?:MS)?(?:Array)?_\d+)\n"
    rb"\{\n    ([^\n;]+?) +(texture_\d+);\n    SamplerState +(sampler_\d+);\n\};\n"
)
_TEXTURE = b"""struct _spy_no_sampler { };
static _spy_no_sampler _spy_nothing;
template<typename Texture>
struct _spy_handle : Texture {
    _spy_handle() = default;
    _spy_handle(const Texture& texture, const _spy_no_sampler&) : Texture(texture) { }
    Texture& _spy_texture() { return *this; }
    const Texture& _spy_texture() const { return *this; }
    _spy_no_sampler& _spy_sampler() const { return _spy_nothing; }
};
"""


def with_texture_handles(code: bytes) -> bytes:
    """The code of a program, without Slang's prelude."""
    if b"    SamplerState sampler_" not in code:
        return code
    structs = list(_STRUCT.finditer(code))
    if not structs:
        return code
    code = _STRUCT.sub(rb"struct \1 : _spy_handle<\2>\n{\n    using _spy_handle<\2>::_spy_handle;\n};\n", code)
    for name, member in ((3, b"_spy_texture()"), (4, b"_spy_sampler()")):
        names = b"|".join(found[name] for found in structs)
        code = re.sub(rb"(\.|->)(?:%s)\b" % names, rb"\1" + member, code)
    at = structs[0].start()
    return code[:at] + _TEXTURE + code[at:]
