"""Cases of a test of which the gate runs some, and the nightly run all; and where it compiles the CPU device's kernels without
optimisation, which takes half the time of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PLAIN = (
    "cache", "call/bind", "call/error", "call/gradient", "call/module", "call/result", "call/tensor", "call/texture",
    "compat", "jax_functions", "pytorch", "slang", "property/test_containers.py",
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
    "call/tensor/test_tensor_storage_index.py", "call/texture/test_textures.py",
    "pytorch/test_autograd.py", "pytorch/test_by_hand.py", "pytorch/test_examples_torch.py", "pytorch/test_memory.py",
)  # fmt: skip


def is_optimised(file: Path) -> bool:
    """Whether the gate compiles the CPU device's kernels of this file with optimisation, as users do."""
    name = file.relative_to(HERE).as_posix()
    return name in OPTIMISED or not any(name == plain or name.startswith(f"{plain}/") for plain in PLAIN)


def gate(cases: Iterable[Any], is_kept: Callable[[Any], bool]) -> list[Any]:
    """Parameters of a test: the gate runs the cases that `is_kept` chooses; those that only combine anew what these cover
    are of the tier `nightly`. Cases that are tuples are of several arguments, or of one that is a tuple or a list itself."""
    return [_param(case) if is_kept(case) else _param(case, pytest.mark.nightly) for case in cases]


def _param(case: Any, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks)
