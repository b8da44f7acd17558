"""Passes every container, above all empty ones, for every kind of parameter; run in a process of its own.

    python container_child.py DEVICE NOTES [CASE]

NOTES is a file that always holds the case at hand, so that a crash names it; CASE repeats that one alone. Exit code 1: the
printed cases raised errors that do not name function and parameter.
"""

from __future__ import annotations

import array
import collections
import faulthandler
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    torch: Any = None

import slangpy as spy
from slangpy.plan import kernels as kernels_stage

FUNCTIONS = re.compile(r"^(\[Differentiable\] )?float (\w+)(?:<[^(]*>)?\((.+) p(\S*)\) \{ (.*) \}$", re.MULTILINE)
RAW = ("view", "view_of_vectors", "pointer", "buffer", "buffer_of_vectors", "written_buffer", "bytes", "tensor",
       "tensor_of_vectors", "array", "array_of_structs", "has_buffer", "has_tensor", "number", "vector")  # fmt: skip
ALLOWED = (ValueError, TypeError, RuntimeError, OverflowError, NotImplementedError)
BUILDS = int(os.environ.get("SLANGPY_TEST_MANY", "1"))
"""Kernels for each function, three times as many where addresses are passed. Of other values, only the refusals are tried."""
PART = 1 if BUILDS > 1 else 8
"""Arrays as results and backward calls take every eighth value of the gate's, each function beginning with another; what is
bound is what the plain call binds."""
HANG_SECONDS = 60


class NotBuilt(Exception):
    """Stands for the build of a kernel where enough of them were built: fewer kinds of values then run."""


def limit_builds() -> None:
    build, built = kernels_stage.build, collections.Counter[str]()

    def limited(program: Any, label: str, *args: Any) -> Any:
        built[label] += 1
        if built[label] > BUILDS * (3 if "view" in label or "pointer" in label else 1):
            raise NotBuilt
        return build(program, label, *args)

    kernels_stage.build = limited


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value

    def get_this(self) -> Any:
        return self.value


def plain_values() -> dict[str, Any]:
    f4 = np.float32
    read_only = np.zeros(0, f4)
    read_only.flags.writeable = False
    lists: list[Any] = [[], (), {}, [[]], [[], []], [()], [{}], [None], [0, 0], [1.0, []], [1.0], [1.0] * 4, [[1.0, 2.0, 3.0]] * 2,
                        [{"a": 1.0, "b": 2}] * 2, {"b": [], "n": 1.0}, {"b": None, "n": 1.0}, {"b": [1.0, 2.0], "n": []}]  # fmt: skip
    others: list[Any] = [None, range(0), range(3), memoryview(b""), memoryview(b"abcdefgh").cast("f"), array.array("f"),
                         array.array("f", [1, 2, 3]), b"", bytearray(8), "", set(), collections.deque(), 0, 1.5, True, float,
                         spy.float3(1), spy.float2x2(), spy.Shape(), spy.grid((0,)), spy.grid((3,)), spy.call_id(),
                         spy.floatRef(), spy.ValueRef([]), spy.ValueRef(None), spy.DiffPair([], []), spy.diffPair(1.0, 0.0),
                         Holder([]), Holder(None)]  # fmt: skip
    found = {f"{type(value).__name__} {value!r}"[:60]: value for value in lists + others}
    for shape in ((0,), (1,), (3,), (4,), (), (0, 3), (3, 0), (2, 3), (2, 0, 3)):
        found[f"array {shape}"] = np.ones(shape, f4)
    found["read-only array"] = read_only
    found["broadcast array"] = np.broadcast_to(f4(1), (3,))
    found["reversed array"] = np.ones(4, f4)[::-1]
    found["array of objects"] = np.zeros(0, object)
    found["array of records"] = np.zeros(0, [("a", "f4"), ("b", "i4")])
    found["array of addresses"] = np.zeros(2, np.uint64)
    found["dict of an array"] = {"b": np.zeros(0, f4), "n": 1.0}
    found["list of arrays"] = [np.zeros(0, f4)] * 2
    return found


def device_values(device: Any, module: Any, closed: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    zeros, usage = spy.Tensor.zeros, spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    for shape in ((0,), (3,), (4,), (0, 3), (2, 3)):
        found[f"Tensor {shape}"] = zeros(device, shape, dtype="float")
        found[f"Tensor {shape} with gradients"] = zeros(device, shape, dtype="float").with_grads()
    for dtype in ("float2", "float3", "int", module.S):
        for shape in ((0,), (2,)):
            found[f"Tensor {shape} of {dtype}"] = zeros(device, shape, dtype=dtype)
    three = found["Tensor (3,)"]
    read_only = spy.Tensor.from_numpy(device, np.zeros(0, np.float32), usage=spy.BufferUsage.shader_resource)
    found |= {
        "nothing of a Tensor": three[3:], "part of a Tensor": three[1:], "reversed Tensor": three[::-1],
        "broadcast Tensor": zeros(device, (1,), dtype="float").broadcast_to((3,)), "read-only Tensor": read_only,
        "list of Tensors": [three, found["Tensor (0,)"]], "dict of a Tensor": {"b": found["Tensor (0,)"], "n": 1.0},
        "holder of a Tensor": Holder(found["Tensor (0,)"]), "Tensor of a closed device": closed[0], "its buffer": closed[1],
        "no Tensor": spy.Tensor.__new__(spy.Tensor), "no Buffer": spy.Buffer.__new__(spy.Buffer),
        "no Texture": spy.Texture.__new__(spy.Texture), "no Sampler": spy.Sampler.__new__(spy.Sampler),
        "sampler": device.create_sampler(), "list of buffers": [three.storage] * 2,
        "InstanceTensor": spy.InstanceTensor(module.S, (0,)), "InstanceList": spy.InstanceList(module.S, {}),
        "packed list": spy.pack(module, []), "packed Tensor": spy.pack(module, three),
        "buffer for copies": device.create_buffer(size=24, usage=spy.BufferUsage.copy_source),
    }  # fmt: skip
    for size in (4, 5, 24):
        found[f"buffer of {size} bytes"] = device.create_buffer(size=size, usage=usage)
    found["texture"] = device.create_texture(
        width=2, height=2, format=spy.Format.rgba32_float, usage=spy.TextureUsage.shader_resource
    )
    return found


def torch_values() -> dict[str, Any]:
    if torch is None:
        return {}
    found = {f"torch {shape}": torch.ones(shape) for shape in ((0,), (3,), (4,), (), (0, 3), (2, 2))}
    found |= {f"torch {shape} in a graph": torch.ones(shape, requires_grad=True) for shape in ((0,), (3,))}
    freed = torch.zeros(3)
    freed.untyped_storage().resize_(0)
    found |= {
        "freed torch": freed, "list of a freed torch": [freed], "dict of a freed torch": {"b": freed, "n": 1.0},
        "meta torch": torch.zeros(0, device="meta"), "sparse torch": torch.zeros(3).to_sparse(),
        "negated torch": torch._neg_view(torch.ones(3)), "broadcast torch": torch.ones(1).expand(3),
        "torch of bfloat16": torch.zeros(0, dtype=torch.bfloat16), "list of torch": [torch.zeros(0)] * 2,
        "pair of torch": spy.diff_pair(torch.zeros(3), torch.zeros(3)), "torch parameter": torch.nn.Parameter(torch.zeros(0)),
    }  # fmt: skip
    return found


class Table:
    def __init__(self, device_name: str) -> None:
        options = {"optimization": spy.SlangOptimizationLevel.none}
        self.device = spy.Device(type=spy.DeviceType[device_name], compiler_options=options, enable_hot_reload=False)
        source = Path(__file__).with_name("containers.slang").read_text(encoding="utf-8")
        self.module = spy.Module.load_from_source(self.device, "containers", source)
        other = spy.Device(type=spy.DeviceType[device_name], compiler_options={}, enable_hot_reload=False)
        tensor = spy.Tensor.zeros(other, (3,), dtype="float")
        closed = tensor, tensor.storage
        other.close()
        self.values = plain_values() | device_values(self.device, self.module, closed) | torch_values()
        self.head = source[: source.index("float view(")]
        self.functions = {name: (type_, size, body, bool(diff)) for diff, name, type_, size, body in FUNCTIONS.findall(source)}
        self.problems: list[str] = []
        self.ran = self.refused = 0

    def raw(self, name: str) -> Any:
        """A kernel with a parameter of the same type."""
        type_, size, body, _ = self.functions[name]
        value = body.removeprefix("return ").rstrip(";")
        text = f"""{self.head}[shader("compute")] [numthreads(1, 1, 1)]
            void {name}_kernel(uniform {type_} p{size}, RWStructuredBuffer<float> o) {{ o[0] = {value}; }}"""
        module = self.device.load_module_from_source(f"containers_{name}", text)
        return self.device.create_compute_kernel(
            self.device.link_program([module], [module.entry_point(f"{name}_kernel")])
        )

    def cases(self) -> Any:
        """(name, call that takes the value) of each way to pass one."""
        module, torches = self.module, self.device.type is not spy.DeviceType.vulkan
        for name, (_, _, _, differentiable) in self.functions.items():
            function = getattr(module, name)
            yield f"{name}", lambda value, f=function: f(value)
            yield f"{name} numpy", lambda value, f=function: f(value, _result="numpy")
            if differentiable:
                yield f"{name} bwds", lambda value, f=function: f.bwds(value, _result=spy.diffPair(0.0, 1.0))
        out = self.device.create_buffer(size=4, usage=spy.BufferUsage.unordered_access)
        for name in RAW:
            if torches or "view" not in name:
                kernel = self.raw(name)
                yield f"{name} raw", lambda value, k=kernel: k.dispatch([1, 1, 1], p=value, o=out)

    def run(self, notes: Any, only: str) -> None:
        for number, (place, call) in enumerate(self.cases()):
            part = PART if place.endswith((" numpy", " bwds")) and not only else 1
            for name, value in list(self.values.items())[number % part :: part]:
                case = f"{place}: {name}"
                if only and case != only:
                    continue
                notes.seek(0)
                notes.write(f"{case}\n{' ' * 200}")
                notes.flush()
                faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
                self.one(case, call, value)
        faulthandler.cancel_dump_traceback_later()

    def one(self, case: str, call: Any, value: Any) -> None:
        try:
            call(value)
            self.ran += 1
        except NotBuilt:
            pass
        except ALLOWED as error:
            self.refused += 1
            text = str(error)
            of_kernel = case.partition(":")[0].endswith("raw")
            named = of_kernel or "containers::" in text
            unmade = of_kernel and " no " in case  # the object's own methods say what it is
            if not named or not (unmade or re.search(r"\bp\b|\[0\]|[Aa]rgument 0", text)) or "rejected the kernel" in text:
                self.problems.append(f"{case}: {type(error).__name__}: {text[:700]}")
        except BaseException as error:
            self.problems.append(f"{case}: {type(error).__name__}: {error}")


def main() -> int:
    name, notes, only = sys.argv[1], Path(sys.argv[2]), " ".join(sys.argv[3:])
    warnings.simplefilter("ignore")
    faulthandler.enable()
    table = Table(name)
    limit_builds()
    with notes.open("w") as file:
        table.run(file, only)
    print(f"{table.ran} calls ran, {table.refused} were refused, {len(table.problems)} problems")
    print(*table.problems[:200], sep="\n")
    sys.stdout.flush()
    return 1 if table.problems else 0


if __name__ == "__main__":
    sys.exit(main())
