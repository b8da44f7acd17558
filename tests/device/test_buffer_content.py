"""Buffers filled with numbers of one size that are read as another: refused, as the bytes would be wrong without a word.
Numbers of the right size, unsigned integers and structured arrays, which may be bytes of anything, are taken."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slangpy as spy

RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
CODE = """
struct S { float3 v; int id; };
struct D { float x; double y; };
float first(StructuredBuffer<float> b) { return b[0]; }
float first_of_struct(StructuredBuffer<S> b) { return b[0].v.x; }
int whole(StructuredBuffer<int> b) { return b[1]; }
uint bits(StructuredBuffer<uint> b) { return b[0]; }
uint raw(ByteAddressBuffer b) { return b.Load(4); }
[shader("compute")] [numthreads(1, 1, 1)]
void copy(StructuredBuffer<float> b, RWStructuredBuffer<float> o) { o[0] = b[0]; }
"""
POINTERS = "float at(float* p, int i) { return p[i]; }\ndouble wide(StructuredBuffer<D> b) { return b[0].y; }\nstruct D { float x; double y; };"
X = np.array([1.5, 2.5])
Call = Callable[["Subject"], Any]


class Subject:
    def __init__(self, device: spy.Device) -> None:
        self.device = device
        self.module: Any = spy.Module.load_from_source(device, "contents", CODE)
        linked = device.link_program([self.module.device_module], [self.module.device_module.entry_point("copy")])
        self.kernel = device.create_compute_kernel(linked)

    def buffer(self, data: Any, **fields: Any) -> spy.Buffer:
        return self.device.create_buffer(data=data, usage=RW, **fields)

    def layout(self) -> Any:
        native = self.module.layout.native
        return native.get_type_layout(native.find_type_by_name("StructuredBuffer<float>"))

    def copied(self, buffer: spy.Buffer) -> float:
        out = self.device.create_buffer(size=4, usage=RW)
        self.kernel.dispatch(1, b=buffer, o=out)
        return float(out.to_numpy().view(np.float32)[0])


@pytest.fixture(scope="module")
def subjects() -> dict[int, Subject]:
    return {}


@pytest.fixture
def s(device: spy.Device, subjects: dict[int, Subject]) -> Subject:
    if id(device) not in subjects:
        subjects[id(device)] = Subject(device)
    return subjects[id(device)]


def _copied_from_numpy(s: Subject) -> spy.Buffer:
    buffer = s.device.create_buffer(size=64, usage=RW)
    buffer.copy_from_numpy(X)
    return buffer


def _uploaded(s: Subject) -> spy.Buffer:
    buffer = s.device.create_buffer(size=64, usage=RW)
    encoder = s.device.create_command_encoder()
    encoder.upload_buffer_data(buffer, 0, X)
    s.device.submit_command_buffer(encoder.finish())
    return buffer


def _copied_from_buffer(s: Subject) -> spy.Buffer:
    buffer = s.device.create_buffer(size=16, usage=RW)
    encoder = s.device.create_command_encoder()
    encoder.copy_buffer(buffer, 0, s.buffer(X), 0, 16)
    s.device.submit_command_buffer(encoder.finish())
    return buffer


FLOATS = ("filled with numbers of float64 (8 bytes each)", "data.astype(np.float32)", "data.view(np.uint8)")
WRONG: dict[str, tuple[Call, type[Exception], tuple[str, ...]]] = {
    "float64 for float": (lambda s: s.module.first(s.buffer(X)), spy.ResolveException, ("contents::first", "b: Buffer", "its elements are float", *FLOATS)),
    "float64 for a struct": (lambda s: s.module.first_of_struct(s.buffer(X)), spy.ResolveException, ("its elements are S, of float", *FLOATS)),
    "int64 for int": (lambda s: s.module.whole(s.buffer(np.arange(4))), spy.ResolveException, ("numbers of int64", "elements are int", "data.astype(np.int32)")),
    "int64 for uint": (lambda s: s.module.bits(s.buffer(np.arange(4))), spy.ResolveException, ("numbers of int64", "elements are uint")),
    "half for float": (lambda s: s.module.first(s.buffer(X.astype("f2"))), spy.ResolveException, ("numbers of float16 (2 bytes each)", "data.astype(np.float32)")),
    "doubles of Python": (lambda s: s.module.first(s.buffer(array.array("d", X))), spy.ResolveException, FLOATS),
    "written later": (lambda s: s.module.first(_copied_from_numpy(s)), spy.ResolveException, FLOATS),
    "uploaded": (lambda s: s.module.first(_uploaded(s)), spy.ResolveException, FLOATS),
    "copied": (lambda s: s.module.first(_copied_from_buffer(s)), spy.ResolveException, FLOATS),
    "raw dispatch": (lambda s: s.copied(s.buffer(X)), TypeError, ("b: a buffer for StructuredBuffer<float", *FLOATS)),
    "a tensor's storage": (lambda s: spy.Tensor(storage=s.buffer(X), dtype=s.module.layout.find_type_by_name("float"), shape=(4,)), TypeError, ("Tensor 'storage'", *FLOATS)),
    "elements of four bytes": (lambda s: s.buffer(X, struct_size=4), TypeError, ("create_buffer 'data'", "read as elements of 4 bytes (struct_size)", *FLOATS)),
    "a format": (lambda s: s.buffer(X, format=spy.Format.r32_float), TypeError, ("create_buffer 'data'", "read as r32_float", *FLOATS)),
    "a layout": (
        lambda s: s.buffer(X, resource_type_layout=s.layout()), TypeError, ("create_buffer 'data'", "its elements are float", *FLOATS),
    ),
    "the other byte order": (lambda s: s.buffer(X.astype(">f4")), ValueError, ("create_buffer 'data'", ">f4", "newbyteorder('=')")),
}  # fmt: skip


@pytest.mark.needs_kernels
@pytest.mark.one
@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str, s: Subject) -> None:
    make, kind, words = WRONG[name]
    with pytest.raises(kind) as error:
        make(s)
    text = str(error.value)
    assert all(word in text for word in words), text


@pytest.mark.needs_kernels
@pytest.mark.one
def test_taken(s: Subject) -> None:
    single = X.astype(np.float32)
    assert s.module.first(s.buffer(single)) == 1.5 and s.copied(s.buffer(single)) == 1.5
    assert s.module.bits(s.buffer(single)) == 0x3FC00000  # same size: bits
    assert s.module.bits(s.buffer(np.array([1, 2], "f2"))) == 0x40003C00  # unsigned integers unpack smaller numbers
    assert s.module.bits(s.buffer(np.array([1, 2, 3, 4], "i1"))) == 0x04030201
    assert s.module.bits(s.buffer(np.array([1.0]))) == 0
    assert s.module.first(s.buffer(single.view(np.uint8))) == 1.5
    assert s.module.first(s.buffer(single.view(np.uint64))) == 1.5
    record = np.zeros(1, [("v", "f4", 3), ("id", "i4")])
    record["v"] = 7
    assert s.module.first_of_struct(s.buffer(record)) == 7
    assert s.module.raw(s.buffer(X)) == X.view(np.uint32)[1]
    # what was filled in first is gone
    for fill in (lambda b: b.copy_from_numpy(single.view(np.uint8)), lambda b: _fill(s, b)):
        buffer = s.buffer(X)
        fill(buffer)
        assert s.module.first(buffer) in (1.5, 0)


def _fill(s: Subject, buffer: spy.Buffer) -> None:
    encoder = s.device.create_command_encoder()
    encoder.clear_buffer(buffer)
    s.device.submit_command_buffer(encoder.finish())


@pytest.mark.needs_kernels
@pytest.mark.one
def test_pointers_and_doubles(s: Subject) -> None:
    if not s.device.has_feature(spy.Feature.pointer):
        pytest.skip("no pointers")
    module: Any = spy.Module.load_from_source(s.device, "content_pointers", POINTERS)
    assert module.at(s.buffer(X.astype(np.float32)), 1) == 2.5
    assert module.wide(s.buffer(X)) == 2.5  # one of the fields is a double
    with pytest.raises(spy.ResolveException, match="numbers of float64"):
        module.at(s.buffer(X), 1)


@pytest.mark.null
def test_texels() -> None:
    device = spy.create_device("null")
    with pytest.raises(TypeError, match=r"create_texture 'data': .*float64 .* read as rg32_float; fill it with data.astype\(np.float32\)"):
        device.create_texture(format=spy.Format.rg32_float, width=2, height=1, usage=spy.TextureUsage.shader_resource, data=X)
    texture = device.create_texture(format=spy.Format.rg32_float, width=2, height=1, usage=spy.TextureUsage.shader_resource)
    encoder = device.create_command_encoder()
    for call in (lambda: encoder.upload_texture_data(texture, 0, 0, X), lambda: encoder.upload_texture_data(texture, [X])):
        with pytest.raises(TypeError, match="upload_texture_data: .*float64"):
            call()
    encoder.upload_texture_data(texture, 0, 0, np.ones(4, np.float32))
    encoder.finish()
    device.close()
