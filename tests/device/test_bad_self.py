"""Objects whose __init__ never ran, and methods that get another object as self: an exception, never a crash."""

from __future__ import annotations

import gc

import pytest
from device_kernels import in_process
from drawn import MANY, SEED

import slangpy as spy

STEP = 1 if MANY > 1 else 6
"""Of so many uses one is tried."""

PRELUDE = f"STEP, FIRST = {STEP}, {SEED % STEP}" + '''
import copy, enum, importlib, inspect, itertools, operator, os, pickle, pkgutil, sys, warnings
import numpy as np
import slangpy as spy
from slangpy import _native, _slang

warnings.simplefilter("ignore")
device = spy.create_device(spy.DeviceType.cpu)
SOURCE = """struct P { float x; }
float f(float x) { return x; }
float g(P p) { return p.x; }
float first(Tensor<float, 1> t) { return t[0]; }
float row(StructuredBuffer<float> t) { return t[0]; }"""
m = spy.Module.load_from_source(device, "bad_self", SOURCE)
tensor = spy.Tensor.zeros(device, (3,), "float")
modules = [spy, _native, _slang, _native.math, spy.reflection]
for info in pkgutil.walk_packages(spy.__path__, "slangpy."):
    if not any(word in info.name for word in ("jax", "torch", "tools", "tk_dialog", "__main__", "neural.nn")):
        modules.append(importlib.import_module(info.name))
classes = {c for module in modules for c in vars(module).values() if inspect.isclass(c) and c.__module__.startswith("slangpy")}
classes = sorted((c for c in classes if not issubclass(c, (enum.Enum, BaseException))), key=lambda c: (c.__module__, c.__name__))
native = {c for c in classes if any(base.__module__ in ("slangpy._native", "slangpy._slang") for base in c.__mro__)}
left_out = {"__class__", "__subclasshook__", "__init_subclass__", "__new__", "__getattribute__", "__reduce__", "__reduce_ex__", "__del__"}
uses = [
    len, iter, list, repr, hash, bool, int, float, operator.index, copy.copy, copy.deepcopy, memoryview, np.asarray, pickle.dumps, dir,
    lambda o: o(), lambda o: o(1), lambda o: o(x=1), lambda o: o[0], lambda o: o["x"], lambda o: o.__setitem__(0, 1), lambda o: o == o,
    lambda o: o < o, lambda o: o + o, lambda o: 1 + o, lambda o: o * o, lambda o: -o, lambda o: o @ o, lambda o: 1 in o,
    lambda o: o.__enter__(), lambda o: o.__exit__(None, None, None), lambda o: setattr(o, "anything", 1),
]
calls = [
    lambda o: m.f(o), lambda o: m.g(o), lambda o: m.g({"x": o}), lambda o: m.f([o, o]), lambda o: m.first(o), lambda o: m.row(o),
    lambda o: m.f.bwds(o, _result=o), lambda o: m.f(1.0, _result=o), lambda o: spy.pack(m, o), lambda o: m.f.prepare(o),
    lambda o: spy.Module(o), lambda o: spy.ShaderCursor(o), lambda o: device.submit_command_buffer(o), lambda o: m.f.append_to(o, 1.0),
    lambda o: tensor.with_grads(o), lambda o: setattr(tensor, "grad_in", o) or m.first(tensor), lambda o: m.f.set(o),
    lambda o: m.f.bind(o)(1.0), lambda o: device.create_buffer(data=o), lambda o: spy.Tensor.from_numpy(device, o),
    lambda o: spy.Tensor.empty(device, (1,), o), lambda o: spy.float3(o), lambda o: spy.float4x4(o), lambda o: spy.math.dot(o, o),
]


turns = itertools.count()


def attempt(call, *arguments):
    if next(turns) % STEP != FIRST:
        return None
    tensor.grad_in = None
    try:
        return call(*arguments)
    except Exception as error:
        text = str(error)
        assert not isinstance(error, SystemError) and "bad_cast" not in text and ".cpp" not in text, (call, arguments, error)


def unmade(cls):
    """Instances of a class and of one derived from it, whose __init__ did not run."""
    made = []
    for make in (lambda: cls.__new__(cls), lambda: type("Forgot", (cls,), {"__init__": lambda self, *a, **k: None})()):
        try:
            made.append(make())
        except Exception:
            pass
    return made
'''

UNMADE = """
for cls in classes:
    for item in unmade(cls):
        for use in [*uses, *(calls if cls in native else ())]:
            attempt(use, item)
        for name in dir(cls):
            if name in left_out:
                continue
            found = attempt(getattr, item, name) or inspect.getattr_static(cls, name, None)
            for arguments in ((), (0,), ("x", 1), (tensor,)) if callable(found) else ():
                attempt(found, *arguments)
            attempt(setattr, item, name, 1)
"""

WRONG = """
wrong = [3, None, "x", tensor, m.f, device, *(item for cls in classes[::23] for item in unmade(cls)[:1])]
for cls in sorted(native, key=lambda c: (c.__module__, c.__name__)):
    for name in sorted(set(dir(cls)) - left_out - {"__init__"}):
        raw = inspect.getattr_static(cls, name, None)
        is_property = isinstance(raw, property)
        raw = raw.fget if is_property else raw
        for item in wrong if callable(raw) and not inspect.isfunction(raw) else ():  # Python's may loop over what is none of theirs
            for arguments in ((),) if is_property else ((), (0,), ("x", 1)):
                attempt(raw, item, *arguments)
for module in (_native, _slang, _native.math):
    for function in vars(module).values():
        for item in wrong if callable(function) and not inspect.isclass(function) else ():
            for arguments in ((), (0,), ((), {}), ((), {}, [])):
                attempt(function, item, *arguments)
"""


@pytest.mark.parametrize("what", ["unmade", "wrong"])
def test_the_process_lives_on(what: str) -> None:
    done = in_process(PRELUDE + {"unmade": UNMADE, "wrong": WRONG}[what] + "\nimport gc; gc.collect(); print('done')")
    assert (done.returncode, done.stdout[-5:]) == (0, "done\n"), done.stderr[-3000:]


@pytest.mark.needs_kernels
def test_what_messages_say(device: spy.Device) -> None:
    class Forgot(spy.Function):
        def __init__(self) -> None:
            pass

    module = spy.Module.load_from_source(device, "bad_self_says", "float f(float x) { return x; }")
    for call in (lambda: Forgot()(1.0), lambda: Forgot()._plan_of(1.0), lambda: Forgot().prepare(1.0)):
        with pytest.raises(TypeError, match=r"Forgot: __init__\(\) of this object never ran; call super\(\).__init__"):
            call()
    with pytest.raises(TypeError, match="expected a FunctionNode, got a int"):
        spy.Function.__call__(3, 4)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="never ran; prepare the function again"):
        spy.PreparedCall.__new__(spy.PreparedCall)()
    assert module.f(2.0) == 2
    gc.collect()
