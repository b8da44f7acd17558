"""Resources that were never set: an error in compute passes and kernels, whatever they are and wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest
from unset import COMPUTE, GLOBALS, PARAMETERS, give, give_globals, message

import slangpy as spy

pytestmark = pytest.mark.each


def test_unset_resources_of_kernels(device: spy.Device) -> None:
    """Kernels name the parameter and what to assign; what the code does not read needs no value."""
    module = device.load_module_from_source("unset_compute", COMPUTE)
    program = device.link_program([module], [module.entry_point("main")])
    pipeline = device.create_compute_pipeline(program)
    result = device.create_buffer(data=np.zeros(1, np.float32), struct_size=4, usage=spy.BufferUsage.unordered_access)

    def run(left_out: str) -> None:
        encoder = device.create_command_encoder()
        with encoder.begin_compute_pass() as compute_pass:
            root = compute_pass.bind_pipeline(pipeline)
            give_globals(device, root, left_out)
            own = spy.ShaderCursor(root).find_entry_point(0)
            own.result = result
            give(device, own, PARAMETERS, left_out)
            compute_pass.dispatch([1, 1, 1])
        device.submit_command_buffer(encoder.finish())

    for path, kind in (GLOBALS | PARAMETERS).items():
        if kind == "tensor" and device.info.type == spy.DeviceType.null:  # addresses are null there
            continue
        if kind == "sampler" and device.info.type == spy.DeviceType.cuda:  # kernels there have textures only
            continue
        with pytest.raises(RuntimeError, match=message(path, kind)):
            run(path)
    run("")
    if device.info.type != spy.DeviceType.null:
        assert result.to_numpy().view(np.float32) == [28.0]


POINTERS = """
struct Node { float* value; int depth; }
uniform float* global; uniform Node node; ParameterBlock<Node> block;
[shader("compute")] [numthreads(1, 1, 1)]
void main(uniform float* own, RWStructuredBuffer<float> result)
{
    result[0] = global[0] + node.value[0] + block.value[0] + (own != nullptr ? own[0] : 7);
}
"""


@pytest.mark.needs_kernels
def test_unset_pointers(device: spy.Device) -> None:
    """As other resources; a null pointer is one that somebody has set to None."""
    if device.info.type == spy.DeviceType.d3d12:
        pytest.skip("HLSL has no pointers")
    module = device.load_module_from_source("unset_pointers", POINTERS)
    kernel = device.create_compute_kernel(device.link_program([module], [module.entry_point("main")]))
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    one, result = (device.create_buffer(data=np.ones(1, np.float32), struct_size=4, usage=usage) for _ in range(2))
    given = {"global": one, "node": {"value": one}, "block": {"value": one}}
    for path, lacking in (("global", "global"), ("node.value", "node"), ("block.value", "block")):
        rest = {name: value for name, value in given.items() if name != lacking}
        with pytest.raises(RuntimeError, match=message(path, "buffer, or None for nothing")):
            kernel.dispatch(1, vars=rest, own=one, result=result)
    with pytest.raises(RuntimeError, match=message("own", "buffer, or None for nothing")):
        kernel.dispatch(1, vars=given, result=result)
    kernel.dispatch(1, vars=given, own=None, result=result)
    assert result.to_numpy().view(np.float32) == [10]


@pytest.mark.needs_kernels
def test_unset_pointers_of_calls(device: spy.Device) -> None:
    """Calls of functions name a global pointer that `set` gave no value."""
    if device.info.type == spy.DeviceType.d3d12:
        pytest.skip("HLSL has no pointers")
    source = "uniform float* weights; float weigh(float x) { return weights != nullptr ? weights[0] * x : 5; }"
    module = spy.Module(device.load_module_from_source("unset_pointer_of_calls", source))
    with pytest.raises(RuntimeError, match="global 'weights' .* was never set"):
        module.weigh(2.0)
    one = device.create_buffer(data=np.ones(1, np.float32), struct_size=4, usage=spy.BufferUsage.shader_resource)
    assert module.weigh.set({"weights": one})(2.0) == 2
    assert module.weigh.set({"weights": None})(2.0) == 5
