"""What a device keeps in Python while it is open."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from slangpy.base.census import Census


@dataclass
class DeviceState:
    """What the layers above have made for one device. Replaced by an empty one when the device is closed."""

    session: Any = None
    """The default session, which users see."""
    sessions: Census = field(default_factory=lambda: Census(32))
    """The default session and those that users made."""
    functional_session: Any = None
    """The session of the newest modules of functional calls."""
    text_modules: dict[str, str] = field(default_factory=dict)
    """Sources of modules made of text by the name that `import` knows them by: the last of each name."""
    modules: Any = None
    """Census of the modules that take part in hot reload."""
    watcher: Any = None
    """Watches source files; None where hot reload is off."""
    reload_errors: WeakKeyDictionary[Any, str] = field(default_factory=WeakKeyDictionary)
    """Why sources as they are now do not compile, by the session or module that goes on with its old code."""
    types: Any = None
    """The built-in types of the device."""
    code_key: str | None = None
    """What of the device decides generated code."""
    reports: list[Any] = field(default_factory=list)
    """What building each kernel cost; see compiler/reports.py."""
    resamplers: dict[str, Any] = field(default_factory=dict)
    """Kernels that make levels of textures, by entry point."""
    ray_builder: Any = None
    """The module that builds hierarchies for rays."""
    networks: dict[Any, Any] = field(default_factory=dict)
    """The modules of small networks, by what these are made of; and that of their optimiser."""
    shower: Any = None
    """The Vulkan device through which a device that cannot show images shows them."""
    printed: str = ""
    """What kernels have printed and is on stdout, and was not yet asked for."""
    profiles: list[Any] = field(default_factory=list)
    """Measurements in progress."""
    caches: dict[str, Any] = field(default_factory=dict)
    """Disk caches by kind."""


class Callbacks:
    """Functions that a device calls on one kind of occasion, by id."""

    def __init__(self, kind: str, ids: Iterator[int]) -> None:
        self._kind = kind
        self._ids = ids
        self.functions: dict[int, Callable[[Any], Any]] = {}

    def __bool__(self) -> bool:
        return bool(self.functions)

    def register(self, function: Callable[[Any], Any]) -> int:
        """An id no other callback of the device has."""
        if not callable(function):
            raise TypeError(f"register_..._callback: 'callback': expected a function of one argument, got {function!r}")
        number = next(self._ids)
        self.functions[number] = function
        return number

    def unregister(self, number: int) -> None:
        """Without effect where none has the id, as in a callback that has unregistered itself."""
        self.functions.pop(number, None)

    def run(self, event: Any) -> None:
        """Calls those that are registered now."""
        for function in list(self.functions.values()):
            function(event)

    def run_all(self, event: Any) -> Exception | None:
        """Calls each that is still registered when its turn comes, whatever the others raise; the first error."""
        failure: Exception | None = None
        for number in list(self.functions):
            function = self.functions.get(number)
            if function is None:
                continue
            try:
                function(event)
            except Exception as error:
                failure = failure or error
        return failure

    def clear(self) -> None:
        self.functions.clear()


class DeviceCallbacks:
    """The callbacks of a device; their ids are counted together."""

    def __init__(self) -> None:
        ids = itertools.count(1)
        self.close = Callbacks("close", ids)
        self.submitted = Callbacks("submitted", ids)
        self.discarded = Callbacks("discarded", ids)
        self.reload = Callbacks("reload", ids)

    def clear(self) -> None:
        for callbacks in (self.close, self.submitted, self.discarded, self.reload):
            callbacks.clear()
