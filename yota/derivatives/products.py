"""A function with its Hessian times a direction, compiled for each kind of arguments; of scalar code straight-line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.autodiff.accumulate import ALONG, partials
from yota.autodiff.reverse import gradient_tape, reverse, zeros_like
from yota.codegen.scalar import is_scalar
from yota.codegen.symbolic import best, optimise
from yota.compilation.arguments import Arguments, positional, sort_arguments
from yota.compilation.factored import unrolled
from yota.compilation.layout import layout_of
from yota.compilation.specialise import Gradient, Specialisation, Target
from yota.derivatives.differentiated import Differentiated, Prepared, concrete
from yota.derivatives.elements import dense, elements, elements_read
from yota.derivatives.matrices import only_leaf
from yota.derivatives.straight import forms, orders, slope_of
from yota.errors import ArgumentError, DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.passes import dce, pipeline
from yota.rules.registry import Registry, registry
from yota.tracing.record import Leaf, Recording, record
from yota.tracing.replay import inline
from yota.tracing.state import current

__all__ = ["HessianProducts", "along", "shortest"]

_MOST_OPERATIONS = 20_000


class HessianProducts(Differentiated):
    """``function`` with compiled code for its Hessian times a direction, the argument after its own.

    Parameters
    ----------
    function
        The user's function.
    target
        See `Differentiated`.
    """

    def __init__(self, function: Callable[..., Any], target: Target) -> None:
        super().__init__(function, 0, Target(target.name), dynamic=False)

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """Code for arguments like ``args``."""
        return _Product(self, function, args)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The product inside of a running trace, recorded onto it."""
        trace = current()
        assert trace is not None
        function, args = positional(self.function, (*self.hidden, *args), kwargs)
        arguments = sort_arguments(function, args)
        plain = Arguments(tuple(map(concrete, arguments.leaves)), arguments.values)
        leaf = only_leaf(layout_of(function, self.wrt, len(self.hidden), plain), plain)
        recorded = _recorded(function, plain, leaf, trace.registry)
        found = along(recorded.tape, leaf, trace.registry)
        inputs = {entry.variable: each.value for entry, each in zip(found.inputs, arguments.leaves, strict=False)}
        (product,) = inline(found, trace, {**inputs, **recorded.outer})
        return product


class _Product(Prepared):
    """Compiled code for one kind of arguments."""

    valued = False

    def gradient(self, function: Callable[..., Any], arguments: Arguments) -> Gradient:
        """The tape of the product."""
        leaf = only_leaf(self.layout, arguments)
        around = self.owner.captured.surroundings(arguments.values)
        recorded = _recorded(function, arguments, leaf, registry(), live=True, around=around)
        return Gradient.of(recorded, shortest(recorded.tape, leaf, registry()), (leaf,))

    def compiled_tape(self, gradient: Gradient) -> Tape:
        """The tape of the product is as short as it gets."""
        return gradient.tape

    def result(self, chosen: Specialisation, outputs: tuple[Any, ...]) -> Any:
        """The product alone."""
        return self.layout.shaped(chosen.gradient.leaves, outputs)


def _recorded(
    function: Callable[..., Any], arguments: Arguments, leaf: int, known: Registry, **options: Any
) -> Recording:
    """A run of ``function``, which does not see the last argument: the direction."""
    *leaves, given = arguments.leaves
    direction = Leaf(given.value, given.argument, "v", given.path)
    _check(function, leaves[leaf] if leaf < len(leaves) else given, direction, len(leaves))
    return record(
        function, [*leaves, direction], lambda values: arguments.rebuild(values)[:-1], registry=known, **options
    )


def _check(function: Callable[..., Any], by: Leaf, direction: Leaf, count: int) -> None:
    name = getattr(function, "__name__", type(function).__name__)
    if direction is by or not count or direction.path:
        raise ArgumentError(f"the Hessian of {name} times a direction takes an array and its direction: hvp(f)(x, v)")
    one, other = np.shape(by.value), np.shape(direction.value)
    if one != other:
        raise DifferentiationError(f"the direction has shape {other}, {by.name} of {name} has shape {one}")
    if any(np.asarray(each.value).dtype.kind == "c" for each in (by, direction)):
        raise DifferentiationError(
            f"{name} has a complex argument {by.name}, or its direction is complex; a Hessian needs real ones. "
            "Take the real and the imaginary part as two arguments."
        )


def along(tape: Tape, leaf: int, known: Registry) -> Tape:
    """The gradient's own gradient, with the direction as seed: the Hessian is symmetric."""
    by, direction = tape.inputs[leaf].variable, _direction(tape)
    found = gradient_tape(tape, [by], known)
    builder, (slope,) = found.tape.builder(), found.variables
    product = None
    if slope is not None:
        seed, type = direction, found.tape.types[slope]
        if builder.types[seed] != type:
            seed = builder.emit(primitive("astype"), (seed,), {"dtype": type.dtype}, type)
        (product,) = reverse(found.tape, builder, {slope: seed}, [by], known)
    return dce.run(builder.finish([zeros_like(builder, by) if product is None else product]))


def shortest(tape: Tape, leaf: int, known: Registry) -> Tape:
    """The product; if that is scalar code, of several ways to write it the one with the fewest operations.

    These are forward over reverse, reverse over reverse and mixtures of them; B. Pearlmutter, "Fast exact
    multiplication by the Hessian" (Neural Computation 6, 1994).
    """
    whole = along(tape, leaf, known)
    value = unrolled(tape) if is_scalar(pipeline.run(whole)) else None
    if value is None:
        return whole
    found = [pipeline.run(whole)]
    for form in forms(value):
        found.append(pipeline.run(along(form, leaf, known)))
        slope = slope_of(form, leaf, known)
        if slope is not None:
            found += _mixed(slope, leaf, known)
    return optimise(found[best(found, values=0)], values=0)


def _mixed(tape: Tape, leaf: int, known: Registry) -> Sequence[Tape]:
    """The product from the value and the gradient on ``tape``, in each order of elimination that looks good."""
    by = tape.inputs[leaf].variable
    rows, columns = elements(tape, tape.outputs[-1])[0], elements_read(tape, by)
    builder = tape.builder()
    parts = _elements_of(builder, _direction(tape), columns)
    steps = partials(builder, tape, rows, list(columns), known, parts)
    if steps is None or min(steps.works.values()) > _MOST_OPERATIONS:
        return []
    made, type = [], tape.types[by]
    for order in orders(steps.works):
        entries = steps.entries(order)
        places = {(row, 0): entry[ALONG] for row, entry in enumerate(entries) if ALONG in entry}
        product = dense(builder, places, (len(rows), 1), type.shape, type.dtype)
        made.append(pipeline.run(dce.run(builder.finish([product]))))
    return made


def _elements_of(builder: TapeBuilder, direction: int, columns: dict[int, int]) -> dict[int, int]:
    """For each element of the argument that is read the same element of the direction."""
    shape = builder.types[direction].shape
    if not shape:
        return dict.fromkeys(columns, direction)
    places = {column: np.unravel_index(number, shape) for column, number in columns.items()}
    return {
        column: builder.emit(primitive("getitem"), (direction,), {"index": tuple(map(int, place))})
        for column, place in places.items()
    }


def _direction(tape: Tape) -> int:
    """The input that is the direction: the last of the arguments."""
    last = max(entry.argument for entry in tape.inputs)
    return next(entry.variable for entry in tape.inputs if entry.argument == last)
