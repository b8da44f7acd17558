"""What commands are given: checked before anything is loaded, and errors with the name of the command."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def check(options: argparse.Namespace) -> None:
    """FileNotFoundError, IsADirectoryError, NotADirectoryError and ValueError for what no command can use."""
    file = getattr(options, "file", None)
    if file is not None:
        _check_source(file)
    for folder in getattr(options, "include", ()):
        if not os.path.isdir(folder):
            raise NotADirectoryError(f"-I {folder}: there is no such folder")
    for text in getattr(options, "define", ()):
        name = text.partition("=")[0]
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(f"-D {text!r}: expected NAME or NAME=VALUE, where NAME is of letters, digits and _")


def _check_source(file: str) -> None:
    if not file:
        raise ValueError("FILE is empty; expected the path of a .slang file")
    if os.path.isdir(file):
        raise IsADirectoryError(f"{file} is a folder; expected a .slang file")
    if not os.path.exists(file):
        start = "" if os.path.isabs(file) else f"; relative paths start at {os.getcwd()}"
        raise FileNotFoundError(f"there is no file {file}{start}")


def check_encoding(file: str) -> None:
    """ValueError with the place of the first byte that is not UTF-8."""
    data = Path(file).read_bytes()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        raise ValueError(
            f"{file}:{line}:{column}: the byte 0x{data[error.start]:02X} is not UTF-8; save the file with that encoding"
        ) from error


def told(command: str, error: BaseException) -> str:
    """An error as a user reads it: with the command, and of the system's errors the file that is meant."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return text if text.startswith(f"{command}:") else f"{command}: {text}"


__all__ = ["check", "check_encoding", "told"]
