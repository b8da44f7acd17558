"""Each fault that tools/seeded_faults.py plants stands in the sources as they are: whoever changes such a line mends the table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "seeded_faults.py"
OUTCOMES = """
import pytest
def test_right(): pass
def test_wrong(): assert False
@pytest.mark.skip(reason="not here")
def test_left_out(): pass
@pytest.fixture
def broken(): raise RuntimeError
def test_never_begun(broken): pass
"""


@pytest.mark.null
def test_every_fault_fits() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.null
def test_the_report_has_what_became_of_each_test(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(OUTCOMES)
    (tmp_path / "test_none.py").write_text("import no_such_module")
    report = tmp_path / "report.tsv"
    environment = {**os.environ, "PYTHONPATH": str(TOOL.parent), "SEEDED_FAULTS_REPORT": str(report)}
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "seeded_faults_report"]
    subprocess.run(
        [*command, "-p", "no:cacheprovider", "--continue-on-collection-errors", str(tmp_path)],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert sorted(report.read_text().splitlines()) == [
        "failed\ttest_none.py\t",
        "failed\ttest_some.py::test_never_begun\t",
        "failed\ttest_some.py::test_wrong\t",
        "passed\ttest_some.py::test_right\t",
        "skipped\ttest_some.py::test_left_out\tSkipped: not here",
    ]
