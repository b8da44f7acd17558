"""Modules: Slang source on a device, and the names in it (spec/calls.md section 1)."""

from __future__ import annotations

import itertools
import logging
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from .cache import cache_of, digest
from .call import compile as compile_stage
from .call.text import import_statement
from .function import FunctionCore, FunctionNode
from .reflection import SlangProgramLayout, SlangType
from .reload import register, watch
from .struct import Struct

if TYPE_CHECKING:
    from ._native import Device

_OPTIONS = {"strict_broadcasting": False, "convert": "none", "defer_target_compilation": True}
_lock = threading.RLock()


class KernelStore:
    """Kernels of one module by generated source."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.kernels: dict[Any, Any] = {}


class LoadedModule:
    """What the compiler made of a module: its session, the composed modules, and their layout."""

    def __init__(self, device: Any, main: Any, linked: list[Any], store: KernelStore) -> None:
        self.device = device
        self.main = main
        self.session = main.session
        self.modules = [main, *linked]
        self.kernels = store.kernels
        self.import_names = [m.name for m in [main, *linked]]
        self._layout: Any = None
        self._lookup: dict[str, Any] = {}

    @property
    def layout(self) -> Any:
        """Native layout over the module, our library and all linked modules."""
        if self._layout is None:
            compile_stage.load_library(self.session)
            name = "_spy_scope_" + digest(*self.import_names)[:16]
            imports = ["slangpy", *self.import_names]
            text = "\n".join(f"__exported {import_statement(n)}" for n in imports)
            scope = self.session.load_module_from_source(name, text, f"{name} (generated)")
            self._scope = scope
            self._layout = scope.layout
        return self._layout

    def find_element_layout(self, type_: SlangType) -> Any:
        return self.layout.element_layout(type_.type_reflection)


def _session(device: Any, link: Any) -> Any:
    """The compiler session for a new module: that of a module it is linked with, else one of the device's."""
    for item in link:
        linked = item.loaded.main if isinstance(item, Module) else item
        if isinstance(item, Module) or linked.name in linked.session.__dict__.get("_sources", {}):
            return linked.session
    state = device.__dict__
    session = state.get("_state_functional_session")
    if session is None:
        session = state["_state_functional_session"] = new_session(device)
    # One session for all: types that pass from one to another (a tensor's, say) are remembered there after theirs has
    # gone, and Slang then reads freed memory. So the compiler's share of a module stays until the device closes.
    return session


def new_session(device: Any) -> Any:
    """A compiler session with the device's options and our library loaded."""
    from .session import SlangOptimizationLevel, create_session

    options = dict(device.__dict__["_state_desc"].compiler_options or {})
    options.setdefault(
        "optimization", SlangOptimizationLevel.high
    )  # level 1 gives SPIR-V that fails validation (Slang 2026.12)
    options.setdefault("disable_warnings", ["41012"])
    session = create_session(device, options)
    compile_stage.load_library(session)
    return session


def _include_paths(device: Any) -> list[str]:
    options = dict(device.__dict__["_state_desc"].compiler_options or {})
    return [os.fspath(p) for p in options.get("include_paths", [])]


class Module:
    """A Slang module on a device. Its functions and types are attributes: `module.f(...)`, `module.Type`."""

    def __init__(self, slang_module: Any, options: dict[str, Any] | None = None, link: Any = ()) -> None:
        device = getattr(slang_module.session, "device", None)
        if device is None:
            raise ValueError("Module: the module's session belongs to no device; load it with device.load_module()")
        self._setup(device, slang_module.name, None, "", options, link)
        self._slang_module = slang_module

    def _setup(self, device: Any, name: str, path: Path | None, source: str, options: Any, link: Any) -> None:
        self.name = name
        self.device: Device = device
        self._path = path
        self._source = source
        self.options = _check_options(options)
        self.link = list(link or ())
        self.logger: Any = logging.getLogger("slangpy")
        self._slang_module: Any = None
        self._loaded: LoadedModule | None = None
        self._names: dict[str, Any] = {}
        self._tables: dict[Any, Any] = {}
        self._layout = SlangProgramLayout(lambda: self.loaded.layout)
        self._content_key: str | None = None
        self._manifest: dict[str, Any] | None = None
        self._stamps: dict[str, Any] = {}
        self.kernel_store = KernelStore(device)
        if source:
            _texts(device).setdefault(name, source)
        register(self)

    # --- construction
    @staticmethod
    def load_from_file(device: Any, path: str | os.PathLike[str], options: Any = None, link: Any = ()) -> Module:
        """Loads a `.slang` file: absolute, or relative to an include path or the working directory.

        Nothing is compiled before it is needed. Raises SlangCompileError when the file does not exist or, once it
        is compiled, for errors in it.
        """
        module = Module.__new__(Module)
        found = _find_file(device, os.fspath(path))
        module._setup(device, found.stem, found, "", options, link)
        if module._load_manifest() is None:
            module.loaded
        return module

    @staticmethod
    def load_from_source(device: Any, name: str, source: str, options: Any = None, link: Any = ()) -> Module:
        """Makes a module from text; `name` is its name in messages and for `import`."""
        module = Module.__new__(Module)
        module._setup(device, name, None, source, options, link)
        if module._load_manifest() is None:
            module.loaded
        return module

    @staticmethod
    def load_from_module(device: Any, slang_module: Any, options: Any = None, link: Any = ()) -> Module:
        """Wraps a module that `device.load_module(...)` gave."""
        del device
        return Module(slang_module, options, link)

    # --- compiler side
    @property
    def loaded(self) -> LoadedModule:
        """The compiled module; loads the compiler when it must."""
        if self._loaded is None:
            with _lock:
                if self._loaded is None:
                    self._loaded = self._load()
        return self._loaded

    def _load(self) -> LoadedModule:
        if self._slang_module is None:
            self._slang_module = self.load_in(_session(self.device, self.link))
        main = self._slang_module
        linked = []
        for item in self.link:
            other = item.loaded.main if isinstance(item, Module) else item
            if isinstance(item, Module) and other.session is not main.session:
                other = item.load_in(main.session)
            linked.append(other)
        loaded = LoadedModule(self.device, main, linked, self.kernel_store)
        self._write_manifest(main)
        return loaded

    def load_in(self, session: Any) -> Any:
        """The module's source as it is now, compiled in a session."""
        if _texts(self.device):
            paths = [path for path, _ in self._manifest["files"]] if self._manifest is not None else []
            paths += [str(self._path)] if self._path is not None else []
            files = [Path(path).read_text("utf-8", "replace") for path in paths if os.path.exists(path)]
            _load_texts(self.device, session, self.name, "\n".join([self._source, *files]))
        if self._path is not None:
            return _load_path(session, self._path)
        if self._source:
            return _load_source(session, self.name, self._source)
        return self._slang_module

    def is_outdated(self) -> bool:
        """Whether a file of the module differs from what was compiled."""
        record = self._manifest
        return record is not None and any(_file_hash(path) != expected for path, expected in record["files"])

    def accept_files(self) -> None:
        """Takes the files as they are for known, without compiling them (they do not compile)."""
        if self._manifest is not None:
            self._manifest["files"] = [(path, _file_hash(path)) for path, _ in self._manifest["files"]]

    def replace(self, main: Any) -> None:
        """Puts new code in the place of the old; nodes, structs and tensors stay usable."""
        self.on_hot_reload()
        self._slang_module = main
        self.loaded

    @property
    def device_module(self) -> Any:
        return self.loaded.main

    @property
    def session(self) -> Any:
        return self.loaded.session

    @property
    def layout(self) -> SlangProgramLayout:
        return self._layout

    # --- content, for the disk cache
    @property
    def cacheable(self) -> bool:
        return self._path is not None or bool(self._source)

    def _manifest_key(self) -> str:
        where = str(self._path) if self._path is not None else "source:" + self.name
        links = [m._manifest_key() if isinstance(m, Module) else repr(m) for m in self.link]
        return digest(where, self._source, repr(_include_paths(self.device)), compile_stage.library_hash(), *links)

    def _load_manifest(self) -> dict[str, Any] | None:
        """Names and dependencies as an earlier process found them; None when a file has changed since."""
        if not all(isinstance(m, Module) for m in self.link):
            return None
        record = cache_of(self.device, "module_cache").read("manifest", self._manifest_key())
        if record is None:
            return None
        for path, expected in record["files"]:
            if _file_hash(path) != expected:
                return None
        if any(os.path.exists(path) for path in record["missing"]):
            return None
        if any(digest(_texts(self.device).get(name, "")) != expected for name, expected in record.get("texts", ())):
            return None
        self._manifest = record
        watch(self.device, [path for path, _ in record["files"]])
        return record

    def _write_manifest(self, main: Any) -> None:
        files = [p for p in dict.fromkeys(main.dependencies) if os.path.isabs(p) and os.path.exists(p)]
        if self._path is not None and str(self._path) not in files:
            files.append(str(self._path))
        known = self._manifest or {"names": {}}
        self._manifest = {
            "files": [(p, _file_hash(p)) for p in files],
            "missing": [],
            "texts": [
                (n, digest(text))
                for n, text in _texts(self.device).items()
                if n in main.dependencies and n != self.name
            ],
            "names": known["names"],
            "module_name": main.name,
        }
        self._content_key = None
        watch(self.device, files)
        cache_of(self.device, "module_cache").write("manifest", self._manifest_key(), self._manifest)

    @property
    def content_key(self) -> str:
        """Hash of all source that decides what this module means."""
        if self._content_key is None:
            if self._manifest is None:
                self.loaded
            record = self._manifest
            assert record is not None
            links = [m.content_key if isinstance(m, Module) else repr(m) for m in self.link]
            hashes = [h for _, h in (*record["files"], *record.get("texts", ()))]
            self._content_key = digest(self.name, self._source, repr(hashes), *links)
        return self._content_key

    def type_from_layout(self, name: str, layout: Any) -> SlangType:
        """A type as a plan on disk names it; asks the compiler only when more than its layout is wanted."""
        return SlangType(name, layout, self._layout)

    # --- names
    def __getitem__(self, name: str) -> Any:
        found = self._names.get(name)
        if found is None:
            found = self._look_up(name)
            if found is None:
                raise AttributeError(self._missing(name))
            self._names[name] = found
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_repr_", "_ipython_")) or "_names" not in self.__dict__:
            raise AttributeError(name)
        found = self[name]
        self.__dict__[name] = found  # from now on a plain attribute, which torch.compile can follow
        return found

    def _missing(self, name: str) -> str:
        import difflib

        names = [child.name for child in self.loaded.main.module_decl.children if child.name]
        close = difflib.get_close_matches(name, names, 3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        return f"Module '{self.name}' has no function or type named '{name}'{hint}"

    def _look_up(self, name: str) -> Any:
        record = self._manifest
        if self._loaded is None and record is not None and name in record["names"]:
            kind = record["names"][name]
            if kind == "function":
                return FunctionNode.of(self, FunctionCore(self, name))
        reflection = self._layout.find_function_by_name(name)
        if reflection is not None:
            self._remember(name, "function")
            return FunctionNode.of(self, FunctionCore(self, name, reflection))
        type_ = self._layout.find_type_by_name(name)
        return Struct(self, type_) if type_ is not None else None

    def _remember(self, name: str, kind: str) -> None:
        record = self._manifest
        if record is not None and name not in record["names"]:
            record["names"][name] = kind
            cache_of(self.device, "module_cache").write("manifest", self._manifest_key(), record)

    def find_struct(self, name: str) -> Struct | None:
        """The type of that name, or None."""
        type_ = self._layout.find_type_by_name(name)
        return Struct(self, type_) if type_ is not None else None

    def require_struct(self, name: str) -> Struct:
        found = self.find_struct(name)
        if found is None:
            raise ValueError(f"Could not find struct '{name}'")
        return found

    def find_function(self, name: str) -> FunctionNode | None:
        """The function of that name, or None."""
        reflection = self._layout.find_function_by_name(name)
        return FunctionNode.of(self, FunctionCore(self, name, reflection)) if reflection is not None else None

    def require_function(self, name: str) -> FunctionNode:
        found = self.find_function(name)
        if found is None:
            raise ValueError(f"Could not find function '{name}'")
        return found

    def find_function_in_struct(self, struct: Struct | str, name: str) -> FunctionNode | None:
        """The method of a struct, or None."""
        owner = struct if isinstance(struct, Struct) else self.find_struct(struct)
        return None if owner is None else owner.find_method(name)

    def plan_table(self, key: Any) -> Any:
        """Plans of one function with one set of options, shared by all equal nodes."""
        table = self._tables.get(key)
        if table is None:
            table = self._tables.setdefault(key, _native.PlanTable())
        return table

    def on_hot_reload(self) -> None:
        """Drops everything that was cached from the layout; nodes and structs look themselves up again."""
        with _lock:
            if self._path is not None or self._source:
                self._slang_module = None
            self._loaded = None
            self._manifest = None
            self._content_key = None
            self._layout._types.clear()
            self.kernel_store = KernelStore(self.device)
            for table in self._tables.values():
                table.clear()

    def __repr__(self) -> str:
        return f"Module(name='{self.name}', linked_modules={len(self.link)})"

    def __dir__(self) -> list[str]:
        names = [child.name for child in self.loaded.main.module_decl.children if child.name]
        return sorted({*super().__dir__(), *names})


def _texts(device: Any) -> dict[str, str]:
    """Sources of modules made of text by the name that `import` knows them by: the first of each name."""
    return device.__dict__.setdefault("_state_texts", {})


def _load_texts(device: Any, session: Any, name: str, text: str) -> None:
    """Loads the modules made of text that a module may import: a known manifest had spared them the compiler."""
    words = set(re.findall(r"\w+", text))
    for other, source in _texts(device).items():
        if other != name and other in words and other not in session.__dict__.get("_sources", {}):
            _load_texts(device, session, other, source)
            _load_source(session, other, source)


def _check_options(options: Any) -> dict[str, Any]:
    given = dict(options or {})
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"unknown module option {unknown[0]!r}; the options are {', '.join(sorted(_OPTIONS))}")
    merged = {**_OPTIONS, **given}
    if merged["convert"] not in ("none", "safe", "any"):
        raise ValueError(f"option convert must be 'none', 'safe' or 'any', got {merged['convert']!r}")
    return merged


def _find_file(device: Any, name: str) -> Path:
    from .errors import SlangCompileError

    names = [name] if name.endswith(".slang") else [name + ".slang", name]
    folders = [""] if os.path.isabs(name) else [*_include_paths(device), os.getcwd()]
    for folder in folders:
        for candidate in names:
            path = Path(folder, candidate)
            if path.is_file():
                return path.resolve()
    tried = ", ".join(str(Path(f)) for f in folders if f) or name
    raise SlangCompileError(f'Failed to load slang module "{name}": no such file (looked in {tried})')


def _file_hash(path: str) -> str:
    try:
        return digest(Path(path).read_bytes())
    except OSError:
        return ""


_attempts = itertools.count(1)


def _load_path(session: Any, path: Path) -> Any:
    """Loads a file. Slang keeps what it has of a file that did not compile, so another attempt takes another name."""
    from .errors import SlangCompileError

    failed = session.__dict__.setdefault("_failed_paths", set())
    if path not in failed:
        try:
            return session.load_module(str(path))
        except SlangCompileError:
            failed.add(path)
            raise
    source = path.read_text(encoding="utf-8")
    stamp = f"{digest(source)[:12]}_{next(_attempts)}"
    return session.load_module_from_source(f"{path.stem}_{stamp}", source, f"{path.with_suffix('')}_{stamp}.slang")


def _load_source(session: Any, name: str, source: str) -> Any:
    """Loads text under its name; a different text, or one that did not compile before, gets a name of its own."""
    from .errors import SlangCompileError

    known = session.__dict__.setdefault("_sources", {})
    failed = session.__dict__.setdefault("_failed_sources", set())
    stamp = digest(source)[:12]
    if (name, stamp) in failed:
        stamp = f"{stamp}_{next(_attempts)}"
    elif known.setdefault(name, source) == source:
        try:
            return session.load_module_from_source(name, source, name)
        except Exception:
            failed.add((name, stamp))
            raise
    # Slang knows modules by name and by path, so both must be new; the path is what messages show.
    try:
        return session.load_module_from_source(f"{name}_{stamp}", source, f"{name} ({stamp})")
    except SlangCompileError as error:
        failed.add((name, digest(source)[:12]))
        raise SlangCompileError(str(error).replace(f"{name}_{stamp}", name)) from None
