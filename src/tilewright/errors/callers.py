"""Errors of public functions name the function that was called, and what a wrong keyword may have meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tilewright.errors.base import TilewrightError
from tilewright.errors.options import UnexpectedKeyword, WrongArguments
from tilewright.errors.other_names import nearest_keyword

P = ParamSpec("P")
T = TypeVar("T")


def name_caller(
    error: Exception,
    name: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> None:
    """Make an error of a call name the public function, whichever inner function raised it.

    Parameters
    ----------
    error : a `TilewrightError`, or a `TypeError`, which Python raises if the arguments do not fit.
    name, function : of the public function; arguments, named : of the call.

    Raises
    ------
    UnexpectedKeyword, WrongArguments : in place of a `TypeError` of Python's.
    """
    if isinstance(error, TilewrightError):
        error.restate(function=name)
        return
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **named)
    except TypeError as refused:
        reason = str(refused)
    else:
        return
    by_name, by_place = [], []
    for one in signature.parameters.values():
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            by_name.append(one.name)
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY):
            by_place.append(one.name)
    check_keywords(name, named, by_name, by_place)
    places = ", ".join(by_place)
    raise WrongArguments(function=name, reason=reason, places=places or "no arguments") from None


def check_keywords(
    function: str, given: Iterable[str], known: Collection[str], by_place: Collection[str] = ()
) -> None:
    """Refuse keywords that a function does not have.

    Raises
    ------
    UnexpectedKeyword
    """
    for name in given:
        if name not in known:
            own = name in by_place
            remedy = "it is given by position, without its name" if own else nearest_keyword(name, known)
            raise UnexpectedKeyword(function=function, name=name, remedy=remedy) from None


def named_in_errors(function: Callable[P, T]) -> Callable[P, T]:
    """A public function of Python whose errors name it.

    >>> @named_in_errors
    ... def double(x): return 2 * x
    >>> double(1, y=2)
    Traceback (most recent call last):
    ...
    tilewright.errors.UnexpectedKeyword: double: unexpected keyword 'y': it takes x
    """

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except (TilewrightError, TypeError) as error:
            name_caller(error, function.__name__, function, arguments, named)
            raise

    return call
