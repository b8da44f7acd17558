"""`with device.profile() as p`: what is measured, how it is shown, and what may happen meanwhile."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from drawn import LONG

import slangpy as spy

SOURCE = """
float square(float x) { return x * x; }
[Differentiable] float cube(float x) { return x * x * x; }
[shader("compute")] [numthreads(32, 1, 1)]
void fill(uint3 t : SV_DispatchThreadID, uniform float value, RWStructuredBuffer<float> y) { y[t.x] = value; }
"""


@pytest.fixture
def module(device: spy.Device) -> spy.Module:
    return spy.Module.load_from_source(device, "profiled", SOURCE)


def tensor(device: spy.Device, *shape: int) -> spy.Tensor:
    return spy.Tensor.from_numpy(device, np.ones(shape, np.float32))


def test_counts_names_and_shapes(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 3, 5)
    y = module.square(x)
    with device.profile() as p:
        for _ in range(3):
            module.square(x, _result=y)
        module.cube(x)
    module.square(x)
    assert [(e.name, e.shape) for e in p.events] == [("profiled::square", (3, 5))] * 3 + [("profiled::cube", (3, 5))]
    rows = {row.name: row for row in p.rows}
    assert rows["profiled::square"].launches == 3 and rows["profiled::cube"].launches == 1
    starts = [e.start for e in p.events]
    assert starts == sorted(starts) and starts[0] == 0
    for name, row in rows.items():
        times = [e.duration for e in p.events if e.name == name]
        assert row.total == pytest.approx(sum(times)) and row.mean == pytest.approx(sum(times) / len(times))
        assert (row.min, row.max) == (min(times), max(times))
        assert device.info.type == spy.DeviceType.null or min(times) > 0
    if device.info.type == spy.DeviceType.null:
        assert all(e.duration == 0 for e in p.events) and "runs no kernel" in p.table()
    else:
        assert sum(row.share for row in p.rows) == pytest.approx(1)


@pytest.mark.needs_kernels
def test_times_are_those_of_the_device(device: spy.Device) -> None:
    """A loop of ten times the length takes longer, and all kernels together no longer than the host waited."""
    source = "float loop(float x, int n) { for (int i = 0; i < n; ++i) x = sin(x) + 1; return x; }"
    loop = spy.Module.load_from_source(device, "loops", source).loop
    x = tensor(device, 1 << 12)
    loop(x, 10)
    with device.profile() as short:
        loop(x, 200)
    start = time.perf_counter()
    with device.profile() as long:
        loop(x, 20000)
    waited = time.perf_counter() - start
    assert 5 * short.rows[0].total < long.rows[0].total < waited


def test_backward_calls(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 8).with_grads()
    y = module.cube(x).with_grads()
    y.grad_in.copy_from_numpy(np.ones(8, np.float32))
    module.cube.bwds(x, _result=y)
    with device.profile() as p:
        module.cube.bwds(x, _result=y)
        module.cube(x, _result=y)
    assert [e.name for e in p.events] == ["profiled::cube.bwds", "profiled::cube"]


def test_raw_dispatch_and_copies(device: spy.Device) -> None:
    program = device.link_program([m := device.load_module_from_source("filled", SOURCE)], [m.entry_point("fill")])
    kernel = device.create_compute_kernel(program)
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    y, z = (device.create_buffer(element_count=64, struct_size=4, usage=usage) for _ in range(2))
    with device.profile() as p:
        kernel.dispatch([64, 1, 1], value=2.0, y=y)
        with device.create_command_encoder() as encoder:
            kernel.dispatch([32, 1, 1], command_encoder=encoder, value=3.0, y=y)
            encoder.copy_buffer(z, 0, y, 0, 128)
            encoder.clear_buffer(y)
    assert [(e.name.split("::")[-1], e.shape) for e in p.events] == [
        ("fill", (64, 1, 1)), ("fill", (32, 1, 1)), ("copy_buffer", (128,)), ("clear_buffer", (256,)),
    ]  # fmt: skip
    if device.info.type != spy.DeviceType.null:
        assert z.to_numpy().view(np.float32).tolist()[:33] == [3.0] * 32 + [0.0]


def test_recorded_calls_keep_their_shape(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 2, 7)
    y = module.square(x)
    encoder = device.create_command_encoder()
    module.square.append_to(encoder, x, _result=y)
    with device.profile() as p:
        assert not p._device.is_closed
        device.submit_command_buffer(encoder.finish())
    assert [(e.name, e.shape) for e in p.events] == [("profiled::square", (2, 7))]


def test_more_launches_than_a_pool_holds(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 4)
    y = module.square(x)
    with device.profile() as p:
        for _ in range(1300):
            module.square(x, _result=y)
    assert len(p.events) == 1300 and p.rows[0].launches == 1300
    if device.info.type != spy.DeviceType.null:
        assert min(e.duration for e in p.events) > 0


def test_nothing_is_kept_when_nobody_measures(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 4)
    y = module.square(x)
    module.square(x, _result=y)
    before = len(device._live_objects())
    with device.profile():
        module.square(x, _result=y)
    assert len(device._live_objects()) == before


def test_blocks_nest_and_overlap(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 4)
    y = module.square(x)
    with device.profile() as outer:
        module.square(x, _result=y)
        with device.profile() as inner:
            module.cube(x, _result=y)
        module.square(x, _result=y)
    assert [e.name for e in inner.events] == ["profiled::cube"]
    assert [e.name for e in outer.events] == ["profiled::square", "profiled::cube", "profiled::square"]
    first, second = device.profile(), device.profile()
    first.__enter__()
    module.square(x, _result=y)
    second.__enter__()
    first.__exit__(None, None, None)
    module.cube(x, _result=y)
    second.__exit__(None, None, None)
    assert [len(first.events), len(second.events)] == [1, 1]


def test_misuse(device: spy.Device) -> None:
    p = device.profile()
    with pytest.raises(RuntimeError, match="nothing was measured yet; read it after"):
        p.events
    assert "not started" in str(p)
    with p:
        assert "measuring" in repr(p) and "measuring" in p._repr_html_()
        with pytest.raises(RuntimeError, match="has been used"):
            p.__enter__()
    assert p.events == () and p.rows == [] and p.table().startswith("0 launches")
    assert p.chrome_trace()["traceEvents"][0]["ph"] == "M"
    with pytest.raises(RuntimeError, match="has been used"), p:
        pass


def test_an_exception_in_the_block(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 4)
    with pytest.raises(ZeroDivisionError), device.profile() as p:
        module.square(x)
        raise ZeroDivisionError
    assert [e.name for e in p.events] == ["profiled::square"]
    with device.profile() as after:
        pass
    assert after.events == ()


def test_a_submission_that_fails_is_not_waited_for(device: spy.Device, module: spy.Module) -> None:
    """What stood before a callback was submitted; what stood after it never runs and has no times."""
    if device.info.type.name != "vulkan":
        pytest.skip("no command is known that fails while it is recorded")
    x = tensor(device, 4)
    y = module.square(x)
    usage = spy.TextureUsage.depth_stencil | spy.TextureUsage.copy_source
    texture = device.create_texture(format=spy.Format.d32_float_s8_uint, width=4, height=4, usage=usage)
    buffer = device.create_buffer(size=4096)
    encoder = device.create_command_encoder()
    module.square.append_to(encoder, x, _result=y)
    encoder.execute_callback(lambda _: None)
    module.cube.append_to(encoder, x, _result=y)
    encoder.copy_texture_to_buffer(buffer, 0, 4096, 256, texture, 0, 0)
    with device.profile() as p:
        with pytest.raises(NotImplementedError, match="stencil|d32_float"):
            device.submit_command_buffer(encoder.finish())
        module.square(x, _result=y)
    assert [e.name for e in p.events] == ["profiled::square"] * 2


def test_closed_within(device: spy.Device) -> None:
    device = spy.Device(type=device.info.type, enable_hot_reload=False)
    module = spy.Module.load_from_source(device, "profiled", SOURCE)
    x = tensor(device, 4)
    with device.profile() as p:
        module.square(x)
        device.close()
    assert [e.name for e in p.events] == ["profiled::square"]
    with pytest.raises(RuntimeError, match="closed"):
        device.profile()


def test_threads(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 4)
    module.square(x)
    stop = threading.Event()
    failures: list[Exception] = []

    def work() -> None:
        y = module.square(x)
        try:
            while not stop.is_set():
                module.square(x, _result=y)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20 if LONG else 8):
            with device.profile() as p:
                module.cube(x)
            names = [e.name for e in p.events]
            assert names.count("profiled::cube") == 1 and set(names) <= {"profiled::square", "profiled::cube"}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures


def test_hot_reload_within(device: spy.Device, tmp_path: Path) -> None:
    file = tmp_path / "reloaded.slang"
    file.write_text("float f(float x) { return x; }")
    with spy.Device(type=device.info.type) as device:
        module = spy.Module.load_from_file(device, str(file))
        x = tensor(device, 4)
        with device.profile() as p:
            module.f(x)
            file.write_text("float f(float x) { return x + 1; }")
            device.hot_reload_check()
            module.f(x)
        assert [e.name for e in p.events] == ["reloaded::f"] * 2
        device.close()


@pytest.mark.needs_kernels
def test_torch_tensors(device: spy.Device, module: spy.Module) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(6, requires_grad=True, device=device.torch_device)
    with device.profile() as p:
        module.cube(x).sum().backward()
    assert torch.equal(x.grad.cpu(), torch.full((6,), 3.0))
    assert len([e for e in p.events if "cube" in e.name]) >= 2


def test_chrome_trace(device: spy.Device, module: spy.Module, tmp_path: Path) -> None:
    """Fields of complete ("X") and metadata ("M") events as the format's document names them."""
    x = tensor(device, 3, 4)
    with device.profile() as p:
        module.square(x)
        module.cube(x)
    p.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace == p.chrome_trace() and trace["displayTimeUnit"] in ("ms", "ns")
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [e["name"] for e in events] == [e.name for e in p.events]
    for event, own in zip(events, p.events, strict=True):
        assert {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"} == set(event)
        assert event["ts"] == pytest.approx(own.start * 1e6) and event["dur"] == pytest.approx(own.duration * 1e6)
        assert event["args"] == {"shape": [3, 4]}
    named = {(e["name"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "M"}
    assert named == {("process_name", 0)} | {("thread_name", e["tid"]) for e in events}
    rows: dict[int, float] = {}
    for event in events:  # complete events of a row must nest: here none overlap
        assert event["ts"] >= rows.get(event["tid"], 0) - 1e-9
        rows[event["tid"]] = event["ts"] + event["dur"]


def test_tables(device: spy.Device, module: spy.Module) -> None:
    x = tensor(device, 3)
    with device.profile() as p:
        module.square(x)
    lines = str(p).splitlines()
    assert lines[-2].split() == ["function", "launches", "total", "mean", "min", "max", "share"]
    assert lines[-1].startswith("profiled::square") and f"({device.info.type.name})" in lines[0]
    page = p._repr_html_()
    assert page.count("<tr>") == 2 and "<td>profiled::square</td>" in page
