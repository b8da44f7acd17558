"""Keyword arguments that a function does not take: the error says which it does."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def checked_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose TypeError for a keyword that it does not take names what is near, and all that there are."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs.keys() <= known:
            unknown = next(name for name in kwargs if name not in known)
            near = difflib.get_close_matches(unknown, names, 1) or [name for name in names if unknown in name][:1]
            hint = f"; did you mean '{near[0]}'?" if near else "."
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument '{unknown}'{hint} It takes {', '.join(names)}"
            )
        return function(*args, **kwargs)

    known = frozenset(names)
    return checked
