"""CPU kernels whose compiler read their beginning before the rest was known: the same code, and nothing is left over."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from processes import has_ended

import slangpy as spy
from slangpy.compiler import executable
from slangpy.compiler.expected import _beginning
from slangpy.compiler.library import compile_prelude, shipped_prelude
from slangpy.compiler.text.short import beginning, short_text
from slangpy.config import config

GCC = shutil.which("g++")
pytestmark = pytest.mark.skipif(
    GCC is None or sys.platform != "linux" or shipped_prelude() is None,
    reason="needs GCC on Linux, and the files that an installation makes",
)

SOURCE = """
[Differentiable] float f(float x) { return sin(x) * x; }
float3 g(float3 a, int b) { return a * float(b % 3) + a.zxy; }
float h(float x) { return 2 * x + 1; }
"""
OPTIONS = {"float_mode": "uncontracted", "optimization": 1}

PROGRAM = """
import os, subprocess, sys, time
import slangpy as spy
from slangpy.compiler.expected import expect_kernel

device = spy.Device(type=spy.DeviceType.cpu)
m = spy.Module.load_from_source(device, "m", "float h(float x) { return 2 * x + 1; }")
exec(sys.argv[1])
"""


PATIENT = """
m.h
expect_kernel(device)
def running():
    return subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout.split()
begin = time.monotonic()
while time.monotonic() - begin < 60:
    names = [open(f"/proc/{p}/comm").read() for p in running() if os.path.exists(f"/proc/{p}/comm")]
    if not any("g++" in name for name in names):
        break
    time.sleep(0.5)
else:
    raise AssertionError(f"still there: {names}")
assert m.h(2.0) == 5
"""


class Program:
    """A new process that runs a text, and the starts of the compiler in it: process and arguments."""

    def __init__(self, folder: Path, text: str) -> None:
        self.log, wrapper, self.temporary = folder / "log", folder / "logged-g++", folder / "temporary"
        wrapper.write_text(f'#!/bin/sh\necho $$ "$@" >> {self.log}\nexec {GCC} "$@"\n')
        wrapper.chmod(0o755)
        self.temporary.mkdir(0o700)
        self.log.write_text("")
        variables = {"CXX": str(wrapper), "SLANGPY_DISABLE_CACHE": "1", "TMPDIR": str(self.temporary)}
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, text], env={**os.environ, **variables})

    def end(self) -> tuple[int, list[str]]:
        try:
            return self.process.wait(300), self.log.read_text().splitlines()
        finally:
            self.process.kill()


@pytest.fixture
def start(tmp_path: Path):
    """Runs a text in a new process; gives its status and the starts of the compiler."""
    return lambda text: Program(tmp_path, text).end()


@pytest.fixture(scope="module", autouse=True)
def patient(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program | None]:
    """The program of the last test waits as long as compilers do, and so begins before the first."""
    if all(getattr(item, "originalname", "") != "test_compilers_do_not_wait_for_ever" for item in request.session.items):
        yield None
        return
    program = Program(tmp_path_factory.mktemp("patient"), PATIENT)
    yield program
    program.process.kill()
    program.process.wait()


def kinds(starts: list[str]) -> list[str]:
    """What each start was: begun before, a link of what that made, or a whole compile."""
    return ["begun" if " -c " in line else "link" if "kernel.o" in line else "whole" for line in starts]


def instructions(library: bytes, path: Path) -> list[str]:
    """The instructions of an ELF file by name, with what they call."""
    path.write_bytes(library)
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    code = [line.partition(":\t")[2] for line in listing.splitlines() if ":\t" in line]
    return sorted(f"{line.split()[0]} {''.join(re.findall('<[^+>]+>', line))}" for line in code)


def is_gcc_12() -> bool:
    return subprocess.run([str(GCC), "-dumpversion"], capture_output=True, text=True, check=True).stdout.startswith("12")


@pytest.mark.skipif(GCC is None or not is_gcc_12(), reason="GCC 13 makes other, equally right code of the same text")
def test_the_code_is_that_of_a_whole_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(config, "cache_enabled", False)
    seen: list[tuple[bytes, str]] = []
    build = executable.compile_kernel

    def record(device, text, entry_point, **options):
        seen.append((text, entry_point))
        return build(device, text, entry_point, **options)

    monkeypatch.setattr(executable, "compile_kernel", record)
    device = spy.Device(type=spy.DeviceType.cpu)
    module = spy.Module.load_from_source(device, "ahead", SOURCE)
    x = spy.Tensor.from_numpy(device, np.array([1, 2], np.float32)).with_grads()
    y = module.f(x).with_grads()
    y.grad.copy_from_numpy(np.ones(2, np.float32))
    module.f.bwds(x, _result=y)
    assert np.allclose(x.grad.to_numpy(), np.sin([1, 2]) + np.cos([1, 2]) * [1, 2])
    assert module.g(spy.float3(1, 2, 3), 5) == spy.float3(5, 5, 8)
    assert len(seen) == 3
    for text, entry_point in seen:
        short = short_text(text)
        assert short is not None
        front = with_bounds_of(text)
        head = _beginning(tuple(device.compile_target.defines), front)
        assert head is not None and len(head) > 50_000 and short.startswith(head)
        plain = device.compile(short, entry_point, whole_source=text, **OPTIONS)
        device._expect_compile(head, **OPTIONS)
        begun = device.compile(short, entry_point, whole_source=text, **OPTIONS)
        code = instructions(begun, tmp_path / "begun")
        assert len(code) > 50 and code == instructions(plain, tmp_path / "plain")
    device.close()


def with_bounds_of(text: bytes) -> bytes:
    """What backward kernels have in front of Slang's text."""
    bounds = (executable.Path(spy.__file__).parent / "slang" / "bounds_cpp.h").read_bytes() + b"\n"
    return bounds if bounds in text else b""


def test_shipped_prelude_is_what_slang_writes() -> None:
    assert shipped_prelude() == compile_prelude()


def test_no_conditional_is_left_open_but_guards() -> None:
    text = _beginning((("SPY_BOUNDS_CHECKS", "1"),), b"")
    assert text is not None
    lines = [line.split() for line in text.decode().splitlines() if line.startswith("#")]
    depth, opened = 0, []
    for at, line in enumerate(lines):
        if line[0].startswith("#if"):
            opened.append(line[0] == "#ifndef" and lines[at + 1][:2] == ["#define", line[1]])
        elif line[0] == "#endif":
            opened.pop()
    depth = len(opened)
    assert depth and all(opened)
    assert beginning(b"int f() { return 1; }") is None


def test_first_call_uses_the_compiler_that_waits(start, tmp_path: Path) -> None:
    status, starts = start("assert m.h(2.0) == 5")
    assert status == 0 and kinds(starts) == ["begun", "link"]
    assert " -nostdlib" in starts[1] and " -lm" not in starts[1]
    assert not list((tmp_path / "temporary").iterdir())


def test_what_kernels_use_is_linked(start) -> None:
    text = """
n = spy.Module.load_from_source(device, "n", "float f(float x) { return sin(x); }")
assert abs(n.f(0.5) - 0.479426) < 1e-5
"""
    status, starts = start(text)
    assert status == 0 and kinds(starts)[-1] == "link" and " -lm" in starts[-1] and "whole" not in kinds(starts)


def test_another_setting_is_compiled_as_a_whole(start) -> None:
    text = """
from slangpy.plan import compile as stage
m.h
stage.expect_kernel = lambda *arguments: None
os.environ["CPATH"] = "/nowhere"
assert m.h(2.0) == 5
"""
    status, starts = start(text)
    assert status == 0 and kinds(starts) == ["begun", "whole"]


def test_texts_that_the_compiler_refuses(start) -> None:
    text = """
n = spy.Module.load_from_source(device, "n", 'float f(float x) { __intrinsic_asm "no_such_function($0)"; }')
try:
    n.f(1.0)
except RuntimeError as error:
    assert "no_such_function" in str(error) and "kernel.cpp" in str(error)
else:
    raise AssertionError("it compiled")
"""
    status, starts = start(text)
    assert status == 0 and kinds(starts)[-2:] == ["whole", "whole"]


def test_forked_children_keep_no_compiler_waiting(start) -> None:
    text = """
m.h
expect_kernel(device)
child = os.fork()
if child == 0:
    time.sleep(600)
    os._exit(0)
begin = time.monotonic()
assert m.h(2.0) == 5
os.kill(child, 9)
os.waitpid(child, 0)
assert time.monotonic() - begin < 300
"""
    status, starts = start(text)
    assert status == 0 and "whole" not in kinds(starts)


@pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_nothing_outlives_the_process(start, tmp_path: Path, end: str) -> None:
    _, starts = start(f"m.h\nexpect_kernel(device)\n{end}")
    assert kinds(starts) == ["begun"] and has_ended(int(starts[0].split()[0]))
    assert not list((tmp_path / "temporary").iterdir())


def test_compilers_do_not_wait_for_ever(patient: Program) -> None:
    status, starts = patient.end()
    assert status == 0 and kinds(starts) == ["begun", "begun", "link"]
