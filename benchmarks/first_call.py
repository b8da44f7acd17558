"""How long a process takes to its first result: nothing cached, and with the cache that leaves.

    python benchmarks/first_call.py [--device cpu|vulkan|cuda] [--runs 5]
    python benchmarks/first_call.py --parts [--runs 10]
    python benchmarks/first_call.py --phases [--device cuda] [--runs 5]
    python benchmarks/first_call.py --before FOLDER [--runs 8]

Each run is a process of its own with an empty cache folder, followed by one with that folder, and by one with an empty
folder and a module of 30 functions. Prints milliseconds, the medians of the runs, for importing the package, opening the
device, loading a module with one call of it, the first gradient after that, and the time that processors worked for the
module and its call, compilers included, which other programs on the machine disturb least.

--parts is a time line of the first call on the CPU, with nothing cached. The programs that g++ starts are timed by a script that
it runs in their place, so that they take some milliseconds more. `cc1plus` begins before its text is known, and waits for it.

--phases is what the process itself worked in each phase of the first call, on any device, with nothing cached and in a second
process. Without a CUDA device, `--device cuda` generates the kernel for sm_90 and compiles it with NVRTC, but runs nothing. What g++
and the worker process do is not counted there; a phase holds those that it calls, so they do not add up.

--before runs the package of this folder and that in FOLDER in turn, nothing cached, and writes what each run took to
benchmarks/results/first_call.json. Both need the precompiled library (cmake/package_files.py --library).
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
function = "[Differentiable] float %s(float a, float b, float c, float x) { return a * x * x + b * x + c; }\\n"
source = "".join(function % name for name in ["polynomial", *(f"other{k}" for k in range(1, int(sys.argv[2])))])
module = spy.Module.load_from_source(device, "first_call", source)
x = np.arange(1, 5, dtype=np.float32)
assert module.polynomial(2, 8, -1, x, _result="numpy").tolist() == [9, 23, 41, 63]
times.append(time.perf_counter())
worked = sum(os.times()[:4]) - worked
t = spy.Tensor.from_numpy(device, x).with_grads()
y = spy.Tensor.from_numpy(device, x).with_grads(spy.Tensor.from_numpy(device, np.ones(4, np.float32)))
before = time.perf_counter()
module.polynomial.bwds(2, 8, -1, t, _result=y)
assert t.grad.to_numpy().tolist() == [12, 16, 20, 24]
gradient = time.perf_counter() - before
print(json.dumps([*((b - a) * 1e3 for a, b in zip(times, times[1:], strict=False)), gradient * 1e3, worked * 1e3]))
"""

PARTS = """
import json, os, time
import numpy as np
import slangpy as spy
from slangpy.compiler import executable
from slangpy.compiler.modules import loaded
from slangpy.plan import compile as stage, kernels
parts, now = {}, time.perf_counter
def timed(owner, function, name):
    run = getattr(owner, function)
    def watched(*arguments, **named):
        begin = now()
        try:
            return run(*arguments, **named)
        finally:
            parts[name] = (begin, now())
    setattr(owner, function, watched)
timed(loaded, "new_session", "session, with our library")
timed(kernels, "start", "front end of the kernel")
timed(stage, "_generate", "code generation")
timed(executable, "with_prelude", "text of the kernel")
timed(executable, "compile_kernel", "waiting for g++")
device = spy.create_device(type=spy.DeviceType.cpu)
begin = now()
source = "float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"
module = spy.Module.load_from_source(device, "first_call", source)
module.polynomial
parts["module of the program"] = (begin, now())
x = np.arange(1, 5, dtype=np.float32)
assert module.polynomial(2, 8, -1, x, _result="numpy").tolist() == [9, 23, 41, 63]
parts["all"] = (begin, now())
with open(os.environ["PROGRAMS"]) as file:
    for line in file:
        name, first, last, worked = line.split()
        parts["  " + name] = (float(first), float(last), float(worked))
print(json.dumps({name: [(a - begin) * 1e3, (b - begin) * 1e3, *(w * 1e3 for w in worked)]
                  for name, (a, b, *worked) in parts.items()}))
"""

PHASES = """
import time
begin = (time.process_time(), time.perf_counter())
import json, sys
import numpy as np
import slangpy as spy
from slangpy.compiler import executable
from slangpy.compiler.modules import loaded
from slangpy.plan import compile as stage, kernels
from slangpy.testing import CudaCodegen
phases = {}
def now():
    return time.process_time(), time.perf_counter()
def add(name, since):
    past = phases.get(name, (0, 0))
    phases[name] = tuple(old + (b - a) * 1e3 for old, a, b in zip(past, since, now()))
def timed(owner, function, name):
    run = getattr(owner, function)
    def watched(*arguments, **named):
        since = now()
        try:
            return run(*arguments, **named)
        finally:
            add(name, since)
    setattr(owner, function, watched)
add("import", begin)
timed(loaded, "new_session", "session, with our library")
timed(kernels, "start", "front end of the kernel")
timed(stage, "_generate", "code generation")
timed(executable, "with_prelude", "text of the kernel")
timed(executable, "compile_kernel", "g++ and loading")
since, name = now(), sys.argv[1]
try:
    device, is_real = spy.create_device(type=spy.DeviceType[name]), True
except RuntimeError:
    if name != "cuda":
        raise
    device, is_real = CudaCodegen("sm_90"), False
add("device", since)
if name != "cpu":
    timed(type(device), "compile", "compiler of the device")
source = "import slangpy; float polynomial(float a, float b, float c, float x) { return a * x * x + b * x + c; }"
since = begin = now()
module = spy.Module.load_from_source(device, "first_call", source)
function = module.polynomial
add("module of the program", since)
x = np.arange(1, 5, dtype=np.float32)
since = now()
if is_real:
    assert function(2, 8, -1, x, _result="numpy").tolist() == [9, 23, 41, 63]
else:
    device.build(function, 2, 8, -1, x)
add("call", since)
add("all since the device", begin)
print(json.dumps(phases))
"""

PAIR = """
import json, os, sys, time
import numpy as np
import slangpy as spy
device = spy.create_device(type=spy.DeviceType[sys.argv[1]])
begin, worked = time.perf_counter(), sum(os.times()[:4])
module = spy.Module.load_from_source(device, "first_call", sys.argv[2])
x = np.arange(1, 5, dtype=np.float32)
assert module.scaled(x, 2.0, _result="numpy").tolist() == [2, 4, 6, 8]
print(json.dumps([(time.perf_counter() - begin) * 1e3, (sum(os.times()[:4]) - worked) * 1e3]))
"""
SOURCES = {
    "plain function": "float scaled(float x, float by) { return x * by; }",
    "import slangpy": "import slangpy; float scaled(float x, float by) { return x * by; }",
    "import slangpy.rays": """
        import slangpy.rays;
        float scaled(float x, float by) { rays::Surface s = {}; s.t = by; return x * s.t; }""",
}
HERE = Path(__file__).resolve().parent

COMPILER = """#!/bin/sh
exec {gcc} -wrapper {folder}/timer "$@"
"""
TIMER = """#!{python} -IS
import os, resource, subprocess, sys, time
begin = time.perf_counter()
status = subprocess.run(sys.argv[1:], close_fds=False).returncode
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(os.environ["PROGRAMS"], "a") as file:
    name, worked = os.path.basename(sys.argv[1]), spent.ru_utime + spent.ru_stime
    file.write(f"{{name}} {{begin}} {{time.perf_counter()}} {{worked}}\\n")
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
    results: dict[str, list[list[float]]] = {"nothing cached": [], "second process": [], "module of 30 functions": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            for name, times in results.items():
                is_large = name.startswith("module")
                folder, functions = (f"{cache}/large", 30) if is_large else (cache, 1)
                times.append(json.loads(run(CHILD, device, str(functions), SLANGPY_CACHE_DIR=folder)))
    print(f"{device}, milliseconds     import   device   first call   least   gradient   processors")
    for name, times in results.items():
        columns = list(zip(*times, strict=True))
        imported, opened, called, gradient, worked = map(statistics.median, columns)
        least = min(columns[2])
        print(f"{name:24} {imported:9.1f} {opened:8.1f} {called:12.1f} {least:7.1f} {gradient:10.1f} {worked:12.1f}")


def show_parts(runs: int) -> None:
    gcc = shutil.which("g++")
    if gcc is None:
        raise SystemExit("--parts needs g++")
    parts: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (("g++", COMPILER), ("timer", TIMER)):
            (folder / file).write_text(text.format(gcc=gcc, folder=folder, python=sys.executable))
            (folder / file).chmod(0o755)
        for _ in range(runs):
            shutil.rmtree(folder / "cache", ignore_errors=True)
            (folder / "programs").write_text("")
            variables = {"SLANGPY_CACHE_DIR": f"{folder}/cache", "CXX": f"{folder}/g++"}
            for part, times in json.loads(run(PARTS, PROGRAMS=f"{folder}/programs", **variables)).items():
                parts.setdefault(part, []).append(times)
    print("cpu, nothing cached: milliseconds since the device is open; medians, and of the time between the least")
    print(f"{'':30} {'from':>8} {'to':>8} {'between':>8} {'least':>8} {'processors':>11}")
    for part, runs_of_it in sorted(parts.items(), key=lambda item: statistics.median(times[0] for times in item[1])):
        columns = list(zip(*runs_of_it, strict=True))
        between = [last - first for first, last, *_ in runs_of_it]
        figures = [*map(statistics.median, columns[:2]), statistics.median(between), min(between)]
        worked = f" {statistics.median(columns[2]):11.1f}" if len(columns) > 2 else ""
        print(f"{part:30} " + " ".join(f"{figure:8.1f}" for figure in figures) + worked)


def show_phases(device: str, runs: int) -> None:
    kinds: dict[str, list[dict[str, list[float]]]] = {"nothing cached": [], "second process": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            for results in kinds.values():
                results.append(json.loads(run(PHASES, device, SLANGPY_CACHE_DIR=cache)))
    print(f"{device}, milliseconds, medians; load of the machine {os.getloadavg()[0]:.1f}")
    for kind, results in kinds.items():
        print(f"{kind:30} processor   elapsed")
        for phase in results[0]:
            processor, elapsed = (statistics.median(one[phase][k] for one in results if phase in one) for k in (0, 1))
            print(f"  {phase:28} {processor:9.1f} {elapsed:9.1f}")


def show_pairs(device: str, before: Path, runs: int) -> None:
    programs: dict[str, object] = {}
    print(f"{device}, nothing cached, milliseconds: medians before and now, median of the ratios of pairs")
    for name, source in SOURCES.items():
        times: dict[str, list[list[float]]] = {"before": [], "now": []}
        for _ in range(runs):
            for which, folder in (("before", before), ("now", HERE.parent)):
                with tempfile.TemporaryDirectory() as cache:
                    variables = {"PYTHONPATH": str(folder), "SLANGPY_CACHE_DIR": cache}
                    times[which].append(json.loads(run(PAIR, device, source, **variables)))
        figures: dict[str, object] = {}
        for k, kind in enumerate(("elapsed_ms", "processor_ms")):
            old, new = ([pair[k] for pair in times[which]] for which in ("before", "now"))
            ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
            print(f"{name:20} {kind:12} {statistics.median(old):8.1f} {statistics.median(new):8.1f} {ratio:6.2f}")
            figures[kind] = {"before": old, "now": new, "median_ratio": round(ratio, 3)}
        programs[name] = figures
    record = {"device": device, "cores": os.cpu_count(), "load": os.getloadavg(), "programs": programs}
    (HERE / "results" / "first_call.json").write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "vulkan", "cuda"])
    parser.add_argument("--runs", type=int, help="default: 5, of --parts 10, of --before 8")
    parser.add_argument("--before", type=Path, help="folder with another `slangpy`, to compare with")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--phases", action="store_true")
    options = parser.parse_args()
    if options.parts:
        show_parts(options.runs or 10)
    elif options.phases:
        show_phases(options.device, options.runs or 5)
    elif options.before:
        show_pairs(options.device, options.before.resolve(), options.runs or 8)
    else:
        show_calls(options.device, options.runs or 5)


if __name__ == "__main__":
    main()
