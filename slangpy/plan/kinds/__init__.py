"""The kinds of leaves, one file each: how a value that meets a Slang type is stored, loaded, written, and told to native
code. A new kind is a file here and a writer in src/native/call."""

from __future__ import annotations

from . import custom, generator, packed, reference, resource, table, texel, value, view
from .kind import LeafKind as LeafKind

KINDS: dict[str, LeafKind] = {
    kind.name: kind
    for kind in (
        value.KIND, value.POINTER, value.LITERAL, view.KIND, packed.KIND, reference.KIND, generator.KIND, custom.KIND,
        resource.KIND, resource.HANDLE, texel.KIND, table.TABLE, table.SELECT, table.PICK,
    )
}  # fmt: skip
"""By `Binding.kind`."""
