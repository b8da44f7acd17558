"""`%load_ext slangpy` and `%%slang` in IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import slangpy as spy

interactive = pytest.importorskip("IPython.core.interactiveshell")


@pytest.fixture
def shell() -> Iterator[Any]:
    shell = interactive.InteractiveShell()
    shell.run_line_magic("load_ext", "slangpy")
    yield shell
    shell.run_line_magic("unload_ext", "slangpy")
    shell.history_manager.end_session()


def run(shell: Any, cell: str) -> Any:
    result = shell.run_cell(cell)
    result.raise_error()
    return result.result


@pytest.mark.needs_kernels
def test_a_cell_is_a_module(shell: Any, device: spy.Device) -> None:
    shell.user_ns["mine"] = device
    run(shell, "%%slang shader --device mine\nfloat twice(float x) { return 2 * x; }")
    assert shell.user_ns["shader"].device is device
    assert run(shell, "shader.twice(3.0)") == 6.0
    run(shell, "%%slang shader --device mine\nfloat twice(float x) { return x + x + 1; }")
    assert run(shell, "shader.twice(3.0)") == 7.0
    run(shell, "%%slang user --device mine --convert any\nimport shader;\nfloat four(float x) { return twice(twice(x)); }")
    shell.user_ns["values"] = np.arange(3.0)
    assert run(shell, "user.four(values, _result='numpy')").tolist() == [3, 7, 11]


@pytest.mark.needs_kernels
def test_cells_that_import_another_are_told_of_its_new_code(shell: Any, device: spy.Device) -> None:
    shell.user_ns["mine"] = device
    run(shell, "%%slang base --device mine\nfloat twice(float x) { return 2 * x; }")
    run(shell, "%%slang user --device mine\nimport base;\nfloat four(float x) { return twice(twice(x)); }")
    run(shell, "%%slang other --device mine\nfloat f(float x) { return x; }")
    run(shell, "%%slang base --device mine\nfloat twice(float x) { return 2 * x; }")  # the same
    with pytest.warns(spy.errors.SlangWarning, match="%%slang base: user imported its earlier code"):
        run(shell, "%%slang base --device mine\nfloat twice(float x) { return 3 * x; }")
    assert run(shell, "user.four(1.0)") == 4
    run(shell, "%%slang user --device mine\nimport base;\nfloat four(float x) { return twice(twice(x)); }")
    assert run(shell, "user.four(1.0)") == 9


def test_the_newest_device_is_taken(shell: Any) -> None:
    with spy.Device(type=spy.DeviceType.null) as device:
        run(shell, "%%slang shader\nfloat f(float x) { return x; }")
        assert shell.user_ns["shader"].device is device


def test_errors_count_the_lines_of_the_cell(shell: Any, device: spy.Device) -> None:
    shell.user_ns["mine"] = device
    run(shell, "%%slang shader --device mine\nfloat f(float x) { return x; }")
    with pytest.raises(spy.SlangCompileError, match="wrong_cell:3"):
        run(shell, "%%slang wrong_cell --device mine\nfloat f(float x) { return x; }\nfloat g(float x) { return y; }")
    assert "wrong_cell" not in shell.user_ns
    for line, text in (
        ("", "required: name.*usage: %%slang NAME"), ("9", "'9' is not a valid name"), ("a --device nothing", "'nothing' is not a device"),
        ("a --convert all", "invalid choice"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            run(shell, f"%%slang {line}\nfloat f(float x) {{ return x; }}")


@pytest.mark.needs_kernels
def test_tensors_are_shown(shell: Any, device: spy.Device) -> None:
    shell.user_ns["image"] = spy.Tensor.from_numpy(
        device, np.random.default_rng(1).random((16, 16, 3), np.float32), target_slang_dtype="float3"
    )
    data, _ = shell.display_formatter.format(shell.user_ns["image"])
    assert data["text/plain"].startswith("Tensor(")
    assert "image/png" in data and "text/html" not in data


def test_names_are_completed(shell: Any, device: spy.Device) -> None:
    shell.user_ns["mine"] = device
    run(shell, "%%slang shader --device mine\nfloat twice(float x) { return 2 * x; }\nstruct P\n{\n float r; float area() { return r; }\n}")
    shell.Completer.use_jedi = False
    for text, expected in (("shader.tw", "twice"), ("shader.P.ar", "area"), ("shader.", "P")):
        found = shell.complete(None, text, len(text))[1]
        assert any(name.endswith(f".{expected}") for name in found), (text, found)
