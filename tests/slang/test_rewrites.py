"""The table of rules: what is changed, where, by which rule; and how rules are switched off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slangpy import SlangCompileError
from slangpy._slang import SlangSession, rewrite, rewrite_alone
from slangpy.compiler import options as compiler_options
from slangpy.compiler.rewrites import rewrite_file, rules
from slangpy.config import config

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("tests", "examples", "slangpy") for path in (ROOT / folder).rglob("*.slang"))
WRONG = """import slangpy;
[Differentiable] float f(float a, float3 v, int n)
{
    int i = 0;
    [MaxIters(4)] while (i < n) { v = a * v; i++; if (v.x > 3) break; }
    return fmod(v[n] * v[0], a);
}
"""


@pytest.mark.null
def test_edits_are_exact() -> None:
    """Outside of the edits, both texts are the same, and lines stay."""
    changed = 0
    for path in SOURCES:
        made = rewrite_file(path)
        source, text = made.source.encode(), made.text.encode()
        rebuilt, at, new_at = b"", 0, 0
        for edit in made.edits:
            assert at <= edit.begin <= edit.end and new_at <= edit.new_begin <= edit.new_end, path
            assert edit.rules, path
            rebuilt += source[at : edit.begin] + text[edit.new_begin : edit.new_end]
            assert len(rebuilt) == edit.new_end, path
            inserted = text[edit.new_begin : edit.new_end].count(b"\n")
            assert inserted == source[edit.begin : edit.end].count(b"\n") or edit.end == len(source), path
            at, new_at = edit.end, edit.new_end
        assert rebuilt + source[at:] == text, path
        assert set(made.rules) == {name for edit in made.edits for name in edit.rules}, path
        changed += len(made.edits)
    assert changed > 300


@pytest.mark.null
def test_edits_say_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "wrong.slang"
    path.write_text(WRONG)
    made = rewrite_file(path)
    changes = [(WRONG[edit.begin : edit.end], made.text[edit.new_begin : edit.new_end]) for edit in made.edits]
    pick = changes[0][1].split("<")[0].removeprefix("T ")
    assert pick.startswith("_spy_pick_") and changes[0][0] == ""
    assert changes[1:] == [
        ("while", "for"), ("(", "(; "), (") ", ";)"), ("", "(-(-"), ("", "))"),
        ("", f"{pick}("), ("[", ", int("), ("]", "))"), ("", "\nimport slangpy_remainders;\n"),
    ]  # fmt: skip
    assert made.rules == ("while-loops", "scalar-operands", "aliasing-elements", "fmod-gradient")


@pytest.mark.null
def test_rules_are_switched_off(tmp_path: Path) -> None:
    path = tmp_path / "wrong.slang"
    path.write_text(WRONG)
    assert rewrite_file(path, setting="0").text == WRONG
    some = rewrite_file(path, setting="-while-loops,-fmod-gradient")
    assert some.rules == ("scalar-operands", "aliasing-elements") and "while (i < n)" in some.text
    every = ",".join(f"-{rule.name}" for rule in rules())
    assert rewrite_file(path, setting=every).text == WRONG


@pytest.mark.null
@pytest.mark.parametrize("setting", ["1", "while-loops", "-while-loop", "-while-loops,", "0,-while-loops", "-"])
def test_bad_settings(setting: str) -> None:
    if setting.endswith(","):
        rewrite("", "x.slang", [], [], setting)  # an end is no item
        return
    with pytest.raises(ValueError, match="SLANGPY_REWRITES: expected .* the rules are: .*while-loops, ") as caught:
        rewrite("", "x.slang", [], [], setting)
    assert f'got "{setting}"' in str(caught.value)
    with pytest.raises(ValueError, match="SLANGPY_REWRITES"):
        SlangSession({"format": "cpp"}, {"rewrites": setting}).load_module_from_source("m", "float x;")
    with pytest.raises(ValueError, match='there is no rule "while-loop"; the rules are'):
        rewrite_alone("", ["while-loop"])


@pytest.mark.null
def test_sessions_follow_the_setting() -> None:
    """`nope` on the line of a loop: the message quotes what Slang saw, which is the user's line either way."""
    source = "[Differentiable] float f(float a) { int i = 0; while (i < 3) { i++; a *= nope; } return a; }"
    messages = []
    for setting in ("", "0"):
        session = SlangSession({"format": "cpp"}, {"rewrites": setting})
        with pytest.raises(SlangCompileError) as caught:
            session.load_module_from_source("setting", source)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert f"--> setting:1:{source.index('nope') + 1}" in messages[0]


@pytest.mark.null
def test_the_setting_is_in_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(desc=SimpleNamespace(compiler_options=None))
    before = compiler_options.options_key(device)
    monkeypatch.setattr(config, "rewrites", "-while-loops")
    assert compiler_options.options_key(device) != before


@pytest.mark.null
def test_the_table() -> None:
    known = rules()
    assert len({rule.name for rule in known}) == len(known) <= 31
    for rule in known:
        assert rule.name == rule.name.lower() and " " not in rule.name
        assert rule.fault and rule.issue and "\n" not in rule.fault + rule.issue
        assert rule.stage in ("reshape", "annotate")
    stages = [rule.stage for rule in known]
    assert stages == sorted(stages, reverse=True)


HIDDEN = """[Differentiable] float f(float a, int n)
{
    float s = a;
    for (int i = 0; i < n; i++) s += a * MORE;
    return s;
}
"""


@pytest.mark.null
@pytest.mark.parametrize(
    "options",
    [{"defines": {"MORE": "@"}}, {"arguments": ["-DMORE=@"]}, {"arguments": ["-D", "MORE=@"]}],
    ids=["defines", "argument", "arguments"],
)
def test_macros_of_the_session_are_known(options: dict[str, Any]) -> None:
    """The loop only adds up where the macro does nothing else."""

    def load(body: str) -> None:
        given = {
            name: [text.replace("@", body) for text in value] if isinstance(value, list) else {"MORE": body}
            for name, value in options.items()
        }
        SlangSession({"format": "cpp"}, given).load_module_from_source("hidden", HIDDEN)

    load("2")
    with pytest.raises(SlangCompileError, match="the loop carries"):
        load("(s = 2)")


@pytest.mark.null
def test_unknown_words_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "hidden.slang"
    path.write_text(HIDDEN.replace("s += a * MORE;", "{ s += a; MORE; }"))
    assert "accumulations" not in rewrite_file(path).rules
    path.write_text(HIDDEN)
    assert "accumulations" in rewrite_file(path, defines={"MORE": "2"}).rules
    assert "accumulations" not in rewrite_file(path, defines={"MORE": "(s = 2)"}).rules


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "slangpy", "rewrite", *arguments],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, check=False,
    )  # fmt: skip


@pytest.mark.null
def test_command(tmp_path: Path) -> None:
    path = tmp_path / "wrong.slang"
    path.write_text(WRONG)
    shown = _run(str(path))
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[-1] == "rules that acted: while-loops, scalar-operands, aliasing-elements, fmod-gradient"
    assert "-    [MaxIters(4)] while (i < n) { v = a * v; i++; if (v.x > 3) break; }" in lines
    assert "+    [MaxIters(4)] for (; i < n;){ v = (-(-a)) * v; i++; if (v.x > 3) break; }" in lines
    hunk = next(line for line in lines if line.startswith("@@"))
    assert {"while-loops", "scalar-operands", "fmod-gradient"} <= set(hunk.replace(",", "").split())

    off = _run(str(path), SLANGPY_REWRITES="0")
    assert off.stdout == "rules that acted: none\n"
    table = _run("--rules")
    assert [line.split()[0] for line in table.stdout.splitlines()] == [rule.name for rule in rules()]
    for bad in (_run(), _run(str(path), SLANGPY_REWRITES="-nope"), _run(str(tmp_path / "none.slang"))):
        assert bad.returncode == 1 and bad.stderr and "Traceback" not in bad.stderr
