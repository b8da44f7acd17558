"""Integers of all widths have the values that NumPy gives them, at the edges of their types, too."""

from __future__ import annotations

import integer_forms as forms
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels


@pytest.mark.parametrize("name", forms.TYPES)
def test_as_numpy_has_them(device: spy.Device, name: str) -> None:
    bits = forms.TYPES[name]().itemsize * 8
    if device.type is spy.DeviceType.d3d12 and bits != 32:
        pytest.skip("HLSL has no integers of 8 bits, and not every device the others")
    on_cuda = device.type is spy.DeviceType.cuda
    chosen = forms.forms(name, device.type is not spy.DeviceType.vulkan or bits == 32, on_cuda)
    module = spy.Module.load_from_source(device, f"integers_{name}", forms.source(name, chosen))
    a, b = forms.values(name)
    got = module.all(a, b, _result="numpy")
    assert forms.differences(got, forms.expected(name, chosen, a, b), chosen, a, b) == []


def test_beside_rows_that_are_written(device: spy.Device) -> None:
    """Rows of a matrix are found by a sum, too, in kernels that have narrow integers."""
    if device.type is spy.DeviceType.d3d12:
        pytest.skip("not every device has integers of 16 bits")
    source = """
    void add(inout float2 row, int16_t by) { row += float(by + by); }
    float f(float x, int16_t by)
    {
        float2x2 m = float2x2(x, x, x, x);
        add(m[1], by);
        m[0][1] = 3;
        return m[1][0] * 100 + m[0][1];
    }
    """
    module = spy.Module.load_from_source(device, "integers_and_rows", source)
    assert module.f(1.0, 20000) == (1 + 40000 - 65536) * 100 + 3
