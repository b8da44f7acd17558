"""A process that compiles and runs cases, so that a compiler that dies or hangs ends nothing else."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .family import Case


@dataclass
class Answer:
    failures: list[dict[str, Any]]  # those of failure.Failure, also for a crash or a hang
    counts: dict[str, int] = field(default_factory=dict)  # those of the case


def serve(pipe: Connection, module: str) -> None:
    """The process: takes (number of the case, case, device, optimized, stages), sends stages as they begin and then failures.
    `module` has what the family of its cases runs."""
    # Here, not around the start of the process: threads start several at once, and each would change what the others hand on.
    os.environ["SLANGPY_DISABLE_CACHE"] = "1"  # no kernel is met twice
    family = importlib.import_module(module)  # only the processes that run kernels need torch's threads and the package
    family.begin()
    runners: dict[tuple[str, bool], Any] = {}
    wanted: dict[int, tuple[Any, Any]] = {}  # of the last case alone
    while True:
        try:
            number, case, device, optimized, stages = pipe.recv()
        except EOFError:
            return
        try:
            if number not in wanted:
                pipe.send("expected")
                wanted = {number: (case, family.expected(case))}
            optimized = optimized or device not in ("cpu", "cuda")  # SPIR-V that is not optimized is not valid (Slang 2026.12)
            if (device, optimized) not in runners:
                runners[device, optimized] = family.Runner(device, optimized, pipe.send)
            failures = runners[device, optimized].run(*wanted[number], stages)
            pipe.send(([failure.as_dict() for failure in failures], wanted[number][0].counts()))
        except Exception as error:  # of this package: a fault of the attack itself
            pipe.send(([_failure("attack failed", "", f"{type(error).__name__}: {error}")], {}))


class Worker:
    """The other end of such a process, which is started when it is needed and replaced when it dies."""

    def __init__(self, module: str, limit: float = 120.0, jobs: int = 40):
        self.module = module  # see serve
        self.limit = limit  # seconds for one stage
        self.jobs = jobs  # after so many a new process: compilers keep memory
        self.process: Any = None
        self.pipe: Any = None
        self.done = 0
        self.last: Case | None = None
        self.number = 0

    def ask(self, case: Case, device: str, optimized: bool = False, stages: tuple[str, ...] = ()) -> Answer:
        if self.process is None or self.done >= self.jobs:
            self._start()
        self.done += 1
        stage = "start"
        if case is not self.last:
            self.last, self.number = case, self.number + 1
        try:
            self.pipe.send((self.number, case, device, optimized, stages))
            while True:
                if not self._answers():
                    self.close()
                    return Answer([_failure("hang", stage, f"no answer within {self.limit:g} s")])
                message = self.pipe.recv()
                if not isinstance(message, str):
                    return Answer(*message)
                stage = message
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join(10)
            code = self.process.exitcode
            self.close()
            name = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
            return Answer([_failure("crash", stage, name)])

    def _answers(self) -> bool:
        """Waits for a message. On a busy machine the limit is one of the process's own time; one that sleeps gets ten limits."""
        begin = _processor_seconds(self.process.pid)
        for _ in range(10):
            if self.pipe.poll(self.limit):
                return True
            now = _processor_seconds(self.process.pid)
            if begin is None or now is None or now - begin > 0.8 * self.limit:
                return False
        return False

    def _start(self) -> None:
        self.close()
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.module), daemon=True)
        self.process.start()
        other.close()
        self.done = 0

    def close(self) -> None:
        if self.process is not None:
            self.pipe.close()
            self.process.join(0.2 if self.done < self.jobs else 5)
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
        self.process = None


def _processor_seconds(pid: int) -> float | None:
    """Time that a process has had so far; None where the system does not say."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _failure(kind: str, stage: str, text: str) -> dict[str, Any]:
    return {"kind": kind, "stage": stage, "program": -1, "text": text}
