"""Differentiable programs, with lanes and without, as a family: see ../family.py."""

from __future__ import annotations

from .. import gradients
from ..cases import draw_case, draw_programs
from .cases import LaneCase, lane_family


def draw(seed: int, count: int, without: frozenset[str], route: str) -> LaneCase:
    """Always with `Tensor`s: torch's graph has no part in lanes. Two of three without loads from tensors, whose gradients are
    added at places that the program picks: such kernels have no lanes."""
    without |= {"tensor"} if seed % 3 else set()
    return LaneCase(draw_case(seed, draw_programs(seed, count, without), route=route or "tensor"))


FAMILY = lane_family(gradients.FAMILY, draw)
