"""The disk cache against changes of everything that code is made of. Each case is run with fresh devices on one cache:
as it is, again (nothing may be built), changed, and changed back; and a random walk is compared with no cache at all."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn import MANY, SEED

import slangpy as spy
from slangpy import Device
from slangpy.compiler.options import options_key
from slangpy.config import config
from slangpy.plan import compile as compile_stage

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

USER = "import common;\nfloat f(float x) { return x + value(); }"


def gives(number: float, name: str = "value", head: str = "") -> str:
    return f"{head}\nfloat {name}() {{ return {number}; }}"


class World:
    """All that a build is made of."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = "work"
        self.includes: list[str] = []
        self.texts: dict[str, str] = {}
        self.main: tuple[str, str] = ("text", USER)
        self.prelude = ""
        self.options: dict[str, Any] = {}
        self.links: dict[str, str] = {}
        for name in ("work", "other", "first", "second"):
            (root / name).mkdir()

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(exist_ok=True, parents=True)
        file.unlink(missing_ok=True)
        file.write_text(text)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def link(self, path: str, target: str) -> None:
        (self.root / path).unlink(missing_ok=True)
        (self.root / path).symlink_to(self.root / target)

    def open(self, device_type: Any) -> Any:
        os.chdir(self.root / self.cwd)
        paths = [p if p.startswith("./") else str(self.root / p) for p in self.includes]
        options = {"include_paths": [spy.SHADER_PATH, *paths], **self.options}
        return Device(type=device_type, compiler_options=options, enable_hot_reload=False)

    def load(self, device: Any) -> Any:
        keep = [spy.Module.load_from_source(device, name, text) for name, text in self.texts.items()]
        link = [spy.Module.load_from_source(device, name, text) for name, text in self.links.items()]
        kind, what = self.main
        if kind == "text":
            module = spy.Module.load_from_source(device, "main", what, link=link)
        else:
            module = spy.Module.load_from_file(device, self.root / what, link=link)
        del keep
        return module

    def run(self, device_type: Any) -> Any:
        device = self.open(device_type)
        try:
            function = self.load(device).f
            return (function.prelude(self.prelude) if self.prelude else function)(1.0)
        except (RuntimeError, spy.KernelGenException) as error:
            return type(error).__name__
        finally:
            device.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    before = os.getcwd()
    monkeypatch.setattr(config, "cache_dir", tmp_path / "cache")
    monkeypatch.setattr(config, "cache_enabled", True)
    yield World(tmp_path)
    os.chdir(before)


Case = Callable[[World], tuple[Callable[[], Any], Callable[[], Any]]]


def working_folder(w: World) -> Any:
    w.write("work/common.slang", gives(10))
    w.write("other/common.slang", gives(20))
    return lambda: setattr(w, "cwd", "other"), lambda: setattr(w, "cwd", "work")


def working_folder_and_relative_include_path(w: World) -> Any:
    w.write("work/lib/common.slang", gives(10))
    w.write("other/lib/common.slang", gives(20))
    w.write("main.slang", USER)
    w.main, w.includes = ("file", "main.slang"), ["./lib"]
    return lambda: setattr(w, "cwd", "other"), lambda: setattr(w, "cwd", "work")


def relative_include_path(w: World) -> Any:
    w.write("work/first/common.slang", gives(10))
    w.write("work/second/common.slang", gives(20))
    w.includes = ["./first"]
    return lambda: setattr(w, "includes", ["./second"]), lambda: setattr(w, "includes", ["./first"])


def order_of_the_include_path(w: World) -> Any:
    w.write("first/common.slang", gives(10))
    w.write("second/common.slang", gives(20))
    w.includes = ["first", "second"]
    return lambda: w.includes.reverse(), lambda: w.includes.reverse()


def file_that_comes_first(w: World) -> Any:
    w.write("second/common.slang", gives(10))
    w.includes = ["first", "second"]
    return lambda: w.write("first/common.slang", gives(20)), lambda: w.remove("first/common.slang")


def file_beside_the_module(w: World) -> Any:
    w.write("main/user.slang", USER)
    w.write("second/common.slang", gives(10))
    w.main, w.includes = ("file", "main/user.slang"), ["second"]
    return lambda: w.write("main/common.slang", gives(20)), lambda: w.remove("main/common.slang")


def nested_include_that_comes_first(w: World) -> Any:
    w.main, w.includes = ("text", USER), ["first", "second"]
    w.write("first/common.slang", '#include "deep/numbers.h"\n' + gives(0, head="").replace("0", "NUMBER"))
    w.write("second/deep/numbers.h", "#define NUMBER 10\n")
    return (
        lambda: w.write("first/deep/numbers.h", "#define NUMBER 20\n"),
        lambda: w.remove("first/deep/numbers.h"),
    )


def content_of_a_nested_include(w: World) -> Any:
    w.includes = ["first"]
    w.write("first/common.slang", '#include "a/one.h"\n' + gives(0).replace("0", "NUMBER"))
    w.write("first/a/one.h", '#include "../b/two.h"\n')
    w.write("first/b/two.h", "#define NUMBER 10\n")
    return (
        lambda: w.write("first/b/two.h", "#define NUMBER 20\n"),
        lambda: w.write("first/b/two.h", "#define NUMBER 10\n"),
    )


def include_part(w: World) -> Any:
    w.write("first/user.slang", "module user;\n__include part;\npublic float f(float x) { return x + value(); }")
    w.write("first/part.slang", "implementing user;\n" + gives(10))
    w.main = ("file", "first/user.slang")
    return (
        lambda: w.write("first/part.slang", "implementing user;\n" + gives(20)),
        lambda: w.write("first/part.slang", "implementing user;\n" + gives(10)),
    )


def include_by_macro(w: World) -> Any:
    w.main = ("text", "#include HEADER\nfloat f(float x) { return x + NUMBER; }")
    w.includes, w.options = ["first", "second"], {"defines": {"HEADER": '"numbers.h"'}}
    w.write("second/numbers.h", "#define NUMBER 10\n")
    return lambda: w.write("first/numbers.h", "#define NUMBER 20\n"), lambda: w.remove("first/numbers.h")


def define(w: World) -> Any:
    w.main, w.options = ("text", "float f(float x) { return x + NUMBER; }"), {"defines": {"NUMBER": "10"}}

    def to(number: str) -> Callable[[], None]:
        return lambda: w.options.update(defines={"NUMBER": number})

    return to("20"), to("10")


def text_that_takes_the_name_of_a_file(w: World) -> Any:
    w.includes = ["first"]
    w.write("first/common.slang", gives(10))
    return lambda: w.texts.update(common=gives(20)), lambda: w.texts.clear()


def text_below_a_file(w: World) -> Any:
    w.includes = ["first"]
    w.write("first/common.slang", "__exported import inner;")
    w.write("first/inner.slang", gives(10))
    return lambda: w.texts.update(inner=gives(20)), lambda: w.texts.clear()


def text_of_a_text(w: World) -> Any:
    w.texts = {"inner": gives(10), "common": "__exported import inner;"}
    return lambda: w.texts.update(inner=gives(20)), lambda: w.texts.update(inner=gives(10))


def prelude_include(w: World) -> Any:
    w.main, w.prelude = ("text", "float f(float x) { return x + value; }\nextern static const float value;"), ""
    w.prelude = '#include "head.h"'
    w.includes = ["first", "second"]
    w.write("second/head.h", "export static const float value = 10;\n")
    return (
        lambda: w.write("second/head.h", "export static const float value = 20;\n"),
        lambda: w.write("second/head.h", "export static const float value = 10;\n"),
    )


def prelude_include_that_comes_first(w: World) -> Any:
    prelude_include(w)
    return (
        lambda: w.write("first/head.h", "export static const float value = 20;\n"),
        lambda: w.remove("first/head.h"),
    )


def prelude_include_in_the_working_folder(w: World) -> Any:
    prelude_include(w)
    w.includes = []
    w.write("work/head.h", "export static const float value = 10;\n")
    w.write("other/head.h", "export static const float value = 20;\n")
    return lambda: setattr(w, "cwd", "other"), lambda: setattr(w, "cwd", "work")


def prelude_import_of_a_text(w: World) -> Any:
    prelude_include(w)
    w.prelude, w.texts = "import head;", {"head": "export public static const float value = 10;"}
    return (
        lambda: w.texts.update(head="export public static const float value = 20;"),
        lambda: w.texts.update(head="export public static const float value = 10;"),
    )


def link_to_another_target(w: World) -> Any:
    w.includes = ["first"]
    w.write("second/ten.slang", gives(10))
    w.write("second/twenty.slang", gives(20))
    w.link("first/common.slang", "second/ten.slang")
    return (
        lambda: w.link("first/common.slang", "second/twenty.slang"),
        lambda: w.link("first/common.slang", "second/ten.slang"),
    )


def folder_link_to_another_target(w: World) -> Any:
    for name, number in (("ten", 10), ("twenty", 20)):
        w.write(f"{name}/common.slang", '#include "numbers.h"\n' + gives(0).replace("0", "NUMBER"))
        w.write(f"{name}/numbers.h", f"#define NUMBER {number}\n")
    w.includes = ["first/link"]
    w.link("first/link", "ten")
    return lambda: w.link("first/link", "twenty"), lambda: w.link("first/link", "ten")


def linked_module(w: World) -> Any:
    w.main = ("text", "extern static const float value;\nfloat f(float x) { return x + value; }")

    def to(number: float) -> Callable[[], None]:
        return lambda: w.links.update(values=f"export static const float value = {number};")

    to(10)()
    return to(20), to(10)


CASES: list[Case] = [
    working_folder, working_folder_and_relative_include_path, relative_include_path, order_of_the_include_path,
    file_that_comes_first, file_beside_the_module, nested_include_that_comes_first, content_of_a_nested_include,
    include_part, include_by_macro, define, text_that_takes_the_name_of_a_file, text_below_a_file, text_of_a_text,
    prelude_include, prelude_include_that_comes_first, prelude_include_in_the_working_folder, prelude_import_of_a_text,
    link_to_another_target, folder_link_to_another_target, linked_module,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_change_of(case: Case, device_type: Any, world: World) -> None:
    change, undo = case(world)
    assert world.run(device_type) == 11
    before = compile_stage.builds
    assert world.run(device_type) == 11
    assert compile_stage.builds == before
    change()
    assert world.run(device_type) == 21
    undo()
    assert world.run(device_type) == 11


# --- in one process


def source(device: Any, name: str, text: str, **options: Any) -> Any:
    return spy.Module.load_from_source(device, name, text, **options)


@pytest.mark.parametrize("cached", [False, True])
def test_second_text_of_a_name(device_type: Any, world: World, cached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded later imports the later text; what was there keeps its own."""
    monkeypatch.setattr(config, "cache_enabled", cached)
    for _ in range(1 + cached):
        device = world.open(device_type)
        libraries, users = [], []
        for number in (10, 20, 30):
            libraries.append(source(device, "common", gives(number)))
            users.append(source(device, f"user{number}", USER))
        source(device, "common", gives(20))
        users.append(source(device, "user20 again", USER))
        assert [user.f(1.0) for user in users] == [11, 21, 31, 21]
        assert [library.value() for library in libraries] == [10, 20, 30]
        device.close()


def test_text_named_like_a_file_that_was_imported(device_type: Any, world: World) -> None:
    world.write("first/common.slang", gives(10))
    world.includes = ["first"]
    for _ in range(2):
        device = world.open(device_type)
        users = [source(device, "before", USER)]
        assert users[0].f(1.0) == 11
        library = source(device, "common", gives(20))
        users.append(source(device, "after", USER))
        assert library.value() == 20 and [user.f(1.0) for user in users] == [11, 21]
        device.close()


def test_files_of_one_name_beside_their_users(device_type: Any, world: World) -> None:
    """Slang knows modules by name; each user still gets the file beside it, in any order and from any cache."""
    for folder, number in (("first", 10), ("second", 20)):
        world.write(f"{folder}/common.slang", gives(number))
        world.write(f"{folder}/user_{folder}.slang", USER)
    for order in (["first", "second"], ["second", "first"], ["second"], ["first"]):
        device = world.open(device_type)
        for folder in order:
            user = spy.Module.load_from_file(device, world.root / folder / f"user_{folder}.slang")
            assert user.f(1.0) == {"first": 11, "second": 21}[folder]
        device.close()


def test_file_that_changed_between_two_loads(device_type: Any, world: World) -> None:
    """Without hot reload: a module that is loaded later is made of the file as it is then, on disk as well."""
    world.includes = ["first"]
    world.write("first/common.slang", gives(10))
    device = world.open(device_type)
    assert source(device, "earlier", USER).f(1.0) == 11
    world.write("first/common.slang", gives(20))
    assert source(device, "main", USER).f(1.0) == 21
    device.close()
    assert world.run(device_type) == 21
    world.write("first/common.slang", gives(10))
    assert world.run(device_type) == 11


def test_linked_module_that_others_loaded(device_type: Any, world: World) -> None:
    """Nobody knows what a SlangModule was made of, so nothing that is linked with one is taken from disk."""
    text = "extern static const float value;\nfloat f(float x) { return x + value; }"
    for number in (10, 20, 10):
        device = world.open(device_type)
        values = source(device, "values", f"export static const float value = {number};").device_module
        library = spy.Module(device.load_module_from_source("wrapped", gives(number)))
        assert library.value() == number
        assert source(device, "main", text, link=[values]).f(1.0) == 1 + number
        device.close()


def test_environment_of_slang_is_in_the_key(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = options_key(device)
    monkeypatch.setenv("SLANG_RUN_SPIRV_VALIDATION", "1")
    assert options_key(device) != before


# --- at random


def change_something(w: World, chance: random.Random) -> str:
    """One input more, less or other."""
    number = chance.choice([10, 20, 30])
    folder = chance.choice(["work", "other", "first", "second"])
    kind = chance.choice(["cwd", "order", "relative", "common", "inner", "header", "gone", "text", "no text", "main",
                          "prelude", "define", "option"])  # fmt: skip
    if kind == "cwd":
        w.cwd = chance.choice(["work", "other"])
    elif kind == "order":
        chance.shuffle(w.includes)
    elif kind == "relative":
        w.includes = chance.choice([["first", "second"], ["./.", "first"], ["./../second", "first"]])
    elif kind == "common":
        body = chance.choice(
            [gives(number), '#include "n.h"\n' + gives(0).replace("0", "N"), "__exported import inner;"]
        )
        w.write(f"{folder}/common.slang", body)
    elif kind == "inner":
        w.write(f"{folder}/inner.slang", gives(number))
    elif kind == "header":
        w.write(f"{folder}/n.h", f"#define N {number}\nstatic const float n = {number};\n")
    elif kind == "gone":
        name = chance.choice(["common.slang", "inner.slang", "n.h"])
        (w.root / folder / name).unlink(missing_ok=True)
    elif kind == "text":
        w.texts[chance.choice(["common", "inner"])] = gives(number)
    elif kind == "no text":
        w.texts.clear()
    elif kind == "main":
        w.main = chance.choice([("text", USER), ("file", "first/user.slang"), ("file", "other/user.slang")])
    elif kind == "prelude":
        w.prelude = chance.choice(["", '#include "n.h"', "import inner;"])
    elif kind == "define":
        w.options = {"defines": {"EXTRA": str(number)}}
    else:
        w.options = chance.choice([{}, {"optimization": spy.SlangOptimizationLevel.none}])
    return kind


STEPS = 8 * MANY


def test_random_changes(device_type: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"{SEED} {device_type.name}")
    body = "import common;\n#ifndef EXTRA\n#define EXTRA 0\n#endif\nfloat f(float x) { return x + value() + EXTRA; }"
    world.includes = ["first", "second"]
    world.main = ("text", body)
    for path in ("first/user.slang", "other/user.slang"):
        world.write(path, body)
    for name, text in (("common.slang", gives(10)), ("inner.slang", gives(10)), ("n.h", "#define N 10\n")):
        world.write(f"second/{name}", text)
    history: list[str] = []
    seen: set[Any] = set()
    for _ in range(STEPS):
        history.append(change_something(world, chance))
        if world.main == ("text", USER):
            world.main = ("text", body)
        with_cache = world.run(device_type)
        monkeypatch.setattr(config, "cache_enabled", False)
        without = world.run(device_type)
        monkeypatch.setattr(config, "cache_enabled", True)
        assert with_cache == without, f"seed {SEED}, after {history}: {vars(world)}"
        seen.add(without)
    assert len(seen) > 1
