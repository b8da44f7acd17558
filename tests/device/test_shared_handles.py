"""Devices opened on another's native handles: every order of closing and dropping, and the interpreter's exit."""

from __future__ import annotations

import itertools

import pytest
from device_kernels import in_process
from tiers import gate

import slangpy as spy

CODE = """
import gc, sys
import numpy as np
import slangpy as spy

RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
SOURCE = '''
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<uint> y)
{
    uint x = y[tid.x];
    for (uint i = 0; i < 50000; i++) x = x * 1664525u + 1013904223u;
    y[tid.x] = x;
}'''
kind = spy.DeviceType["NAME"]


def opened(handles=None):
    return spy.Device(type=kind, compiler_options={}, existing_device_handles=handles)


class Worker:
    '''A device with work under way and values whose result is known.'''

    def __init__(self, handles=None):
        self.device = opened(handles)
        self.buffer = self.device.create_buffer(data=np.zeros(64, np.uint32), struct_size=4, usage=RW)
        if kind is not spy.DeviceType.null:
            module = self.device.load_module_from_source("m", SOURCE)
            program = self.device.link_program([module], [module.entry_point("main")])
            self.kernel = self.device.create_compute_kernel(program)

        self.started = False

    def start(self):
        self.started = True
        if kind is not spy.DeviceType.null:
            self.kernel.dispatch([64, 1, 1], y=self.buffer)

    def check(self):
        got = self.buffer.to_numpy().view(np.uint32)
        assert (got == got[0]).all()
        assert kind is spy.DeviceType.null or (got[0] != 0) == self.started
        ones = self.device.create_buffer(data=np.ones(9, np.uint32), usage=RW)
        assert ones.to_numpy().view(np.uint32).tolist() == [1] * 9


def three():
    first = Worker()
    handles = first.device.native_handles
    second = Worker(handles)
    third = Worker(second.device.native_handles)  # shares what the second one shares
    return [first, second, third]
"""

ORDERS = """
import itertools
for order in itertools.permutations(range(3)):
    for ends in (("close", "close", "drop"), ("drop", "drop", "close")):
        workers = three()
        for worker in workers:
            worker.start()
        for index, end in zip(order, ends):
            if end == "close":
                workers[index].device.close()
            workers[index] = None
            for worker in workers:
                if worker is not None:
                    worker.check()
                    worker.start()
        del worker
"""


def run(device_type: spy.DeviceType, code: str) -> None:
    result = in_process(CODE.replace("NAME", device_type.name) + code)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_every_order(device_type: spy.DeviceType) -> None:
    run(device_type, ORDERS)


EXITS = {
    "open": "",
    "working": "for w in workers: w.start()",
    "first closed": "workers[0].device.close()",
    "last closed": "workers[2].device.close()",
    "first dropped": "workers.pop(0)",
    "held elsewhere": "import builtins; builtins.kept = workers[::-1]; del workers",
    "in a cycle": "workers.append(workers); del workers",
    "handles kept": "h = workers[0].device.native_handles; workers.clear()",
}


@pytest.mark.parametrize("end", gate(EXITS, lambda end: end in ("open", "working", "held elsewhere", "in a cycle")))
def test_exit(device_type: spy.DeviceType, end: str) -> None:
    run(device_type, f"workers = three()\nfor w in workers: w.start()\n{EXITS[end]}\n")


def test_handles_hold_what_they_name(device_type: spy.DeviceType) -> None:
    """Also in a description, and after their device has gone."""
    run(
        device_type,
        """
first = opened()
handles = first.native_handles
first.close()
Worker(handles).check()
del first, handles
gc.collect()
desc = spy.DeviceDesc(type=kind, existing_device_handles=opened().native_handles)
gc.collect()
desc = spy.DeviceDesc(type=kind, existing_device_handles=desc.existing_device_handles)
device = spy.Device(desc)
del desc
gc.collect()
Worker(device.native_handles).check()
""",
    )


def test_two_devices_submit_at_once(device_type: spy.DeviceType) -> None:
    """They share one queue, on which calls must not overlap."""
    run(
        device_type,
        """
import threading
workers = three()
failures = []

def work(worker):
    try:
        for i in range(100):
            data = np.full(33, i, np.uint32)
            assert worker.device.create_buffer(data=data, usage=RW).to_numpy().view(np.uint32).tolist() == [i] * 33
    except BaseException as error:
        failures.append(error)

threads = [threading.Thread(target=work, args=(w,)) for w in workers]
for thread in threads:
    thread.start()
for _ in range(5):
    opened(workers[0].device.native_handles).close()
for thread in threads:
    thread.join()
assert not failures, failures
""",
    )


def test_a_device_lives_in_its_source_s_way(device_type: spy.DeviceType) -> None:
    """What the source was opened with holds for those that share it."""
    first = spy.Device(type=device_type, compiler_options={}, enable_hot_reload=False)
    second = spy.Device(
        type=device_type, compiler_options={}, enable_hot_reload=False, existing_device_handles=first.native_handles
    )
    assert first.features == second.features
    for name, value in itertools.zip_longest(first.native_handles, second.native_handles):
        assert name == value
    first.close()
    second.close()
