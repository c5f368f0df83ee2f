"""Jacobians and Hessians of scalar code as one straight-line tape of values and nonzero entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize import dce, pipeline
from yota.optimize.polynomials.symbolic import forms, search
from yota.rules.registry import Registry
from yota.run.gradient_layout import Wanted
from yota.run.scalar_code import unrolled
from yota.run.specialise import Target
from yota.transform.reverse.backward import gradient_tape
from yota.transform.reverse.elimination import Partials, partials
from yota.transform.sparse.scalar_elements import dense, dtype_of, elements, elements_read, listed

_MOST_OPERATIONS = 20_000
"""Largest number of operations of a straight-line Jacobian."""
_MOST_ENTRIES = 4096
"""Largest number of nonzero entries of a straight-line Jacobian."""
_WORTH_A_LOOK = 1.3


def largest(tape: Tape) -> int:
    """Size of the largest array on the tape."""
    return max((tape.types[op.result].size for op in tape.ops), default=1)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A tape whose last output is a matrix of partial derivatives, or a vector of the entries of a sparse one.

    shape: shape of the matrix: all elements of the result by all elements of the argument.
    rows, columns: positions of the entries of a sparse matrix, row by row.
    """

    tape: Tape
    shape: tuple[int, int]
    rows: Sequence[int] | np.ndarray = ()
    columns: Sequence[int] | np.ndarray = ()


def straight_line(tape: Tape, leaf: int, wanted: Wanted, registry: Registry, target: Target) -> Entries | None:
    """The ``wanted`` matrix of ``tape`` by its input ``leaf``; None if it is not scalar code."""
    plain = unrolled(tape)
    if plain is None:
        return None
    if target.effort == "quick":
        return entries(plain, leaf, wanted, registry)
    found = [each for form in forms(plain) for each in _derived(form, leaf, wanted, registry, good_orders)]
    if not found:
        return None
    tapes = [pipeline.run(each.tape) for each in found]
    number, best = search(tapes, values=int(wanted.with_value))
    return replace(found[number], tape=best)


def entries(tape: Tape, leaf: int, wanted: Wanted, registry: Registry) -> Entries | None:
    """The ``wanted`` matrix of a scalar tape by its input ``leaf``; None if it is too long."""

    def orders(steps: Partials) -> list[str]:
        if wanted.order == 2:
            # This order is nearly always the best, and counting the operations of all orders is slow.
            return ["cheapest"]
        works = {name: steps.work(name) for name in steps.orders}
        best = min(works, key=works.__getitem__)
        return [best] if works[best] <= _MOST_OPERATIONS else []

    return next(_derived(tape, leaf, wanted, registry, orders), None)


def short_entries(
    tape: Tape, leaf: int, wanted: Wanted, registry: Registry, longest: int, each: int = 0
) -> Entries | None:
    """The entries from a scalar tape of the value, with its gradient for a Hessian; None if they take too long.

    longest, each: the largest number of operations, and how many more for each of the tape.
    """

    def orders(steps: Partials) -> list[str]:
        most = longest + each * steps.vertices
        return ["cheapest"] if steps.work("cheapest", most) <= most else []

    return next(_matrices(tape, leaf, wanted, registry, orders), None)


def _derived(
    tape: Tape, leaf: int, wanted: Wanted, registry: Registry, orders: Callable[[Partials], list[str]]
) -> Iterator[Entries]:
    """The entries for one form of the tape, for each of the elimination ``orders``."""
    differentiated = tape if wanted.order == 1 else slope_of(tape, leaf, registry)
    if differentiated is not None:
        yield from _matrices(differentiated, leaf, wanted, registry, orders)


def _matrices(
    tape: Tape, leaf: int, wanted: Wanted, registry: Registry, orders: Callable[[Partials], list[str]]
) -> Iterator[Entries]:
    """The entries from the tape of the value, with its gradient for a Hessian."""
    by = tape.inputs[leaf].variable
    rows, shape = elements(tape, tape.outputs[-1] if wanted.order == 2 else tape.outputs)
    columns = elements_read(tape, by)
    builder = tape.builder()
    steps = partials(builder, tape, rows, list(columns), registry, symmetric=columns if wanted.order == 2 else None)
    if steps is None:
        return
    outputs = _values(builder, tape, rows, shape) if wanted.with_value else []
    dtype = dtype_of(tape, rows, by)
    size = len(rows), tape.types[by].size
    whole = TensorType(dtype, (*shape, *tape.types[by].shape))
    for order in orders(steps):
        found = steps.entries(order, _MOST_OPERATIONS)
        places = {} if found is None else _places(found, columns, symmetric=wanted.order == 2)
        if found is None or len(places) > _MOST_ENTRIES:
            return
        matrix = listed(builder, places, dtype) if wanted.sparse else dense(builder, places, size, whole)
        made = dce.run(builder.finish([*outputs, matrix]))
        filled = sorted(places)
        yield Entries(made, size, tuple([row for row, _ in filled]), tuple([column for _, column in filled]))


def good_orders(steps: Partials) -> list[str]:
    """Elimination orders worth comparing; the number of products alone does not decide."""
    works = {name: steps.work(name) for name in steps.orders}
    most = min(_MOST_OPERATIONS, _WORTH_A_LOOK * min(works.values()))
    return [name for name, work in works.items() if work <= most]


def _places(
    entries: Sequence[dict[int, int]], columns: dict[int, int], *, symmetric: bool
) -> dict[tuple[int, int], int]:
    """Entries by row and column; each off-diagonal entry of a symmetric matrix appears twice."""
    found = {(row, columns[variable]): entry for row, each in enumerate(entries) for variable, entry in each.items()}
    if symmetric:
        found = {(row, column): entry for (row, column), entry in found.items() if row <= column}
        found.update({(column, row): entry for (row, column), entry in found.items()})
    return found


def slope_of(tape: Tape, leaf: int, registry: Registry) -> Tape | None:
    """The value of a scalar tape and its gradient, as scalar ops."""
    return unrolled(sloped(tape, leaf, registry), once=True)


def sloped(tape: Tape, leaf: int, registry: Registry) -> Tape:
    """The value of a tape and its gradient by its input ``leaf``, which must be real for a Hessian."""
    if tape.types[tape.inputs[leaf].variable].is_complex:
        raise DifferentiationError(
            f"{tape.name} has a complex argument {tape.inputs[leaf].name}; a Hessian needs a real one. "
            "Take the real and the imaginary part as two arguments."
        )
    return with_slope(tape, leaf, registry)


def with_slope(tape: Tape, leaf: int, registry: Registry) -> Tape:
    """The value of a tape and its gradient by its input ``leaf``."""
    by = [tape.inputs[leaf].variable]
    return gradient_tape(tape, by, registry).whole(tape.outputs, by)


def _values(builder: TapeBuilder, tape: Tape, rows: Sequence[int], shape: tuple[int, ...]) -> list[int]:
    """The outputs of the tape; several numbers become one vector."""
    if len(tape.outputs) == len(rows) > 1 and shape == (len(rows),):
        return [builder.emit(primitive("stack"), rows, {"axis": 0})]
    return list(tape.outputs)
