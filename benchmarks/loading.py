"""How long sources take to load and to differentiate, by their length, and what share of that is the package's own.

    python benchmarks/loading.py [--lines 250,3000,6000] [--function 300,600,1200] [--limit 300] [--output results.json]

Modules of many functions, and one differentiable function of many lines, on the CPU device, with nothing cached. Each is measured in a
process of its own, which ends after --limit seconds. `rewriting` is what the rules over sources take, their parsing included;
`facts` what planning reads off the tree. Both are part of `loading` and of the first calls, and are measured by themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PART = """
[Differentiable] float part_{k}(float a, float3 v, int n)
{{
    float s = a * {k}, kept[4];
    for (int i = 0; i < 4; i++) kept[i] = v[i % 3] * s;
    [MaxIters(8)] for (int i = n; i > 0; i--)
    {{
        if (i == 2) continue;
        s = s * a + kept[i % 4];
    }}
    return s > 1 ? sqrt(s) : s * kept[n % 4];
}}
"""
"""Twelve lines."""
STEP = """    float x{k} = s * a + {k} * 0.001;
    float y{k} = sin(x{k}) * 0.5 + v.y;
    s += x{k} * y{k} * 0.01;
"""
"""Without branches: the time for derivatives of those is another one, see docs/gradients.md."""


def module_of(lines: int) -> str:
    return "".join(PART.format(k=k) for k in range(lines // PART.count("\n")))


def function_of(lines: int) -> str:
    steps = "".join(STEP.format(k=k) for k in range((lines - 6) // STEP.count("\n")))
    return f"[Differentiable] float part_0(float a, float3 v, int n)\n{{\n    float s = a;\n{steps}    return s;\n}}\n"


def seconds(run: Callable[[], Any], times: int = 1) -> float:
    """The shortest of some runs."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return min(found)


def child(kind: str, lines: int) -> None:
    """Prints a line of JSON for each figure as it is known."""
    import slangpy as spy
    from slangpy._slang import rewrite
    from slangpy.base.folders import LIBRARY
    from slangpy.compiler.modules.facts import TextFacts

    def tell(**figures: Any) -> None:
        print(json.dumps(figures), flush=True)

    source = (module_of if kind == "module" else function_of)(lines)
    device = spy.create_device(type=spy.DeviceType.cpu)
    spy.Module.load_from_source(device, "warm", "float f(float x) { return x; }").f(1.0)
    tell(rewriting=seconds(lambda: rewrite(source, "/x.slang", [LIBRARY], [LIBRARY], "", True), 3))
    tell(facts=seconds(lambda: TextFacts(source).may_loop("part_0"), 3))
    loaded: list[Any] = []
    tell(loading=seconds(lambda: loaded.append(spy.Module.load_from_source(device, "long", source))))
    function = loaded[0].part_0
    x = spy.Tensor.from_numpy(device, np.full(4, 0.5, np.float32)).with_grads(zero=True)
    tell(call=seconds(lambda: function(x, spy.float3(1, 2, 3), 3, _result="numpy")))
    y = function(x, spy.float3(1, 2, 3), 3, _result="tensor").with_grads()
    tell(bwds=seconds(lambda: function.bwds(x, spy.float3(1, 2, 3), 3, _result=y)))


def measured(kind: str, lines: int, limit: float) -> dict[str, Any]:
    """The figures of one process in seconds; `over` where the limit ended it, with what it was then doing."""
    figures: dict[str, Any] = {"kind": kind, "lines": lines}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as output:
        environment = {**os.environ, "SLANGPY_CACHE_DIR": folder, "SLANGPY_PROGRESS": "0"}
        command = [sys.executable, __file__, "--child", kind, str(lines)]
        process = subprocess.Popen(command, stdout=output, env=environment, start_new_session=True)
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            figures["over"] = limit
            process.kill()
            process.wait()
        output.seek(0)
        for line in output:
            figures |= {name: round(value, 4) for name, value in json.loads(line).items()}
    if process.returncode and "over" not in figures:
        figures["failed"] = process.returncode
    if "loading" in figures:
        figures["share of loading"] = round((figures["rewriting"] + figures["facts"]) / figures["loading"], 3)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", default="250,3000,6000", help="lengths of modules")
    parser.add_argument("--function", default="300,600,1200", help="lengths of one function")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each")
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]))
        return 0
    rows = []
    for kind, lengths in (("module", options.lines), ("function", options.function)):
        for lines in filter(None, lengths.split(",")):
            rows.append(measured(kind, int(lines), options.limit))
            print(rows[-1], flush=True)
    if options.output:
        machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
        script = " ".join(["python benchmarks/loading.py", *sys.argv[1:]])
        options.output.write_text(json.dumps({"script": script, "machine": machine, "seconds": rows}, indent=1) + "\n")
    return 1 if any("failed" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
