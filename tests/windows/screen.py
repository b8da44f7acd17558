"""An X server that nobody sees, its user, and its pixels."""

from __future__ import annotations

import os
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT = 1280, 720
PATIENCE = 10.0


class Screen:
    """Lives as long as this process: the server must go after the last connection to it. folder: for its frame buffer."""

    def __init__(self, folder: Path) -> None:
        read, write = os.pipe()
        server = f"Xvfb -displayfd {write} -screen 0 {WIDTH}x{HEIGHT}x24 -nolisten tcp -nocursor -fbdir '{folder}'"
        self._process = subprocess.Popen(
            ["sh", "-c", f"{server} & exec {write}>&-; read end; kill $!"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[write],
        )  # fmt: skip
        os.close(write)
        with os.fdopen(read) as answer:
            self.display = f":{answer.readline().strip()}"
        self._frame_buffer = folder / "Xvfb_screen0"

    def do(self, *arguments: object) -> str:
        """What xdotool says; its events have reached the server."""
        done = subprocess.run(
            ["xdotool", *map(str, arguments)], capture_output=True, text=True, timeout=30, check=True,
            env={**os.environ, "DISPLAY": self.display},
        )  # fmt: skip
        return done.stdout.strip()

    def pixels(self) -> npt.NDArray[np.uint8]:
        """(height, width, 3): red, green, blue."""
        data = self._frame_buffer.read_bytes()
        header = struct.unpack(">25I", data[:100])
        start, row_bytes = header[0] + 12 * header[19], header[12]
        rows = np.frombuffer(data, np.uint8, HEIGHT * row_bytes, start).reshape(HEIGHT, row_bytes)
        return rows[:, : 4 * WIDTH].reshape(HEIGHT, WIDTH, 4)[..., 2::-1]


def wait_until(is_so: Callable[[], bool]) -> bool:
    """False when the time is up."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
