"""Methods whose errors begin with the label of what they were called on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def labelled(method: Callable[P, R]) -> Callable[P, R]:
    """`method`, whose errors for what it was given begin with the `label` of its object: the function that is meant."""

    @functools.wraps(method)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (TypeError, ValueError) as error:
            label = f"{cast(Any, args[0]).label}: "
            if len(error.args) == 1 and not str(error).startswith(label):
                error.args = (label + str(error),)
            raise

    return named


__all__ = ["labelled"]
