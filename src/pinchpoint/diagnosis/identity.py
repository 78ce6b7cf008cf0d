"""Functions of immutable things that are looked at again and again: each thing is equal to itself alone."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack

A = TypeVar("A")
R = TypeVar("R")
As = TypeVarTuple("As")


class _Itself(Generic[A]):
    __slots__ = ("it",)

    def __init__(self, it: A) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.it is self.it


def once_each(most: int) -> Callable[[Callable[[Unpack[As]], R]], Callable[[Unpack[As]], R]]:
    """Decorates a pure function: what it found of the last ``most`` arguments is kept, and they with it."""

    def decorate(function: Callable[[Unpack[As]], R]) -> Callable[[Unpack[As]], R]:
        @lru_cache(maxsize=most)
        def found(*of: _Itself[Any]) -> R:
            return function(*(each.it for each in of))

        return lambda *its: found(*map(_Itself, its))

    return decorate
