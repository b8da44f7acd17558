"""Changed sources take effect before the next call."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler.modules.reload import reload_changed
from slangpy.run.callbacks import Callbacks

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dep.slang").write_text("float k(float x) { return x * 2; }")
    (tmp_path / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + 1; }")
    return tmp_path


def open_module(device_type: spy.DeviceType, folder: Path) -> spy.Module:
    device = spy.create_device(device_type, include_paths=[folder])
    return spy.Module.load_from_file(device, "main.slang")


def test_edits_change_the_next_call(device_type: spy.DeviceType, folder: Path) -> None:
    module = open_module(device_type, folder)
    f = module.f
    assert f(1.0) == 3.0
    (folder / "dep.slang").write_text("float k(float x) { return x * 3; }")
    assert f(1.0) == 4.0
    (folder / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + 10; }")
    assert f(1.0) == 13.0
    assert module.f(2.0) == 16.0
    module.device.close()


def test_source_that_does_not_compile_keeps_the_old_code(
    device_type: spy.DeviceType, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    module = open_module(device_type, folder)
    assert module.f(1.0) == 3.0
    (folder / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + ; }")
    with caplog.at_level(logging.ERROR, logger="slangpy"):
        assert module.f(1.0) == 3.0
        assert module.f(1.0) == 3.0
    assert len([r for r in caplog.records if "main.slang" in r.getMessage()]) == 1
    (folder / "main.slang").write_text("import dep;\nfloat f(float x) { return k(x) + 100; }")
    assert module.f(1.0) == 102.0
    module.device.close()


def test_callback_and_explicit_check(device_type: spy.DeviceType, folder: Path) -> None:
    module = open_module(device_type, folder)
    device = module.device
    seen: list[object] = []
    number = device.register_shader_hot_reload_callback(seen.append)
    assert module.f(1.0) == 3.0
    (folder / "dep.slang").write_text("float k(float x) { return x * 5; }")
    device.hot_reload_check()
    assert len(seen) == 1
    assert module.f(1.0) == 6.0
    device.unregister_shader_hot_reload_callback(number)
    device.close()


def test_new_functions_and_signatures_appear(device_type: spy.DeviceType, folder: Path) -> None:
    module = open_module(device_type, folder)
    assert module.f(1.0) == 3.0
    (folder / "main.slang").write_text(
        "import dep;\nfloat f(float x, float y) { return k(x) + y; }\nint g() { return 7; }"
    )
    assert module.f(1.0, 2.0) == 4.0
    assert module.g() == 7
    module.device.close()


def test_off_means_off(device_type: spy.DeviceType, folder: Path) -> None:
    device = spy.create_device(device_type, include_paths=[folder], enable_hot_reload=False)
    module = spy.Module.load_from_file(device, "main.slang")
    assert module.f(1.0) == 3.0
    (folder / "dep.slang").write_text("float k(float x) { return x * 3; }")
    assert module.f(1.0) == 3.0
    device.close()


STRUCTS = """
struct Pair { float a; float first() { return a; } }
float total(Pair p) { return p.a; }
"""


def test_structs_follow_an_edit(device_type: spy.DeviceType, tmp_path: Path) -> None:
    path = tmp_path / "structs.slang"
    path.write_text(STRUCTS)
    device = spy.create_device(device_type)
    module = spy.Module.load_from_file(device, path)
    pair, first, generation = module.Pair, module.Pair.first, module.layout.generation
    old = spy.Tensor.zeros(device, (3,), pair)
    assert module.total(old).to_numpy().tolist() == [0, 0, 0]
    assert pair.try_get_child("second") is None
    path.write_text(
        "struct Pair { float b; float a; float first() { return b; } float second() { return a; } }\n"
        "float total(Pair p) { return p.a + p.b; }\nstruct New { float x; }\nint added() { return 7; }"
    )
    assert pair.second({"a": 1.0, "b": 2.0}) == 1.0  # looked up without a call before
    assert first({"a": 1.0, "b": 2.0}) == 2.0 and pair.first({"a": 1.0, "b": 2.0}) == 2.0
    assert list(pair.fields) == ["b", "a"] == list(module.Pair.fields)
    assert module.New(3.0) == {"x": 3.0} and module.added() == 7
    assert module.layout.generation > generation
    for _ in range(2):  # the second time the plan of new tensors is known
        with pytest.raises(spy.ResolveException, match="made for another struct Pair.*make the tensor again"):
            module.total(old)
        new = spy.Tensor.zeros(device, (2,), module.Pair)
        assert module.total(new).to_numpy().tolist() == [0, 0]
    assert old.to_numpy().shape == (3, 4)  # as bytes, of the struct it was made for
    device.close()


def test_fields_are_reflected_once_for_each_code(device_type: spy.DeviceType, tmp_path: Path) -> None:
    (tmp_path / "main.slang").write_text("struct S { float a; }\nfloat f(S s) { return s.a; }")
    module = open_module(device_type, tmp_path)
    type_ = module.layout.find_type_by_name("S")
    assert type_ is not None and list(type_.fields) == ["a"]
    assert type_.fields["a"] is type_.fields["a"]
    type_.fields.clear()  # a dict of the caller's own
    (tmp_path / "main.slang").write_text("struct S { float a; float b; }\nfloat f(S s) { return s.a + s.b; }")
    module.device.hot_reload_check()
    assert list(type_.fields) == ["a", "b"]
    module.device.close()


def test_modules_reload_each_for_itself(
    device_type: spy.DeviceType, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    module = open_module(device_type, folder)
    (folder / "header.h").write_text("#define FACTOR 2\n")
    (folder / "other.slang").write_text('#include "header.h"\nfloat g(float x) { return x * FACTOR; }')
    other = spy.Module.load_from_file(module.device, "other")
    text = spy.Module.load_from_source(module.device, "of_text", "import dep;\nfloat h(float x) { return k(x); }")
    assert (module.f(1.0), other.g(3.0), text.h(1.0)) == (3.0, 6.0, 2.0)
    (folder / "dep.slang").write_text("float k(float x) { return x * ; }")
    with caplog.at_level(logging.ERROR, logger="slangpy"):
        assert (module.f(1.0), text.h(2.0)) == (3.0, 4.0)
        (folder / "header.h").write_text("#define FACTOR 5\n")
        assert (other.g(3.0), module.f(1.0)) == (15.0, 3.0)
    assert len([r for r in caplog.records if "dep.slang" in r.getMessage()]) == 1
    (folder / "dep.slang").write_text("float k(float x) { return x * 7; }")
    assert (module.f(1.0), other.g(3.0), text.h(1.0)) == (8.0, 15.0, 7.0)
    os.remove(folder / "dep.slang")
    assert module.f(2.0) == 15.0
    (folder / "dep.slang").write_text("float k(float x) { return x * 9; }")
    assert module.f(1.0) == 10.0
    module.device.close()


def test_a_new_import_that_does_not_compile_is_watched(device_type: spy.DeviceType, folder: Path) -> None:
    module = open_module(device_type, folder)
    assert module.f(1.0) == 3.0
    (folder / "main.slang").write_text("import dep;\nimport more;\nfloat f(float x) { return k(x) + more(); }")
    assert module.f(1.0) == 3.0  # there is no such file
    (folder / "more.slang").write_text("float more() { return ; ")
    assert module.f(1.0) == 3.0
    (folder / "more.slang").write_text("float more() { return 100; }")
    assert module.f(1.0) == 102.0
    module.device.close()


def test_raw_kernels_and_inspection_see_an_edit(device_type: spy.DeviceType, tmp_path: Path) -> None:
    path = tmp_path / "raw.slang"
    text = "void fill(uint3 dispatchThreadID, RWStructuredBuffer<float> o) { o[dispatchThreadID.x] = 1; }\nint n(int a) { return 3; }"
    path.write_text(text)
    device = spy.create_device(device_type)
    module = spy.Module.load_from_file(device, path)
    out = spy.Tensor.zeros(device, (32,), "float")
    module.fill.dispatch((32, 1, 1), o=out.storage)
    assert out.to_numpy().tolist() == [1] * 32
    assert module.n.debug_build_call_data(1).call(None, 5) == 3
    path.write_text(text.replace("= 1;", "= 2;").replace("int n(int a)", "int n(int b)"))
    module.fill.dispatch((32, 1, 1), o=out.storage)
    assert out.to_numpy().tolist() == [2] * 32
    path.write_text(text.replace("int n(int a)", "int n(int c)"))
    assert module.n.debug_build_call_data(1).debug_only_bindings.args[0].name == "c"
    device.close()


def test_eight_threads_call_while_the_source_is_edited(device_type: spy.DeviceType, tmp_path: Path) -> None:
    path = tmp_path / "busy.slang"
    path.write_text("float f(float x, float y) { return x * 1 + y; }")
    device = spy.create_device(device_type)
    module = spy.Module.load_from_file(device, path)
    assert module.f(1.0, 0.0) == 1.0
    errors: list[BaseException] = []
    seen: set[float] = set()
    stop = threading.Event()

    def work(index: int) -> None:
        x = np.arange(5, dtype=np.float32)
        try:
            while not stop.is_set():
                got = module.f(x, float(index)).to_numpy()
                factor = float(got[1] - got[0])
                np.testing.assert_allclose(got, x * factor + index)
                seen.add(factor)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for factor in range(2, 6):
        (tmp_path / "new").write_text(f"float f(float x, float y) {{ return x * {factor} + y; }}")
        os.replace(tmp_path / "new", path)
        deadline = time.monotonic() + 60
        while factor not in seen and not errors and time.monotonic() < deadline:
            time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert seen <= {1.0, 2.0, 3.0, 4.0, 5.0} and len(seen) >= 4  # 1 may be gone before a thread starts
    assert module.f(1.0, 0.0) == 5.0  # the last edit counts, however many threads saw it
    device.close()


def test_a_reload_before_a_kernel_is_built_stores_nothing_wrong(
    device_type: spy.DeviceType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code is replaced after a call was planned and before its kernel is built: later devices find the new code's kernel."""
    path = tmp_path / "between.slang"
    path.write_text("float f(float x) { return x * 1 + 0.5; }")
    device = spy.create_device(device_type)
    module = spy.Module.load_from_file(device, path)
    build = Callbacks.build_variant

    def late(self: Callbacks, key: int) -> None:
        monkeypatch.setattr(Callbacks, "build_variant", build)
        (tmp_path / "new").write_text("float f(float x) { return x * 2 + 0.5; }")
        os.replace(tmp_path / "new", path)
        assert reload_changed(device)
        build(self, key)

    monkeypatch.setattr(Callbacks, "build_variant", late)
    assert module.f(3.0) == 3.5  # the code that it was planned with
    assert module.f(3.0) == 6.5
    device.close()
    other = spy.create_device(device_type)
    assert spy.Module.load_from_file(other, path).f(3.0) == 6.5
    other.close()
