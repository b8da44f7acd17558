"""A pytest plugin for tools/seeded_faults.py: writes what became of each test to a file at once, so that a run that is
ended early has said all it knew. One line a test: outcome, name, reason, with tabs between."""

from __future__ import annotations

import os
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that reports writes; those of pytest-xdist do not."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer(os.environ["SEEDED_FAULTS_REPORT"]))


class Writer:
    def __init__(self, path: str) -> None:
        self.file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the run

    def write(self, outcome: str, name: str, reason: object = "") -> None:
        if isinstance(reason, tuple):  # of a skip: path, line, text
            reason = reason[2]
        fields = (outcome, name, str(reason))
        self.file.write("\t".join(field.replace("\t", " ").replace("\n", "\\n") for field in fields) + "\n")
        self.file.flush()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.write("failed", report.nodeid)
        elif report.skipped:
            self.write("skipped", report.nodeid, report.longrepr)
        elif report.when == "call":
            self.write("passed", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write("failed", report.nodeid)
        elif report.skipped:
            self.write("skipped", report.nodeid, report.longrepr)
