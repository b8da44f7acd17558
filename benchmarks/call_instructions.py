"""Instructions of one warm call on the CPU device, counted by valgrind's callgrind.

    python benchmarks/call_instructions.py [--calls 30000]

Runs itself under callgrind with N and with 3 N calls, for add(Tensor, 2.0, _result=Tensor) and for a Python function that
does nothing; the difference over 2 N is one call, the loop around it included. Needs valgrind and g++; kernels are compiled
without AVX-512, which valgrind does not know.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import slangpy as spy

SOURCE = "float add(float a, float b) { return a + b; }"


def child(kind: str, calls: int) -> None:
    device = spy.create_device(type=spy.DeviceType.cpu)
    add = spy.Module.load_from_source(device, "call_instructions", SOURCE).add
    x = spy.Tensor.from_numpy(device, np.arange(4, dtype=np.float32))
    y = spy.Tensor.empty(device, (4,), "float")

    def nothing(*_: object, **__: object) -> None: ...

    add(x, 2.0, _result=y)
    call = add if kind == "add" else nothing
    for _ in range(calls):
        call(x, 2.0, _result=y)
    assert np.array_equal(y.to_numpy(), np.arange(4, dtype=np.float32) + 2)


def environment_in(folder: Path) -> dict[str, str]:
    """For processes under valgrind: kernels without AVX-512, a cache of their own, and no threads of NumPy's and torch's
    libraries, which turn round while they wait: that would be counted."""
    compiler = folder / "g++"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} "$@" -march=x86-64-v3\n')
    compiler.chmod(0o755)
    alone = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    own = {"PYTHONHASHSEED": "0", "CXX": str(compiler), "SLANGPY_CACHE_DIR": str(folder / "cache")}
    return os.environ | alone | own


def start(kind: str, calls: int, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / f'{kind}{calls}'}", sys.executable]
    command += [__file__, "--child", kind, "--calls", str(calls)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def instructions(process: subprocess.Popen[str]) -> int:
    _, errors = process.communicate()
    found = re.search(r"Collected : (\d+)", errors)
    if process.returncode or not found:
        sys.exit(f"callgrind ended with {process.returncode}:\n{errors[-2000:]}")
    return int(found.group(1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=30000)
    parser.add_argument("--child", choices=["add", "nothing"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.calls)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = environment_in(folder)
        # the kernel is in the cache from here on
        subprocess.run([sys.executable, __file__, "--child", "add", "--calls", "1"], env=environment, check=True)
        for kind in ("add", "nothing"):
            few, many = (start(kind, options.calls * times, folder, environment) for times in (1, 3))
            count = (instructions(many) - instructions(few)) / (2 * options.calls)
            print(f"{kind:8} {count:9.0f} instructions a call", flush=True)


if __name__ == "__main__":
    main()
