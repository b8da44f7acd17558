"""Microseconds of one warm call by form, of this package and of shader-slang's in one run.

    python benchmarks/host_rows_peer.py --peer FOLDER [--ours FOLDER] [--device cuda] [--only list,torch] [--keep FILE.json]

Each folder holds a package called `slangpy`, which a process of its own imports; without --ours that is the installed one.
The processes take turns for --rounds rounds, and the median of each row is given. Arrays have four elements, so that a call
costs host time; the device's work of a batch of calls is waited for inside the time. What a call computed is compared with
NumPy before its time counts, and again after. A row that fails or ends its process says so, and the next row goes on.

`of plainest` is the row's time over the cheapest row with at least as many leaves in its arguments, of this package.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from host_source import COMMON

LENGTHS = (1, 16, 64)
SECONDS_OF_A_ROW = 150
GOAL, PLAINEST_GOAL = 1.3, 3.0


def source() -> str:
    text = "import slangpy;" + COMMON + """
float noise(uint seed, float a) { return (seed & 1) * 0 + a; }
float random(float r, float a) { return r * 0 + a; }
"""
    for n in LENGTHS:
        names = [f"x{i}" for i in range(n)]
        text += f"""
float tensors{n}(Tensor<float, 1> xs[{n}]) {{ float sum = 0; for (int i = 0; i < {n}; i++) sum += xs[i][i % 4]; return sum; }}
float writable_tensors{n}(RWTensor<float, 1> xs[{n}]) {{ float sum = 0; for (int i = 0; i < {n}; i++) sum += xs[i][i % 4]; return sum; }}
float numbers{n}(float xs[{n}]) {{ float sum = 0; for (int i = 0; i < {n}; i++) sum += xs[i]; return sum; }}
float pairs{n}(Pair xs[{n}]) {{ float sum = 0; for (int i = 0; i < {n}; i++) sum += xs[i].a; return sum; }}
float arguments{n}({", ".join(f"float {name}" for name in names)}) {{ return {" + ".join(names)}; }}
"""
    return text


Check = Callable[[Any], tuple[Any, Any]]
"""Of what a call gave: the numbers computed, and those expected."""


class Row:
    def __init__(self, leaves: int, call: Callable[[], Any], check: Check, only: str = "") -> None:
        self.leaves, self.call, self.check, self.only = leaves, call, check, only


def numbers_of(value: Any) -> np.ndarray:
    """Of a tensor of any package, an array or a number."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return np.asarray(value.detach().cpu().numpy())
    return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)


class Package:
    """The package that is imported as `slangpy`, and a device of it."""

    def __init__(self, device: str) -> None:
        self.spy: Any = importlib.import_module("slangpy")
        self.torch: Any = None
        kind = getattr(self.spy.DeviceType, device)
        if device == "cuda" and importlib.util.find_spec("torch") is not None:
            self.torch = importlib.import_module("torch")
            self.device = self.spy.create_torch_device(type=kind)
        else:
            self.device = self.spy.create_device(type=kind)
        self.module = self.spy.Module.load_from_source(self.device, "host_rows_peer", source())
        self.x = np.arange(4, dtype=np.float32) + 1
        self.is_ours = hasattr(self.module.add, "prepare")

    def wait(self) -> None:
        (getattr(self.device, "wait", None) or self.device.wait_for_idle)()
        if self.torch is not None:
            self.torch.cuda.synchronize()

    def sum_of_tensors(self, items: list[Any]) -> Callable[[list[Any]], Any]:
        """The function that takes such a list: the peer's Tensors fit RWTensor alone."""
        plain = getattr(self.module, f"tensors{len(items)}")
        try:
            plain(items)
        except Exception:  # of either package, which have classes of their own
            return getattr(self.module, f"writable_tensors{len(items)}")
        return plain

    def tensor(self, values: np.ndarray) -> Any:
        return self.spy.Tensor.from_numpy(self.device, values)

    def empty(self) -> Any:
        made = self.spy.Tensor.empty(self.device, (4,), "float")
        made.storage.copy_from_numpy(np.full(4, np.nan, np.float32))
        return made


Rows = dict[str, Callable[[Package], Row]]


def argument_rows() -> Rows:
    def given(values: Any) -> Check:
        return lambda result: (result, values)

    def numbers(p: Package) -> Row:
        return Row(2, lambda: p.module.add(1.0, 2.0), given(3.0))

    def two(p: Package, second: Any = None) -> Row:
        x, out = p.tensor(p.x), p.empty()
        other, plus = (x, p.x) if second is None else (second, second)
        return Row(3, lambda: p.module.add(x, other, _result=out), lambda _: (out, p.x + plus))

    def array(p: Package) -> Row:
        out = p.empty()
        return Row(3, lambda: p.module.add(p.x, 2.0, _result=out), lambda _: (out, p.x + 2))

    def vectors(p: Package) -> Row:
        values = np.arange(12, dtype=np.float32).reshape(4, 3)
        v = p.spy.Tensor.empty(p.device, (4,), "float3")
        v.storage.copy_from_numpy(values)
        return Row(2, lambda: p.module.shift(v, 2.0), lambda r: (r.storage.to_numpy().view(np.float32), values.reshape(-1) + 2))

    def view(p: Package) -> Row:
        part, out = p.tensor(np.concatenate([p.x, p.x])).view((4,), (1,), 4), p.empty()
        return Row(3, lambda: p.module.add(part, 2.0, _result=out), lambda _: (out, p.x + 2))

    def made_view(p: Package) -> Row:
        whole, out = p.tensor(np.concatenate([p.x, p.x])), p.empty()
        call = lambda: p.module.add(whole.view((4,), (1,), 4), 2.0, _result=out)  # noqa: E731
        return Row(3, call, lambda _: (out, p.x + 2))

    def pair(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()
        return Row(3, lambda: p.module.of_pair({"a": x, "b": x}, _result=out), lambda _: (out, 2 * p.x))

    def nested(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()
        call = lambda: p.module.of_nested({"pair": {"a": x, "b": x}, "c": 1.0}, _result=out)  # noqa: E731
        return Row(4, call, lambda _: (out, 2 * p.x + 1))

    def instances(p: Package) -> Row:
        x, v = p.tensor(p.x * 0), p.tensor(p.x)
        bodies, counted = p.spy.InstanceList(p.module.Body, {"x": x, "v": v}), [0]

        def call() -> None:
            counted[0] += 1
            bodies.step(1.0)

        return Row(3, call, lambda _: (x, p.x * counted[0]))

    def out_argument(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()
        return Row(2, lambda: p.module.write(x, out), lambda _: (out, 2 * p.x))

    def mapped(p: Package, each: bool) -> Row:
        x, out = p.tensor(p.x), p.empty()
        once = p.module.add.map((0,), (0,))
        call = (lambda: p.module.add.map((0,), (0,))(x, x, _result=out)) if each else (lambda: once(x, x, _result=out))
        return Row(3, call, lambda _: (out, 2 * p.x))

    return {
        "numbers": numbers,
        "Tensor and number": lambda p: two(p, 2.0),
        "two Tensors": two,
        "NumPy array": array,
        "Tensor of float3": vectors,
        "view": view,
        "view made each time": made_view,
        "dict": pair,
        "nested dict": nested,
        "InstanceList": instances,
        "out argument": out_argument,
        "map": lambda p: mapped(p, False),
        "map made each time": lambda p: mapped(p, True),
    }


def generator_rows() -> Rows:
    def texture(p: Package, each: bool) -> Row:
        values = np.arange(64, dtype=np.float32).reshape(4, 4, 4)
        made = p.device.create_texture(
            format=p.spy.Format.rgba32_float, width=4, height=4, usage=p.spy.TextureUsage.shader_resource, data=values
        )
        grid = p.spy.grid((4, 4))
        call = lambda: p.module.of_texture(p.spy.grid((4, 4)) if each else grid, made)  # noqa: E731
        return Row(2, call, lambda r: (np.sort(numbers_of(r).reshape(-1)), np.arange(0, 64, 4)))

    def call_id(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()
        return Row(3, lambda: p.module.scaled(p.spy.call_id(), x, _result=out), lambda _: (out, np.arange(4) * p.x))

    def hash_of(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()
        return Row(3, lambda: p.module.noise(p.spy.wang_hash(), x, _result=out), lambda _: (out, p.x))

    def random(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()
        return Row(3, lambda: p.module.random(p.spy.rand_float(0, 1), x, _result=out), lambda _: (out, p.x))

    return {
        "texture": lambda p: texture(p, False),
        "grid made each time": lambda p: texture(p, True),
        "call_id": call_id,
        "wang_hash": hash_of,
        "rand_float": random,
    }


def result_rows() -> Rows:
    def result(p: Package, **options: Any) -> Row:
        x = p.tensor(p.x)
        return Row(2, lambda: p.module.add(x, 2.0, **options), lambda r: (r, p.x + 2))

    def typed(p: Package) -> Row:
        x, function = p.tensor(p.x), p.module.add.return_type("numpy")
        return Row(2, lambda: function(x, 2.0), lambda r: (r, p.x + 2))

    def backward(p: Package) -> Row:
        x, out, ones = p.tensor(p.x).with_grads(), p.empty().with_grads(), np.ones(4, np.float32)
        out.grad_in.storage.copy_from_numpy(ones)
        x.grad_out.storage.copy_from_numpy(0 * ones)
        counted = [0]

        def call() -> None:
            counted[0] += 1
            p.module.add.bwds(x, 2.0, _result=out)

        return Row(3, call, lambda _: (x.grad_out, ones * counted[0]))

    def recorded(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()

        def call() -> None:
            encoder = p.device.create_command_encoder()
            p.module.add.append_to(encoder, x, 2.0, _result=out)
            p.device.submit_command_buffer(encoder.finish())

        return Row(3, call, lambda _: (out, p.x + 2))

    def prepared(p: Package) -> Row:
        x, out = p.tensor(p.x), p.empty()
        call = p.module.add.prepare(x, 2.0, _result=out) if p.is_ours else lambda: p.module.add(x, 2.0, _result=out)
        return Row(3, call, lambda _: (out, p.x + 2), "prepare, beside the peer's plain call")

    return {
        "result Tensor": result,
        "result NumPy": lambda p: result(p, _result="numpy"),
        "return_type": typed,
        "bwds": backward,
        "recorded": recorded,
        "prepared": prepared,
    }


def list_rows(n: int) -> Rows:
    def given(function: Any, items: list[Any], expected: float, leaves: int) -> Row:
        return Row(leaves, lambda: function(items), lambda r: (r, expected))

    def tensors(p: Package) -> Row:
        items = [p.tensor(p.x + i) for i in range(n)]
        return given(p.sum_of_tensors(items), items, sum(float(p.x[i % 4]) + i for i in range(n)), n)

    def numbers(p: Package) -> Row:
        return given(getattr(p.module, f"numbers{n}"), [0.5 * i for i in range(n)], sum(0.5 * i for i in range(n)), n)

    def pairs(p: Package) -> Row:
        items = [{"_type": "Pair", "a": 0.5 * i, "b": 2.0} for i in range(n)]
        return given(getattr(p.module, f"pairs{n}"), items, sum(0.5 * i for i in range(n)), 2 * n)

    def arguments(p: Package) -> Row:
        items, out = [p.tensor(p.x + i) for i in range(n)], p.empty()
        function = getattr(p.module, f"arguments{n}")
        return Row(n + 1, lambda: function(*items, _result=out), lambda _: (out, n * p.x + n * (n - 1) / 2))

    return {
        f"{n} Tensors as arguments": arguments,
        f"list of {n} Tensors": tensors,
        f"list of {n} numbers": numbers,
        f"list of {n} dicts": pairs,
    }


def torch_rows() -> Rows:
    def values(p: Package) -> Any:
        return p.torch.tensor(p.x, device="cuda")

    def given(p: Package) -> Row:
        x, out = values(p), values(p) * float("nan")
        return Row(3, lambda: p.module.add(x, 2.0, _result=out), lambda _: (out, p.x + 2))

    def allocated(p: Package) -> Row:
        x = values(p)
        return Row(2, lambda: p.module.add(x, 2.0), lambda r: (r, p.x + 2))

    def gradient(p: Package) -> Row:
        x, ones = values(p).requires_grad_(True), p.torch.ones(4, device="cuda")

        def call() -> Any:
            x.grad = None
            p.module.add(x, 2.0).backward(ones)
            return x.grad

        return Row(2, call, lambda r: (r, np.ones(4)))

    def pair(p: Package) -> Row:
        x, out = values(p), values(p) * float("nan")
        return Row(3, lambda: p.module.of_pair({"a": x, "b": x}, _result=out), lambda _: (out, 2 * p.x))

    def items(p: Package, n: int) -> Row:
        xs = [values(p) + i for i in range(n)]
        function = p.sum_of_tensors(xs)
        return Row(n, lambda: function(xs), lambda r: (r, sum(float(p.x[i % 4]) + i for i in range(n))))

    def arguments(p: Package, n: int) -> Row:
        xs, out = [values(p) + i for i in range(n)], values(p) * float("nan")
        function = getattr(p.module, f"arguments{n}")
        return Row(n + 1, lambda: function(*xs, _result=out), lambda _: (out, n * p.x + n * (n - 1) / 2))

    rows: Rows = {"torch tensor": given, "torch result": allocated, "torch gradient": gradient, "torch dict": pair}
    for n in LENGTHS:
        rows[f"{n} torch tensors as arguments"] = lambda p, n=n: arguments(p, n)
        rows[f"list of {n} torch tensors"] = lambda p, n=n: items(p, n)
    return rows


def all_rows(only: str, with_torch: bool) -> Rows:
    rows = argument_rows() | generator_rows() | result_rows()
    for n in LENGTHS:
        rows |= list_rows(n)
    if with_torch:
        rows |= torch_rows()
    return {name: make for name, make in rows.items() if any(part in name for part in only.split(","))}


def wrong(row: Row, result: Any) -> str:
    got, expected = row.check(result)
    got, expected = np.asarray(numbers_of(got), np.float64), np.asarray(expected, np.float64)
    if got.size == expected.size and np.allclose(got.reshape(expected.shape), expected, rtol=1e-5):
        return ""
    return f"computed {got.reshape(-1)[:4]}, expected {expected.reshape(-1)[:4]}"


def microseconds(p: Package, call: Callable[[], Any], seconds: float = 0.4) -> float:
    """The median over batches of some 20 ms."""
    begun = time.perf_counter()
    count = 0
    while count < 20 or time.perf_counter() - begun < 0.05:
        call()
        count += 1
    p.wait()
    batch = max(1, int(0.02 * count / (time.perf_counter() - begun)))
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < 5 or time.perf_counter() < end:
        begun = time.perf_counter()
        for _ in range(batch):
            call()
        p.wait()
        found.append((time.perf_counter() - begun) / batch * 1e6)
    return statistics.median(found)


def measured(p: Package, make: Callable[[Package], Row]) -> dict[str, Any]:
    try:
        row = make(p)
        result = row.call()
        p.wait()
        if problem := wrong(row, result):
            return {"failed": problem}
        found = microseconds(p, row.call)
        if problem := wrong(row, row.call()):
            return {"failed": f"after many calls: {problem}"}
    except Exception as problem:  # the other rows are wanted all the same
        return {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    return {"us": found, "leaves": row.leaves, "only": row.only}


def child(device: str, names: list[str]) -> None:
    """Tells of each row in a line, as it is measured."""
    p = Package(device)
    rows = all_rows("", p.torch is not None)
    print(json.dumps({"version": getattr(p.spy, "__version__", "?"), "path": str(Path(p.spy.__file__).parent)}), flush=True)
    for name in names:
        found = measured(p, rows[name]) if name in rows else {"failed": "needs torch and CUDA"}
        print(json.dumps({"row": name, **found}), flush=True)


def lines_of(folder: str, device: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """What a process prints. It is ended when a row takes too long."""
    environment = dict(os.environ)
    if folder:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, __file__, "--device", device, "--child", json.dumps(names)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    timer = threading.Timer(SECONDS_OF_A_ROW, process.kill)
    timer.start()
    for line in process.stdout:
        timer.cancel()
        if line.startswith("{"):
            yield json.loads(line)
        timer = threading.Timer(SECONDS_OF_A_ROW, process.kill)
        timer.start()
    timer.cancel()
    code = process.wait()
    if code:
        yield {"ended": f"the process ended with {code}"}


def round_of(folder: str, device: str, names: list[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """About the package, and its rows. Where a row ends the process, another takes the rest."""
    about: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    while left := [name for name in names if name not in found]:
        is_started = False
        for line in lines_of(folder, device, left):
            if "row" in line:
                found[line.pop("row")] = line
            elif "version" in line:
                about, is_started = line, True
            else:
                left = [name for name in names if name not in found]
                if left:
                    found[left[0]] = {"failed": line["ended"]}
        if not is_started:
            sys.exit(f"the package in {folder or 'this environment'} does not start")
    return about, found


def joined(rounds: list[dict[str, dict[str, Any]]], name: str) -> dict[str, Any]:
    rows = [found[name] for found in rounds]
    times = [row["us"] for row in rows if "us" in row]
    return {**rows[-1], "us": statistics.median(times)} if times else rows[-1]


def table(names: list[str], ours: list[Any], peers: list[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in names:
        own, peer = joined(ours, name), joined(peers, name)
        row: dict[str, Any] = {"row": name, "us": own.get("us"), "peer": peer.get("us"), "leaves": own.get("leaves")}
        row |= {key: value for key, value in (("failed", own.get("failed")), ("peer failed", peer.get("failed"))) if value}
        if own.get("only"):
            row["note"] = own["only"]
        if row["us"] and row["peer"]:
            row["ratio"] = row["peer"] / row["us"]
        rows.append(row)
    timed = [row for row in rows if row["us"] and "note" not in row]
    for row in timed:
        row["of plainest"] = row["us"] / min(other["us"] for other in timed if other["leaves"] >= row["leaves"])
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    def number(value: float | None, digits: int = 2) -> str:
        return f"{value:9.{digits}f}" if value else f"{'-':>9}"

    print(f"{'row':30}{'ours us':>9}{'peer us':>9}{'peer/ours':>10}{'leaves':>8}{'of plainest':>12}")
    for row in rows:
        text = f"{row['row']:30}{number(row['us'])}{number(row['peer'])} {number(row.get('ratio'))}{row['leaves'] or '-':>8}"
        print(text + f"   {number(row.get('of plainest'))}")
        for key in ("failed", "peer failed"):
            if key in row:
                print(f"    {key}: {row[key].splitlines()[0][:150]}")
    slow = [f"{row['row']} {row['ratio']:.2f}" for row in rows if "ratio" in row and row["ratio"] < GOAL]
    dear = [f"{row['row']} {row['of plainest']:.2f}" for row in rows if row.get("of plainest", 0) > PLAINEST_GOAL]
    print(f"below {GOAL} times the peer's speed: {', '.join(slow) or 'none'}")
    print(f"above {PLAINEST_GOAL:.0f} times the plainest: {', '.join(dear) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="folder with shader-slang's package")
    parser.add_argument("--ours", default="", help="folder with this package; without, what is installed")
    parser.add_argument("--device", default="cuda", choices=["cuda", "vulkan", "cpu"])
    parser.add_argument("--only", default="", help="parts of names of rows, with commas between them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="where the rows go as JSON")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.device, json.loads(options.child))
        return
    if not options.peer:
        parser.error("--peer is needed: a folder made by `pip install --target FOLDER slangpy==0.43.1`")
    names = list(all_rows(options.only, options.device == "cuda"))
    found: dict[str, list[Any]] = {options.ours: [], options.peer: []}
    about: dict[str, Any] = {}
    for _ in range(options.rounds):
        for folder, rounds in found.items():
            about[folder], rows = round_of(folder, options.device, names)
            rounds.append(rows)
            print(f"# {about[folder]['version']} in {about[folder]['path']}", file=sys.stderr, flush=True)
    rows = table(names, found[options.ours], found[options.peer])
    show(rows)
    if options.keep:
        kept = {
            "command": "python benchmarks/host_rows_peer.py", "device": options.device, "rounds": options.rounds,
            "versions": [about[folder]["version"] for folder in found], "rows": rows,
        }  # fmt: skip
        options.keep.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
