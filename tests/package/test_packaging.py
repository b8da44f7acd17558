"""The installed package: what it carries, and that what was made at build time still fits."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zlib
from importlib.metadata import files, metadata
from pathlib import Path

import pytest

import slangpy
from slangpy.compiler.library import CORE, PARTS, compiled_name, library_key

FOLDER = Path(slangpy.__file__).parent
LIBRARY = FOLDER / "slang" / "slangpy.slang-module.bin"
installed = pytest.mark.skipif(not LIBRARY.exists(), reason="a development build has no files made at install time")


@installed
def test_files() -> None:
    for name in (
        "py.typed",
        "slang/slangpy.slang",
        "slang/slangpy_core.slang",
        "slang/prelude_cpp.h",
        "slang/prelude_cuda.h",
        "slang/prelude_integers.h",
        "_slang.pyi",
        "_native/__init__.pyi",
    ):
        assert (FOLDER / name).exists(), name


@installed
def test_precompiled_library_fits_its_sources() -> None:
    for target in ("cpp", "hlsl"):
        for part in (CORE, *PARTS):
            head = (LIBRARY.parent / compiled_name(target, part)).read_bytes()[:64]
            assert head.decode("ascii") == library_key(target), (target, part)


@installed
@pytest.mark.parametrize("target", ["cpp", "cuda", "spirv"])
def test_precompiled_library_serves_every_target(target: str) -> None:
    from slangpy import _slang

    folder = str(LIBRARY.parent)
    session = _slang.SlangSession({"format": target}, {"include_paths": [folder], "library_paths": [folder]})
    for name in (CORE, "slangpy"):
        blob = (LIBRARY.parent / compiled_name(target, name)).read_bytes()[64:]
        session.load_module_from_blob(name, f"{folder}/{name}.slang", blob)
    module = session.load_module_from_source(
        "user",
        """
        import slangpy;
        [Differentiable] void square(int i, IDiffTensor<float, 1> x, IWDiffTensor<float, 1> y) { y[i] = x[i] * x[i]; }
        [shader("compute")] [numthreads(1, 1, 1)]
        void run(uint3 at : SV_DispatchThreadID, uniform ITensor<float, 1> x, uniform IWTensor<float, 1> y)
        {
            square(int(at.x), x, y);
            bwd_diff(square)(int(at.x), x, y);
        }
        """,
    )
    assert len(session.link([module], [module.entry_point("run")]).code(0)) > 100


@installed
def test_metadata() -> None:
    data = metadata("slangpy")
    assert data["Version"] == slangpy.__version__
    assert data["Requires-Python"] == ">=3.10"
    names = {Path(str(file)).name for file in files("slangpy") or []}
    assert "LICENSE" in names


@installed
def test_native_libraries_are_small() -> None:
    """Without Slang's own libraries: the machine code as it is, and all files as the wheel packs them."""
    files = [f for f in FOLDER.rglob("*") if f.is_file() and f.parent != FOLDER / "lib" and f.suffix != ".pyc"]
    assert sum(f.stat().st_size for f in files if f.read_bytes()[:4] == b"\x7fELF") < 8_000_000
    assert sum(len(zlib.compress(f.read_bytes(), 6)) for f in files) < 8_500_000


def test_import_loads_neither_torch_nor_the_compiler() -> None:
    code = "import slangpy, sys; print('libslang' in open('/proc/self/maps').read(), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=FOLDER.parent, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_source_folder_says_that_it_is_not_built(tmp_path: Path) -> None:
    """Python started in a clone finds the source before the installed package."""
    source = tmp_path / "slangpy"
    source.mkdir()
    for name in ("__init__.py", "_built.py"):
        shutil.copy(FOLDER / name, source / name)
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, ''); import slangpy"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"ImportError: slangpy was found in {source}" in done.stderr and "pip install ." in done.stderr


@pytest.mark.null
def test_citation_names_this_version() -> None:
    lines = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {slangpy.__version__}" in lines and "license: Apache-2.0" in lines
