"""Logging: a global `Logger` whose default output is Python's `logging.getLogger("slangpy")`."""

from __future__ import annotations

import logging
import sys
from enum import Enum
from pathlib import Path
from typing import IO

from slangpy._native import LogLevel
from slangpy.base.locks import new_lock

from ..base.own_names import own_names
from ..base.typed import named_member, typed_fields

__all__ = [
    "ConsoleLoggerOutput",
    "FileLoggerOutput",
    "LogFrequency",
    "LogLevel",
    "Logger",
    "LoggerOutput",
    "log",
    "log_debug",
    "log_debug_once",
    "log_error",
    "log_error_once",
    "log_fatal",
    "log_fatal_once",
    "log_info",
    "log_info_once",
    "log_warn",
    "log_warn_once",
]

_PYTHON_LEVELS = {
    LogLevel.none: logging.INFO,
    LogLevel.debug: logging.DEBUG,
    LogLevel.info: logging.INFO,
    LogLevel.warn: logging.WARNING,
    LogLevel.error: logging.ERROR,
    LogLevel.fatal: logging.CRITICAL,
}
_COLORS = {LogLevel.debug: "36", LogLevel.warn: "33", LogLevel.error: "31", LogLevel.fatal: "1;31"}


class LogFrequency(Enum):
    """How often the same message is logged."""

    always = 0
    once = 1


class LoggerOutput:
    """Where messages go; derive from it and override `write`."""

    def write(self, level: LogLevel, name: str, msg: str) -> None:
        """Takes one message; classes of yours override it."""
        raise NotImplementedError(f"{type(self).__name__} must override write(self, level, name, msg)")


def _line(level: LogLevel, name: str, msg: str) -> str:
    if level is LogLevel.none:
        return msg
    return f"[{level.name.upper()}] ({name}) {msg}" if name else f"[{level.name.upper()}] {msg}"


class PythonLoggerOutput(LoggerOutput):
    """Hands messages to Python's `logging.getLogger("slangpy")`, or a child of it for a named logger."""

    def write(self, level: LogLevel, name: str, msg: str) -> None:
        logger = logging.getLogger(f"slangpy.{name}" if name else "slangpy")
        logger.log(_PYTHON_LEVELS[level], "%s", msg)


class ConsoleLoggerOutput(LoggerOutput):
    """Writes to stderr, in colour where it is a terminal."""

    def __init__(self, colored: bool = True) -> None:
        self.colored = colored

    def write(self, level: LogLevel, name: str, msg: str) -> None:
        """Writes the message to the console."""
        text = _line(level, name, msg)
        color = _COLORS.get(level)
        if self.colored and color and sys.stderr.isatty():
            text = f"\x1b[{color}m{text}\x1b[0m"
        print(text, file=sys.stderr)


class FileLoggerOutput(LoggerOutput):
    """Appends to a file, one line for each message."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: IO[str] = self.path.open("a", encoding="utf-8")

    def write(self, level: LogLevel, name: str, msg: str) -> None:
        """Writes the message to the file."""
        self._file.write(_line(level, name, msg) + "\n")
        self._file.flush()


@own_names
@typed_fields
class Logger:
    """Filters messages by level and hands them to its outputs."""

    name: str

    _global: Logger | None = None

    def __init__(self, level: LogLevel | str = LogLevel.info, name: str = "", use_default_outputs: bool = True) -> None:
        self.level = level
        self.name = name
        self._outputs: list[LoggerOutput] = [PythonLoggerOutput()] if use_default_outputs else []
        self._seen: set[tuple[LogLevel, str]] = set()
        self._lock = new_lock()

    @property
    def level(self) -> LogLevel:
        """Least severe level that passes; `LogLevel.none` lets nothing but itself pass."""
        return self._level

    @level.setter
    def level(self, level: LogLevel | str) -> None:
        self._level = named_member("Logger.level", LogLevel, level)

    @staticmethod
    def get() -> Logger:
        """The global logger."""
        if Logger._global is None:
            Logger._global = Logger()
        return Logger._global

    def log(self, level: LogLevel | str, msg: str, frequency: LogFrequency | str = LogFrequency.always) -> None:
        """Hands `msg` to every output, unless `level` is below the logger's. `LogLevel.none` always passes."""
        level = named_member("log 'level'", LogLevel, level)
        frequency = named_member("log 'frequency'", LogFrequency, frequency)
        if not isinstance(msg, str):
            raise TypeError(f"log: 'msg' must be a str, got {msg!r}")
        if level is not LogLevel.none and (self.level is LogLevel.none or level.value < self.level.value):
            return
        with self._lock:
            if frequency is LogFrequency.once:
                if (level, msg) in self._seen:
                    return
                self._seen.add((level, msg))
            outputs = list(self._outputs)
        for output in outputs:
            output.write(level, self.name, msg)

    def debug(self, msg: str) -> None:
        """Logs at level debug."""
        self.log(LogLevel.debug, msg)

    def info(self, msg: str) -> None:
        """Logs at level info."""
        self.log(LogLevel.info, msg)

    def warn(self, msg: str) -> None:
        """Logs at level warn."""
        self.log(LogLevel.warn, msg)

    def error(self, msg: str) -> None:
        """Logs at level error."""
        self.log(LogLevel.error, msg)

    def fatal(self, msg: str) -> None:
        """Logs at level fatal."""
        self.log(LogLevel.fatal, msg)

    def debug_once(self, msg: str) -> None:
        """As `debug`, the first time only."""
        self.log(LogLevel.debug, msg, LogFrequency.once)

    def info_once(self, msg: str) -> None:
        """As `info`, the first time only."""
        self.log(LogLevel.info, msg, LogFrequency.once)

    def warn_once(self, msg: str) -> None:
        """As `warn`, the first time only."""
        self.log(LogLevel.warn, msg, LogFrequency.once)

    def error_once(self, msg: str) -> None:
        """As `error`, the first time only."""
        self.log(LogLevel.error, msg, LogFrequency.once)

    def fatal_once(self, msg: str) -> None:
        """As `fatal`, the first time only."""
        self.log(LogLevel.fatal, msg, LogFrequency.once)

    def add_console_output(self, colored: bool = True) -> LoggerOutput:
        """Messages go to the console, too. Returns the output."""
        return self.add_output(ConsoleLoggerOutput(colored))

    def add_file_output(self, path: str | Path) -> LoggerOutput:
        """Messages go to that file, too. Returns the output."""
        return self.add_output(FileLoggerOutput(path))

    def add_debug_console_output(self) -> LoggerOutput:
        """The debugger's console where there is one; stderr here."""
        return self.add_output(ConsoleLoggerOutput(colored=False))

    def add_output(self, output: LoggerOutput) -> LoggerOutput:
        """Messages go to this output, too."""
        if not isinstance(output, LoggerOutput):
            raise TypeError(f"add_output: expected a LoggerOutput, got {output!r}")
        with self._lock:
            self._outputs.append(output)
        return output

    def remove_output(self, output: LoggerOutput) -> None:
        """Messages no longer go to this output."""
        with self._lock:
            self._outputs = [o for o in self._outputs if o is not output]

    def remove_all_outputs(self) -> None:
        """Messages go nowhere."""
        with self._lock:
            self._outputs = []

    def use_same_outputs(self, other: Logger) -> None:
        """Replaces the outputs by those of `other`."""
        with self._lock:
            self._outputs = list(other._outputs)

    def __repr__(self) -> str:
        return f"Logger(\n  level = {self.level.name},\n  name = {self.name!r},\n  outputs = {len(self._outputs)},\n)"


def log(level: LogLevel | str, msg: str, frequency: LogFrequency | str = LogFrequency.always) -> None:
    """Logs through the global logger."""
    Logger.get().log(level, msg, frequency)


def log_debug(msg: str) -> None:
    Logger.get().debug(msg)


def log_info(msg: str) -> None:
    Logger.get().info(msg)


def log_warn(msg: str) -> None:
    Logger.get().warn(msg)


def log_error(msg: str) -> None:
    Logger.get().error(msg)


def log_fatal(msg: str) -> None:
    Logger.get().fatal(msg)


def log_debug_once(msg: str) -> None:
    Logger.get().debug_once(msg)


def log_info_once(msg: str) -> None:
    Logger.get().info_once(msg)


def log_warn_once(msg: str) -> None:
    Logger.get().warn_once(msg)


def log_error_once(msg: str) -> None:
    Logger.get().error_once(msg)


def log_fatal_once(msg: str) -> None:
    Logger.get().fatal_once(msg)
