"""Adam, in one kernel for each parameter."""

from __future__ import annotations

from typing import Any

from ..base.own_names import own_names
from ..device.device import Device
from ..generators import grid
from ..module import Module
from ..tensor import Tensor
from .network import Network

_SOURCE = """import slangpy;

void step(int i, RWTensor<float, 1> value, RWTensor<{dtype}, 1> kept, RWTensor<float, 1> gradient, RWTensor<float, 1> mean,
          RWTensor<float, 1> square, float rate, float first, float second, float small)
{{
    const float d = gradient[i];
    mean[i] = lerp(d, mean[i], first);
    square[i] = lerp(d * d, square[i], second);
    value[i] = value[i] - rate * mean[i] / (sqrt(square[i]) + small);
    kept[i] = {dtype}(value[i]);
    gradient[i] = 0;
}}
"""


class _Moments:
    """Of one parameter: its value in float, and running means of its gradient and of that squared."""

    def __init__(self, device: Device, kept: Tensor) -> None:
        self.kept, self.gradient = kept.detach(), kept.grad
        is_float = kept.dtype.full_name == "float"
        self.value = self.kept if is_float else Tensor.from_numpy(device, kept.to_numpy().astype("float32"))
        self.mean, self.square = (Tensor.zeros(device, kept.shape, "float") for _ in range(2))


@own_names
class Adam:
    """Moves the parameters of networks against their gradients: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015.

    Of half networks it keeps the parameters in float; what was loaded into a network after `Adam(network)` is not seen there.
    """

    rate: float
    """Of learning; can be set between steps."""

    def __init__(self, *networks: Network, rate: float = 1e-2, betas: tuple[float, float] = (0.9, 0.99), small: float = 1e-10) -> None:
        """rate: of learning. betas: how much of the mean of gradients, and of squares, stays in a step. small: added to the
        root of the squares, so that nothing is divided by 0. ValueError for rates and betas outside of their ranges."""
        if not networks or not all(isinstance(network, Network) for network in networks):
            raise TypeError("Adam: expected one Network or several; torch's optimisers move slangpy.neural.nn.Network")
        if not rate > 0 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"Adam: expected rate > 0 and 0 <= betas < 1, got rate={rate}, betas={betas}")
        self.rate, self._betas, self._small, self._steps = rate, betas, small, 0
        self._moments = [
            (network.device, _Moments(network.device, tensor)) for network in networks for tensor in network.parameters.values()
        ]

    def step(self) -> None:
        """One step; sets the gradients to 0. ValueError for a rate that is no number above 0."""
        if not isinstance(self.rate, (int, float)) or not self.rate > 0:
            raise ValueError(f"Adam.step: rate: expected a number above 0, got {self.rate!r}")
        self._steps += 1
        first, second = self._betas
        root = (1 - second**self._steps) ** 0.5
        for device, each in self._moments:
            _module(device, each.kept.dtype.full_name).step(
                grid(tuple(each.kept.shape)), each.value, each.kept, each.gradient, each.mean, each.square,
                self.rate * root / (1 - first**self._steps), first, second, self._small * root,
            )  # fmt: skip


def _module(device: Device, dtype: str) -> Any:
    modules, key = device._state.networks, f"adam {dtype}"
    if key not in modules:
        modules[key] = Module.load_from_source(device, f"slangpy_adam_{dtype}", _SOURCE.format(dtype=dtype))
    return modules[key]
