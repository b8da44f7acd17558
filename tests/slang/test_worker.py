"""The process that generates code: it gives what this process would, dies alone, and is replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import has_ended

import slangpy
from slangpy import CompilerDiedError, SlangCompileError, _slang
from slangpy.config import config

pytestmark = pytest.mark.skipif(
    not Path(slangpy.__file__ or "").with_name("_slang_worker").exists(), reason="not built"
)

FORMATS = ["cpp", "cuda", "spirv", "hlsl"]
SHARED = "module shared; public float twice(float x) { return 2 * x; }"
KERNEL = """
import shared;
interface IShape { float area(); }
struct Square : IShape { float side; float area() { return side * side; } }
struct Disc : IShape { float radius; float area() { return 3 * radius * radius; } }
[Differentiable] float cube(float x) { return x * x * x; }
[shader("compute")] [numthreads(32, 1, 1)]
void run(uint3 id : SV_DispatchThreadID, uniform uint kind, RWStructuredBuffer<float> o)
{
    var pair = diffPair(o[id.x], 1.0);
    bwd_diff(cube)(pair, twice(1.0));
    float side[1] = { pair.d };
    o[id.x] = createDynamicObject<IShape>(kind, side).area();
}
[shader("compute")] [numthreads(1, 1, 1)]
void generic<T : IShape, let n : int>(RWStructuredBuffer<T> shapes, RWStructuredBuffer<float> o)
{
    for (int i = 0; i < n; ++i) o[i] = shapes[i].area();
}
"""
PLAIN = """
[Differentiable] float same(float x) { return x; }
[shader("compute")] [numthreads(1, 1, 1)] void run(RWStructuredBuffer<float> o)
{
    o[0] = fwd_diff(same)(diffPair(0.0, %s)).d;
}
"""
FORWARD = '[shader("compute")] [numthreads(1, 1, 1)] void run(RWStructuredBuffer<float> o) { o[0] = %s; }'


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**values: Any) -> None:
        for name, value in values.items():
            monkeypatch.setattr(config, f"compile_{name}", value)

    return change


def plain(session: Any, value: str, text: str = PLAIN) -> Any:
    module = session.load_module_from_source(f"m{value}", text % value)
    return session.link([module], [module.entry_point("run")])


@pytest.mark.parametrize("code_format", FORMATS)
def test_the_same_code(new_session: Callable[..., Any], settings: Any, code_format: str, tmp_path: Path) -> None:
    settings(fault="compare")  # fails where the processes differ, or where this one had to do it
    (tmp_path / "shared.slang").write_text(SHARED)
    session = new_session(code_format, include_paths=[str(tmp_path)])
    module = session.load_module_from_source("m", KERNEL)
    shapes = [("IShape", "Square", 1), ("IShape", "Disc", 0)]
    assert session.link([module], [module.entry_point("run")], shapes).code()
    generic = module.entry_point("generic").specialize(
        [slangpy.SpecializationArg("Disc"), slangpy.SpecializationArg("3", False)]
    )
    assert session.link([module], [generic.rename("other")]).code()
    both = session.compose_modules("both", [session.load_module("shared"), module], shapes)
    program = session.link([both], [module.entry_point("run")], None, {"debug_info": "standard"})
    assert program.code()
    assert len({program.content_key(), session.link([both], [generic]).content_key()}) == 2


@pytest.mark.parametrize(
    ("fault", "reason", "text"),
    [
        ("crash", "crash", "crashed .*signal 6"),
        ("hang", "timeout", "COMPILE_TIMEOUT"),
        ("memory", "memory", "memory|MEMORY"),
    ],
)
def test_a_compiler_that_fails_is_replaced(
    new_session: Callable[..., Any], settings: Any, fault: str, reason: str, text: str
) -> None:
    session = new_session("cpp")
    before = plain(session, "1.0").code()
    process = _slang.worker_process()
    settings(fault=fault, timeout=1.0 if fault == "hang" else 100.0, memory=600 << 20)
    program = plain(session, "2.0")
    with pytest.raises(CompilerDiedError, match=text) as caught:
        program.code()
    assert caught.value.reason == reason
    assert not Path(f"/proc/{process}").exists()  # not even as a zombie
    settings(fault="", timeout=600.0)
    assert program.code() and plain(session, "1.0").code() == before
    assert _slang.worker_process() not in (0, process) and session.generation == 0


def test_what_has_no_derivatives_waits_for_no_process(new_session: Callable[..., Any], settings: Any) -> None:
    if _slang.worker_process():
        os.kill(_slang.worker_process(), signal.SIGKILL)
        time.sleep(0.1)
    session = new_session("cpp")
    assert plain(session, "1.0", FORWARD).code()
    assert not is_running(_slang.worker_process())
    assert plain(session, "2.0").code()  # derivatives: there it is
    assert is_running(_slang.worker_process())
    settings(fault="compare")  # fails where this process had to do it
    assert plain(session, "3.0", FORWARD).code()


def is_running(process: int) -> bool:
    """A process that died has no memory, even before it is buried."""
    status = Path(f"/proc/{process}/status")
    return process != 0 and status.exists() and "VmRSS" in status.read_text()


def test_killed_while_idle(new_session: Callable[..., Any], settings: Any) -> None:
    session = new_session("cpp")
    assert plain(session, "1.0").code()
    settings(fault="compare")
    os.kill(_slang.worker_process(), signal.SIGKILL)
    time.sleep(0.1)
    assert plain(session, "2.0").code()


def test_a_large_process_is_replaced(new_session: Callable[..., Any], settings: Any) -> None:
    """What the process holds from the past does not count for the programs of the future."""
    session = new_session("cpp")
    assert b"1.0" in plain(session, "1.0").code()
    first = _slang.worker_process()
    resident = int(Path(f"/proc/{first}/status").read_text().split("VmRSS:")[1].split()[0]) << 10
    settings(fault="compare", memory=3 * resident // 2)  # it holds more than half of that
    assert b"2.0" in plain(session, "2.0").code()
    assert not is_running(first) and not is_running(_slang.worker_process())
    settings(memory=0)
    assert b"3.0" in plain(session, "3.0").code()
    assert is_running(_slang.worker_process()) and _slang.worker_process() != first


def test_errors_are_those_of_this_process(new_session: Callable[..., Any], settings: Any) -> None:
    messages = []
    for in_process in (False, True):
        settings(in_process=in_process)
        session = new_session("cpp")
        session.load_module_from_source("shared", SHARED)
        module = session.load_module_from_source("m", KERNEL)
        with pytest.raises(SlangCompileError, match="no type conformances") as caught:
            session.link([module], [module.entry_point("run")]).code()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_files_of_the_process(new_session: Callable[..., Any]) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        if _slang.worker_process():
            os.kill(_slang.worker_process(), signal.SIGKILL)
            time.sleep(0.1)
        assert plain(new_session("cpp"), "1.0").code()
        files = sorted(os.listdir(f"/proc/{_slang.worker_process()}/fd"))
        assert files == ["0", "1", "2"]
    finally:
        os.close(reader)
        os.close(writer)


START = '''
import os, sys, time, signal
from slangpy import _slang
session = _slang.SlangSession("cpp")
def compile(name):
    m = session.load_module_from_source(name, """
[Differentiable] float same(float x) { return x; }
[shader("compute")] [numthreads(1, 1, 1)]
void run(RWStructuredBuffer<float> o) { o[0] = fwd_diff(same)(diffPair(0.0, 1.0)).d; }
""")
    return session.link([m], [m.entry_point("run")]).code()
compile("first")
'''


def start(script: str, **environment: str) -> subprocess.Popen[str]:
    assert slangpy.__file__
    path = os.pathsep.join([str(Path(slangpy.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(script: str, **environment: str) -> str:
    process = start(script, **environment)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def test_it_dies_with_its_client() -> None:
    process = start(
        START + "print(_slang.worker_process(), flush=True)\nif os.fork(): time.sleep(100)\ntime.sleep(100)"
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.kill()  # the child that it forked goes on and holds what it inherited
    process.wait()
    try:
        assert has_ended(worker)
    finally:
        process.stdout.close()


def test_a_forked_child_has_its_own() -> None:
    output = run(
        START
        + """
parent = _slang.worker_process()
child = os.fork()
code = compile("second")
assert code == compile("third").replace(b"third", b"second")
assert (_slang.worker_process() == parent) == bool(child), (child, parent)
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
compile("fourth")
assert _slang.worker_process() == parent
print("good")
"""
    )
    assert output.split() == ["good"]


CALL = """
import sys
import slangpy as spy
device = spy.create_device(type=spy.DeviceType.cpu)
module = spy.Module.load_from_source(device, "remembers", "float twice(float x) { return %s * x; }")
try:
    print(module.twice(2.0))
except spy.CompilerDiedError as error:
    print(error.source_file, str(error).replace("\\n", " "))
"""


def test_a_death_is_remembered(tmp_path: Path) -> None:
    def call(factor: str = "2", **environment: str) -> str:
        return run(CALL % factor, SLANGPY_CACHE_DIR=str(tmp_path), **environment)

    first = call(SLANGPY_TEST_COMPILE_FAULT="crash")
    kept = Path(first.split()[0])
    try:
        assert "twice" in first and "crashed" in first and first.count(str(kept)) == 2
        source = kept.read_text()
        assert "_spy_main" in source and "float twice(float x) { return 2 * x; }" in source
        again = call()
        assert str(kept) in again and "compiled before" in again
        assert call("3").split() == ["6.0"]
        Path(again.split("delete ")[1].strip()).unlink()
        assert call().split() == ["4.0"]
    finally:
        kept.unlink()


def test_a_higher_limit_tries_again(tmp_path: Path) -> None:
    folder = {"SLANGPY_CACHE_DIR": str(tmp_path)}
    stopped = run(CALL % "2", SLANGPY_TEST_COMPILE_FAULT="hang", SLANGPY_COMPILE_TIMEOUT="0.5", **folder)
    Path(stopped.split()[0]).unlink()
    assert "SLANGPY_COMPILE_TIMEOUT" in stopped
    assert "compiled before" in run(CALL % "2", SLANGPY_COMPILE_TIMEOUT="0.5", **folder)
    assert run(CALL % "2", SLANGPY_COMPILE_TIMEOUT="500", **folder).split() == ["4.0"]


def test_without_a_process(tmp_path: Path) -> None:
    script = START + "print(_slang.worker_process())"
    assert run(script, SLANGPY_COMPILE_IN_PROCESS="1").split() == ["0"]
