"""Expressions as data: steps that call primitives, and the array functions that they define."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from yota.errors import ArgumentError, MissingRuleError
from yota.ir.callables import Derived
from yota.rules.language.model import Call, Expression, Literal, Name
from yota.rules.language.statics import OPERATORS, arithmetic
from yota.rules.registry import registry
from yota.tracing.implementations import FORMS
from yota.tracing.intercept import on_traced, recorded

_MOST_TERMS = 10_000_000
_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an expression.

    parts: the items of a sequence; empty for a number or an array.
    shape: the shape of a matrix of symbols; its items are in row order.
    kind: ``number``, or an array of numbers; ``array`` for an array with indices or a whole matrix; ``integer`` for an
        index, a bound or an order.
    """

    name: str
    parts: tuple[Argument, ...] = ()
    shape: tuple[int, ...] = ()
    kind: str = "number"

    def bind(self, value: Any, names: dict[str, Any]) -> None:
        """Add the values of the symbols of this argument to ``names``."""
        if not self.parts:
            names[self.name] = value
            return
        shape = np.shape(value) if hasattr(value, "shape") else (len(value),)
        flat = shape[:1] == (len(self.parts),)
        if not flat and (not self.shape or shape[: len(self.shape)] != self.shape):
            wanted = f" or {self.shape}" if self.shape else ""
            raise ArgumentError(f"argument {self.name} has shape {shape}; it takes ({len(self.parts)},){wanted}")
        for place, part in enumerate(self.parts):
            part.bind(value[place if flat else divmod(place, self.shape[1])], names)

    def leaves(self) -> Iterable[Argument]:
        """The symbols."""
        return (leaf for part in self.parts for leaf in part.leaves()) if self.parts else (self,)


@dataclass(frozen=True, slots=True)
class Program:
    """Expressions, computed step by step.

    steps: calls, each with the name of its value; their arguments are names and numbers.
    result: the result: a name, a number, or a structure as a call of ``list``, ``tuple`` or ``matrix``.
    """

    name: str
    arguments: tuple[Argument, ...]
    steps: tuple[tuple[str, Call], ...]
    result: Expression


class Formula(Derived):
    """A function that evaluates expressions on numbers, on arrays element by element, and on traced values."""

    def __init__(self, program: Program, implementations: tuple[tuple[str, Callable[..., Any]], ...] = ()) -> None:
        super().__init__((formula, (program, implementations), {}), None)
        self.program, self.implementations = program, implementations
        self._known = dict(implementations)
        self.__name__ = self.__qualname__ = program.name
        self.__doc__ = f"{program.name}, from expressions of sympy's."
        parameters = [inspect.Parameter(each.name, _POSITIONAL) for each in program.arguments]
        self.__signature__ = inspect.Signature(parameters)
        if implementations:
            # yota tracks the data that these functions read.
            self.__wrapped__: Any = tuple(self._known.values())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The value."""
        given = self.__signature__.bind(*args, **kwargs).args
        names: dict[str, Any] = {}
        for argument, value in zip(self.program.arguments, given, strict=True):
            argument.bind(value, names)
        for leaf in (leaf for argument in self.program.arguments for leaf in argument.leaves()):
            names[leaf.name] = _taken(leaf, names[leaf.name])
        plain = [names[leaf.name] for each in self.program.arguments for leaf in each.leaves() if leaf.kind == "number"]
        run = _Run(names, max(map(np.ndim, plain), default=0), self._known)
        with np.errstate(all="ignore"):
            for name, call in self.program.steps:
                names[name] = run.call(call)
            return run.value(self.program.result)


_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def formula(program: Program, implementations: tuple[tuple[str, Callable[..., Any]], ...] = ()) -> Formula:
    """The function of a program; ``implementations`` are functions without a rule, by name."""
    return Formula(program, implementations)


def _taken(argument: Argument, value: Any) -> Any:
    """An argument as a floating-point value, except integer indices, bounds and orders."""
    if argument.kind == "integer":
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return int(value)
        raise ArgumentError(f"{argument.name} is an index, a bound or an order; pass an int, not {value!r:.40}")
    if argument.kind == "array":
        return value if hasattr(value, "shape") else np.asarray(value)
    if type(value) in (int, float):
        # As a NumPy number, it gives infinity when divided by zero.
        return np.float64(value)
    return np.asarray(value) if isinstance(value, (list, tuple)) else value


@dataclass(slots=True)
class _Run:
    """One evaluation: values of names, and the number of axes of the arguments."""

    names: Mapping[str, Any]
    axes: int
    implementations: Mapping[str, Callable[..., Any]]

    def value(self, expression: Expression) -> Any:
        """The value of a name, a number or a structure of them."""
        if isinstance(expression, Name):
            return self.names[expression.id]
        return expression.value if isinstance(expression, Literal) else self.call(expression)  # type: ignore[arg-type]

    def call(self, call: Call) -> Any:
        """The value of a call."""
        values = [self.value(each) for each in call.arguments]
        given = {name: each.value for name, each in call.keywords}  # type: ignore[union-attr]
        special = _SPECIAL.get(call.function)
        if special is not None:
            return special(self, *values, **given)
        if call.function in self.implementations:
            return self.implementations[call.function](*values)
        # A traced number reports the class float.
        if not given and all(type(each) in _NUMBERS for each in values):
            try:
                found = arithmetic(call.function, tuple(values))
            except (ArithmeticError, ValueError):
                found = function(call.function)(*map(np.float64, values))
            if found is not NotImplemented:
                return found
        whole = call.function == "power" and type(values[1]) is int
        try:
            return (operator.pow if whole else function(call.function))(*values, **given)
        except ArithmeticError:
            # Where Python's operators raise, NumPy's functions give infinity or NaN, for traced numbers too.
            return _recorded(call.function, registry().revision)(*values)

    def index(self, low: Any, high: Any, *, depth: int) -> Any:
        """All values of an index, along an axis before those of the arguments."""
        if not (isinstance(low, int) and isinstance(high, int)):
            raise ArgumentError(
                "a bound of a sum depends on another index or on an array; use integer bounds, "
                "and select terms with Piecewise"
            )
        if high < low - 1:
            raise ArgumentError(f"a sum goes from {low} to {high}, for which there are several conventions")
        if high - low > _MOST_TERMS:
            raise ArgumentError(f"a sum goes from {low} to {high}, which is more than {_MOST_TERMS:,} terms")
        return np.arange(low, high + 1).reshape(-1, *(1,) * (self.axes + depth))

    def over(self, body: Any, index: Any, *, by: str) -> Any:
        """The sum or product of a body over the values of an index."""
        shape = np.broadcast_shapes(np.shape(body), index.shape)
        whole = body if np.shape(body) == shape else np.broadcast_to(body, shape)
        return getattr(np, by)(whole, axis=len(shape) - index.ndim)

    def element(self, array: Any, *indices: Any) -> Any:
        """Elements of an array."""
        if any(np.any(np.asarray(each) < 0) for each in indices):
            raise ArgumentError("an index of a formula is negative, and would count from the end")
        return array[indices if len(indices) > 1 else indices[0]]

    def matrix(self, *values: Any, shape: tuple[int, ...]) -> Any:
        """An array of these elements; axes of array elements are last."""
        common = np.broadcast_shapes(*map(np.shape, values)) if values else ()
        if not values:
            return np.zeros(shape)
        return np.stack([np.broadcast_to(each, common) for each in values]).reshape(*shape, *common)

    def matrix_of_numbers(self, *values: Any, shape: tuple[int, ...]) -> Any:
        """An array of these elements, for operations on matrices."""
        if any(map(np.ndim, values)):
            raise ArgumentError(
                "an element of a matrix that the formula computes with is an array; map the function over points: "
                "yota.batch(f)"
            )
        return self.matrix(*values, shape=shape)


@functools.cache
def _riemann() -> Callable[..., Any]:
    """The zeta function of one argument, which SciPy also has left of 1."""
    home = import_module("scipy.special")
    import_module("yota.tracing.scipy.distribution_formulas")
    return on_traced(home.zeta, FORMS["scipy.special", "zeta"])  # type: ignore[no-any-return]


_SPECIAL: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(_Run, name) for name in ("index", "over", "element", "matrix", "matrix_of_numbers")},
    "list": lambda run, *values: [*values],
    "tuple": lambda run, *values: values,
    "transposed": lambda run, a: np.swapaxes(a, -1, -2),
    "item": lambda run, results, index: results[index],
    "trace": lambda run, a: np.trace(a, axis1=-2, axis2=-1),
    "eye": lambda run, n: np.eye(n),
    "zeros": lambda run, m, n: np.zeros((m, n)),
    "ones": lambda run, m, n: np.ones((m, n)),
    "block": lambda run, *parts, columns: np.block([[*row] for row in zip(*[iter(parts)] * columns, strict=True)]),
    "part": lambda run, a, rows, columns: a[slice(*rows), slice(*columns)],
    "kron": lambda run, a, b: np.kron(a, b),
    "diagonal": lambda run, a: np.diagonal(a)[:, np.newaxis],
    "diagonal_matrix": lambda run, a: np.diag(np.ravel(a)),
    "only_diagonal": lambda run, a: np.where(np.eye(*a.shape), a, 0.0),
    "riemann": lambda run, s: _riemann()(s),
}
"""Functions in addition to the primitives of rules."""


@functools.cache
def _recorded(name: str, revision: int) -> Callable[..., Any]:
    known = registry()
    if known.rules(name)[0].target is not None and (target := known.primitive(name).target or "").startswith("scipy."):
        import_module(target.rpartition(".")[0])
    return recorded(known.primitive(name))


def function(name: str) -> Callable[..., Any]:
    """The Python function of a primitive."""
    known = OPERATORS.get(name)
    if known is not None:
        return known
    try:
        return _recorded(name, registry().revision)
    except MissingRuleError:
        raise ArgumentError(
            f"{name} is no function that yota has a rule for; give it one: yota.diffrule(...)"
        ) from None
