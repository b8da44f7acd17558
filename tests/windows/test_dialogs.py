"""Dialogs for files: tkinter's, with a user who types into it; and what zenity is asked and answers."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from screen import Screen, wait_until

import slangpy as spy

platform = spy.platform
IMAGES = [platform.FileDialogFilter("Images", "*.png; *.jpg"), platform.FileDialogFilter("All", "*")]
DIALOGS: tuple[Callable[[], Path | None], ...] = (
    platform.open_file_dialog, platform.save_file_dialog, platform.choose_folder_dialog
)  # fmt: skip


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder where programs are looked for, with xdotool alone."""
    folder = tmp_path / "programs"
    folder.mkdir()
    if found := shutil.which("xdotool"):
        (folder / "xdotool").symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@contextmanager
def user(screen: Screen, title: str, text: str, key: str) -> Iterator[None]:
    """Somebody who types a text and presses keys in the next window of that title, until it is gone."""
    faults: list[str] = []

    def windows() -> list[str]:
        try:
            return screen.do("search", "--onlyvisible", "--name", f"^{title}$").split()
        except subprocess.CalledProcessError:  # xdotool found none
            return []

    def press() -> None:
        if not wait_until(lambda: bool(windows())):
            faults.append(f"no window {title!r}")
            return
        number = windows()[0]
        screen.do("windowfocus", number)
        screen.do("key", "ctrl+slash")  # Tk selects all
        if text:
            screen.do("type", "--delay", "1", text)
        screen.do("key", "--delay", "100", *key.split())
        if not wait_until(lambda: not windows()):
            faults.append(f"{title!r} did not close")
            screen.do("windowkill", number)

    thread = threading.Thread(target=press)
    thread.start()
    yield
    thread.join()
    assert not faults


needs_tkinter = pytest.mark.skipif(importlib.util.find_spec("tkinter") is None, reason="this Python has no tkinter")


@needs_tkinter
def test_a_user_answers(screen: Screen, programs: Path, tmp_path: Path) -> None:
    picture = tmp_path / "a picture.png"
    picture.touch()
    with user(screen, "Open", str(picture), "Return"):
        assert platform.open_file_dialog(IMAGES) == picture
    with user(screen, "Open", "", "Escape"):
        assert platform.open_file_dialog() is None
    with user(screen, "Save As", str(tmp_path / "new.png"), "Return"):
        assert platform.save_file_dialog(IMAGES) == tmp_path / "new.png"
    with user(screen, "Choose Directory", str(programs), "Return Return"):  # goes there, takes it
        assert platform.choose_folder_dialog() == programs


def fake(programs: Path, name: str, body: str) -> None:
    """A program that writes what it is asked to the file `asked`, one argument a line."""
    program = programs / name
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{programs}/asked"\n{body}\n')
    program.chmod(0o755)


FILTERS = ["--file-filter=Images | *.png *.jpg", "--file-filter=All | *"]


@pytest.mark.null
def test_zenity(monkeypatch: pytest.MonkeyPatch, programs: Path) -> None:
    monkeypatch.setenv("DISPLAY", ":1")
    fake(programs, "zenity", "echo '/a folder/ä.png'")

    def asked(chosen: Path | None) -> list[str]:
        assert chosen == Path("/a folder/ä.png")
        first, *others = (programs / "asked").read_text().splitlines()
        assert first == "--file-selection"
        return others

    assert asked(platform.open_file_dialog(IMAGES)) == FILTERS
    assert asked(platform.save_file_dialog(IMAGES)) == ["--save", "--confirm-overwrite", *FILTERS]
    assert asked(platform.choose_folder_dialog()) == ["--directory"]
    fake(programs, "zenity", "echo 'Gtk-Message: no transient parent' >&2; exit 1")
    assert platform.open_file_dialog() is None
    fake(programs, "zenity", "echo 'cannot open display: :1' >&2; exit 1")
    with pytest.raises(RuntimeError, match=r"open_file_dialog: \S*zenity failed \(1, DISPLAY is :1.*cannot open display"):
        platform.open_file_dialog()


@pytest.mark.null
def test_errors(monkeypatch: pytest.MonkeyPatch, programs: Path) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    for dialog in DIALOGS:
        with pytest.raises(RuntimeError, match="no display was found.*DISPLAY is not set.*command line"):
            dialog()
    wrong: Any = [IMAGES[0], "png"]
    with pytest.raises(TypeError, match=r"save_file_dialog: filters\[1\]: expected FileDialogFilter.*got 'png'"):
        platform.save_file_dialog(wrong)
    with pytest.raises(TypeError, match=r"filters\[0\].*pattern=' ; '"):
        platform.open_file_dialog([platform.FileDialogFilter("None", " ; ")])
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="needs zenity or tkinter; none is installed"):
        platform.open_file_dialog()


@needs_tkinter
def test_a_display_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, programs: Path) -> None:
    monkeypatch.setenv("DISPLAY", ":4711")
    with pytest.raises(RuntimeError, match=r'choose_folder_dialog: .* failed \(2, DISPLAY is :4711.*couldn\'t connect to display ":4711"'):
        platform.choose_folder_dialog()
