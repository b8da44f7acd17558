"""How long a process takes to its first result: nothing cached, and with the cache that leaves.

    python benchmarks/first_call.py [--device cpu|vulkan|cuda] [--runs 5]
    python benchmarks/first_call.py --parts [--runs 10]

Each run is a process of its own with an empty cache folder, followed by one with that folder. Prints milliseconds, the
medians of the runs, for importing the package, opening the device, and loading a module with one call of it, and the time
that processors worked for both of the latter, compilers included, which other programs on the machine disturb least.

--parts says of the first call on the CPU, with nothing cached, where its time goes: medians of the runs. The programs that
g++ starts are timed by a script that g++ runs in their place, so that they take some milliseconds more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import json, os, sys, time
import numpy as np
times = [time.perf_counter()]
import slangpy as spy
times.append(time.perf_counter())
device = spy.create_device(type=spy.DeviceType[sys.argv[1]])
times.append(time.perf_counter())
worked = sum(os.times()[:4])
source = "float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"
module = spy.Module.load_from_source(device, "first_call", source)
x = np.arange(1, 5, dtype=np.float32)
assert module.polynomial(2, 8, -1, x, _result="numpy").tolist() == [9, 23, 41, 63]
times.append(time.perf_counter())
worked = sum(os.times()[:4]) - worked
print(json.dumps([*((b - a) * 1e3 for a, b in zip(times, times[1:], strict=False)), worked * 1e3]))
"""

PARTS = """
import json, os, time
import numpy as np
parts, now = {}, time.perf_counter
begin = now()
import slangpy as spy
parts["import"] = now() - begin
from slangpy.compiler.modules import loaded
def timed(name, function):
    def run(*arguments, **named):
        begin = now()
        try:
            return function(*arguments, **named)
        finally:
            parts[name] = parts.get(name, 0) + now() - begin
    return run
loaded.new_session = timed("session and our library", loaded.new_session)
begin = now()
device = spy.create_device(type=spy.DeviceType.cpu, enable_compilation_reports=True)
parts["device"] = now() - begin
begin = now()
source = "float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"
module = spy.Module.load_from_source(device, "first_call", source)
module.polynomial
parts["module, without the session"] = now() - begin - parts["session and our library"]
begin = now()
x = np.arange(1, 5, dtype=np.float32)
assert module.polynomial(2, 8, -1, x, _result="numpy").tolist() == [9, 23, 41, 63]
call = now() - begin
[report] = device._state.reports
steps = {"front_end": "front end", "code_generation": "code generation", "downstream": "g++", "pipeline": "loading the kernel"}
for step, name in steps.items():
    parts[name] = report.seconds[step]
parts["planning, and the launch"] = call - sum(parts[name] for name in steps.values())
with open(os.environ["PROGRAMS"]) as file:
    for line in file:
        name, seconds = line.split()
        parts["  " + name] = float(seconds)
print(json.dumps({name: seconds * 1e3 for name, seconds in parts.items()}))
"""

COMPILER = """#!/bin/sh
exec {gcc} -wrapper {folder}/timer "$@"
"""
TIMER = """#!{python} -IS
import os, subprocess, sys, time
begin = time.perf_counter()
status = subprocess.run(sys.argv[1:]).returncode
with open(os.environ["PROGRAMS"], "a") as file:
    file.write(f"{{os.path.basename(sys.argv[1])}} {{time.perf_counter() - begin}}\\n")
sys.exit(status)
"""


def run(program: str, *arguments: str, **variables: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, **variables},
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout


def show_calls(device: str, runs: int) -> None:
    results: dict[str, list[list[float]]] = {"nothing cached": [], "second process": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            for times in results.values():
                times.append(json.loads(run(CHILD, device, SLANGPY_CACHE_DIR=cache)))
    print(f"{device}, milliseconds     import   device   first call   least   processors")
    for name, times in results.items():
        columns = list(zip(*times, strict=True))
        imported, opened, called, worked = map(statistics.median, columns)
        print(f"{name:24} {imported:9.1f} {opened:8.1f} {called:12.1f} {min(columns[2]):7.1f} {worked:12.1f}")


def show_parts(runs: int) -> None:
    gcc = shutil.which("g++")
    if gcc is None:
        raise SystemExit("--parts needs g++")
    parts: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (("g++", COMPILER), ("timer", TIMER)):
            (folder / file).write_text(text.format(gcc=gcc, folder=folder, python=sys.executable))
            (folder / file).chmod(0o755)
        for _ in range(runs):
            shutil.rmtree(folder / "cache", ignore_errors=True)
            (folder / "programs").write_text("")
            variables = {"SLANGPY_CACHE_DIR": f"{folder}/cache", "CXX": f"{folder}/g++"}
            for part, time in json.loads(run(PARTS, PROGRAMS=f"{folder}/programs", **variables)).items():
                parts.setdefault(part, []).append(time)
    print("cpu, nothing cached            milliseconds   least")
    for part, times in parts.items():
        print(f"{part:30} {statistics.median(times):12.1f} {min(times):7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "vulkan", "cuda"])
    parser.add_argument("--runs", type=int, help="default: 5, of --parts 10")
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    if options.parts:
        show_parts(options.runs or 10)
    else:
        show_calls(options.device, options.runs or 5)


if __name__ == "__main__":
    main()
