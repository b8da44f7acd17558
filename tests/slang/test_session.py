"""Sessions, modules, entry points, programs and what goes wrong with them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slangpy.compiler.session import SpecializationArg, TypeConformance
from slangpy.errors import SlangCompileError

KERNEL = """
[shader("compute")] [numthreads(32, 2, 1)]
void run(uint3 tid : SV_DispatchThreadID, uniform float a, RWStructuredBuffer<float> out) { out[tid.x] = a; }
"""


@pytest.mark.parametrize("code_format", ["cpp", "cuda", "spirv", "hlsl"])
def test_load_link_code(new_session: Callable[..., Any], code_format: str) -> None:
    session = new_session(code_format)
    module = session.load_module_from_source("m", KERNEL)
    assert [entry.name for entry in module.entry_points] == ["run"]
    program = session.link([module], [module.entry_point("run")])
    code = program.code(0)
    assert len(code) > 100 and (code[:4] == b"\x03\x02\x23\x07" if code_format == "spirv" else b"run" in code)
    layout = program.binding_layout(0)
    assert layout.group_size == (32, 2, 1) and layout.entry_point_name == "run"
    assert program.entry_point_names == ["run"]
    with pytest.raises(IndexError):
        program.code(1)
    with pytest.raises(IndexError):
        program.binding_layout(7)


def test_a_diagnostic_names_file_line_column_and_source(new_session: Callable[..., Any]) -> None:
    with pytest.raises(SlangCompileError) as error:
        new_session().load_module_from_source("m", "int ok;\nint f() { return nothing; }\n", "folder/user.slang")
    text = str(error.value)
    assert 'Failed to load slang module "m"' in text
    assert "folder/user.slang:2:18" in text and "int f() { return nothing; }" in text
    assert "compilation ceased" not in text


def test_a_name_is_free_again_after_an_error(new_session: Callable[..., Any]) -> None:
    session = new_session()
    with pytest.raises(SlangCompileError):
        session.load_module_from_source("m", "int f() { return nothing; }")
    assert session.load_module_from_source("m", "int f() { return 1; }").layout.find_function_by_name("f")


def test_diagnostics_show_the_users_spelling(new_session: Callable[..., Any]) -> None:
    source = "interface iTensor<T, let D : int> {}\nvoid f<T : ITensor<float>>(T t) {}\n"
    with pytest.raises(SlangCompileError, match="ITensor") as error:
        new_session().load_module_from_source("m", source)
    assert "void f<T : ITensor<float>>(T t) {}" in str(error.value)


def test_same_name(new_session: Callable[..., Any]) -> None:
    session = new_session()
    module = session.load_module_from_source("m", KERNEL)
    assert session.load_module_from_source("m", KERNEL).layout is module.layout
    with pytest.raises(SlangCompileError, match="already loaded with different source"):
        session.load_module_from_source("m", KERNEL + "\nint x;")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a" / "sub").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "first.slang").write_text("import sub.second;\nint first() { return second(); }\n")
    (tmp_path / "a" / "sub" / "second.slang").write_text("int second() { return 2; }\n")
    (tmp_path / "b" / "first.slang").write_text("int other() { return 3; }\n")
    (tmp_path / "b" / "empty.slang").write_text("")
    return tmp_path


def test_paths(new_session: Callable[..., Any], tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = new_session(include_paths=[tree / "a", tree / "b"])
    module = session.load_module("first")
    assert module.name == "first" and module.path == str(tree / "a" / "first.slang")
    assert module.imports == ["second"] or module.imports == ["sub/second"] or len(module.imports) == 1
    assert {Path(path).name for path in module.dependencies} == {"first.slang", "second.slang"}
    for name in ("first.slang", str(tree / "a" / "first"), str(tree / "a" / "first.slang")):
        assert session.load_module(name).layout is module.layout
    second = session.load_module("sub.second")
    assert second.layout.find_function_by_name("second")
    assert session.load_module("sub/second").path == second.path
    other = session.load_module(str(tree / "b" / "first"))  # the same stem
    assert other.layout.find_function_by_name("other") and not other.layout.find_function_by_name("first")
    kernel = session.load_module_from_source("k", f'import "{other.name}";\nint g() {{ return other(); }}')
    assert kernel.layout.find_function_by_name("g")
    session.load_module("empty")
    monkeypatch.chdir(tree / "b")
    assert new_session().load_module("first").path == str(tree / "b" / "first.slang")
    assert session.load_source("first").startswith("import sub.second;")
    read = session.read_files
    assert str(tree / "a" / "sub" / "second.slang") in read and all(len(value) == 16 for value in read.values())


def test_missing_files_are_recorded(new_session: Callable[..., Any], tree: Path) -> None:
    session = new_session(include_paths=[tree / "b", tree / "a"])
    with pytest.raises(SlangCompileError, match='Failed to load slang module "nope"'):
        session.load_module("nope")
    session.load_module_from_source("k", "import sub.second;")
    missing = session.missing_files
    assert str(tree / "b" / "nope.slang") in missing
    assert str(tree / "b" / "sub" / "second.slang") in missing  # would win if it came into being
    with pytest.raises(SlangCompileError, match="absent"):
        session.load_module_from_source("k2", "import absent;")


def test_files_are_rewritten_but_not_the_library(new_session: Callable[..., Any], tmp_path: Path) -> None:
    for folder in ("lib", "user"):
        (tmp_path / folder).mkdir()
    (tmp_path / "lib" / "slangpy.slang").write_text(
        "interface iTensor<T, let D : int> { T get(); }\n"
        "struct ITensor<T, let D : int> : iTensor<T, D> { T value; T get() { return value; } }\n"
    )
    (tmp_path / "user" / "user.slang").write_text(
        "import slangpy;\nT g<T : IFloat, X : ITensor<T, 1>>(X x) { return x.get(); }\n"
        "float h(ITensor<float, 1> t) { return g<float>(t); }"
    )
    session = new_session(include_paths=[tmp_path / "lib", tmp_path / "user"], library_paths=[tmp_path / "lib"])
    layout = session.load_module("user").layout
    assert layout.find_function_by_name("h").parameters[0].type.kind.name == "struct"


def test_blobs(new_session: Callable[..., Any]) -> None:
    source = "struct S { float x; }\n[Differentiable] float twice(float x) { return 2 * x; }\n"
    blob = new_session().load_module_from_source("lib", source).serialize()
    session = new_session()
    module = session.load_module_from_blob("lib", "lib.slang", blob)
    assert module.layout.find_function_by_name("twice").return_type.full_name == "float"
    user = session.load_module_from_source("user", "import lib;\nfloat f(S s) { return twice(s.x); }")
    assert user.layout.find_function_by_name("f").parameters[0].type.full_name == "S"
    with pytest.raises(ValueError, match="empty"):
        session.load_module_from_blob("none", "none.slang", b"")
    with pytest.raises(SlangCompileError):
        session.load_module_from_blob("junk", "junk.slang", b"\x01\x02\x03\x04 not a module" * 20)


def test_link_time_constants(new_session: Callable[..., Any]) -> None:
    session = new_session("cuda")
    main = session.load_module_from_source(
        "main",
        'extern static const uint N;\nRWStructuredBuffer<uint> r;\n[shader("compute")] [numthreads(N, 1, 1)]\n'
        "void go(uint3 t : SV_DispatchThreadID) { r[t.x] = t.x * N; }",
    )
    eight = session.load_module_from_source("eight", "export static const uint N = 8;")
    program = session.link_program([main, eight], [main.entry_point("go")])
    assert program.layout.entry_points[0].compute_thread_group_size == (8, 1, 1)
    assert program.binding_layout().group_size == (8, 1, 1)
    four = session.load_module_from_source("four", "export static const uint N = 4;")
    assert session.link([main, four], [main.entry_point("go")]).binding_layout().group_size == (4, 1, 1)
    assert program.reflection.r.type.full_name == "RWStructuredBuffer<uint>"


DYNAMIC = """
interface IFoo { float get(); }
struct Foo1 : IFoo { float get() { return 1; } }
struct Foo2 : IFoo { float get() { return 2; } }
[shader("compute")] [numthreads(1, 1, 1)]
void go(uniform uint kind, RWStructuredBuffer<float> out) { out[0] = createDynamicObject<IFoo>(kind, 0).get(); }
"""


def test_conformances_of_entry_points_are_checked_at_once(new_session: Callable[..., Any]) -> None:
    module = new_session().load_module_from_source("m", DYNAMIC)
    name = module.entry_points[0].name
    for conformances, kind, text in (
        ([("INone", "Foo1")], ValueError, 'Interface type "INone" not found'),
        ([("IFoo", "Foo9")], ValueError, 'Type "Foo9" not found'),
        ([("IFoo", "Foo1", 0), ("IFoo", "Foo2", 0)], ValueError, 'Duplicate type id 0 for interface type "IFoo"'),
        ([3], TypeError, "expected a TypeConformance or a tuple"),
        ([("IFoo", 3)], TypeError, "two str and an int"),
    ):
        with pytest.raises(kind, match=text):
            module.entry_point(name, conformances)
    with pytest.raises(TypeError, match="SpecializationArg"):
        module.entry_point(name).specialize([3])


def test_dropped_modules_keep_their_names(new_session: Callable[..., Any]) -> None:
    """The compiler still has them: another source would silently be the first."""
    session = new_session()
    assert session.load_module_from_source("m", "int f() { return 1; }").layout.find_function_by_name("f")
    with pytest.raises(SlangCompileError, match="already loaded with different source"):
        session.load_module_from_source("m", "int g() { return 1; }")
    assert session.load_module_from_source("m", "int f() { return 1; }").layout.find_function_by_name("f")
    session.reload()
    assert session.load_module_from_source("m", "int g() { return 1; }").layout.find_function_by_name("g")


def test_path_objects(new_session: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file.slang").write_text("int f() { return 1; }")
    session = new_session()
    assert session.load_module(tmp_path / "file.slang").name == "file"
    with pytest.raises(SlangCompileError, match="elsewhere.slang"):
        session.load_module_from_source("m", "int f() { return nothing; }", tmp_path / "elsewhere.slang")
    with pytest.raises(TypeError, match="expected a str or a path"):
        session.load_module(3)


def test_type_conformances(new_session: Callable[..., Any]) -> None:
    session = new_session("cuda")
    module = session.load_module_from_source("m", DYNAMIC)
    entry = module.entry_point("go")
    one = session.link([module], [entry], [("IFoo", "Foo1")]).code()
    both = session.link([module], [entry], [TypeConformance("IFoo", "Foo1"), ("IFoo", "Foo2", 7)]).code()
    assert both != one and b"7" in both
    assert session.link([module], [module.entry_point("go", [("IFoo", "Foo2")])]).code() != one
    with pytest.raises(ValueError, match='Interface type "INope" not found'):
        session.link([module], [entry], [("INope", "Foo1")])
    with pytest.raises(ValueError, match='Type "Nope" not found'):
        session.link([module], [entry], [("IFoo", "Nope")])
    duplicate = 'Duplicate type conformance entry for interface type "IFoo" and type "Foo1"'
    with pytest.raises(ValueError, match=duplicate):
        session.link([module], [entry], [("IFoo", "Foo1", 0), ("IFoo", "Foo1", 1)])
    with pytest.raises(ValueError, match='Duplicate type id 0 for interface type "IFoo"'):
        session.link([module], [entry], [("IFoo", "Foo1", 0), ("IFoo", "Foo2", 0)])
    with pytest.raises(SlangCompileError, match="no type conformances|conformance"):
        session.link([module], [entry]).code()


def test_entry_points(new_session: Callable[..., Any]) -> None:
    session = new_session("cuda")
    module = session.load_module_from_source(
        "m",
        KERNEL + 'struct A { float v; }\n[shader("compute")] [numthreads(1, 1, 1)]\n'
        "void generic<T, let N : int>(RWStructuredBuffer<float> out) { out[0] = sizeof(T) * N; }",
    )
    renamed = module.entry_point("run").rename("walk")
    assert renamed.name == "walk" and renamed.stage == "compute"
    program = session.link([module], [renamed])
    assert b"walk(" in program.code() and program.binding_layout().entry_point_name == "walk"
    special = module.entry_point("generic").specialize(
        [SpecializationArg.from_type("A"), SpecializationArg.from_expr("4")]
    )
    assert session.link([module], [special.with_name("g4")]).binding_layout().entry_point_name == "g4"
    with pytest.raises(ValueError, match='Specialization type "X" not found'):
        module.entry_point("generic").specialize([SpecializationArg.from_type("X"), SpecializationArg.from_expr("4")])
    with pytest.raises(ValueError, match="takes 2 specialization arguments, got 1"):
        module.entry_point("generic").specialize([SpecializationArg.from_type("A")])
    with pytest.raises(ValueError, match='Entry point "x" not found'):
        module.entry_point("x")


def test_main_is_renamed_silently(new_session: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    session = new_session("cuda")
    module = session.load_module_from_source("m", KERNEL.replace("run", "main"))
    program = session.link([module], [module.entry_point("main")])
    name = program.binding_layout().entry_point_name
    assert f"{name}(".encode() in program.code() and not caplog.records


def test_composed_modules(new_session: Callable[..., Any]) -> None:
    session, other = new_session(), new_session()
    a = session.load_module_from_source("a", KERNEL)
    b = session.load_module_from_source("b", "struct B { int x; }\nuniform float gain;")
    both = session.compose_modules("both", [a, b])
    assert both.is_composed and [part.name for part in both.source_modules] == ["a", "b"]
    assert both.layout.find_type_by_name("B") and both.layout.find_function_by_name("run")
    assert [entry.name for entry in both.entry_points] == ["run"]
    program = session.link([both], [both.entry_point("run")])
    assert [item["name"] for item in program.binding_layout().globals.fields] == ["gain"]
    with pytest.raises(RuntimeError, match="composed"):
        both.module_decl
    stranger = other.load_module_from_source("c", KERNEL)
    with pytest.raises(ValueError, match='module "c" belongs to another session'):
        session.compose_modules("x", [a, stranger])
    with pytest.raises(ValueError, match="belongs to another session"):
        session.link([a], [stranger.entry_point("run")])
    with pytest.raises(TypeError, match="SlangModule"):
        session.compose_modules("x", [a, 3])


def test_load_program(new_session: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "p.slang").write_text("extern static const int N;\n" + KERNEL.replace("= a", "= a * N"))
    session = new_session("cuda", include_paths=[tmp_path])
    program = session.load_program("p", ["run"], "export static const int N = 5;", {"optimization": "high"})
    assert b"5" in program.code()


def test_options(new_session: Callable[..., Any]) -> None:
    session = new_session("cuda", defines={"K": "3"}, matrix_layout="column_major", downstream_args=["-lineinfo"])
    module = session.load_module_from_source("m", "float2x3 m;\nint f() { return K + __TARGET_CUDA__; }")
    layout = module.layout
    element = layout.element_layout(layout.find_type_by_name("float2x3"))
    assert not element.row_major and session.downstream_args == ["-lineinfo"]
    with pytest.raises(TypeError, match='no field "oops"'):
        new_session(oops=1)
    with pytest.raises(ValueError, match="optimization: unknown value"):
        new_session(optimization="huge")
    with pytest.raises(ValueError, match="unknown code format"):
        type(session)("ptx")
    with pytest.raises(ValueError, match="profile"):
        type(session)({"format": "hlsl", "profile": "sm_99"}).load_module_from_source("m", "int x;")
    with pytest.raises(ValueError, match="capability"):
        type(session)({"format": "cuda", "capabilities": ["nope"]}).load_module_from_source("m", "int x;")


NARROWING = "int f(float a) { int x = a; return x; }"


def test_warnings_are_logged_once(new_session: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    session = new_session()
    with caplog.at_level(logging.WARNING, logger="slangpy"):
        module = session.load_module_from_source("m", NARROWING)
        session.link([module], [])
    assert len(caplog.records) == 1 and "30081" in caplog.text and "m:1:26" in caplog.text


@pytest.mark.parametrize("name", ["30081", "E30081", "implicit-conversion-not-recommended", "all"])
def test_warnings_can_be_disabled(new_session: Callable[..., Any], caplog: pytest.LogCaptureFixture, name: str) -> None:
    new_session(disable_warnings=[name]).load_module_from_source("m", NARROWING)
    assert not caplog.records


def test_warnings_can_be_errors(new_session: Callable[..., Any]) -> None:
    with pytest.raises(SlangCompileError, match="30081"):
        new_session(warnings_as_errors=["all"]).load_module_from_source("m", NARROWING)


def test_reload(new_session: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "r.slang"
    file.write_text(KERNEL)
    session = new_session("cuda", include_paths=[tmp_path])
    module = session.load_module("r")
    program = session.link([module], [module.entry_point("run").rename("go")])
    old_code, old_layout, generation = program.code(), module.layout, session.generation
    function = old_layout.find_function_by_name("run")

    file.write_text(KERNEL.replace("= a;", "= nothing;"))
    with pytest.raises(SlangCompileError, match="nothing"):
        session.reload()
    assert program.code() == old_code and function.is_valid and session.generation == generation

    file.write_text(KERNEL.replace("= a;", "= a * 3;") + "float fresh() { return 1; }")
    session.reload()
    assert program.code() != old_code and session.generation == generation + 1 == program.generation
    assert module.layout.find_function_by_name("fresh")
    assert not function.is_valid and not old_layout.is_valid
    for use in (lambda: function.name, lambda: old_layout.find_type_by_name("float")):
        with pytest.raises(RuntimeError, match="Reflection object has been invalidated"):
            use()
    assert "invalidated" in repr(function)


def test_objects_keep_what_they_need(new_session: Callable[..., Any]) -> None:
    module = new_session("cuda").load_module_from_source("m", KERNEL)
    function = module.layout.find_function_by_name("run")
    entry = module.entry_point("run")
    del module
    assert function.parameters[1].type.full_name == "float"
    program = entry.session.link([entry.module], [entry])
    del entry, function
    assert b"run(" in program.code()


def test_threads(new_session: Callable[..., Any]) -> None:
    sessions = [new_session(code_format) for code_format in ("cpp", "cuda", "spirv", "hlsl")]
    failures: list[BaseException] = []

    def work(index: int) -> None:
        try:
            session = sessions[index % len(sessions)]
            for round_ in range(3):
                module = session.load_module_from_source(f"m{index}_{round_}", KERNEL)
                program = session.link([module], [module.entry_point("run")])
                assert program.code() and program.binding_layout().slots
                assert module.layout.find_type_by_name(f"vector<float,{round_ + 2}>").differentiable
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("text", ["1+", "in", "(1", "(1)", "{", "f(1)", "N<1 2>", "1 2", "", "4;"])
def test_expressions_slang_must_not_see(new_session: Callable[..., Any], text: str) -> None:
    """It crashes on some of them, and reads the first part of others."""
    source = '[shader("compute")] [numthreads(1, 1, 1)] void go<let N : int>(RWStructuredBuffer<int> o) { o[0] = N; }'
    entry = new_session().load_module_from_source("expressions", source).entry_point("go")
    with pytest.raises(ValueError, match="Specialization expression .* is none"):
        entry.specialize([SpecializationArg.from_expr(text)])
    entry.specialize([SpecializationArg.from_expr("-2 * 3 + sizeof(int)")])
