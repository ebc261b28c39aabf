"""Properties that are computed once, without a lock that a fork could leave held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - named as the one of functools, which it stands for
    """An attribute whose value a method computes when it is first asked for.

    Up to Python 3.11 `functools.cached_property` has one lock for all objects of a class: a fork while
    another thread holds it stops the child for ever. Here threads that ask at the same time may compute the
    value each; all get the one that was stored first, so that what is derived from it belongs together.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self):
    ...         print("computed")
    ...         return 3
    >>> circle = Circle()
    >>> circle.area + circle.area
    computed
    6
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        return self._made(instance)

    def _made(self, instance: Any) -> T:
        """Computes the value, and stores it unless another thread was first."""
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
