"""Parameters that are texture and sampler in one: which sampler is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_kernels import RW, kernel

import slangpy as spy

SAMPLE = """
[shader("compute")] [numthreads(1, 1, 1)]
void main(Sampler2D<float> t, uniform float2 uv, RWStructuredBuffer<float> o) { o[0] = t.SampleLevel(uv, 0); }"""
TEXELS = np.array([[1, 2], [3, 4]], np.float32)
EDGE = spy.TextureAddressingMode.clamp_to_edge


@pytest.fixture
def textured(device: spy.Device) -> spy.Device:
    if device.type is spy.DeviceType.null:
        pytest.skip("runs nothing")
    return device


def sampler(device: spy.Device, kind: str = "point") -> spy.Sampler:
    mode = spy.TextureFilteringMode[kind]
    return device.create_sampler(min_filter=mode, mag_filter=mode, mip_filter=mode, address_u=EDGE, address_v=EDGE)


def texture(device: spy.Device, **fields: Any) -> spy.Texture:
    usage = spy.TextureUsage.shader_resource
    return device.create_texture(format=spy.Format.r32_float, width=2, height=2, usage=usage, data=TEXELS, **fields)


def sample(device: spy.Device, bound: Any, uv: tuple[float, float]) -> float:
    out = device.create_buffer(size=4, struct_size=4, usage=RW)
    kernel(device, SAMPLE).dispatch([1, 1, 1], t=bound, uv=uv, o=out)
    return float(out.to_numpy().view(np.float32)[0])


def test_sampler_of_the_texture(textured: spy.Device) -> None:
    """Linear and wrapping without one; the texture's; the view's before the texture's."""
    middle, corner = (0.5, 0.5), (1.0, 1.0)
    plain = texture(textured)
    assert sample(textured, plain, middle) == pytest.approx(2.5, abs=1e-2)
    assert sample(textured, plain, corner) == pytest.approx(2.5, abs=1e-2)  # beyond the edge is the other side
    linear = texture(textured, sampler=sampler(textured, "linear"))
    assert sample(textured, linear, middle) == pytest.approx(2.5, abs=1e-2)
    assert sample(textured, linear, corner) == 4
    point = texture(textured, sampler=sampler(textured))
    assert sample(textured, point, (0.6, 0.4)) == 2
    assert sample(textured, point.create_view(), (0.4, 0.6)) == 3
    assert sample(textured, linear.create_view(sampler=sampler(textured)), (0.6, 0.6)) == 4
    assert sample(textured, plain.create_view(sampler=sampler(textured)), (0.4, 0.4)) == 1


def test_samplers_are_kept_and_readable(device: spy.Device) -> None:
    own, other = sampler(device), sampler(device, "linear")
    made = texture(device, sampler=own)
    view = made.create_view({"sampler": other, "mip": 0})
    assert made.desc.sampler is own and view.desc.sampler is other
    assert made.create_view().desc.sampler is None and texture(device).desc.sampler is None
    del own, other
    assert made.desc.sampler.desc.min_filter is spy.TextureFilteringMode.point


def test_wrong_samplers(device: spy.Device, device_type: spy.DeviceType) -> None:
    with pytest.raises(TypeError, match="create_texture 'sampler': expected a Sampler or None"):
        texture(device, sampler=3)
    second = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
    with pytest.raises(ValueError, match="create_view 'sampler'.*another device"):
        texture(device).create_view(sampler=sampler(second))
    second.close()
