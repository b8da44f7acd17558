"""The reference has every public name."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import slangpy

pytest.importorskip("torch")  # some names are torch's own

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.null
DIRECTIVE = re.compile(r"^\.\. (?:auto|py:)(?:class|function|exception|module):: (\w[\w.]*)", re.M)
INTERNAL = {
    "CallSite", "CompileTarget", "CompiledRayTracingPipeline", "CompiledRenderPipeline", "DeviceHandle", "DeviceObject", "FileWatcher",
    "Generator", "GeneratorKind", "Kernel", "Launchable", "Object", "PlainProgramLayout", "PlanLink", "PlanTable", "PreparedLaunch",
    "RawKernel", "SavedCall", "SavedTensors", "TensorBase", "TorchPair", "TorchSlot", "TypeLayout", "UsedParameters", "cuda_compile", "imports_in",
    "is_torch_bridge_using_fallback", "set_torch_bridge_python_fallback", "words_in", "is_experimental_import", "TYPE_CHECKING", "annotations",
}  # fmt: skip
"""Names that the package holds for itself."""


def documented() -> dict[str, object]:
    """What the directives of the pages name, and names in the tables of vectors, by their last part."""
    found: dict[str, object] = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        text = page.read_text("utf-8")
        found.update({name.rpartition(".")[2]: page for name in DIRECTIVE.findall(text)})
        found.update(dict.fromkeys(re.findall(r"`(\w+)`", text), page))
    return found


def exported() -> set[str]:
    """Names that the package imports for its users (`import X as X`), those that it imports late included."""
    tree = ast.parse((ROOT / "slangpy" / "__init__.py").read_text("utf-8"))
    aliases = [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    return {alias.name for alias in aliases if alias.asname == alias.name}


def public() -> set[str]:
    """Names of the package and of shader-slang/slangpy, without modules and what only refuses."""
    listed = (ROOT / "tools" / "public_names.txt").read_text("utf-8").splitlines()
    theirs = {name for line in listed if line.startswith("slangpy: ") for name in line.split()[1:]}
    names = {name for name in {*dir(slangpy), *exported(), *theirs} if not name.startswith("_")} - INTERNAL - slangpy.compat.CLASSES.keys()
    return {name for name in names if not inspect.ismodule(getattr(slangpy, name, None))}


def test_every_public_name_is_in_the_reference() -> None:
    assert not sorted(public() - documented().keys())


def test_directives_name_what_exists() -> None:
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    names = {name for page in pages for name in DIRECTIVE.findall(page.read_text("utf-8")) if "." not in name}
    missing = [name for name in sorted(names) if not hasattr(slangpy, name) and not hasattr(slangpy.math, name)]
    assert not missing
