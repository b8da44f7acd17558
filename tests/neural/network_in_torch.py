"""What a network computes, in torch float64, after the papers that slangpy/neural names; and how far we may be off."""

from __future__ import annotations

import math
from typing import Any

import torch

from slangpy import neural

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, 0.01),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "sine": torch.sin,
}


def encoded(encoding: neural.Encoding | None, x: torch.Tensor, table: torch.Tensor | None) -> torch.Tensor:
    if isinstance(encoding, neural.Frequency):
        angles = x[:, :, None] * math.pi * 2.0 ** torch.arange(encoding.count)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    if isinstance(encoding, neural.HashGrid):
        assert table is not None
        return torch.cat(list(_levels(encoding, x, table.reshape(-1, encoding.per_level))), dim=1)
    return x


def _levels(encoding: neural.HashGrid, x: torch.Tensor, table: torch.Tensor) -> Any:
    first, axes = 0, x.shape[1]
    for level in range(encoding.levels_count):
        cells = math.floor(encoding.coarsest * encoding.growth**level + 1e-9)
        corners = (cells + 1) ** axes
        entries = min(corners, 2**encoding.log2_entries)
        at = x.clamp(0, 1) * cells
        cell = at.detach().floor().clamp(max=cells - 1)
        part = at - cell
        total = torch.zeros(len(x), encoding.per_level, dtype=x.dtype)
        for bits in range(2**axes):
            corner = cell.long() + torch.tensor([bits >> k & 1 for k in range(axes)])
            place = torch.zeros(len(x), dtype=torch.long)
            weight = torch.ones(len(x), dtype=x.dtype)
            for k, prime in enumerate((1, 2654435761, 805459861)[:axes]):
                if corners <= 2**encoding.log2_entries:
                    place = place + corner[:, k] * (cells + 1) ** k
                else:
                    place = place ^ (corner[:, k] * prime & 0xFFFFFFFF)
                weight = weight * (part[:, k] if bits >> k & 1 else 1 - part[:, k])
            total = total + weight[:, None] * table[first + place % entries]
        yield total
        first += entries


def network(shape: Any, x: torch.Tensor, weights: torch.Tensor, table: torch.Tensor | None) -> torch.Tensor:
    values, at = encoded(shape.encoding, x, table), 0
    for number, (rows, columns) in enumerate(shape.layers):
        matrix = weights[at : at + rows * columns].reshape(rows, columns)
        bias = weights[at + rows * columns : at + rows * (columns + 1)]
        at += rows * (columns + 1)
        last = number == len(shape.layers) - 1
        values = ACTIVATIONS[shape.output_activation if last else shape.activation](values @ matrix.T + bias)
    return values
