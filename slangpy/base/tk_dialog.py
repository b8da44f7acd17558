"""A program: one dialog of tkinter. Its arguments: the function of `tkinter.filedialog`, then names and patterns of filters by
turns. It prints the path; it returns 1 where its user chose none, and 2 where Tk does not work."""

from __future__ import annotations

import sys
import tkinter
from tkinter import filedialog


def main() -> int:
    name, *words = sys.argv[1:]
    try:
        root = tkinter.Tk()
    except tkinter.TclError as error:
        print(error, file=sys.stderr)
        return 2
    root.withdraw()
    kinds = [(shown, tuple(patterns.split(";"))) for shown, patterns in zip(words[::2], words[1::2], strict=True)]
    chosen = getattr(filedialog, name)(**({"filetypes": kinds} if kinds else {}))
    if not chosen:
        return 1
    print(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
