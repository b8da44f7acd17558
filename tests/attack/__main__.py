"""`python -m tests.attack --device cpu --programs 1000 --seconds 600`: see README.md."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from .classify import LIMIT
from .family import Family
from .hunt import Hunt, seed_of

COUNTS = {"masked": "rows left out", "bwds": "with .bwds", "fwds": "with .fwds", "value": "of values alone", "torch": "by torch's graph",
          "split": "calls halved, too large for a driver or the time",
          "lanes": "had lanes", "loops": "had loops that lanes leave one by one"}
"""Of records: what `Case.counts` says."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description="Random differentiable programs against torch.float64, or forward ones against NumPy.")
    parser.add_argument("--forward", action="store_true", help="programs without derivatives, over all scalar types, against NumPy")
    parser.add_argument("--lanes", nargs="?", const="forward", choices=("forward", "gradients"),
                        help="programs on the CPU device, with lanes and without: the same bits (gradients: also of .bwds and .fwds)")  # fmt: skip
    parser.add_argument("--device", default="cpu", help="cpu, vulkan, cuda, or several by comma")
    parser.add_argument("--programs", type=int, default=200, help="how many, for each device")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no new batch after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=20, help="programs in one call")
    parser.add_argument("--every", action="store_true", help="values, .bwds and .fwds of each batch; without: .bwds of each, .fwds of every other")
    parser.add_argument("--jobs", type=int, default=1, help="processes that compile and run at once")
    parser.add_argument("--without", default="", help="constructs to leave out, by comma: SWITCHES in grammar.py and forward/grammar.py")
    parser.add_argument("--optimized", action="store_true", help="compile with optimization (slower on the CPU device)")
    parser.add_argument("--shrink", type=float, default=0.0, help="seconds to make the first program of each kind of failure smaller")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a stage counts as hanging")
    parser.add_argument("--replay", default="", help="BATCH:PROGRAM, as a table names them: that program alone, with the same --without and --batch")
    parser.add_argument("--out", type=Path, help="file of one JSON line for each batch; a run with the same file goes on where it stopped")
    return parser.parse_args()


def table(records: list[dict[str, Any]]) -> str:
    """Programs and failures by class, for each device."""
    lines = []
    for device in sorted({record["device"] for record in records}):
        own = [record for record in records if record["device"] == device]
        findings = [finding for record in own for finding in record["findings"]]
        counts = (f"{sum(r.get(name, 0) for r in own)} {text}" for name, text in COUNTS.items() if any(name in r for r in own))
        programs = sum(record["programs"] for record in own)
        bad = len({(f["seed"], f["place"]) for f in findings if not is_limit(f)})
        lines.append(f"{device}: {programs} programs in {len(own)} calls, {sum(r['seconds'] for r in own):.0f} s; "
                     f"{'; '.join([f'{bad} programs fail', *counts])}")  # fmt: skip
        for name, number in Counter(finding["class_"] for finding in findings).most_common():
            example = next(f for f in findings if f["class_"] == name)
            lines.append(f"  {number:5}  {name}   (batch {example['seed']}, program {example['place']})")
    return "\n".join(lines)


def is_limit(finding: dict[str, Any]) -> bool:
    """Whether a driver refuses what is right, with a message that says so."""
    return finding["class_"].startswith(LIMIT)


class Log:
    """The records of a run, kept in a file if one is given."""

    def __init__(self, path: Path | None):
        self.path = path
        self.lock = threading.Lock()
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.records: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("}")]
        self.shown: set[str] = set()

    def add(self, record: dict[str, Any]) -> None:
        with self.lock:
            self.records.append(record)
            if self.path:
                with self.path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
            for finding in record["findings"]:
                if finding["class_"] not in self.shown:
                    self.shown.add(finding["class_"])
                    print(f"--- {finding['class_']} on {finding['device']}, batch {finding['seed']}, program {finding['place']} ({finding['made']})")
                    print(f"{finding['text']}\n{finding['source']}", flush=True)

    def missing(self, seed: int, devices: list[str]) -> bool:
        with self.lock:
            done = {record["device"] for record in self.records if record["seed"] == seed}
        return not done.issuperset(devices)

    def programs(self, devices: list[str]) -> int:
        """How many have run on every device."""
        with self.lock:
            counts = Counter(dict.fromkeys(devices, 0))
            for record in self.records:
                counts[record["device"]] += record["programs"]
        return min(counts[device] for device in devices)


def work(hunt: Hunt, log: Log, batches: Iterator[int], options: argparse.Namespace, end: float) -> None:
    """One of `--jobs` threads, with a process of its own that compiles."""
    while time.monotonic() < end and log.programs(hunt.devices) < options.programs:
        with log.lock:
            seed = seed_of(options.seed, next(batches))
        if log.missing(seed, hunt.devices):
            for record in hunt.batch(seed, end):
                log.add(record)
    hunt.worker.close()


def family_name(options: argparse.Namespace) -> str:
    return f"lanes.{options.lanes}" if options.lanes else "forward.family" if options.forward else "gradients"


def main() -> int:
    options = arguments()
    family: Family = import_module(f"tests.attack.{family_name(options)}").FAMILY
    without = frozenset(filter(None, options.without.split(",")))

    def hunt() -> Hunt:
        return Hunt(family, options.device.split(","), without, options.batch, options.optimized, options.shrink, options.limit, options.every or bool(options.replay))

    if options.replay:
        one = hunt()
        found = one.replay(*map(int, options.replay.split(":")))
        one.worker.close()
        print("\n".join(f"{f.class_} on {f.device} ({f.made})\n{f.text}\n{f.source}" for f in found) or "no failure")
        return 1 if found else 0
    end = time.monotonic() + options.seconds
    log, batches = Log(options.out), count()
    threads = [threading.Thread(target=work, args=(hunt(), log, batches, options, end)) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(table(log.records))
    return 1 if any(not is_limit(finding) for record in log.records for finding in record["findings"]) else 0


if __name__ == "__main__":
    sys.exit(main())
