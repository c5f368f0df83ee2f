"""Names of callables, and callables that are derived from a function and pickled by reference to it."""

from __future__ import annotations

import copy
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

Recipe = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]
"""The call that creates a callable: a public function, its arguments, and its options."""


def name_of(function: object) -> str:
    """The name of a function, or of the class of a callable object.

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


def original(function: Any) -> Any:
    """The original of ``function``, if it is a recording function of a trace."""
    while hasattr(function, "recorded_from"):
        function = function.recorded_from
    return function


class Derived:
    """A callable that is derived from a user's function.

    It has the function's name and signature. A pickle contains the call that creates it, with the function by
    reference, and no code. A copy is the same object, as for functions.

    call: its implementation, unless a subclass defines it.
    front: the object that the user holds: the callable itself, or its dispatcher.
    """

    def __init__(self, recipe: Recipe, function: Callable[..., Any] | None, what: str = "", call: Any = None) -> None:
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

    @property
    def behind(self) -> Derived:
        """The callable itself, which its dispatcher gives too."""
        return self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result for these arguments."""
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._what} of {self.__name__}>" if self._what else f"<{self.__name__} of yota>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # As an attribute of a class it is a method, like a function.
        return self.front if instance is None else types.MethodType(self.front, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        # The name of a decorated function is that of the inner function, which itself has none.
        return self.__qualname__ if self._is_found() else (_made, self.recipe)

    def __copy__(self) -> Any:
        return self.front

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, (made_of, *rest), options = self.recipe
        # Copies of bound methods have another receiver; functions and tapes stay the same.
        copied = copy.deepcopy(made_of, memo) if callable(made_of) else made_of
        return self.front if copied is made_of else make(copied, *rest, **options)

    def _is_found(self) -> bool:
        """Whether its qualified name leads to it."""
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return found is self.front


def _made(make: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Unpickle a derived callable."""
    return make(*args, **options)
