"""Functions that users call first: errors name the keywords that there are, and end at the user's line."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from .. import _native

P = ParamSpec("P")
R = TypeVar("R")


def checked_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose TypeError for a keyword that it does not take names what is near, and all that there are.

    Tracebacks of its errors end here, without the frames inside of the package."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True  # of pytest and IPython
        if needs_device and args and isinstance(args[0], str):
            raise TypeError(
                f"{function.__name__}(): the first argument is the device, got a str; write "
                f"{function.__name__}({', '.join(names[: code.co_argcount - len(function.__defaults__ or ())])})"
            )
        if not kwargs.keys() <= known:
            unknown = next(name for name in kwargs if name not in known)
            near = difflib.get_close_matches(unknown, names, 1) or [name for name in names if unknown in name][:1]
            hint = f"; did you mean '{near[0]}'?" if near else "."
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument '{unknown}'{hint} It takes {', '.join(names)}"
            )
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not _native._is_own_traceback(error.__traceback__):
                raise
            failure = error.with_traceback(None)
        raise failure

    known, needs_device = frozenset(names), names[:1] == ("device",)
    return checked


def call_with_fields(function: Callable[..., R], given: Mapping[str, Any]) -> R:
    """What a function makes of its arguments in a dict."""
    known = list(inspect.signature(function).parameters)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise TypeError(f'{function.__name__} has no field "{unknown[0]}"; known: {", ".join(known)}')
    return function(**given)
