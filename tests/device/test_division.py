"""Integer divisions without a result: on the CPU device 0 and one warning, as in NumPy; elsewhere any number. Never the end
of the process."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from device_kernels import RW, kernel

import slangpy as spy
from slangpy.compiler.text.divisions import checked_divisions

pytestmark = pytest.mark.needs_kernels

TYPES = {"int8_t": np.int8, "int16_t": np.int16, "int": np.int32, "int64_t": np.int64}
TYPES |= {"uint8_t": np.uint8, "uint16_t": np.uint16, "uint": np.uint32, "uint64_t": np.uint64}


@pytest.mark.filterwarnings("ignore:.*divided by zero")
@pytest.mark.elsewhere("%-int", "%-uint16_t", "%-int64_t", "/-uint64_t", "/-int8_t")
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("operation", ["/", "%"])
def test_against_numpy(device: spy.Device, name: str, operation: str) -> None:
    if device.type is not spy.DeviceType.cpu and TYPES[name]().itemsize != 4:
        pytest.skip("not every device has this type")
    source = f"{name} f({name} a, {name} b) {{ return a {operation} b; }}"
    f = spy.Module.load_from_source(device, f"division_{name}_{'/%'.index(operation)}", source).f
    info = np.iinfo(TYPES[name])
    rng = np.random.default_rng()
    a = rng.integers(info.min, info.max, 1003, TYPES[name], endpoint=True)
    b = rng.integers(max(info.min, -5), 5, 1003, TYPES[name])
    a[::7] = info.min
    with np.errstate(all="ignore"):
        # C rounds towards zero, NumPy's integers downwards.
        quotient = np.where(b == 0, 0, np.trunc(a.astype(np.longdouble) / np.where(b == 0, 1, b)))
        quotient = np.where((a == info.min) & (b.astype(np.int64) == -1), a, quotient.astype(TYPES[name]))
        expected = quotient if operation == "/" else a - quotient * b
        expected = np.where(b == 0, 0, expected).astype(TYPES[name])
    got = f(a, b, _result="numpy")
    sure = np.ones_like(b, bool) if device.type is spy.DeviceType.cpu else (b != 0) & (a != info.min)
    np.testing.assert_array_equal(got[sure], expected[sure])


@pytest.mark.filterwarnings("ignore:.*divided by zero")
@pytest.mark.parametrize("name", [name for name in TYPES if name.startswith("i")])
def test_the_least_number_by_minus_one(name: str) -> None:
    """It is itself, as wide as its type wherever it is used, in vectors and matrices, too."""
    source = f"""
    typealias T = {name};
    int64_t[6] f(T a, T b)
    {{
        vector<T, 3> v = vector<T, 3>(a) / vector<T, 3>(b), w = vector<T, 3>(a) % vector<T, 3>(b);
        matrix<T, 2, 2> m = matrix<T, 2, 2>(a, a, a, a) / matrix<T, 2, 2>(b, b, b, b);
        T c = a;
        c /= b;
        return {{ int64_t(a / b), int64_t(a / b < T(0)), int64_t(a % b), int64_t(v.y) + int64_t(w.z), int64_t(m[1][0]), int64_t(c) }};
    }}
    T shifted(T a, int by) {{ return T((a << by) ^ (a >> by)); }}
    """
    module = spy.Module.load_from_source(spy.Device(type="cpu"), f"least_{name}", source)
    least = np.iinfo(TYPES[name]).min
    b = np.array([-1, 0], TYPES[name])
    got = module.f(np.full(2, least, TYPES[name]), b, _result="numpy")
    assert got.tolist() == [[least, 1, 0, least, least, least], [0] * 6]
    # by as many bits as there are, or more: any number, and no crash
    module.shifted(np.full(200, least, TYPES[name]), np.arange(-100, 100, dtype=np.int32), _result="numpy")


def test_one_warning_for_a_kernel() -> None:
    device = spy.Device(type="cpu")
    module = spy.Module.load_from_source(device, "division_told", "int3 f(int3 a, int b) { return a / b; }")
    with pytest.warns(RuntimeWarning, match="division_told::f: an integer was divided by zero: the result is 0"):
        assert list(module.f(spy.int3(1, 2, 3), 0)) == [0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(module.f(spy.int3(1, 2, 3), 0)) == [0, 0, 0]
        assert list(module.f(spy.int3(4, 5, 6), 2)) == [2, 2, 3]


@pytest.mark.filterwarnings("ignore:.*divided by zero")
def test_what_follows_a_division_is_decided_by_its_operands() -> None:
    """A C++ compiler may conclude from a division that nothing is zero."""
    source = "int f(int a, int b) { int q = a / b; return b == 0 ? -1 : q; } int g(int a, int b) { return select(b != 0, a % b, a); }"
    module = spy.Module.load_from_source(spy.Device(type="cpu"), "division_checked", source)
    a, b = np.array([7, 8, 9], np.int32), np.array([0, 2, 0], np.int32)
    assert module.f(a, b, _result="numpy").tolist() == [-1, 4, -1]
    assert module.g(a, b, _result="numpy").tolist() == [7, 0, 9]


@pytest.mark.filterwarnings("ignore:.*divided by zero")
def test_in_groups_and_loops(device: spy.Device) -> None:
    """Kernels whose threads wait for each other run on stacks of their own."""
    if device.type is not spy.DeviceType.cpu:
        pytest.skip("division by zero has a result on the cpu device alone")
    source = """
    groupshared int shared[33];
    [shader("compute")] [numthreads(33, 1, 1)]
    void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex, RWStructuredBuffer<int> data)
    {
        shared[i] = data[id.x];
        GroupMemoryBarrierWithGroupSync();
        int sum = 0;
        for (int k = -2; k < 3; k++) sum += 60 / (shared[32 - i] * k);
        data[id.x] = sum + int(id.x) / shared[i];
    }"""
    values = np.arange(66, dtype=np.int32) % 33 - 16
    buffer = device.create_buffer(data=values, usage=RW, struct_size=4)
    kernel(device, source).dispatch([66, 1, 1], data=buffer)
    own, other = values.astype(int), values.reshape(2, 33)[:, ::-1].reshape(-1).astype(int)

    def divide(x: int, y: int) -> int:
        return int(x / y) if y else 0

    pairs = zip(other, own, strict=True)
    expected = [sum(divide(60, o * k) for k in range(-2, 3)) + divide(i, v) for i, (o, v) in enumerate(pairs)]
    assert buffer.to_numpy().view(np.int32).tolist() == expected


LATER_HANDLERS = """
import faulthandler, os, signal, sys, threading, warnings
import numpy as np
import slangpy as spy

warnings.simplefilter("ignore")
module = spy.Module.load_from_source(spy.Device(type="cpu"), "later", "int f(int a, int b) { return a / b + a % b; }")
a, b = np.arange(1003, dtype=np.int32) - 500, np.arange(1003, dtype=np.int32) % 3 - 1
expected = np.where(b == 0, 0, -a * (b == -1) + a * (b == 1))

def check():
    assert np.array_equal(module.f(a, b, _result="numpy"), expected)

check()
faulthandler.enable()
check()
signal.signal(signal.SIGFPE, signal.SIG_DFL)
check()
thread = threading.Thread(target=check)
thread.start()
thread.join()
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        check()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("all right")
"""


def test_other_handlers_of_the_signal_do_not_matter() -> None:
    done = subprocess.run([sys.executable, "-c", LATER_HANDLERS], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("all right\n", 0), done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.filterwarnings("ignore:.*divided by zero")
def test_divisions_in_expressions() -> None:
    """Their order stays; matrices, literals of all forms, and numbers that are no integers."""
    source = """
    static const int limits[3] = { 12 / 5, -7 % 4, 1 };
    int f(int a, int b) { return 100 / a * 3 % b - 7 / -b / a % -3 + limits[1]; }
    float g(float a, int b) { return a / 4 / float(b / 2) * a / (1.0f / a) + float(b % -1); }
    int2x2 m(int2x2 a, int b) { return a / int2x2(b, 1, 2, b) % int2x2(3); }
    int compound(int a, int b) { a /= b; a %= 7; a += b / 0x10; return a; }
    double d(double a, int64_t b) { return a / double(b) + double(uint16_t(b) / uint8_t(b)); }
    """
    module = spy.Module.load_from_source(spy.Device(spy.DeviceType.cpu), "division_orders", source)
    rest, over = lambda a, b: math.fmod(a, b) if b else 0, lambda a, b: int(a / b) if b else 0
    for a in (-9, -1, 0, 3, 5):
        for b in (-4, -1, 0, 2, 33):
            assert module.f(a, b) == rest(over(100, a) * 3, b) - rest(over(over(7, -b), a), -3) - 3
            assert module.compound(a, b) == rest(over(a, b), 7) + over(b, 16)
    assert module.g(6.0, 4) == np.float32(6 / 4 / 2 * 6 / (1 / 6))
    assert module.d(6.0, 4) == 2.5
    assert np.array(module.m(spy.int2x2([9, 8, 7, 6]), 0)).tolist() == [[0, 2], [0, 0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a / b", "a / _spy_by / b"),
        ("a%b", "a% _spy_by %b"),
        ("a / 7U + b % int(3)", "a / 7U + b % int(3)"),
        ("a / 2.0f / b", "a / 2.0f / _spy_by / b"),
        ("a / 0 / int(-1)", "a / _spy_by / 0 / _spy_by / int(-1)"),
        ('f("a / b%d"); // a / b\n/* a % b */ a /= b', 'f("a / b%d"); // a / b\n/* a % b */ a /= b'),
        ("#include <a/b>\nx = '/' / y", "#include <a/b>\nx = '/' / _spy_by / y"),
        ("a / 1e5f", "a / _spy_by / 1e5f"),
    ],
)
def test_text_of_divisions(text: str, expected: str) -> None:
    assert checked_divisions(text.encode()).decode() == expected
