"""Objects that are no functions, called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import slangpy as spy

pytestmark = pytest.mark.one

CODE = """
float twice(float x) { return 2 * x; }
[shader("compute")] [numthreads(32, 1, 1)] void fill(uint3 at : SV_DispatchThreadID, RWStructuredBuffer<uint> to) { to[at.x] = at.x; }
"""


def fill(device: spy.Device) -> Any:
    session = device.slang_session
    code = session.load_module_from_source("not_called_fill", CODE)
    return session.link_program([code], [code.entry_point("fill")])


CALLED: dict[str, tuple[Callable[[spy.Device], Any], str]] = {
    "kernel": (lambda d: d.create_compute_kernel(fill(d)), r"a ComputeKernel cannot be called; kernel\.dispatch\(thread_count, "),
    "pipeline": (lambda d: d.create_compute_pipeline(fill(d)), r"a ComputePipeline cannot be called; .*\.bind_pipeline\(pipeline\)"),
    "module": (lambda d: spy.Module.load_from_source(d, "not_called", CODE), r"a Module cannot be called; .* module\.name\("),
}


@pytest.mark.parametrize("what", CALLED)
@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((64,), {}), (([64, 1, 1], 3), {"to": None})])
def test_what_to_call(device: spy.Device, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    make, text = CALLED[what]
    made = make(device)
    with pytest.raises(TypeError, match=text):
        made(*args, **kwargs)


def test_functions_are_still_called(device: spy.Device) -> None:
    module = spy.Module.load_from_source(device, "not_called", CODE)
    if device.info.type is not spy.DeviceType.null:
        assert module.twice(3.0) == module["twice"](3.0) == 6


@pytest.mark.parametrize("wrong", [3, 0, [1], "to"])
def test_parameters_of_dispatch_by_position(device: spy.Device, wrong: Any) -> None:
    kernel = device.create_compute_kernel(fill(device))
    with pytest.raises(TypeError, match=r"dispatch 'vars': expected a dict of globals, got .* go by name: dispatch\(thread_count, name=value\)"):
        kernel.dispatch(64, wrong)
