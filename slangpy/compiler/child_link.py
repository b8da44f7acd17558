"""Kernels of second derivatives are compiled by another process: Slang 2026.12 may end it, and takes the sources
changed (slang/rewrite/rules/inline.cpp), which would double the compiler's memory in the process of the user."""

from __future__ import annotations

import marshal
import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .. import _native
from ..base import libslang
from ..errors import SlangCompileError
from .cache import digest
from .child import Child, ChildDiedError, serve
from .generated import generated_name, load_generated, with_bounds
from .library import library_blob, load_blob, loaded_parts
from .modules.files import load_text_modules, text_modules
from .options import session_options
from .session import session_values

TIMEOUT = 120.0
"""Seconds that the compiler may take."""
_child = Child("from slangpy.compiler.child_link import serve_links; serve_links()")


class ChildLink:
    """Links generated modules against a module, its differentiable functions inlined before they are differentiated."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def link(self, program: Any, name: str, source: str, conformances: Any) -> tuple[bytes, Any]:
        """Target code and layout. NotImplementedError where the compiler refuses it, dies, or takes too long."""
        answer = self._ask(name, self._request(program, name, source, conformances))
        if "error" in answer:  # gradients did compile
            raise _unavailable(name, f"the Slang compiler refuses it:\n{answer['error']}")
        code = with_bounds(program.device, source, answer["code"])
        return code, _native.PlainProgramLayout.deserialize(answer["layout"])

    def _request(self, program: Any, name: str, source: str, conformances: Any) -> dict[str, Any]:
        device, module = program.device, self._module
        modules = [module, *module.link]
        if any(not getattr(item, "_cacheable", False) for item in modules):
            raise _unavailable(name, "it is linked with a module that has no file and no text")
        target, values = session_values(device, session_options(device))
        texts = {other: text_modules(device)[other] for item in modules for other in _text_modules_of(item)}
        sources = [
            (known, str(item._path or ""), item._source) for known, item in zip(program.import_names, modules, strict=True)
        ]
        options = {**values, "inline_differentiable": True}
        numbers, parts = [item._compiled.number for item in modules], loaded_parts(program.session)
        made_of = (numbers, sorted(target.items()), sorted(options.items()), sorted(texts.items()), sources, parts)
        return {
            "key": digest(repr(made_of)),
            "target": target,
            "options": options,
            "library": {part: library_blob(device, part) for part in parts},
            "texts": texts,
            "modules": sources,
            "name": generated_name(name, source, conformances),
            "source": source,
            "conformances": [tuple(item) for item in conformances],
        }

    def _ask(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Sends the request to the process and gives its answer."""
        environment = {**os.environ, "SLANGPY_DISABLE_CACHE": "1", "SLANGPY_COMPILE_IN_PROCESS": "1"}
        try:
            return marshal.loads(_child.ask(pickle.dumps(request), environment, TIMEOUT))
        except TimeoutError:
            raise _unavailable(name, f"the compiler took more than {TIMEOUT:.0f} s") from None
        except OSError as error:
            raise _unavailable(name, f"no process could be started for the compiler ({error})") from None
        except ChildDiedError as error:
            if error.code < 0 or (error.code and not error.output):
                raise _unavailable(name, f"the Slang compiler crashes on it (exit status {error.code})") from None
            if error.code:
                raise RuntimeError(f"{name}: the compiler's process failed:\n{error.output}") from None
            raise _unavailable(name, f"{sys.executable} is no Python that could run the compiler") from None


def _unavailable(name: str, reason: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: second derivatives (create_graph=True) do not reach into this function: {reason}; see docs/gradients.md"
    )


def serve_links() -> None:
    """What the process does: it reads requests, compiles, and writes the answers."""
    serve(lambda request: marshal.dumps(_compiled(pickle.loads(request))))


@dataclass
class _Kept:
    """A session with the modules of a program. key: of these modules as they were loaded, and of the session's options."""

    key: str
    session: Any
    modules: list[Any]
    uses: int = 0

    def is_for(self, key: str) -> bool:
        """Whether it still is what a request asks for: files may have changed, and each kernel makes it larger."""
        return self.key == key and self.uses < MOST_USES and all(_is_unchanged(*file) for file in self.session.read_files.items())


MOST_USES = 64
"""Kernels from one session."""
_kept: list[_Kept] = []
"""The last session, or none."""


def _is_unchanged(path: str, expected: str) -> bool:
    """Whether a file holds what the compiler read."""
    try:
        return libslang._content_hash(Path(path).read_bytes()) == expected
    except OSError:
        return False


def _session_for(request: dict[str, Any]) -> _Kept:
    """The session of the last request, where it is the right one. Loading the modules takes most of the time."""
    if _kept and _kept[0].is_for(request["key"]):
        return _kept[0]
    _kept.clear()
    session: Any = libslang.SlangSession(request["target"], request["options"])
    device = SimpleNamespace(_state=SimpleNamespace(text_modules=request["texts"]))
    for part, blob in request["library"].items():
        if blob is None:
            session.load_module(part)
        else:
            load_blob(session, part, blob)
    modules: list[Any] = []
    for name, path, source in request["modules"]:
        load_text_modules(device, session, name, "\n".join(f"import {text}" for text in request["texts"]))
        modules.append(_load(session, name, path, source))
    return _Kept(request["key"], session, modules)


def _compiled(request: dict[str, Any]) -> dict[str, Any]:
    try:
        kept = _session_for(request)
        session, modules = kept.session, kept.modules
        program = SimpleNamespace(session=session, import_names=[m.name for m in modules], modules=modules)
        module = load_generated(program, request["name"], request["source"])
        conformances = request["conformances"] or None
        linked = session.link([module, *modules], [module.entry_point("_spy_main")], conformances)
        answer = {"code": linked.code(0), "layout": linked.binding_layout(0).serialize()}
    except (SlangCompileError, RuntimeError) as error:
        _kept.clear()
        return {"error": str(error)}
    kept.uses += 1
    _kept[:] = [kept]
    return answer


def _text_modules_of(module: Any) -> list[str]:
    """The modules made of text that a module imports."""
    return [name for name, _ in (module._manifest or {}).get("texts", ())]


def _load(session: Any, name: str, path: str, source: str) -> Any:
    """A module under the name that the generated source imports it by."""
    if not path:
        return session.load_module_from_source(name, source, name)
    if Path(path).stem == name:
        return session.load_module(path)
    # One of two files of one name: loaded by its path first, Slang would know that path twice.
    return session.load_module_from_source(name, Path(path).read_text("utf-8", "replace"), path)


__all__ = ["ChildLink", "serve_links"]
