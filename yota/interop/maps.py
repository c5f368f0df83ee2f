"""Array functions whose derivatives are array functions, as host libraries differentiate them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from yota.api.batch import batch
from yota.api.gradients import gradient, value_and_grad
from yota.api.pullbacks import pushforward, weighted
from yota.errors import ArgumentError, TracingError
from yota.ir.callables import name_of
from yota.ir.infer import sample, strong
from yota.ir.types import TensorType, type_of
from yota.tracing.results import taken_apart

_T = TypeVar("_T")
_OPERAND = object()
"""Placeholder of an array or number among the leaves of the arguments."""

Types = tuple[TensorType, ...]


def _kept(make: Callable[..., Map]) -> Callable[..., Map]:
    """A method whose results are cached for each map and arguments."""

    @functools.wraps(make)
    def method(self: Map, *options: Hashable) -> Map:
        key = (make.__name__, *options)
        if key not in self._made:
            self._made[key] = make(self, *options)
        return self._made[key]

    return method


class Map:
    """A function of arrays that returns a tuple of arrays, with its derivatives.

    Each derivative is created once, so that caches can use its identity as key.
    function: takes arrays and numbers, also traced ones.
    infer: returns the types of the results for types of operands; None to find them by a call with ones.
    options: options of yota's transforms: ``target``, ``strict``, ``dynamic``.
    """

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], infer: Callable[[Types], Types] | None = None
    ) -> None:
        self.function, self.options, self._infer = function, options, infer
        self.__name__ = name_of(function)
        self._types: dict[Types, Types] = {}
        self._pushes: tuple[Map, tuple[int, ...], tuple[int, ...]] | None = None
        self._made: dict[Hashable, Map] = {}

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """The results, with the types of `types`."""
        with np.errstate(all="ignore"):
            found = tuple(self.function(*operands))
        self._types.setdefault(tuple(map(_type_of, operands)), tuple(map(_type_of, found)))
        return found

    def known(self, operands: Types) -> Types | None:
        """Types of the results, if known without a call."""
        return self._infer(operands) if self._infer else self._types.get(operands)

    def types(self, operands: Types) -> Types:
        """Types of the results, which must not depend on the values of the operands."""
        found = self.known(operands)
        if found is None:
            try:
                self(*map(sample, operands))
            except Exception as fault:
                raise ArgumentError(
                    f"{self.__name__} was called with ones to find the shapes of its results, and raised "
                    f"{type(fault).__name__}: {fault}. Specify them: wrap({self.__name__}, results=...)"
                ) from fault
            found = self._types[operands]
        return found

    @_kept
    def slopes(self, moved: tuple[int, ...]) -> Map:
        """For a function with one real scalar result: the value and the gradient by the operands ``moved``."""
        function = self.function

        def only(*operands: Any) -> Any:
            return function(*operands)[0]

        only.__name__ = self.__name__
        both = value_and_grad(only, moved, **self.options)

        def call(*operands: Any) -> tuple[Any, ...]:
            value, slopes = both(*operands)
            return (value, *slopes)

        return self._derived(call, lambda types: (*self.types(types), *[strong(types[each]) for each in moved]))

    @_kept
    def pullback(self, moved: tuple[int, ...], parts: tuple[int, ...]) -> Map:
        """The map from cotangents of the results ``parts``, and the operands, to adjoints of the operands ``moved``."""
        count = len(parts)
        pulled = gradient(weighted(self._picked(parts)), tuple(1 + each for each in moved), **self.options)

        def call(*given: Any) -> tuple[Any, ...]:
            return tuple(pulled([*given[:count]], *given[count:]))

        return self._derived(call, lambda types: tuple(strong(types[count + each]) for each in moved))

    @_kept
    def pushforward(self, moved: tuple[int, ...], parts: tuple[int, ...], results: Types) -> Map:
        """The map from operands, and tangents of those in ``moved``, to the tangents of the results ``parts``."""
        wanted = tuple(results[each] for each in parts)
        pushed = pushforward(self._picked(parts), moved, **self.options)

        def call(*given: Any) -> tuple[Any, ...]:
            seeds = [np.zeros(each.shape, each.dtype) for each in wanted]
            found = pushed(seeds, *given)
            return tuple(found.get((number,), seed) for number, seed in enumerate(seeds))

        made = self._derived(call, lambda types: wanted)
        made._pushes = (self, moved, parts)
        return made

    def transposed(self, linear: tuple[int, ...], arity: int, count: int) -> tuple[Map, int]:
        """The transpose of a map that is linear in these of its ``arity`` operands, and how many of them it takes.

        It takes cotangents of all ``count`` results before the operands; the values of those that the map is linear in
        do not matter.
        """
        if self._pushes is not None:
            base, moved, parts = self._pushes
            places = {arity - len(moved) + number: each for number, each in enumerate(moved)}
            if set(linear) <= set(places):
                return base.pullback(tuple(places[each] for each in linear), parts), arity - len(moved)
        return self.pullback(linear, tuple(range(count))), arity

    @_kept
    def over(self, axes: tuple[int | None, ...], size: int) -> Map:
        """The map over ``size`` points, along these axes of the operands and the first axis of the results."""
        many = batch(self.function, in_axes=axes, target=self.options["target"], dynamic=self.options["dynamic"])

        def infer(types: Types) -> Types:
            point = tuple(each if axis is None else _point(each, axis) for each, axis in zip(types, axes, strict=True))
            return tuple(TensorType(each.dtype, (size, *each.shape)) for each in self.types(point))

        return self._derived(many, infer)

    def _derived(self, call: Callable[..., Any], infer: Callable[[Types], Types]) -> Map:
        made = Map(call, self.options, infer)
        made.__name__ = self.__name__
        return made

    def _picked(self, parts: tuple[int, ...]) -> Callable[..., Any]:
        """The map with only these results."""
        function = self.function

        def picked(*operands: Any) -> tuple[Any, ...]:
            found = function(*operands)
            return tuple(found[each] for each in parts)

        picked.__name__ = self.__name__
        return picked


def _type_of(value: Any) -> TensorType:
    """The type of a number or array, also on a GPU."""
    return TensorType(np.dtype(value.dtype), tuple(value.shape)) if hasattr(value, "dtype") else type_of(value)


def _point(type: TensorType, axis: int) -> TensorType:
    return TensorType(type.dtype, (*type.shape[:axis], *type.shape[axis + 1 :]), type.weak)


class Trees(Generic[_T]):
    """A function of structures, with cached data for each structure of its arguments.

    library: module with ``tree_flatten`` and ``tree_unflatten``.
    is_operand: whether a leaf is an array or number to compute with; other leaves are part of the structure.
    make: takes a function of the operands that returns the leaves and the structure of the result.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        library: Any,
        is_operand: Callable[[Any], bool],
        make: Callable[[Callable[..., tuple[list[Any], Any]]], _T],
    ) -> None:
        self._function, self._library, self._is_operand, self._make = function, library, is_operand, make
        self._made: dict[Hashable, _T] = {}

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_T, list[Any]]:
        """The data for such arguments, and the operands."""
        leaves, spec = self._library.tree_flatten((args, kwargs))
        rest = [_OPERAND if self._is_operand(leaf) else leaf for leaf in leaves]
        odd = next((leaf for leaf in rest if type(leaf).__hash__ is None), None)
        if odd is not None:
            raise ArgumentError(
                f"{name_of(self._function)} was called with a {type(odd).__name__}, which is neither an array nor "
                "hashable; register its class as a tree, or pass its arrays"
            )
        # 1 and True are equal but different arguments.
        key = spec, tuple([(type(leaf), leaf) for leaf in rest])
        if key not in self._made:
            self._made[key] = self._make(self._flat(spec, rest))
        return self._made[key], [leaf for leaf, one in zip(leaves, rest, strict=True) if one is _OPERAND]

    def _flat(self, spec: Any, rest: list[Any]) -> Callable[..., tuple[list[Any], Any]]:
        function, library = self._function, self._library

        def flat(*operands: Any) -> tuple[list[Any], Any]:
            following = iter(operands)
            given = [next(following) if leaf is _OPERAND else leaf for leaf in rest]
            args, kwargs = library.tree_unflatten(spec, given)
            leaves, form = library.tree_flatten(function(*args, **kwargs))
            return leaves, form

        return flat


class Tree(Map):
    """The map of a function of structures."""

    def __init__(self, flat: Callable[..., tuple[list[Any], Any]], name: str, options: dict[str, Any]) -> None:
        forms: list[Any] = []

        def call(*operands: Any) -> tuple[Any, ...]:
            found, form = flat(*operands)
            forms[:] = [form]
            odd = next((each for each in found if taken_apart(name, each, []).parts is not None), None)
            if odd is not None:
                raise TracingError(f"{name} returned a {type(odd).__name__}; return numbers, arrays, or trees of them")
            return tuple(found)

        call.__name__ = name
        super().__init__(call, options)
        self.forms = forms
        """The structure of the results, when known."""

    def say(self, operands: Types, results: Types, form: Any) -> None:
        """Set the types and the structure of the results from the user's specification."""
        self._types[operands], self.forms[:] = results, [form]
