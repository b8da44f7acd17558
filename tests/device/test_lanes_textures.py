"""Samples and loads of textures in loops of the CPU device: the same bits with lanes and without, and NumPy's numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from attack.lanes.strict import strict_compiler

import slangpy as spy
from slangpy.compiler import executable
from slangpy.config import config

pytestmark = [pytest.mark.one, pytest.mark.needs_kernels]

SOURCE = """
{type} sampled(float2 at, int most, Texture2D<{type}> t, SamplerState s)
{{
    {type} sum = {type}(0);
    for (int i = 0; i < most; i++)
    {{
        {type} v = t.SampleLevel(s, at, 0);
        sum = sum * 0.5 + v + t.Sample(s, at.yx);
        if (sum{x} > 2.5)
            break;
        at += float2(0.375, -0.21);
    }}
    return sum;
}}
{type} loaded(float2 at, int most, Texture2D<{type}> t)
{{
    {type} sum = {type}(0);
    int2 place = int2(at * 3);
    for (int i = 0; i < most; i++)
    {{
        sum = sum * 0.5 + t.Load(int3(place, 0)) + t[uint2(place.yx)];
        if (sum{x} > 2.5)
            break;
        place += int2(1, -1);
    }}
    return sum;
}}
float parts(float2 at, int most, Texture2D<{type}> t, SamplerState s)
{{
    float sum = 0;
    for (int i = 0; i < most; i++)
    {{
        sum = sum * 0.75 + t.SampleLevel(s, at, 0){last} - 0.25 * t.Load(int3(int2(at * 4), 0)){last};
        if (sum > 1.5)
            break;
        at = at.yx * 1.0625;
    }}
    return sum;
}}
"""
TYPES = {"r32_float": ("float", "", ""), "rg32_float": ("float2", ".x", ".y"), "rgba32_float": ("float4", ".x", ".w"),
         "rgba8_unorm": ("float4", ".x", ".z"), "r16_float": ("float", "", "")}  # fmt: skip
"""By format: of the texture, what of it decides when loops end, and a part."""
MODES = ("wrap", "clamp_to_edge", "clamp_to_border", "mirror_repeat", "mirror_once")
SIZE = (7, 5)


def points() -> np.ndarray:
    """Inside, at the edges, beside them by less and by more than a texture, far away, and no numbers."""
    rng = np.random.default_rng(8)
    rules = np.array([0, -0.0, 1, -1, 0.5, 1 / 14, 13 / 14, -1 / 14, 2, 7.25, 1e4, -1e4, 1e9, -1e30, np.inf, -np.inf, np.nan], np.float32)
    found = rng.uniform(-2.5, 3, (1500, 2)).astype(np.float32)
    found[: len(rules) ** 2] = np.stack(np.meshgrid(rules, rules), -1).reshape(-1, 2)
    return np.concatenate([found, rng.uniform(0, 1, (333, 2)).astype(np.float32)])


def lines() -> np.ndarray:
    """Of places beside each other, as those of a picture: lanes read few texels, and some lines cross edges."""
    steps = np.linspace(0, 1, 320)[:, None]
    ends = [((0.1, 0.2), (0.9, 0.2)), ((0.4, 0.3), (0.5, 0.31)), ((0.95, 0.97), (1.1, 1.02)), ((0.2, 0.9), (0.2, -0.1)), ((0.9, 0.5), (-0.2, 0.5))]
    return np.concatenate([np.array(a) * (1 - steps) + np.array(b) * steps for a, b in ends]).astype(np.float32)


def texture(device: spy.Device, name: str, at_edge: float = 0.0, size: tuple[int, int] = SIZE) -> tuple[Any, np.ndarray]:
    channels = {"float": 1, "float2": 2, "float4": 4}[TYPES[name][0]]
    data = np.random.default_rng(4).random((size[1], size[0], channels), np.float32)
    if at_edge:
        data[0, 0, 0] = at_edge
    types = {"rgba8_unorm": np.uint8, "r16_float": np.float16}
    stored = (data * 255).astype(np.uint8) if name == "rgba8_unorm" else data.astype(types.get(name, np.float32))
    made = device.create_texture(
        type=spy.TextureType.texture_2d, width=size[0], height=size[1], format=spy.Format[name],
        usage=spy.TextureUsage.shader_resource, data=stored,
    )  # fmt: skip
    return made, stored.astype(np.float32) / (255 if name == "rgba8_unorm" else 1)


Results = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def both() -> Iterator[Callable[..., tuple[list[bytes], list[Results]]]]:
    """The kernels of a format with lanes, and results without and with them. How a texture is sampled is no part of a kernel, so
    those of a format are compiled once."""
    made: dict[str, tuple[list[bytes], list[Any]]] = {}
    closing = contextlib.ExitStack()

    def kernels_of(name: str) -> tuple[list[bytes], list[Any]]:
        if name not in made:
            type, x, last = TYPES[name]
            text, modules = SOURCE.format(type=type, x=x, last=last), []
            for _ in range(2):
                device = closing.enter_context(spy.Device(type=spy.DeviceType.cpu))
                modules.append(spy.Module.load_from_source(device, f"textures_{name}", text))
            made[name] = [], modules
        return made[name]

    def both(
        name: str, mode: str, filter: str, at_edge: float = 0.0, size: tuple[int, int] = SIZE, given: np.ndarray | None = None,
    ) -> tuple[list[bytes], list[Results]]:  # fmt: skip
        taken, modules = kernels_of(name)
        found = []
        for on, module in zip((False, True), modules, strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(config, "cpu_lanes", on)
                patch.setattr(config, "cache_enabled", False)
                patch.setattr(executable, "compile_kernel", strict_compiler(lambda _, code: taken.append(code)))
                t, _ = texture(module.device, name, at_edge, size)
                address = spy.TextureAddressingMode[mode]
                linear = spy.TextureFilteringMode[filter]
                s = module.device.create_sampler(
                    min_filter=linear, mag_filter=linear, address_u=address, address_v=address, border_color=(0.25, 0.5, 0.75, 1)
                )
                given = points() if given is None else given
                found.append({
                    "sampled": module.sampled(given, 7, t, s, _result="numpy"), "loaded": module.loaded(given, 7, t, _result="numpy"),
                    "parts": module.parts(given, 7, t, s, _result="numpy"),
                })  # fmt: skip
        return taken, found

    with closing:
        yield both


@pytest.mark.parametrize(("name", "mode"), [*((name, "wrap") for name in TYPES), ("rgba32_float", "clamp_to_edge"), ("rgba8_unorm", "clamp_to_edge")])
def test_same_bits(both: Any, name: str, mode: str) -> None:
    taken, (plain, lanes) = both(name, mode, "linear")
    assert len(taken) == 3 and b"_spy_lanes_samplelevel<-1>(" in taken[0] and b"_spy_lanes_load<-1>(" in taken[1]
    for key, values in plain.items():
        assert values.tobytes() == lanes[key].tobytes(), key
        assert len(np.unique(values)) > 50


@pytest.mark.parametrize(
    ("name", "mode", "size"),
    [("r32_float", "wrap", (61, 9)), ("rgba32_float", "clamp_to_edge", (8, 8)), ("rgba8_unorm", "wrap", (40, 16)), ("r32_float", "clamp_to_edge", (3, 2))],
)
def test_places_near_each_other(both: Any, name: str, mode: str, size: tuple[int, int]) -> None:
    """The last has fewer numbers than one vector."""
    taken, (plain, lanes) = both(name, mode, "linear", size=size, given=lines())
    assert b"_spy_lanes_samplelevel<-1>(" in taken[0]
    for key, values in plain.items():
        assert values.tobytes() == lanes[key].tobytes(), key
    assert len(np.unique(plain["sampled"])) > 100


@pytest.mark.parametrize(("mode", "filter"), [*((mode, "linear") for mode in MODES[2:]), ("wrap", "point")])
def test_other_samplers(both: Any, mode: str, filter: str) -> None:
    _, (plain, lanes) = both("rgba32_float", mode, filter)
    assert all(values.tobytes() == lanes[key].tobytes() for key, values in plain.items())


def test_infinite_texels_of_no_weight(both: Any) -> None:
    _, (plain, lanes) = both("r32_float", "clamp_to_edge", "linear", at_edge=np.inf)
    assert all(np.array_equal(values, lanes[key], equal_nan=True) for key, values in plain.items())
    assert np.isinf(plain["sampled"]).any() and np.isfinite(plain["sampled"]).any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["r32_float", "rgba8_unorm"])
def test_values(name: str, mode: str) -> None:
    """One sample, against NumPy in float64: at edges, too, which kernels of the CPU read themselves."""
    device = spy.Device(type=spy.DeviceType.cpu)
    type, x, _ = TYPES[name]
    module = spy.Module.load_from_source(
        device, "one_sample", f"float one(float2 at, Texture2D<{type}> t, SamplerState s) {{ return t.SampleLevel(s, at, 0){x}; }}"
    )
    t, data = texture(device, name)
    address = spy.TextureAddressingMode[mode]
    s = device.create_sampler(address_u=address, address_v=address, border_color=(0.25, 0.5, 0.75, 1))
    given = points()
    given = given[(abs(given) < 20).all(1)]
    got = module.one(given, t, s, _result="numpy")
    at = given.astype(np.float64) * SIZE - 0.5
    low = np.floor(at).astype(int)
    part = at - low
    want = np.zeros(len(given))
    for dx in (0, 1):
        for dy in (0, 1):
            columns, rows = (indices(low[:, k] + d, SIZE[k], mode) for k, d in ((0, dx), (1, dy)))
            texels = np.where((columns < 0) | (rows < 0), 0.25, data[rows, columns, 0])
            want += (part[:, 0] if dx else 1 - part[:, 0]) * (part[:, 1] if dy else 1 - part[:, 1]) * texels
    np.testing.assert_allclose(got, want, atol=2e-5)
    device.close()


def indices(i: np.ndarray, n: int, mode: str) -> np.ndarray:
    """-1: the border."""
    if mode == "wrap":
        return i % n
    if mode == "mirror_repeat":
        m = i % (2 * n)
        return np.where(m < n, m, 2 * n - 1 - m)
    if mode == "mirror_once":
        return np.minimum(np.where(i < 0, -(i + 1), i), n - 1)
    return np.clip(i, 0, n - 1) if mode == "clamp_to_edge" else np.where((i < 0) | (i >= n), -1, i)
