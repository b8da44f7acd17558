"""Functions whose parameter types come from modules that the user's module imports without `__exported`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from calls_support import array, source

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

TYPES = "struct Item { float a; };\nfloat half_of(float x) { return x / 2; }"
USES = "float twice(Item i) { return i.a * 2; }\nItem make(float a) { return { a }; }\nfloat half_of(float x, float y) { return y; }"


@pytest.mark.parametrize(
    "statement", ['import "sub/hidden_types.slang";', "import sub.hidden_types;", "import hidden_beside;"]
)
def test_types_of_an_imported_file(device: Any, tmp_path: Path, statement: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "hidden_types.slang").write_text(TYPES)
    (tmp_path / "hidden_beside.slang").write_text(TYPES)
    (tmp_path / "hidden_top.slang").write_text(statement + USES)
    check(spy.Module.load_from_file(device, tmp_path / "hidden_top.slang"))


def test_types_of_an_imported_text(device: Any) -> None:
    types = source(device, "hidden_text", TYPES)
    check(source(device, "hidden_text_user", "import hidden_text;\n" + USES))
    assert types.half_of(3.0) == 1.5


def check(module: Any) -> None:
    assert module.twice({"a": 3.0}) == 6.0
    assert module.twice({"a": array(3)}, _result="numpy").tolist() == [0, 2, 4]
    items = module.make(array(3))
    assert module.twice(items, _result="numpy").tolist() == [0, 2, 4]
    assert module.make(2.0) == {"a": 2.0}
    assert module.half_of(3.0, 4.0) == 4.0


@pytest.mark.parametrize("as_file", [False, True], ids=["text", "file"])
def test_code_that_does_not_compile_never_loads(device: Any, tmp_path: Path, as_file: bool) -> None:
    """Slang keeps what it could read of such a module, and gives that out when asked again."""

    def load(text: str) -> Any:
        if not as_file:
            return spy.Module.load_from_source(device, "broken_code", text)
        path = tmp_path / "broken_code.slang"
        path.write_text(text)
        return spy.Module.load_from_file(device, path)

    for _ in range(4):
        with pytest.raises(spy.SlangCompileError, match='slang module "[^"]*broken_code'):
            load("float f(float x) { return 2 * unknown_function(x); }")
    module = load("float f(float x) { return 3 * x; }")
    assert module.f.module is module
    if device.type is not spy.DeviceType.null:
        assert module.f(2.0) == 6.0


def test_texts_that_use_each_others_names(device: Any) -> None:
    """A module that another one merely mentions is not loaded for it; the words are looked for in imports."""
    spy.Module.load_from_source(device, "offset", "float f(float x) { float scaled = x; return scaled; }")
    other = spy.Module.load_from_source(device, "scaled", "float offset(float scaled) { return scaled + 1; }")
    module = spy.Module.load_from_source(device, "offset", "float f(float x) { float scaled = x; return 2 * scaled; }")
    if device.type is not spy.DeviceType.null:
        assert module.f(3.0) == 6.0 and other.offset(3.0) == 4.0
    with pytest.raises(spy.SlangCompileError, match="broken"):
        spy.Module.load_from_source(device, "broken", "float f() { return nothing; }")
    user = spy.Module.load_from_source(
        device, "user", "import scaled;\nfloat g(float broken) { return offset(broken) * 2; }"
    )
    if device.type is not spy.DeviceType.null:
        assert user.g(1.0) == 4.0


def test_an_empty_text(device: Any) -> None:
    module = spy.Module.load_from_source(device, "empty_text", "")
    with pytest.raises(AttributeError, match="Module 'empty_text' has no function or type named 'anything'"):
        module.anything
    used = spy.Module.load_from_source(device, "empty_user", "import empty_text; float f() { return 2; }")
    if device.type is not spy.DeviceType.null:
        assert used.f() == 2


@pytest.mark.parametrize("name", ['quo"ted', "back\\slash", "two\nlines", "it's", "ü ☃", "com*/ment//", "per%s{cent}", "\\n", '\\"'])
def test_names_with_any_characters(device: Any, name: str) -> None:
    """Generated code imports modules by their names; what is in them is imported too."""
    module = source(device, name, TYPES + USES)
    assert module.half_of(3.0) == 1.5
    plain = device.load_module_from_source(name + " of the device", "[Differentiable] float squared(float x) { return x * x; }")
    wrapped = spy.Module(plain, link=[device.load_module_from_source(name + " linked", "float third(float x) { return x / 3; }")])
    assert (wrapped.squared(3.0), wrapped.third(3.0)) == (9.0, 1.0)
    x, y = spy.diffPair(3.0), spy.diffPair(0.0, 1.0)
    wrapped.squared.bwds(x, _result=y)
    assert x.grad == 6.0


def test_names_with_a_null_character(device: Any) -> None:
    with pytest.raises(ValueError, match="null character"):
        source(device, "nu\0ll", TYPES)
