"""Callables: what they are called, and those that are made of a function and pickled by reference to it."""

from __future__ import annotations

import copy
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Derived", "Recipe", "name_of"]

Recipe = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]
"""The call that makes a callable: a public function, its arguments, and its options."""


def name_of(function: object) -> str:
    """The name of a function; that of its class for an object that is called.

    Examples
    --------
    >>> class Energy:
    ...     def __call__(self, x):
    ...         return x
    >>> name_of(Energy()), name_of(Energy.__call__), name_of(functools.partial(max, 0))
    ('Energy', 'Energy', 'max')
    """
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "__call__":
        owner = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
        return owner.rpartition(".")[2] or str(name)
    return str(name)


class Derived:
    """A callable that is made of a function of the user's.

    It has the function's name and signature. A pickle holds the call that makes it, with the function by reference, and
    no code; a copy is the callable itself, as it is of a function.

    Parameters
    ----------
    recipe
        The call that makes it.
    function
        The function that it is made of; None if there is none.
    what
        What it gives, for its documentation.
    call
        What it does, unless a class of its own says that.

    Attributes
    ----------
    front
        What the user holds: the callable itself, or what calls it.
    """

    def __init__(
        self,
        recipe: Recipe,
        function: Callable[..., Any] | None,
        what: str = "",
        call: Any = None,
    ) -> None:
        self.front: Any = self
        self.recipe, self._call, self._what = recipe, call, what
        self.__name__ = self.__qualname__ = recipe[0].__name__
        if function is None:
            return
        self.__name__ = name_of(function)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__module__ = getattr(function, "__module__", None) or type(self).__module__
        self.__doc__ = f"The {what} of {self.__name__}." if what else function.__doc__
        self.__wrapped__ = function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """What it gives for these arguments."""
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._what} of {self.__name__}>" if self._what else f"<{self.__name__} of yota>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # An attribute of a class is a method, as a function would be.
        return self.front if instance is None else types.MethodType(self.front, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        # A decorated function is found under the name of the one inside, which itself has none.
        return self.__qualname__ if self._is_found() else (_made, self.recipe)

    def __copy__(self) -> Any:
        return self.front

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, (made_of, *rest), options = self.recipe
        # A bound method has another receiver then, a plain function stays what it is, and so does a tape.
        copied = copy.deepcopy(made_of, memo) if callable(made_of) else made_of
        return self.front if copied is made_of else make(copied, *rest, **options)

    def _is_found(self) -> bool:
        """Whether its name leads to it."""
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return found is self.front


def _made(make: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What a pickle is read as."""
    return make(*args, **options)
