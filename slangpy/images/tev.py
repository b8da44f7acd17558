"""Pictures for the viewer tev (https://github.com/Tom94/tev), sent over its network protocol."""

from __future__ import annotations

import itertools
import logging
import socket
import struct
import threading
from typing import Any

import numpy as np

from ..base.typed import integer, text
from .bitmap import Bitmap
from .pictures import bitmap_of

HOST, PORT = "127.0.0.1", 14158
_LAST_PORT = 65535
_CREATE, _UPDATE = 4, 6
_ROWS_AT_ONCE = 1 << 20
"""Bytes of one message, as nearly as whole rows allow."""
_numbers = itertools.count(1)


def _message(kind: int, *parts: bytes) -> bytes:
    body = b"".join((struct.pack("<B", kind), *parts))
    return struct.pack("<I", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.replace("\0", " ").encode() + b"\0"


def _channels(image: Bitmap) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Linear floats of shape (height, width, channels), and names."""
    linear = image.convert(component_type=Bitmap.ComponentType.float32, srgb_gamma=False)
    pixels = np.asarray(linear).reshape(linear.height, linear.width, linear.channel_count)
    return pixels, [name or str(i) for i, name in enumerate(linear.channel_names)]


def _messages(image: Bitmap, name: str) -> list[bytes]:
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


def show(
    image: Any = None, name: str = "", host: str = HOST, port: int = PORT, max_retries: int = 3, *, bitmap: Any = None,
    texture: Any = None,
) -> bool:  # fmt: skip
    """Sends a Bitmap, a Texture, a Tensor or an array to a running tev, under a name (a number without one), as linear
    floats.

    False, and a warning in the log, if no viewer takes it, after `max_retries` more tries. TypeError for other images.
    """
    return _send(*_request("tev.show", _given(image, bitmap, texture), name, host, port, max_retries))


def _given(*images: Any) -> Any:
    """What came by position or by a name."""
    return next((image for image in images if image is not None), None)


def _request(
    function: str, image: Any, name: str, host: str, port: int, max_retries: int
) -> tuple[list[bytes], str, int, int]:  # fmt: skip
    """Messages for a viewer, where it is, and how often it is tried again."""
    text(f"{function} 'name'", name)
    text(f"{function} 'host'", host)
    if integer(f"{function} 'port'", port, 1) > _LAST_PORT:
        raise ValueError(f"{function} 'port': expected at most {_LAST_PORT}, got {port}")
    integer(f"{function} 'max_retries'", max_retries, 0)
    picture = bitmap_of(function, image, many_channels=True)
    return _messages(picture, name or f"image {next(_numbers)}"), host, port, max_retries


def _send(messages: list[bytes], host: str, port: int, max_retries: int) -> bool:
    failure: OSError | None = None
    for _ in range(max_retries + 1):
        try:
            with socket.create_connection((host, port), timeout=2) as viewer:
                for message in messages:
                    viewer.sendall(message)
            return True
        except OSError as error:
            failure = error
    logging.getLogger("slangpy").warning(
        "tev.show: no viewer listens at %s:%d (%s); start tev, or save the image with Bitmap.write(path)", host, port, failure
    )
    return False


def show_async(
    image: Any = None, name: str = "", host: str = HOST, port: int = PORT, max_retries: int = 3, *, bitmap: Any = None,
    texture: Any = None,
) -> threading.Thread:  # fmt: skip
    """As `show`, of the pixels as they are now, in a thread, which is returned."""
    request = _request("tev.show_async", _given(image, bitmap, texture), name, host, port, max_retries)
    thread = threading.Thread(target=_send, args=request, daemon=True)
    thread.start()
    return thread


__all__ = ["show", "show_async"]
