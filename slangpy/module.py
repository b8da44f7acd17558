"""Modules: Slang source on a device, and the names in it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from .base.absent import absent
from .base.folders import file_path, working_folder
from .base.keywords import checked_keywords
from .base.locks import new_rlock
from .base.not_called import not_called
from .base.own_names import own_names
from .base.shared import Shared
from .compiler.cache import cache_of, digest
from .compiler.kernel import check_own_code
from .compiler.modules import inputs as module_inputs, portable
from .compiler.modules.files import (
    check_source,
    file_hash,
    find_file,
    imported_paths,
    load_path,
    load_source,
    load_text_modules,
    naming_folders,
    text_modules,
)
from .compiler.modules.loaded import (
    KernelStore,
    LoadedModule,
    callable_names,
    check_defines,
    checked_links,
    checked_options,
    foreign_links,
    hidden_names,
    new_session,
    public_members,
    session_for,
    warn_of_hidden,
)
from .compiler.modules.reload import register, source_changed, watch
from .compiler.options import options_key
from .compiler.package_files import library_hash, planner_hash
from .compiler.progress import compiling
from .function import FunctionCore, FunctionNode
from .inspection import listing_of
from .plan.declared import instead_of_setting, missing_name
from .reflection import SlangProgramLayout, SlangType
from .struct import Struct

if TYPE_CHECKING:
    from .device import Device

_lock = new_rlock()


@own_names
@not_called("its functions can: module.name(...); module['name<float>'](...) is one of a generic")
class Module(Shared):
    """A Slang module on a device. Its functions and types are attributes: `module.f(...)`, `module.Type`."""

    name: str
    device: Device
    link: list[Any]
    options: dict[str, Any]
    _defines: dict[str, str]
    logger: Any

    def __init__(self, slang_module: Any, options: dict[str, Any] | None = None, link: Any = ()) -> None:
        device = getattr(slang_module.session, "device", None)
        if device is None:
            raise ValueError("Module: the module's session belongs to no device; load it with device.load_module()")
        self._setup(device, slang_module.name, None, "", options, link)
        self._slang_module = slang_module
        warn_of_hidden(self._stem, hidden_names(slang_module, _MEMBERS, public_members(Struct)), 2)

    def _setup(
        self,
        device: Any,
        name: str,
        path: Path | None,
        source: str,
        options: Any,
        link: Any,
        defines: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name  # as the user gave it
        self._stem = name if path is None else path.stem  # what messages and keys say
        if not hasattr(device, "_state"):
            raise TypeError(f"Module '{name}': 'device' must be a Device, got {device!r}; make one with create_device()")
        self.link = checked_links(name, link)
        self._defines = check_defines(defines, self.link)
        self.device = device
        self._path = path
        self._source = source
        self.options = checked_options(options)
        for item in foreign_links(self.link):
            check_own_code(f"Module '{name}': linked module '{item.name}'", device, item)
        self.logger = logging.getLogger("slangpy")
        self._slang_module: Any = None
        self._loaded: LoadedModule | None = None
        self._names: dict[str, Any] = {}
        self._attributes: set[str] = set()  # those of the names that are plain attributes by now
        self._tables: dict[Any, Any] = {}
        self._layout = SlangProgramLayout(lambda: self._compiled.layout, lambda: self._compiled.main.layout, self._follow_compiler)
        self._known_key: str | None = None
        self._manifest: dict[str, Any] | None = None
        self._gathered: Any = None  # the lookups and the scan of a compilation whose manifest is not yet written
        self._seen: dict[str, str] = {}  # hashes of the files when the compiler was last given them
        self._kernel_store = KernelStore(device)
        if source:
            text_modules(device)[name] = source
        register(self)

    # --- construction
    @staticmethod
    @checked_keywords
    def load_from_file(
        device: Any,
        path: str | os.PathLike[str],
        options: Any = None,
        link: Any = (),
        defines: Mapping[str, Any] | None = None,
    ) -> Module:
        """Loads a `.slang` file: absolute, or relative to an include path, the working directory or the folder of the
        Python file that calls. `defines`: macros for it and all that it imports, beside those of the device.

        Nothing is compiled before it is needed. Raises SlangCompileError when the file does not exist or, once it
        is compiled, for errors in it.
        """
        module = Module.__new__(Module)
        name = file_path("load_from_file", path)
        module._setup(device, name, find_file(device, name), "", options, link, defines)
        return module._read()

    @staticmethod
    @checked_keywords
    def load_from_source(
        device: Any,
        name: str,
        source: str,
        options: Any = None,
        link: Any = (),
        defines: Mapping[str, Any] | None = None,
    ) -> Module:
        """Makes a module from text; `name` is its name in messages and for `import`. `defines`: macros for it and all
        that it imports, beside those of the device."""
        check_source(name, source)
        module = Module.__new__(Module)
        module._setup(device, name, None, source or "\n", options, link, defines)  # no text: Module(SlangModule)
        return module._read()

    @staticmethod
    @checked_keywords
    def load_from_module(device: Any, slang_module: Any, options: Any = None, link: Any = ()) -> Module:
        """Wraps a module that `device.load_module(...)` gave."""
        if device is not None:
            check_own_code(f"load_from_module: module '{slang_module.name}'", device, slang_module)
        return Module(slang_module, options, link)

    def _read(self) -> Module:
        """Compiles what no earlier process has."""
        record = self._load_manifest()
        if record is None:
            self._compiled
            record = self._manifest
        warn_of_hidden(self._stem, record["hidden"] if record is not None else (), 4)
        return self

    # --- compiler side
    @property
    def _compiled(self) -> LoadedModule:
        """The compiled module; loads the compiler when it must."""
        self._follow_compiler()
        if self._loaded is None:
            with _lock:
                if self._loaded is None:
                    with compiling(f"loading {self._stem}"), naming_folders(self.device):
                        self._loaded = self._load()
        return self._loaded

    def _follow_compiler(self) -> None:
        """Looks everything up again where another compiler has taken the place of the one that loaded the module: that
        crashed, or went on after Ctrl-C."""
        loaded = self._loaded
        if loaded is not None and loaded.generation != loaded.session.generation:
            self._drop_kernels()

    def _load(self) -> LoadedModule:
        if self._slang_module is None:
            self._note_files()
            self._compile()
        main: Any = self._slang_module
        linked = []
        for item in self.link:
            other = item._compiled.main if isinstance(item, Module) else item
            if isinstance(item, Module) and other.session is not main.session:
                other = item._load_in(main.session)
            linked.append(other)
        loaded = LoadedModule(self.device, main, linked, self._kernel_store)
        self._write_manifest(main)
        return loaded

    def _compile(self) -> None:
        session = session_for(self.device, self.link, self._defines)
        if any(not isinstance(item, Module) for item in self.link):
            self._slang_module = self._load_in(session)  # no other session has that
            return
        main, since, scan = module_inputs.load_current(self, session, lambda: new_session(self.device, self._defines))
        self._slang_module, self._gathered = main, (since, scan)
        if main.session is not session and not self._defines:
            # what is loaded from now on is most likely made of the new sources, too
            self.device._state.functional_session = main.session

    def _load_in(self, session: Any) -> Any:
        """The module's source as it is now, compiled in a session."""
        if text_modules(self.device):
            paths = [path for path, _ in self._manifest["files"]] if self._manifest is not None else []
            paths += [str(self._path)] if self._path is not None else []
            files = [Path(path).read_text("utf-8", "replace") for path in paths if os.path.exists(path)]
            load_text_modules(self.device, session, self._stem, "\n".join([self._source, *files]))
        if self._path is not None:
            return load_path(session, self._path)
        if self._source:
            return load_source(session, self._stem, self._source)
        return self._slang_module

    def _is_outdated(self) -> bool:
        """Whether a file of the module differs from what the compiler was last given."""
        return any(file_hash(path) != known for path, known in self._seen.items())

    def _is_loaded_in(self, session: Any) -> bool:
        """Whether the code in use is of this session."""
        return self._loaded is not None and self._loaded.session is session

    def _note_files(self) -> None:
        """Takes the files as they are for known: the compiler is about to read them."""
        self._seen = {path: file_hash(path) for path in self._seen}

    def _watch_imports(self) -> None:
        """Watches what the sources ask for, found or not: they do not compile, so their dependencies are not known."""
        for path in imported_paths(self.device, self._path) if self._path is not None else ():
            self._seen.setdefault(str(path), file_hash(str(path)))
        watch(self.device, list(self._seen))

    def _replace(self, main: Any) -> None:
        """Puts new code in the place of the old; nodes, structs and tensors stay usable."""
        self.on_hot_reload()
        self._slang_module = main
        self._compiled

    @property
    def device_module(self) -> Any:
        return self._compiled.main

    @property
    def session(self) -> Any:
        return self._compiled.session

    @property
    def layout(self) -> SlangProgramLayout:
        return self._layout

    # --- content, for the disk cache
    @property
    def _cacheable(self) -> bool:
        """Whether all that it is made of is known: nothing is of modules that others loaded."""
        own = self._path is not None or bool(self._source)
        return own and all(isinstance(item, Module) and item._cacheable for item in self.link)

    def _manifest_key(self) -> str:
        where = str(self._path) if self._path is not None else "source:" + self._stem
        return digest(where, self._source, repr(module_inputs.search_folders(self.device)), *self._key_parts())

    def _key_parts(self, anywhere: bool = False) -> list[str]:
        """What the keys of both records of a module hold beside its text and where it lies."""
        links = [m._portable_key() if anywhere else m._manifest_key() for m in self.link if isinstance(m, Module)]
        return [library_hash(), planner_hash(), options_key(self.device), repr(sorted(self._defines.items())), *links]

    def _portable_key(self) -> str:
        return portable.portable_key(self.device, self._path, self._stem, self._source, *self._key_parts(True))

    @property
    def _folder(self) -> str | None:
        return None if self._path is None else str(self._path.parent)

    def _load_manifest(self) -> dict[str, Any] | None:
        """Names and inputs as an earlier process found them; None when an input has changed since."""
        if not self._cacheable:
            return None
        record = self._stored_manifest()
        if record is None or not module_inputs.still_holds(self.device, record, self._stem, self._source):
            kept = cache_of(self.device, "module_cache").read("module", self._portable_key())
            record = None if kept is None else portable.from_portable(kept, self.device, self._folder)
            if record is None or not module_inputs.still_holds(self.device, record, self._stem, self._source):
                return None
        self._manifest = record
        self._seen = dict(record["files"])
        watch(self.device, list(self._seen))
        return record

    def _stored_manifest(self) -> dict[str, Any] | None:
        """What disk has. Where the working folder matters, there is one record for each under the key of the first."""
        cache, key = cache_of(self.device, "module_cache"), self._manifest_key()
        record = cache.read("manifest", key)
        return cache.read("manifest", digest(key, working_folder())) if record is not None and "by_cwd" in record else record

    def _store_manifest(self) -> None:
        record = self._manifest
        if record is None or not self._cacheable:
            return
        cache, key = cache_of(self.device, "module_cache"), self._manifest_key()
        if record["cwd"]:
            cache.write("manifest", key, {"by_cwd": True})
            key = digest(key, record["cwd"])
        cache.write("manifest", key, record)
        if record["moved"] is not None:
            cache.write("module", self._portable_key(), {**record, "looked": (), "files": (), "cwd": ""})

    def _write_manifest(self, main: Any) -> None:
        if self._gathered is None:
            since, scan = main.session.lookups(0)[0], module_inputs.scan_of(self)[0]
        else:
            since, scan = self._gathered
        self._gathered = None
        dependencies = [*main.dependencies, *([str(self._path)] if self._path is not None else [])]
        record = module_inputs.collect(self.device, main.session, since, scan, dependencies, self._stem, self._source)
        record["files"] = [(path, self._hash_compiled(path, known)) for path, known in record["files"]]
        known = self._manifest or {"names": {}}
        moved = portable.to_portable(self.device, record, scan, self._folder)
        hidden = hidden_names(main, _MEMBERS, public_members(Struct))
        self._manifest = {**record, "moved": moved, "names": known["names"], "module_name": main.name, "hidden": hidden}
        self._known_key = None
        self._seen = {path: self._seen.get(path) or found for path, found in record["files"]}
        watch(self.device, list(self._seen))
        self._store_manifest()

    def _hash_compiled(self, path: str, found: str) -> str:
        """Hash of what the compiler read. Where the file was written meanwhile nobody knows, and no hash is equal."""
        return found if self._seen.get(path) in (None, found) else digest(found, str(time.time_ns()))

    @property
    def _content_key(self) -> str:
        """Hash of all that decides what this module means."""
        if self._known_key is None:
            if self._manifest is None:
                self._compiled
            record = self._manifest
            assert record is not None
            links = [m._content_key if isinstance(m, Module) else repr(m) for m in self.link]
            inputs = [sorted(map(tuple, record[name])) for name in ("files", "texts", "looked")]
            if record["moved"] is not None:
                inputs = [sorted(map(tuple, record["texts"])), *(record["moved"][name] for name in ("files", "looked"))]
            where = record["cwd"] if record["moved"] is None else ""
            defines = repr(sorted(self._defines.items()))
            self._known_key = digest(self._stem, self._source, repr(inputs), where, defines, *links)
        return self._known_key

    def _type_from_layout(self, name: str, layout: Any) -> SlangType:
        """A type as a plan on disk names it; asks the compiler only when more than its layout is wanted."""
        return SlangType(name, layout, self._layout)

    # --- names
    __iter__ = None  # names are looked up, not counted
    __contains__ = None

    def __getitem__(self, name: str) -> Any:
        found = self._names.get(name)
        if found is None:
            found = self._look_up(name)
            if found is None and source_changed(self.device):
                found = self._look_up(name)
            if found is None:
                raise absent(lambda: missing_name(self, name))
            self._names[name] = found
        return found

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self), name):  # a property that failed by an AttributeError of its own
            return object.__getattribute__(self, name)
        if name.startswith(("__", "_repr_", "_ipython_")) or "_names" not in self.__dict__:
            raise AttributeError(name)
        found = self[name]
        self._attributes.add(name)
        self.__dict__[name] = found  # from now on a plain attribute, which torch.compile can follow
        return found

    def _look_up(self, name: str) -> Any:
        self._follow_compiler()
        record = self._manifest
        if self._loaded is None and record is not None and name in record["names"]:
            kind = record["names"][name]
            if kind == "function":
                return FunctionNode.of(self, FunctionCore(self, name))
        reflection = self._layout.reflect_function(name)
        if reflection is not None:
            self._remember(name, "function")
            return FunctionNode.of(self, FunctionCore(self, name))
        type_ = self._layout.find_type_by_name(name)
        return Struct(self, type_) if type_ is not None else None

    def _remember(self, name: str, kind: str) -> None:
        record = self._manifest
        if record is not None and name not in record["names"]:
            record["names"][name] = kind
            self._store_manifest()

    def find_struct(self, name: str) -> Struct | None:
        """The type of that name, or None."""
        type_ = self._layout.find_type_by_name(name)
        return Struct(self, type_) if type_ is not None else None

    def require_struct(self, name: str) -> Struct:
        """The struct of that name. ValueError where there is none."""
        found = self.find_struct(name)
        if found is None:
            raise ValueError(f"Could not find struct '{name}'")
        return found

    def find_function(self, name: str) -> FunctionNode | None:
        """The function of that name, or None."""
        reflection = self._layout.reflect_function(name)
        return FunctionNode.of(self, FunctionCore(self, name)) if reflection is not None else None

    def require_function(self, name: str) -> FunctionNode:
        """The function of that name. ValueError where there is none."""
        found = self.find_function(name)
        if found is None:
            raise ValueError(f"Could not find function '{name}'")
        return found

    def find_function_in_struct(self, struct: Struct | str, name: str) -> FunctionNode | None:
        """The method of a struct, or None."""
        owner = struct if isinstance(struct, Struct) else self.find_struct(struct)
        return None if owner is None else owner._find_method(name)

    def _instead_of(self, name: str) -> str:
        """What is to be written in place of `module.name = value`."""
        return instead_of_setting(self, name)

    def _plan_table(self, key: Any) -> Any:
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
            self._drop_kernels()

    def _drop_kernels(self) -> None:
        """Drops what was made of the code, but not the code."""
        with _lock:
            self._loaded = None
            self._manifest = None
            self._known_key = None
            self._layout.reset()
            self._names.clear()
            while self._attributes:  # other threads may look up names meanwhile
                self.__dict__.pop(self._attributes.pop(), None)
            self._kernel_store = KernelStore(self.device)
            for table in list(self._tables.values()):
                table.clear()

    def __repr__(self) -> str:
        return f"Module(name='{self._stem}', linked_modules={len(self.link)})"

    def __str__(self) -> str:
        return "\n".join([f"Module '{self._stem}' on {self.device.info.type.name}", *(f"  {line}" for line in listing_of(self))])

    def __dir__(self) -> list[str]:
        """What users complete: the module's own names, then the public members that it has besides."""
        return list(dict.fromkeys([*self._ipython_key_completions_(), *sorted(_MEMBERS)]))

    def _ipython_key_completions_(self) -> list[str]:
        """Names that can follow `module["`."""
        return sorted({name for name in callable_names(self._compiled.main) if not name.startswith("_spy_")})


_MEMBERS = public_members(Module)
