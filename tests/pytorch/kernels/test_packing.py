"""Native code packs the plain forms of arguments: to the same bytes as Python, which packs all forms."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from slangpy import _native

from .test_arguments import INTEGERS, LAYOUT, SCALARS, STRUCTS, inner
from .test_square import SOURCE as SQUARE

pytestmark = pytest.mark.filterwarnings("ignore:.*never launched:RuntimeWarning")


def check(kernel: Any, *args: Any, plain: bool = True, **kwargs: Any) -> None:
    """Both ways give the same bytes; `plain`: native code is the one that takes them."""
    native = _native._pack_plain(kernel, args, kwargs)
    assert (native is not None) is plain
    expected = kernel._convert(args, kwargs)._parameters
    assert native is None or native == expected


def refused(kernel: Any, *args: Any, **kwargs: Any) -> str:
    """The message for arguments that neither takes."""
    assert _native._pack_plain(kernel, args, kwargs) is None
    with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
        kernel(*args, **kwargs)
    return str(caught.value)


class Three(enum.IntEnum):
    three = 3


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(load: Any, name: str) -> None:
    kernel, dtype = getattr(load(SCALARS), f"s_{name}"), INTEGERS[name]
    y, info = torch.zeros(1, dtype=dtype), torch.iinfo(dtype)
    for value in (0, 1, info.min, min(info.max, 2**63 - 1), Three.three):
        check(kernel, value, y)
    for value in (np.int8(7), torch.tensor(5), info.max if info.max > 2**63 else np.uint8(1)):
        check(kernel, value, y, plain=False)
    for wrong in (info.min - 1, info.max + 1, 2.0, "1", None, [1], torch.ones(2)):
        assert f"s_{name}: v: " in refused(kernel, wrong, y)


@pytest.mark.parametrize("name", ["half", "float", "double"])
def test_floats(load: Any, name: str) -> None:
    kernel = getattr(load(SCALARS), f"s_{name}")
    y = torch.zeros(1, dtype={"half": torch.float16, "float": torch.float32, "double": torch.float64}[name])
    rng = np.random.default_rng(3)
    scattered = (rng.standard_normal(50) * 10.0 ** rng.integers(-12, 12, 50)).tolist()
    largest = {"half": 65520.0, "float": 3.4028236e38, "double": float("inf")}[name]
    for value in (0.1, 3, -(2**53), True, 1e300, -1e300, 65519.99, 65520.0, float("inf"), float("nan"), *scattered):
        if largest <= abs(value) < float("inf"):
            with pytest.warns(RuntimeWarning, match=f"beyond the range of {name}"):
                check(kernel, value, y, plain=False)
        else:
            check(kernel, value, y)
    check(kernel, np.float32(0.3), y, plain=False)
    check(kernel, np.float64(0.3), y)  # a float
    for wrong in ("1", None, [1.0], torch.ones(3), 1j):
        assert f"s_{name}: v: " in refused(kernel, wrong, y)


def test_bools(load: Any) -> None:
    kernel, y = load(SCALARS).s_bool, torch.zeros(1, dtype=torch.bool)
    for value in (True, False, 1, 0):
        check(kernel, value, y)
    check(kernel, np.bool_(True), y, plain=False)
    for wrong in (2, 1.0, "x", None):
        assert "s_bool: v: expected a bool" in refused(kernel, wrong, y)


def test_vectors_and_matrices(load: Any) -> None:
    m, y = load(SCALARS), torch.zeros(16)
    for given in ((1, 2, 3), [1, 2.5, 3]):
        check(m.vectors, given, (4, 5), [True, 0], y)
        check(m.vectors, b=[True, 0], y=y, n=(4, 5), v=given)
    check(m.vectors, np.ones(3), (4, 5), (True, False), y, plain=False)
    for wrong in ((1, 2), (1, 2, 3, 4), 1, ("a", 1, 2), {1, 2, 3}):
        assert "vectors: v" in refused(m.vectors, wrong, (4, 5), (True, False), y)
    for rows, columns in ((3, 3), (2, 3), (3, 2), (4, 4)):
        array = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        kernel = getattr(m, f"m_{rows}{columns}")
        check(kernel, array.tolist(), y)
        check(kernel, tuple(map(tuple, array.tolist())), y)
        check(kernel, array, y, plain=False)
        assert "m[0]" in refused(kernel, [[1] * (columns + 1)] * rows, y)


def test_structs_and_arrays(load: Any) -> None:
    m = load(STRUCTS)
    a, y = torch.ones(2, 2), torch.zeros(2, 2)
    b = a.T
    for form in ((a, b), {"A": a, "B": b}, {"B": b, "A": a}, m.AB(a, b)):
        check(m.product, form, y)
    for wrong in ((a,), {"A": a}, {"A": a, "B": b, "C": b}, [a, b], 3, None):
        assert "product: s" in refused(m.product, wrong, y)
    check(m.word, w=(1.5, 2), nothing=(), y=y, **{"lambda": 4})
    check(m.word, w=(1.5, 2), y=y, lambda_=4)
    check(m.word, w={"lambda": 1.5, "n": 2}, y=y, lambda_=4)
    check(m.word, w={"lambda_": 1.5, "n": 2}, y=y, lambda_=4, plain=False)
    t = torch.ones(2)
    check(m.arrays, [t, (t,)], ((a, b), {"A": a, "B": b}), ((1, 2), [3, 4]), t)
    assert "arrays: d: expected 2 values" in refused(m.arrays, [t], ((a, b), (a, b)), ((1, 2), (3, 4)), t)
    nest = load(LAYOUT)
    given = {"a": 0.25, "i": (inner(1), inner(10)), "t": t, "k": 200, "dt": t, "m": nest.Mode.Two, "e": 2}
    check(nest.back, given, torch.zeros(64, dtype=torch.float64))


def test_views(load: Any) -> None:
    kernel, x = load(STRUCTS).word, torch.zeros(3, 4, 5)
    word = (1.5, 2)
    for view in (x, x[1:, ::2, 3], x.permute(2, 0, 1), x[0, 0, 0], x[:0], torch.nn.Parameter(x), x.expand(3, 4, 5)):
        check(kernel, word, y=view.detach() if view is x else view, lambda_=1)
    check(kernel, word, y=x.numpy(), lambda_=1, plain=False)
    lazily_negated = torch.zeros(3, dtype=torch.complex64).conj().imag
    assert lazily_negated.is_neg()
    for wrong, text in (
        (x.double(), "float64"), (torch.zeros(1).expand(3), "broadcast"), (torch.zeros([1] * 6), "6 dimensions"),
        (x.to_sparse(), "to_dense"), (torch.zeros(2, device="meta"), "meta"), (lazily_negated, "resolve"), ([1.0], "list"), (None, "None"),
    ):  # fmt: skip
        assert text in refused(kernel, word, y=wrong, lambda_=1)


def test_pairs(load: Any) -> None:
    m = load(SQUARE)
    x, g = torch.ones(4), torch.zeros(4)
    for form in (x, (x,), (x, g), (x, None), m.DiffTensorView(x), m.DiffTensorView(x, g)):
        check(m.square, form, (x, g))
    check(m.square.bwd, (x, g), m.DiffTensorView(x, g))
    for wrong, text in (
        ([x], "(tensor, gradient)"), ((x, g, g), "(tensor, gradient)"), ({"value": x}, "(tensor, gradient)"), (1, "(tensor, gradient)"),
        ((x, g.double()), "float64"), ((x, g[:3]), "must be equal"), ((x, torch.zeros(1).expand(4)), "may write"),
        ((x, 1.0), "tensor"), (x, "has no gradient tensor"), ((x,), "has no gradient tensor"),
    ):  # fmt: skip
        assert text in refused(m.square.bwd, wrong, (x, g)), wrong
    # what discards a gradient gets 16 bytes of its own, which Python makes
    assert _native._pack_plain(m.square.bwd, ((x, None), (x, g)), {}) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.square.bwd((x, None), (x, g))


def test_names(load: Any) -> None:
    kernel, y = load(SCALARS).defaults, torch.zeros(2)
    check(kernel, y)
    check(kernel, y, b=4)
    check(kernel, **{"".join(["b"]): 4, "y": y})
    for args, kwargs in (((), {}), ((y, 1, 2, 3), {}), ((y,), {"y": y}), ((y,), {"c": 1})):
        assert "defaults: " in refused(kernel, *args, **kwargs)
