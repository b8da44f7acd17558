"""What compiling programs takes, and whose processor time it is: Slang's, that of the downstream compiler, or ours.

    python benchmarks/compile_times.py [--device cpu|vulkan|cuda] [--only chain,function] [--limit 60] [--own] [--keep]

Each program is loaded and called, or differentiated, in a process of its own with nothing cached, after a small one has been:
what only the first kernel of a process needs is not in the figures (`first_call.py` has that). `perf` (of linux-tools) takes
samples of the process and of all that it starts; a sample belongs to the library or program whose code ran, and what ran in
the kernel or in libc is shared among these in proportion, within a process. "cuda" needs NVRTC and no GPU: kernels are
compiled and not run.

--own lists the functions of ours that took most; --keep writes the rows to benchmarks/results/compile_times.json, beside those
of other devices. A program that takes longer than --limit seconds is written down as such.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RATE = 1999
"""Samples a second."""

BRANCHES = """    float y{k} = sin(s * 0.01f) * a + {k} * 0.001f;
    if (y{k} > v.x)
        s += y{k} * v.y;
    else
        s -= y{k} * 0.5f;
"""
STRAIGHT = """    float x{k} = s * a + {k} * 0.001f;
    float y{k} = sin(x{k}) * 0.5f + v.y;
    s += x{k} * y{k} * 0.01f;
"""
CONDITION = "    if (s > {k} * 0.01f) s = s * v.x + a;\n"


def body_of(step: str, lines: int) -> str:
    return "".join(step.format(k=k) for k in range(lines // step.count("\n")))


def scalar(statements: str) -> str:
    return f"[Differentiable] float f(float a, float3 v)\n{{\n    float s = a;\n{statements}    return s;\n}}\n"


def struct_of(count: int) -> str:
    names = [f"a{k}" for k in range(count)]
    members = "".join(f"    float {name};\n" for name in names)
    return (
        f"struct S : IDifferentiable\n{{\n{members}}};\n"
        f"[Differentiable] float f(S s, float3 v) {{ return ({' + '.join(f's.{name}' for name in names)}) * v.x; }}\n"
    )


def overloads_of(count: int) -> str:
    return "".join(
        f"struct T{k} : IDifferentiable {{ float a; float b[{k + 1}]; }};\n"
        f"[Differentiable] float f(T{k} t, float3 v) {{ return t.a * v.x * {k + 1}; }}\n"
        for k in range(count - 1)
    ) + scalar("    s = sin(s) * v.x;\n")


def functions_of(count: int) -> str:
    loop = """    float kept[4];
    for (int i = 0; i < 4; i++)
        kept[i] = v[i % 3] * s;
    [MaxIters(4)] for (int i = 0; i < 4; i++)
        s = s * a + kept[i];
"""
    return "".join(scalar(loop).replace(" f(", f" f{k}(") for k in range(count - 1)) + scalar(loop)


def generics_of(depth: int) -> str:
    nested = "Sine"
    for _ in range(depth):
        nested = f"Then<Scaled<{nested}>, Sine>"
    return f"""interface IStep {{ [Differentiable] float apply(float x, no_diff float by); }};
struct Sine : IStep {{ [Differentiable] float apply(float x, no_diff float by) {{ return sin(x) * by; }} }};
struct Scaled<T : IStep> : IStep {{ [Differentiable] float apply(float x, no_diff float by) {{ T t; return t.apply(x * by, by); }} }};
struct Then<A : IStep, B : IStep> : IStep
{{
    [Differentiable] float apply(float x, no_diff float by) {{ A a; B b; return b.apply(a.apply(x, by), by); }}
}};
{scalar(f"    {nested} all;{chr(10)}    s = all.apply(s, v.x);{chr(10)}")}"""


def imports_of(count: int) -> str:
    """The module. What it imports is written by `write_imports`."""
    imports = "".join(f"import part{k};\n" for k in range(count))
    return imports + scalar("".join(f"    s += f{k}(s, v) * 0.1f;\n" for k in range(count)))


def write_imports(count: int, folder: str) -> None:
    for k in range(count):
        text = body_of(STRAIGHT, 30)
        others = "".join(scalar(text).replace(" f(", f" other{k}_{j}(") for j in range(8))
        Path(folder, f"part{k}.slang").write_text(others + scalar(text).replace(" f(", f" f{k}("), "utf-8")


@dataclass(frozen=True)
class Program:
    """`sizes`: of what the name counts. The function is f(a, v), of a float and a float3."""

    name: str
    sizes: tuple[int, ...]
    source: Callable[[int], str]


PROGRAMS = [
    Program("chain of statements", (20, 100, 400), lambda n: scalar("    s = exp(-s) + v.x;\n" * n)),
    Program("products, statements", (20, 100, 400), lambda n: scalar("    s = s * a + v.x;\n" * n)),
    Program("function, lines", (150, 300, 600), lambda n: scalar(body_of(STRAIGHT, n))),
    Program("function with branches, lines", (50, 100, 150), lambda n: scalar(body_of(BRANCHES, n))),
    Program("conditions", (16, 100), lambda n: scalar(body_of(CONDITION, n))),
    Program("struct, tensors", (16, 64), struct_of),
    Program("overloads", (8, 32), overloads_of),
    Program("functions", (25, 100), functions_of),
    Program("nested generics, depth", (2, 4, 8), generics_of),
    Program("imports", (2, 8), imports_of),
]


@dataclass
class Row:
    program: str
    size: int
    mode: str
    elapsed: float = 0.0
    processor: dict[str, float] = field(default_factory=dict)
    own: dict[str, float] = field(default_factory=dict)
    why_not: str = ""

    @property
    def share(self) -> float:
        return self.processor.get("ours", 0.0) / max(sum(self.processor.values()), 1e-9)


def arguments(spy: Any, program: str, size: int, device: Any) -> list[Any]:
    numbers = np.linspace(0.4, 0.9, 5, dtype=np.float32)
    v = spy.float3(0.3, 0.2, 0.1)

    def tensor() -> Any:
        return spy.Tensor.from_numpy(device, numbers).with_grads(zero=True)

    if program == "struct, tensors":
        return [{"_type": "S", **{f"a{k}": tensor() for k in range(size)}}, v]
    return [tensor(), v]


def child(kind: str, name: str, size: int, mode: str, folder: str) -> None:
    """Loads and calls one program. Samples are taken from the end of a small one on."""
    import time

    import slangpy as spy
    from slangpy.testing import CudaCodegen

    device = spy.Device(type=spy.DeviceType[kind if kind != "cuda" else "cpu"])
    owner: Any = CudaCodegen("sm_80", (folder,)) if kind == "cuda" else spy.Device(
        type=spy.DeviceType[kind], compiler_options={"include_paths": [folder]}
    )  # fmt: skip
    device = device if kind == "cuda" else owner

    def run(module: Any, values: list[Any]) -> None:
        out = spy.Tensor.empty(device, (5,), "float")
        if mode == "bwds":
            out = out.with_grads(zero=True)
        if kind == "cuda":
            owner.build(module.f.bwds if mode == "bwds" else module.f, *values, _result=out)
        else:
            (module.f.bwds if mode == "bwds" else module.f)(*values, _result=out)

    def load(name: str, text: str) -> Any:
        return owner.load_from_source(name, text) if kind == "cuda" else spy.Module.load_from_source(owner, name, text)

    source = next(p.source for p in PROGRAMS if p.name == name)(size)
    if name == "imports":
        write_imports(size, folder)
    values = arguments(spy, name, size, device)
    run(load("warm", scalar("    s = s * v.x;\n")), arguments(spy, "", 0, device))
    _ask_perf(folder, "enable")
    begin = time.perf_counter()
    run(load("measured", source), values)
    elapsed = time.perf_counter() - begin
    _ask_perf(folder, "disable")
    print(json.dumps(elapsed))


def _ask_perf(folder: str, word: str) -> None:
    with open(f"{folder}/control", "w") as control:
        control.write(word + "\n")
    with open(f"{folder}/answers") as answers:
        answers.readline()


def owner_of(program: str, library: str) -> str:
    """Whose the code of a library is, in a process of a program; "" where that depends on who called it."""
    if "libslang" in library or program == "_slang_worker":
        return "slang"
    if "nvrtc" in library or "nvJitLink" in library:
        return "nvrtc"
    if program in ("g++", "cc1plus", "as", "ld", "collect2", "c++"):
        return "g++"
    if any(word in library for word in ("LLVM", "vulkan", "lavapipe", "lvp", "[JIT]", "gallium")):
        return "driver"
    return "" if any(word in library for word in ("[kernel", "libc.so", "libstdc++", "ld-linux", "libm.so", "[vdso]")) else "ours"


def shares(data: str) -> dict[str, float]:
    """Seconds by owner."""
    found: dict[str, float] = defaultdict(float)
    by_process: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for count, program, library in _report(data, "comm,dso"):
        by_process[program][owner_of(program, library)] += count / RATE
    for parts in by_process.values():
        shared, known = parts.pop("", 0.0), sum(parts.values())
        for owner, seconds in parts.items():
            found[owner] += seconds * (1 + shared / known)
        if not parts:
            found["ours"] += shared
    return {name: round(seconds, 4) for name, seconds in sorted(found.items())}


def own_functions(data: str) -> dict[str, float]:
    rows = [(c / RATE, f"{library} {symbol}") for c, program, library, symbol in _report(data, "comm,dso,sym")
            if owner_of(program, library) == "ours"]  # fmt: skip
    return {name: round(seconds, 4) for seconds, name in sorted(rows, reverse=True)[:12]}


def _report(data: str, sort: str) -> list[tuple[Any, ...]]:
    command = ["perf", "report", "-i", data, "--stdio", "-F", f"sample,{sort}", "-t", ";", "--percent-limit", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(";") for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return [(int(row[0]), *(part.strip() for part in row[1:])) for row in rows if row[0].strip().isdigit()]


def measured(kind: str, program: Program, size: int, mode: str, limit: float) -> Row:
    row = Row(program.name, size, mode)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("control", "answers"):
            os.mkfifo(f"{folder}/{name}")
        environment = {**os.environ, "SLANGPY_CACHE_DIR": f"{folder}/cache", "SLANGPY_PROGRESS": "0"}
        command = ["perf", "record", "-q", "-F", str(RATE), "-o", f"{folder}/data", "-D", "-1",
                   "--control", f"fifo:{folder}/control,{folder}/answers", "--",
                   sys.executable, __file__, "--child", kind, program.name, str(size), mode, folder]  # fmt: skip
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=limit + 10, check=False
            )
        except subprocess.TimeoutExpired:
            row.why_not = f"over {limit:.0f} s"
            return row
        if done.returncode:
            row.why_not = (done.stderr.strip().splitlines() or ["failed"])[-1][:200]
            return row
        row.elapsed = round(json.loads(done.stdout.splitlines()[-1]), 4)
        row.processor, row.own = shares(f"{folder}/data"), own_functions(f"{folder}/data")
    return row


def show(row: Row, own: bool) -> None:
    parts = "  ".join(f"{name} {seconds * 1e3:7.0f}" for name, seconds in row.processor.items())
    figures = row.why_not or f"{row.elapsed * 1e3:8.0f}  {parts}  ours {row.share:5.1%}"
    print(f"{row.program:30} {row.size:4} {row.mode:5} {figures}", flush=True)
    for name, seconds in row.own.items() if own else ():
        print(f"      {seconds * 1e3:7.1f}  {name[:120]}")


def keep(kind: str, rows: list[Row]) -> None:
    path = HERE / "results" / "compile_times.json"
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known = {(r["program"], r["size"], r["mode"]): r for r in record.get(kind, {}).get("seconds", [])}
    for row in rows:
        values = {name: value for name, value in asdict(row).items() if value and name != "own"}
        known[row.program, row.size, row.mode] = {**values, "share of ours": round(row.share, 3)}
    record[kind] = {
        "script": f"python benchmarks/compile_times.py --device {kind} --keep",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "seconds": list(known.values()),
    }
    path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "vulkan", "cuda"])
    parser.add_argument("--only", default="", help="programs whose names begin with one of these, separated by commas")
    parser.add_argument("--modes", default="call,bwds")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, name, size, mode, folder = options.child
        child(kind, name, int(size), mode, folder)
        return 0
    if shutil.which("perf") is None:
        raise SystemExit("compile_times.py takes samples with `perf`, which is not installed (linux-tools, linux-perf)")
    print(f"{options.device}: milliseconds elapsed, and of processor time")
    rows = []
    for program in PROGRAMS:
        if not program.name.startswith(tuple(options.only.split(","))):
            continue
        for size in program.sizes:
            for mode in options.modes.split(","):
                rows.append(measured(options.device, program, size, mode, options.limit))
                show(rows[-1], options.own)
    if options.keep:
        keep(options.device, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
