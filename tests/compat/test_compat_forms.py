"""Forms seen in programs that no whole program here shows, and features that no device announces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.one

FIELDS = """
struct Source { TensorView<float> values; float gain; };
struct Both { Source source; TensorView<float> target; };
void copy_into(int i, Source source, TensorView<float> target) { target[i] = source.gain * source.values[i]; }
void within(int i, Both both) { both.target[i] = both.source.gain + both.source.values[i]; }
"""


@pytest.mark.needs_kernels
@pytest.mark.parametrize("head", ["", "import slangpy;\n"], ids=["alone", "imports"])
def test_views_in_structs(device: spy.Device, head: str) -> None:
    """Fields of dicts, of dicts in dicts, as tensors and as arrays."""
    module = spy.Module.load_from_source(device, f"h6_{len(head)}", head + FIELDS)
    array = np.arange(4, dtype=np.float32)
    for values in (spy.Tensor.from_numpy(device, array), array):
        target = spy.Tensor.zeros(device, (4,), float)
        module.copy_into(spy.grid((4,)), {"values": values, "gain": 3.0}, target)
        assert target.to_numpy().tolist() == [0, 3, 6, 9]
        module.within(spy.grid((4,)), {"source": {"values": values, "gain": 0.5}, "target": target})
        assert target.to_numpy().tolist() == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.needs_kernels
def test_modules_by_names(device: spy.Device, tmp_path: Path) -> None:
    """The names of the arguments; a path below the folder of the program; defines of a session's options."""
    folder = tmp_path / "shaders"
    folder.mkdir()
    (folder / "beside.slang").write_text("import near;\nint one() { return near() - 1; }")
    (folder / "near.slang").write_text("public int near() { return 2; }")
    program = "import slangpy\nfound = slangpy.Module.load_from_file(device=d, path='shaders/beside.slang', options={}, link=[])"
    names: dict[str, Any] = {"__file__": str(tmp_path / "program.py"), "__name__": "program", "d": device}
    exec(program, names)
    assert names["found"].one() == 1
    text = '[shader("compute")] [numthreads(1, 1, 1)] void go(RWStructuredBuffer<int> y) { y[0] = COUNT; }'
    session = device.create_slang_session({"defines": {"COUNT": "5"}})
    module = session.load_module_from_source("defined", text)
    y = device.create_buffer(size=4, struct_size=4, usage=spy.BufferUsage.unordered_access)
    device.create_compute_kernel(session.link_program([module], [module.entry_point("go")])).dispatch([1, 1, 1], y=y)
    assert y.to_numpy().view(np.int32)[0] == 5


