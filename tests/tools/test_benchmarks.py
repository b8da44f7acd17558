"""`python -m benchmarks`: every program runs, is right, and its table is made from its JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import gate

import slangpy

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


FEW = ("elementwise", "float3", "scattered")


@pytest.mark.slow
@pytest.mark.parametrize("only", gate([",".join(FEW), ""], bool))
def test_all_figures_run_and_are_right(tmp_path: Path, only: str) -> None:
    output = tmp_path / "results.json"
    printed = run("--quick", "--limit", "0.02", "--only", only, "--output", str(output))
    results = json.loads(output.read_text())
    assert len(results["figures"]) == (len(FEW) if only else 19) and not results["left_out"]
    for figure in results["figures"]:
        assert "slangpy" not in figure["failed"] and figure["seconds"]["slangpy"] > 0, figure
        assert figure["error"] < 1e-3, figure
        assert figure["name"] in printed
    assert run("--table", str(output)) == printed


def test_what_there_was_no_time_for_is_named(tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    printed = run("--quick", "--limit", "0.01", "--total", "0", "--output", str(output))
    results = json.loads(output.read_text())
    assert results["figures"] == [] and len(results["left_out"]) == 19
    assert "Not run: elementwise" in printed


@pytest.mark.nightly
def test_loading(tmp_path: Path) -> None:
    output = tmp_path / "loading.json"
    command = [sys.executable, "benchmarks/loading.py", "--lines", "24", "--function", "30", "--limit", "120", "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(output.read_text())["seconds"]
    assert [(row["kind"], row["lines"]) for row in rows] == [("module", 24), ("function", 30)]
    assert all(row["bwds"] > 0 and 0 < row["share of loading"] < 1 for row in rows)


@pytest.mark.nightly
def test_paired_builds(tmp_path: Path) -> None:
    """A build beside itself: the same instructions, and times of the same programs."""
    folder, kept = str(Path(slangpy.__file__).parents[1]), tmp_path / "paired.json"
    command = [sys.executable, "benchmarks/paired.py", "--before", folder, "--now", folder, "--rounds", "2", "--calls", "10"]
    rows = "=Tensor" if shutil.which("valgrind") else ""
    only = ["--only", "host,kernels" if rows else "kernels", "--rows", rows or "float3", "--keep", str(kept)]
    for names in ([*only], ["--only", "kernels", "--rows", "float3,walk", "--keep", str(kept)]):
        done = subprocess.run([*command, *names], cwd=ROOT, capture_output=True, text=True, timeout=600)
        assert done.returncode in (0, 1) and "before" in done.stdout, done.stdout + done.stderr
    found = json.loads(kept.read_text())
    assert [row["row"] for row in found["kernels"]] == ["float3", "divergent, walk"]
    assert all(row["before"] > 0 and row["now"] > 0 for row in found["kernels"])
    if rows:
        (row,) = found["instructions a call"]
        assert row["row"] == "Tensor" and 0.98 < row["ratio"] < 1.02


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_hash_grid(dtype: str) -> None:
    """It checks values and gradients against doubles before it times, and ends with an error where they are off."""
    pytest.importorskip("torch")
    command = [sys.executable, "benchmarks/networks.py", "--hash-grid", "--device", "cpu", "--samples", "33", "--repeat", "1", "--dtype", dtype]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "with backward" in line]
    assert [line.split("forward")[0].strip() for line in lines] == ["slangpy.neural", "torch eager"], done.stdout
    assert "gradients: relative error" in done.stdout


def test_runs_of_networks_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run takes the place of the same one only: that of a hash grid leaves that of a network."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    networks = importlib.import_module("networks")
    monkeypatch.setattr(networks, "RESULTS", tmp_path / "networks.json")
    options = argparse.Namespace(keep="one", device="cpu", samples=33, dtype="half")
    for time, what in ((1.0, "network"), (2.0, "hash grid"), (3.0, "hash grid")):
        networks.keep(networks.run_of(options, {"slangpy.neural": (time, 2 * time)}, what=what))
    runs = json.loads((tmp_path / "networks.json").read_text())["runs"]
    assert [(run["what"], run["milliseconds"]["slangpy.neural"]["with backward"]) for run in runs] == [("network", 2), ("hash grid", 6)]


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("g++") is None, reason="valgrind, and what it needs")
def test_counted_processes_have_no_threads_of_others(tmp_path: Path) -> None:
    """Those of NumPy's library turn round while they wait, which callgrind would count."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from call_instructions import environment_in
    finally:
        sys.path.pop(0)
    script = "import os, numpy as np; np.ones((99, 99)) @ np.ones((99, 99)); print(len(os.listdir('/proc/self/task')))"
    environment = environment_in(tmp_path)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]
