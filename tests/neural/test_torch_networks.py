"""`slangpy.neural.nn`: in torch's graph, moved by its optimisers, saved and loaded; and what is refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import neural

torch = pytest.importorskip("torch")
import network_in_torch as reference  # noqa: E402

from slangpy.neural import nn  # noqa: E402

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
SHAPE: dict[str, Any] = {"width": 8, "hidden_layers": 2, "activation": "tanh", "encoding": neural.HashGrid(2, 2, 5, 3, 2.0)}


@pytest.fixture
def network(device: spy.Device) -> nn.Network:
    return nn.Network(device, 2, 3, **SHAPE)


def place(network: nn.Network, array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array).to(network.weights.device)


def test_gradients(network: nn.Network) -> None:
    random = np.random.default_rng(1)
    x = place(network, random.random((2, 33), np.float32)).T.requires_grad_()  # not contiguous
    seed = place(network, random.standard_normal((33, 3), np.float32))
    with torch.no_grad():
        network.table.mul_(3000)
    parameters = [x, *network.parameters()]
    found = torch.autograd.grad((network(x) * seed).sum(), parameters)
    doubles = [value.detach().cpu().double().requires_grad_() for value in parameters]
    expected = torch.autograd.grad((reference.network(network.shape, *doubles) * seed.cpu()).sum(), doubles)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double().cpu(), theirs, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        assert network(x[:0]).shape == (0, 3) and not network(x).requires_grad


def test_training_and_files(device: spy.Device, network: nn.Network) -> None:
    """Our Adam and torch's take the same steps; state_dict comes back."""
    ours = neural.Network(device, 2, 3, **SHAPE)
    theirs = torch.optim.Adam(network.parameters(), lr=0.01, betas=(0.9, 0.99), eps=1e-10)
    optimiser = neural.Adam(ours, rate=0.01)
    random = np.random.default_rng(0)
    x = random.random((65, 2), np.float32)
    target = np.sin(3 * x @ np.float32([[1, 2, 3], [3, 2, 1]]))
    losses = []
    for _ in range(20):
        theirs.zero_grad()
        loss = ((network(place(network, x)) - place(network, target)) ** 2).mean()
        loss.backward()
        theirs.step()
        losses.append(loss.item())
        y = ours(x).to_numpy()
        ours.backward(x, 2 / y.size * (y - target))
        optimiser.step()
    assert losses[-1] < 0.8 * losses[0]
    np.testing.assert_allclose(ours.weights.to_numpy(), network.weights.detach().cpu().numpy(), atol=2e-4)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other = nn.Network(device, 2, 3, seed=5, **SHAPE)
    given = place(network, x)
    assert not torch.equal(other(given), network(given))
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(given), network(given))
    assert set(network.state_dict()) == {"weights", "table"} and other.to(given.device) is other
    ours.load_state_dict({name: value.cpu().numpy() for name, value in network.state_dict().items()})
    np.testing.assert_array_equal(ours(x).to_numpy(), network(given).detach().cpu().numpy())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 129}, "width: expected 1 to 128, got 129"),
        ({"hidden_layers": 9}, "hidden_layers: expected 1 to 8, got 9"),
        ({"activation": "softmax"}, "activation: expected one of none, relu"),
        ({"dtype": "double"}, "dtype: expected 'float' or 'half', got 'double'"),
        ({"encoding": neural.HashGrid(), "inputs": 4}, "inputs: a grid has 2 or 3 dimensions, got 4"),
        ({"encoding": neural.Frequency(24), "inputs": 16}, "768 features of 16 inputs; at most 256"),
    ],
)
def test_shapes_that_are_refused(device: spy.Device, change: dict[str, Any], message: str) -> None:
    for kind in (neural.Network, nn.Network):
        with pytest.raises(ValueError, match=message):
            kind(device, **{"inputs": 2, "outputs": 3, **change})


def test_arguments_that_are_refused(device: spy.Device, network: nn.Network) -> None:
    with pytest.raises(ValueError, match=r"x: expected shape \(n, 2\), got \(5, 3\)"):
        network(place(network, np.zeros((5, 3), np.float32)))
    with pytest.raises(TypeError, match="x: expected torch.float32, got torch.float64"):
        network(place(network, np.zeros((5, 2))))
    with pytest.raises(TypeError, match="weights: expected torch.float32, got torch.float64"):
        nn.Network(device, 2, 3, **SHAPE).double()(place(network, np.zeros((5, 2), np.float32)))
    ours = neural.Network(device, 2, 3, **SHAPE)
    with pytest.raises(ValueError, match="dy: expected 5 rows, as x has, got 4"):
        ours.backward(np.zeros((5, 2)), np.zeros((4, 3)))
    with pytest.raises(TypeError, match="x: expected a Tensor of float, got one of int"):
        ours(spy.Tensor.zeros(device, (5, 2), "int"))
    with pytest.raises(ValueError, match="weights: this network has 139 numbers, got shape"):
        ours.load_state_dict({"weights": np.zeros(4, np.float32), "table": ours.table.to_numpy()})
    with pytest.raises(ValueError, match="expected weights, table, got weights"):
        ours.load_state_dict({"weights": ours.weights.to_numpy()})
    with pytest.raises(TypeError, match="Adam: expected one Network or several; torch's optimisers"):
        neural.Adam(network)
