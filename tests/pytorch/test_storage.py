"""Tensors whose storage was freed or made smaller after they were made, and tensors that were given other memory.

torch does not look at sizes when it computes with such tensors; a call must, or it reads and writes what is not its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy.pytorch import integration

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs_kernels

SIZE = 3000
SOURCE = """
[Differentiable] float product(float a, float b) { return a * b; }
struct Ball { float3 center; float radius; }
void every(float x, Ball ball, Tensor<float, 1> whole, int n, out float y) { y = x + ball.radius + whole[n % 3000]; }
"""


def shrink(tensor: Any, left: int) -> Any:
    tensor.untyped_storage().resize_(left)
    return tensor


def message(what: str, left: int, needed: int = 4 * SIZE) -> str:
    return (
        rf"{what}: the storage of this tensor has {left} bytes, but its elements need {needed}: it was freed or made smaller "
        r"\(untyped_storage\(\).resize_\); give it its memory back before the call"
    )


def place_of(device: spy.Device) -> Any:
    return device.torch_device or torch.device("cpu")


def module_of(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "freed_storage", SOURCE)


def shares(device: spy.Device) -> bool:
    return device.info.type in (spy.DeviceType.cpu, spy.DeviceType.cuda)


@pytest.mark.usefixtures("bridge")
@pytest.mark.parametrize("left", [0, 4 * SIZE - 1])
def test_arguments(device: spy.Device, left: int) -> None:
    module, where = module_of(device), place_of(device)
    good = torch.ones(SIZE, device=where)
    number = torch.arange(SIZE, dtype=torch.int32, device=where)
    ball = {"center": spy.float3(0), "radius": good}
    written = torch.zeros(SIZE, device=where)
    for _ in range(3):  # the later ones take over what the first worked out
        module.every(good, ball, good, number, written)
        assert written.tolist() == [3.0] * SIZE
    bad = shrink(torch.ones(SIZE, device=where), left)
    every = "freed_storage::every: argument "
    for name, arguments in {
        "x": (bad, ball, good, number, written), "ball.radius": (good, ball | {"radius": bad}, good, number, written),
        "whole": (good, ball, bad, number, written), "y": (good, ball, good, number, bad),
    }.items():  # fmt: skip
        with pytest.raises(RuntimeError, match=message(every + name, left)):
            module.every(*arguments)
    with pytest.raises(RuntimeError, match=message(every + "n", left)):
        module.every(good, ball, good, shrink(number.clone(), left), written)
    part = torch.ones(SIZE + 7, device=where)[7:]
    module.every(part, ball, good, number, written)
    shrink(part, 4 * SIZE)
    with pytest.raises(RuntimeError, match=message(every + "x", 4 * SIZE, 4 * SIZE + 28)):
        module.every(part, ball, good, number, written)
    for kept in (good, written):  # the storage of the same tensors, after calls that found them whole
        shrink(kept, left)
        with pytest.raises(RuntimeError, match=r"the storage of this tensor has \d+ bytes"):
            module.every(good, ball, good, number, written)
        kept.untyped_storage().resize_(4 * SIZE)
        kept.fill_(1)
    module.every(good, ball, good, number, written)
    assert written.tolist() == [3.0] * SIZE


@pytest.mark.usefixtures("bridge")
@pytest.mark.parametrize("left", [0, 4 * SIZE - 1])
def test_results_and_gradients(device: spy.Device, left: int) -> None:
    module, where = module_of(device), place_of(device)
    good, label = torch.ones(SIZE, device=where), "freed_storage::product: "
    bad = shrink(torch.ones(SIZE, device=where), left)
    with pytest.raises(RuntimeError, match=message(label + "argument _result", left)):
        module.product(good, 2.0, _result=bad)
    pair = spy.diff_pair(good, torch.zeros(SIZE, device=where))
    for arguments, what in (
        ((spy.diff_pair(bad, good), good), "argument a"),
        ((spy.diff_pair(good, bad), good), "the gradient of argument a"),
        ((pair, bad), "argument _result"),
    ):
        with pytest.raises(RuntimeError, match=message(label + what, left)):
            module.product.bwds(arguments[0], 2.0, _result=spy.diff_pair(None, arguments[1]))
    x = good.clone().requires_grad_()
    factor = torch.full((SIZE,), 3.0, device=where)
    y = module.product(x, factor)
    with pytest.raises(RuntimeError, match=message(label + "the gradient", left)):
        y.backward(bad, retain_graph=True)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [3.0] * SIZE
    shrink(factor, left)
    with pytest.raises(RuntimeError, match=message(label + "a saved tensor", left)):
        y.sum().backward()


def test_without_elements(device: spy.Device) -> None:
    module, where = module_of(device), place_of(device)
    for _ in range(3):
        empty = shrink(torch.ones(0, 4, device=where), 0)
        assert module.product(empty, 2.0).shape == (0, 4)
        assert module.product(shrink(torch.ones(8, device=where)[8:], 0), 2.0).shape == (0,)


def later(device: spy.Device) -> dict[str, Callable[[Any, Any], Callable[[], Any]]]:
    """What takes a tensor now and uses its memory later."""
    product = module_of(device).product

    def prepared(x: Any, y: Any) -> Callable[[], Any]:
        return product.prepare(x, 2.0, _result=y)

    def recorded(x: Any, y: Any) -> Callable[[], Any]:
        encoder = device.create_command_encoder()
        product.append_to(encoder, x, 2.0, _result=y)
        commands = encoder.finish()
        return lambda: device.submit_command_buffer(commands)

    def backward(x: Any, y: Any) -> Callable[[], Any]:
        encoder = device.create_command_encoder()
        product.bwds.append_to(encoder, spy.diff_pair(torch.ones_like(y), y), 2.0, _result=spy.diff_pair(None, x))
        commands = encoder.finish()
        return lambda: device.submit_command_buffer(commands)

    return {"prepared": prepared, "recorded": recorded, "backward": backward}


@pytest.mark.usefixtures("bridge")
def test_a_recorded_number_stays(device: spy.Device) -> None:
    """One of the CPU, beside CUDA tensors: the copy of it lives until the commands have run."""
    if not shares(device):
        pytest.skip("torch tensors are not recorded here")
    where = place_of(device)
    x, y, number = torch.arange(33.0, device=where), torch.zeros(33, device=where), torch.tensor(3.0)
    encoder = device.create_command_encoder()
    module_of(device).product.append_to(encoder, x, number, _result=y)
    commands = encoder.finish()
    del number
    others = [torch.full((), 7.0, device=where) for _ in range(1000)]  # torch gives freed memory to these
    device.submit_command_buffer(commands)
    device.wait()
    assert torch.equal(y, 3 * x) and len(others) == 1000


@pytest.mark.usefixtures("bridge")
@pytest.mark.parametrize("road", ["prepared", "recorded", "backward"])
def test_what_runs_later(device: spy.Device, road: str) -> None:
    if not shares(device):
        pytest.skip("torch tensors are copied for this device")
    where, make = place_of(device), later(device)[road]
    swap = torch.utils.swap_tensors
    changes: dict[str, tuple[Callable[[Any], Any], str]] = {
        "freed": (lambda t: shrink(t, 0), "has 0 bytes"), "smaller": (lambda t: shrink(t, 4 * SIZE - 4), "bytes, but its"),
        "data": (lambda t: setattr(t, "data", torch.ones(SIZE, device=where)), "other memory"),
        "set_": (lambda t: t.set_(torch.ones(SIZE, device=where)), "other memory"),
        "larger": (lambda t: t.resize_(100 * SIZE), "other memory"),
        "swapped": (lambda t: swap(t, torch.ones(SIZE, device=where)), "other memory"),
    }  # fmt: skip
    for change, expected in changes.values():
        for written in (False, True):
            x, y = torch.ones(SIZE, device=where), torch.zeros(SIZE, device=where)
            run = make(x, y)
            run()
            run()
            device.wait_for_idle()
            assert y.tolist() == [4.0 if road == "backward" else 2.0] * SIZE  # gradients add up
            old = x.data, y.data  # so that the memory itself stays, were it used
            change(y if written else x)
            with pytest.raises(RuntimeError, match=f"freed_storage::product: .*{expected}"):
                run()
            del old


def test_prepared_calls_go_on(device: spy.Device) -> None:
    if not shares(device):
        pytest.skip("torch tensors are copied for this device")
    where = place_of(device)
    x = torch.ones(SIZE, device=where)
    run = module_of(device).product.prepare(x, 2.0)
    assert run().tolist() == [2.0] * SIZE
    shrink(x, 0)
    with pytest.raises(RuntimeError, match=message("freed_storage::product: argument a", 0)):
        run()
    x.untyped_storage().resize_(4 * SIZE)
    x.fill_(3)
    run.set(a=x)
    assert run().tolist() == [6.0] * SIZE


def test_gradients_of_recorded_calls_are_held(device: spy.Device) -> None:
    if not shares(device):
        pytest.skip("torch tensors are copied for this device")
    where = place_of(device)
    x, seed = torch.ones(SIZE, device=where), torch.ones(SIZE, device=where)
    grad = torch.zeros(SIZE, device=where)
    storage = grad.untyped_storage()
    encoder = device.create_command_encoder()
    module_of(device).product.bwds.append_to(encoder, spy.diff_pair(x, grad), 2.0, _result=spy.diff_pair(None, seed))
    commands = encoder.finish()
    held = grad.view(-1)
    del grad, storage
    device.submit_command_buffer(commands)
    device.wait_for_idle()
    assert held.tolist() == [2.0] * SIZE


@pytest.mark.parametrize("left", [0, 4 * SIZE - 1])
def test_conversions(device: spy.Device, left: int) -> None:
    where = place_of(device)
    bad = shrink(torch.ones(SIZE, device=where), left)
    half = shrink(torch.ones(2 * SIZE, device=where, dtype=torch.bfloat16), left)
    tensor = spy.Tensor.zeros(device, (SIZE,), dtype="float")
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    buffer = device.create_buffer(size=4 * SIZE, usage=usage)
    for name, convert in {
        "from_torch": lambda: spy.Tensor.from_torch(device, bad), "copy_from_torch": lambda: tensor.copy_from_torch(bad),
        "from_dlpack": lambda: spy.Tensor.from_dlpack(device, bad),
        "from_numpy": lambda: spy.Tensor.from_numpy(device, bad),
        "copy_torch_tensor_to_buffer": lambda: integration.copy_torch_tensor_to_buffer(bad, buffer),
        "copy_buffer_to_torch_tensor": lambda: integration.copy_buffer_to_torch_tensor(buffer, bad),
    }.items():  # fmt: skip
        if (name == "from_numpy" and where.type != "cpu") or ("buffer" in name and not shares(device)):
            continue  # NumPy takes no CUDA tensors; other devices refuse CPU tensors
        with pytest.raises(RuntimeError, match=message(name, left)):
            convert()
    with pytest.raises(RuntimeError, match=message("from_torch", left)):
        spy.Tensor.from_torch(device, half)


@pytest.mark.parametrize("left", [0, 4 * SIZE - 4])
def test_tensors_over_the_memory(device: spy.Device, left: int) -> None:
    if not shares(device):
        pytest.skip("from_dlpack copies for this device")
    product, where = module_of(device).product, place_of(device)
    x = torch.ones(SIZE, device=where)
    tensor = spy.Tensor.from_dlpack(device, x)
    assert product(tensor, 2.0, _result="numpy").tolist() == [2.0] * SIZE
    prepared = product.prepare(tensor, 2.0)
    prepared()
    encoder = device.create_command_encoder()
    product.append_to(encoder, tensor, 2.0, _result=spy.Tensor.zeros(device, (SIZE,), dtype="float"))
    encoder.copy_buffer(tensor.storage, 0, tensor.storage, 4, 4)
    commands = encoder.finish()
    x.data = torch.zeros(1, device=where)  # the Tensor is over the memory that it was given
    assert product(tensor, 2.0, _result="numpy").tolist() == [2.0] * SIZE
    y = torch.ones(SIZE, device=where)
    other = spy.Tensor.from_dlpack(device, y)
    shrink(y, left)
    for use in (
        lambda: product(other, 2.0), other.to_numpy, lambda: other.copy_from_numpy(np.ones(SIZE, np.float32)), other.copy,
        lambda: prepared.set(a=other),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message(r".*from_dlpack\)", left)):
            use()
    prepared()
    device.submit_command_buffer(commands)
    with pytest.raises(RuntimeError, match=message(r".*from_dlpack\)", left)):
        encoder = device.create_command_encoder()
        product.append_to(encoder, other, 2.0, _result=spy.Tensor.zeros(device, (SIZE,), dtype="float"))


KERNELS = """
[AutoPyBindCUDA] [CudaKernel] [Differentiable]
void square(DiffTensorView<float> x, DiffTensorView<float> y)
{
    uint i = cudaThreadIdx().x + cudaBlockIdx().x * cudaBlockDim().x;
    if (i < x.size(0)) y[i] = x[i] * x[i];
}
[CudaKernel] void plain(TensorView<float> x, TensorView<float> y)
{
    uint i = cudaThreadIdx().x + cudaBlockIdx().x * cudaBlockDim().x;
    if (i < x.size(0)) y[i] = x[i] * x[i];
}
[TorchEntryPoint] TorchTensor<float> squared(TorchTensor<float> x)
{
    var y = TorchTensor<float>.emptyLike(x);
    __dispatch_kernel(plain, uint3(100, 1, 1), uint3(32, 1, 1))(x, y);
    return y;
}
"""


def test_raw_kernels(where: str, tmp_path: Path) -> None:
    (tmp_path / "kernels.slang").write_text(KERNELS)
    kernels = spy.loadModule(str(tmp_path / "kernels.slang"))
    sizes = {"blockSize": (32, 1, 1), "gridSize": (100, 1, 1)}
    x, y = torch.full((SIZE,), 3.0, device=where), torch.zeros(SIZE, device=where)
    host = np.full(SIZE, 3, np.float32)
    for left in (0, 4 * SIZE - 1):
        bad = shrink(torch.ones(SIZE, device=where), left)
        calls: dict[str, Callable[[], Any]] = {
            "square: x": lambda bad=bad: kernels.square(x=bad, y=y), "square: y": lambda bad=bad: kernels.square(x=x, y=bad),
            r"square.bwd: x.grad": lambda bad=bad: kernels.square.bwd(x=(x, bad), y=(y, y)),
            "plain: x": lambda bad=bad: kernels.squared(bad),
        }  # fmt: skip
        if where == "cpu":
            calls["square: y$"] = lambda bad=bad: kernels.square(x=host, y=bad)
        for name, call in calls.items():
            with pytest.raises(RuntimeError, match=message(name.rstrip("$"), left)):
                call().launchRaw(**sizes)
    for given in (x, host) if where == "cpu" else (x,):
        for change, expected in (
            (lambda t: shrink(t, 0), "has 0 bytes"), (lambda t: shrink(t, 8), "has 8 bytes"),
            (lambda t: setattr(t, "data", torch.ones(SIZE, device=where)), "other memory"),
        ):  # fmt: skip
            out = torch.zeros(SIZE, device=where)
            ready = kernels.square(x=given, y=out)
            ready.launchRaw(**sizes)
            ready.launchRaw(**sizes)
            assert out.tolist() == [9.0] * SIZE
            change(out)
            with pytest.raises(RuntimeError, match=f"square: y: .*{expected}"):
                ready.launchRaw(**sizes)


def test_raw_dispatch(where: str) -> None:
    device = spy.create_torch_device(type=spy.DeviceType[where])
    source = """
    [shader("compute")] [numthreads(32, 1, 1)]
    void fill(uint3 i : SV_DispatchThreadID, uniform TensorView<float> view) { if (i.x < 3000) view[i.x] = 5; }
    """
    module = spy.Module.load_from_source(device, "freed_dispatch", source)
    view = torch.zeros(SIZE, device=where)
    module.fill.dispatch((SIZE, 1, 1), view=view)
    device.wait_for_idle()
    assert view.tolist() == [5.0] * SIZE
    encoder = device.create_command_encoder()
    module.fill.dispatch((SIZE, 1, 1), command_encoder=encoder, view=view)
    commands = encoder.finish()
    shrink(view, 8)
    with pytest.raises(RuntimeError, match=message("view", 8)):
        device.submit_command_buffer(commands)
    with pytest.raises(RuntimeError, match=message("view", 8)):
        module.fill.dispatch((SIZE, 1, 1), view=view)
