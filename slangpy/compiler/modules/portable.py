"""Records of modules that hold wherever their files lie: paths are kept relative to the folders that a program moves with,
which are the module's own, those of the include path, and, where it matters, the working folder.

A path is kept as the sources ask for it: from which folder, and by what name. What they ask for in a way that cannot be
read off them, or that leads out of these folders, has no such record.
"""

from __future__ import annotations

import os
from typing import Any

from ...base.folders import working_folder
from ..cache import digest
from .inputs import Record, Scan, read, search_folders


def _folders(device: Any, own: str | None) -> dict[str, str]:
    """Folders by the names of places. own: that of the module's file."""
    folders = {str(i): folder for i, folder in enumerate(search_folders(device))}
    return {**folders, "cwd": working_folder(), **({} if own is None else {"module": own})}


def to_portable(device: Any, record: Record, scan: Scan, own: str | None) -> Record | None:
    """None where something is looked for, or found, that does not move with these folders. What other modules of the session
    asked for is left out."""
    leads_out = any(os.path.isabs(word) or ".." in word.split("/") for word in scan.words)
    if leads_out or not record["is_known"] or any(path not in scan.found for path, _ in record["files"]):
        return None
    real_folders = {name: os.path.realpath(folder) for name, folder in _folders(device, own).items()}
    looked, where = [], {}
    for asked, real in record["looked"]:
        if not scan.knows(asked, real):
            continue
        seen = sorted((name, path.replace(os.sep, "/")) for name, path in scan.places.get(asked, ()))
        if not seen or (real and any(os.path.join(real_folders[name], path) != real for name, path in seen)):
            return None  # a symbolic link, say
        looked.append((seen, bool(real)))
        where[real] = seen
    if any(path not in where for path, _ in record["files"]):
        return None
    return {"looked": sorted(looked), "files": sorted((where[path], content) for path, content in record["files"])}


def from_portable(kept: Record, device: Any, own: str | None) -> Record | None:
    """The record as it has to be here; whether it holds is for `still_holds` to say. None: there are fewer folders."""
    moved, folders = kept["moved"], _folders(device, own)
    names = {name for seen, _ in (*moved["looked"], *moved["files"]) for name, _ in seen}
    if not names <= folders.keys():
        return None
    real = {name: os.path.realpath(folder) for name, folder in folders.items()}
    looked = [
        (os.path.join(folders[name], path), os.path.join(real[name], path) if found else "")
        for seen, found in moved["looked"]
        for name, path in seen
    ]
    files = [(os.path.join(real[name], path), content) for seen, content in moved["files"] for name, path in seen]
    cwd = working_folder() if "cwd" in names else ""
    return {**kept, "looked": looked, "files": list(dict.fromkeys(files)), "cwd": cwd}


def portable_key(device: Any, path: Any, name: str, source: str, *parts: str) -> str:
    """Of a module's portable record: of its text, not of where it lies."""
    content = (read(str(path)) or b"") if path is not None else source.encode("utf-8", "surrogatepass")
    kind = "file" if path is not None else "text"
    return digest(kind, name, content, str(len(search_folders(device))), *parts)
