"""Hardware counters of the programs of `python -m benchmarks` on CUDA, read by Nsight Compute (ncu), ours beside the peers.

    python -m benchmarks.counters [--only gather,scattered,float3,...] [--peers torch,CUDA]

One process runs each call once under ncu; clocks are left as they are. A call of several kernels has a line for each.
Columns: microseconds; GB/s that the device's memory moved (whole sectors, so reads at random places count 32 bytes each);
the share that this is of the memory's peak; the share of reads that the L2 cache served; the share of a multiprocessor's
warps that were active (occupancy); registers of a thread.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import shutil
import subprocess
import sys

import slangpy as spy

from . import find_package
from .__main__ import chosen, waiter
from .programs import Bench, programs

METRICS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "GB/s": ("dram__bytes.sum.per_second", 1e-9),
    "of peak": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 0.01),
    "L2 hits": ("lts__t_sector_hit_rate.pct", 0.01),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", 0.01),
    "registers": ("launch__registers_per_thread", 1.0),
}
MARK = "spin_kernel"  # of torch.cuda._sleep: it parts the calls
WITHOUT_PREFIX = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def child(only: str, peers: list[str]) -> None:
    """Runs each call once between two calls to the profiler, and says which calls these were."""
    torch = find_package("torch")
    assert torch is not None
    bench = Bench(spy.create_device(type=spy.DeviceType.cuda), torch, find_package("cupy"), 1 << 26)
    wait = waiter(bench)
    for name, make in chosen(programs(bench), only).items():
        program = make(bench)
        for label, call in program.calls.items():
            if label != "slangpy" and not any(label.startswith(peer) for peer in peers):
                continue
            for _ in range(3):
                call()
            wait()
            torch.cuda.profiler.start()
            torch.cuda._sleep(1)
            wait()
            call()
            wait()
            torch.cuda.profiler.stop()
            print(f"CALL\t{name}\t{label}", flush=True)


def scaled(text: str, unit: str, scale: float) -> float:
    """A number of ncu in nanoseconds, bytes a second, per cent or as it is, times the column's scale."""
    value = float(text.replace(",", ""))
    if unit.endswith("byte/s") or unit.endswith("byte/second"):
        value *= WITHOUT_PREFIX[unit[: unit.index("byte")]]
    elif unit in ("s", "second"):
        value *= 1e9
    elif unit in ("us", "usecond", "ms", "msecond"):
        value *= 1e3 if unit[0] == "u" else 1e6
    return value * scale


def read(report: str) -> list[list[list[float]]]:
    """The figures of each kernel of each call."""
    begin = report.index('"ID"')
    rows = list(csv.DictReader(io.StringIO(report[begin:])))
    units, calls = rows[0], []
    for row in rows[1:]:
        if MARK in row["Kernel Name"]:
            calls.append([])
        elif calls:
            calls[-1].append([scaled(row[name], units[name], scale) for name, scale in METRICS.values()])
    return calls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="elementwise,rows,indirect,sixteen,gather,stencil,float3,scattered,meeting,loop")
    parser.add_argument("--peers", default="CUDA,torch index_add_")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    peers = options.peers.split(",")
    if options.child:
        child(options.only, peers)
        return 0
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    command = [ncu, "--csv", "--page", "raw", "--profile-from-start", "off", "--clock-control", "none", "--target-processes"]
    command += ["application-only", "--metrics", ",".join(name for name, _ in METRICS.values()), sys.executable, "-m"]
    command += ["benchmarks.counters", "--child", "--only", options.only, "--peers", options.peers]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    labels = [line.split("\t")[1:] for line in done.stdout.splitlines() if line.startswith("CALL\t")]
    if done.returncode or '"ID"' not in done.stdout:
        print(f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\nncu ended with {done.returncode}", file=sys.stderr)
        return 1
    print("| program | whose | " + " | ".join(METRICS) + " |\n|---|---|" + "---|" * len(METRICS))
    report = "\n".join(line for line in done.stdout.splitlines() if line.startswith('"'))
    for (name, label), kernels in zip(labels, read(report), strict=True):
        for us, rate, share, hits, active, registers in kernels:
            print(f"| {name} | {label} | {us:.1f} | {rate:.0f} | {share:.2f} | {hits:.2f} | {active:.2f} | {registers:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
