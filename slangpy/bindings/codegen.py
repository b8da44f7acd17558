"""Slang text that marshalls add to the kernels of their calls."""

from __future__ import annotations


class CodeGenBlock:
    """Lines placed in front of the call structure, and modules that the kernel imports."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: list[str] = []
        self._indent = 0

    def add_import(self, module_name: str) -> None:
        """Imports a Slang module into the generated kernel."""
        if module_name not in self.imports:
            self.imports.append(module_name)

    def append_line(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    def append_statement(self, line: str) -> None:
        self.append_line(line + ";")

    def append_code(self, code: str) -> None:
        """Adds text of several lines."""
        for line in code.splitlines():
            self.append_line(line)

    def empty_line(self) -> None:
        self.lines.append("")

    def begin_block(self, line: str = "") -> None:
        if line:
            self.append_line(line)
        self.append_line("{")
        self._indent += 1

    def end_block(self) -> None:
        if self._indent == 0:
            raise ValueError("end_block without begin_block")
        self._indent -= 1
        self.append_line("}")
