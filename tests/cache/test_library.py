"""slangpy's Slang library, compiled where the package does not hold it precompiled."""

from __future__ import annotations

import pytest

import slangpy as spy
from slangpy.compiler import library
from slangpy.compiler.modules.files import load_source
from slangpy.compiler.modules.loaded import new_session

KERNEL = "import slangpy; float first(Tensor<float, 1> x) { return x[0]; }"


def test_it_is_the_same_whoever_compiles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache keeps it for all: the program's macros are not in it, and what imports it does not tell them apart."""
    options = {"defines": {"strides": "no name of a field(", "load": "7"}}
    device = spy.Device(type=spy.DeviceType.cpu, compiler_options=options, enable_hot_reload=False)

    def serialized() -> bytes:
        return new_session(device).load_module_from_source("kernel", KERNEL).serialize()

    as_found = serialized()
    with monkeypatch.context() as patch:
        patch.setattr(library, "_shipped", lambda target, part="": None)
        patch.setattr(library, "library_blob", lambda device, part="": None)
        compiled_here = serialized()
    assert compiled_here == as_found
    device.close()


def test_a_part_is_not_compiled_where_it_is_imported() -> None:
    """And it is not loaded where nothing imports it, as in a comment."""
    device = spy.Device(type=spy.DeviceType.cpu, enable_hot_reload=False)
    session = new_session(device)
    load_source(session, "plain", "// import slangpy.rays;\nfloat same(float x) { return x; }")
    assert session._library_parts == {"slangpy"}
    load_source(session, "lit", "import slangpy.rays; float far(rays::Hit hit) { return hit.t; }")
    assert session._library_parts == {"slangpy", "slangpy.rays"}
    assert not [path for path in session.read_files if path.endswith("slangpy/rays.slang")]
    device.close()
