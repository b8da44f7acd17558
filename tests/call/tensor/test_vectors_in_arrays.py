"""Arrays of numbers whose last dimension holds vectors, for parameters that are tensors or views of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls_support import plain, source

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

SOURCE = """
import slangpy;
float first(Tensor<float3, 1> t, int i) { return t[i].x + 10 * t[i].y + 100 * t[i].z; }
float corner(Tensor<float2, 2> t, int i, int k) { return t[i, k].y; }
int whole(Tensor<int4, 1> t, int i) { return t[i].w + t.shape[0]; }
void swap(int i, RWTensor<float3, 1> t) { t[i] = t[i].zyx; }
void put(int i, WTensor<float3, 1> t) { t[i] = float3(i, 1, 2); }
struct Mesh { Tensor<float3, 1> points; float scale; };
float area(Mesh m, int i) { return m.points[i].z * m.scale; }
"""
VIEWS = """
import slangpy;
float view(int i, TensorView<float3> t) { return t[i].x + 10 * t[i].y + 100 * t[i].z + 1000 * t.size(0); }
void set(int i, TensorView<float3> t) { t[i] = float3(i, 2, 3); }
float three(Tensor<float3, 1> t, int i) { return t[i].z; }
"""
POINTS = np.arange(15, dtype=np.float32).reshape(5, 3)


def like(device: Any, values: np.ndarray, kind: str) -> Any:
    if kind == "numpy":
        return values
    torch = pytest.importorskip("torch")
    place = device.torch_device if device.info.type is spy.DeviceType.cuda else "cpu"
    base = torch.from_numpy(np.ascontiguousarray(values)).to(place)
    return base


KINDS = ["numpy", "torch"]


@pytest.mark.parametrize("kind", KINDS)
def test_read(device: Any, kind: str) -> None:
    m = source(device, "vectors_in_arrays", SOURCE)
    points = like(device, POINTS, kind)
    assert plain(m.first(points, spy.grid((5,)), _result="numpy")) == (POINTS @ [1, 10, 100]).tolist()
    many = like(device, np.arange(30, dtype=np.float32).reshape(2, 5, 3), kind)
    assert plain(m.first(many, 4, _result="numpy")) == [12 + 130 + 1400, 27 + 280 + 2900]  # a call for each
    grid = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    assert m.corner(like(device, grid, kind), 2, 1, _result="numpy").item() == grid[2, 1, 1]
    whole = like(device, np.arange(12, dtype=np.int32).reshape(3, 4), kind)
    assert m.whole(whole, 1, _result="numpy").item() == 7 + 3
    assert m.area({"points": points, "scale": 2.0}, 1, _result="numpy").item() == 10


@pytest.mark.parametrize("kind", KINDS)
def test_write(device: Any, kind: str) -> None:
    m = source(device, "vectors_in_arrays", SOURCE)
    points = like(device, POINTS.copy(), kind)
    m.swap(spy.grid((5,)), points)
    assert points.tolist() == POINTS[:, ::-1].tolist()
    m.put(spy.grid((2,)), points)
    assert points[:2].tolist() == [[0, 1, 2], [1, 1, 2]]


def test_strides(device: Any) -> None:
    torch = pytest.importorskip("torch")
    m = source(device, "vectors_in_arrays", SOURCE)
    place = device.torch_device if device.info.type is spy.DeviceType.cuda else "cpu"
    points = torch.from_numpy(POINTS.copy()).to(place)
    expected = (POINTS @ [1, 10, 100]).tolist()
    assert m.first(points[1::2], spy.grid((2,))).tolist() == expected[1::2]
    assert m.first(points[:1].expand(4, 3), spy.grid((4,))).tolist() == [expected[0]] * 4
    wide = torch.arange(20.0, device=place).reshape(5, 4)
    if device.info.type in (spy.DeviceType.cpu, spy.DeviceType.cuda):  # others read packed copies
        with pytest.raises(ValueError, match=r"argument t has strides of \[4, 1\].*pass a contiguous copy"):
            m.first(wide[:, :3], 0)
    assert m.first(wide[:, :3].contiguous(), 1).item() == 4 + 50 + 600


def test_what_does_not_fit(device: Any) -> None:
    m = source(device, "vectors_in_arrays", SOURCE)
    with pytest.raises(spy.ShapeError, match="expected shape"):
        m.first(np.zeros((5, 4), np.float32), 0)
    with pytest.raises((spy.ResolveException, spy.ShapeError)):
        m.first(np.zeros(3, np.float32), 0)
    with pytest.raises(spy.ResolveException, match="element type"):
        m.first(np.zeros((5, 3)), 0)
    with pytest.raises(spy.ResolveException, match="element type"):
        m.first(spy.Tensor.from_numpy(device, POINTS), 0)  # a Tensor has an element type of its own


@pytest.mark.parametrize("kind", KINDS)
def test_views(device: Any, kind: str) -> None:
    if device.info.type is spy.DeviceType.d3d12:
        pytest.skip("no views on Direct3D 12")
    m = source(device, "views_of_three", VIEWS)
    points = like(device, POINTS.copy(), kind)
    assert plain(m.view(spy.grid((5,)), points, _result="numpy")) == (POINTS @ [1, 10, 100] + 5000).tolist()
    m.set(spy.grid((2,)), points)
    assert points[:2].tolist() == [[0, 2, 3], [1, 2, 3]]
