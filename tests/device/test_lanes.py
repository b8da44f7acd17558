"""Loops that end at different times on the CPU device: the same bits with lanes and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack.lanes.strict import strict_compiler

import slangpy as spy
from slangpy.compiler import executable
from slangpy.compiler.text.host import END_OF_PRELUDE
from slangpy.compiler.text.lanes import with_lanes
from slangpy.compiler.text.short import compile_kernel
from slangpy.config import Config, config

pytestmark = [pytest.mark.one, pytest.mark.needs_kernels]

SOURCE = (Path(__file__).parents[2] / "benchmarks" / "divergent.slang").read_text() + """
int collatz(int start, int most)
{
    int n = start, steps = 0, odd = 0;
    while (n != 1 && n != 0 && steps < most)
    {
        bool is_odd = (n & 1) != 0;
        for (int k = 0; k < (n & 3); k++)
            odd += is_odd ? n % (k + 2) : 100 / (n + k);
        n = is_odd ? 3 * n + 1 : n >> 1;
        steps++;
    }
    return steps * 1000 + odd;
}
float guarded(int start, int most, Tensor<float, 1> table)
{
    float sum = 0;
    for (int i = start; i < most; i += 3)
    {
        if (i < 0)
            continue;
        if (i >= int(table.shape[0]))
            return sum;
        sum = sum * 0.5 + sin(table[i]);
    }
    return -sum;
}
int counted(int start, int most, RWTensor<int, 1> seen)
{
    int n = start;
    for (; n < most; n += 7)
        seen[n & 3] = n;
    return n;
}
int turns(int start, int most)
{
    int n = start, count = 0;
    while (n < most)
    {
        n += 7;
        switch (n & 3)
        {
        case 0: count++; break;
        case 1: if (n > 40) n += 5; count += 2; break;
        case 2: if (n > 70) return count; continue;
        default: break;
        }
        count += 3;
    }
    return -count;
}
[Differentiable]
float bent(float x, float y, no_diff int most)
{
    float sum = x;
    [MaxIters(24)]
    for (int i = 0; i < most; i++)
    {
        if (sum > 1)
            sum = sum * 0.25 - y * x;
        else
            sum += sin(y) * 0.5 + 0.1;
        if (sum < -1.5)
            break;
    }
    return sum;
}
float functions(float x, float y, int kind, int most)
{
    float r = 0;
    for (int i = 0; i < most; i++)
    {
        float z = x * (i + 1);
        switch (kind)
        {
        case 0: r = exp(z); break;
        case 1: r = exp2(z); break;
        case 2: r = log(z); break;
        case 3: r = log2(z); break;
        case 4: r = sin(z); break;
        case 5: r = cos(z); break;
        case 6: r = frac(z); break;
        default: r = pow(z, y); break;
        }
        if (r > i)
            break;
    }
    return r;
}
float histogram(float x, int most, int step)
{
    float seen[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, sum = 0;
    for (int i = 0; i < most; i++)
    {
        x = x * x * 0.75 - 0.5 * sum;
        seen[i & 7] += x;
        seen[int(abs(x) * 5) & 7] -= seen[(i * step) & 7];
        sum = seen[3] * 0.5 + x * x;
        if (sum > 8)
            break;
    }
    return sum - seen[0] + seen[7];
}
void stored(int start, int most, int place, RWTensor<int, 1> steps) { steps[place] = turns(start, most); }
float large(float x, int most)
{
    float seen[1 << 20], sum = x;
    for (int i = 0; i < most && sum < 50; i++)
    {
        seen[(i * 7) & 0xfffff] = sum;
        sum = (sum * 1.25 + x * x) * 0.5 + x * sum * 0.125 - seen[0] * 0.01 + 0.5;
    }
    return sum;
}
float nested(float x, int most)
{
    float carried = x, sum = 0;
    for (int k = 0; k < 4; k++)
    {
        float fresh = x * k - 0.5;
        int parity = 0, why = 0;
        for (int i = 0; i < most; i++)
        {
            carried = carried * 0.75 + fresh * 0.125;
            fresh = fresh * fresh * 0.5 - carried;
            parity = parity == 1 ? 0 : 1;
            if (fresh > 1.5)
                why = 3;
            else if (carried > 0.75 && i > 2)
                why = 1;
            sum += why == 2 ? 100 : parity != 0 ? fresh : 0.25 * carried;
            if (why != 0)
                break;
        }
        if (sum > 9)
            continue;
        sum += why == 1 ? 0.5 : -0.25;
    }
    return sum;
}
struct Pair { float a[3]; float b; };
struct Both { Pair first; int turns; Pair second; };
Both filled(float x, int most)
{
    Pair first, second;
    first.a[0] = second.a[0] = x;
    first.a[1] = first.a[2] = second.a[1] = second.a[2] = first.b = second.b = 0;
    int i = 0;
    for (; i < most && first.a[0] < 3; i++)
    {
        first.a[i % 3] = first.a[0] * 1.25 + 0.125;
        first.a[0] += 0.25 * abs(x);
        second.b += first.a[2];
        if (second.b > 5)
            break;
    }
    Both both;
    both.turns = i;
    both.first = first;
    both.second = second;
    return both;
}
float parts(float x, int most)
{
    Both both = filled(x, most);
    return both.first.a[0] + 2 * both.first.a[1] - both.first.a[2] + both.second.b * 4 + both.turns;
}
float chosen(float x, int most)
{
    float total = 0;
    for (int i = 0; i < most; i++)
    {
        float v, w;
        bool stop;
        if (x > 0)
        {
            v = x * 2;
            if (v > 1.5) { w = v - 1; } else { w = v; v = w + 0.25; }
            v = v * 0.5;
            stop = w > 1.75;
        }
        else
        {
            switch ((i + int(x * 8)) & 3)
            {
            case 0: v = 1; if (x < -1) break; v = 2; break;
            case 1: v = x; break;
            default: v = 0.5;
            }
            w = v * x;
            stop = false;
        }
        bool far = total > 3;
        if (far)
            stop = !stop;
        total += v + w;
        if (stop && i > 2)
            break;
        x = x * 1.25 - v * 0.375;
        if (abs(x) > 4)
            x = 0.75 - x * 0.125;
    }
    return total;
}
[Differentiable]
float turned(float x, float y, no_diff int most)
{
    float3 at = float3(x, y, 0.5);
    float sum = y, last = 0;
    [MaxIters(24)]
    for (int i = 0; i < most; i++)
    {
        float3 step = at.yzx * 0.5 + float3(y, 0.25, x);
        bool far = dot(step, step) > 9;
        if (far && sum > 0) { last = sum * at.x; break; }
        if (step.x < step.y) { at = step; sum += at.z * x; } else { at = step * 0.75; last += sum; }
        if (sum < -8)
            break;
    }
    return sum * at.y + last;
}
float uniform_turns(float x, int most)
{
    for (int i = 0; i < most; i++)
        x = x * x * 0.5 + 0.125;
    return x;
}
"""


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, list[np.ndarray]]]:
    """By function, without lanes and with."""
    rng = np.random.default_rng(3)
    points = rng.uniform(-2, 2, (333, 2)).astype(np.float32)
    points[:3] = [[np.nan, 0], [np.inf, 1], [0, 0]]
    starts, table = rng.integers(-50, 400, 333).astype(np.int32), rng.normal(size=61).astype(np.float32)
    picture_data = rng.random((8, 8, 4), np.float32)
    found: dict[str, list[np.ndarray]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "cache_enabled", False)
        patch.setattr(executable, "compile_kernel", strict_compiler(lambda label, _: TAKEN.append(label.split("::")[-1])))
        for lanes in (False, True):
            patch.setattr(config, "cpu_lanes", lanes)
            device = spy.Device(type=spy.DeviceType.cpu)
            module = spy.Module.load_from_source(device, "lanes", SOURCE)
            for name in ("mandelbrot", "march", "escape", "wide", "newton", "hashes"):
                found.setdefault(name, []).append(getattr(module, name)(points, 100, _result="numpy"))
            for name in ("nested", "parts", "chosen"):
                found.setdefault(name, []).append(getattr(module, name)(points[:, 0], 12, _result="numpy"))
            found.setdefault("collatz", []).append(module.collatz(starts, 60, _result="numpy"))
            tensor = spy.Tensor.from_numpy(device, table)
            found.setdefault("guarded", []).append(module.guarded(starts, 90, tensor, _result="numpy"))
            long_table = spy.Tensor.from_numpy(device, np.sin(np.arange(1024, dtype=np.float32)))
            seen = spy.Tensor.from_numpy(device, np.zeros(4, np.int32))
            found.setdefault("counted", []).append(module.counted(starts, 90, seen, _result="numpy"))
            found.setdefault("skewed", []).append(module.skewed(points, 20, _result="numpy"))
            found.setdefault("walk", []).append(module.walk(points, 50, long_table, _result="numpy"))
            picture = device.create_texture(
                type=spy.TextureType.texture_2d, width=8, height=8, format=spy.Format.rgba32_float,
                usage=spy.TextureUsage.shader_resource, data=picture_data,
            )  # fmt: skip
            found.setdefault("shade", []).append(module.shade(points, 64, picture, device.create_sampler(), _result="numpy"))
            found.setdefault("lookup", []).append(module.lookup(points[3:], 40, long_table, _result="numpy"))
            found.setdefault("waves", []).append(module.waves(points, 48, _result="numpy"))
            found.setdefault("fog", []).append(module.fog(points, 48, _result="numpy"))
            found.setdefault("histogram", []).append(module.histogram(points[:, 0], np.arange(333, dtype=np.int32) % 90, 3, _result="numpy"))
            x, y = unusual(rng=np.random.default_rng(8))
            found.setdefault("functions", []).append(np.stack([module.functions(x, y, kind, 3, _result="numpy") for kind in range(8)]))
            steps = spy.Tensor.from_numpy(device, np.zeros(333, np.int32))
            module.stored(starts, 90, np.arange(333, dtype=np.int32), steps)
            found.setdefault("stored", []).append(steps.to_numpy())
            x = spy.Tensor.from_numpy(device, np.linspace(-2, 2, 333, dtype=np.float32)).with_grads()
            y = module.iterated(x, 24, _result="tensor").with_grads()
            y.grad.copy_from_numpy(np.ones(333, np.float32))
            module.iterated.bwds(x, 24, _result=y)
            found.setdefault("iterated", []).append(np.stack([y.to_numpy(), x.grad.to_numpy()]))
            for name, result in derivatives(device, module).items():
                found.setdefault(name, []).append(result)
            device.close()
    yield found


def unusual(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents: of all sizes, and those that functions have a rule for."""
    rules = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 88.5, 88.9, -87.5, -103.9, -104, 128, -150, -149.5, 120, -1e5, 3e38]
    x = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x[:1500] = rng.uniform(-150, 150, 1500)
    x[1500 : 1500 + len(rules)] = rules
    y = rng.choice(np.array([*rules, 2.2, 0.5, -3, 2, 7.25, 40], np.float32), 4000)
    x[2000 : 2000 + len(rules) ** 2], y[2000 : 2000 + len(rules) ** 2] = np.repeat(rules, len(rules)), np.tile(rules, len(rules))
    return x, y


def derivatives(device: spy.Device, module: spy.Module) -> dict[str, np.ndarray]:
    """Calls over two dimensions whose arguments are broadcast, so that gradients are summed, or lie apart in memory."""
    c = np.random.default_rng(5).uniform(-2, 2, (9, 37, 4)).astype(np.float32)
    apart = spy.Tensor.from_numpy(device, c)[:, :, ::2]
    found = {"apart": module.skewed(apart, 20, _result="numpy")}
    row, column = (spy.Tensor.from_numpy(device, x).with_grads() for x in (c[:1, :, 0].copy(), c[:, :1, 1].copy()))
    y = spy.Tensor.from_numpy(device, np.zeros((9, 37), np.float32)).with_grads()
    y.grad.copy_from_numpy(c[:, :, 2].copy())
    device.deterministic = True  # else threads decide in which order they add
    module.bent.bwds(row, column, 24, _result=y)
    found["bent"] = np.concatenate([x.grad.to_numpy().ravel() for x in (row, column)])
    module.turned.bwds(row, column, 24, _result=y)
    device.deterministic = False
    found["turned"] = np.concatenate([x.grad.to_numpy().ravel() for x in (row, column)])
    for x in (row, column):
        x.grad.copy_from_numpy(np.full(x.shape.as_tuple(), 0.5, np.float32))
    module.bent.fwds(row, column, 24, _result=y)
    found["bent_tangent"] = np.stack([y.to_numpy(), y.grad.to_numpy()])
    return found


TAKEN: list[str] = []


@pytest.mark.parametrize("name", [*"mandelbrot march escape wide newton hashes nested parts chosen collatz guarded counted skewed walk shade stored iterated apart bent turned bent_tangent lookup waves fog histogram functions".split()])
def test_same_bits(results: dict[str, list[np.ndarray]], name: str) -> None:
    plain, lanes = results[name]
    assert plain.tobytes() == lanes.tobytes()
    assert len(np.unique(plain)) > 12


def test_what_has_lanes(results: dict[str, list[np.ndarray]]) -> None:
    """Functions that store in a loop are left as they are."""
    assert [*"mandelbrot march escape wide newton hashes nested parts chosen collatz guarded skewed walk shade lookup waves fog histogram functions stored iterated iterated skewed bent turned bent".split()] == TAKEN


def test_values(results: dict[str, list[np.ndarray]]) -> None:
    """Against NumPy."""
    rng = np.random.default_rng(3)
    c = rng.uniform(-2, 2, (333, 2)).astype(np.float32)[3:].astype(np.float64) @ [1, 1j]
    z, count, left = np.zeros_like(c), np.zeros(c.shape, int), np.ones(c.shape, bool)
    for _ in range(100):
        z[left] = z[left] ** 2 + c[left]
        left &= abs(z) <= 2
        count += left
    assert np.mean(results["mandelbrot"][1][3:] == count) > 0.97, "rounding moves few"


@pytest.mark.parametrize(("value", "is_on"), [(None, True), ("", True), ("1", True), ("0", False), ("off", False)])
def test_environment(value: str | None, is_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLANGPY_CPU_LANES", raising=False)
    if value is not None:
        monkeypatch.setenv("SLANGPY_CPU_LANES", value)
    assert Config().cpu_lanes == is_on


class Taken(Exception):
    """Instead of a compiled kernel."""


class NoCompiler:
    """Keeps what the C++ compiler would read."""

    def __init__(self) -> None:
        self.text = b""

    def compile(self, text: bytes, *_: Any, **__: Any) -> bytes:
        self.text = text
        raise Taken


def texts_of(names: list[str], lanes: bool, options: dict[str, Any]) -> dict[str, bytes]:
    """What the C++ compiler gets for functions of floats, or of points, and a number of steps."""
    compiler, found = NoCompiler(), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "cpu_lanes", lanes)
        patch.setattr(config, "cache_enabled", False)
        patch.setattr(executable, "compile_kernel", lambda _, text, entry, **given: compile_kernel(compiler, text, entry, **given))
        device = spy.Device(type=spy.DeviceType.cpu, compiler_options=options)
        module = spy.Module.load_from_source(device, "lanes", SOURCE)
        for name in names:
            given = np.zeros((5,) if name in ("large", "uniform_turns", "nested", "parts") else (5, 2), np.float32)
            with pytest.raises(Taken):
                getattr(module, name)(given, 10, _result="numpy")
            found[name] = compiler.text
        device.close()
    return found


def few_results(n: int, options: dict[str, Any], names: tuple[str, ...]) -> dict[str, list[np.ndarray]]:
    """Of n elements, without lanes and with."""
    points = np.random.default_rng(7).uniform(-2, 2, (n, 2)).astype(np.float32)
    points[:2, 0] = [np.nan, np.inf][:n]
    found: dict[str, list[np.ndarray]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "compile_kernel", strict_compiler(lambda label, _: None))
        patch.setattr(config, "cache_enabled", False)
        for lanes in (False, True):
            patch.setattr(config, "cpu_lanes", lanes)
            device = spy.Device(type=spy.DeviceType.cpu, compiler_options=options)
            module = spy.Module.load_from_source(device, "lanes", SOURCE)
            for name in names:
                given = points[:, 0] if name in ("nested", "histogram", "parts") else points
                others = (np.arange(n, dtype=np.int32) % 40, 3) if name == "histogram" else (30,)
                found.setdefault(name, []).append(getattr(module, name)(given, *others, _result="numpy"))
            x = spy.Tensor.from_numpy(device, points[:, 0].copy()).with_grads()
            y = spy.Tensor.empty(device, (n,), "float").with_grads()
            y.grad.copy_from_numpy(np.ones(n, np.float32))
            module.iterated.bwds(x, 24, _result=y)
            found.setdefault("iterated", []).append(x.grad.to_numpy())
            device.close()
    return found


@pytest.mark.parametrize("n", [1, 31, 33])
def test_sizes(n: int) -> None:
    """Less than all lanes, and one more."""
    for name, (plain, lanes) in few_results(n, {}, ("escape",)).items():
        assert plain.tobytes() == lanes.tobytes(), name


def test_processors_without_masks() -> None:
    """Vectors of 256 bits, whose masks are vectors, too."""
    names = ("mandelbrot", "escape", "wide", "hashes", "nested", "parts", "histogram", "fog")
    for name, (plain, lanes) in few_results(333, {"downstream_args": ["-mno-avx512f"]}, names).items():
        assert plain.tobytes() == lanes.tobytes(), name


def test_which_kernels_change() -> None:
    """All others stay as they are: those that have no loop that ends at different times, one that computes too little,
    and one with an array that is too large for 32 elements."""
    assert b"_spy_lanes_of_exp(" in texts_of(["fog"], True, {})["fog"]
    others = ["polynomial", "sines", "uniform_turns", "gcd", "large"]
    on, off = (texts_of(["mandelbrot", *others], lanes, {}) for lanes in (True, False))
    assert b"mandelbrot_0_lanes_" in on.pop("mandelbrot")
    plain = off.pop("mandelbrot")
    assert b"_lanes" not in plain and b"_spy_main" in plain
    assert on == off
    assert texts_of(["mandelbrot"], True, {"cpu_lanes": False}) == {"mandelbrot": plain}


def test_deep_expressions_have_no_lanes() -> None:
    """They are left to the compiler, which reads deeper ones than Python can."""
    code = "static void __spy_main(void* a)\n{\nint64_t i = 0LL;\nfor(;;)\n{\nif(i < 3LL)\n{\n}\nelse\n{\nbreak;\n}\n"
    code += f"float y = {'(' * 5000}1.0f{')' * 5000};\nfor(;;)\n{{\nbreak;\n}}\ni = i + 1LL;\n}}\n}}\n"
    assert with_lanes(END_OF_PRELUDE + code.encode(), for_all=True) is None
