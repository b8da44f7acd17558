"""`TensorView<T>` and `DiffTensorView<T>`: views whose rank is known at run time."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check, same, seeded, tensor, with_grad

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "test_indices_sizes_and_strides", "test_lists_of_tensors", "test_writes_reach_every_container",
        "test_atomic_integers", "test_vectors_begin_where_a_gpu_reads_them", "test_gradients_of_views",
        "test_half_has_float_gradients",
    ),
]  # fmt: skip

SOURCE = """
IMPORT
float element(int i, TensorView<float> x) { return x[i]; }
float facts(TensorView<float> x)
{
    return x[uint2(1, 2)] + x.size(0) * 100 + x.size(1) * 1000 + x.dims() * 10000 + x.stride(0) * 100000;
}
float forms(TensorView<float> x)
{
    int a = 1, b = 2;
    return x[1, 2] + x.load(1, 2) + x[uint2(1, 2)] + x.load(int2(a, b)) + x[a, b] + *x.data_ptr_at(uint2(1, 2)) - *x.data_ptr();
}
float fifth(TensorView<float> x) { x[0, 1, 0, 1, 0] += 2; return x.load(0, 1, 0, 1, 0) + x[uint4(0, 1, 0, 1)]; }
void change(TensorView<float> x)
{
    float old;
    x[0] = 7;
    x.store(1, 8);
    x.InterlockedAdd(2, 5.0, old);
    x[3] += 2 + old;
}
void integers(int i, TensorView<int> x)
{
    int old;
    x.InterlockedAdd(0, 2, old);
    x.InterlockedMax(1, i, old);
    x.InterlockedMin(2, -i, old);
    x.InterlockedOr(3, 1 << i, old);
    x.InterlockedAnd(4, ~(1 << i), old);
    x.InterlockedXor(5, 1 << i, old);
    x.InterlockedCompareExchange(6, 5, 50);
    if (i == 3) x.InterlockedExchange(uint(7), i, old);
}
float second(TensorView<float2> x) { return x[1u].y + x.size(0) * 10; }
float in_row(TensorView<float2> x) { return x[1, 0].y + x.stride(0) * 100; }
float in_quads(TensorView<float4> x) { return x[1, 0].w + x.stride(0) * 25; }
uint height(TensorView<float2> x) { return x.size(0); }
uint height4(TensorView<float4> x) { return x.size(0); }
T any<T>(TensorView<T> x) { return x[1]; }
int64_t sum(TensorView<int64_t> x) { int64_t old; x.InterlockedAdd(0, int64_t(1) << 40, old); return old; }

[Differentiable] float square(int i, DiffTensorView<float> x) { return x[i] * x[i]; }
[Differentiable] half square_half(int i, DiffTensorView<half> x) { return x.load(i) * x.load(i); }
[Differentiable] double square_double(int i, DiffTensorView<double> x) { return x[i] * x.load(i); }
[Differentiable] void squares_double(uint i, DiffTensorView<double> x, DiffTensorView<double> y) { y[i] = x[i] * x[i]; }
[Differentiable] void squares(DiffTensorView<float> x, DiffTensorView<float> y)
{
    [MaxIters(4)] for (uint i = 0; i < 4; i++)
        y.store(i, x.load(i) * x.load(i));
}
[Differentiable] void once(DiffTensorView<float> x, DiffTensorView<float> y)
{
    [MaxIters(4)] for (uint i = 0; i < 4; i++)
        y.storeOnce(i, x.loadOnce(i) * 3);
}
[Differentiable] void plane(int2 p, DiffTensorView<float> x, DiffTensorView<float> y)
{
    y[uint2(p.y, p.x)] = x[p.y, p.x] * x[uint2(p.y, p.x)];
}
float kinds(DiffTensorView<float> x) { return x.primal[1] + x.diff.dims() + x.size(0) + x.dims(); }
"""


@pytest.fixture(params=["import slangpy;", ""], ids=["imported", "named"])
def m(request, device):
    name = f"run_time_views_{bool(request.param)}"
    return spy.Module.load_from_source(device, name, SOURCE.replace("IMPORT", request.param))


def counted(device, *shape):
    return tensor(device, np.arange(np.prod(shape)).reshape(shape))


def test_indices_sizes_and_strides(device, m):
    x = counted(device, 3, 4)
    assert m.facts(x) == 6 + 300 + 4000 + 20000 + 1600000
    assert m.facts(x.T) == 9 + 400 + 3000 + 20000 + 400000  # dimension order, as the view has it
    assert m.forms(x) == 6 * 6
    assert m.forms(x[:, ::-1][:, ::-1]) == 36
    same(m.element(spy.grid((3,)), x[:, 1], _result="tensor"), [1, 5, 9])
    y = counted(device, 1, 2, 1, 2, 1)
    assert m.fifth(y) == 10 and y.to_numpy().ravel().tolist() == [0, 1, 2, 5]


def test_lists_of_tensors(device, m):
    x = [counted(device, 2), counted(device, 4)]
    same(m.element(np.array([1, 3], np.int32), x, _result="numpy"), [1, 3])
    for make in (lambda data: tensor(device, data), lambda data: data):
        held = [make(np.zeros(4, np.float32)) for _ in range(3)]
        m.change([held])
        assert [np.asarray(one).tolist() for one in held] == [[7, 8, 5, 2]] * 3
    same(m.second([spy.Tensor.zeros(device, (3,), dtype="float2")] * 2, _result="numpy"), [30, 30])
    with pytest.raises(spy.ResolveException, match="pass Tensors of vectors"):
        m.second([np.zeros((3, 2), np.float32)] * 2)
    with pytest.raises(spy.ResolveException, match=r"element \[1\] does not bind as element \[0\]"):
        m.element(0, [x[0], counted(device, 2, 2)])
    with_gradients = [counted(device, 2).with_grads()] * 2
    for entries in (x, with_gradients):
        with pytest.raises(NotImplementedError, match="x: gradients of the entries of a list"):
            m.square.bwds(0, entries, _result=counted(device, 2).with_grads())


def test_writes_reach_every_container(device, m):
    for container in (tensor(device, np.zeros(4)), np.zeros(4, np.float32)):
        m.change(container)
        assert np.asarray(container).tolist() == [7, 8, 5, 2]
    whole = tensor(device, np.zeros((4, 3)))
    m.change(whole[:, 1])
    assert whole.to_numpy()[:, 1].tolist() == [7, 8, 5, 2] and not whole.to_numpy()[:, ::2].any()


def test_atomic_integers(device, m):
    x = tensor(device, [0, 2, -2, 0, -1, 0, 5, 9], "int")
    m.integers(spy.grid((8,)), x)
    assert x.to_numpy().tolist() == [16, 7, -7, 255, -256, 255, 50, 3]
    wide = spy.Tensor.zeros(device, (1,), "int64_t")
    m.sum(wide, _thread_count=5)
    assert wide.item() == 5 << 40


def test_element_types(device, m):
    rows = counted(device, 3, 2)
    assert m.second(rows) == 30 + 3  # element 1 of dimension 0 begins 2 floats on; sizes are those of the floats
    assert m.in_row(rows) == 3 + 800
    vectors = tensor(device, np.arange(6).reshape(3, 2), element="float2")
    assert m.second(vectors) == 30 + 3
    assert m.any(tensor(device, [4, 5, 6], "int")) == 5 and m.any(tensor(device, [4, 5.5])) == 5.5
    with pytest.raises(spy.ResolveException, match="does not match slang type TensorView<float>.*element type int"):
        m.facts(tensor(device, [[1]], "int"))
    with pytest.raises(spy.ResolveException, match="at most 5 dimensions"):
        m.facts(counted(device, 1, 1, 1, 1, 1, 1))


@pytest.mark.parametrize("kind", ["numpy", "tensor", "torch"])
def test_vectors_over_scalars_lie_side_by_side(device, m, kind):
    """The last dimension has stride 1; sizes and strides of the others are free."""

    def made(values):
        if kind == "tensor":
            return spy.Tensor.from_numpy(device, values)
        if kind == "torch":
            torch = pytest.importorskip("torch")
            return torch.from_numpy(values).to(device.torch_device)
        return values.copy()

    values = np.arange(4 * 6, dtype=np.float32).reshape(4, 6)
    got = made(values)
    # Strides in bytes are those of the memory that the kernel reads: CUDA gets NumPy views as packed copies.
    gpu = device.info.type
    copied = (gpu is spy.DeviceType.vulkan and kind != "tensor") or (kind == "numpy" and gpu is spy.DeviceType.cuda)
    assert m.in_row(got) == 7 + 100 * 24
    assert m.in_quads(got[::2]) == 15 + 25 * (24 if copied else 48)
    assert m.in_row(got[1:, 2:]) == 15 + 100 * (16 if copied else 24)
    assert m.in_row(made(values[:2, :3].copy())) == 7 + 1200
    row = made(np.array([[1, 2], [3, 4]], np.float32))[:, :1]
    assert m.height(row) == 2  # one element has no stride
    odd = [got[:, ::2], got[:, 0]]
    if kind != "torch":
        odd.append(got[:, ::-1])
    if copied:
        assert all(m.height(view) == 4 for view in odd if view.ndim == 2)
    for view in () if copied else odd:
        for function in (m.height, m.height4):
            with pytest.raises(
                ValueError, match=r"argument x has a stride of -?\d+ elements in its last dimension.*contiguous"
            ):
                function(view)
    if kind == "numpy" and not copied:
        with pytest.raises(ValueError, match="last dimension"):
            m.height(np.lib.stride_tricks.as_strided(values, (3, 4), (16, 0)))
    with pytest.raises(spy.ResolveException, match="element type float, expected"):
        m.height(made(np.array(1, np.float32)))


def test_vectors_begin_where_a_gpu_reads_them(device, m):
    rows = spy.Tensor.from_numpy(device, np.arange(17, dtype=np.float32))[1:].reshape((2, 8))
    if device.info.type is spy.DeviceType.cuda:
        with pytest.raises(ValueError, match="argument x does not begin at a multiple of 16 bytes"):
            m.in_quads(rows)
    else:
        assert m.in_quads(rows) == 12 + 25 * 32


def test_gradients(device, m):
    x, y = with_grad(device, [1, 2, 3, 4]), seeded(device, np.ones(4))
    m.squares.bwds(x, y)
    same(x.grad, [2, 4, 6, 8])
    same(y.grad, np.zeros(4))  # a store reads and zeroes
    x, y = with_grad(device, [1, 2, 3, 4]), seeded(device, np.ones(4))
    m.once.bwds(x, y)
    same(x.grad, [3, 3, 3, 3])
    same(y.grad, np.ones(4))
    x = with_grad(device, [1, 2, 3])
    for _ in range(2):
        m.square.bwds(spy.grid((3,)), x, _result=seeded(device, np.ones(3)))
    same(x.grad, [4, 8, 12])
    many = with_grad(device, [2.0])
    at = spy.Tensor.zeros(device, (1000,), "int")
    m.square.bwds(at, many, _result=seeded(device, np.full(1000, 0.5)))
    check(many.grad, [2000])


def test_gradients_of_views(device, m):
    x = with_grad(device, np.arange(12).reshape(3, 4))
    m.plane.bwds(spy.grid((2, 2)), x[1:, ::2], seeded(device, np.ones((2, 2))))
    expected = np.zeros((3, 4))
    expected[1:, ::2] = 2 * x.to_numpy()[1:, ::2]
    same(x.grad, expected)


def test_half_has_float_gradients(device, m):
    x = tensor(device, [1, 2, 3], "half").with_grads(grad_out=spy.Tensor.zeros(device, (3,), "float"))
    m.square_half.bwds(spy.grid((3,)), x, _result=seeded(device, np.ones(3), "half"))
    same(x.grad, [2, 4, 6])
    with pytest.raises(
        spy.ResolveException, match="gradient of a DiffTensorView<half> is float, but the tensor's is half"
    ):
        m.square_half.bwds(
            spy.grid((3,)), with_grad(device, [1, 2, 3], "half"), _result=seeded(device, np.ones(3), "half")
        )


def test_double_has_double_gradients(device, m):
    values = np.arange(1, 4) / 3
    x = with_grad(device, values, "double")
    m.square_double.bwds(spy.grid((3,)), x, _result=seeded(device, np.ones(3), "double"))
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * values, rtol=1e-15)
    x, y = with_grad(device, values, "double"), seeded(device, values, "double")
    m.squares_double.bwds(spy.grid((3,)), x, y)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * values * values, rtol=1e-15)
    same(y.grad, np.zeros(3))


def test_forward_calls_need_no_gradients(device, m):
    x, y = tensor(device, [1, 2, 3, 4]), tensor(device, np.zeros(4))
    m.squares(x, y)
    same(y, [1, 4, 9, 16])
    assert m.kinds(x) == 2 + 1 + 4 + 1


def test_which_gradient(device, m):
    x, result = tensor(device, [1, 2, 3]), seeded(device, np.ones(3))
    distinct = x.with_grads(grad_in=spy.Tensor.zeros_like(x), grad_out=spy.Tensor.zeros_like(x))
    text = "DiffTensorView has a single diff field, but Tensor has distinct grad_in and grad_out tensors."
    with pytest.raises(RuntimeError, match=text):
        m.square.bwds(spy.grid((3,)), distinct, _result=result)
    with pytest.raises(spy.ResolveException, match="requires a tensor with an associated gradient"):
        m.square.bwds(spy.grid((3,)), x, _result=result)
    with pytest.raises(NotImplementedError, match="tangents"):
        m.square.fwds(spy.grid((3,)), x.with_grads())


def test_torch(device, m):
    torch = pytest.importorskip("torch")
    if device.info.type is spy.DeviceType.cuda:
        pytest.skip("takes CUDA tensors")
    x = torch.arange(12.0).reshape(3, 4)
    assert m.facts(x).item() == 1624306
    if device.info.type is spy.DeviceType.cpu:  # others get a packed copy of a CPU tensor
        assert m.facts(x.T.contiguous().T).item() == 6 + 300 + 4000 + 20000 + 400000
    y = torch.zeros(4)
    before = y._version
    m.change(y)
    assert y.tolist() == [7, 8, 5, 2] and y._version > before
    gradient = torch.zeros(3)
    pair = spy.diff_pair(torch.tensor([1.0, 2.0, 3.0]), gradient)
    m.square.bwds(spy.grid((3,)), pair, _result=spy.diff_pair(None, torch.ones(3)))
    assert gradient.tolist() == [2, 4, 6]


def test_strides_that_no_view_holds(device, m):
    """Strides are 32-bit numbers without sign: a reversed container would be read outside of its memory."""
    x = tensor(device, [1, 2, 3, 4])
    grad = tensor(device, [0, 0, 0, 0])
    for call in (
        lambda: m.element(spy.grid((4,)), x[::-1]),
        lambda: m.change(x[::-1]),
        lambda: m.square.bwds(0, x.with_grads(grad_out=grad[::-1]), _result=spy.diffPair(0.0, 1.0)),
        lambda: m.square.bwds(0, x[::-1].with_grads(grad_out=grad), _result=spy.diffPair(0.0, 1.0)),
    ):
        with pytest.raises(ValueError, match="argument x has a stride of -1 elements in dimension 0.*pass a contiguous copy"):
            call()
    same(x, [1, 2, 3, 4])
    same(m.element(spy.grid((4,)), x[::-1].contiguous()), [4, 3, 2, 1])
    same(m.element(spy.grid((1,)), x[2::-1][:1]), [3])
    same(m.element(spy.grid((2,)), x[:1].broadcast_to((2,))), [1, 1])
    if device.desc.type is spy.DeviceType.cpu:  # elsewhere NumPy arrays are copied
        with pytest.raises(ValueError, match="stride of -1 elements"):
            m.element(spy.grid((2,)), np.arange(2, dtype=np.float32)[::-1])
