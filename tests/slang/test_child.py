"""The process that compiles second derivatives: one for many requests, and another after one that it died of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from processes import has_ended

from slangpy.compiler.child import Child, ChildDiedError

TEXT = """
import os, time
from slangpy.compiler import child
child.IDLE = {idle}
def answer(request):
    exec(request)
    return str(os.getpid()).encode()
child.serve(answer)
"""
ENVIRONMENT = dict(os.environ)


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child(TEXT.format(idle=60))
    yield made
    made.close()


def ask(child: Child, text: str = "", timeout: float = 60, **variables: str) -> int:
    return int(child.ask(text.encode(), {**ENVIRONMENT, **variables}, timeout))


def test_one_process_answers_all(child: Child) -> None:
    first = ask(child)
    assert first != os.getpid()
    assert [ask(child, "x = 1" + " " * size) for size in (0, 1, 31, 1_000_003)] == [first] * 4


def test_what_is_printed_is_no_answer(child: Child) -> None:
    first = ask(child, "print('to stdout'); os.write(1, b'x' * 100)")
    assert ask(child) == first


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_it_dies(child: Child) -> None:
    first = ask(child)
    with pytest.raises(ChildDiedError) as died:
        ask(child, "os.kill(os.getpid(), 11)")
    assert died.value.code == -signal.SIGSEGV
    second = ask(child)
    with pytest.raises(ChildDiedError) as died:
        ask(child, "undefined_name")
    assert died.value.code == 1 and "NameError" in died.value.output
    assert len({first, second, ask(child)}) == 3


def test_it_takes_too_long(child: Child) -> None:
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        ask(child, "time.sleep(100)", timeout=2)
    assert time.monotonic() - begin < 30
    assert ask(child) == ask(child)


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot wait for pipes")
def test_it_ends_when_idle_and_comes_back() -> None:
    child = Child(TEXT.format(idle=0.1))
    first = ask(child)
    process = child._process
    assert process is not None and process.wait(60) == 0
    assert ask(child) != first
    child.close()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_it_ends_while_it_is_asked(child: Child) -> None:
    """As it does when the request comes in the moment in which it gives up waiting."""
    first = ask(child)
    assert child._process is not None
    os.kill(first, signal.SIGSTOP)
    threading.Timer(0.5, lambda: os.kill(first, signal.SIGKILL)).start()
    with pytest.raises(ChildDiedError):  # killed: not asked again, for that may be what the request does to it
        ask(child, " " * 1_000_000)  # more than a pipe holds
    marked = Child(TEXT.format(idle=60) + "\n")
    assert ask(marked) != ask(child)
    with pytest.raises(ChildDiedError, match="ended with 0"):
        ask(marked, "os._exit(0)")  # asked twice
    marked.close()


def test_environment_and_import_path(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask(child)
    second = ask(child, "assert os.environ['OF_CHILD'] == '1'", OF_CHILD="1")
    monkeypatch.setattr(sys, "path", [*sys.path, "/nowhere"])
    third = ask(child, "import sys; assert sys.path[-1] == '/nowhere'", OF_CHILD="1")
    assert len({first, second, third}) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_fork_has_its_own(child: Child) -> None:
    first = ask(child)
    read, write = os.pipe()
    fork = os.fork()
    if not fork:
        os.write(write, str(ask(child)).encode())
        os._exit(0)
    os.waitpid(fork, 0)
    assert int(os.read(read, 100)) != first
    assert ask(child) == first


def test_no_python(monkeypatch: pytest.MonkeyPatch, child: Child) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(OSError, match="nowhere"):
        ask(child)
    if sys.platform != "win32":
        monkeypatch.setattr(sys, "executable", "/bin/echo")
        with pytest.raises(ChildDiedError, match="ended with 0"):
            ask(child)


def test_threads_take_turns(child: Child) -> None:
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(ask(child, "time.sleep(0.05)"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8 and len(set(seen)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_it_ends_with_its_starter() -> None:
    program = (
        f"from slangpy.compiler.child import Child; import os; made = Child({TEXT.format(idle=60)!r})\n"
        "print(made.ask(b'', dict(os.environ), 60).decode(), flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert has_ended(int(done.stdout))
