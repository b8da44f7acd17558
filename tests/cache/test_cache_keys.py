"""One plan and one build per key: what decides the kernel is in the key, what only feeds it is not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import slangpy as spy
from slangpy.compiler.cache import digest
from slangpy.config import config
from slangpy.plan import compile as compile_stage

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

SOURCE = """
float add(float a, float b) { return a + b; }
float sum4(float4 v) { return v.x + v.y + v.z + v.w; }
extern static const int STEPS = 1;
float times(float x) { return x * STEPS; }
"""
_numbers = itertools.count()


@pytest.fixture
def module(device: spy.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> spy.Module:
    """A module that no earlier test has seen, without the disk cache."""
    monkeypatch.setattr(config, "cache_enabled", False)
    number = next(_numbers)
    return spy.Module.load_from_source(device, f"keys_{number}", SOURCE.replace("a + b", f"a + b + 0 * {number}"))


@contextmanager
def builds(expected: int) -> Iterator[None]:
    before = compile_stage.builds
    yield
    assert compile_stage.builds - before == expected


def ramp(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def test_sizes_and_values_share_a_build(module: spy.Module) -> None:
    with builds(1):
        for size in (4, 5, 1000, 33):
            x = ramp(size)
            assert np.array_equal(module.add(x, float(size), _result="numpy"), x + size)
    with builds(1):
        for shape in ((2, 3), (3, 2), (64, 65)):
            x = ramp(*shape)
            assert np.array_equal(module.add(x, 1.5, _result="numpy"), x + 1.5)


def test_list_lengths_share_a_build(module: spy.Module) -> None:
    with builds(1):
        for length in (2, 3, 17):
            values = [float(i) for i in range(length)]
            assert module.add(values, 1, _result="numpy").tolist() == [v + 1 for v in values]


def test_scalars_share_a_build(module: spy.Module) -> None:
    with builds(1):
        for i in range(5):
            assert module.add(i * 0.5, 2.0) == i * 0.5 + 2


def test_types_do_not_share(module: spy.Module) -> None:
    with builds(1):
        module.add(ramp(3), 1.0, _result="numpy")
    with builds(1):
        module.sum4(ramp(3, 4), _result="numpy")


def test_chaining_in_a_loop_builds_once(module: spy.Module) -> None:
    with builds(1):
        for _ in range(4):
            assert module.add.map((0,))(ramp(3), 2.0, _result="numpy").tolist() == [2, 3, 4]


def test_constants_are_in_the_key(module: spy.Module) -> None:
    with builds(2):
        for _ in range(2):
            assert module.times.constants({"STEPS": 4})(2.0) == 8
            assert module.times.constants({"STEPS": 3})(2.0) == 6


def test_broadcast_after_plain_is_right(module: spy.Module) -> None:
    """Equal keys with other strides may add a variant of the kernel, never a wrong result."""
    x = ramp(4, 6)
    for a, b in ((x, x), (x[:, ::2], x[:, 1::2]), (x[:1], x), (x[:, :1], x), (x[::-1], x), (x.T, x.T)):
        assert np.array_equal(module.add(a, b, _result="numpy"), a + b)
    with builds(0):
        for a, b in ((x, x), (x[:, ::2], x[:, 1::2]), (x[:1], x), (x[:, :1], x)):
            assert np.array_equal(module.add(a, b, _result="numpy"), a + b)


def test_digests_tell_parts_apart() -> None:
    """The end of one part is not the begin of the next."""
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), (b"ab", b"c", b"")]
    assert len({digest(*given) for given in parts}) == len(parts)
    assert digest("ab", b"c") == digest(b"ab", "c")
