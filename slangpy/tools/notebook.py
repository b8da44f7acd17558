"""`%load_ext slangpy`: cells of Slang in notebooks."""

from __future__ import annotations

import argparse
import importlib
import shlex
import warnings
from typing import Any

from ..compiler.cache import digest
from ..device import Device, create_device, current
from ..errors import SlangWarning
from ..module import Module

_USAGE = "%%slang NAME [--device VARIABLE] [--convert none|safe|any]"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(f"%%slang: {message}; usage: {_USAGE}")


def _options(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%slang", add_help=False)
    parser.add_argument("name")
    parser.add_argument("--device", default="")
    parser.add_argument("--convert", default="none", choices=("none", "safe", "any"))
    options = parser.parse_args(shlex.split(line))
    if not options.name.isidentifier():
        raise ValueError(f"%%slang: {options.name!r} is not a valid name of a variable; usage: {_USAGE}")
    return options


class SlangCells:
    """The magic of one interactive shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._device: Device | None = None  # opened here, where the notebook has opened none

    def run(self, line: str, cell: str) -> None:
        """A cell of Slang becomes the module NAME, a variable of the notebook; running it again replaces the module.

        --device: variable that holds the device; else the notebook's newest, or a new one.
        """
        options = _options(line)
        device = self._find_device(options.device)
        # The first line of the cell is the magic's: messages count as the notebook does.
        module = Module.load_from_source(device, options.name, "\n" + cell, {"convert": options.convert})
        module._compiled
        self._shell.user_ns[options.name] = module
        self._warn_importers(module)

    def _warn_importers(self, module: Module) -> None:
        """Modules of the notebook that were made of other code of this name."""
        own = digest(module._source)
        outdated = [
            name
            for name, other in self._shell.user_ns.items()
            if isinstance(other, Module) and other.device is module.device and name.isidentifier() and other is not module
            and dict((other._manifest or {}).get("texts", ())).get(module.name, own) != own
        ]  # fmt: skip
        if outdated:
            warnings.warn(
                f"%%slang {module.name}: {', '.join(outdated)} imported its earlier code and goes on with that; run the cell "
                "that makes it again",
                SlangWarning,
                stacklevel=2,
            )

    def _find_device(self, name: str) -> Device:
        if name:
            device = self._shell.user_ns.get(name)
            if not isinstance(device, Device):
                raise ValueError(f"%%slang: '{name}' is not a device, but a {type(device).__name__}")
            return device
        device = current.top()
        if device is None or device.is_closed:
            device = self._device = self._device if self._device and not self._device.is_closed else create_device()
        return device


def load_ipython_extension(shell: Any) -> None:
    shell.register_magic_function(SlangCells(shell).run, "cell", "slang")
    _complete_members()


def _complete_members() -> None:
    """IPython completes below attributes of classes that have `__getattr__` only if it knows that this does no harm."""
    try:
        guarded: Any = importlib.import_module("IPython.core.guarded_eval")
    except ImportError:  # IPython before 8.8 completes by `dir` alone
        return
    policy = guarded.EVALUATION_POLICIES.get("limited")
    known = getattr(policy, "allowed_getattr_external", None)
    if isinstance(known, set):  # other versions of IPython may have another way
        known |= {("slangpy", "Module"), ("slangpy", "Struct")}


def unload_ipython_extension(shell: Any) -> None:
    shell.magics_manager.magics["cell"].pop("slang", None)


__all__ = ["SlangCells", "load_ipython_extension", "unload_ipython_extension"]
