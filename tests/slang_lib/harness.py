"""Compiles the programs of this folder for cpp, cuda and spirv, runs the cpp one, and checks the other two.

Needs a command line compiler `slangtool FILE ENTRY TARGET OUT INCLUDE...` (environment: SLANGTOOL), a C++ compiler,
and, where present, NVRTC (SPY_NVRTC: path of the library) and spirv-val.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parent.parent / "slangpy" / "slang"
OPTIMISE = os.environ.get("SPY_CXXFLAGS", "-O1").split()


class View:
    """A tensor argument: array, and the gradient arrays that its struct holds (None: absent)."""

    def __init__(self, data, elem=0, rank=None, grads=()):
        self.data, self.elem, self.grads = data, elem, grads
        self.rank = data.ndim - elem if rank is None else rank

    def pack(self) -> bytes:
        out = _pack_view(self.data, self.elem, self.rank)
        for g in self.grads:
            out += _pack_view(self.data if g is None else g, self.elem, self.rank, null=g is None)
        return out


def _pack_view(a, elem, rank, null=False) -> bytes:
    shape = a.shape[:rank] or (0,)
    size = int(np.prod(a.shape[rank:], dtype=int)) * a.itemsize if a.dtype.fields is None else a.itemsize
    strides = [s // size for s in a.strides[:rank]] or [0]
    raw = struct.pack("Q", 0 if null else a.ctypes.data)
    raw += struct.pack(f"{len(shape)}I", *shape) + struct.pack(f"{len(strides)}i", *strides)
    return raw + b"\0" * (-len(raw) % 8) + struct.pack("q", 0)


def compile_slang(file: Path, entry: str, target: str, out: Path) -> str:
    """Returns what the compiler printed; raises if it fails or takes a minute."""
    tool = os.environ["SLANGTOOL"]
    r = subprocess.run([tool, file, entry, target, out, LIBRARY], capture_output=True, text=True, timeout=60)
    if r.returncode:
        raise RuntimeError(f"{file.name}:{entry} for {target}: exit {r.returncode}\n{r.stderr}")
    return r.stderr


def build_cpp(file: Path, entry: str, work: Path):
    out = work / f"{file.stem}_{entry}.cpp"
    log = compile_slang(file, entry, "cpp", out)
    text = f'#include "{LIBRARY / "prelude_cpp.h"}"\n' + out.read_text()
    out.write_text(text)
    so = work / f"{entry}_{hashlib.sha1((text + str(OPTIMISE)).encode()).hexdigest()}.so"
    if not so.exists():
        subprocess.run(["g++", "-std=c++17", "-w", "-shared", "-fPIC", *OPTIMISE, "-o", so, out], check=True)
    return ctypes.CDLL(str(so)), log


def run_cpp(file: Path, entry: str, work: Path, args, threads=1, repeat_threads=1) -> str:
    lib, log = build_cpp(file, entry, work)
    raw = b"".join(a.pack() if isinstance(a, View) else a for a in args)
    params = ctypes.create_string_buffer(raw, len(raw) or 1)
    fn = getattr(lib, entry)
    fn.restype = None
    varying = (ctypes.c_uint32 * 6)(0, 0, 0, threads, 1, 1)
    fn(ctypes.byref(varying), params, None)
    return log


def check_spirv(file: Path, entry: str, work: Path) -> tuple[str, str]:
    out = work / f"{file.stem}_{entry}.spv"
    log = compile_slang(file, entry, "spirv", out)
    tool = shutil.which("spirv-val")
    if not tool:
        return log, "no spirv-val"
    words = list(struct.unpack(f"<{out.stat().st_size // 4}I", out.read_bytes()))
    at = 5
    while at < len(words):  # older validators do not know Slang's number in OpSource
        if words[at] & 0xFFFF == 3:
            words[at + 1] = 0
        at += words[at] >> 16
    out.write_bytes(struct.pack(f"<{len(words)}I", *words))
    cmd = [tool, "--target-env", "vulkan1.2", "--scalar-block-layout", out]
    r = subprocess.run(cmd, capture_output=True, text=True)
    return log, (r.stdout + r.stderr).strip()


def check_cuda(file: Path, entry: str, work: Path) -> tuple[str, str]:
    out = work / f"{file.stem}_{entry}.cu"
    log = compile_slang(file, entry, "cuda", out)
    path = os.environ.get("SPY_NVRTC")
    if not path:
        return log, "no NVRTC"
    for builtins in Path(path).parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(builtins))
    nvrtc = ctypes.CDLL(path)
    prog = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(prog), out.read_bytes(), b"k.cu", 0, None, None)
    options = [b"-arch=sm_90", b"-std=c++17", b"-default-device", b"-w", b"-DSLANG_CUDA_ENABLE_HALF"]
    include = os.environ.get("SPY_CUDA_INCLUDE")
    options += [b"-I" + include.encode()] if include else []
    rc = nvrtc.nvrtcCompileProgram(prog, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(prog, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(prog, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(prog))
    return log, text.value.decode()[:600] if rc else ""


def warnings_of(log: str) -> list[str]:
    """Diagnostics, except that `main` was renamed and that wave operations raise the profile."""
    known = ("E40100", "E41012")
    lines = [line for line in log.splitlines() if line.startswith(("warning", "error"))]
    return [line for line in lines if not any(k in line for k in known)]


def close(name: str, got, want, tol=1e-5) -> list[str]:
    got, want = np.asarray(got), np.asarray(want)
    if got.shape == want.shape and np.allclose(got.astype(float), want.astype(float), rtol=tol, atol=tol):
        return []
    return [f"{name}: got {got.tolist()}, expected {want.tolist()}"]


def main(cases, other_targets=True) -> None:
    work = Path(os.environ.get("SPY_WORK", "work"))
    work.mkdir(parents=True, exist_ok=True)
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    targets = other_targets and "--cpp" not in sys.argv
    failed = 0
    for entry, (file, case) in cases.items():
        if names and entry not in names:
            continue
        problems = []
        try:
            for item in case():
                problems += item
            if targets:
                for check in (check_cuda, check_spirv):
                    log, bad = check(HERE / file, entry, work)
                    problems += [bad] if bad else []
                    problems += warnings_of(log)
        except Exception as e:  # report, and go on with the next program
            problems.append(f"{type(e).__name__}: {e}")
        failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {file}:{entry}", *problems, sep="\n     " if problems else " ")
    sys.exit(1 if failed else 0)
