"""Never run: pyright checks that users of the package get the types they expect."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_type

import slangpy as spy
from slangpy.bindings import BindContext, BoundVariable, CodeGenBlock


def devices() -> None:
    device = spy.create_device(type=spy.DeviceType.cpu)
    assert_type(device, spy.Device)
    assert_type(device.info.type, spy.DeviceType)
    buffer = device.create_buffer(size=64, usage=spy.BufferUsage.unordered_access)
    assert_type(buffer, spy.Buffer)


def calls(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "name", "float f(float x) { return x; }")
    assert_type(module, spy.Module)
    function = module.require_function("f")
    assert_type(function, spy.FunctionNode)
    assert_type(function.map((0,)).bwds, spy.FunctionNode)
    assert_type(function.fwds, spy.FunctionNode)
    assert_type(spy.check_gradients(function, 1.0), spy.GradientReport)
    assert_type(spy.check_gradients(function, 1.0).ok, bool)
    spy.jvp(function, (1.0,), (1.0,))
    # Names of a module are found at run time; so are results.
    module.f(1.0)
    module.f(x=np.zeros(3, np.float32), _result="numpy")


def tensors(device: spy.Device) -> None:
    tensor = spy.Tensor.from_numpy(device, np.zeros((2, 3), np.float32))
    assert_type(tensor, spy.Tensor)
    assert_type(tensor.with_grads(), spy.Tensor)
    assert_type(tensor.detach(), spy.Tensor)
    assert_type(spy.Tensor.zeros(device, (2, 3), "float"), spy.Tensor)
    tensor.to_numpy().mean()
    spy.grid((2, 3))


def values() -> None:
    vector = spy.float3(1, 2, 3)
    assert_type(vector, spy.float3)
    assert_type(vector.x, float)
    assert_type(spy.floatRef(1.0), spy.ValueRef)
    assert_type(spy.diffPair(1.0), spy.DiffPair)


def mistakes(device: spy.Device) -> None:
    spy.create_device(tipe=1)  # pyright: ignore[reportCallIssue]
    spy.Module.load_from_file(device)  # pyright: ignore[reportCallIssue]
    device.nothing()  # pyright: ignore[reportAttributeAccessIssue]


def names_within_classes(kind: spy.TypeReflection.Kind, scalar: spy.TypeReflection.ScalarType) -> bool:
    return kind is spy.TypeReflection.Kind.struct or scalar is spy.TypeReflection.ScalarType.float32


def keys(code: int) -> bool:
    return code >= spy.KeyCode.escape


class Own(spy.bindings.Marshall):
    """Methods may call their parameters what they like."""

    def gen_calldata(self, cgb: CodeGenBlock, ctx: BindContext, bound: BoundVariable) -> None:
        bound.gen_calldata_type_name(cgb, "Own")
