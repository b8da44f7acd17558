"""Runs a case on a device and says where it differs from what is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import slangpy as spy
from slangpy.testing import CudaCodegen

from ..failure import Failure
from .cases import ROWS, Case, Expected, expected, leaves
from .numbers import Value
from .print_slang import batch_text, named_inputs
from .types import base, is_struct, shape

__all__ = ["Runner", "begin", "expected"]


def begin() -> None:
    """Nothing that a process of this family needs first."""


def poisoned(ty: str) -> np.ndarray:
    size = (ROWS, *shape(ty))
    row = base(ty)
    if row.kind == "b":
        return (np.arange(np.prod(size)) % 2 == 0).reshape(size)
    return np.full((*size[:-1], size[-1] * row.bits // 8), 0xA5, np.uint8).view(row.dtype)


class Runner:
    """One open device, or for cuda_code NVRTC alone, which needs no GPU and compares nothing. `report` hears of each stage
    before it begins."""

    def __init__(self, name: str, optimized: bool, report: Callable[[str], None]):
        self.name = name
        self.report = report
        self.codegen = CudaCodegen("sm_80") if name == "cuda_code" else None
        options = {} if optimized or name != "cpu" else {"optimization": spy.SlangOptimizationLevel.none}
        kind = spy.DeviceType.null if self.codegen else spy.DeviceType[name]
        self.device = spy.Device(type=kind, compiler_options=options, enable_hot_reload=False)
        self.count = 0

    def load(self, case: Case) -> Any:
        name = f"forward_{self.count}_{case.seed}"
        if self.codegen:
            return self.codegen.load_from_source(name, self.text(case))
        return spy.Module.load_from_source(self.device, name, self.text(case))

    def run(self, case: Case, want: Expected, stages: tuple[str, ...] = ()) -> list[Failure]:
        self.count += 1
        self.report("compile")
        try:
            module = self.load(case)
        except Exception as error:
            return [Failure("error", "compile", -1, str(error))]
        self.report("call")
        try:
            results = self._call(module, case)
        except Exception as error:
            return [Failure("error", "call", -1, f"{type(error).__name__}: {error}")]
        if self.codegen:
            return []
        runs = want.runs(flush=self.name not in ("cpu", "cuda"))
        found = [self._compare(k, value, lost, results[k]) for k, (value, lost) in enumerate(runs)]
        return [failure for failure in found if failure is not None]

    def text(self, case: Case) -> str:
        return batch_text(case.programs)

    # ---- the call

    def _given(self, array: np.ndarray, case: Case, leaf: str) -> Any:
        if case.route == "numpy" and array.ndim == 0 and array.dtype.kind != "f":
            return array.item()  # a number of Python
        layout = case.layouts[leaf]
        base_ = layout.base_of(array)
        return layout.view(spy.Tensor.from_numpy(self.device, base_) if case.route == "tensor" else base_)

    def _call(self, module: Any, case: Case) -> list[Any]:
        given: dict[str, Any] = {}
        for name in named_inputs(case.programs):
            parts = {leaf: self._given(case.arrays[leaf], case, leaf) for leaf in leaves(name)}
            given[name] = {leaf.partition(".")[2]: part for leaf, part in parts.items()} if name == "s" else parts[name]
        targets = [self._target(case, program.main.ret, program) for program in case.programs]
        given |= {f"r{k}": target for k, target in enumerate(targets)}
        if self.codegen:
            self.codegen.build(module.batch, **given)
        else:
            module.batch(**given)
        return [self._read(target) for target in targets]

    def _target(self, case: Case, ty: str, program: Any) -> Any:
        if is_struct(ty):
            return {name: self._target(case, kind, program) for name, kind, _ in program.struct(ty).fields}
        array = poisoned(ty)
        return spy.Tensor.from_numpy(self.device, array) if case.route == "tensor" else array

    def _read(self, target: Any) -> Any:
        if isinstance(target, dict):
            return {name: self._read(part) for name, part in target.items()}
        return target if isinstance(target, np.ndarray) else target.to_numpy()

    # ---- comparing

    def _compare(self, k: int, value: Value, lost: np.ndarray, got: Any) -> Failure | None:
        if value.kids:
            parts = [self._compare(k, kid, lost, part) for kid, part in zip(value.kids, got.values(), strict=True)]
            return next((part for part in parts if part is not None), None)
        got = np.asarray(got)
        if got.shape != value.a.shape or got.dtype != value.a.dtype:
            return Failure(
                "wrong type", "call", k, f"expected {value.a.dtype}{value.a.shape}, got {got.dtype}{got.shape}"
            )
        right = self._close(value, got)
        right = right.reshape(len(right), -1).all(1) | lost
        if right.all():
            return None
        row = int(np.argmin(right))
        slack = "" if value.e is None else f" (allowed {np.max(value.e[row]):.1e})"
        return Failure(
            "wrong value",
            value.ty,
            k,
            f"row {row}: expected {value.a[row]}, got {got[row]}{slack}; {int((~right).sum())} rows",
        )

    def _close(self, value: Value, got: np.ndarray) -> np.ndarray:
        if value.e is None:
            return got == value.a
        with np.errstate(all="ignore"):
            near = np.abs(got.astype(np.longdouble) - value.a.astype(np.longdouble)) <= value.e
        return near | (got == value.a) | (np.isnan(got) & np.isnan(value.a)) | ~np.isfinite(value.e)
