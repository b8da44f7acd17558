"""Small pieces of Slang text that the writers of kernels share."""

from __future__ import annotations


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def product(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def import_statement(module_name: str) -> str:
    """`import` of a module that is known by an identifier or, the second file of one name, by its path."""
    return f"import {module_name};" if module_name.isidentifier() else f'import "{module_name}";'


def slang_name(full_name: str) -> str:
    """A spelling that Slang's parser takes for any type: arrays inside templates included."""
    return full_name


def stored_name(full_name: str) -> str:
    """The type that memory holds for an element type. No target computes with BFloat16, and C++ does not have it."""
    return "_BFloat16" if full_name == "BFloat16" else slang_name(full_name)
