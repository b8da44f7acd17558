"""slangpy's Slang library, compiled where the package does not hold it precompiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.base.folders import LIBRARY_PATH
from slangpy.compiler import library
from slangpy.compiler.library import loaded_parts
from slangpy.compiler.modules.files import load_path, load_source
from slangpy.compiler.modules.loaded import new_session


class Kept:
    """A cache in memory, empty at first."""

    def __init__(self) -> None:
        self.blobs: dict[tuple[str, str], bytes] = {}

    def read_bytes(self, kind: str, key: str) -> bytes | None:
        return self.blobs.get((kind, key))

    def write_bytes(self, kind: str, key: str, blob: bytes) -> None:
        self.blobs[kind, key] = blob


KERNEL = "import slangpy; float first(Tensor<float, 1> x) { return x[0]; }"


def test_it_is_the_same_whoever_compiles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache keeps it for all: the program's macros are not in it, and what imports it does not tell them apart."""
    options = {"defines": {"strides": "no name of a field(", "load": "7"}}
    device = spy.Device(type=spy.DeviceType.cpu, compiler_options=options, enable_hot_reload=False)

    def serialized() -> bytes:
        return load_source(new_session(device), "kernel", KERNEL).serialize()

    as_found, kept = serialized(), Kept()
    with monkeypatch.context() as patch:
        patch.setattr(library, "_shipped", lambda target, part: None)
        patch.setattr(library, "cache_of", lambda device, of_options: kept)
        compiled_here = serialized()
    assert compiled_here == as_found
    assert len(kept.blobs) == 2
    device.close()


FAR = "import slangpy.rays; float far(rays::Hit hit) { return hit.t; }"
OWN = "struct Tensor<T> { T value; };\nfloat own(Tensor<float> x) { return x.value; }"


def test_a_part_is_not_compiled_where_it_is_imported(tmp_path: Path) -> None:
    """And it is not loaded where nothing imports it, as in a comment."""
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "deep.slang").write_text("float first(Tensor<float, 1> x) { return x[0]; }")
    (folder / "between.slang").write_text('#include "deep.slang"')
    (tmp_path / "outer.slang").write_text('import "sub/between"; float outer(Tensor<float, 1> x) { return first(x); }')
    (tmp_path / "far.slang").write_text(FAR)
    device = spy.Device(type=spy.DeviceType.cpu, enable_hot_reload=False)
    whole, rays = ["slangpy_core", "slangpy"], ["slangpy_core", "slangpy", "slangpy.rays"]

    def expect(found: list[str], load: Callable[[Any], object]) -> None:
        session = new_session(device)
        assert loaded_parts(session) == ["slangpy_core"]
        load(session)
        assert loaded_parts(session) == found
        assert not set(session.read_files) & {str(LIBRARY_PATH / f"{part.replace('.', '/')}.slang") for part in rays}

    expect(["slangpy_core"], lambda s: load_source(s, "plain", "// import slangpy.rays;\nfloat same(float x) { return x; }"))
    expect(["slangpy_core"], lambda s: load_source(s, "own", OWN))
    expect(whole, lambda s: load_source(s, "named", "float first(Tensor<float, 1> x) { return x[0]; }"))
    expect(whole, lambda s: load_path(s, tmp_path / "outer.slang"))
    expect(whole, lambda s: load_path(s, folder / "between.slang"))
    expect(rays, lambda s: load_source(s, "lit", FAR))
    expect(rays, lambda s: load_path(s, tmp_path / "far.slang"))
    device.close()


def test_gradients_where_only_another_module_imports_the_whole() -> None:
    """The compiler's process is given the parts in the order in which they import each other."""
    device = spy.Device(type=spy.DeviceType.cpu, enable_hot_reload=False)
    with_tensors = spy.Module.load_from_source(device, "with_tensors", "float first(Tensor<float, 1> x) { return x[0]; }")
    text = f"[Differentiable] float square(float x) {{ return x * x; }} // new to the disk cache: {time.time_ns()}"
    module = spy.Module.load_from_source(device, "without", text)
    assert with_tensors._compiled.session is module._compiled.session
    pair = spy.diffPair(3.0)
    module.square.bwds(pair, spy.diffPair(0.0, 1.0))
    assert pair.grad == 6
    device.close()


def test_sources_with_names_of_ours(tmp_path: Path) -> None:
    """They are modules of their own, and ours is still what others import."""
    for name in ("slangpy", "slangpy_core"):
        (tmp_path / f"{name}.slang").write_text("float twice(float x) { return x * 2; }")
    (tmp_path / "user.slang").write_text("import slangpy; float first(Tensor<float, 1> x) { return x[0]; }")
    device = spy.Device(
        type=spy.DeviceType.cpu, compiler_options={"include_paths": [str(tmp_path)]}, enable_hot_reload=False
    )
    for name in ("slangpy", "slangpy_core"):
        module = spy.Module.load_from_file(device, str(tmp_path / f"{name}.slang"))
        assert module.twice(np.array([1, 2], np.float32), _result="numpy").tolist() == [2, 4]
        text = spy.Module.load_from_source(device, name, "float thrice(float x) { return x * 3; }")
        assert text.thrice(2.0) == 6
    user = spy.Module.load_from_file(device, str(tmp_path / "user.slang"))
    assert user.first(np.array([5, 6], np.float32)) == 5
    device.close()


def test_kernels_import_the_whole_with_the_text_of_users() -> None:
    """The module itself has no use for tensors: what stands in front of the kernel has."""
    device = spy.Device(type=spy.DeviceType.cpu, enable_hot_reload=False)
    text = f"float same(float x) {{ return x; }} // new to the disk cache: {time.time_ns()}"
    module = spy.Module.load_from_source(device, "plain", text)
    assert module.same(1.5) == 1.5
    session = module._compiled.session
    assert loaded_parts(session) == ["slangpy_core"]
    function = module.same.prelude("float _first(Tensor<float, 1> x) { return x[0]; }")
    code = function.debug_build_call_data(1.5).code
    assert code.startswith("import slangpy;\nimport plain;\n")
    assert function(2.5) == 2.5
    assert loaded_parts(session) == ["slangpy_core", "slangpy"]
    device.close()
