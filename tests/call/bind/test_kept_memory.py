"""What holds an address keeps alive what it points to: structs with tensors and pointers as results and as values."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls_support import source

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

COUNT = 4099  # large and odd: the allocator gives just such a piece again

SOURCE = """
struct Weights { Tensor<float, 1> w; float scale; }
struct Part { float* p; int n; }
struct Holder { StructuredBuffer<float> rows; float scale; }
struct Usual { Tensor<float, 1> w; float scale = 3; }

float use(Weights w, int i) { return w.w[i] * w.scale; }
float of_usual(Usual u, int i) { return u.w[i] * u.scale; }
float of_holder(Holder h, int i) { return h.rows[i] * h.scale; }
float of_part(Part p, int i) { return p.p[i] * p.n; }
float read(float* p, int i) { return p[i]; }

Weights make(Tensor<float, 1> t, float s) { Weights w; w.w = t; w.scale = s; return w; }
Part part(float* p, int n) { Part r; r.p = p; r.n = n; return r; }
float* place(float* p, int i) { return p + i; }
void into(float* p, out Part r) { r.p = p; r.n = 2; }
void again(float* p, int n, inout Part r) { if (n > 0) { r.p = p; r.n = n; } }
Holder holder(StructuredBuffer<float> b) { Holder h; h.rows = b; h.scale = 1; return h; }
float* same(uint64_t a) { return (float*)a; }
"""


@pytest.fixture
def m(device: Any) -> Any:
    if not device.has_feature(spy.Feature.pointer):
        pytest.skip("no pointers")
    return source(device, "kept_memory", SOURCE)


def fresh(device: Any, first: float = 0.0) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.arange(COUNT, dtype=np.float32) + np.float32(first))


def poison(device: Any) -> list[spy.Tensor]:
    """Takes what memory is free and of the size that the tests use, and overwrites it."""
    gc.collect()
    device.wait()
    taken = [spy.Tensor.empty(device, (COUNT,), "float") for _ in range(16)]
    for tensor in taken:
        tensor.copy_from_numpy(np.full(COUNT, -7, np.float32))
    device.wait()
    return taken


def numbers(value: Any) -> list[float]:
    return np.asarray(value.to_numpy() if isinstance(value, spy.Tensor) else value).ravel().tolist()


def out_part(m: Any, device: Any) -> Any:
    given = spy.ValueRef({"_type": "Part"})
    m.into(fresh(device), given)
    return given.value


def out_tensor(m: Any, device: Any) -> Any:
    parts = spy.Tensor.empty(device, (3,), m.Part)
    m.into(fresh(device), parts)
    return parts


def recorded(m: Any, device: Any) -> Any:
    parts = spy.Tensor.empty(device, (3,), m.Part)
    encoder = device.create_command_encoder()
    m.into.append_to(encoder, fresh(device), parts)
    device.submit_command_buffer(encoder.finish())
    return parts


def partly(m: Any, device: Any) -> Any:
    parts = out_tensor(m, device)
    m.again(fresh(device), np.array([0, 2, 0], np.int32), parts)  # the others point to what the first call had
    return parts


def prepared(m: Any, device: Any) -> Any:
    counts = spy.Tensor.from_numpy(device, np.full(3, 2, np.int32))
    call = m.part.prepare(p=fresh(device, 5), n=counts)
    call()
    call.set(p=fresh(device))
    return call()


RESULTS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "struct": (lambda m, device: m.make(fresh(device), 2.0), "use"),
    "structs": (lambda m, device: m.make(fresh(device), np.full(3, 2, np.float32)), "use"),
    "view of structs": (lambda m, device: m.make(fresh(device), np.full(3, 2, np.float32))[1:], "use"),
    "pointer in a struct": (lambda m, device: m.part(fresh(device), 2), "of_part"),
    "pointers in structs": (lambda m, device: m.part(fresh(device), np.full(3, 2, np.int32)), "of_part"),
    "of a buffer": (lambda m, device: m.part(fresh(device).storage, 2), "of_part"),
    "constructor of pointers": (lambda m, device: m.Part(fresh(device), 2), "of_part"),
    "by way of another": (lambda m, device: m.part(m.place(fresh(device), 0), 2), "of_part"),
    "out": (out_part, "of_part"),
    "out tensor": (out_tensor, "of_part"),
    "inout tensor": (partly, "of_part"),
    "recorded": (recorded, "of_part"),
    "prepared": (prepared, "of_part"),
    "prepared struct": (lambda m, device: m.part.prepare(fresh(device), 2)(), "of_part"),
}


@pytest.mark.parametrize("what", RESULTS)
def test_results_keep_what_they_point_to(m: Any, device: Any, what: str) -> None:
    make, use = RESULTS[what]
    made = make(m, device)
    taken = poison(device)
    got = numbers(getattr(m, use)(made, COUNT - 1))
    assert got == [2.0 * (COUNT - 1)] * len(got)
    del taken


def test_pointers_as_results(m: Any, device: Any) -> None:
    one = m.place(fresh(device), 7)
    several = m.place(fresh(device), np.arange(3, dtype=np.int32))
    host = m.place(fresh(device), np.arange(3, dtype=np.int32), _result="numpy")
    part_of_host = host[1:]
    del host
    taken = poison(device)
    assert m.read(one, 2) == 9
    assert numbers(m.read(several, 1)) == [1, 2, 3]
    assert numbers(m.read(part_of_host, 1)) == [2, 3]
    assert part_of_host.dtype == np.uint64 and type(part_of_host) is np.ndarray
    assert isinstance(one, int) and copy.copy(one) is one and copy.deepcopy([one])[0] is one
    assert type(pickle.loads(pickle.dumps(one))) is int and one + 0 == int(one) and repr(one) == str(int(one))
    del taken


def test_what_holds_memory_lets_it_go(m: Any, device: Any) -> None:
    """With the result goes what it kept, and a call in a loop adds nothing to a tensor that it writes anew."""
    parts = spy.Tensor.empty(device, (3,), m.Part)
    counts = set()
    for _ in range(5):
        m.into(fresh(device), parts)
        counts.add(len(parts.storage._memory))
    assert counts == {1}
    assert m.same(4096) == 4096 and type(m.same(4096)) is int  # nobody's memory


@pytest.mark.parametrize("given", [np.arange(COUNT, dtype=np.float32), [0.0, 1.0, 2.0]], ids=["array", "list"])
def test_copies_for_one_call_are_refused(m: Any, given: Any) -> None:
    with pytest.raises(spy.ResolveException, match=r"make: argument t is .*a copy that ends with it.*pass a Tensor"):
        m.make(given, 1.0)
    with pytest.raises(spy.ResolveException, match="argument t is"):
        m.make(given, np.ones(3, np.float32))


def test_torch_tensors(m: Any, device: Any) -> None:
    """Kept where the device reads them in place, else refused."""
    torch = pytest.importorskip("torch")
    on = "cuda" if device.info.type is spy.DeviceType.cuda else "cpu"
    make = lambda: m.make(torch.arange(COUNT, dtype=torch.float32, device=on), 2.0)  # noqa: E731
    if device.info.type not in (spy.DeviceType.cpu, spy.DeviceType.cuda):
        with pytest.raises(spy.ResolveException, match="argument t is .*a copy that ends with it"):
            make()
        return
    made = make()
    gc.collect()
    taken = [torch.full((COUNT,), -7.0, device=on) for _ in range(16)]
    assert m.use(made, COUNT - 1) == 2.0 * (COUNT - 1)
    del taken


# --- constructors


@pytest.mark.parametrize("form", ["tensor", "array", "list"])
def test_constructors_with_tensors(m: Any, device: Any, form: str) -> None:
    data = np.arange(COUNT, dtype=np.float32)
    make: Callable[[], Any] = {
        "tensor": lambda: spy.Tensor.from_numpy(device, data),
        "array": lambda: data.copy(),
        "list": lambda: data.tolist(),
    }[form]
    made = [m.Weights(make(), 2.0), m.Weights(w=make(), scale=2.0), m.Weights(scale=2.0, w=make())]
    usual = m.Usual(w=make())
    taken = poison(device)
    for value in [*made, spy.pack(m, made[0]), spy.InstanceList(m.Weights, made[1])]:
        assert m.use(value, 5) == 10.0
    assert numbers(m.use(made[0], np.array([1, 5], np.int32))) == [2, 10]
    assert m.of_usual(usual, 5) == 15
    several = m.Weights(make(), np.array([1, 2, 3], np.float32))  # spread where it is used
    assert numbers(m.use(several, 5)) == [5, 10, 15]
    built = spy.InstanceList(m.Weights)
    built.construct(make(), 2.0)
    assert m.use(built, 5) == 10.0
    del taken


def test_constructors_with_buffers(m: Any, device: Any) -> None:
    made = m.Holder(fresh(device).storage, scale=2.0)
    taken = poison(device)
    assert m.of_holder(made, 5) == 10
    del taken


def test_constructors_say_what_is_wrong(m: Any, device: Any) -> None:
    t = fresh(device)
    with pytest.raises(TypeError, match=r"kept_memory::Weights: 'scal' is no field; its fields are w, scale"):
        m.Weights(w=t, scal=1.0)
    with pytest.raises(TypeError, match="got 3 values for 2 fields"):
        m.Weights(t, 1.0, 2.0)
    with pytest.raises(TypeError, match="'w' is given twice"):
        m.Weights(t, w=t)
    with pytest.raises(TypeError, match="'_result' is no field"):
        m.Weights(t, 1.0, _result="numpy")
    with pytest.raises(ValueError, match=r"field 'w' \(Tensor<float, 1>\) needs a value"):
        m.Weights(scale=1.0)
    with pytest.raises(
        spy.ResolveException, match=r"holder: the result of 'holder' is a Holder with the resource rows"
    ):
        m.holder(t)
