"""Puts failures into classes: one for each message or kind of wrong number."""

from __future__ import annotations

import re
from typing import Any

LIMIT = "limit of the driver"
SAID = (
    (LIMIT, r"functions keep \d+ bytes in variables"),
    ("compiler crash", r"CompilerDiedError|compiler crashed"),
    ("false alarm", r"backward derivative indexed an array beyond its end"),
    ("internal compiler error", r"internal error|E99999|E99997|internal compiler error|unexpected IR opcode"),
    ("bad C++ or SPIR-V code", r"compiling the C\+\+ code of|spirv-val|SPIR-V|nvrtc|NVRTC|compiling the CUDA"),
    ("compile error", r"SlangCompileError|error\[E|Slang rejected|Failed to load slang module"),
)


def class_of(failure: dict[str, Any]) -> str:
    """Such as 'wrong gradient' or 'internal compiler error (fwds)'."""
    kind, stage, text = failure["kind"], failure["stage"], failure["text"]
    if kind.startswith("wrong"):
        return f"{kind} ({stage})" if stage == "torch" else kind
    if kind in ("crash", "hang"):
        return f"{kind} ({stage}, {text})"
    for name, pattern in SAID:
        if re.search(pattern, text):
            return f"{name} ({stage})"
    return f"{kind} ({stage})"


def is_of_memory(failure: dict[str, Any]) -> bool:
    """Whether a GPU that others use, too, had no room."""
    return failure["text"].startswith("MemoryError: out of memory: CUDA failed to launch")


def is_of_size(failure: dict[str, Any]) -> bool:
    """Whether programs may be too many together, and right one by one."""
    return failure["kind"] == "hang" or is_of_memory(failure) or class_of(failure).startswith(LIMIT)


def signature(failure: dict[str, Any]) -> str:
    """What must stay the same while a failing program is made smaller."""
    text = failure["text"] if failure["kind"] == "error" else ""
    codes = sorted(set(re.findall(r"E\d{5}", text)))
    said = re.search(r"(?:error\[E\d+\]|error): ([^\n]*)", text)
    words = re.sub(r"[‘'`\"].*?[’'`\"]|\d+", "", said.group(1) if said else text[:90])
    return f"{class_of(failure)}|{','.join(codes)}|{words.strip()[:80]}"


def suspects(failure: dict[str, Any], count: int) -> list[int]:
    """Programs of a batch that a message names."""
    if failure["program"] >= 0:
        return [failure["program"]]
    text = failure["text"]
    lines = re.findall(r"--> \S+?:(\d+)", text)
    named = {int(k) for k in re.findall(r"\b\w*?_(?:p|f\d+|use\d+|gen\d+|c\d+|S\d+)_(\d+)_\d\b|\bp_(\d+)\b", text) for k in k if k}
    return sorted(k for k in named if k < count) if named or not lines else []
