"""Instructions of one warm call on the CPU device, a row for each form of argument, result and call, counted by callgrind.

    python benchmarks/host_rows.py [--only list,torch] [--calls 200] [--keep FILE.json] [--against FILE.json]

--only takes parts of names, or whole ones after a "=". One process runs all rows under valgrind and asks callgrind (by a few
lines of C with valgrind's header) for the count between two numbers of calls, so what starts the count cancels out; the loop
around a call is taken off. --keep writes the rows; --against fails when a row has a tenth more than in that file, of the same
version of Python. Needs valgrind and g++; kernels are compiled without AVX-512, which valgrind does not know. They run over
four elements: their share is small.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from call_instructions import environment_in
from host_source import COMMON

import slangpy as spy

SOURCE = COMMON + """
float total<let N : int>(Tensor<float, 1> xs[N]) { float sum = 0; for (int i = 0; i < N; i++) sum += xs[i][0]; return sum; }
float sum_of_pairs<let N : int>(Pair xs[N]) { float sum = 0; for (int i = 0; i < N; i++) sum += xs[i].a; return sum; }
float sum_of_numbers<let N : int>(float xs[N]) { float sum = 0; for (int i = 0; i < N; i++) sum += xs[i]; return sum; }
"""
KERNEL = """
[shader("compute")] [numthreads(4, 1, 1)]
void doubled(uint3 id : SV_DispatchThreadID, StructuredBuffer<float> x, RWStructuredBuffer<float> y, uniform float scale)
{
    y[id.x] = scale * x[id.x];
}
"""
REQUESTS = """
#include <valgrind/callgrind.h>
extern "C" void start() { CALLGRIND_START_INSTRUMENTATION; }
extern "C" void zero() { CALLGRIND_ZERO_STATS; }
extern "C" void dump(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }
"""
LENGTHS = (1, 16, 64)
MOST = 1.1
Rows = dict[str, Callable[[], object]]


def rows_of_arguments(device: spy.Device, module: Any) -> Rows:
    x = np.arange(4, dtype=np.float32)
    tensor, out = spy.Tensor.from_numpy(device, x), spy.Tensor.empty(device, (4,), "float")
    vectors = spy.Tensor.from_numpy(device, np.ones((4, 3), np.float32))
    texture = device.create_texture(
        format=spy.Format.rgba32_float, width=4, height=4, usage=spy.TextureUsage.shader_resource,
        data=np.ones((4, 4, 4), np.float32),
    )  # fmt: skip
    bodies = spy.InstanceList(module.Body, {"x": tensor, "v": tensor})
    array = np.empty_like(x)
    add, pair = module.add, {"a": tensor, "b": tensor}
    grid, mapped, part = spy.grid((4, 4)), add.map((0,), (0,)), tensor[0:4]
    return {
        "numbers": lambda: add(1.0, 2.0),
        "Tensor": lambda: add(tensor, 2.0, _result=out),
        "two Tensors": lambda: add(tensor, tensor, _result=out),
        "NumPy array": lambda: add(x, 2.0, _result=array),
        "Tensor of float3": lambda: module.shift(vectors, 2.0),
        "view": lambda: add(part, 2.0, _result=out),
        "view made each time": lambda: add(tensor[0:4], 2.0, _result=out),
        "view() made each time": lambda: add(tensor.view((4,), (1,), 0), 2.0, _result=out),
        "dict": lambda: module.of_pair(pair, _result=out),
        "nested dict": lambda: module.of_nested({"pair": pair, "c": 1.0}, _result=out),
        "InstanceList": lambda: bodies.step(0.5),
        "texture": lambda: module.of_texture(grid, texture),
        "grid made each time": lambda: module.of_texture(spy.grid((4, 4)), texture),
        "generator": lambda: module.scaled(spy.call_id(), tensor, _result=out),
        "map": lambda: mapped(tensor, tensor, _result=out),
        "map made each time": lambda: add.map((0,), (0,))(tensor, tensor, _result=out),
        "out argument": lambda: module.write(tensor, out),
    }


def rows_of_results(device: spy.Device, module: Any) -> Rows:
    tensor = spy.Tensor.from_numpy(device, np.arange(4, dtype=np.float32))
    out = spy.Tensor.empty(device, (4,), "float")
    graded, result = tensor.with_grads(), out.with_grads()
    add = module.add
    backward, typed = add.bwds, add.return_type("numpy")

    raw = device.load_module_from_source("host_rows_kernel", KERNEL)
    kernel = device.create_compute_kernel(device.link_program([raw], [raw.entry_point("doubled")]))

    def recorded() -> None:
        encoder = device.create_command_encoder()
        add.append_to(encoder, tensor, 2.0, _result=out)
        device.submit_command_buffer(encoder.finish())

    return {
        "result Tensor": lambda: add(tensor, 2.0),
        "result NumPy": lambda: add(tensor, 2.0, _result="numpy"),
        "return_type": lambda: typed(tensor, 2.0),
        "bwds": lambda: backward(graded, 2.0, _result=result),
        "prepared": add.prepare(tensor, 2.0, _result=out),
        "recorded": recorded,
        "kernel dispatch": lambda: kernel.dispatch([4, 1, 1], x=tensor.storage, y=out.storage, scale=2.0),
    }


def rows_of_lists(device: spy.Device, module: Any) -> Rows:
    def call(function: Any, items: list[object]) -> Callable[[], object]:
        return lambda: function(items)

    found: Rows = {}
    for n in LENGTHS:
        found[f"list of {n} Tensors"] = call(module.total, [spy.Tensor.zeros(device, (4,), "float") for _ in range(n)])
    for n in LENGTHS:
        found[f"list of {n} numbers"] = call(module.sum_of_numbers, [0.5 * i for i in range(n)])
    for n in LENGTHS:
        found[f"list of {n} dicts"] = call(module.sum_of_pairs, [{"_type": "Pair", "a": 1.0 * i, "b": 2.0} for i in range(n)])
    return found


def rows_of_torch(device: spy.Device, module: Any) -> Rows:
    if importlib.util.find_spec("torch") is None:
        return {}
    torch = importlib.import_module("torch")
    x, out = torch.arange(4.0), torch.empty(4)
    graded = torch.arange(4.0, requires_grad=True)
    ones = torch.ones(4)
    add = module.add

    def gradients() -> None:
        add(graded, 2.0).backward(ones)

    class Empty(torch.autograd.Function):
        """What a node of torch's graph costs that computes nothing."""

        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            ctx.save_for_backward(value)
            return torch.empty_like(value)

        @staticmethod
        def backward(ctx: Any, seed: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            (value,) = ctx.saved_tensors
            return torch.empty_like(value)

    def empty_gradients() -> None:
        Empty.apply(graded).backward(ones)

    found: Rows = {
        "empty torch Function, gradient": empty_gradients,
        "torch tensor": lambda: add(x, 2.0, _result=out),
        "torch result": lambda: add(x, 2.0),
        "torch gradient": gradients,
        "torch dict": lambda: module.of_pair({"a": x, "b": x}, _result=out),
    }
    for n in LENGTHS:
        items = [torch.zeros(4) for _ in range(n)]
        found[f"list of {n} torch tensors"] = lambda items=items: module.total(items)
    return found


def all_rows(with_torch: bool) -> Rows:
    device = spy.create_device(type=spy.DeviceType.cpu)
    module = spy.Module.load_from_source(device, "host_rows", SOURCE)
    makers = [rows_of_arguments, rows_of_results, rows_of_lists, *([rows_of_torch] if with_torch else [])]
    return {name: call for make in makers for name, call in make(device, module).items()}


def chosen(only: str) -> Rows:
    """torch takes long to import under valgrind: it is left out where all rows are asked for by whole names without it."""
    parts = only.split(",")
    rows = all_rows(not all(part[:1] == "=" and "torch" not in part for part in parts))
    return {name: call for name, call in rows.items() if any(is_meant(part, name) for part in parts)}


def is_meant(part: str, name: str) -> bool:
    return part[1:] == name if part.startswith("=") else part in name


def child(only: str, calls: int, folder: Path) -> None:
    """Runs each row `calls` and 3 `calls` times; callgrind dumps its count after each."""
    rows = {"nothing": lambda: None, **chosen(only)}
    for call in rows.values():
        for _ in range(30):  # Python changes code that has run a few times
            call()
    labels = []
    gc.collect()
    gc.disable()  # it would run in some rows and not in others
    callgrind = ctypes.CDLL(str(folder / "requests.so"))
    callgrind.start()
    for name, call in [*rows.items(), *list(rows.items())[1:2]]:  # the first is counted again: what happens once is over
        for times in (1, 3):
            callgrind.zero()
            for _ in range(times * calls):
                call()
            callgrind.dump(b"%d" % len(labels))
            labels.append((name, times))
    (folder / "labels.json").write_text(json.dumps(labels))


def counted(only: str, calls: int) -> dict[str, float]:
    """Instructions of one call by row, that of the loop taken off."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = environment_in(folder)
        (folder / "requests.cpp").write_text(REQUESTS)
        build = ["g++", "-O1", "-shared", "-fPIC", "-o", str(folder / "requests.so"), str(folder / "requests.cpp")]
        subprocess.run(build, check=True)
        run = [sys.executable, __file__, "--only", only, "--calls", str(calls), "--child", name]
        subprocess.run([sys.executable, __file__, "--only", only, "--warm"], env=environment, check=True)
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder / 'counts'}"]
        subprocess.run(valgrind + run, env=environment, check=True, stderr=subprocess.DEVNULL)
        found: dict[str, dict[int, int]] = {}
        for number, (row, times) in enumerate(json.loads((folder / "labels.json").read_text())):
            found.setdefault(row, {})[times] = total_of(folder, number)
    costs = {row: (counts[3] - counts[1]) / (2 * calls) for row, counts in found.items()}
    loop = costs.pop("nothing")
    return {row: cost - loop for row, cost in costs.items()}


def total_of(folder: Path, number: int) -> int:
    """The count of a dump, which says in its header what asked for it."""
    for path in folder.glob("counts*"):
        text = path.read_text()
        if re.search(rf"^desc: Trigger: .*\b{number}$", text, re.MULTILINE):
            found = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            assert found is not None
            return int(found.group(1))
    sys.exit(f"callgrind wrote no count of row {number}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names of rows, with commas between them")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.warm:
        for call in chosen(options.only).values():
            call()
        return
    if options.child:
        child(options.only, options.calls, options.child)
        return
    costs = counted(options.only, options.calls)
    for row, cost in costs.items():
        print(f"{row:26} {cost:10.0f} instructions a call", flush=True)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if options.keep:
        kept = {
            "script": "python benchmarks/host_rows.py", "python": version, "calls": options.calls,
            "instructions a call": {row: round(cost) for row, cost in costs.items()},
        }  # fmt: skip
        options.keep.write_text(json.dumps(kept, indent=1) + "\n")
    if options.against:
        compare(costs, json.loads(options.against.read_text()), version)


def compare(costs: dict[str, float], before: dict[str, Any], version: str) -> None:
    if before["python"] != version:
        print(f"not compared: the kept rows are of Python {before['python']}")
        return
    ratios = {row: costs[row] / cost for row, cost in before["instructions a call"].items() if row in costs}
    print(f"beside the kept rows: {min(ratios.values()):.2f} to {max(ratios.values()):.2f}")
    worse = [f"{row} {ratio:.2f}" for row, ratio in ratios.items() if ratio > MOST]
    if worse:
        sys.exit(f"more than a tenth above the kept rows: {', '.join(worse)}")


if __name__ == "__main__":
    main()
