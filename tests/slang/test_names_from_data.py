"""Names that come from data reach the compiler by many ways: none ends the process, and those that mean something stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import slangpy as spy

CHILD = Path(__file__).with_name("names_child.py")
MODULE = """
struct P { float x; struct Inner { int i; }; float m() { return x; } }
struct Gen<T, let N : int> { T v[N]; }
namespace ns { struct A { float a; }; static const int C = 3; int f(int x) { return x; } }
static const int N = 4;
interface IThing { float g(); }
enum Kind { A, B }
T times<T : IFloat, let M : int>(T x) { return x * T(M); }
float sample(float x) { return x; }
float line(float x) { return x; }
P operator+(P a, P b) { return a; }
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_the_process_lives_on(seed: int) -> None:
    done = subprocess.run([sys.executable, str(CHILD), str(seed)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout[-5:]) == (0, "done\n"), done.stderr[-2000:]


@pytest.fixture(scope="module")
def module() -> spy.Module:
    return spy.Module.load_from_source(spy.create_device(spy.DeviceType.cpu), "named", MODULE)


@pytest.mark.parametrize(
    ("name", "full_name"),
    [
        ("P", "P"), ("P::Inner", "P.Inner"), ("P.Inner", "P.Inner"), ("ns::A", "ns.A"), ("Gen<float, 3>", "Gen<float, 3>"),
        ("Gen<float,N>", "Gen<float, 4>"), ("Gen<float, N + 1>", "Gen<float, 5>"), ("Gen<float, 2*ns::C - 1>", "Gen<float, 5>"),
        ("Gen<float, -2>", "Gen<float, -2>"), ("Gen<float*, 2>", "Gen<Ptr<float>, 2>"), ("float[N]", "float[4]"),
        ("float[N * 2 + 1]", "float[9]"), ("float2[4]", "vector<float,2>[4]"), ("float[3][2]", "float[3][2]"),
        ("float[]", "float[]"), ("float[4].Differential", "float[4]"), ("Tensor<float,2>", "Tensor<float, 2>"), ("vector<float,3>", "vector<float,3>"), ("IThing", "IThing"), ("Kind", "Kind"),
        ("StructuredBuffer<Gen<P, 2>>", None), ("Texture2D<float4>", None), ("uint64_t", "uint64_t"), (" float3x4 ", "matrix<float,3,4>"),
        ("Gen<Gen<ns::A, 0x10>, 2>", "Gen<Gen<ns.A, 16>, 2>"), ("Optional<float>", "Optional<float>"),
    ],
)  # fmt: skip
def test_names_that_mean_something(module: Any, name: str, full_name: str | None) -> None:
    found = module[name]
    assert isinstance(found, spy.Struct)
    assert (
        full_name is None
        or found.full_name.replace("Ptr<float, Access.ReadWrite, AddressSpace.Device>", "Ptr<float>") == full_name
    )


@pytest.mark.parametrize("name", ["times<float, 3>", "ns::f", "sample", "line", "operator+"])
def test_functions_that_mean_something(module: Any, name: str) -> None:
    assert isinstance(module[name], spy.Function) and module.find_function(name) is not None


@pytest.mark.parametrize("name", ["P + P", "float[P]", "float[nosuch]", "Gen<P + 1, 2>", "Gen<float, Kind.A + 1>"])
def test_what_is_no_name_is_not_found(module: Any, name: str) -> None:
    with pytest.raises(AttributeError, match="has no function or type named"):
        module[name]
    assert module.find_struct(name) is None and module.layout.find_function_by_name(name) is None
    with pytest.raises((ValueError, TypeError), match="P|nosuch|Kind"):
        spy.Tensor.empty(module.device, (2,), dtype=name)


def test_what_names_are_looked_up_in_is_no_sequence(module: Any) -> None:
    values: list[Any] = [module, module.P, spy.ReflectionCursor(None)]
    for value in values:
        with pytest.raises(TypeError, match="not iterable"):
            list(value)
        with pytest.raises(TypeError, match="not (iterable|a container)"):
            assert 0 in value
