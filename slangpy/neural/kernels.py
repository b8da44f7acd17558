"""The kernels over many samples: one module for each shape of a network and device, and how work is shared out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from ..device.device import Device
from ..generators import grid
from ..module import Module
from .encodings import Encoding, HashGrid
from .shape import Shape

_WIDE = 64
"""Layers from which on the CPU gains by more samples at once: weights are read less often, and states still fit its caches."""
_HEAD = """import slangpy;
import slangpy.neural;

typealias Net = {network};
typealias Samples = neural::Batch<{dtype}>;
void sum_parts(int i, RWTensor<float, 2> parts, RWTensor<float, 1> gradient) {{ neural::sum_parts(i, parts, gradient); }}
"""
_SOURCE = _HEAD + """
void forward(int worker, Net network, Tensor<{dtype}, 2> x, RWTensor<{dtype}, 2> y, int count, int share)
{{
    network.forward<{samples}>(worker, neural::samples<{dtype}>(x, y, count, share));
}}
void backward(int worker, Net network, Samples batch) {{ network.backward<{samples}>(worker, batch); }}
"""
_MATRIX_SOURCE = _HEAD + """
typealias Places = {places};
void reserve_forward() {{ __requirePrelude("extern \\"C\\" __device__ char _spy_shared_kib[{kib[0]}];"); __intrinsic_asm ""; }}
void reserve_backward() {{ __requirePrelude("extern \\"C\\" __device__ char _spy_shared_kib[{kib[1]}];"); __intrinsic_asm ""; }}

void forward(int thread, Net network, Tensor<half, 2> x, RWTensor<half, 2> y, int count, int share)
{{
    static_assert(Places.STATES <= 512 * {kib[0]}, "_shared_kib is too small");
    reserve_forward();
    neural::{matrix} all = {{ network }};
    all.forward_matrix<{plain}>(thread, neural::samples<half>(x, y, count, share));
}}
void backward(int thread, Net network, Samples batch)
{{
    static_assert(Places.END <= 512 * {kib[1]}, "_shared_kib is too small");
    reserve_backward();
    neural::{matrix} all = {{ network }};
    all.backward_matrix<{plain}, {learns}>(thread, batch);
}}
"""
_GROUP = 256
"""Threads, and samples, of a group on matrix cores."""
_GROUPS = (264, 132)
"""On matrix cores, forward and backward: more are of no use to a GPU of today."""
_MOST_SHARED, _MOST_SUMS = 227, 110
"""KiB of a group's memory, and registers of a thread for sums of gradients."""
_MOST_PARTS = 1 << 24
"""Floats of memory for gradients of workers."""


def uses_matrices(device: Device, shape: Shape) -> bool:
    """Whether matrix cores do the layers: CUDA from compute capability 8.0, halves, a width of whole tiles, not too large."""
    if device.compile_target.format != "cuda" or shape.dtype != "half" or shape.width % 16 or _compute_capability(device) < 80:
        return False
    sums = sum(-(-_round_up(rows, 16) * _round_up(columns, 16) // _GROUP) + 4 for rows, columns in shape.layers)
    return sums <= _MOST_SUMS and max(_shared_kib(shape)) <= _MOST_SHARED


def _compute_capability(device: Device) -> int:
    """10 times that of a CUDA device."""
    return int(device.compiler_fingerprint.split("sm_", 1)[1].split(maxsplit=1)[0])


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _shared_kib(shape: Shape) -> tuple[int, int]:
    """Of forward and backward: `_Places` of slang/neural/matrix.slang."""
    features, outputs = _round_up(shape.features, 16), _round_up(shape.outputs, 16)
    rows = {"features": features + 8, "states": shape.width + 8, "outputs": outputs + 8}
    layers = shape.hidden_layers
    weights = shape.width * rows["features"] + ((layers - 1) * shape.width + outputs) * rows["states"] + layers * shape.width + outputs
    forward = weights + _GROUP * (rows["features"] + rows["outputs"])
    backward = forward + layers * 128 * rows["states"] + 2 * 128 * max(rows["states"], rows["outputs"])
    return -(-forward // 512), -(-backward // 512)


def samples_of(device: Device, shape: Shape) -> int:
    """Samples that a worker takes at once; threads of GPUs take one."""
    if device.compile_target.format != "cpp":
        return 1
    return 64 if shape.width >= _WIDE else 32


@dataclass(frozen=True)
class Batch:
    """The record of network.slang as `backward` reads it: Tensors, or torch tensors."""

    x: Any
    y: Any
    dy: Any
    dx: Any
    parts: Any
    table: Any
    count: int
    share: int = 0
    wants_dx: int = 0

    def get_this(self) -> dict[str, Any]:
        return vars(self)


class Kernels:
    """Those of one shape on one device."""

    def __init__(self, device: Device, shape: Shape) -> None:
        self.on_matrices = uses_matrices(device, shape)
        self._is_host = device.compile_target.format == "cpp"
        self._per_worker = 4 * samples_of(device, shape) if self._is_host else 1
        self._weights = shape.weight_count
        module = module_of(device, shape)
        self.sum_parts = module.sum_parts
        self.forward, self.backward = module.forward, module.backward
        if self.on_matrices:
            self.forward, self.backward = (f.thread_group_size((_GROUP, 1, 1)) for f in (module.forward, module.backward))

    def workers(self, count: int, backward: bool) -> int:
        """How many share the samples. Backward, each has a row of `parts`."""
        if self.on_matrices:
            return min(_GROUPS[backward], -(-count // _GROUP))
        return -(-count // self._samples(count, backward))

    def run_forward(self, network: dict[str, Any], x: Any, y: Any, count: int) -> None:
        if count:
            workers, share = self._shares(count, False)
            self.forward(grid((workers,)), network, x, y, count, share)

    def run_backward(self, network: dict[str, Any], batch: Batch, gradient: Any) -> None:
        """Adds to `gradient`, of the weights. batch.parts: (workers, weights), zeros but for matrix cores."""
        if batch.count:
            workers, share = self._shares(batch.count, True)
            self.backward(grid((workers,)), network, {**vars(batch), "share": share})
            self.sum_parts(grid((self._weights,)), batch.parts, gradient)

    def _samples(self, count: int, backward: bool) -> int:
        most = 64 if self._is_host else 1 << 24
        if backward:
            most = max(1, min(most, _MOST_PARTS // self._weights))
        return max(self._per_worker, -(-count // most))

    def _shares(self, count: int, backward: bool) -> tuple[int, int]:
        """Threads, and what each is told: its samples, or on matrix cores the number of groups."""
        workers = self.workers(count, backward)
        return (workers * _GROUP, workers) if self.on_matrices else (workers, self._samples(count, backward))


def module_of(device: Device, shape: Shape) -> Module:
    modules = device._state.networks
    if shape not in modules:
        source = _matrix_source(shape) if uses_matrices(device, shape) else _SOURCE.format(
            network=shape.type_name, dtype=shape.dtype, samples=samples_of(device, shape)
        )
        modules[shape] = Module.load_from_source(device, f"slangpy_network_{hashlib.sha256(source.encode()).hexdigest()[:12]}", source)
    return modules[shape]


def _matrix_source(shape: Shape) -> str:
    inside = shape.type_name.split("<", 1)[1].split(",", 1)[1][:-1]  # without the dtype
    features, outputs = _round_up(shape.features, 16), _round_up(shape.outputs, 16)
    return _MATRIX_SOURCE.format(
        network=shape.type_name, dtype=shape.dtype, matrix=f"MatrixNetwork<{inside}, {features}, {outputs}>",
        places=f"neural::_Places<{features}, {shape.width}, {shape.hidden_layers}, {outputs}>",
        plain=int(type(shape.encoding) is Encoding), learns=int(isinstance(shape.encoding, HashGrid)), kib=_shared_kib(shape),
    )  # fmt: skip
