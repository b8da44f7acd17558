"""Throws random values at the functions of fuzz.slang; run in a process of its own by test_fuzz.py.

    python fuzz_child.py DEVICE SEED CASES NOTES [FIRST]

Case N of a seed is the same wherever it starts: FIRST N, CASES 1 repeats it alone. NOTES is a file that always holds
the number of the case at hand, so that a crash or a hang names it. Exit code 1: the printed cases broke a rule.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import random
import resource
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

with contextlib.suppress(ImportError):
    import torch  # noqa: F401 - fuzz_values looks for it

import numpy as np
from fuzz_values import NAMES, Boom, Values

import slangpy as spy
from slangpy.plan import kernels as kernels_stage

ALLOWED = (
    spy.CallError, ValueError, TypeError, OverflowError, IndexError, NotImplementedError, RuntimeError, MemoryError
)  # fmt: skip
HANG_SECONDS = 30
MOST_BUILDS = {"null": 100, "cpu": 100, "vulkan": 60, "d3d12": 60, "cuda": 60}


def shown(value: Any) -> str:
    """repr of a value that may refuse."""
    try:
        return f"{type(value).__name__} {value!r}"[:300]
    except Exception as error:
        return f"{type(value).__name__} ({type(error).__name__} from repr)"


class NotBuilt(Exception):
    """Stands for the build of a kernel where enough of them were built."""


def limit_builds(most: int) -> None:
    """Kernels beyond `most` are planned and not compiled: random calls that fit are many, and compilers are slow."""
    start, build, count = kernels_stage.start, kernels_stage.build, 0

    def one_more() -> None:
        nonlocal count
        count += 1
        if count > most:
            raise NotBuilt

    def limited_start(*args: Any) -> Any:
        one_more()
        return start(*args)

    def limited_build(*args: Any) -> Any:
        if args[-1] is None:  # it was not started before
            one_more()
        return build(*args)

    kernels_stage.start, kernels_stage.build = limited_start, limited_build


class Fuzz:
    def __init__(self, device_name: str, seed: int) -> None:
        self.seed, self.name = seed, device_name
        self.device = spy.Device(type=spy.DeviceType[device_name], compiler_options={}, enable_hot_reload=False)
        source = Path(__file__).with_name("fuzz.slang").read_text(encoding="utf-8")
        self.module = spy.Module.load_from_source(self.device, "fuzz", source)
        closed = spy.Device(type=spy.DeviceType.cpu, compiler_options={}, enable_hot_reload=False)
        tensor = spy.Tensor.from_numpy(closed, np.zeros(3, np.float32))
        buffer = closed.create_buffer(size=16, usage=spy.BufferUsage.shader_resource)
        dead = [tensor, tensor.with_grads(), buffer, tensor.storage]
        closed.close()
        other_type = spy.DeviceType.cpu if device_name == "null" else spy.DeviceType.null
        other = spy.Device(type=other_type, compiler_options={}, enable_hot_reload=False)
        twin = spy.Device(type=spy.DeviceType[device_name], compiler_options={}, enable_hot_reload=False)
        self.values = Values(self.device, self.module, [other, twin], dead)
        self.problems: list[str] = []
        self.shows = False
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.calls = self.good_calls()

    def good_calls(self) -> list[tuple[Any, tuple[Any, ...], Any]]:
        """(function, arguments that fit, result) of each function; the result is None where there is none."""
        m, f3 = self.module, spy.float3

        def tensor(*shape: int, dtype: Any = np.float32, **options: Any) -> Any:
            return spy.Tensor.from_numpy(self.device, np.ones(shape, dtype), **options)

        body = {"pos": f3(2), "mass": 3.0, "inner": {"w": 4.0, "k": 5}}
        calls: list[tuple[Any, tuple[Any, ...], Any]] = [
            (m.add, (1.0, 2.0), 3.0), (m.count, (1,), 2), (m.natural, (1,), 2), (m.both, (True, True), True),
            (m.scale, (f3(1), 2.0), f3(2)), (m.pick, (spy.int2(1, 2), spy.bool3(True)), 1),
            (m.twice, (spy.float2x3.zeros(),), spy.float2x3.zeros()), (m.row_sum, ([1, 2, 3, 4],), 10.0),
            (m.nested_sum, ([[1, 2, 3], [4, 5, 6]],), 7), (m.body, (body,), 9.0), (m.make_body, (1.0,), None),
            (m.boxed, ({"_type": "Box<int2>", "item": spy.int2(1)}, {"w": 1.0, "k": 2}), 2.0),
            (m.area, ({"_type": "Disc", "r": 1.0},), 3.0), (m.mode, (1,), 1),
            (m.split, (1.0, spy.floatRef(), spy.floatRef()), None), (m.fill, (1.0, spy.ValueRef(f3()), spy.ValueRef({})), None),
            (m.grow, (tensor(3),), None), (m.generic, (1.0, 2.0), 3.0), (m.any_vector, (spy.float2(1, 2),), 1.0),
            (m.first, ([1.0, 2.0],), 1.0), (m.over, (1,), 1), (m.over, (1.0, 2.0), 3.0), (m.tensor, (tensor(3), 1), 1.0),
            (m.tensor_write, (tensor(2, 2), 1.0), None), (m.tensor_vector, (tensor(2, 3, target_slang_dtype="float3"),), 1.0),
            (m.tensor_diff, (tensor(3).with_grads(),), 1.0), (m.buffer, (tensor(3),), 1.0),
            (m.buffer_write, (tensor(3, dtype=np.int32),), None), (m.default_value, (1.0,), 8.0), (m.nothing, (), None),
            (m.named, (1.0,), 1.0), (m.Counter.get, ({"n": 1}, 2), 3), (m.Counter.bump, ({"n": 1}, 2), None),
            (m.Counter.half_of, (2.0,), 1.0), (m.Counter, (3,), None),
        ]  # fmt: skip
        if self.name == "cpu":
            calls += [(m.add_double, (1.0, 2.0), 2.0), (m.wide, (1, 2), 3), (m.narrow, (1, 2), 3)]
        return calls

    # --- one case
    def choose(self, rng: random.Random) -> tuple[Any, list[Any], dict[str, Any]]:
        """A function and arguments for it, of which one or several are random."""
        function, good, _ = rng.choice(self.calls)
        args: list[Any] = list(good)
        kwargs: dict[str, Any] = {}
        draw = self.values.draw
        what = rng.random()
        if what < 0.72 and args:
            args[rng.randrange(len(args))] = draw()
            if rng.random() < 0.15:
                args[rng.randrange(len(args))] = draw()
        elif what < 0.78:
            kwargs[rng.choice(NAMES)] = draw()
        elif what < 0.82:
            args.append(draw())
        elif what < 0.84 and args:
            args.pop()
        elif what < 0.90:
            kwargs["_result"] = draw()
        elif what < 0.92:
            kwargs["_thread_count"] = rng.choice((0, -1, 1, 2, 70, 1.5, True, "2", None, -(2**70), 2**70, draw(3)))
        elif what < 0.94:
            kwargs["_append_to"] = draw()
        elif what < 0.96:
            kwargs["_this"] = draw()
        else:
            function = self.modified(rng, function)
        if rng.random() < 0.3 and isinstance(function, spy.FunctionNode):
            function = function.bwds
            if "_result" not in kwargs and rng.random() < 0.5:
                kwargs["_result"] = rng.choice((spy.diffPair(0.0, 1.0), draw()))
        return function, args, kwargs

    def modified(self, rng: random.Random, function: Any) -> Any:
        draw = self.values.draw
        function = function if isinstance(function, spy.FunctionNode) else self.module.add
        step = rng.randrange(7)
        if step == 0:
            return function.map(draw(), *([draw()] if rng.random() < 0.5 else []))
        if step == 1:
            return function.map(tuple(rng.choice((0, 1, 2, -1, 3, 40)) for _ in range(rng.randint(0, 3))))
        if step == 2:
            return function.set({rng.choice(NAMES): draw()})
        if step == 3:
            return function.constants({rng.choice(NAMES): draw()})
        if step == 4:
            return function.return_type(draw())
        if step == 5:
            return function.bind(draw())
        return function.convert(rng.choice(("safe", "any", "none")))

    def run_case(self, index: int) -> None:
        rng = self.values.rng = random.Random(f"{self.seed}:{index}")
        self.values.made_stack = []
        function: Any = None
        try:
            function, args, kwargs = self.choose(rng)
            if self.shows:
                print("function", repr(function), "drew", self.values.made_stack, flush=True)
                print("arguments", [shown(a) for a in args], {k: shown(v) for k, v in kwargs.items()}, flush=True)
            function(*args, **kwargs)
            self.outcomes["worked"] += 1
        except NotBuilt:
            self.outcomes["not built"] += 1
        except Boom:
            self.outcomes["user's own exception"] += 1
        except RecursionError as error:
            self.report(index, "is no documented exception", error)
        except ALLOWED as error:
            self.outcomes[type(error).__name__] += 1
            self.judge(index, function, error)
        except BaseException as error:
            self.report(index, "is no documented exception", error)

    def judge(self, index: int, function: Any, error: Exception) -> None:
        """Whether an exception of a documented class says what it should."""
        text = str(error)
        if function is None:  # a modifier refused its argument
            if not text:
                self.report(index, "has no message", error)
        elif "rejected the kernel" in text or isinstance(error, spy.SlangCompileError):
            self.report(index, "comes from generated code", error)
        elif "fuzz::" not in text:
            self.report(index, "does not name the function", error)

    def report(self, index: int, what: str, error: BaseException) -> None:
        shown = "".join(traceback.format_exception(error, limit=-8))
        made = " ".join(self.values.made_stack)
        self.problems.append(f"case {index} ({made}): {type(error).__name__} {what}:\n{shown}")

    # --- between cases
    def check_good_calls(self, after: int) -> None:
        for function, args, expected in self.good_calls():
            try:
                got = function(*args)
            except Exception as error:
                self.report(after, f"raised by the good call of {function} after it", error)
                continue
            if expected is not None and self.name != "null" and got != expected:
                self.problems.append(f"after case {after} the good call of {function} gives {got}, not {expected}")

    def buffers(self) -> int:
        self.values.made_stack = []
        gc.collect()
        self.device.wait()
        gc.collect()
        return len(self.memory())

    def memory(self) -> list[str]:
        return [line for line in self.device._live_objects() if line.startswith(("Buffer", "Texture"))]


def memory_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> int:
    device, seed, cases, notes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    first = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(1000)
    faulthandler.enable()
    fuzz = Fuzz(device, seed)
    fuzz.shows = cases == 1
    fuzz.check_good_calls(first)
    buffers = fuzz.buffers()
    limit_builds(MOST_BUILDS[device])
    half = memory_mib()
    with notes.open("w") as note:
        for index in range(first, first + cases):
            if index % 100 == 0 or cases == 1:
                faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            note.seek(0)
            note.write(f"{index}\n")
            note.flush()
            fuzz.run_case(index)
            if index % 1000 == 999:
                fuzz.check_good_calls(index)
            if index == first + cases // 2:
                gc.collect()
                half = memory_mib()
    faulthandler.cancel_dump_traceback_later()
    fuzz.check_good_calls(first + cases - 1)
    left = fuzz.buffers()
    if left > buffers:
        newest = "\n".join(fuzz.memory()[-8:])
        fuzz.problems.append(f"{left} buffers are alive after the calls, {buffers} were before:\n{newest}")
    growth = memory_mib() - half
    print(f"{device}, seed {seed}, {cases} cases:", dict(fuzz.outcomes), f"memory of the second half {growth:+.0f} MiB")
    if cases >= 5000 and growth > 200:
        fuzz.problems.append(f"the second half of the calls kept {growth:.0f} MiB")
    for problem in fuzz.problems[:400]:
        print(problem)
    if fuzz.problems:
        print(f"{len(fuzz.problems)} problems")
    sys.stdout.flush()
    return 1 if fuzz.problems else 0


if __name__ == "__main__":
    sys.exit(main())
