"""The CUDA programs of the other tests compile with NVRTC, without a GPU, wherever it is installed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from slangpy import _native
from slangpy.pytorch.kernels.devices import cuda_layout, cuda_options, cuda_text
from slangpy.testing import nvrtc_available

from . import test_arguments, test_blocks, test_host_functions, test_loading, test_programs, test_square, test_views

pytestmark = pytest.mark.skipif(not nvrtc_available(), reason="NVRTC is not installed")
SOURCES = {
    "square": test_square.SOURCE,
    "layout": test_arguments.LAYOUT,
    "structs": test_arguments.STRUCTS,
    "scalars": test_arguments.SCALARS,
    "blocks": test_blocks.SOURCE,
    "atomics": test_blocks.ATOMICS,
    "host": test_host_functions.SQUARE,
    "host_values": test_host_functions.VALUES,
    "box": test_programs.BOX,
    "methods": test_loading.METHODS,
    "wide": test_loading.WIDE,
    "views": test_views.SOURCE,
}


@pytest.mark.parametrize("name", SOURCES)
def test_compiles(load: Any, name: str) -> None:
    programs = load(SOURCES[name])._programs
    chosen = [(k, e) for k in programs.record.kernels for e in k.emitted if not k.trouble]
    options = cuda_options(programs.options)
    assert "-I" + programs.options.folder in options["downstream_args"]
    text = cuda_text(programs.record, [e.symbol for _, e in chosen])
    assert b"(uint64_t)strides[0] * " in text
    code = _native.cuda_compile(text, chosen[0][1].symbol, "sm_80", name)
    assert code[:4] == b"\x7fELF"
    for kernel, emitted in chosen:
        assert emitted.symbol.encode() in code
        assert cuda_layout(kernel, emitted).scopes[1]["size"] == kernel.size
