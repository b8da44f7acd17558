"""What the sources of a module say, from one parse of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...base import libslang
from ..rewrites import define_lines
from .sources import sources_of, texts_of

if TYPE_CHECKING:
    from ..._slang import DerivedSize, FunctionFacts, LimitedLoop, LostShare

_OF_GROUPS = ("groupshared", "barrier", "Barrier")
_OF_LANES = ("wave", "Wave", "Quad", "subgroup", "Subgroup", "Workgroup", "gl_", "cuda")
"""What stands in words, and in front of a capital in words, that show which invocations share a group."""
_MANY_CONDITIONS, _MANY_STATEMENTS = 8, 40
"""How many of them make a function one that should be split where its derivative takes long to compile."""
_GROWTH = "Slang's time for derivatives grows faster than a function's length"
_STATICS = "set_print_enabled"
"""The function of the Slang library that writes a variable of its thread."""
_MENDED = ["aliasing-elements"]
"""The rules after which lost shares are looked for."""


class TextFacts:
    """Of sources, one after the other; each answer is looked for once."""

    def __init__(self, text: str) -> None:
        self._facts = libslang.SourceFacts(text)

    @cached_property
    def words(self) -> frozenset[str]:
        """All names and keywords."""
        return frozenset(self._facts.words())

    @cached_property
    def no_diff_types(self) -> frozenset[str]:
        """Words in the types of parameters and variables that say no_diff."""
        return frozenset(self._facts.no_diff_types())

    @cached_property
    def asks_position(self) -> bool:
        """Whether it may ask CallShapeInfo where it is."""
        return any("CallShapeInfo" in word for word in self.words)

    @cached_property
    def sees_threads(self) -> bool:
        """Whether it may see which invocations share a group."""
        return any(map(_shows_threads, self.words))

    @cached_property
    def keeps_statics(self) -> bool:
        """Whether it has variables that live as long as their thread and may be written. It errs towards True."""
        return _STATICS in self.words or self._facts.keeps_statics()

    @cached_property
    def functions(self) -> tuple[FunctionFacts, ...]:
        """Every function, in order."""
        return tuple(self._facts.functions())

    @cached_property
    def extern_constants(self) -> dict[str, str]:
        """The types of what is `extern static const` by name; the first of each name."""
        return dict(reversed(self._facts.extern_constants()))

    def comments_above(self, line: int, column: int) -> list[str]:
        """The comments of the function or type whose name stands in a line and column (from 1), as written."""
        return self._facts.comments_above(line, column)

    def lost_shares(self, name: str) -> list[LostShare]:
        """The uses of elements in functions of a name of which Slang's reverse derivative may lose a share."""
        return self._facts.lost_shares(name)

    def may_loop(self, name: str) -> bool:
        """Whether functions of a name, or what they name, have a loop that is not unrolled, or no body is there."""
        return self._facts.may_loop(name)

    def unread_functions(self, name: str) -> list[tuple[str, int]]:
        """Functions of a name, and those that they name, that Slang may differentiate and that the parser does not understand,
        each with its line."""
        return self._facts.unread_functions(name)

    def pack_functions(self, name: str) -> list[tuple[str, int]]:
        """The same of those that take a pack of parameters, `expand each T items`."""
        return self._facts.pack_functions(name)

    def largest_derived(self, name: str) -> DerivedSize | None:
        """Of functions of a name, and those that they name, the one with most conditions, else statements, that Slang may
        differentiate."""
        return self._facts.largest_derived(name)

    def longest_loop(self, name: str) -> LimitedLoop | None:
        """Of the loops in functions of a name, and those that they name, that Slang may differentiate, the one with most trips."""
        return self._facts.longest_loop(name)

    def recursive_functions(self, name: str) -> list[tuple[str, int]]:
        """Functions of a name, and those that they name, that call themselves, perhaps by way of others."""
        return self._facts.recursive_functions(name)

    def dependent_defaults(self, name: str) -> list[tuple[str, int]]:
        """Parameters of functions of a name, and fields of types of it, whose default value names a parameter or a field: names,
        and their lines."""
        return self._facts.dependent_defaults(name)

    def reached_words(self, name: str) -> frozenset[str]:
        """The words in functions of a name and in those that they name; none where none has a body."""
        return frozenset(self._facts.reached_words(name))

    def reached_names(self, name: str) -> frozenset[str]:
        """Those of `reached_words` that may name a global: no members, no parameters or local variables."""
        return frozenset(self._facts.reached_names(name))

    def reached_uses(self, name: str, type_: str) -> list[tuple[str, str]]:
        """Uses of a generic type in functions of a name, in those and the types that they name: the text, and the alias that
        stands for it, empty where none does. The type's name alone where only a macro names it."""
        return self._facts.reached_uses(name, type_) if type_ in self.words else []

    def writes_view(self, name: str, index: int, fields: tuple[str, ...]) -> bool:
        """Whether functions of a name may write to a view: their parameter of that index, or a field of it."""
        return not self._facts.view_uses(name, index, fields) <= {"reads", "gradient"}


def _shows_threads(word: str) -> bool:
    if word.endswith("_asm") or any(part in word for part in _OF_GROUPS):
        return True
    return any(word.startswith(begin) and word[len(begin) :][:1].isupper() for begin in _OF_LANES)


def facts_of(module: Any) -> TextFacts | None:
    """Of a module with its imports and the modules linked to it; None where the text of one is not at hand."""
    return None if None in texts_of(module._compiled) else known_facts_of(module._compiled)


def known_facts_of(loaded: Any) -> TextFacts:
    """The same of those texts of a module's code that are at hand; parsed once."""
    found: TextFacts | None = getattr(loaded, "_facts", None)
    if found is None:
        found = loaded._facts = TextFacts("\n".join([*filter(None, texts_of(loaded)), _defines_of(loaded)]))
    return found


def mended_facts_of(loaded: Any) -> TextFacts:
    """The same of the texts in which reads of elements that Slang loses a share of are calls."""
    found: TextFacts | None = getattr(loaded, "_mended_facts", None)
    if found is None:
        texts = [libslang.rewrite_alone(text, _MENDED) for text in filter(None, texts_of(loaded))]
        found = loaded._mended_facts = TextFacts("\n".join([*texts, _defines_of(loaded)]))
    return found


def _defines_of(loaded: Any) -> str:
    """Macros that the session defines, as lines, which follow the texts so that these keep their places."""
    desc = getattr(loaded.session, "_desc", None)  # none: a session of kernels, whose macros are asked for otherwise
    return "" if desc is None else define_lines(desc.compiler_options.defines)


def asks_position(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may ask CallShapeInfo where it is."""
    facts = facts_of(module)
    return facts is None or facts.asks_position or any(TextFacts(text).asks_position for text in preludes)


def sees_threads(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may see which invocations share a group."""
    facts = facts_of(module)
    return facts is None or facts.sees_threads or any(TextFacts(text).sees_threads for text in preludes)


def has_statics(module: Any, preludes: Iterable[str]) -> bool:
    """Whether code of a module or a prelude may see which invocations share a thread, by variables that live as long."""
    facts, added = facts_of(module), "\n".join(preludes)
    if facts is None or facts.keeps_statics:
        return True
    # a prelude may write the variables of the module, so both are asked together
    return bool(added) and TextFacts("\n".join([added, sources_of(module) or ""])).keeps_statics


def may_loop(module: Any, name: str) -> bool:
    """Whether a function, or one that it calls, has a loop that is not unrolled (True if its text is not at hand)."""
    facts = facts_of(module)
    return facts is None or facts.may_loop(name)


def unread_functions(module: Any, name: str) -> list[tuple[str, int]]:
    """Functions that a call of `name` differentiates and that the parser does not understand, with their lines in their own
    sources: nothing is rewritten in them."""
    return _with_own_lines(module, name, TextFacts.unread_functions)


def pack_functions(module: Any, name: str) -> list[tuple[str, int]]:
    """Functions that a call of `name` differentiates and that take a pack of parameters, with their lines in their own sources:
    Slang takes derivatives of what is in a pack for zero."""
    return _with_own_lines(module, name, TextFacts.pack_functions)


def what_to_split(loaded: Any, name: str) -> str:
    """What to tell of a call that differentiates `name` and takes long to compile: the function that is to be split, where one
    is long, and how. loaded: a module's code."""
    found = known_facts_of(loaded).largest_derived(_last_name(name))
    if found is None or (found.conditions <= _MANY_CONDITIONS and found.statements <= _MANY_STATEMENTS):
        return f"{_GROWTH}, most with branches: split long functions"
    ((function, line),) = _own_lines(loaded, [(found.function, found.line)])
    parts = f"{found.statements} statements" + (f" and {found.conditions} conditions" if found.conditions else "")
    some = "a few of its conditions" if found.conditions > _MANY_CONDITIONS else "every ten or so of them"
    return (
        f"{_GROWTH}: '{function}' (line {line}) has {parts}; put "
        f"{some} into a [Differentiable] function marked [PreferCheckpoint]; Ctrl-C stops this"
    )


def _with_own_lines(
    module: Any, name: str, find: Callable[[TextFacts, str], list[tuple[str, int]]]
) -> list[tuple[str, int]]:
    facts = facts_of(module)
    return [] if facts is None else _own_lines(module._compiled, find(facts, _last_name(name)))


def longest_loop(loaded: Any, name: str) -> str:
    """What to tell of a call that differentiates `name` and records too much: the loop with most trips. loaded: a module's code."""
    found = known_facts_of(loaded).longest_loop(_last_name(name))
    if found is None:
        return ""
    ((function, line),) = _own_lines(loaded, [(found.function, found.line)])
    return f"; most trips has the loop in line {line}, in '{function}': up to {found.trips}, with the loops around it"


def recursive_functions(loaded: Any, name: str) -> list[tuple[str, int]]:
    """Functions that `name` reaches and that call themselves, perhaps by way of others, with their lines in their own
    sources. loaded: a module's code."""
    return _own_lines(loaded, known_facts_of(loaded).recursive_functions(_last_name(name)))


def dependent_defaults(loaded: Any, name: str) -> list[tuple[str, int]]:
    """Parameters and fields of `name` whose default value names others, with their lines in their own sources: Slang cannot work
    them out for a call. loaded: a module's code."""
    return _own_lines(loaded, known_facts_of(loaded).dependent_defaults(_last_name(name)))


def _last_name(name: str) -> str:
    return name.rpartition(".")[2].rpartition("::")[2].partition("<")[0]


def _own_lines(loaded: Any, functions: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Lines of all texts one after the other as lines of the text that they are in."""
    found = []
    for function, line in functions:
        for text in texts_of(loaded):
            lines = (text or "").count("\n") + 1
            if line <= lines:
                break
            line -= lines
        found.append((function, line))
    return found


def reached_words(module: Any, name: str) -> frozenset[str]:
    """The words in a function and in those that it calls."""
    facts = facts_of(module)
    return frozenset() if facts is None else facts.reached_words(name)


def reached_names(module: Any, name: str) -> frozenset[str]:
    """Those of `reached_words` that may name a global."""
    facts = facts_of(module)
    return frozenset() if facts is None else facts.reached_names(name)


def reached_uses(module: Any, function: str, type_: str) -> list[tuple[str, str]]:
    """TextFacts.reached_uses of a function in the texts that are at hand: Slang's own modules are not."""
    return known_facts_of(module._compiled).reached_uses(_last_name(function), type_)


def may_use(module: Any, function: str, name: str) -> bool:
    """Whether a function, or one that it calls, may name something (True if its text is not at hand)."""
    words = reached_words(module, function.partition("<")[0].rpartition("::")[2])
    return not words or name in words


def may_name(module: Any, *names: str) -> bool:
    """Whether the sources of a module, its imports or the modules linked to it hold one of these words."""
    facts = facts_of(module)
    return facts is None or any(name in facts.words for name in names)


def says_no_diff(module: Any, type_: str) -> bool:
    """Whether a parameter or variable of a type of that name says no_diff."""
    facts = facts_of(module)
    return facts is None or type_.partition("<")[0].replace(".", ":").rpartition(":")[2] in facts.no_diff_types


def writes_view(module: Any, function: str, index: int, fields: tuple[str, ...]) -> bool:
    """Whether a function of a module may write to a view: its parameter of that index, or a field of it."""
    facts = facts_of(module)
    return facts is None or facts.writes_view(function.rpartition(".")[2].partition("<")[0], index, fields)
