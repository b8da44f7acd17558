"""What code was made of: every file that was looked for, found or not, and every text. So the disk cache knows whether
it still is what a compiler would make, and a session whether it still knows the sources as they are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ..._native import is_experimental_import, words_in
from ...base import libslang
from ...base.folders import LIBRARY, absolute, working_folder
from ...errors import SlangCompileError
from ..cache import digest
from ..session_state import state_of
from .files import imports_of, include_paths, text_modules

_LIBRARY = os.path.join(LIBRARY, "")

Record = dict[str, Any]
"""Plain data. `looked`: (path as asked for, real path or ""); `files`: (real path, hash); `texts`: (name, hash) of the
modules made of text; `cwd`: the working folder where it matters, else ""; `text`: what was compiled, where it is not
the module's own."""


def search_folders(device: Any) -> list[str]:
    """The include path; what is relative starts at the working folder, as it does for the compiler."""
    return [absolute(path) for path in include_paths(device)]


def read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _decoded(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")


# --- texts


def text_modules_used(device: Any, own: str, text: str) -> dict[str, str]:
    """The modules made of text that stand as words in a text, or in one that does; without `own`."""
    known = text_modules(device)
    if not known or (len(known) == 1 and own in known):
        return {}
    candidates = dict(known)
    candidates.pop(own, None)
    used: dict[str, str] = {}
    todo = [text]
    while todo:
        part = todo.pop()
        words = words_in(part)
        for name in [n for n in candidates if n in words or (not n.isidentifier() and n in part)]:
            used[name] = candidates.pop(name)
            todo.append(used[name])
    return used


# --- files


def _names(word: str) -> list[str]:
    """The files that an import or include may mean."""
    plain = word.strip('"<>')
    bases = [plain]
    if plain == word:
        bases = [plain.replace(".", "/")]
    bases += [base.replace("_", "-") for base in bases if "_" in base]
    found = []
    for base in bases:
        stem = base.removesuffix(".slang")
        found += [stem + ".slang-module", stem + ".slang"] + ([base] if word.startswith(('"', "<")) else [])
    return list(dict.fromkeys(found))


def users(lookups: list[Any]) -> list[Any]:
    """Lookups outside of our own library."""
    return [item for item in lookups if not item[0].startswith(_LIBRARY)]


class Scan:
    """What sources ask for, as far as it can be read off them, and where it is found.

    sources: (place, folder, text). Places name folders: "module" that of the module's file, "cwd" the working folder, where
    the imports of texts begin, numbers those of the include path.
    """

    def __init__(self, device: Any, sources: list[tuple[str, str, str]]) -> None:
        self.folders = search_folders(device)
        self.asked: dict[str, str] = {}
        self.by_importer: list[tuple[str, list[str]]] = []
        """The folder of who asks, and the candidates of one import."""
        self.found: dict[str, bytes] = {}
        """Real paths of the files that a compiler without a past would take, with their contents."""
        self.places: dict[str, set[tuple[str, str]]] = {}
        """What was asked for as the sources do: place, and path from there."""
        self.words: set[str] = set()
        """What is imported or included, without quotes."""
        self._seen: set[tuple[str, str, str]] = set()
        todo = [(place, folder, "", text) for place, folder, text in sources]
        while todo:
            place, folder, inner, text = todo.pop()
            for word in imports_of(text):
                if (place, inner, word) not in self._seen:
                    self._seen.add((place, inner, word))
                    self.words.add(word.strip('"<>'))
                    todo += self._follow(place, folder, inner, word)

    def knows(self, asked: str, real: str) -> bool:
        """Whether a lookup of the compiler is one of those that the sources ask for, as far as that can be read off them."""
        return asked in self.asked or real in self.found

    def _follow(self, place: str, folder: str, inner: str, word: str) -> list[tuple[str, str, str, str]]:
        origins = [(place, folder, inner), *((str(i), f, "") for i, f in enumerate(self.folders))]
        candidates: list[str] = []
        for name in _names(word):
            for origin, base, within in origins:
                candidate = os.path.join(base, within, name)
                if not candidate.startswith(_LIBRARY):
                    candidates.append(candidate)
                    self.places.setdefault(candidate, set()).add((origin, os.path.join(within, name)))
        candidates = list(dict.fromkeys(candidates))
        self.by_importer.append((os.path.join(folder, inner) if inner else folder, candidates))
        for candidate in candidates:
            if candidate not in self.asked:
                self.asked[candidate] = os.path.realpath(candidate) if os.path.isfile(candidate) else ""
        first = next((c for c in candidates if self.asked[c]), None)
        if first is None:
            return []
        real = self.asked[first]
        if real not in self.found:
            self.found[real] = read(real) or b""
        bases = {origin: base for origin, base, _ in reversed(origins)}
        text = _decoded(self.found[real])
        return [(origin, bases[origin], os.path.dirname(path), text) for origin, path in self.places[first] if origin in bases]


def collect(device: Any, session: Any, since: int, scan: Scan, dependencies: list[str], own: str, text: str) -> Record:
    """The record of what was just compiled. `dependencies`: what Slang says it was made of; `since`: the number of the
    session's last lookup before."""
    real = [os.path.realpath(path) for path in dict.fromkeys(dependencies) if os.path.isabs(path)]
    real = [path for path in real if not path.startswith(_LIBRARY) and os.path.isfile(path)]
    looked: dict[str, str] = {}
    relative = False
    stems = {os.path.basename(path).split(".")[0].replace("_", "-") for path in real}
    fresh = {item[0] for item in session.lookups(since)[1]}
    for asked, path, _, is_relative in session.lookups(0)[1]:
        stem = os.path.basename(asked).split(".")[0].replace("_", "-")
        if not asked.startswith(_LIBRARY) and (asked in fresh or path in real or (not path and stem in stems)):
            looked[asked] = path
            relative |= is_relative
            if path and not path.startswith(_LIBRARY):
                real.append(path)
    for folder, candidates in scan.by_importer:
        if not any(c in fresh and os.path.dirname(c).startswith(folder) for c in candidates):
            looked.update((c, scan.asked[c]) for c in candidates)  # known by name before, so it was not looked for
    relative |= bool(looked) and any(not os.path.isabs(path) for path in include_paths(device))
    in_cwd = any(folder == working_folder() for folder, _ in scan.by_importer)
    record = _fingerprint(device, session, list(dict.fromkeys(real)), own, text)
    return {
        **record, "looked": sorted(looked.items()), "cwd": working_folder() if relative or in_cwd else "",
        "is_known": all(scan.knows(*item) for item in looked.items() if item[1] or item[0] in fresh),
    }  # fmt: skip


def _fingerprint(device: Any, session: Any, real: list[str], own: str, text: str) -> Record:
    """Of files and texts. A file that is not any more what the compiler read has a hash that no file has."""
    known = session.read_files
    files, contents = [], [text]
    for path in real:
        data = read(path)
        expected = known.get(path)
        changed = data is None or (expected is not None and libslang._content_hash(data) != expected)
        files.append((path, digest(data or b"", str(time.time_ns())) if changed else digest(data or b"")))
        contents.append(_decoded(data))
    used = text_modules_used(device, own, "\n".join(contents))
    return {"files": files, "texts": sorted((name, digest(source)) for name, source in used.items())}


def still_holds(device: Any, record: Record, own: str, text: str) -> bool:
    """Whether all is found, or not found, where it was, with the contents it had."""
    if record["cwd"] and record["cwd"] != working_folder():
        return False
    for asked, real in record["looked"]:
        if (os.path.realpath(asked) != real or not os.path.isfile(real)) if real else os.path.isfile(asked):
            return False
    contents = [text]
    for path, expected in record["files"]:
        data = read(path)
        if data is None or digest(data) != expected:
            return False
        if len(text_modules(device)) > 1:
            contents.append(_decoded(data))
    used = text_modules_used(device, own, "\n".join(contents))
    return sorted((name, digest(source)) for name, source in used.items()) == [tuple(t) for t in record["texts"]]


# --- sessions


def scan_of(module: Any) -> tuple[Scan, str]:
    """What a module's source asks for, that of the texts it uses included; and its source."""
    device, path = module.device, module._path
    data = module._source.encode() if path is None else read(str(path)) or b""
    text, here = _decoded(data), working_folder()
    own = ("cwd", here, text) if path is None else ("module", str(path.parent), text)
    scan = Scan(device, [own])
    used = text_modules_used(device, module._stem, "\n".join([text, *map(_decoded, scan.found.values())]))
    if used:
        scan = Scan(device, [own, *(("cwd", here, source) for source in used.values())])
    if path is not None:
        scan.found[str(path)] = data
        scan.places.setdefault(str(path), set()).add(("module", path.name))
    return scan, text


def load_current(module: Any, session: Any, new_session: Any) -> tuple[Any, int, Scan]:
    """A module as its sources are now: in `session`, or in a new one where that knows other sources by their names.
    Returns the compiled module, the session's last lookup before, and what was scanned."""
    scan, text = scan_of(module)
    if is_outdated(module.device, session, scan, module._stem, text):
        session = new_session()
    if state_of(session).users and not session.experimental and any(map(is_experimental_import, scan.words)):
        session = new_session()  # its modules go on without; the new one gets the option as it loads the module
    if state_of(session).uses and _extends(session, module, scan, text):
        session = new_session()
    since = session.lookups(0)[0]
    try:
        main = module._load_in(session)
        if not took_others(scan, session, since, main.dependencies):
            return main, since, scan
    except SlangCompileError:
        known = {os.path.basename(path) for path in session.read_files if path not in scan.found}
        if not known & {os.path.basename(path) for path in scan.found}:
            raise
    session = new_session()  # it may have taken a file of the same name from elsewhere
    since = session.lookups(0)[0]
    return module._load_in(session), since, scan


def _extends(session: Any, module: Any, scan: Scan, text: str) -> bool:
    """Whether a source that a session has not read extends types. Slang asks once for each session which interfaces they have,
    when functions are chosen by types (shader-slang issue 8954)."""
    known = session.read_files
    new = [data for path, data in scan.found.items() if path not in known and not path.startswith(_LIBRARY)]
    texts = [*map(_decoded, new), *([text] if module._path is None else [])]
    return any("extension" in source and "extension" in words_in(source) for source in texts)


def is_outdated(device: Any, session: Any, scan: Scan, own: str, text: str) -> bool:
    """Whether a session knows one of the sources as it was before, so that it would compile the old text."""
    known, failed = session.read_files, state_of(session).failed_paths
    for path, data in scan.found.items():
        if path in known and Path(path) not in failed and libslang._content_hash(data) != known[path]:
            return True
    used = text_modules_used(device, own, "\n".join([text, *map(_decoded, scan.found.values())]))
    given = state_of(session).sources
    if any(given.get(name, source) != source for name, source in used.items()):
        return True
    loaded = set(session.loaded_names)  # files of these names
    return any(name in loaded and name not in given for name in (*used, own) if name in text_modules(device))


def took_others(scan: Scan, session: Any, since: int, dependencies: list[str]) -> bool:
    """Whether a module was made of a file that a session without a past would not have taken: one that it knew by the
    same name."""
    expected = {path for _, path, _, _ in session.lookups(since)[1]} | set(scan.found)
    files = (os.path.realpath(path) for path in dependencies if os.path.isabs(path) and os.path.isfile(path))
    return any(path not in expected and not path.startswith(_LIBRARY) for path in files)
