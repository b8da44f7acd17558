"""What a file declares beside its kernels: enums, defaults, names that Python refuses, kernels of other files and namespaces;
and the options that go to the compilers."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import slangpy
from slangpy.errors import CompileError, TensorError
from slangpy.pytorch.raw.constants import constant
from slangpy.pytorch.raw.cuda import cuda_options

ENUMS = """
static const int N = 5;
enum Mode { A = 1 << 0, B = 1 << 1, C = A | B, D }
enum class Small : uint8_t { X = 0x10u, Y, Z = int(3) }
enum Named { P = N, Q = N * 2 }
#if 0
enum Mode { Other }
#endif
namespace inner
{
    enum Deep { R = -1, S = 0 - 7 }
}
struct Values { Mode m; Small s; Named n; inner::Deep d; }
[AutoPyBindCUDA] [CudaKernel] void tell(Values v, TensorView<int> y, Mode m = Mode.C)
{ y[0] = int(v.m); y[1] = int(v.s); y[2] = int(v.n); y[3] = int(v.d); y[4] = int(m); }
"""


def test_members_of_enums(load: Any, place: str) -> None:
    """Values may be expressions, also of constants that the compiler alone knows."""
    m = load(ENUMS)
    assert {k: v.value for k, v in m.Mode.__members__.items()} == {"A": 1, "B": 2, "C": 3, "D": 4}
    assert {k: v.value for k, v in m.Small.__members__.items()} == {"X": 16, "Y": 17, "Z": 3}
    assert {k: v.value for k, v in m.Named.__members__.items()} == {"P": 5, "Q": 10}
    assert {k: v.value for k, v in m.Deep.__members__.items()} == {"R": -1, "S": -7}
    y = torch.zeros(5, dtype=torch.int32, device=place)
    m.tell(m.Values(m.Mode.D, m.Small.Y, m.Named.Q, m.Deep.S), y).launchRaw(1, 1)
    assert y.tolist() == [4, 17, 10, -7, 3]


def test_constants() -> None:
    for text, value in {
        "1 << 3": 8, "(1u | 0x10) & ~1": 16, "-7 / 2": -3, "-7 % 2": -1, "M::A + 1": 5, "1.5f * 2": 3.0, "!true": False,
        "0.5h": 0.5, "1e3f": 1000.0, "uint(3)": 3, "2.f": 2.0, "10ll": 10,
        "f(1)": None, "other": None, "1 <<": None, "1 << 99": None, "1 / 0": None, '"text"': None, "__import__": None,
    }.items():  # fmt: skip
        assert constant(text, {"M.A": 4}) == value, text


DEFAULTS = """
[AutoPyBindCUDA] [CudaKernel] void given(TensorView<double> y, bool yes = true, bool no = false, int n = -1, float big = 1e20,
    float q = 1.0 / 4, int64_t wide = 1ll << 40, /* not , this = 3 */ half h = 0.5h, uint all = 0xffffffffu, float whole = 3)
{ y[0] = yes ? 1 : 0; y[1] = no ? 1 : 0; y[2] = n; y[3] = big; y[4] = q; y[5] = double(wide); y[6] = h; y[7] = all; y[8] = whole; }
"""


def test_defaults(load: Any, place: str) -> None:
    y = torch.zeros(9, dtype=torch.float64, device=place)
    kernel = load(DEFAULTS).given
    kernel(y).launchRaw(1, 1)
    assert y.tolist() == [1, 0, -1, float(torch.tensor(1e20)), 0.25, 2**40, 0.5, 2**32 - 1, 3]
    kernel(y, no=True, wide=7).launchRaw(1, 1)
    assert y.tolist()[:2] == [1, 1] and y[5].item() == 7


NAMES = """
struct Odd { float _a; float __b; float _1; float lambda; float a_; }
struct Outer<T> { struct Inner { T x; }
    Inner i; }
enum Kept { mro = 3, _x_ = 4 }
[AutoPyBindCUDA] [CudaKernel] void odd(Odd o, Outer<Outer<float>.Inner>.Inner i, Kept k, TensorView<float> y)
{ y[0] = o._a; y[1] = o.__b; y[2] = o._1; y[3] = o.lambda; y[4] = o.a_; y[5] = i.x.x; y[6] = int(k); }
"""


def test_names_that_python_refuses(load: Any, place: str) -> None:
    m = load(NAMES)
    assert m.Odd._fields == ("a_", "b_", "field1_", "lambda_", "a__")
    y = torch.zeros(7, device=place)
    forms = (
        m.Odd(1, 2, 3, 4, 5),
        dict(zip(("_a", "__b", "_1", "lambda", "a_"), (1, 2, 3, 4, 5), strict=True)),
        SimpleNamespace(_a=1, __b=2, _1=3, lambda_=4, a_=5),
    )
    for given in forms:
        m.odd(given, ((6,),), 3, y).launchRaw(1, 1)
        assert y.tolist() == [1, 2, 3, 4, 5, 6, 3]
    assert m.Kept.mro_ == 3 and m.Kept._x__ == 4
    with pytest.raises(AttributeError, match="Inner_float_Inner"):
        _ = m.Inner


OTHER = """
namespace deep
{
    [AutoPyBindCUDA] [CudaKernel] void hidden(TensorView<float> y, Far f = Far.V) { y[0] = int(f); }
}
enum Far { U = 1 << 4, V }
[AutoPyBindCUDA] [CudaKernel] void any<T>(TensorView<T> y) { }
"""
MAIN = """
import other;
#if 0
[AutoPyBindCUDA] [CudaKernel] void never(TensorView<float> y) { }
#endif
#ifdef WITH_MORE
[AutoPyBindCUDA] [CudaKernel] void more(TensorView<float> y) { }
#endif
[AutoPyBindCUDA] [CudaKernel] void here(TensorView<float> y) { y[0] = 2; }
"""


def test_kernels_in_other_files_and_namespaces(tmp_path: Path, place: str) -> None:
    (tmp_path / "other.slang").write_text(OTHER)
    (tmp_path / "main.slang").write_text(MAIN)
    with pytest.warns(slangpy.errors.SlangWarning) as notes:
        m = slangpy.loadModule(tmp_path / "main.slang")
    assert len(notes) == 1 and "'any'" in str(notes[0].message)
    assert not any(f"'{name}'" in str(notes[0].message) for name in ("never", "more", "hidden"))
    y = torch.zeros(1, device=place)
    m.hidden(y).launchRaw(1, 1)
    assert y.item() == 17 and m.Far.U == 16


BROKEN = """
float nowhere() { __intrinsic_asm "no_such_function()"; }
[AutoPyBindCUDA] [CudaKernel] void broken(TensorView<float> y) { y[0] = nowhere(); }
[AutoPyBindCUDA] [CudaKernel] void whole(TensorView<float> y) { y[0] = 2; }
"""


def test_a_kernel_that_does_not_compile_leaves_the_others(load: Any, place: str) -> None:
    m = load(BROKEN)
    y = torch.zeros(1, device=place)
    with pytest.raises(CompileError, match="no_such_function"):
        m.broken(y).launchRaw(1, 1)
    m.whole(y).launchRaw(1, 1)
    assert y.item() == 2


def test_flags_of_nvcc(tmp_path: Path) -> None:
    path = tmp_path / "k.slang"
    path.write_text("[AutoPyBindCUDA] [CudaKernel] void k(TensorView<float> y) { y[0] = 1; }\n")

    def passed(flags: list[str]) -> list[str]:
        return cuda_options(slangpy.loadModule(path, extraCudaFlags=flags)._programs.options)["downstream_args"][1:]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert passed(["-lineinfo", "-G", "-O3", "--maxrregcount=32"]) == ["-lineinfo", "-G", "--maxrregcount=32"]
    for flags in (["-l", "cudart"], ["-L", "/usr/lib"], ["-lcudart"], ["-L/usr/lib"], ["-gencode", "arch=compute_80,code=sm_80"]):
        with pytest.warns(UserWarning, match=flags[0]):
            assert passed([*flags, "-G"]) == ["-G"]


def test_flags_of_slangc(tmp_path: Path, place: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "common.slang").write_text("float common() { return 3; }\n")
    path = tmp_path / "k.slang"
    path.write_text("import common;\n[AutoPyBindCUDA] [CudaKernel] void k(TensorView<float> y) { y[0] = common(); }\n")
    for flags in (["-fp-mode", "fast", f"-I{tmp_path / 'here'}"], ["-I", str(tmp_path / "here"), "-O3"]):
        y = torch.zeros(1, device=place)
        slangpy.loadModule(path, extraSlangFlags=flags).k(y).launchRaw(1, 1)
        assert y.item() == 3
    for flags, text in ((["-fp-mode", "slow"], "modes are default, fast and precise"), (["-I"], "needs a value")):
        with pytest.raises(ValueError, match=text):
            slangpy.loadModule(path, extraSlangFlags=flags)


def test_saved_while_it_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """What is kept is the code of the contents that were compiled, not of those that came after."""
    from slangpy.pytorch.raw import load

    path = tmp_path / "k.slang"
    text = "[AutoPyBindCUDA] [CudaKernel] void k(TensorView<float> y) {{ y[0] = {}; }}\n"
    path.write_text(text.format(1))
    compile_program = load.compile_program

    def slow(*args: Any) -> Any:
        made = compile_program(*args)
        path.write_text(text.format(2))
        return made

    monkeypatch.setattr(load, "compile_program", slow)
    y = torch.zeros(1, device=place)
    for _ in range(2):
        slangpy.loadModule(path).k(y).launchRaw(1, 1)
        assert y.item() == 2
        slangpy.clearSessionShaderCache()


def test_tensors_of_other_devices(load: Any) -> None:
    """Memory that has no pointers is a TensorError, too."""

    class Elsewhere:
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("the memory is elsewhere")

        def __dlpack_device__(self) -> Any:
            raise BufferError("the memory is elsewhere")

    with pytest.raises(TensorError, match=r"whole: y: the memory is elsewhere"):
        load(BROKEN).whole(Elsewhere())


def test_no_gradient_is_named_once(load: Any) -> None:
    m = load("[AutoPyBindCUDA] [CudaKernel] [Differentiable] void f(DiffTensorView a, DiffTensorView b) { b[0] = a[0]; }")
    with pytest.raises(ValueError) as caught:
        m.f.bwd(torch.zeros(1), (torch.zeros(1), torch.zeros(1)))
    assert str(caught.value).startswith("`f.bwd`: `a` has no gradient tensor")


MODEL = """
[AutoPyBindCUDA] [CudaKernel] [Differentiable] void twice(DiffTensorView x, DiffTensorView y) { y[0] = 2 * x[0]; }
[CudaKernel] void fill(TensorView<float> x) { x[0] = 5; }
[TorchEntryPoint] TorchTensor<float> filled(float3 v) {
    let one = uint3(1, 1, 1);
    var x = TorchTensor<float>.alloc(1);
    __dispatch_kernel(fill, one, one)(x);
    return x;
}
"""


def test_copies_and_pickles(load: Any, tmp_path: Path) -> None:
    """A torch model may hold a module of kernels."""
    m = load(MODEL)
    assert (m.filled.__doc__ or "").startswith("filled(v: float3) -> TorchTensor<float>")
    for item in (m, m.twice, m.twice.bwd, m.filled):
        assert copy.copy(item) is item and copy.deepcopy(item) is item
        assert pickle.loads(pickle.dumps(item)) is item
    model = torch.nn.Linear(1, 1)
    model.kernels = m
    assert copy.deepcopy(model).kernels is m
    torch.save(model, tmp_path / "model.pt")
    assert torch.load(tmp_path / "model.pt", weights_only=False).kernels is m
    path = tmp_path / "gone.slang"
    path.write_text(MODEL)
    data = pickle.dumps(slangpy.loadModule(path).twice)
    path.write_text(MODEL.replace("twice", "thrice"))
    with pytest.raises(AttributeError, match="has no 'twice', which a pickle names"):
        pickle.loads(data)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"gone\.slang, which a pickle names"):
        pickle.loads(data)


SCOPES = """
namespace a
{
    struct S { float v; }
}
namespace b
{
    struct S { int w; }
}
[AutoPyBindCUDA] [CudaKernel] void both(a::S s, b::S t, TensorView<float> y) { y[0] = s.v + t.w; }
"""


def test_types_of_one_name(load: Any, place: str) -> None:
    m = load(SCOPES)
    y = torch.zeros(1, device=place)
    m.both(m.a_S(v=1), m.b_S(w=2), y).launchRaw(1, 1)
    assert y.item() == 3
    with pytest.raises(AttributeError, match="a_S, b_S"):
        _ = m.S


def test_files_of_other_editors(tmp_path: Path, place: str) -> None:
    """A mark of byte order, lines that end in CR LF, letters beyond ASCII."""
    text = "[AutoPyBindCUDA] [CudaKernel] void k(TensorView<float> y)\r\n{\r\n y.fillValue(3.0);\r\n}\r\n"
    for n, data in enumerate((b"\xef\xbb\xbf" + text.encode(), "// \xe9\r\n".encode() + text.encode())):
        path = tmp_path / f"k{n}.slang"
        path.write_bytes(data)
        y = torch.zeros(2, device=place)
        slangpy.loadModule(path).k(y).launchRaw(1, 1)
        assert y.tolist() == [3, 3]
