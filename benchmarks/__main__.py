"""All figures of one device in one run, beside raw copy, torch, torch.compile, Triton and CuPy where installed.

    python -m benchmarks [--device cpu|cuda|vulkan] [--quick] [--output results.json] [--limit 6] [--total 220]
    python -m benchmarks --only stencil,indirect,gather [--device cuda]
    python -m benchmarks --table results.json
    PYTHONPATH=older python -m benchmarks --only stencil      # an older build, installed into the folder `older`

Inputs are fresh random numbers; our results start poisoned (sums of gradients at zero) and are compared with NumPy
float64 before anything is timed. What the peers compute is not compared.
A figure that is wrong or fails is written down with its reason, and the exit status is 1. --limit is of seconds of timing
for each figure, --total of seconds after which no further figure is begun; compiling is not interrupted.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import slangpy as spy

from . import find_package
from .programs import Bench, Program, programs


def batches(call: Callable[[], Any], wait: Callable[[], Any], end: float) -> list[float]:
    """Seconds of one call in batches of some 5 ms: a wait takes up to 100 us. At least three batches."""
    call()
    wait()
    start = time.perf_counter()
    call()
    wait()
    batch = int(np.clip(5e-3 / max(time.perf_counter() - start, 1e-7), 1, 1000))
    times: list[float] = []
    while len(times) < 3 or (len(times) < 200 and time.perf_counter() < end):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        wait()
        times.append((time.perf_counter() - start) / batch)
    return times


def warm_up(call: Callable[[], Any], wait: Callable[[], Any]) -> None:
    """A GPU that has idled needs some 0.3 s of work before its clocks are up: what is timed first would look slow."""
    start = time.perf_counter()
    while time.perf_counter() - start < 0.3:
        call()
        wait()


def waiter(bench: Bench) -> Callable[[], None]:
    def wait() -> None:
        bench.device.wait()
        if bench.torch and bench.torch_name == "cuda":
            bench.torch.cuda.synchronize()
        elif bench.cupy:
            bench.cupy.cuda.get_current_stream().synchronize()

    return wait


def raw_copy(bench: Bench, limit: float) -> float:
    """Bytes a second, read and written, of the device's own copy."""
    x = bench.tensor(bench.random(bench.count))
    y = spy.Tensor.empty(bench.device, (bench.count,), "float")

    def copy() -> None:
        encoder = bench.device.create_command_encoder()
        encoder.copy_buffer(y.storage, 0, x.storage, 0, 4 * bench.count)
        bench.device.submit_command_buffer(encoder.finish())

    warm_up(copy, bench.device.wait)
    return 8 * bench.count / float(np.median(batches(copy, bench.device.wait, time.perf_counter() + limit)))


ROUNDS = 3


def timed_in_turn(
    calls: dict[str, Callable[[], Any]], wait: Callable[[], Any], limit: float, failed: dict[str, str]
) -> dict[str, list[float]]:
    """Batches of each call, in rounds of all of them, so that all see the same clocks; `failed` gets those that fail."""
    times: dict[str, list[float]] = {}
    warm_up(calls["slangpy"], wait)
    for label in [label for _ in range(ROUNDS) for label in calls]:
        if label in failed:
            continue
        try:
            end = time.perf_counter() + limit / len(calls) / ROUNDS
            times.setdefault(label, []).extend(batches(calls[label], wait, end))
        except Exception as error:  # a peer that is broken here must not end the run
            failed[label] = f"{type(error).__name__}: {error}"[:300]
            times.pop(label, None)
    return times


def measure(bench: Bench, make: Callable[[Bench], Program], copied: float, limit: float) -> dict[str, Any]:
    program = make(bench)
    figure: dict[str, Any] = {"name": program.name, "notes": program.notes, "seconds": {}, "ratios": {}, "failed": {}}
    program.calls["slangpy"]()
    bench.device.wait()
    figure["error"] = program.check()
    if not figure["error"] <= program.tolerance:
        figure["failed"]["slangpy"] = f"wrong: error {figure['error']}, at most {program.tolerance}"
        return figure
    times = timed_in_turn(program.calls, waiter(bench), limit, figure["failed"])
    figure["seconds"] = {label: float(np.median(found)) for label, found in times.items()}
    ours = figure["seconds"].get("slangpy")
    if ours:
        figure["ratios"] = {label: took / ours for label, took in figure["seconds"].items() if label != "slangpy"}
        if program.bytes:
            figure["bytes_per_second"] = program.bytes / ours
            figure["of_copy"] = program.bytes / ours / copied
    return figure


def machine(bench: Bench) -> dict[str, Any]:
    names = ("torch", "triton", "cupy", "numpy")
    found = {name: find_package(name) for name in names}
    return {
        "device": bench.device.info.api_name,
        "adapter": bench.device.info.adapter_name,
        "platform": platform.platform(),
        "processor": platform.machine(),
        "versions": {"python": platform.python_version(), "slangpy": spy.__version__}
        | {name: package.__version__ for name, package in found.items() if package},
        "time": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    begun = time.perf_counter()
    device = spy.create_device(type=spy.DeviceType[options.device])
    torch = find_package("torch") if options.device != "vulkan" else None
    if torch and options.device == "cuda" and not torch.cuda.is_available():
        torch = None
    cupy = find_package("cupy") if options.device == "cuda" else None
    count = 1 << (16 if options.quick else 26 if options.device == "cuda" else 22)
    bench = Bench(device, torch, cupy, count)
    copied = raw_copy(bench, options.limit)
    results = {
        "machine": machine(bench),
        "count": count,
        "copy_bytes_per_second": copied,
        "figures": [],
        "left_out": [],
    }
    for name, make in chosen(programs(bench), options.only).items():
        if time.perf_counter() - begun > options.total:
            results["left_out"].append(f"{name}: the {options.total:g} seconds of the run were spent")
            continue
        try:
            figure = measure(bench, make, copied, options.limit)
        except Exception as error:  # the other figures are wanted all the same
            text = f"{type(error).__name__}: {error}"[:500]
            figure = {"name": name, "seconds": {}, "ratios": {}, "failed": {"slangpy": text}}
        results["figures"].append(figure)
        print(f"{time.perf_counter() - begun:6.1f} s  {figure['name']}", file=sys.stderr, flush=True)
    return results


def chosen(known: dict[str, Any], only: str) -> dict[str, Any]:
    """The programs that `--only` names; all of them where it names none."""
    names = [name for name in only.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"--only: there is no program {', '.join(unknown)}; there are: {', '.join(known)}")
    return {name: known[name] for name in names} if names else known


def table(results: dict[str, Any]) -> str:
    """The figures as Markdown."""
    about = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [
        f"{about['adapter']} ({about['device']}), {versions}; {results['count']} elements, copy "
        f"{results['copy_bytes_per_second'] / 1e9:.1f} GB/s. Peers: their time over ours, above 1 where slangpy is faster.",
        "",
        "| program | µs | GB/s | of copy | peers |",
        "|---|---|---|---|---|",
    ]
    for figure in results["figures"]:
        ours = figure["seconds"].get("slangpy")
        took = f"{ours * 1e6:.1f}" if ours else "failed"
        rate = f"{figure['bytes_per_second'] / 1e9:.1f}" if "of_copy" in figure else ""
        share = f"{figure['of_copy']:.2f}" if "of_copy" in figure else ""
        peers = [f"{label} {ratio:.2f}" for label, ratio in figure["ratios"].items()]
        peers += [f"{label} failed" for label in figure["failed"] if label != "slangpy"]
        lines.append(f"| {figure['name']} | {took} | {rate} | {share} | {', '.join(peers)} |")
    return "\n".join(lines + [f"\nNot run: {text}." for text in results["left_out"]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "vulkan", "cuda"])
    parser.add_argument("--quick", action="store_true", help="2^16 elements")
    parser.add_argument("--only", default="", metavar="NAME,...", help="only these programs")
    parser.add_argument("--limit", type=float, default=3.0, help="seconds of timing for each figure")
    parser.add_argument("--total", type=float, default=200.0, help="seconds after which no figure is begun")
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    parser.add_argument("--table", type=Path, help="print the table of this JSON, and run nothing")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.table.read_text())))
        return 0
    results = run(options)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1))
    print(table(results))
    wrong = [(f["name"], f["failed"]["slangpy"]) for f in results["figures"] if "slangpy" in f["failed"]]
    for name, reason in wrong:
        print(f"{name}: {reason}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
