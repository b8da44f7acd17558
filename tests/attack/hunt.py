"""Draws batches, runs them, and finds out which program of a batch fails."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .classify import class_of, is_of_memory, is_of_size, signature, suspects
from .family import Case, Family
from .nodes import Program
from .shrink import shrink, size
from .worker import Worker


@dataclass
class Finding:
    """One program that fails."""

    device: str
    class_: str
    seed: int  # of the batch
    place: int  # of the program in it; -1: only the batch as a whole
    program_seed: int
    kind: str
    stage: str
    text: str
    made: str  # how the call was made
    source: str = ""
    shrunk: bool = False

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass
class Hunt:
    """One run over many batches. `shrink_seconds`: for each class of failure once; 0: never."""

    family: Family
    devices: list[str]
    without: frozenset[str] = frozenset()
    count: int = 20
    optimized: bool = True
    shrink_seconds: float = 0.0
    limit: float = 120.0
    every: bool = True  # all stages of each case, not those that the family names for long runs
    worker: Worker = field(init=False)
    shrunk: set[str] = field(default_factory=set)
    wild: bool = False
    counts: dict[str, int] = field(default_factory=dict)  # of the last case

    def __post_init__(self) -> None:
        self.worker = Worker(self.family.worker, self.limit)

    def batch(self, seed: int, end: float = float("inf"), route: str = "") -> Iterator[dict[str, Any]]:
        """Runs the batch of a seed on each device and yields a record for each. `route`: tensor, torch, or as drawn."""
        drawn: dict[frozenset[str], Case] = {}
        for device in self.devices:
            begin = time.monotonic()
            lacking = self.family.lacking(device)
            case = drawn[lacking] = drawn.get(lacking) or self.draw(seed, route, lacking)
            findings = self.examine(case, device, end)
            yield {"seed": seed, "device": device, "programs": case.count, **case.made(), "wild": self.wild,
                   "seconds": round(time.monotonic() - begin, 2), **self.counts,
                   "findings": [f.as_dict() for f in findings]}  # fmt: skip

    def examine(self, case: Case, device: str, end: float = float("inf")) -> list[Finding]:
        """Runs a case; halves of one that is too large as a whole for a driver or for the time."""
        stages = () if self.every else self.family.stages(case)
        self.counts = {"masked": 0, **dict.fromkeys(stages, case.count)}
        found: list[Finding] = []
        parts = [list(range(case.count))]
        while parts:
            places = parts.pop()
            part = case if len(places) == case.count else self.family.part(case, places)
            answer = self.worker.ask(part, device, self.optimized, stages)
            if any(is_of_memory(failure) for failure in answer.failures):
                self.worker.close()  # a process keeps the memory that its largest kernel took
                answer = self.worker.ask(part, device, self.optimized, stages)
            if len(places) > 1 and time.monotonic() < end and any(is_of_size(failure) for failure in answer.failures):
                self.counts["split"] = self.counts.get("split", 0) + 1
                parts += [places[: len(places) // 2], places[len(places) // 2 :]]
                continue
            for name, number in answer.counts.items():
                self.counts[name] = self.counts.get(name, 0) + number
            for finding in self.findings(part, device, answer.failures, end):
                finding.place = places[finding.place] if finding.place >= 0 else -1
                self.make_smaller(case, finding, end)
                found.append(finding)
        return found

    def findings(self, case: Case, device: str, failures: list[dict[str, Any]], end: float) -> list[Finding]:
        found: list[Finding] = []
        for failure in failures:
            if failure["program"] >= 0:
                found.append(self.finding(case, device, failure, failure["program"]))
                continue
            culprits = self.culprits(case, device, failure, end) if case.count > 1 else [(0, failure)]
            found += [self.finding(case, device, own, k) for k, own in culprits] or [self.finding(case, device, failure, -1)]
        return found

    def replay(self, seed: int, place: int) -> list[Finding]:
        """Runs one program of a batch alone."""
        found: list[Finding] = []
        for device in self.devices:
            case = self.draw(seed, "", self.family.lacking(device))
            found += self.examine(self.family.part(case, [place]), device)
        return found

    def draw(self, seed: int, route: str = "", lacking: frozenset[str] = frozenset()) -> Any:
        rng = random.Random(seed)
        # Constructs that fail often spoil the batches they are in: they come in few, smaller ones.
        self.wild = rng.random() < 0.15
        without = self.without | lacking | (frozenset() if self.wild else self.family.known)
        return self.family.draw(seed, min(self.count, 6) if self.wild else self.count, without, route)

    def finding(self, case: Case, device: str, failure: dict[str, Any], k: int) -> Finding:
        made = " ".join(filter(None, case.made().values()))
        seed = case.programs[k].seed if k >= 0 else -1
        finding = Finding(device, class_of(failure), case.seed, k, seed, failure["kind"], failure["stage"], failure["text"][:1500], made)
        finding.source = self.family.text(case, [case.programs[k]]) if k >= 0 else ""
        return finding

    # ---- which program it is

    def alone(self, case: Case, ks: list[int], device: str, stage: str) -> dict[str, Any] | None:
        """The failure of some of the programs without the others; None where there is none at that stage."""
        part = self.family.part(case, ks)
        stages = () if stage in ("compile", "expected", "start") else (stage,)
        failures = self.worker.ask(part, device, False, stages).failures
        return next((f for f in failures if f["stage"] == stage or f["stage"] == "compile" or stage == "start"), None)

    def culprits(self, case: Case, device: str, failure: dict[str, Any], end: float) -> list[tuple[int, dict[str, Any]]]:
        found: list[tuple[int, dict[str, Any]]] = []
        for k in suspects(failure, case.count):
            own = self.alone(case, [k], device, failure["stage"])
            found += [(k, own)] if own else []
        if found:
            return found
        halves = [list(range(case.count))]
        while halves and time.monotonic() < end:
            group = halves.pop()
            for ks in (group[: len(group) // 2], group[len(group) // 2 :]):
                own = self.alone(case, ks, device, failure["stage"])
                if own and len(ks) == 1:
                    found.append((ks[0], own))
                elif own:
                    halves.append(ks)
        return found

    # ---- smaller

    def make_smaller(self, case: Case, finding: Finding, end: float) -> None:
        sort = signature({"kind": finding.kind, "stage": finding.stage, "text": finding.text, "program": 0})
        if not self.shrink_seconds or sort in self.shrunk or finding.place < 0 or time.monotonic() > end:
            return
        program = case.programs[finding.place]
        last: dict[str, Any] = {}

        def failing(programs: list[Program]) -> list[Program]:
            part = self.family.again(case, [program for program in programs for _ in range(copies)])
            stages = () if finding.stage == "compile" else (finding.stage,)
            said = self.worker.ask(part, finding.device, False, stages).failures
            failures = [failure for failure in said if signature(failure) == sort]
            if len(programs) > 1 and any(failure["program"] < 0 for failure in said):  # one that does not compile hides the others
                half = len(programs) // 2
                return failing(programs[:half]) or failing(programs[half:])
            if failures:
                last.update(failures[0])
            return [programs[max(failure["program"], 0) // copies] for failure in failures]

        wrong = finding.kind.startswith("wrong")
        copies = 5 if wrong else 1  # a wrong number may come from some inputs only
        if not failing([program]):
            return
        self.shrunk.add(sort)
        group = 5 if wrong else 1  # what does not compile says nothing about its neighbours
        smallest = shrink(program, failing, min(self.shrink_seconds, end - time.monotonic()), self.family.rules, group)
        finding.source = self.family.text(case, [smallest])
        finding.text = last["text"][:1500]
        finding.shrunk = size(smallest) < size(program)


def seed_of(start: int, batch: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{start}:{batch}".encode()).digest()[:5], "big")
