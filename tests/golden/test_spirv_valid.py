"""Kept kernels as SPIR-V, looked at by spirv-val. What is done to the code for the device at hand is checked by Vulkan's
validation layer, with which the device tests run."""

from __future__ import annotations

import re
import shutil
import subprocess
from array import array
from pathlib import Path

import pytest

from slangpy import _slang
from slangpy.base.folders import LIBRARY_PATH

from .cases import CAPABILITIES, FOLDER, KERNELS
from .code_only import CodeOnly

VALIDATOR = shutil.which("spirv-val")
NAMES = ["elements", "structs", "texture", "texels", "bfloat16", "groups", "tensor_atomic", "bwds_broadcast", "bwds_struct"]

pytestmark = pytest.mark.skipif(VALIDATOR is None, reason="spirv-val is not installed (package spirv-tools)")


def without_language(code: bytes) -> bytes:
    """Debian's spirv-val knows no Slang (11) as the language of OpSource (3); the Vulkan device takes it out as well."""
    words = array("I", code)
    at = 5
    while at < len(words):
        if words[at] & 0xFFFF == 3:
            words[at + 1] = 0
        at += words[at] >> 16
    return words.tobytes()


def valid(code: bytes, folder: Path) -> str:
    """What spirv-val objects to."""
    path = folder / "kernel.spv"
    path.write_bytes(code)
    command = [str(VALIDATOR), "--target-env", "vulkan1.2", "--scalar-block-layout", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr + done.stdout or "failed"


@pytest.fixture(scope="module")
def session() -> _slang.SlangSession:
    """As devices make it: compiler/options.py says why the optimization is high."""
    target = vars(CodeOnly("spirv", CAPABILITIES["spirv"]).compile_target)
    folders = [str(LIBRARY_PATH), str(FOLDER)]
    options = {"include_paths": folders, "optimization": "high", "disable_warnings": ["41012"]}
    return _slang.SlangSession(target, options)


@pytest.mark.parametrize("name", NAMES)
def test_kernel_is_valid(name: str, session: _slang.SlangSession, tmp_path: Path) -> None:
    texts = re.split(rf"^// {name} for spirv.*$", (KERNELS / "spirv" / f"{name}.slang").read_text("utf-8"), flags=re.M)
    module = session.load_module_from_source(f"valid_{name}", texts[1])
    code = without_language(session.link([module], [module.entry_point("_spy_main")]).code(0))
    assert valid(code, tmp_path) == ""
    words = bytearray(code)
    words[-4:] = b"\xff\xff\x01\x00"  # an instruction that there is not, in place of the last
    assert valid(bytes(words), tmp_path) != ""
