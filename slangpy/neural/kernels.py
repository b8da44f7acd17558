"""The kernels over many samples: one module for each shape of a network and device, and how work is shared out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from ..device.device import Device
from ..generators import grid
from ..module import Module
from .shape import Shape

_WIDE = 64
"""Layers from which on the CPU gains by more samples at once: weights are read less often, and states still fit its caches."""
_SOURCE = """import slangpy;
import slangpy.neural;

typealias Net = {network};
typealias Samples = neural::Batch<{dtype}>;

void forward(int worker, Net network, Samples batch) {{ network.forward<{samples}>(worker, batch); }}
void backward(int worker, Net network, Samples batch) {{ network.backward<{samples}>(worker, batch); }}
void sum_parts(int i, RWTensor<float, 2> parts, RWTensor<float, 1> gradient) {{ neural::sum_parts(i, parts, gradient); }}
"""
_MOST_PARTS = 1 << 24
"""Floats of memory for gradients of workers."""


@dataclass(frozen=True)
class Share:
    """How many workers there are, and how many samples each has."""

    workers: int
    samples: int


def samples_of(device: Device, shape: Shape) -> int:
    """Samples that a worker takes at once; threads of GPUs take one."""
    if device.compile_target.format != "cpp":
        return 1
    return 64 if shape.width >= _WIDE else 32


def share_of(device: Device, shape: Shape, count: int, backward: bool) -> Share:
    if device.compile_target.format == "cpp":
        per_worker, most = 4 * samples_of(device, shape), 64
    else:
        per_worker, most = 1, 1 << 24
    if backward:
        most = max(1, min(most, _MOST_PARTS // shape.weight_count))
    samples = max(per_worker, -(-count // most))
    return Share(-(-count // samples), samples)


def module_of(device: Device, shape: Shape) -> Module:
    modules = device._state.networks
    if shape not in modules:
        source = _SOURCE.format(network=shape.type_name, dtype=shape.dtype, samples=samples_of(device, shape))
        modules[shape] = Module.load_from_source(device, f"slangpy_network_{hashlib.sha256(source.encode()).hexdigest()[:12]}", source)
    return modules[shape]


@dataclass(frozen=True)
class Batch:
    """The record of network.slang: Tensors, or torch tensors."""

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


def run_forward(device: Device, shape: Shape, network: dict[str, Any], batch: Batch) -> None:
    if batch.count:
        share = share_of(device, shape, batch.count, False)
        module_of(device, shape).forward(grid((share.workers,)), network, {**vars(batch), "share": share.samples})


def run_backward(device: Device, shape: Shape, network: dict[str, Any], batch: Batch, gradient: Any) -> None:
    """Adds to `gradient`, of the weights. batch.parts: zeros of (workers, weights), as `share_of` says."""
    if batch.count:
        share = share_of(device, shape, batch.count, True)
        module = module_of(device, shape)
        module.backward(grid((share.workers,)), network, {**vars(batch), "share": share.samples})
        module.sum_parts(grid((shape.weight_count,)), batch.parts, gradient)
