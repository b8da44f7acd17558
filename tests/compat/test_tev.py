"""spy.tev against a stand-in for the viewer, which reads messages as tev does."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from typing import Any

import numpy as np
import pytest

import slangpy as spy


def cstring(body: bytes, at: int) -> tuple[str, int]:
    end = body.index(b"\0", at)
    return body[at:end].decode(), end + 1


def texts(body: bytes, at: int) -> tuple[list[str], int]:
    (count,) = struct.unpack_from("<i", body, at)
    at += 4
    found = []
    for _ in range(count):
        text, at = cstring(body, at)
        found.append(text)
    return found, at


class Viewer(threading.Thread):
    """Takes one connection and keeps the images that it brings."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.images: dict[str, Any] = {}
        self.start()

    def run(self) -> None:
        data, connection = b"", self.server.accept()[0]
        with connection, self.server:
            while part := connection.recv(1 << 20):
                data += part
        while data:
            (size,) = struct.unpack_from("<I", data)
            self.take(data[4:size])
            data = data[size:]

    def take(self, body: bytes) -> None:
        name, at = cstring(body, 2)
        if body[0] == 4:
            size = struct.unpack_from("<ii", body, at)
            names, at = texts(body, at + 8)
            assert at == len(body)
            self.images[name] = (names, np.full((size[1], size[0], len(names)), np.nan, np.float32))
            return
        assert body[0] == 6
        names, at = texts(body, at)
        known, pixels = self.images[name]
        assert names == known
        x, y, width, height = struct.unpack_from("<iiii", body, at)
        at += 16
        places = struct.unpack_from(f"<{2 * len(names)}q", body, at)
        values = np.frombuffer(body, "<f4", offset=at + 16 * len(names))
        for channel, (first, step) in enumerate(zip(places[: len(names)], places[len(names) :], strict=True)):
            pixels[y : y + height, x : x + width, channel] = values[first::step][: width * height].reshape(height, width)


@pytest.mark.parametrize("shape", [(5, 7, 3), (600, 700, 4), (1, 1, 1)])
def test_show(shape: tuple[int, ...]) -> None:
    viewer, pixels = Viewer(), np.random.default_rng(1).random(shape, np.float32)
    assert spy.tev.show(spy.Bitmap(pixels), "a picture", port=viewer.port) is True
    viewer.join(10)
    names, got = viewer.images["a picture"]
    assert len(names) == shape[2] and len(set(names)) == shape[2]
    np.testing.assert_array_equal(got, pixels)


def test_show_bytes_in_a_thread() -> None:
    viewer, pixels = Viewer(), np.uint8([[[0, 128, 255]]])
    spy.tev.show_async(spy.Bitmap(pixels), port=viewer.port).join(10)
    viewer.join(10)
    [(names, got)] = viewer.images.values()
    assert names == ["R", "G", "B"]
    np.testing.assert_allclose(got, [[[0, ((128 / 255 + 0.055) / 1.055) ** 2.4, 1]]], atol=1e-5)  # linear


def test_texture(device: spy.Device) -> None:
    pixels = np.random.default_rng(2).random((6, 5, 4), np.float32)
    texture = device.create_texture(format=spy.Format.rgba32_float, width=5, height=6, data=pixels)
    viewer = Viewer()
    spy.tev.show(texture, "texture", port=viewer.port)
    viewer.join(10)
    if device.info.type is not spy.DeviceType.null:
        np.testing.assert_array_equal(viewer.images["texture"][1], pixels)


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with caplog.at_level(logging.WARNING, "slangpy"):
        assert spy.tev.show(spy.Bitmap(np.zeros((2, 2, 3), np.float32)), port=port) is False
    [message] = caplog.messages
    assert f"no viewer listens at 127.0.0.1:{port}" in message and "start tev, or save the image" in message
    thread = spy.tev.show_async(spy.Bitmap(np.zeros((2, 2, 3), np.float32)), port=port)
    thread.join(10)
    assert not thread.is_alive() and len(caplog.messages) == 2
    with pytest.raises(TypeError, match=r"tev\.show: expected a Bitmap, a Texture, a Tensor or an array, got int"):
        spy.tev.show(3)


def test_arrays_and_names() -> None:
    """Whatever a Bitmap is made of; names count up."""
    names = []
    for _ in range(2):
        viewer = Viewer()
        assert spy.tev.show(np.full((3, 4), 0.5, np.float32), port=viewer.port)
        viewer.join(10)
        [(name, (channels, got))] = viewer.images.items()
        names.append(name)
        assert channels == ["Y"] and (got == 0.5).all()
    first, second = (int("".join(c for c in name if c.isdigit())) for name in names)
    assert second == first + 1
