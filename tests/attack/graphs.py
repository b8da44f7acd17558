"""What is done with a function in torch: one piece of code for the function under test and for the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Inputs = dict[str, torch.Tensor]
Function = Callable[[Inputs], torch.Tensor]  # (K, R): the result of program k in row r


def frozen_in(graph: str, name: str) -> bool:
    """Whether an input does not require grad."""
    return graph == "frozen" and name in ("b", "v", "t", "s.p")


def run_graph(graph: str, f: Function, leaves: Inputs, weights: torch.Tensor) -> tuple[list[torch.Tensor], Inputs]:
    """The results of the calls of f, and the gradients of the leaves. `weights`: (2, K, R)."""
    first, second = weights
    needed = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    if graph == "chain":
        y = f(leaves)
        z = f({**leaves, "a": torch.tanh(y) * 0.8})
        ((z * first).sum() + (y * second).sum()).backward()
        return [y, z], _gradients(needed)
    if graph == "detach":
        y = f(leaves)
        z = f({**leaves, "b": torch.tanh(y).detach(), "a": leaves["a"] * 0.5})
        ((z * first).sum() + (y * second).sum()).backward()
        return [y, z], _gradients(needed)
    if graph == "shared":
        y = f({**leaves, "b": leaves["a"]})
        (y * first).sum().backward()
        return [y], _gradients(needed)
    if graph == "in_place":
        a, v = leaves["a"] * 0.9, leaves["v"].clone()
        a.mul_(0.8).add_(0.1)
        v[..., 1] = v[..., 0] * 0.5
        y = f({**leaves, "a": a, "v": v})
        (y * first).sum().backward()
        return [y], _gradients(needed)
    if graph == "in_place_after":
        y = f(leaves)
        value = y.detach().clone()
        y.mul_(second)
        (y * first).sum().backward()
        return [value], _gradients(needed)
    if graph == "twice":
        y = f(leaves)
        loss = (y * first).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        return [y], _gradients(needed)
    if graph == "accumulate":
        y = f(leaves)
        (y * first).sum().backward()
        z = f({**leaves, "a": leaves["a"] * 0.7})
        (z * second).sum().backward()
        return [y, z], _gradients(needed)
    if graph == "subset":
        y = f(leaves)
        names = [name for name in needed if name in ("a", "h", "s.q", "w")]
        made = torch.autograd.grad((y * first).sum(), [needed[name] for name in names], allow_unused=True)
        return [y], {name: grad for name, grad in zip(names, made, strict=True) if grad is not None}
    if graph == "no_grad_first":
        with torch.no_grad():
            f(leaves)
    y = f(leaves)
    (y * first).sum().backward()
    return [y], _gradients(needed)


def _gradients(leaves: Inputs) -> Any:
    return {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
