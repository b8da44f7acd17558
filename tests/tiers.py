"""Cases of a test of which the gate runs some, and the nightly run all; which files run whole programs; and where the gate compiles
the CPU device's kernels without optimisation, which takes a third of the time of a test."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
EVERYTHING = os.environ.get("SLANGPY_TEST_ALL") == "1"
COMPILER = HERE / "compiler" / "g++"
# For child processes, too. The nightly run takes what users take.
if not EVERYTHING and sys.platform == "linux" and shutil.which("g++") and os.access(COMPILER, os.X_OK):
    os.environ.setdefault("CXX", str(COMPILER))
WHOLE = (
    "attack", "docs", "package", "property", "tools", "windows",
    "cache/test_cache.py", "cache/test_cache_inputs.py", "cache/test_cache_portable.py", "cache/test_cache_trim.py", "cache/test_cache_trust.py",
    "call/error/test_errors_process.py", "call/gradient/test_gradients_cuda.py",
    "call/gradient/test_programs_learning.py", "call/gradient/test_programs_numbers.py",
    "call/gradient/test_programs_physics.py", "call/gradient/test_programs_render.py",
    "call/module/test_host_rows.py", "call/module/test_hot_reload.py", "call/module/test_living.py",
    "call/module/test_progress.py", "call/module/test_threads.py", "compat/test_programs.py",
    "device/test_bad_self.py", "device/test_compile_ahead.py", "device/test_cuda_host.py", "device/test_interrupt.py",
    "device/test_lanes.py", "device/test_lanes_textures.py", "device/test_short_kernels.py",
    "jax_functions", "pytorch/test_compile.py", "pytorch/test_examples_torch.py", "pytorch/test_memory.py",
    "pytorch/test_multi_gpu.py", "pytorch/test_saved_models.py",
    "pytorch/kernels/test_loading.py", "rays/test_ray_cuda.py",
    "slang/test_child.py", "slang/test_crash.py", "slang/test_names_from_data.py", "slang/test_process.py",
    "slang/test_worker.py",
)  # fmt: skip
"""Programs as users start them, random programs, processes that end, wait or share, and CUDA's compiler: their tests are of the tier `each`
wherever they run, so that `null` and `one` stay what one runs after each change."""
PLAIN = (
    "attack/test_attack.py", "cache", "call/bind", "call/error", "call/gradient", "call/module", "call/result", "call/shape", "call/tensor", "call/texture",
    "compat", "jax_functions", "pytorch", "rays", "slang", "property/test_containers.py",
)  # fmt: skip
"""What these test does not depend on what g++ makes of a kernel but in the files of OPTIMISED, a sample of each folder."""
OPTIMISED = (
    "cache/test_early_compiler.py",
    "call/bind/test_builtin_functions.py", "call/bind/test_dtypes.py", "call/bind/test_narrow_floats.py",
    "call/bind/test_values_numbers.py", "call/bind/test_vector_math.py",
    "call/gradient/test_forward_mode.py", "call/gradient/test_gradients.py", "call/gradient/test_gradients_atomic.py",
    "call/gradient/test_gradients_matrices.py", "call/gradient/test_gradients_scattered.py",
    "call/gradient/test_gradients_sums.py",
    "call/module/test_host_rows.py", "call/module/test_living.py", "call/module/test_progress.py",
    "call/shape/test_bounds.py", "call/shape/test_calls_worked.py", "call/shape/test_overlap.py", "call/shape/test_patches.py",
    "call/shape/test_strided_calls.py", "call/tensor/test_tensor_storage_index.py", "call/texture/test_textures.py",
    "pytorch/test_autograd.py", "pytorch/test_by_hand.py", "pytorch/test_examples_torch.py", "pytorch/test_memory.py",
    "rays/test_hits.py", "rays/test_rays_by_hand.py",
)  # fmt: skip


def is_whole(file: Path) -> bool:
    return _is_in(file, WHOLE)


def is_optimised(file: Path) -> bool:
    """Whether the gate compiles the CPU device's kernels of this file with optimisation, as users do."""
    return _is_in(file, OPTIMISED) or not _is_in(file, PLAIN)


def _is_in(file: Path, places: tuple[str, ...]) -> bool:
    name = file.relative_to(HERE).as_posix()
    return any(name == place or name.startswith(f"{place}/") for place in places)


def gate(cases: Iterable[Any], is_kept: Callable[[Any], bool]) -> list[Any]:
    """Parameters of a test: the gate runs the cases that `is_kept` chooses; those that only combine anew what these cover
    are of the tier `nightly`. Cases that are tuples are of several arguments, or of one that is a tuple or a list itself."""
    return [_param(case) if is_kept(case) else _param(case, pytest.mark.nightly) for case in cases]


def _param(case: Any, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks)
