"""Slang functions with the names of attributes of Module and Struct: few are left, and those are told at load."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from calls_support import source

import slangpy as spy
from slangpy.errors import SlangWarning

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

FREE = (
    "loaded defines cacheable content_key replace load_in is_outdated is_loaded_in note_files watch_imports follow_compiler "
    "plan_table drop_kernels kernel_store type_from_layout"
).split()
FREE_OF_STRUCTS = "is_static constructor find_method program".split()
HIDDEN = "name link layout options device session logger find_struct load_from_file on_hot_reload".split()


def told(device: Any, name: str, text: str) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = source(device, name, text)
    return module, [str(w.message) for w in caught if w.category is SlangWarning]


def test_internals_hide_nothing(device: Any) -> None:
    methods = "".join(f" float {name}(float x) {{ return x + {i}; }}" for i, name in enumerate(FREE_OF_STRUCTS))
    text = "".join(f"float {name}(float x) {{ return x + {i}; }}\n" for i, name in enumerate(FREE))
    module, said = told(device, "hidden_none", f"{text}struct S {{ float y;{methods} }}")
    assert said == []
    for name in (FREE[0], FREE[4], FREE[-1]):
        assert getattr(module, name)(1.0) == 1 + FREE.index(name)
    assert all(isinstance(getattr(module, name), spy.Function) for name in FREE)
    assert all(isinstance(getattr(module.S, name), spy.Function) for name in FREE_OF_STRUCTS)
    assert module.S.program({"y": 0.0}, 1.0) == 4


def test_the_rest_is_told_at_load(device: Any) -> None:
    text = "".join(f"float {name}(float x) {{ return x + {i}; }}\n" for i, name in enumerate(HIDDEN))
    text += "float options(int x) { return x; }\nstruct S { float y; float fields() { return y; } static float own() { return 1; } }"
    for _ in range(2):  # also where the compiler need not look
        module, said = told(device, "hidden_some", text)
        assert len(said) == len(HIDDEN) + 1
        for name, line in zip([*HIDDEN, "S.fields"], said, strict=True):
            owner, _, member = name.rpartition(".")
            assert f"declares '{name}'" in line and f"call it as hidden_some{'.' + owner if owner else ''}['{member}'](...)" in line
    assert module["link"](1.0) == 2 and module.S["fields"]({"y": 3.0}) == 3
    assert module.name == "hidden_some" and module.link == []


def test_names_of_loaded_files(device: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shaders"
    folder.mkdir()
    (folder / "lights.slang").write_text("float f(float x) { return 2 * x; }")
    monkeypatch.chdir(tmp_path)
    for given in ("shaders/lights.slang", "shaders/lights", str(folder / "lights.slang"), folder / "lights.slang"):
        module = spy.Module.load_from_file(device, given)
        assert module.name == str(given) and repr(module) == "Module(name='lights', linked_modules=0)"
        assert module.f(2.0) == 4
        with pytest.raises(spy.CallError, match="lights::f: "):
            module.f("a", 1)
    assert pickle.loads(pickle.dumps(module)).name == str(folder / "lights.slang")


def test_fields_of_instances(device: Any) -> None:
    module = source(device, "hidden_fields", "struct S { float data; float y; float sum() { return data + y; } }")
    with pytest.warns(SlangWarning, match=r"field 'data' of S has the name of an attribute of InstanceList.*\.data\['data'\]"):
        instances = spy.InstanceList(module.S, {"data": 1.0, "y": 2.0})
    assert instances.data["data"] == 1 and instances.y == 2 and instances.sum() == 3
