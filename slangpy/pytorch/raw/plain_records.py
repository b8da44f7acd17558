"""Records of modules as plain data for the disk cache, and back."""

from __future__ import annotations

from typing import Any

from slangpy.pytorch.raw.access import ViewAccess
from slangpy.pytorch.raw.program import KernelRecord, ModuleRecord, Parameter
from slangpy.pytorch.raw.scan import EmittedKernel
from slangpy.pytorch.raw.types import KernelType


def record_to_plain(record: ModuleRecord) -> dict[str, Any]:
    return {
        "program": record.program,
        "kernels": [_kernel_to_plain(kernel) for kernel in record.kernels],
        "host": record.host,
        "names": record.names,
        "warnings": record.warnings,
        "slang_version": record.slang_version,
        "headers": record.headers,
    }


def _kernel_to_plain(kernel: KernelRecord) -> tuple[Any, ...]:
    parameters = tuple((p.name, p.type.to_plain(), p.offset, p.default) for p in kernel.parameters)
    emitted = tuple((e.name, e.symbol, e.derivative, e.bound, e.parameters) for e in kernel.emitted)
    return (
        kernel.name,
        parameters,
        kernel.size,
        kernel.bound,
        kernel.differentiable,
        kernel.place,
        kernel.trouble,
        emitted,
        tuple((path, (a.reads, a.reads_gradient, a.consumes)) for path, a in kernel.views),
    )


def record_from_plain(plain: dict[str, Any]) -> ModuleRecord:
    kernels = tuple(map(_kernel_from_plain, plain["kernels"]))
    return ModuleRecord(
        plain["program"], kernels, plain["host"], plain["names"], tuple(plain["warnings"]), plain["slang_version"],
        plain["headers"],
    )


def _kernel_from_plain(plain: tuple[Any, ...]) -> KernelRecord:
    name, parameters, size, bound, differentiable, place, trouble, emitted, views = plain
    return KernelRecord(
        name,
        tuple(Parameter(n, KernelType.from_plain(type_), offset, default) for n, type_, offset, default in parameters),
        size,
        bound,
        differentiable,
        place,
        trouble,
        tuple(EmittedKernel(*item) for item in emitted),
        tuple((path, ViewAccess(*access)) for path, access in views),
    )
