"""What modifiers of functions are given, checked and in plain form."""

from __future__ import annotations

import operator
from typing import Any


def given_globals(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of `set`: the dict, the keywords or the function."""
    if args and kwargs:
        raise ValueError("Set accepts either positional or keyword arguments, not both")
    if len(args) > 1:
        raise ValueError("Set accepts only one positional argument")
    if not args and not kwargs:
        raise ValueError("Set requires at least one argument")
    value = args[0] if args else kwargs
    if not callable(value) and not isinstance(value, dict):
        raise ValueError(f"Set requires a dict, keywords or a function, got {type(value).__name__}")
    return value


def group_size(size: Any) -> tuple[int, int, int]:
    """Of `thread_group_size`."""
    try:
        sizes = tuple(operator.index(s) for s in size)
    except TypeError:
        raise TypeError(f"thread_group_size takes three ints, such as (32, 1, 1), got {size!r}") from None
    if len(sizes) != 3 or any(s < 1 for s in sizes) or sizes[0] * sizes[1] * sizes[2] > 1024:
        raise ValueError(f"thread_group_size takes three positive ints with a product of at most 1024, got {sizes}")
    return sizes


def tile_sizes(shape: Any) -> tuple[int, ...]:
    """Of `call_group_shape`."""
    if isinstance(shape, (str, bytes, dict, set)) or not hasattr(shape, "__iter__"):
        raise ValueError(f"call_group_shape takes a Shape, tuple or list of ints, got {type(shape).__name__}")
    sizes = tuple(shape)
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
        raise ValueError(f"call_group_shape takes ints, got {sizes}")
    return sizes


def stream_number(stream: Any) -> int:
    """Of `cuda_stream`: the address that the handle holds."""
    if getattr(getattr(stream, "type", None), "name", "") != "CUstream":
        raise ValueError(
            f"Expected a CUDA stream handle, got {type(stream).__name__}; write "
            "cuda_stream(NativeHandle.from_cuda_stream(number)), with torch.cuda.current_stream().cuda_stream as number"
        )
    return int(stream.value)


def slang_text(text: Any) -> str:
    """Of `prelude`, with the line ends of Slang."""
    if not isinstance(text, str):
        raise TypeError(f"prelude takes Slang text, got {type(text).__name__}; a file is read by Path(...).read_text()")
    return text.replace("\r\n", "\n")


__all__ = ["given_globals", "group_size", "slang_text", "stream_number", "tile_sizes"]
