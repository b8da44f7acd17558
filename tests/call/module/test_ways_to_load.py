"""What a source says is known whichever way its module came: as a file, as text, from the device, linked, imported by what is
imported, or in binary form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler.modules.facts import writes_view

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

FACTS = """
import slangpy;
int2 place()
{
    CallShapeInfo group = CallShapeInfo::get_call_group_id(), thread = CallShapeInfo::get_call_group_thread_id();
    return int2(group.shape[0], thread.shape[0]);
}
groupshared float _parts[4];
float sum_of_four(float x)
{
    _parts[place().y] = x;
    GroupMemoryBarrierWithGroupSync();
    return _parts[0] + _parts[1] + _parts[2] + _parts[3];
}
static int _calls = 0;
int count_calls(int x) { _calls += 1; return _calls * 100 + x; }
float first(Tensor<float, 1> t, float x) { return t[0] + x; }
extern static const int STEPS = 3;
float step(float x) { for (int i = 0; i < STEPS; i++) x += 1; return x; }
[BackwardDerivative(halve_back)] float halve(float x) { return 0.5 * x; }
void halve_back(inout DifferentialPair<float> x, float g) { x = diffPair(x.p, 7 * g); }
[Differentiable] float through(float x) { return halve(x) * 2; }
"""
USER = """
import slangpy;
IMPORT
int2 my_place(float x) { return place(); }
float my_sum(float x) { return sum_of_four(x); }
int my_count(int x) { return count_calls(x); }
float my_step(float x) { return step(x); }
float my_view(TensorView<float> v, float x) { return v[0u] + x; }
/// Adds nothing.
float my_comment(float x) { return x; }
[Differentiable] float my_through(float x) { return through(x); }
"""

Load = Callable[[Any, Path], Any]


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.slang"
    path.write_text(text)
    return path


def from_file(device: Any, folder: Path) -> Any:
    return spy.Module.load_from_file(device, _write(folder, "ways_file", FACTS + USER.replace("IMPORT", "")))


def from_text(device: Any, folder: Path) -> Any:
    return spy.Module.load_from_source(device, "ways_text", FACTS + USER.replace("IMPORT", ""))


def from_device_file(device: Any, folder: Path) -> Any:
    path = _write(folder, "ways_device_file", FACTS + USER.replace("IMPORT", ""))
    return spy.Module(device.load_module(str(path)))


def from_device_text(device: Any, folder: Path) -> Any:
    text = FACTS + USER.replace("IMPORT", "")
    return spy.Module(device.load_module_from_source("ways_device_text", text))


def importing_file(device: Any, folder: Path) -> Any:
    _write(folder, "ways_inner", FACTS)
    _write(folder, "ways_middle", "__exported import ways_inner;")
    return spy.Module.load_from_file(device, _write(folder, "ways_outer", USER.replace("IMPORT", "import ways_middle;")))


def importing_text(device: Any, folder: Path) -> Any:
    kept = spy.Module.load_from_source(device, "ways_imported", FACTS)
    module = spy.Module.load_from_source(device, "ways_importing", USER.replace("IMPORT", "import ways_imported;"))
    module._kept = kept
    return module


def importing_device_text(device: Any, folder: Path) -> Any:
    """Nobody holds the imported module any more."""
    device.load_module_from_source("ways_device_imported", FACTS)
    text = USER.replace("IMPORT", "import ways_device_imported;")
    return spy.Module(device.load_module_from_source("ways_device_importing", text))


def linked_text(device: Any, folder: Path) -> Any:
    """The functions that are called are those of the linked module."""
    other = device.load_module_from_source("ways_linked", FACTS + USER.replace("IMPORT", ""))
    return spy.Module(device.load_module_from_source("ways_linking", "float unused(float x) { return x; }"), link=[other])


def precompiled(device: Any, folder: Path) -> Any:
    """No source is there to be read."""
    compiled = device.load_module_from_source("ways_blob", FACTS + USER.replace("IMPORT", "")).serialize()
    other = spy.Device(type=device.info.type)
    return spy.Module(other.slang_session.load_module_from_blob("ways_blob", "ways_blob.slang-module", compiled))


def precompiled_import(device: Any, folder: Path) -> Any:
    """Slang prefers NAME.slang-module to NAME.slang."""
    compiled = device.load_module_from_source("ways_compiled", FACTS).serialize()
    (folder / "ways_compiled.slang-module").write_bytes(compiled)
    path = _write(folder, "ways_of_compiled", USER.replace("IMPORT", "import ways_compiled;"))
    return spy.Module.load_from_file(spy.Device(type=device.info.type), path)


WAYS: list[Load] = [
    from_file, from_text, from_device_file, from_device_text, importing_file, importing_text, importing_device_text,
    linked_text, precompiled, precompiled_import,
]  # fmt: skip


@cache
def _loaded(way: Load, device: Any, folder: Path) -> Any:
    return way(device, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ways")


@pytest.fixture(params=WAYS, ids=[way.__name__ for way in WAYS])
def module(request: pytest.FixtureRequest, device: Any, folder: Path) -> Any:
    return _loaded(request.param, device, folder)


def test_functions_know_their_place(module: Any) -> None:
    found = module.my_place.call_group_shape((4,))(np.zeros(8, np.float32), _result="numpy")
    assert found.tolist() == [[i // 4, i % 4] for i in range(8)]


def test_groups_share_memory(module: Any) -> None:
    x = np.arange(12, dtype=np.float32) ** 2
    found = module.my_sum.call_group_shape((4,))(x, _result="numpy")
    np.testing.assert_array_equal(found, x.reshape(3, 4).sum(1).repeat(4))


def test_variables_of_a_thread_begin_anew(module: Any) -> None:
    x = np.arange(5000, dtype=np.int32)
    np.testing.assert_array_equal(module.my_count(x, _result="numpy"), x + 100)


def test_views_that_are_only_read_are_inputs(request: pytest.FixtureRequest, module: Any) -> None:
    hidden = request.node.callspec.params["module"] in (precompiled, precompiled_import)
    assert writes_view(module, "my_view", 0, ()) == hidden


def test_comments_are_shown(request: pytest.FixtureRequest, module: Any) -> None:
    if request.node.callspec.params["module"] not in (precompiled, linked_text):
        assert "Adds nothing." in module.my_comment.__doc__


def test_constants_are_declared(request: pytest.FixtureRequest, module: Any) -> None:
    if request.node.callspec.params["module"] is precompiled_import:
        with pytest.raises(ValueError, match="binary form"):
            module.my_step.constants({"STEPS": 5})(1.0)
        return
    assert module.my_step.constants({"STEPS": 5})(1.0) == 6.0


def test_lacking_forward_derivatives_are_told(request: pytest.FixtureRequest, module: Any) -> None:
    """Slang takes the tangent of what is called for zero, so the sources are searched for it."""
    if request.node.callspec.params["module"] in (precompiled, precompiled_import):
        with pytest.warns(RuntimeWarning, match="binary form"):
            module.my_through.fwds(spy.diffPair(1.0, 1.0))
        return
    with pytest.raises(spy.errors.ResolveException, match="halve"):
        module.my_through.fwds(spy.diffPair(1.0, 1.0))
