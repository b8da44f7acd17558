"""The names of tests/tiers.py are those of files, and the compiler of the tests does what they say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import tiers

import slangpy as spy

GCC_ALONE = pytest.mark.skipif(os.environ.get("CXX") != str(tiers.COMPILER), reason="CXX, or all tests, were asked for")


@pytest.mark.null
@pytest.mark.parametrize("names", ["WHOLE", "PLAIN", "OPTIMISED"])
def test_names_are_those_of_files(names: str) -> None:
    assert [name for name in getattr(tiers, names) if not (tiers.HERE / name).exists()] == []


@pytest.mark.null
def test_the_sample_is_of_each_folder() -> None:
    """Files of OPTIMISED lie where all others are plain: elsewhere they would be named for nothing."""
    assert all(tiers._is_in(tiers.HERE / name, tiers.PLAIN) for name in tiers.OPTIMISED)
    assert not tiers.is_optimised(tiers.HERE / "call/bind/test_structs.py")
    assert tiers.is_optimised(tiers.HERE / "call/bind/test_dtypes.py")
    assert tiers.is_optimised(tiers.HERE / "call/shape/test_patches.py")
    assert tiers.is_whole(Path(__file__)) and not tiers.is_whole(tiers.HERE / "call/bind/test_structs.py")


@GCC_ALONE
@pytest.mark.parametrize(("flags", "is_inlined"), [("", True), ("-O0", False)])
def test_flags_come_last(flags: str, is_inlined: bool) -> None:
    """What the CPU device asks for holds, unless a file of the tests has flags of its own."""
    done = subprocess.run(
        [str(tiers.COMPILER), "-O3", "-Q", "--help=optimizers"],
        env={**os.environ, "SLANG_TEST_CXXFLAGS": flags},
        capture_output=True,
        text=True,
        check=True,
    )
    row = next(line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["-finline-functions"])
    assert row[1] == ("[enabled]" if is_inlined else "[disabled]")


@GCC_ALONE
def test_kernels_of_other_flags_have_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file of the sample would take kernels from the cache that others put there."""
    keys = []
    for flags in ("-O0", "-O1"):
        monkeypatch.setenv("SLANG_TEST_CXXFLAGS", flags)
        with spy.Device(type=spy.DeviceType.cpu, enable_hot_reload=False) as device:
            keys.append(spy.compiler.options.device_key(device))
    assert keys[0] != keys[1]
