"""Names that are not there: what errors suggest, and that nothing is searched before somebody reads them."""

from __future__ import annotations

import copy
import difflib
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import slangpy as spy

SOURCE = """
struct Particle { float3 position; float mass; float weight() { return mass * 9.81; } }
float move(Particle p) { return p.mass; }
"""


def tensor(device: Any, m: Any) -> Any:
    return spy.Tensor.zeros(device, (3,), "float")


def module(device: Any, m: Any) -> Any:
    return m


def struct(device: Any, m: Any) -> Any:
    return m.Particle


def instances(device: Any, m: Any) -> Any:
    return spy.InstanceList(m.Particle, {"mass": 1.0})


def package(device: Any, m: Any) -> Any:
    return spy



CASES = [(tensor, "shap", "shape"), (module, "mov", "move"), (struct, "wieght", "weight"), (instances, "mas", "mass"),
         (package, "Tensr", "Tensor")]  # fmt: skip


@pytest.fixture
def m(device: Any) -> Any:
    return spy.Module.load_from_source(device, "absent_names", SOURCE)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each name for which similar ones were looked for."""
    found: list[str] = []
    search = difflib.get_close_matches

    def noted(word: str, *args: Any, **kwargs: Any) -> Any:
        found.append(word)
        return search(word, *args, **kwargs)

    monkeypatch.setattr(difflib, "get_close_matches", noted)
    return found


@pytest.mark.parametrize(("make", "name", "meant"), CASES, ids=lambda v: v.__name__ if callable(v) else str(v))
def test_nothing_is_searched_before_the_error_is_read(
    device: Any, m: Any, searches: list[str], make: Callable[[Any, Any], Any], name: str, meant: str
) -> None:
    value = make(device, m)
    assert not hasattr(value, name) and getattr(value, name, None) is None
    assert searches == []
    with pytest.raises(AttributeError) as caught:
        getattr(value, name)
    assert searches == []
    error = caught.value
    assert f"did you mean {meant}?" in str(error) and f"'{name}'" in str(error)
    assert str(error) in repr(error) and error.args == (str(error),)
    assert searches == [name]
    assert "".join(traceback.format_exception_only(error)).startswith(f"AttributeError: {error}")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert isinstance(again, AttributeError) and str(again) == str(error)


def test_names_of_a_kernel_module(searches: list[str]) -> None:
    pytest.importorskip("torch")
    from slangpy.pytorch.raw.module import KernelModule

    value = object.__new__(KernelModule)
    value.__dict__.update(_items={"square": 1}, __file__="square.slang")
    assert not hasattr(value, "sqare") and searches == []
    with pytest.raises(AttributeError, match="square.slang has no 'sqare'; did you mean 'square'"):
        _ = value.sqare
