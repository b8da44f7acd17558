"""Interfaces that modules give to types by extension, on a device that has chosen functions by types before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]
FIRST = """
interface IFirst {{ float get(); }}
extension float : IFirst {{ float get() {{ return this * {0}; }} }}
float first{0}<T : IFirst>(T x) {{ return x.get(); }}
float of_interface{0}(IFirst x) {{ return x.get(); }}
"""


def test_of_built_in_types(device: spy.Device) -> None:
    """Each module has its own, also where it does not come first, from text and from files."""
    for factor in (2, 3):
        module = spy.Module.load_from_source(device, f"extensions_{factor}", FIRST.format(factor))
        first, of_interface = (getattr(module, f"{name}{factor}") for name in ("first", "of_interface"))
        assert first(2.0) == 2 * factor
        assert of_interface(np.float32([1, 4]), _result="numpy").tolist() == [factor, 4 * factor]


def test_in_imported_files(device: spy.Device, tmp_path: Path) -> None:
    (tmp_path / "extended_points.slang").write_text("struct Point { float x, y; }\nfloat sum(Point p) { return p.x + p.y; }\n")
    (tmp_path / "extended_sizes.slang").write_text(
        "import extended_points;\ninterface ISize { float size(); }\n"
        "extension Point : ISize { float size() { return x * y; } }\n"
    )
    (tmp_path / "extended_use.slang").write_text(
        "import extended_points;\nimport extended_sizes;\nfloat size_of<T : ISize>(T value) { return value.size(); }\n"
    )
    point = {"x": 2.0, "y": 5.0}
    points = spy.Module.load_from_file(device, str(tmp_path / "extended_points.slang"))
    assert points.sum(point) == 7
    use = spy.Module.load_from_file(device, str(tmp_path / "extended_use.slang"))
    assert use.size_of({"_type": "Point", **point}) == 10
    again = spy.Module.load_from_file(device, str(tmp_path / "extended_use.slang"))
    assert again.session is use.session  # nothing new is extended
    assert points.sum(point) == 7


def test_with_linked_modules(device: spy.Device) -> None:
    base = spy.Module.load_from_source(device, "extended_base", "interface IBase { float get(); }\nfloat twice(float x) { return 2 * x; }")
    assert base.twice(3.0) == 6
    user = spy.Module.load_from_source(
        device, "extended_user",
        "import extended_base;\nextension float : IBase { float get() { return twice(this); } }\nfloat of<T : IBase>(T x) { return x.get(); }",
        link=[base],
    )  # fmt: skip
    assert user.of(5.0) == 10


def test_in_files_that_only_the_module_imports(device: spy.Device, tmp_path: Path) -> None:
    """Kernels and the choice of types see what the module sees, directly or through others."""
    (tmp_path / "hidden_kinds.slang").write_text(
        "interface IKind { float get(); }\n"
        "extension float : IKind { float get() { return this * 3; } }\n"
        "extension int : IKind { float get() { return float(this) * 5; } }\n"
        "extension<T : IKind, let N : int> Array<T, N> : IKind\n"
        "{ float get() { float s = 0; for (int i = 0; i < N; i++) s += this[i].get(); return s; } }\n"
        "float own(int x) { return 100; }\n"
    )
    (tmp_path / "hidden_between.slang").write_text("__exported import hidden_kinds;\n")
    for number, file in enumerate(("hidden_kinds", "hidden_between")):
        path = tmp_path / f"hidden_use_{number}.slang"
        path.write_text(
            f"import {file};\nfloat of_any<T : IKind>(T x) {{ return x.get(); }}\nfloat of_kind(IKind x) {{ return x.get(); }}\n"
            "struct Plain { float x; }\nfloat own(float x) { return 2 * x; }\nfloat of_list(float x[3]) { return of_any(x); }\n"
        )
        module = spy.Module.load_from_file(device, str(path))
        assert module.of_any(2.0) == 6 and module.of_any(2) == 10
        assert module.of_any(np.float32([1, 2]), _result="numpy").tolist() == [3, 6]
        assert module.of_kind(2.0) == 6
        assert module.of_kind(np.int32([1, 2]), _result="numpy").tolist() == [5, 10]
        assert module.of_list([1.0, 2.0, 4.0]) == 21
        assert module.own(3) == 6  # that of the file is no function of the module
        with pytest.raises(spy.ResolveException, match="does not conform to it"):
            module.of_kind({"_type": "Plain", "x": 1.0})
        with pytest.raises(spy.ResolveException, match="IKind"):
            module.of_any({"_type": "Plain", "x": 1.0})
