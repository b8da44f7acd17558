"""`python -m slangpy`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import slangpy as spy
from slangpy.tools import command_line

SOURCE = """
/// Doc.
[Differentiable] float poly(float a, float x, int n = FACTOR) { return a * x * n; }
struct Point { float x; float3 y; float norm(float p) { return x * p; } }
struct Box<T> { T item; T get(int times) { return item; } }
int over(int a) { return a; }
float over(float a, out float b) { b = a; return a; }
float3 turn(float3 v, float3x3 m) { return mul(m, v); }
enum Mode { fast, slow };
float chosen(Mode mode, Optional<float> x) { return 1; }
float looked_up(Texture2D<float4> image, SamplerState s, StructuredBuffer<float> b, Tensor<float, 1> t) { return 1; }
void move(inout Point p, float by[2]) { p.x += by[0]; }
static const int K = 3;
[shader("compute")] [numthreads(8, 1, 1)]
void main(uint3 t: SV_DispatchThreadID, RWStructuredBuffer<float> b) { b[t.x] = t.x; }
[shader("compute")] [numthreads(1, 1, 1)]
void other(RWStructuredBuffer<float> b) { b[0] = 1; }
"""


def run(*args: str, folder: Path | None = None, code: int = 0, cache: Path | None = None) -> Any:
    environment = {**os.environ, **({"SLANGPY_CACHE_DIR": str(cache)} if cache is not None else {})}
    done = subprocess.run(
        [sys.executable, "-m", "slangpy", *args], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shader_code.slang"
    path.write_text(SOURCE)
    return path


def test_info() -> None:
    text = run("info").stdout
    assert f"slangpy    {spy.__version__}" in text and re.search(r"^Slang +20\d\d\.", text, re.M)
    assert re.search(r"^cpu +\S", text, re.M) and re.search(r"^cache +/", text, re.M)


def test_devices() -> None:
    lines = {line.split()[0]: line for line in run("devices").stdout.splitlines()}
    assert set(lines) == {t.name for t in spy.DeviceType if t is not spy.DeviceType.automatic}
    assert "not here" not in lines["cpu"] and "not here: DeviceType.metal is not implemented" in lines["metal"]


def test_check(file: Path) -> None:
    text = run("check", str(file), "-D", "FACTOR=2").stdout
    for line in (
        "float poly(float a, float x, int n)", "struct Point { float x; vector<float,3> y; }",
        "    float norm(Point this, float p)", "int over(int a)", "entry point main (compute)",
    ):  # fmt: skip
        assert line in text.splitlines()
    wrong = run("check", str(file), code=1)  # other mistakes: WRONG below
    assert "FACTOR" in wrong.stderr and f"{file}:3" in wrong.stderr


def test_compile(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("compile", str(file), "-D", "FACTOR=2", "-d", "null", "-o", str(out))
    made = sorted(path.name for path in out.iterdir())
    assert len(made) == 2 and made[0].startswith("shader_code.main.") and made[1].startswith("shader_code.other.")
    one = run("compile", str(file), "-D", "FACTOR=2", "-e", "other").stdout
    assert "other" in one and "#include" in one  # C++, to stdout
    assert "it has: main, other" in run("compile", str(file), "-D", "FACTOR=2", "-e", "third", code=1).stderr


USER = """# pyright: strict
import dataclasses
from typing import TYPE_CHECKING, Any, cast
from typing_extensions import assert_type
import numpy as np
import numpy.typing as npt
import slangpy as spy
if TYPE_CHECKING:
    from shader_code import ShaderCode
device = spy.create_device("cpu")
module = cast("ShaderCode", spy.Module.load_from_file(device, "shader_code.slang", defines={"FACTOR": 2}))
assert module.poly(1.0, 2.0) is not None
module.poly.map(a=()).bwds(1.0, x=spy.diffPair(2.0), n=3, _result=spy.diffPair(0.0, 1.0))
module.Point.norm({"x": 1.0, "y": [1.0, 2.0, 3.0]}, 2.0)
assert module["Box<int>"].get({"item": 4}, 1) == 4 and "get" in module.Box.get.__name__
module.over(1)
spy.Tensor.zeros(device, (2,), module.Point)
x: npt.NDArray[np.float32] = np.arange(4, dtype=np.float32)
t = spy.Tensor.from_numpy(device, x)
assert_type(module.poly(1.0, 2), float)
assert_type(module.poly(x, t, _result="numpy"), "np.ndarray[Any, Any]")
assert_type(module.poly(x, t), spy.Tensor)
assert_type(module.poly([1.0, 2.0], spy.rand_float(), _result=x[:2]), npt.NDArray[np.float32])
assert_type(module.poly([1.0, 2.0], spy.rand_float(), _result=spy.Tensor), spy.Tensor)
assert_type(module.over(1), int)
module.over(x, b=t)
assert_type(module.turn(spy.float3(1), spy.float3x3.identity()), spy.float3)
module.turn({"x": x, "y": 2.0, "z": 0.0}, np.eye(3, dtype=np.float32))
module.chosen("fast", None)
module.chosen(1, x)

@dataclasses.dataclass
class P:
    x: float
    y: Any

module.Point.norm(P(1.0, spy.float3(1)), 2.0)
module.Point(x=1.0, y=(1, 2, 3))
image = device.create_texture(format=spy.Format.rgba32_float, usage=spy.TextureUsage.shader_resource)
module.looked_up(image, device.create_sampler(), x, t)
assert_type(module.move({"x": t}, [1, 2]), None)
"""


def test_stubs(file: Path, tmp_path: Path) -> None:
    run("stubs", str(file), "-D", "FACTOR=2")
    text = (tmp_path / "shader_code.pyi").read_text()
    compile(text, "shader_code.pyi", "exec")
    assert "class ShaderCode(slangpy.Module):" in text
    pyright = shutil.which("pyright", path=os.path.dirname(sys.executable))
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run([sys.executable, "user.py"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    if pyright is None:
        return
    mistakes = {
        "module.poly(1.0)\n": "No overloads", "module.poly(1.0, y=2)\n": "No overloads", "spy.polynomal\n": '"polynomal"',
        "spy.diff_pear(None)\n": '"diff_pear"', "module.Box.get({})\n": "No overloads", "module.poly('a', 1.0)\n": '"FloatValue"',
        "module.poly(None, 1.0)\n": '"FloatValue"', "module.poly({'x': 1}, 1.0)\n": '"FloatValue"', "module.over(1.5)\n": '"IntValue"',
        "module.poly(1.0, 2.0, _result='pandas')\n": '"ResultValue', "module.over(1.0, 2.0)\n": '"Output"', "module.turn('abc', x)\n": "float3",
        "module.Point.norm(1.0, 2.0)\n": '"StructValue"', "module.chosen(1.5, None)\n": '"EnumValue"',
        "module.looked_up(x, device.create_sampler(), x, x)\n": '"TextureValue"', "module.looked_up(image, 'linear', x, x)\n": '"SamplerValue"',
        "module.looked_up(image, device.create_sampler(), 1, x)\n": '"BufferValue"', "module.move(1.0, [1, 2])\n": '"Output"',
        "module.Point(z=1.0)\n": "No overloads",
    }  # fmt: skip
    programs = {"": None, "print(spy.diff_pair(None, None))\n": None, **mistakes}
    paths = [tmp_path / f"user_{i}.py" for i in range(len(programs))]
    for path, added in zip(paths, programs, strict=True):
        path.write_text(USER + added)
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, *map(str, paths)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False).stdout)
    assert found["summary"]["filesAnalyzed"] == len(programs)
    for path, expected in zip(paths, programs.values(), strict=True):
        errors = [item for item in found["generalDiagnostics"] if item["severity"] == "error"]
        messages = [item["message"] for item in errors if item["file"] == str(path)]
        assert (len(messages) > 0) == (expected is not None), messages
        assert expected is None or expected in "\n".join(messages)


def test_cache(file: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert "0.0 MiB of" in run("cache", "info", cache=cache).stdout
    run("check", str(file), "-D", "FACTOR=2", cache=cache)
    assert re.search(r"^manifest +[1-9]\d* entries", run("cache", "info", cache=cache).stdout, re.M)
    assert "removed" in run("cache", "prune", "-v", cache=cache).stdout
    assert re.search(r"^[1-9]\d* entries removed", run("cache", "clear", cache=cache).stdout)
    assert "entries" not in run("cache", "info", cache=cache).stdout
    run("check", str(file), "-D", "FACTOR=2", cache=cache)


@pytest.mark.skipif(not spy.Device.enumerate_adapters(spy.DeviceType.vulkan), reason="no vulkan device here")
def test_compile_on_a_terminal(file: Path) -> None:
    """SPIR-V goes there as text, in bytes elsewhere unless text is asked for."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "slangpy", "compile", str(file), "-D", "FACTOR=2", "-e", "other", "-d", "vulkan"]
    process = subprocess.Popen(command, stdout=theirs)
    os.close(theirs)
    try:
        assert os.read(ours, 1000).startswith(b"; SPIR-V")
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout[:4] == b"\x03\x02\x23\x07"
    text = run(*command[3:], "--text").stdout
    assert "; SPIR-V" in text and "OpEntryPoint GLCompute %other" in text and "%main" not in text


def test_alone_it_helps() -> None:
    text = run().stdout
    assert "usage: python -m slangpy" in text and all(f"\n    {name} " in text for name in ("info", "check", "compile", "stubs"))


def test_wrong_use() -> None:
    assert "usage: python -m slangpy" in run("nothing", code=2).stderr
    assert "required" in run("cache", code=2).stderr


def test_every_setting_is_documented() -> None:
    root = Path(__file__).resolve().parents[2]
    if not (root / "src" / "native").is_dir():
        pytest.skip("needs the sources")
    code = "".join(path.read_text() for path in sorted((root / "slangpy").rglob("*.py")))
    code += "".join(path.read_text() for path in sorted((root / "src" / "native").rglob("*.cpp")))
    names = set(re.findall(r"\"(SLANGPY_[A-Z0-9_]+)\"", code)) - {"SLANGPY_TEST_COMPILE_FAULT"}
    documented = set(re.findall(r"`(SLANGPY_[A-Z0-9_]+)`", (root / "docs" / "command-line.md").read_text()))
    assert names == documented


WRONG: list[tuple[list[str], int, tuple[str, ...]]] = [
    (["check", "nowhere.slang"], 1, ("check: there is no file nowhere.slang", "relative paths start at")),
    (["check", "folder.slang"], 1, ("check: folder.slang is a folder; expected a .slang file",)),
    (["stubs", ""], 1, ("stubs: FILE is empty",)),
    (["view", "nowhere.slang"], 1, ("view: there is no file nowhere.slang",)),
    (["rewrite", "latin.slang"], 1, ("rewrite: latin.slang:2:4: the byte 0xE9 is not UTF-8; save the file with that encoding",)),
    (["check", "latin.slang"], 1, ("check: ", "latin.slang:2:4", "0xE9 is not UTF-8")),
    (["compile", "plain.slang"], 1, ("compile: plain.slang has no entry point", '[shader("compute")]')),
    (["compile", "kernel.slang", "-e", "mian"], 1, ("compile: kernel.slang has no entry point mian; it has: main",)),
    (["compile", "kernel.slang", "-o", "plain.slang"], 1, ("compile: -o plain.slang is a file; expected a folder",)),
    (["compile", "kernel.slang", "-o", "plain.slang/x"], 1, ("compile: plain.slang/x: Not a directory",)),
    (["stubs", "plain.slang", "-o", "folder.slang"], 1, ("stubs: folder.slang: Is a directory",)),
    (["check", "plain.slang", "-I", "absent"], 1, ("check: -I absent: there is no such folder",)),
    (["check", "plain.slang", "-D", "A B=1"], 1, ("check: -D 'A B=1'", "NAME or NAME=VALUE")),
    (["check", "plain.slang", "-d", "gpu"], 1, ("check: Device 'type': 'gpu'", '"vulkan"')),
    (["cache", "export", "plain.slang"], 1, ("cache export: plain.slang", "Not a directory")),
    (["--versoin"], 2, ("usage: python -m slangpy", "--versoin")),
]  # fmt: skip


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "folder.slang").mkdir()
    (folder / "plain.slang").write_text("float f(float x) { return x; }\n")
    (folder / "latin.slang").write_bytes(b"float f(float x) { return x; }\n// \xe9\n")
    (folder / "kernel.slang").write_text('[shader("compute")] [numthreads(1, 1, 1)] void main() {}\n')
    return folder


def _answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and stderr of a command, run in this process."""
    try:
        code = command_line.main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG, ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "")
def test_mistakes(
    arguments: list[str], code: int, words: tuple[str, ...], wrong: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(wrong)
    got, text = _answer(arguments, capsys)
    assert got == code and all(word in text for word in words), text


def test_letters_that_a_terminal_lacks(tmp_path: Path) -> None:
    file = tmp_path / "spaß.slang"
    file.write_text("float f(float x) { return x; }\n")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "slangpy", "stubs", str(file)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0 and "spa\\xdf.pyi" in done.stdout, done.stderr
    assert "f: _f" in file.with_suffix(".pyi").read_text("utf-8")


def test_readers_that_have_enough() -> None:
    """`python -m slangpy check file | head -0`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([sys.executable, "-m", "slangpy", "--help"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        also = subprocess.run([sys.executable, "-m", "slangpy", "cache", "info"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert "Traceback" not in done.stderr
    assert also.returncode == 1 and also.stderr == "", also.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command_line.main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"slangpy {spy.__version__}\n"
