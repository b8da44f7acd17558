"""Networks of `slangpy.neural` against torch in float64: values, all gradients, odd numbers of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import neural
from slangpy.neural.kernels import uses_matrices

torch = pytest.importorskip("torch")
import network_in_torch as reference  # noqa: E402

pytestmark = pytest.mark.needs_kernels

TINY = neural.HashGrid(levels_count=3, per_level=2, log2_entries=6, coarsest=3, growth=2.0)
SHAPES: dict[str, dict[str, Any]] = {
    "hash 2-D": {"inputs": 2, "outputs": 3, "width": 16, "activation": "silu", "output_activation": "sigmoid", "encoding": TINY},
    "frequency": {"inputs": 3, "outputs": 5, "width": 18, "hidden_layers": 3, "activation": "sine", "encoding": neural.Frequency(2)},
}
MORE: dict[str, dict[str, Any]] = {
    "hash 3-D": {"inputs": 3, "outputs": 1, "width": 32, "activation": "tanh", "encoding": TINY},
    "half": {"inputs": 2, "outputs": 3, "width": 16, "activation": "tanh", "encoding": TINY, "dtype": "half"},
    "deep": {"inputs": 7, "outputs": 2, "width": 16, "hidden_layers": 8, "activation": "gelu", "output_activation": "tanh"},
    "wide": {"inputs": 1, "outputs": 3, "width": 128, "hidden_layers": 1, "activation": "leaky_relu", "output_activation": "silu"},
}
ON_MATRICES: dict[str, dict[str, Any]] = {
    "plain": {"inputs": 32, "outputs": 3, "width": 64, "hidden_layers": 4, "activation": "tanh", "dtype": "half"},
    "odd": {"inputs": 7, "outputs": 17, "width": 48, "hidden_layers": 3, "activation": "silu", "output_activation": "tanh", "dtype": "half"},
    "hash": {"inputs": 2, "outputs": 1, "width": 16, "activation": "tanh", "output_activation": "sigmoid", "encoding": TINY, "dtype": "half"},
    "one layer": {"inputs": 3, "outputs": 4, "width": 32, "hidden_layers": 1, "activation": "sine", "encoding": neural.Frequency(5), "dtype": "half"},
    "wide": {"inputs": 48, "outputs": 2, "width": 80, "activation": "sigmoid", "output_activation": "gelu", "dtype": "half"},
    "widest": {"inputs": 16, "outputs": 8, "width": 128, "hidden_layers": 2, "activation": "silu", "dtype": "half"},
    "corners": {"inputs": 4, "outputs": 3, "width": 64, "dtype": "half"},
}
"""What CUDA's matrix cores do; layers are rounded to halves there, so that some inputs land on the other side of a corner."""
COUNTS = (0, 1, 31, 33, 1000)


def check(device: spy.Device, shape: dict[str, Any], counts: tuple[int, ...] = COUNTS) -> None:
    network = neural.Network(device, **shape)
    random = np.random.default_rng(7)
    state = {name: random.normal(size=value.shape).astype(value.dtype) * value.dtype.type(0.3) for name, value in network.state_dict().items()}
    network.load_state_dict(state)
    tolerance = 2e-5 if network.shape.dtype == "float" else 1e-2 if uses_matrices(device, network.shape) else 2e-3
    for count in counts:
        x = random.random((count, network.shape.inputs)).astype(state["weights"].dtype)
        seed = random.normal(size=(count, network.shape.outputs)).astype(state["weights"].dtype)
        inputs = [torch.from_numpy(value).double().requires_grad_() for value in (x, *state.values())]
        y = reference.network(network.shape, inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None)
        grads = torch.autograd.grad((y * torch.from_numpy(seed)).sum(), inputs)
        network.zero_grad()
        found = [network(x), network.backward(x, seed, input_gradients=True), *(p.grad for p in network.parameters.values())]
        for ours, theirs in zip(found, (y, *grads), strict=True):
            expected = theirs.detach().numpy()
            if tolerance == 1e-2 and network.shape.activation == "relu":
                assert np.linalg.norm(ours.to_numpy() - expected) <= 0.05 * np.linalg.norm(expected), count
                continue
            scale = max(1e-3, abs(expected).max(initial=0))
            np.testing.assert_allclose(ours.to_numpy() / scale, expected / scale, rtol=0, atol=tolerance, err_msg=str(count))


@pytest.mark.one
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients(device: spy.Device, name: str) -> None:
    check(device, SHAPES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", (*SHAPES, *MORE))
def test_more_shapes(device: spy.Device, name: str) -> None:
    check(device, {**SHAPES, **MORE}[name], COUNTS if device.type is spy.DeviceType.cpu else (1, 33))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ON_MATRICES)
def test_on_matrices(device: spy.Device, name: str) -> None:
    network = neural.Network(device, **ON_MATRICES[name])
    assert uses_matrices(device, network.shape) == (device.type is spy.DeviceType.cuda)
    check(device, ON_MATRICES[name], (*COUNTS, 100003) if device.type is spy.DeviceType.cuda else (33,))


@pytest.mark.nightly
@pytest.mark.parametrize("name", reference.ACTIVATIONS)
def test_activations(device: spy.Device, name: str) -> None:
    check(device, {"inputs": 2, "outputs": 2, "width": 5, "activation": "tanh", "output_activation": name}, (33,))


INSIDE = """
import slangpy;
import slangpy.neural;
typealias Net = {type};

[Differentiable]
float[3] picture(Net network, float x, float y)
{{
    float at[2] = {{ x, y * y }};
    return network.eval(at);
}}
"""


def test_inside_of_a_function(device: spy.Device) -> None:
    """As a struct with its weights: gradients to weights, table and position."""
    grid = neural.HashGrid(levels_count=1, per_level=2, log2_entries=3, coarsest=4)
    network = neural.Network(device, 2, 3, width=4, hidden_layers=1, activation="tanh", encoding=grid)
    random = np.random.default_rng(2)
    state = {name: random.normal(size=value.shape).astype(np.float32) * 0.3 for name, value in network.state_dict().items()}
    network.load_state_dict(state)
    module = spy.Module.load_from_source(device, "neural_inside", INSIDE.format(type=network.type_name))
    x, y, seed = random.random(33, np.float32), random.random(33, np.float32), random.normal(size=(33, 3)).astype(np.float32)
    tensors = [spy.Tensor.from_numpy(device, value).with_grads(zero=True) for value in (x, y)]
    result = spy.Tensor.zeros(device, (33, 3), "float").with_grads(zero=True)
    module.picture(network, *tensors, _result=result)
    network.zero_grad()
    result.grad.copy_from_numpy(seed)
    module.picture.bwds(network, *tensors, _result=result)
    inputs = [torch.from_numpy(value).double().requires_grad_() for value in (x, y, state["weights"], state["table"])]
    expected = reference.network(network.shape, torch.stack([inputs[0], inputs[1] ** 2], 1), *inputs[2:])
    np.testing.assert_allclose(result.to_numpy(), expected.detach().numpy(), atol=1e-5)
    grads = torch.autograd.grad((expected * torch.from_numpy(seed)).sum(), inputs)
    for ours, theirs in zip((*tensors, *network.parameters.values()), grads, strict=True):
        np.testing.assert_allclose(ours.grad.to_numpy(), theirs.numpy(), atol=1e-5 * abs(theirs).max().item() + 1e-6)


ALONE = """
import slangpy;
import slangpy.neural;
typealias Grid = {type};

[Differentiable]
{dtype}[{count}] features(float x[{inputs}], Grid grid)
{{
    const float found[{count}] = grid.eval(x);
    {dtype} result[{count}];
    for (int i = 0; i < {count}; i++)
        result[i] = {dtype}(found[i]);
    return result;
}}
[Differentiable] float level(int l, float x[{inputs}], Grid grid) {{ return grid.eval_level(l, x)[{last}]; }}
"""
TABLES = {"whole": (0, 1), "from the second": (1, 1), "each third": (0, 3)}


@pytest.mark.parametrize("case", [(2, 1, "half", "whole"), (3, 2, "float", "whole"), (2, 2, "float", "from the second"), (3, 4, "float", "each third")])
def test_a_grid_alone(device: spy.Device, case: tuple[int, int, str, str]) -> None:
    """Tables that begin anywhere, or lie apart; features that come in pairs or not."""
    inputs, per_level, dtype, lies = case
    grid = neural.HashGrid(levels_count=3, per_level=per_level, log2_entries=6, coarsest=3, growth=2.0)
    count, size = grid.features(inputs), grid.table_size(inputs)
    source = ALONE.format(type=grid.type_name(inputs, dtype), dtype=dtype, count=count, inputs=inputs, last=per_level - 1)
    module = spy.Module.load_from_source(device, "grid_alone", source)
    features = module.features
    random, numbers = np.random.default_rng(3), np.dtype({"half": "float16", "float": "float32"}[dtype])
    first, step = TABLES[lies]
    table = spy.Tensor.from_numpy(device, random.normal(size=first + step * size).astype(numbers)).with_grads(zero=True)
    at, values = slice(first, first + step * size, step), {"levels": spy.Tensor.from_numpy(device, grid.levels(inputs).reshape(-1))}
    x = spy.Tensor.from_numpy(device, random.random((33, inputs), np.float32)).with_grads(zero=True)
    result = spy.Tensor.zeros(device, (33, count), dtype).with_grads(zero=True)
    seed = random.normal(size=(33, count)).astype(numbers)
    features(x, {"table": table[at], **values}, _result=result)
    result.grad.copy_from_numpy(seed)
    features.bwds(x, {"table": table[at], **values}, _result=result)
    exact = [torch.from_numpy(value.to_numpy()).double().requires_grad_() for value in (x, table)]
    expected = reference.encoded(grid, exact[0], exact[1][at])
    grads = torch.autograd.grad((expected * torch.from_numpy(seed)).sum(), exact)
    tolerance = 1e-5 if dtype == "float" else 1e-2
    for ours, theirs in ((result, expected.detach()), (x.grad, grads[0]), (table.grad, grads[1])):
        largest = abs(theirs).max().item()
        np.testing.assert_allclose(ours.to_numpy() / largest, theirs.numpy() / largest, rtol=0, atol=tolerance)
    # each level alone, of which the last feature
    arguments = np.arange(grid.levels_count, dtype=np.int32), x, {"table": table[at], **values}
    of_levels = module.level.map((0,), (1,), ()).call(*arguments, _result=spy.Tensor)
    last = expected.detach().reshape(33, grid.levels_count, per_level)[:, :, -1].T
    np.testing.assert_allclose(of_levels.to_numpy(), last.numpy(), rtol=0, atol=tolerance * abs(last).max().item())
    for tensor in (x, table):
        tensor.grad.clear()
    module.level.map((0,), (1,), ()).bwds(*arguments, _result=spy.Tensor.from_numpy(device, of_levels.to_numpy()).with_grads(of_levels))
    chosen = reference.encoded(grid, exact[0], exact[1][at]).reshape(33, grid.levels_count, per_level)[:, :, -1]
    grads = torch.autograd.grad((chosen * chosen.detach()).sum(), exact)
    for ours, theirs in ((x.grad, grads[0]), (table.grad, grads[1])):
        np.testing.assert_allclose(ours.to_numpy(), theirs.numpy(), rtol=0, atol=tolerance * abs(theirs).max().item())
