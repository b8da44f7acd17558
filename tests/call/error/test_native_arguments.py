"""Wrong arguments of native functions: the message names function and argument, what came and what is expected, and is never
the list of signatures that the binding layer writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import slangpy as spy
from slangpy import _native
from slangpy.base.arguments import accepts, explain_arguments

pytestmark = pytest.mark.null
BINDING = "incompatible function arguments"


class Foreign:
    """Of no type that anything takes."""


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """One of each class, by its name, on a device that runs nothing."""
    device = spy.Device(type=spy.DeviceType.null)
    texture = device.create_texture(format=spy.Format.rgba8_unorm, width=4, height=4)
    made = (
        device, device.create_buffer(size=64), texture, texture.create_view({}), device.create_sampler(), device.create_fence(),
        device.create_command_encoder(), device.create_query_pool(spy.QueryType.timestamp, 2), spy.Viewport(), spy.ScissorRect(),
        spy.BufferRange(), spy.Shape(2, 3),
    )  # fmt: skip
    return {cls.__name__: item for item in made for cls in type(item).__mro__}


def functions(objects: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Of the module, the constructors of classes, and the methods of what there is an object of."""
    for name, value in vars(_native).items():
        if type(value).__name__ == "nb_func" or isinstance(value, type):
            yield name, value
        if not isinstance(value, type) or name not in objects:
            continue
        for attribute, member in vars(value).items():
            if type(member).__name__ in ("nb_method", "nb_func") and not attribute.startswith("__"):
                yield f"{name}.{attribute}", getattr(objects[name], attribute)
            if isinstance(member, property) and type(member.fset).__name__ == "nb_method":
                yield f"{name}.{attribute} =", lambda value, o=objects[name], a=attribute: setattr(o, a, value)


def test_none_lists_signatures(objects: dict[str, Any]) -> None:
    tried, unclear = 0, []
    foreign = Foreign()
    for name, function in functions(objects):
        for positional, named in (((foreign,), {}), ((foreign,) * 3, {}), ((None,) * 9, {}), ((), {"nowhere": 1})):
            if name in ("Device.close", "Device.wait") or (not positional and name.endswith("=")):
                continue
            tried += 1
            try:
                function(*positional, **named)
            except Exception as error:
                if BINDING in str(error):
                    unclear.append(f"{name}: {error}")
    assert tried > 800 and not unclear, "\n".join(unclear)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda o: spy.get_format_info(None), "get_format_info 'format': expected a Format or a str, got None"),
        (lambda o: o["Texture"].get_mip_width("a"), "get_mip_width 'mip': expected an int, got 'a'"),
        (lambda o: o["Texture"].get_mip_width(mpi=1), "get_mip_width: unknown argument 'mpi'; did you mean 'mip'?"),
        (lambda o: o["Texture"].get_mip_width(1, mip=1), "get_mip_width 'mip': given twice, by position and by name"),
        (lambda o: o["Texture"].get_mip_width(1, 2, 3), "get_mip_width: takes 1 argument (mip), got 3"),
        (lambda o: o["CommandEncoder"].global_barrier(1), "global_barrier: takes no arguments, got 1"),
        (lambda o: o["CommandEncoder"].push_debug_group(3), "push_debug_group 'name': expected a str, got 3"),
        (lambda o: o["CommandEncoder"].copy_buffer(), "copy_buffer: argument 'dst' is missing; it takes (dst, "),
        (lambda o: spy.NativeHandle("x", 3), "NativeHandle 'type': expected a NativeHandleType, got 'x' (str)"),
    ],
)  # fmt: skip
def test_messages(objects: dict[str, Any], call: Callable[[dict[str, Any]], Any], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(objects)
    assert str(caught.value).startswith(text), str(caught.value)


def test_slang_session() -> None:
    """The functions of the other module, which is loaded at the first compile."""
    session = spy.Device(type=spy.DeviceType.null).slang_session
    with pytest.raises(TypeError) as caught:
        session.load_module(None)  # type: ignore[arg-type]
    assert BINDING not in str(caught.value) and "load_module" in str(caught.value)


@pytest.mark.parametrize(
    "annotation, value, answer",
    [
        ("int", 3, True), ("int", 3.0, False), ("float", 3, True), ("str | None", None, True), ("str | None", 3, False),
        ("bool", 1, False), ("list[int]", (1,), False), ("list[int]", [1], None), ("collections.abc.Callable[[], None]", 3, False),
        ("slangpy._native.Format", 3, False), ("slangpy._native.Format", spy.Format.r8_unorm, True), ("x.Unknown", 3, None),
        ("collections.abc.Sequence[int]", "abc", False), ("object", None, True), ("int | x.Unknown", "a", None),
    ],
)  # fmt: skip
def test_annotations(annotation: str, value: Any, answer: bool | None) -> None:
    assert accepts(annotation, value) is answer


def test_defaults_with_commas_and_brackets() -> None:
    signature = "    1. f(self, a: tuple[int, int] = (1, 2), *, b: str = 'x, (y', c: dict[str, int] | None = None) -> None"
    message = f"f(): {BINDING}. The following argument types are supported:\n{signature}\n\nInvoked with types: X, str"
    assert explain_arguments("X.f", message, [3], ()) == "f 'a': expected a tuple[int, int], got 3"
    assert explain_arguments("X.f", message, [(1, 2), 5], ("b",)) == "f 'b': expected a str, got 5"
