"""Changed sources of modules that a session loaded, not `slangpy.Module`: raw kernels, pipelines, wrapped modules."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

RAW = """import dep;
[shader("compute")] [numthreads(1, 1, 1)] void go(RWStructuredBuffer<int> o%s) { o[0] = k(%s); }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dep.slang").write_text("int k(int x) { return x * 2; }")
    (tmp_path / "raw.slang").write_text(RAW % ("", "10"))
    (tmp_path / "calls.slang").write_text("import dep;\nint f(int x) { return k(x); }")
    return tmp_path


@pytest.fixture
def opened(device_type: spy.DeviceType, folder: Path) -> Any:
    device = spy.create_device(device_type, include_paths=[folder])
    yield device
    device.close()


def output(device: Any) -> Any:
    return device.create_buffer(
        size=4, struct_size=4, usage=spy.BufferUsage.unordered_access | spy.BufferUsage.copy_source
    )


def value(buffer: Any) -> int:
    return int(buffer.to_numpy().view(np.int32)[0])


def linked(session: Any) -> Any:
    module = session.load_module("raw.slang")
    return session.link_program([module], [module.entry_point("go")])


@pytest.mark.parametrize("own_session", [False, True])
def test_kernels_follow_an_edit(opened: Any, folder: Path, own_session: bool) -> None:
    options = {"include_paths": [folder]}
    session = opened.create_slang_session(compiler_options=options) if own_session else opened
    kernel = opened.create_compute_kernel(linked(session))
    o = output(opened)
    kernel.dispatch(1, o=o)
    assert value(o) == 20
    (folder / "dep.slang").write_text("int k(int x) { return x * 3; }")
    kernel.dispatch(1, o=o)
    assert value(o) == 30
    (folder / "raw.slang").write_text(RAW % (", uniform int z", "z"))
    kernel.dispatch(1, o=o, z=7)
    assert value(o) == 21


def test_pipelines_follow_an_edit(opened: Any, folder: Path) -> None:
    pipeline = opened.create_compute_pipeline(linked(opened))
    root, o = opened.create_root_shader_object(pipeline.program), output(opened)

    def run(root: Any = None) -> int:
        encoder = opened.create_command_encoder()
        with encoder.begin_compute_pass() as compute:
            bound = compute.bind_pipeline(pipeline) if root is None else compute.bind_pipeline(pipeline, root)
            spy.ShaderCursor(bound).find_entry_point(0).o = o
            compute.dispatch([1, 1, 1])
        opened.submit_command_buffer(encoder.finish())
        return value(o)

    assert run() == 20
    (folder / "dep.slang").write_text("int k(int x) { return x * 4; }")
    assert run() == 40
    (folder / "dep.slang").write_text("int k(int x) { return x * 5; }")
    assert run(root) == 50  # made before, and laid out alike
    (folder / "raw.slang").write_text(RAW % (", uniform int z", "z"))
    with pytest.raises(ValueError, match="root object was made for another program than go"):
        run(root)


def test_edit_before_the_kernel_is_made(opened: Any, folder: Path) -> None:
    program = linked(opened)
    (folder / "dep.slang").write_text("int k(int x) { return x * 6; }")
    o = output(opened)
    opened.create_compute_kernel(program).dispatch(1, o=o)
    assert value(o) == 60


def test_check_reloads_what_no_kernel_uses(opened: Any, folder: Path) -> None:
    seen: list[object] = []
    opened.register_shader_hot_reload_callback(seen.append)
    module = opened.load_module("raw.slang")
    old = module.layout.find_function_by_name("k")
    (folder / "dep.slang").write_text("int k(int x) { return x * 9; }")
    opened.hot_reload_check()
    assert len(seen) == 1 and not old.is_valid
    assert module.layout.find_function_by_name("k").is_valid
    opened.hot_reload_check()
    assert len(seen) == 1


def test_source_that_does_not_compile(opened: Any, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    kernel, o = opened.create_compute_kernel(linked(opened)), output(opened)
    (folder / "raw.slang").write_text("import more;\n" + RAW % ("", "more()"))
    with caplog.at_level(logging.ERROR, logger="slangpy"):
        for _ in range(2):
            kernel.dispatch(1, o=o)
            assert value(o) == 20
        (folder / "more.slang").write_text("int more() { return ; ")
        kernel.dispatch(1, o=o)
        assert value(o) == 20
    assert len([r for r in caplog.records if "hot reload failed" in r.getMessage()]) == 2  # no file; then its error
    (folder / "more.slang").write_text("int more() { return 4; }")
    kernel.dispatch(1, o=o)
    assert value(o) == 8


def test_wrapped_modules_follow_an_edit(opened: Any, folder: Path) -> None:
    module = spy.Module(opened.load_module("calls.slang"))
    assert module.f(np.array([1, 2], np.int32), _result="numpy").tolist() == [2, 4]
    (folder / "calls.slang").write_text("import dep;\nint f(int x, int y) { return k(x) + y; }\nint g() { return 3; }")
    # the kernel of the call before would not compile with this
    assert module.f(np.array([1, 2], np.int32), 5, _result="numpy").tolist() == [7, 9] and module.g() == 3


def test_modules_linked_with_a_session_s_module(opened: Any, folder: Path) -> None:
    (folder / "part.slang").write_text("export int part() { return 5; }")
    part = opened.load_module("part.slang")
    (folder / "whole.slang").write_text("extern int part();\nint f(int x) { return x + part(); }")
    module = spy.Module.load_from_file(opened, "whole.slang", link=[part])
    assert module.f(1) == 6
    (folder / "whole.slang").write_text("extern int part();\nint f(int x) { return x * part(); }")
    assert module.f(3) == 15
    (folder / "whole.slang").write_text("extern int part();\nint f(int x) { return x * ; }")
    assert module.f(4) == 20
    (folder / "part.slang").write_text("export int part() { return 50; }")
    assert module.f(4) == 20  # the session keeps all of its code
    (folder / "whole.slang").write_text("extern int part();\nint f(int x) { return x * part(); }")
    assert module.f(3) == 150


def test_raw_kernels_of_a_module(opened: Any, folder: Path) -> None:
    (folder / "both.slang").write_text(RAW % ("", "10") + "int f(int x) { return k(x); }")
    module = spy.Module.load_from_file(opened, "both.slang")
    code = module.device_module
    kernel = opened.create_compute_kernel(opened.link_program([code], [code.entry_point("go")]))
    o = output(opened)
    kernel.dispatch(1, o=o)
    assert value(o) == 20 and module.f(1) == 2
    (folder / "dep.slang").write_text("int k(int x) { return x * 3; }")
    assert module.f(1) == 3
    kernel.dispatch(1, o=o)
    assert value(o) == 30
    (folder / "both.slang").write_text(RAW % (", uniform int z", "z") + "int f(int x, int y) { return k(x) + y; }")
    kernel.dispatch(1, o=o, z=7)
    assert value(o) == 21 and module.f(1, 1) == 4
    composed = opened.compose_modules("whole", [module.device_module])
    assert [entry.name for entry in composed.entry_points] == ["go"]


def test_no_watching_without_hot_reload(device_type: spy.DeviceType, folder: Path) -> None:
    device = spy.create_device(device_type, include_paths=[folder], enable_hot_reload=False)
    kernel, o = device.create_compute_kernel(linked(device)), output(device)
    kernel.dispatch(1, o=o)
    (folder / "dep.slang").write_text("int k(int x) { return x * 3; }")
    kernel.dispatch(1, o=o)
    assert value(o) == 20
    device.hot_reload_check()  # asked for by name
    kernel.dispatch(1, o=o)
    assert value(o) == 30
    device.close()


def test_delay_must_be_a_number(opened: Any) -> None:
    with pytest.raises(TypeError, match="delay_ms.*got 'soon'"):
        opened.set_hot_reload_delay("soon")
    with pytest.raises(ValueError, match="delay_ms.*got nan"):
        opened.set_hot_reload_delay(float("nan"))
