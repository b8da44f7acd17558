"""Images in host memory."""

from __future__ import annotations

import enum
import logging
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, overload

import numpy as np

from .._native import _refuse_masked
from ..base.folders import file_path
from ..base.own_names import own_names
from ..base.typed import integer, member, number, sequence, texts, truth, typed_fields
from ..errors import NativeValueError
from .files import FileFormat, read_image, write_image
from .filters import BoxFilter, FilterBoundaryCondition, resample_axis
from .png import encode_png
from .scalars import Array, read_normalized, store, to_linear, to_srgb
from .sources import array_of
from .structs import DataStruct, DataType, FieldFlags


class PixelFormat(enum.IntEnum):
    """Which channels a pixel has."""

    y = 0
    ya = 1
    r = 2
    rg = 3
    rgb = 4
    rgba = 5
    multi_channel = 6

    __str__ = enum.Enum.__str__


_CHANNELS = {
    PixelFormat.y: ["Y"], PixelFormat.ya: ["Y", "A"], PixelFormat.r: ["R"], PixelFormat.rg: ["R", "G"],
    PixelFormat.rgb: ["R", "G", "B"], PixelFormat.rgba: ["R", "G", "B", "A"],
}  # fmt: skip
_LUMINANCE = np.array([0.212671, 0.715160, 0.072169])
_INTEGERS = (DataType.uint8, DataType.uint16, DataType.uint32, DataType.int8, DataType.int16, DataType.int32)
_LARGEST = 1024
"""Side of pictures in notebooks."""
_writers = ThreadPoolExecutor(2, "slangpy-images")


@own_names
@typed_fields
class Bitmap:
    """An image: `Bitmap(pixel_format, component_type, width, height)`, `Bitmap(array)` or `Bitmap(path)`.

    array: (height, width) or (height, width, channels) in NumPy, torch or another package, or a `Tensor` of numbers or
    vectors; on any device, copied.
    Rows lie from top to bottom, the channels of a pixel side by side. `srgb_gamma` says that the numbers follow the curve
    of sRGB, as those of 8-bit files do. `np.asarray(bitmap)` is a view of the pixels.
    """

    srgb_gamma: bool
    """Whether the numbers follow the curve of sRGB (alpha never does)."""

    PixelFormat = PixelFormat
    ComponentType = DataType
    FileFormat = FileFormat

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        first = args[0] if args else kwargs.get("data", kwargs.get("path", kwargs.get("pixel_format")))
        if isinstance(first, PixelFormat) or (len(args) > 2 and isinstance(first, str)) or "component_type" in kwargs:
            self._init_empty(*args, **kwargs)
        elif isinstance(first, (str, os.PathLike)):
            self._init_file(*args, **kwargs)
        else:
            self._init_array(*args, **kwargs)

    def _init_empty(
        self, pixel_format: PixelFormat | str, component_type: DataType | str, width: int, height: int, channel_count: int = 0,
        channel_names: Sequence[str] = (), srgb_gamma: bool | None = None,
    ) -> None:  # fmt: skip
        chosen = member("Bitmap 'pixel_format'", PixelFormat, pixel_format)
        fixed = _CHANNELS.get(chosen)
        names = texts("Bitmap 'channel_names'", channel_names)
        count = len(fixed) if fixed is not None else (integer("Bitmap 'channel_count'", channel_count, 0) or len(names))
        if fixed is None and count < 1:
            raise NativeValueError("Bitmap: a multi_channel image needs channel_count or channel_names")
        size = integer("Bitmap 'height'", height, 0), integer("Bitmap 'width'", width, 0)
        pixels = np.zeros((*size, count), np.dtype(member("Bitmap 'component_type'", DataType, component_type).name))
        self._setup(pixels, chosen, names, srgb_gamma)

    def _init_array(
        self, data: Any, pixel_format: PixelFormat | str | None = None, channel_names: Sequence[str] | None = None,
        srgb_gamma: bool | None = None,
    ) -> None:  # fmt: skip
        given, data = data, array_of(data)
        if data is None:
            raise TypeError(f"Bitmap: expected a PixelFormat, an array, a tensor or a path, got {type(given).__name__}")
        if data.ndim not in (2, 3) or data.shape[2:] == (0,) or data.dtype.name not in DataType.__members__:
            raise NativeValueError(
                f"Bitmap: expected an array of shape (height, width) or (height, width, channels) of numbers, got shape "
                f"{data.shape} of {data.dtype}"
            )
        _refuse_masked(data)
        native = data.dtype.newbyteorder("=")
        pixels = np.array(data if data.ndim == 3 else data[:, :, None], native, order="C", copy=True)
        count = pixels.shape[2]
        names = texts("Bitmap 'channel_names'", channel_names or ())
        if pixel_format is not None:
            chosen = member("Bitmap 'pixel_format'", PixelFormat, pixel_format)
        else:
            guess = [PixelFormat.y, PixelFormat.ya, PixelFormat.rgb, PixelFormat.rgba]
            chosen = guess[count - 1] if count <= 4 and not names else PixelFormat.multi_channel
        wanted = _CHANNELS.get(chosen)
        if wanted is not None and len(wanted) != count:
            raise NativeValueError(f"Bitmap: {chosen} has {len(wanted)} channels, the array has {count}")
        self._setup(pixels, chosen, names, srgb_gamma)

    def _init_file(self, path: str | os.PathLike[str], format: FileFormat | str = FileFormat.auto) -> None:
        pixels, names, srgb = read_image(os.fspath(path), member("Bitmap 'format'", FileFormat, format))
        known = next((kind for kind, channels in _CHANNELS.items() if channels == names), PixelFormat.multi_channel)
        self._setup(pixels, known, names, srgb)

    def _setup(self, pixels: Array, kind: PixelFormat, names: list[str], srgb_gamma: bool | None) -> None:
        self._pixels = pixels
        self._kind = kind
        self._names = names or list(_CHANNELS.get(kind, ())) or [f"C{i}" for i in range(pixels.shape[2])]
        if len(self._names) != pixels.shape[2]:
            raise NativeValueError(f"Bitmap 'channel_names': {len(self._names)} names for {pixels.shape[2]} channels")
        self.srgb_gamma = pixels.dtype == np.uint8 if srgb_gamma is None else srgb_gamma

    # --- properties
    @property
    def pixel_format(self) -> PixelFormat:
        """What the channels are."""
        return self._kind

    @property
    def component_type(self) -> DataType:
        """Type of a channel."""
        return DataType[self._pixels.dtype.name]

    @property
    def width(self) -> int:
        """In pixels."""
        return self._pixels.shape[1]

    @property
    def height(self) -> int:
        """In pixels."""
        return self._pixels.shape[0]

    @property
    def pixel_count(self) -> int:
        """Width times height."""
        return self.width * self.height

    @property
    def channel_count(self) -> int:
        """Channels of a pixel."""
        return self._pixels.shape[2]

    @property
    def channel_names(self) -> list[str]:
        """Names of the channels, in order."""
        return list(self._names)

    @property
    def bytes_per_pixel(self) -> int:
        """Size of a pixel."""
        return self.channel_count * self._pixels.dtype.itemsize

    @property
    def buffer_size(self) -> int:
        """Size of all pixels, in bytes."""
        return self._pixels.nbytes

    @property
    def pixel_struct(self) -> DataStruct:
        """The channels of a pixel as a record."""
        fields = DataStruct()
        for name in self._names:
            flags = FieldFlags.normalized if self._pixels.dtype.kind in "iu" else FieldFlags.none
            curved = self.srgb_gamma and name != "A"
            fields.append(name, self.component_type, flags | FieldFlags.srgb_gamma if curved else flags)
        return fields

    def facts(self) -> tuple[Any, ...]:
        """All but the pixels."""
        return self._kind, self._pixels.dtype, self._pixels.shape, self._names, self.srgb_gamma

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return (self._pixels if self.channel_count > 1 else self._pixels[:, :, 0]).__array_interface__

    def empty(self) -> bool:
        """Whether there are no pixels."""
        return self._pixels.size == 0

    def has_alpha(self) -> bool:
        """Whether a channel is alpha."""
        return "A" in self._names

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Bitmap) and self.facts() == other.facts()
        return same and np.array_equal(np.asarray(self), np.asarray(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Bitmap(\n  pixel_format = {self._kind.name},\n  component_type = {self.component_type.name},\n"
            f"  width = {self.width},\n  height = {self.height},\n  srgb_gamma = {self.srgb_gamma}\n)"
        )

    def _repr_png_(self) -> bytes | None:
        """For notebooks: with the curve of sRGB; larger ones with pixels left out. None for what is no picture."""
        if self.empty() or self.channel_count > 4 or self._kind == PixelFormat.multi_channel:
            return None
        step = -(-max(self.width, self.height) // _LARGEST)
        shown = self._pixels[::step, ::step]
        kind = PixelFormat.rgb if self._kind == PixelFormat.rg else self._kind
        part = Bitmap(shown, self._kind, srgb_gamma=self.srgb_gamma).convert(kind, DataType.uint8, True)
        return encode_png(part._pixels)

    # --- changes
    def clear(self) -> None:
        """Sets all pixels to zero."""
        self._pixels[...] = 0

    def vflip(self) -> None:
        """Turns the image upside down."""
        self._pixels[...] = self._pixels[::-1].copy()

    def split(self) -> list[tuple[str, Bitmap]]:
        """The parts of a multi_channel image by the prefix of their names ("albedo.R" belongs to "albedo")."""
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(self._names):
            groups.setdefault(name.rpartition(".")[0], []).append(index)
        return [(prefix, self._part(indices)) for prefix, indices in groups.items()]

    def _part(self, indices: list[int]) -> Bitmap:
        names = [self._names[i].rpartition(".")[2] for i in indices]
        known = next((kind for kind, channels in _CHANNELS.items() if channels == names), PixelFormat.multi_channel)
        return Bitmap(self._pixels[:, :, indices], known, names, self.srgb_gamma)

    def convert(
        self, pixel_format: PixelFormat | str | None = None, component_type: DataType | str | None = None,
        srgb_gamma: bool | None = None,
    ) -> Bitmap:  # fmt: skip
        """The image with other channels, numbers or curve. Integers stand for 0 to 1; missing alpha is 1."""
        kind = self._kind if pixel_format is None else member("Bitmap.convert 'pixel_format'", PixelFormat, pixel_format)
        type_ = self.component_type if component_type is None else member("Bitmap.convert 'component_type'", DataType, component_type)
        curve = self.srgb_gamma if srgb_gamma is None else truth("Bitmap.convert 'srgb_gamma'", srgb_gamma)
        if kind == PixelFormat.multi_channel and kind != self._kind:
            raise NativeValueError("convert: multi_channel is not a format to convert to; make Bitmap(array, channel_names=...)")
        if (kind, type_, curve) == (self._kind, self.component_type, self.srgb_gamma):
            return Bitmap(self._pixels, kind, self._names, curve)
        values = self._linear()
        if kind != self._kind:
            values = _with_channels(values, self._names, _CHANNELS[kind])
        names = self._names if kind == self._kind else _CHANNELS[kind]
        if curve:
            colour = [i for i, name in enumerate(names) if name != "A"]
            values[:, :, colour] = to_srgb(values[:, :, colour])
        dtype = np.dtype(type_.name)
        return Bitmap(store(values, dtype, normalized=dtype.kind in "iu"), kind, names, curve)

    def _linear(self) -> Array:
        """The pixels in double, linear in light."""
        values = read_normalized(self._pixels) if self._pixels.dtype.kind in "iu" else self._pixels.astype(np.float64)
        if self.srgb_gamma:
            colour = [i for i, name in enumerate(self._names) if name != "A"]
            values[:, :, colour] = to_linear(values[:, :, colour])
        return values

    @overload
    def resample(
        self, width: int, height: int, filter: Any = None, bc: Any = ..., clamp: tuple[float, float] = ...
    ) -> Bitmap: ...
    @overload
    def resample(
        self, target: Bitmap, filter: Any = None, bc: Any = ..., clamp: tuple[float, float] = ...
    ) -> Bitmap: ...
    def resample(self, *args: Any, **kwargs: Any) -> Bitmap:
        """The image in another size, `resample(width, height, ...)`; or `resample(target, ...)` fills another image.

        filter: TentFilter() and the like; a box if not given. bc: what lies beside the image, horizontally and
        vertically. clamp: range of the result. RuntimeError for integers and for empty images.
        """
        filled = "target" in kwargs or (len(args) > 0 and isinstance(args[0], Bitmap))
        target, columns, rows, filter, bc, clamp = (_into if filled else _sized)(*args, **kwargs)
        if self._pixels.dtype.name not in ("float16", "float32"):
            raise RuntimeError(
                f"resample: pixels must be float16 or float32, got {self.component_type.name}; use convert() first"
            )
        if target is not None and target.component_type != self.component_type:
            raise RuntimeError(
                f"resample: the target has {target.component_type.name}, expected {self.component_type.name} as the image"
            )
        if self.empty() or columns < 1 or rows < 1:
            raise RuntimeError(f"resample: cannot make {columns} x {rows} pixels of {self.width} x {self.height}")
        kernel = BoxFilter() if filter is None else filter
        if not (hasattr(kernel, "radius") and hasattr(kernel, "eval")):
            raise TypeError(f"resample 'filter': expected a filter such as TentFilter(), got {filter!r}")
        sides = _pair("resample 'bc'", bc if isinstance(bc, Iterable) else (bc, bc))
        sides = [member("resample 'bc'", FilterBoundaryCondition, side) for side in sides]
        low, high = (number("resample 'clamp'", bound) for bound in _pair("resample 'clamp'", clamp))
        values = resample_axis(self._pixels.astype(np.float64), 1, columns, kernel, sides[0])
        values = resample_axis(values, 0, rows, kernel, sides[1])
        if (columns, rows) != (self.width, self.height):
            values = np.clip(values, low, high)
        if target is None:
            return Bitmap(values.astype(self._pixels.dtype), self._kind, self._names, self.srgb_gamma)
        if target.channel_count != self.channel_count:
            raise RuntimeError(f"resample: the target has {target.channel_count} channels, expected {self.channel_count}")
        target._pixels[...] = values
        return target

    # --- files
    def write(self, path: str | os.PathLike[str], format: FileFormat | str = FileFormat.auto, quality: int = -1) -> None:
        """Writes a file; its format is that of the name's extension. quality: of jpg 0 to 100, of png compression 0 to 9."""
        chosen, quality = member("Bitmap.write 'format'", FileFormat, format), integer("Bitmap.write 'quality'", quality)
        write_image(file_path("Bitmap.write", path), chosen, self._pixels, self._names, self.srgb_gamma, quality)

    def write_async(
        self, path: str | os.PathLike[str], format: FileFormat | str = FileFormat.auto, quality: int = -1
    ) -> Future[None]:  # fmt: skip
        """The same on another thread, of the pixels as they are now; `result()` of the returned future waits. What fails is
        also logged."""
        copy = Bitmap(self._pixels, self._kind, self._names, self.srgb_gamma)
        pending = _writers.submit(copy.write, path, format, quality)
        pending.add_done_callback(_log_failure)
        return pending

    @staticmethod
    def load_from_file(path: str | os.PathLike[str], format: FileFormat | str = FileFormat.auto) -> Bitmap:
        """`Bitmap(path)`."""
        return Bitmap(file_path("Bitmap.load_from_file", path), format)

    @staticmethod
    def load_from_numpy(
        data: Array, pixel_format: PixelFormat | str | None = None, channel_names: Sequence[str] | None = None,
        srgb_gamma: bool | None = None,
    ) -> Bitmap:  # fmt: skip
        """`Bitmap(data, ...)`."""
        return Bitmap(data, pixel_format, channel_names, srgb_gamma)

    @staticmethod
    def read_multiple(paths: Sequence[str | os.PathLike[str]], format: FileFormat | str = FileFormat.auto) -> list[Bitmap]:
        """Reads several files at once."""
        every = [file_path("Bitmap.read_multiple", path) for path in sequence("Bitmap.read_multiple 'paths'", paths, object)]
        return list(_writers.map(lambda path: Bitmap(path, format), every))


_BESIDE = (FilterBoundaryCondition.clamp, FilterBoundaryCondition.clamp)
_ALL_NUMBERS = (-float("inf"), float("inf"))


def _log_failure(pending: Future[None]) -> None:
    error = None if pending.cancelled() else pending.exception()
    if error is not None:
        logging.getLogger("slangpy").error("write_async: %s", error)


def _sized(width: int, height: int, filter: Any = None, bc: Any = _BESIDE, clamp: Any = _ALL_NUMBERS) -> tuple[Any, ...]:
    """The arguments of `resample(width, height, ...)`."""
    return None, integer("resample 'width'", width), integer("resample 'height'", height), filter, bc, clamp


def _pair(what: str, value: Any) -> Sequence[Any]:
    found = sequence(what, value, object)
    if len(found) != 2:
        raise NativeValueError(f"{what}: expected two values, got {value!r}")
    return found


def _into(target: Bitmap, filter: Any = None, bc: Any = _BESIDE, clamp: Any = _ALL_NUMBERS) -> tuple[Any, ...]:
    """The arguments of `resample(target, ...)`."""
    if not isinstance(target, Bitmap):
        raise TypeError(f"resample: 'target' must be a Bitmap, got {type(target).__name__}")
    return target, target.width, target.height, filter, bc, clamp


def _with_channels(values: Array, names: list[str], wanted: list[str]) -> Array:
    """The channels of another pixel format: Y of R, G and B by luminance, R, G and B of Y, alpha 1."""
    by_name = {name: values[:, :, i] for i, name in enumerate(names)}
    if not set(by_name) & ({"Y", *wanted} if wanted[0] != "Y" else {"Y", "R"}):
        raise NativeValueError(f"convert: none of the channels {names} gives {wanted}; split() the image, or name its channels")
    result = np.zeros((*values.shape[:2], len(wanted)))
    for i, name in enumerate(wanted):
        if name in by_name:
            result[:, :, i] = by_name[name]
        elif name == "A":
            result[:, :, i] = 1.0
        elif name == "Y" and {"R", "G", "B"} <= set(by_name):
            result[:, :, i] = sum(w * by_name[c] for w, c in zip(_LUMINANCE, "RGB", strict=True))
        elif name == "Y" and "R" in by_name:
            result[:, :, i] = by_name["R"]
        elif "Y" in by_name:
            result[:, :, i] = by_name["Y"]
    return result
