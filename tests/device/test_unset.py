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
        with pytest.raises(RuntimeError, match=message(path, kind)):
            run(path)
    run("")
    if device.info.type != spy.DeviceType.null:
        assert result.to_numpy().view(np.float32) == [28.0]
