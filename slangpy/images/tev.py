"""Pictures for the viewer tev (https://github.com/Tom94/tev), sent over its network protocol."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from typing import Any

import numpy as np

from ..errors import NativeValueError
from .bitmap import Bitmap

HOST, PORT = "127.0.0.1", 14158
_CREATE, _UPDATE = 4, 6
_ROWS_AT_ONCE = 1 << 20
"""Bytes of one message, as nearly as whole rows allow."""
_numbers = itertools.count(1)


def _message(kind: int, *parts: bytes) -> bytes:
    body = b"".join((struct.pack("<B", kind), *parts))
    return struct.pack("<I", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.replace("\0", " ").encode() + b"\0"


def _channels(image: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Linear floats of shape (height, width, channels), and names."""
    if not isinstance(image, Bitmap):
        if not hasattr(image, "to_bitmap"):
            raise NativeValueError(f"tev.show: expected a Bitmap or a Texture, got {type(image).__name__}; make Bitmap(array)")
        image = image.to_bitmap()
    linear = image.convert(component_type=Bitmap.ComponentType.float32, srgb_gamma=False)
    pixels = np.asarray(linear).reshape(linear.height, linear.width, linear.channel_count)
    return pixels, [name or str(i) for i, name in enumerate(linear.channel_names)]


def _messages(image: Any, name: str) -> list[bytes]:
    pixels, names = _channels(image)
    height, width, count = pixels.shape
    listed = struct.pack("<i", count) + b"".join(map(_text, names))
    grab = b"\1"
    made = [_message(_CREATE, grab, _text(name), struct.pack("<ii", width, height), listed)]
    rows = max(1, _ROWS_AT_ONCE // max(1, width * count * 4))
    places = struct.pack(f"<{count}q", *range(count)) + struct.pack(f"<{count}q", *[count] * count)
    for top in range(0, height, rows):
        part = np.ascontiguousarray(pixels[top : top + rows], "<f4")
        box = struct.pack("<iiii", 0, top, width, len(part))
        made.append(_message(_UPDATE, b"\0", _text(name), listed, box, places, part.tobytes()))
    return made


def show(image: Any, name: str = "", host: str = HOST, port: int = PORT, max_retries: int = 3) -> bool:
    """Sends a Bitmap or a Texture to a running tev, under a name (a number without one).

    Returns True. ConnectionError if no viewer listens there, after `max_retries` more tries.
    """
    messages = _messages(image, name or f"image {next(_numbers)}")
    for left in range(max(0, max_retries), -1, -1):
        try:
            with socket.create_connection((host, port), timeout=2) as viewer:
                for message in messages:
                    viewer.sendall(message)
            return True
        except OSError as error:
            if left == 0:
                raise ConnectionError(
                    f"tev.show: no viewer listens at {host}:{port} ({error}); start tev, or save the image with Bitmap.write(path)"
                ) from None
    return False


def show_async(image: Any, name: str = "", host: str = HOST, port: int = PORT, max_retries: int = 3) -> threading.Thread:
    """As `show`, in a thread, which is returned; what fails there is printed by `threading.excepthook`."""
    messages_of = image if isinstance(image, Bitmap) else image.to_bitmap()
    thread = threading.Thread(target=show, args=(messages_of, name, host, port, max_retries), daemon=True)
    thread.start()
    return thread


__all__ = ["show", "show_async"]
