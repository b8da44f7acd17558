"""Variables of modules that live as long as their thread: `static`, not constant, and written somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .sources import end_of, without_comments

_STATIC = re.compile(r"\bstatic\b")
_CONSTANT = re.compile(r"\b(?:const|let|groupshared)\b")
_IN_MACRO = re.compile(r"^[^\S\n]*#[^\S\n]*define\b[^\n]*\bstatic\b(?!\s+const\b)", re.MULTILINE)
_CONTINUED = re.compile(r"\\\r?\n")
_MODIFIERS = re.compile(r"(?:[A-Za-z]\w*[^\S\n]+)*$")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*$")
_TYPE_OF_VAR = re.compile(r"(?<!:):(?!:).*$", re.DOTALL)
_PART = re.compile(r"\s*(?:(?:\.|->)\s*[A-Za-z_]\w*|\[)")
_WRITES = re.compile(r"\s*(?:(?:<<|>>|[-+*/%&|^])?=(?!=)|\+\+|--)")
_SCOPES = r"\s*(?:\w+\s*(?:\.|::)\s*)*$"
_WRITTEN_BEFORE = re.compile(r"(?:\+\+|--|(?<!&)&)\s*\(*" + _SCOPES)
_PASSED_BEFORE = re.compile(r"[(,]" + _SCOPES)
_CALLED = re.compile(r"(\w+)\s*(?:<[^<>;{}]*>\s*)?$")
_ONLY_READS = re.compile(
    r"(?:float|int|uint|half|double|bool|vector|matrix)\w*|if|while|for|return|switch|abs|all|any|ceil|clamp|cos|cross|dot|exp|"
    r"floor|isnan|length|lerp|log|max|min|mul|normalize|pow|printf?|rsqrt|saturate|sin|sqrt|step|tan|tanh"
)
"""What writes none of its arguments."""
_LIBRARY = re.compile(r"\bset_print_enabled\b")
"""Functions of the Slang library that write variables of their thread."""


def keeps_statics(text: str) -> bool:
    """Whether code has such variables. It errs towards True: what is passed to a function counts as written."""
    if _LIBRARY.search(text):
        return True
    if "static" not in text:
        return False
    text = _CONTINUED.sub(" ", without_comments(text))
    if _IN_MACRO.search(text):
        return True
    found = list(_variables(text))
    if not found:
        return False
    declared = {at for _, at in found}
    uses = re.finditer(rf"\b(?:{'|'.join({name for name, _ in found})})\b", text)
    return any(use.start() not in declared and _is_written(text, use.start(), use.end()) for use in uses)


def _variables(text: str) -> Iterator[tuple[str, int]]:
    """Names of the variables that are declared static and not constant, and where they stand there."""
    for found in _STATIC.finditer(text):
        modifiers = _MODIFIERS.search(text, text.rfind("\n", 0, found.start()) + 1, found.start())
        begin, is_first = found.end(), True
        while modifiers is not None and not _CONSTANT.search(modifiers[0]):
            at = _end(text, begin, ",;={}()")
            declared = _TYPE_OF_VAR.sub("", text[begin:at])
            is_variable = text[at : at + 1] in (",", ";", "=") and not re.search(r"\boperator\b", declared)
            if not is_variable or (is_first and _CONSTANT.search(declared)):
                break
            name = _NAME.search(_without_sizes(declared))
            if name is not None:
                yield name[1], begin + name.start(1)
            at = _end(text, at, ",;") if text[at] == "=" else at
            if text[at : at + 1] != ",":
                break
            begin, is_first = at + 1, False


def _end(text: str, at: int, signs: str) -> int:
    """The first of some signs outside of brackets that are none of them."""
    while at < len(text) and text[at] not in signs:
        opens = "([{" if "(" not in signs else "<["
        end = end_of(text, at) if text[at] in opens else -1
        at = end if end > 0 else at + 1
    return at


def _without_sizes(text: str) -> str:
    """A declared name without the sizes of an array behind it."""
    text = text.rstrip()
    while text.endswith("]"):
        depth, at = 0, len(text)
        while at > 0:
            at -= 1
            depth += (text[at] == "]") - (text[at] == "[")
            if depth == 0:
                break
        text = text[:at].rstrip()
    return text


def _is_written(text: str, begin: int, end: int) -> bool:
    """Whether code that uses a variable may write it."""
    near = max(begin - 200, 0)
    if _WRITTEN_BEFORE.search(text, near, begin):
        return True
    is_part = False
    while found := _PART.match(text, end):
        is_part = True
        end = max(end_of(text, found.end() - 1), found.end()) if found[0].endswith("[") else found.end()
    if _WRITES.match(text, end):
        return True
    after = text[end : end + 80].lstrip()[:1]
    if after == "(" and is_part:
        return True  # a method
    passed = _PASSED_BEFORE.search(text, near, begin)
    return passed is not None and after in (",", ")") and not _only_reads(text, passed.start())


def _only_reads(text: str, at: int) -> bool:
    """Whether what is given the argument behind the bracket or comma at `at` writes none."""
    depth = 0
    while at >= 0:
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth < 0:
            break
        at -= 1
    called = _CALLED.search(text, max(at - 80, 0), max(at, 0))
    return called is not None and _ONLY_READS.fullmatch(called[1]) is not None


__all__ = ["keeps_statics"]
