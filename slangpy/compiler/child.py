"""A Python process that answers requests one after the other, and may die of one."""

from __future__ import annotations

import atexit
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..base.locks import new_lock

IDLE = 15.0
"""Seconds without a request after which the process ends by itself."""
_HEAD = struct.Struct("<8sQ")
"""What stands before each request and answer: a mark, and the number of bytes that follow."""
_MARK = b"slangpy:"


class ChildDiedError(Exception):
    """The process ended before it answered. code: as subprocess gives it; output: its stderr."""

    def __init__(self, code: int, output: str) -> None:
        super().__init__(f"the process ended with {code}")
        self.code, self.output = code, output


class Child:
    """Runs a text of Python, which calls serve(), in a process with the import path of this one. It is started by a request,
    and again where the last one ended, where this process was forked, or where its environment or import path is another."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = new_lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: Any = None
        self._made_for: Any = None
        atexit.register(self.close)

    def ask(self, request: bytes, environment: dict[str, str], timeout: float) -> bytes:
        """The answer to a request. Raises ChildDiedError, TimeoutError after `timeout` seconds, OSError where no process can
        be started; whatever ends the wait ends the process, too."""
        with self._lock:
            was_running = self._is_usable(environment)
            try:
                return self._exchange(request, environment, timeout)
            except ChildDiedError as error:
                if not was_running or error.code:
                    raise
            return self._exchange(request, environment, timeout)  # it had just ended, because nobody had asked for long

    def close(self) -> None:
        """Ends the process, if there is one of this process."""
        process: Any = self._process
        self._process = None
        if process is None or self._made_for[0] != os.getpid():
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, self._errors):
            with suppress(BrokenPipeError):  # of what was not sent yet
                stream.close()

    def _is_usable(self, environment: dict[str, str]) -> bool:
        made_for = (os.getpid(), list(sys.path), environment)
        return self._process is not None and self._made_for == made_for and self._process.poll() is None

    def _exchange(self, request: bytes, environment: dict[str, str], timeout: float) -> bytes:
        if not self._is_usable(environment):
            self.close()
            self._start(environment)
        process = self._process
        assert process is not None
        self._errors.seek(0)
        self._errors.truncate()
        answer: list[bytes] = []
        waiting = threading.Thread(target=_send_and_read, args=(process, request, answer), daemon=True)
        try:
            waiting.start()
            waiting.join(timeout)
            if answer:
                return answer[0]
            if waiting.is_alive():
                raise TimeoutError
            raise ChildDiedError(_status(process), self._output())
        finally:
            if not answer:  # it died, took too long, or Ctrl-C was pressed
                self.close()
                waiting.join()

    def _start(self, environment: dict[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, close() does it
        self._made_for = (os.getpid(), list(sys.path), environment)
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:] = {list(sys.path)!r}; {self._text}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )

    def _output(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")


def _status(process: subprocess.Popen[bytes]) -> int:
    """Of a process that did not answer; 0 also where it lives on."""
    try:
        return process.wait(5)
    except subprocess.TimeoutExpired:
        return 0


def _send_and_read(process: subprocess.Popen[bytes], request: bytes, answer: list[bytes]) -> None:
    """Adds what the process answers to `answer`; nothing where it ends, which its status explains."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(_HEAD.pack(_MARK, len(request)) + request)
        process.stdin.flush()
        mark, size = _HEAD.unpack(process.stdout.read(_HEAD.size))
        data = process.stdout.read(size) if mark == _MARK else b""
    except (OSError, ValueError, struct.error):  # a pipe that is broken, closed, or has ended
        return
    if mark == _MARK and len(data) == size:
        answer.append(data)


def serve(answer_to: Callable[[bytes], bytes]) -> None:
    """What the process does: it answers requests until there are none for IDLE seconds, or its starter has gone."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed does not go there
    while os.name == "nt" or select.select([requests], [], [], IDLE)[0]:  # Windows cannot wait for pipes
        head = requests.read(_HEAD.size)
        if len(head) < _HEAD.size:
            break
        data = answer_to(requests.read(_HEAD.unpack(head)[1]))
        answers.write(_HEAD.pack(_MARK, len(data)) + data)
        answers.flush()
    os._exit(0)


__all__ = ["IDLE", "Child", "ChildDiedError", "serve"]
