"""Many draws and many passes: right, and in memory that does not grow."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from drawing import pipeline, texture

import slangpy as spy

pytestmark = pytest.mark.draws


def many_draws(device: spy.Device, count: int) -> None:
    """Each draw has values of its own and covers one pixel of a square image."""
    side = int(np.ceil(count**0.5))
    target, one = (
        texture(device, spy.Format.r32_float, size=side),
        pipeline(device, "fullscreen", targets=[{"format": spy.Format.r32_float}]),
    )
    encoder = device.create_command_encoder()
    with encoder.begin_render_pass(color_attachments=[{"view": target}]) as render_pass:
        cursor = spy.ShaderCursor(render_pass.bind_pipeline(one))
        for i in range(count):
            cursor.tint = (i + 1, 0, 0, 0)
            x, y = i % side, i // side
            render_pass.set_render_state(scissor_rects=[spy.ScissorRect(x, y, x + 1, y + 1)])
            render_pass.draw(vertex_count=3)
    device.submit_command_buffer(encoder.finish())
    image = target.to_numpy().ravel()
    assert (image[:count] == np.arange(1, count + 1)).all() and not image[count:].any()


def many_passes(device: spy.Device, count: int) -> None:
    """Memory grows by that of the lists that may be in flight, not by the passes."""
    most_lists = 70
    target, one = texture(device), pipeline(device, "fullscreen")

    def run(passes: int) -> int:
        for i in range(passes):
            encoder = device.create_command_encoder()
            with encoder.begin_render_pass(
                color_attachments=[{"view": target, "load_op": spy.LoadOp.load}]
            ) as render_pass:
                spy.ShaderCursor(render_pass.bind_pipeline(one)).tint = (i, i, i, i)
                render_pass.draw(vertex_count=3)
            device.submit_command_buffer(encoder.finish())
        device.wait()
        gc.collect()
        return sum(heap.num_allocations for heap in device.report_heaps())

    first = run(1)
    live = len(device._live_objects())
    assert run(count) <= first + most_lists
    assert len(device._live_objects()) <= live
    assert (target.to_numpy() == count - 1).all()


def test_draws(drawer: spy.Device) -> None:
    many_draws(drawer, 700)


def test_passes(drawer: spy.Device) -> None:
    many_passes(drawer, 200)


@pytest.mark.nightly
def test_ten_thousand_draws(drawer: spy.Device) -> None:
    many_draws(drawer, 10_000)


@pytest.mark.nightly
def test_thousand_passes(drawer: spy.Device) -> None:
    many_passes(drawer, 1000)
