"""Logger and its outputs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from slangpy.device.log import FileLoggerOutput, LogFrequency, Logger, LoggerOutput, LogLevel, log_warn


class Collect(LoggerOutput):
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    def write(self, level: LogLevel, name: str, msg: str) -> None:
        self.lines.append((level.name, name, msg))


def test_wrong_levels_and_texts() -> None:
    logger = Logger(use_default_outputs=False)
    for call in (lambda: Logger(3), lambda: setattr(logger, "level", "inform"), lambda: logger.log(None, "text")):
        with pytest.raises(TypeError, match="expected a LogLevel"):
            call()
    with pytest.raises(TypeError, match="'msg' must be a str"):
        logger.info(3)  # type: ignore[arg-type]


def test_levels_and_once() -> None:
    logger = Logger(LogLevel.warn, "x", use_default_outputs=False)
    out = Collect()
    logger.add_output(out)
    logger.info("no")
    logger.warn("yes")
    logger.error_once("once")
    logger.error_once("once")
    logger.log(LogLevel.none, "always", LogFrequency.always)
    assert out.lines == [("warn", "x", "yes"), ("error", "x", "once"), ("none", "x", "always")]
    other = Logger(use_default_outputs=False)
    other.use_same_outputs(logger)
    other.info("shared")
    logger.remove_output(out)
    logger.error("gone")
    assert out.lines[-1] == ("info", "", "shared")
    with pytest.raises(TypeError):
        logger.add_output(3)  # type: ignore[arg-type]


def test_default_goes_to_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "slangpy"):
        log_warn("hello")
    assert [(r.name, r.levelno, r.message) for r in caplog.records] == [("slangpy", logging.WARNING, "hello")]


def test_file(tmp_path: Path) -> None:
    logger = Logger(name="n", use_default_outputs=False)
    logger.add_output(FileLoggerOutput(tmp_path / "log.txt"))
    logger.info("line")
    logger.log(LogLevel.none, "bare")
    assert (tmp_path / "log.txt").read_text() == "[INFO] (n) line\nbare\n"
