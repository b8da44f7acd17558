"""Rewrites the kept kernels: `python -m tests.golden`. Read the difference before it is committed."""

from __future__ import annotations

from .cases import KERNELS, all_files, text_of

files = all_files()
changed = 0
for path, (target, name) in files.items():
    text = text_of(target, name)
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        changed += 1
for path in KERNELS.rglob("*.slang"):
    if path not in files:
        path.unlink()
        changed += 1
print(f"{len(files)} files, {changed} changed")
