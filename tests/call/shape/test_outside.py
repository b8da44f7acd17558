"""CPU devices: indices outside read zeros, are not written, never end the process, and give one warning."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

USAGE = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
SOURCE = """
struct Big { float4 parts[5]; int k; }
float of_tensor(Tensor<float, 1> x, int i) { return x[i]; }
float of_table(Tensor<float, 2> x, int i) { return x[1, i]; }
float of_vectors(Tensor<float3, 1> x, int i) { return x[i].y; }
float of_structs(Tensor<Big, 1> x, int i) { return x[i].parts[1].y + x[i].k; }
float of_array(int i) { float a[3] = { 1, 2, 3 }; return a[i]; }
float of_list(float a[3], int i) { return a[i]; }
float of_vector3(float3 v, int i) { return v[i]; }
float of_vector2(float2 v, int i) { return v[i]; }
float of_vector4(float4 v, int i) { return v[i]; }
float of_matrix(float3x2 m, int i) { return m[i][0]; }
float of_row(float3x2 m, int i) { return m[1][i]; }
float of_buffer(StructuredBuffer<float> b, int i) { return b[i]; }
float of_writable(RWStructuredBuffer<float> b, int i) { return b[i]; }
float of_bytes(ByteAddressBuffer b, int i) { return b.Load<float>(4 * i); }
float of_words(ByteAddressBuffer b, int i) { return asfloat(b.Load(4 * i)); }
void to_tensor(RWTensor<float, 1> x, int i) { x[i] = 7; }
void to_buffer(RWStructuredBuffer<float> b, int i) { b[i] = 7; }
void to_bytes(RWByteAddressBuffer b, int i) { b.Store(4 * i, asuint(7.0f)); }
float to_array(int i) { float a[3] = { 1, 2, 3 }; a[i] = 7; return 100 * a[0] + 10 * a[1] + a[2]; }
float to_vector(float3 v, int i) { v[i] = 7; return 100 * v.x + 10 * v.y + v.z; }
[Differentiable] float squared(DiffTensor<float, 1> x, int i) { return x[i] * x[i]; }

[shader("compute")] [numthreads(8, 1, 1)]
void raw(uint3 t: SV_DispatchThreadID, uniform uint at, RWStructuredBuffer<float> b, RWByteAddressBuffer q)
{
    b[t.x + at] = b[t.x + at] + 1;
    q.Store(t.x * 4 + at * 4, 3);
}
"""
PLACES = np.array([0, 5, 2, -1, 1, 10**9, 3, -(2**29)], np.int32)
VALUES = np.array([1, 2, 3], np.float32)


@pytest.fixture(scope="module")
def cpu() -> Any:
    device = spy.Device(type="cpu")  # type: ignore[arg-type]
    yield device
    device.close()


@pytest.fixture
def m(cpu: Any) -> Any:
    return source(cpu, "outside", "import slangpy;\n" + SOURCE)


def buffer(device: Any) -> Any:
    return device.create_buffer(size=12, struct_size=4, usage=USAGE, data=VALUES)


def tensor(device: Any, values: np.ndarray = VALUES, **options: Any) -> Any:
    return spy.Tensor.from_numpy(device, values, **options)


def table(device: Any) -> Any:
    return tensor(device, np.stack([VALUES * 10, VALUES]))


def vectors(device: Any) -> Any:
    return tensor(device, np.repeat(VALUES[:, None], 3, 1), target_slang_dtype="float3")


READS: dict[str, Callable[[Any], Any]] = {
    "of_tensor": tensor, "of_table": table, "of_vectors": vectors, "of_array": lambda device: None,
    "of_list": lambda device: [1.0, 2.0, 3.0], "of_vector3": lambda device: spy.float3(1, 2, 3),
    "of_matrix": lambda device: spy.float3x2([1, 0, 2, 0, 3, 0]), "of_buffer": buffer, "of_writable": buffer,
    "of_bytes": buffer, "of_words": buffer,
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_reads_give_zero(cpu: Any, m: Any, name: str) -> None:
    value = READS[name](cpu)
    arguments = (PLACES,) if value is None else (value, PLACES)
    function = getattr(m, name)
    with pytest.warns(RuntimeWarning, match=rf"outside::{name}: .*outside.*bounds_checks=False") as seen:
        found = function(*arguments, _result="numpy")
    assert found.tolist() == [VALUES[i] if 0 <= i < 3 else 0 for i in PLACES]
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is told once
        function(*arguments, _result="numpy")


def test_smaller_and_larger_elements(cpu: Any, m: Any) -> None:
    with pytest.warns(RuntimeWarning):
        assert m.of_vector2(spy.float2(1, 2), PLACES, _result="numpy").tolist() == [1, 0, 0, 0, 2, 0, 0, 0]
    with pytest.warns(RuntimeWarning):
        assert m.of_vector4(spy.float4(1, 2, 3, 4), PLACES, _result="numpy").tolist() == [1, 0, 3, 0, 2, 0, 4, 0]
    with pytest.warns(RuntimeWarning):
        assert m.of_row(spy.float3x2([0, 0, 1, 2, 0, 0]), PLACES, _result="numpy").tolist() == [1, 0, 0, 0, 2, 0, 0, 0]
    with pytest.warns(RuntimeWarning, match=r"index \[5\] is outside of a tensor of shape \[2\] \(argument x\)"):
        m.of_structs(spy.Tensor.zeros(cpu, (2,), m.Big), np.array([0, 5, -3000000], np.int32))
    empty = spy.Tensor.zeros(cpu, (0,), "float")
    with pytest.warns(RuntimeWarning):
        assert m.of_tensor(empty, 0) == 0


@pytest.mark.parametrize("name", ["to_tensor", "to_buffer", "to_bytes"])
def test_writes_are_dropped(cpu: Any, m: Any, name: str) -> None:
    target = tensor(cpu) if name == "to_tensor" else buffer(cpu)
    with pytest.warns(RuntimeWarning, match=f"outside::{name}: .*writes were dropped"):
        getattr(m, name)(target, np.array([1, 3, -1, 10**9, -(2**29)], np.int32))
    assert target.to_numpy().view(np.float32).tolist() == [1, 7, 3]


def test_writes_to_parts_are_dropped(m: Any) -> None:
    for function, arguments in ((m.to_array, ()), (m.to_vector, (spy.float3(1, 2, 3),))):
        with pytest.warns(RuntimeWarning):
            assert function(*arguments, PLACES, _result="numpy").tolist() == [723, 123, 127, 123, 173, 123, 123, 123]


def test_gradients(cpu: Any, m: Any) -> None:
    x = tensor(cpu).with_grads()
    result = spy.Tensor.zeros(cpu, (8,), "float").with_grads()
    result.grad.copy_from_numpy(np.ones(8, np.float32))
    with pytest.warns(RuntimeWarning, match=r"squared: index \[5\] is outside"):
        m.squared.bwds(x, PLACES, _result=result)
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_kernels_of_users(cpu: Any, m: Any) -> None:
    program = m.session.link_program([m.device_module], [m.device_module.entry_point("raw")])
    kernel = cpu.create_compute_kernel(program)
    b, q = buffer(cpu), cpu.create_buffer(size=12, usage=USAGE)
    with pytest.warns(RuntimeWarning, match="raw: an index was outside of a buffer or an array"):
        kernel.dispatch([8, 1, 1], at=10**6, b=b, q=q)
    kernel.dispatch([8, 1, 1], at=0, b=b, q=q)
    assert b.to_numpy().view(np.float32).tolist() == [2, 3, 4]
    assert q.to_numpy().view(np.uint32).tolist() == [3, 3, 3]


def test_warnings_may_be_errors(cpu: Any, m: Any) -> None:
    other = source(cpu, "outside_too", "import slangpy;\n" + SOURCE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="of_tensor: index"):
            other.of_tensor(tensor(cpu), 7)
        with pytest.raises(RuntimeWarning, match="of_array: an index"):
            other.of_array(7)
    assert other.of_tensor(tensor(cpu), 2) == 3


def test_without_checks(cpu: Any) -> None:
    device = spy.Device(type="cpu", bounds_checks=False)  # type: ignore[arg-type, call-arg]
    module = source(device, "outside", "import slangpy;\n" + SOURCE)
    assert "_spy_check_bounds = true" not in module.of_tensor.debug_build_call_data(tensor(device), 1).code
    assert module.of_tensor(tensor(device), PLACES[:1], _result="numpy").tolist() == [1]
    assert module.of_array(1) == 2
    device.close()
    assert spy.DeviceDesc().bounds_checks is True


CRASH = """
import numpy as np, slangpy as spy, warnings
warnings.simplefilter("ignore")
device = spy.Device(type="cpu")
m = spy.Module.load_from_source(device, "far", '''import slangpy;
float get(Tensor<float, 1> x, int64_t i) { return x[i]; }
void put(RWTensor<float, 1> x, int64_t i) { x[i] = 1; }
float local(int64_t i) { float a[4] = {}; a[i] = 1; return a[(i + 1) % 4]; }
void fill(RWStructuredBuffer<float> b, uint i) { b[i * 65536] = 1; }''')
x = spy.Tensor.zeros(device, (3,), "float")
far = np.random.default_rng(1).integers(-2**62, 2**62, 10007)
m.get(x, far); m.put(x, far); m.local(far)
m.fill(device.create_buffer(size=64, struct_size=4, usage=spy.BufferUsage.unordered_access), np.arange(1, 10007, dtype=np.uint32))
print(x.to_numpy().tolist())
"""


def test_the_process_lives() -> None:
    done = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[0.0, 0.0, 0.0]\n"), done.stderr
