"""slangpy's Slang library, compiled where the package does not hold it precompiled."""

from __future__ import annotations

import pytest

import slangpy as spy
from slangpy.compiler import library
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
        patch.setattr(library, "_shipped", lambda target: None)
        patch.setattr(library, "library_blob", lambda device: None)
        compiled_here = serialized()
    assert compiled_here == as_found
    device.close()
