"""What test_crash.py looks at in processes of their own, which sources may end: crash_child.py <what> <folder>."""

from __future__ import annotations

import ctypes
import faulthandler
import sys
import threading
import time
from pathlib import Path

import numpy as np

import slangpy as spy

ATTRIBUTES = (
    "Differentiable", "BackwardDifferentiable", "ForwardDifferentiable", "TreatAsDifferentiable", "ForceInline, Differentiable",
    "BackwardDerivative(g)", "ForwardDerivative(g)",
)  # fmt: skip
PLACES = (
    "struct S { float x; property float twice { @ get { return x * 2; } set { x = newValue / 2; } } }",
    "struct S { float x; property float twice { get { return x * 2; } @ [ForceInline] set { x = newValue / 2; } } }",
    "struct S { float x; }\nextension S { property twice : float { @ get { return x * 2; } } }",
    "interface I { property float twice { @ get; } }",
    "property vector<float, 3> twice { [ForceInline] @ get { return 3; } }",
)
CRASHES = {
    "no_function": "[ForwardDerivative(nope)] float f(float a) { return a; }",
    "generic": "T g<T : IFloat>(T a) { return a; }\n[ForwardDerivative(g)] float f(float a) { return a; }",
    "lambda": "float f(float a) { bwd_diff((float x) => x)(a, 1.0); return a; }",
    "quotient_in_if": "#if (-2147483647 - 1) / -1\n#endif\nfloat f(float a) { return a; }",
}


def refused(device: spy.Device, name: str, source: str) -> str:
    try:
        spy.Module.load_from_source(device, name, source)
    except spy.SlangCompileError as error:
        return f"{type(error).__name__} {error}"
    raise AssertionError(f"{name} was loaded: {source}")


def accessors(device: spy.Device, folder: Path) -> None:
    for i, place in enumerate(PLACES):
        for k, attribute in enumerate(ATTRIBUTES):
            source = "float g(float x) { return x; }\n" + place.replace("@", f"[{attribute}]")
            text = refused(device, f"accessor_{i}_{k}", source)
            line = next(n for n, line in enumerate(source.split("\n"), 1) if attribute in line)
            column = source.split("\n")[line - 1].index(f"[{attribute}]") + 1
            assert text.startswith("SlangCompileError") and f"accessor_{i}_{k}:{line}:{column}\n" in text, text
            assert "write a method" in text and "^" * (len(attribute) + 2) + " " in text, text
    (folder / "part.slang").write_text(PLACES[0].replace("@", "[Differentiable]"))
    for _ in range(2):  # Slang keeps what it has read of an import
        text = refused(device, "imports", f'import "{folder}/part.slang";\nfloat f(float a) {{ return a; }}')
        assert f"{folder}/part.slang:1:44" in text, text
    text = refused(device, "includes", f'#include "{folder}/part.slang"\nfloat f(float a) {{ return a; }}')
    assert f"{folder}/part.slang:1:44" in text, text
    (folder / "part.slang").write_text(PLACES[0].replace("@", "[ForceInline]"))
    use = "float f(float a) { S s; s.x = a; return s.twice; }"
    assert spy.Module.load_from_source(device, "imports", f'import "{folder}/part.slang";\n{use}').f(2) == 4


def contained(device: spy.Device, folder: Path, dumps: bool = False) -> None:
    source = "[Differentiable] float f(float a) { return a * a; } int q(int a, int b) { return a / b; }"
    before = spy.Module.load_from_source(device, "before", source)
    assert before.f(3) == 9
    for name, text in list(CRASHES.items())[: 1 if dumps else None]:
        first = refused(device, name, text)
        assert first.startswith("CompilerDiedError") and f'"{name}"' in first and "crashed (signal" in first, first
        if name in ("no_function", "generic", "lambda"):
            assert f"{name}:{text.count(chr(10)) + 1}:" in first and "^^^" in first, first
        begin = time.perf_counter()
        again = refused(device, name, text)
        assert again.split("\n")[0] == first.split("\n")[0], again
        assert time.perf_counter() - begin < 0.04  # remembered: another crash would cost another compiler
        if dumps:
            faulthandler.enable()  # puts its own handlers above
        after = spy.Module.load_from_source(device, f"after_{name}", "float f(float a) { return a + 1; }")
        assert after.f(1) == 2
        assert before.f(np.array([1, 2, 3], np.float32), _result="numpy").tolist() == [1, 4, 9]
    x = spy.Tensor.from_numpy(device, np.array([1, 2, 3], np.float32)).with_grads()
    y = before.f(x).with_grads()
    y.grad.copy_from_numpy(np.ones(3, np.float32))
    before.f.bwds(x, _result=y)
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    assert before.q(np.array([4, 5], np.int32), np.array([0, 2], np.int32), _result="numpy").tolist() == [0, 2]
    file = folder / "file.slang"
    file.write_text(CRASHES["no_function"])
    for _ in range(2):
        try:
            spy.Module.load_from_file(device, file)
        except spy.CompilerDiedError as error:
            assert error.reason == "crash" and f"{folder}/file" in str(error) and ":1:2" in str(error), error
        else:
            raise AssertionError("loaded")
    file.write_text("float f(float a) { return a; }")
    assert spy.Module.load_from_file(device, file).f(5) == 5


def meanwhile(device: spy.Device, folder: Path) -> None:
    """Another thread puts a handler above while the compiler works."""
    functions = "\n".join(f"float h{k}(float a) {{ return sin(a) * {k}; }}" for k in range(600))
    for i in range(8):
        faulthandler.disable()
        timer = threading.Timer(0.004 + 0.003 * i, faulthandler.enable)
        timer.start()
        refused(device, f"meanwhile_{i}", f"{functions}\n[ForwardDerivative(nope)] float f(float a) {{ return a + {i}; }}")
        timer.join()


def others(device: spy.Device, folder: Path) -> None:
    """Faults that are not the compiler's end the process, as without this package."""
    contained(device, folder, dumps=True)
    print("now", flush=True)
    ctypes.string_at(0)


if __name__ == "__main__":
    globals()[sys.argv[1]](spy.create_device(spy.DeviceType.cpu), Path(sys.argv[2]))
    print("done")
