"""Sources that are not UTF-8: the compiler takes what follows a stray byte for a part of a character."""

from __future__ import annotations

from pathlib import Path

import pytest

import slangpy as spy

HEAD = b"float first(float x) { return x; }\n"
CODE = b"float second(float x) { return 2 * x; }\n"
WRONG = {
    "latin 1": (b"// caf\xe9\n", "0xE9", 2, 7),
    "end of a comment": (b"/* \xff */\n", "0xFF", 2, 4),
    "lone continuation": (b"  // \x80\n", "0x80", 2, 6),
    "overlong": (b"// \xc0\xaf\n", "0xC0", 2, 4),
    "surrogate": (b"// \xed\xa0\x80\n", "0xED", 2, 4),
    "too large": (b"// \xf4\x90\x80\x80\n", "0xF4", 2, 4),
    "cut off": (b"// \xe2\x82\n", "0xE2", 2, 4),
    "code": (b"static const int \xb5 = 1;\n", "0xB5", 2, 18),
}


@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_bytes_that_are_no_text(device: spy.Device, tmp_path: Path, name: str, imported: bool) -> None:
    line, byte, row, column = WRONG[name]
    path = tmp_path / "wrong.slang"
    path.write_bytes(HEAD + line + CODE)
    if imported:
        (tmp_path / "main.slang").write_text("import wrong;\nfloat f(float x) { return first(x); }\n")
    with pytest.raises(spy.SlangCompileError) as caught:
        spy.Module.load_from_file(device, tmp_path / ("main.slang" if imported else "wrong.slang"))
    text = str(caught.value)
    assert f"{path}:{row}:{column}" in text and f"the byte {byte} is not UTF-8; save the file with that encoding" in text


@pytest.mark.needs_kernels
def test_text_of_every_length(device: spy.Device, tmp_path: Path) -> None:
    path = tmp_path / "right.slang"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD + "// é € 😀 \U0010ffff ￿\n".encode() + CODE)
    module = spy.Module.load_from_file(device, path)
    assert module.second(2.0) == 4 and module.first(2.0) == 2


def test_kernels(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "kernels.slang"
    for use in (b"x[0] = 1;", b"x.fillZero();"):
        path.write_bytes(b"// \xe9\n[CudaKernel] void k(TensorView<float> x) { " + use + b" }\n")
        with pytest.raises(RuntimeError, match=r"(?s)kernels\.slang:1:4.*0xE9 is not UTF-8"):
            spy.loadModule(path)


