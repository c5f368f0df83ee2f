"""Functions of other libraries as primitives, with derivatives from these libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

import yota.ir.hosted  # noqa: F401  (the rules look their functions up among loaded modules)
from yota.errors import ArgumentError
from yota.interop.maps import Trees
from yota.ir.callables import name_of
from yota.rules.registry import registry
from yota.structures import is_leaf
from yota.tracing.current import paused
from yota.tracing.intercept import recorded
from yota.tracing.methods import is_traced


class Host:
    """A library function of several arrays with one result, called with NumPy arrays.

    name: name in messages and on tapes.
    library: its ``name``; ``trees``, the module with ``tree_flatten``; ``run(function, arrays)``, the result in memory
        of its own; ``vjp(function, operands)``, the result and its pullback; ``vmap(function, axes)``;
        ``is_smooth(array)``, whether it is floating-point or complex; ``joined(arrays)``, one vector.
    """

    def __init__(self, name: str, function: Callable[..., Any], library: Any) -> None:
        self.name, self.function, self.library = name, function, library
        self.__name__ = f"{name} of {library.name}"
        self._over: dict[Hashable, Host] = {}

    def __repr__(self) -> str:
        return f"<{self.__name__}>"

    def __reduce__(self) -> Any:
        """Raise ArgumentError: the function cannot be pickled as part of a tape or of compiled code."""
        raise ArgumentError(
            f"{self.__name__} is on this tape, and belongs to this process; pickle the derivative, such as "
            "yota.value_and_grad(f), which another process traces anew"
        )

    def __call__(self, *operands: Any) -> np.ndarray[Any, Any]:
        """The result. Raises ArgumentError if the function raises anything."""
        try:
            # The library's own code is not recorded.
            with paused():
                found: np.ndarray[Any, Any] = self.library.run(self.function, operands)
                return found
        except ArgumentError:
            raise
        except Exception as fault:
            given = ", ".join(f"{np.asarray(each).dtype}{list(np.shape(each))}" for each in operands)
            raise ArgumentError(f"{self.__name__} raised for {given}: {fault}") from fault

    @functools.cached_property
    def pull(self) -> Host:
        """The pullback: takes a cotangent and the operands, returns the adjoints of the operands as one vector."""
        function, library = self.function, self.library

        def pulled(cotangent: Any, *operands: Any) -> Any:
            smooth = [number for number, each in enumerate(operands) if library.is_smooth(each)]

            def moved(given: Sequence[Any]) -> Any:
                values = dict(zip(smooth, given, strict=True))
                return function(*[values.get(number, each) for number, each in enumerate(operands)])

            _, back = library.vjp(moved, tuple(operands[number] for number in smooth))
            found = dict(zip(smooth, back(cotangent), strict=True))
            return library.joined([found.get(number, 0 * each) for number, each in enumerate(operands)])

        return Host(f"pullback of {self.name}", pulled, library)

    def over(self, axes: tuple[int | None, ...]) -> Host:
        """The function mapped over points along these axes of the operands."""
        if axes not in self._over:
            self._over[axes] = Host(self.name, self.library.vmap(self.function, axes), self.library)
        return self._over[axes]


class _Tree(Host):
    """A function of trees for one structure of its arguments; several results are one vector."""

    def __init__(self, flat: Callable[..., tuple[list[Any], Any]], name: str, library: Any) -> None:
        self.parts: dict[Hashable, tuple[Any, list[tuple[tuple[int, ...], str]]]] = {}

        def packed(*operands: Any) -> Any:
            found, form = flat(*operands)
            self.parts[_kind(operands)] = form, [(tuple(each.shape), _dtype(each)) for each in found]
            return found[0] if len(found) == 1 else library.joined(found)

        super().__init__(name, packed, library)

    def results(self, operands: Sequence[Any], found: Any) -> Any:
        """The tree of results from their vector."""
        form, parts = self.parts[_kind(operands)]
        if len(parts) == 1:
            return self.library.trees.tree_unflatten(form, [found])
        ends = np.cumsum([np.prod(shape, dtype=int) for shape, _ in parts])
        pieces = [
            found[end - np.prod(shape, dtype=int) : end].reshape(shape).astype(dtype)
            for end, (shape, dtype) in zip(ends.tolist(), parts, strict=True)
        ]
        return self.library.trees.tree_unflatten(form, pieces)


def _dtype(value: Any) -> str:
    return str(getattr(value, "dtype", "float64")).rpartition(".")[2]


def _kind(operands: Sequence[Any]) -> Hashable:
    return tuple((tuple(np.shape(each)), _dtype(each)) for each in operands)


def hosted(f: Callable[..., Any], library: Any) -> Callable[..., Any]:
    """``f``, a function of library arrays, as a function of NumPy arrays that yota records as one op."""
    record = recorded(registry().primitive("hosted"))
    name = name_of(f)
    trees = Trees(
        f, library.trees, lambda leaf: is_traced(leaf) or is_leaf(leaf), lambda flat: _Tree(flat, name, library)
    )

    def call(*args: Any, **kwargs: Any) -> Any:
        host, operands = trees.find(args, kwargs)
        return host.results(operands, record(*operands, host=host))

    call.__name__, call.__doc__ = name, f.__doc__
    return call
