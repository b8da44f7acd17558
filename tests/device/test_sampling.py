"""Samplers against a model in NumPy: formats, filters, addressing, borders, mips, comparisons, gathers, cubes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_kernels import RW, kernel
from sampling_model import A, Model, cube_texel_directions, decoded

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

F = spy.Format
FORMATS = [F.rgba32_float, F.rg32_float, F.r32_float, F.rgba16_float, F.rgba8_unorm, F.rgba8_unorm_srgb, F.bgra8_unorm,
           F.rg8_snorm, F.rgba16_unorm, F.r16_snorm, F.r8_unorm]  # fmt: skip
MODES = [A.wrap, A.clamp_to_edge, A.clamp_to_border, A.mirror_repeat, A.mirror_once]
COMPARE = {spy.ComparisonFunc.less: np.less, spy.ComparisonFunc.greater_equal: np.greater_equal,
           spy.ComparisonFunc.not_equal: np.not_equal}  # fmt: skip
SOURCE = """
Texture2D<float4> plane; Texture3D<float4> volume; Texture2D<float> depth; TextureCube<float4> cube;
SamplerState s; SamplerComparisonState c;

[shader("compute")]
[numthreads(32, 1, 1)]
void main(uint3 thread : SV_DispatchThreadID, StructuredBuffer<float4> at, RWStructuredBuffer<float4> o, uniform uint n)
{
    uint i = thread.x;
    if (i >= n) return;
    float4 p = at[i];
    o[i] = plane.SampleLevel(s, p.xy, p.w);
    o[n + i] = plane.SampleLevel(s, p.xy, p.w, int2(-1, 2));
    o[2 * n + i] = volume.SampleLevel(s, p.xyz, p.w);
    o[3 * n + i] = plane.GatherGreen(s, p.xy);
    o[4 * n + i] = float4(depth.SampleCmpLevelZero(c, p.xy, p.z));
    o[5 * n + i] = plane.SampleGrad(s, p.xy, float2(exp2(p.w) / 13, 0), float2(0, exp2(p.w - 1) / 9));
    o[6 * n + i] = cube.SampleLevel(s, 2 * p.xyz - 1, 0);
    o[7 * n + i] = depth.GatherCmp(c, p.xy, p.z);
    o[8 * n + i] = plane.Load(int3(i % 13, i / 13 % 9, 0));
}
"""
N = 230
ROWS = 9


def mips_of(size: tuple[int, ...]) -> list[tuple[int, ...]]:
    count = max(size).bit_length()
    return [tuple(max(1, n >> mip) for n in size) for mip in range(count)]


def random_raw(rng: Any, format_: F, size: tuple[int, ...]) -> np.ndarray:
    info = spy.get_format_info(format_)
    shape = (*size, info.channel_count)
    bits = info.channel_bit_count[0]
    if info.is_float_format():
        return rng.random(shape).astype(np.float16 if bits == 16 else np.float32)
    is_signed = "snorm" in format_.name
    kind = np.dtype(f"{'i' if is_signed else 'u'}{bits // 8}")
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)


def filled(device: spy.Device, rng: Any, format_: F, size: tuple[int, ...]) -> tuple[spy.Texture, list[np.ndarray]]:
    kind = spy.TextureType.texture_3d if len(size) == 3 else spy.TextureType.texture_2d
    depth = {"depth": size[0]} if len(size) == 3 else {}
    texture = device.create_texture(type=kind, width=size[-1], height=size[-2], mip_count=spy.ALL_MIPS, format=format_,
                                    usage=spy.TextureUsage.shader_resource, **depth)  # fmt: skip
    raw = [random_raw(rng, format_, part) for part in mips_of(size)]
    for mip, data in enumerate(raw):
        texture.copy_from_numpy(data if data.shape[-1] > 1 else data[..., 0], mip=mip)
    return texture, [decoded(format_, data) for data in raw]


def cube_of(device: spy.Device) -> spy.Texture:
    """Its texels are the directions that they lie in: linear filtering of them is continuous over the edges."""
    texture = device.create_texture(type=spy.TextureType.texture_cube, width=32, height=32, format=F.rgba32_float,
                                    usage=spy.TextureUsage.shader_resource)  # fmt: skip
    for layer, face in enumerate(cube_texel_directions(32)):
        texture.copy_from_numpy(np.concatenate([face, np.ones((32, 32, 1))], -1).astype(np.float32), layer=layer)
    return texture


class Case:
    """A random sampler and random textures, with what they must give."""

    def __init__(self, device: spy.Device, seed: int) -> None:
        rng = np.random.default_rng(seed)
        exact = device.info.type is spy.DeviceType.cpu
        self.format = FORMATS[seed % len(FORMATS)] if exact else FORMATS[seed % 2]
        self.modes = tuple(MODES[i] for i in rng.integers(0, len(MODES), 3))
        self.linear = tuple(bool(b) for b in rng.integers(0, 2, 3))
        color = [(0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0)][seed % 3]
        border = tuple(float(b) for b in rng.random(4)) if exact else color
        self.bias = float(np.float32(rng.choice([0, 0.3, -0.7])))
        self.lods = (0.25, 2.5) if rng.random() < 0.3 else (-1000.0, 1000.0)
        self.function = list(COMPARE)[seed % len(COMPARE)]
        at = rng.uniform(-1.6, 2.6, (N, 4))
        at[:, 3] = rng.uniform(-1, 5, N)
        self.at = at.astype(np.float32)
        modes = {f"address_{axis}": mode for axis, mode in zip("uvw", self.modes, strict=True)}
        filters = dict(
            zip(
                ("min_filter", "mag_filter", "mip_filter"),
                (spy.TextureFilteringMode(int(b)) for b in self.linear),
                strict=True,
            )
        )
        common = {
            **modes,
            **filters,
            "border_color": border,
            "mip_lod_bias": self.bias,
            "min_lod": self.lods[0],
            "max_lod": self.lods[1],
        }
        self.sampler = device.create_sampler(**common)
        self.comparison = device.create_sampler(
            **common, comparison_func=self.function, reduction_op=spy.TextureReductionOp.comparison
        )
        self.plane, plane = filled(device, rng, self.format, (9, 13))
        self.volume, volume = filled(device, rng, self.format, (5, 6, 7))
        self.depth, depth = filled(device, rng, F.r32_float, (8, 8))
        channels = spy.get_format_info(self.format).channel_count
        color = np.where(np.arange(4) < channels, border, [0, 0, 0, 1])
        settings = {"modes": self.modes, "linear": self.linear, "bias": self.bias, "lods": self.lods}
        self.texels = plane[0]
        self.flat = Model(plane, border=color, **settings)
        self.deep = Model(volume, border=color, **settings)
        self.shadow = Model(depth, border=np.array([border[0], 0, 0, 1]), **settings, compare=COMPARE[self.function])

    def expected(self) -> np.ndarray:
        at, lod = self.at, self.at[:, 3]
        gradient = np.log2(np.maximum(np.exp2(lod.astype(np.float64)), np.exp2(lod.astype(np.float64) - 1)))
        return np.stack(
            [
                self.flat.sample(at, lod),
                self.flat.sample(at, lod, (-1, 2, 0)),
                self.deep.sample(at, lod),
                self.flat.footprint(at)[..., 1],
                np.repeat(self.shadow.sample(at, np.zeros(N, np.float32))[:, :1], 4, 1),
                self.flat.sample(at, gradient),
                np.zeros((N, 4)),
                self.shadow.footprint(at)[..., 0],
                self.texels[np.arange(N) // 13 % 9, np.arange(N) % 13],
            ]
        )


def run(device: spy.Device, program: Any, case: Case, cube: spy.Texture) -> np.ndarray:
    at = device.create_buffer(data=case.at.ravel(), struct_size=16, usage=RW)
    out = device.create_buffer(element_count=ROWS * N, struct_size=16, usage=RW)
    textures = {"plane": case.plane, "volume": case.volume, "depth": case.depth, "cube": cube}
    variables = {**textures, "s": case.sampler, "c": case.comparison}
    if "depth." not in program.program.modules[0].source:
        variables = {name: value for name, value in variables.items() if name not in ("c", "depth")}
    program.dispatch(N, variables, at=at, o=out, n=N)
    return out.to_numpy().view(np.float32).reshape(ROWS, N, 4)


def test_filters_agree_with_numpy_on_the_cpu() -> None:
    """44 samplers at 230 places each: more than 10 000 lookups of each kind."""
    device = spy.Device(type=spy.DeviceType.cpu)
    cube, program = cube_of(device), kernel(device, SOURCE)
    for seed in range(44):
        case = Case(device, seed)
        found, expected = run(device, program, case, cube), case.expected()
        for row in (0, 1, 2, 3, 4, 5, 7, 8):
            same_level = np.ones(N, bool)
            if row == 5:  # the level comes out of a logarithm: leave out where it decides about a filter
                lod = np.clip(case.at[:, 3].astype(float) + case.bias, *case.lods)
                same_level = np.abs(lod * 2 - np.round(lod * 2)) > 1e-4
            tolerance = 3e-6 if row == 5 else 1e-6
            np.testing.assert_allclose(found[row][same_level], expected[row][same_level], 1e-5 if row == 5 else 0, tolerance,
                                       err_msg=f"seed {seed}, {case.format}, row {row}")  # fmt: skip
        check_cube(case, found[6])
    device.close()


def check_cube(case: Case, found: np.ndarray) -> None:
    """Filtered directions point where they were asked for; the texels are a sixteenth wide."""
    asked = 2 * case.at[:, :3].astype(np.float64) - 1
    asked /= np.abs(asked).max(1, keepdims=True)
    linear = case.linear[0] if np.clip(case.bias, *case.lods) > 0 else case.linear[1]
    # beside an edge the filter mixes in texels of the next face, which lie up to a texel off
    inside = (np.sort(np.abs(asked), 1)[:, 1] < 1 - 1 / 32)[:, None]
    limit = np.where(inside, 1e-5 if linear else 1 / 32 + 1e-5, 1.1 / 16)
    assert (np.abs(found[:, :3] - asked) <= limit).all()


def test_filters_agree_with_numpy_on_gpus(device: spy.Device) -> None:
    """Coordinates, weights and levels have 8 bits there: what lies nearer to where another texel begins is left out."""
    if device.info.type in (spy.DeviceType.cpu, spy.DeviceType.cuda):
        pytest.skip("has a test of its own, or no comparison samplers")
    # formats of depth would be needed to compare, and cannot be uploaded
    source = "\n".join(line for line in SOURCE.splitlines() if "depth." not in line).replace(
        "Texture2D<float> depth;", ""
    )
    cube, program = cube_of(device), kernel(device, source.replace("SamplerComparisonState c;", ""))
    for seed in range(15):  # 10 350 lookups
        case = Case(device, seed)
        found, expected = run(device, program, case, cube), case.expected()
        lod = np.clip(case.at[:, 3].astype(float) + case.bias, *case.lods)
        clear = np.abs(lod * 2 - np.round(lod * 2)) > 0.02
        for row, size in ((0, (13, 9)), (1, (13, 9)), (2, (7, 6, 5))):
            good = clear.copy()
            for mip in range(4):
                for axis, n in enumerate(size):
                    u = case.at[:, axis].astype(float) * max(1, n >> mip)
                    good &= np.abs(u * 2 - np.round(u * 2)) > 0.02
            error = np.abs(found[row] - expected[row])[good].max()
            assert good.sum() > N / 4 and error < 0.03, f"seed {seed}, {case.format}, row {row}: {error}"
        np.testing.assert_allclose(found[8], expected[8], 0, 1e-6, err_msg=f"seed {seed}, {case.format}, texels")


VIEWED = """
[shader("compute")]
[numthreads(32, 1, 1)]
void main(uint3 thread : SV_DispatchThreadID, Texture2D<float4> image, SamplerState s, StructuredBuffer<float2> at,
          RWStructuredBuffer<float4> o, uniform uint n, uniform float level)
{
    if (thread.x < n)
        o[thread.x] = image.SampleLevel(s, at[thread.x], level);
}
"""


@pytest.mark.parametrize("format_", [F.rgba32_float, F.rgba8_unorm, F.rgba16_float], ids=str)
def test_a_view_of_smaller_mips_is_sampled_from_its_first(device: spy.Device, format_: F) -> None:
    rng = np.random.default_rng(5)
    texture, mips = filled(device, rng, format_, (32, 24))
    view = texture.create_view(mip=1, mip_count=2)
    edge = spy.TextureAddressingMode.clamp_to_edge
    sampler = device.create_sampler(address_u=edge, address_v=edge)
    places = (rng.integers(-16, 300, (N, 2)) / 256).astype(np.float32)
    at = device.create_buffer(data=places, struct_size=8, usage=RW)
    out = device.create_buffer(element_count=N, struct_size=16, usage=RW)
    program = kernel(device, VIEWED)
    model = Model(mips[1:3], modes=(edge, edge, edge), linear=(True, True, True))
    tolerance = 1e-6 if device.info.type is spy.DeviceType.cpu else 0.03
    for level in (-1.0, 0.0, 0.5, 1.0):
        program.dispatch(N, image=view, s=sampler, at=at, o=out, n=N, level=level)
        expected = model.sample(places, np.full(N, level, np.float32))
        np.testing.assert_allclose(out.to_numpy().view(np.float32).reshape(N, 4), expected, 0, tolerance)


def test_texels_without_weight_do_not_count_on_the_cpu() -> None:
    """An infinite neighbour of the texel that is hit in its middle, inside and beside the edge."""
    device = spy.Device(type=spy.DeviceType.cpu)
    pixels = np.full((4, 4, 4), np.inf, np.float32)
    pixels[1, 1], pixels[3, 3] = 2, 3
    texture = device.create_texture(
        format=F.rgba32_float, width=4, height=4, usage=spy.TextureUsage.shader_resource, data=pixels
    )
    places = np.array([(1.5 / 4, 1.5 / 4), (3.5 / 4, 3.5 / 4)], np.float32)
    at = device.create_buffer(data=places, struct_size=8, usage=RW)
    out = device.create_buffer(element_count=2, struct_size=16, usage=RW)
    kernel(device, VIEWED).dispatch(2, image=texture, s=device.create_sampler(), at=at, o=out, n=2, level=0.0)
    assert out.to_numpy().view(np.float32).reshape(2, 4).tolist() == [[2] * 4, [3] * 4]
    device.close()
