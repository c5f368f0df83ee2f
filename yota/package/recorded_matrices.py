"""What functions of a file are written from; matrices of derivatives in one piece where they are small, else by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from yota.errors import ArgumentError
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.ir.types import TensorType, type_of
from yota.package.subject import Subject
from yota.rules.registry import registry
from yota.run.derivatives.differentiated import Differentiated
from yota.run.derivatives.directions import along, product_of
from yota.run.derivatives.inside import record
from yota.run.derivatives.straight_line import straight_line
from yota.run.gradient_layout import Wanted
from yota.run.specialise import Target, rolled
from yota.schedule.target_forms import unsigned
from yota.transform.reverse.backward import Adjoints

_UNROLLED = 16
"""Rows up to which a matrix is one piece of code, rather than a loop over rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Derivative:
    """A recording.

    extra: a further argument of the recording: what it multiplies the matrix by. None if it gives the whole matrix.
    """

    tape: Tape
    like: TensorType
    extra: Leaf | None = None


Recording: TypeAlias = "Subject | Adjoints | Derivative"
"""What a function is written from."""


def recorded(
    subject: Subject, wanted: Sequence[str], *, scalar: bool, whole: Mapping[str, bool] | None = None
) -> Iterator[tuple[str, Recording]]:
    """What functions give, and what they are written from; ``whole`` and ``scalar`` are those of `jacobian_of`."""
    if "value" in wanted:
        yield "value", subject
    if "gradient" in wanted:
        yield "gradient", subject.adjoints
    for word, make in {"jacobian": jacobian_of, "hvp": hvp_of, "hessian": hessian_of}.items():
        if word in wanted:
            yield word, make(subject, whole=whole is None or whole[word], scalar=scalar)


def jacobian_of(subject: Subject, *, whole: bool = True, scalar: bool = True) -> Derivative:
    """Partial derivatives of each element of the result; ``extra`` weights the elements.

    ``whole`` says whether a small matrix may be recorded in one piece, ``scalar`` whether as scalar code, which is
    other code for each size.
    """
    leaf, by = _wanted(subject, "jacobian")
    if len(subject.tape.outputs) != 1:
        raise ArgumentError(f"{subject.tape.name} returns several values; a Jacobian needs one array")
    result = subject.tape.types[subject.tape.outputs[0]]
    function, like = _on_leaves(subject), TensorType(by.dtype, result.shape + by.shape)

    def weighted(*values: Any) -> Any:
        return gradient(lambda *leaves: np.sum(values[-1] * function(*leaves)), leaf)(*values[:-1])

    if whole and result.size <= _UNROLLED:
        return _whole(subject, function, leaf, result, like, 1 if scalar else 0)
    seed = Leaf(np.ones(result.shape, result.dtype)[()], len(subject.arguments.leaves), "seed")
    return Derivative(_recorded(subject, weighted, seed), like, seed)


def hessian_of(subject: Subject, *, whole: bool = True, scalar: bool = True) -> Derivative:
    """Second derivatives; ``extra`` is a direction, ``whole`` and ``scalar`` as in `jacobian_of`."""
    leaf, by = _wanted(subject, "hessian")
    function, like = _on_leaves(subject), TensorType(by.dtype, by.shape + by.shape)
    if whole and by.size <= _UNROLLED:
        return _whole(subject, gradient(function, leaf), leaf, by, like, 2 if scalar else 0)
    product = hvp_of(subject, whole=whole, scalar=scalar)
    return Derivative(product.tape, like, product.extra)


def hvp_of(subject: Subject, *, whole: bool = True, scalar: bool = True) -> Derivative:
    """Second derivatives times ``extra``, in any case; as scalar code if ``whole`` and ``scalar`` say so."""
    leaf, by = _wanted(subject, "hvp")
    value, function = subject.arguments.leaves[leaf].value, _on_leaves(subject)
    ones = np.ones_like(value) if isinstance(value, np.ndarray) else value
    direction = Leaf(ones, len(subject.arguments.leaves), "v")
    tape = _recorded(subject, lambda *leaves: function(*leaves[:-1]), direction)
    made = along(tape, leaf, registry())
    if whole and scalar:
        made = product_of(tape, leaf, registry(), subject.call.search)
    return Derivative(made, by, direction)


def _whole(
    subject: Subject, function: Callable[..., Any], leaf: int, result: TensorType, like: TensorType, order: int
) -> Derivative:
    """Derivatives of all elements of ``function``; as scalar code those of this ``order`` of the subject itself."""

    def element(position: int) -> Callable[..., Any]:
        return lambda *leaves: np.reshape(function(*leaves), -1)[position]

    def rows(*leaves: Any) -> Any:
        if not result.shape:
            return gradient(function, leaf)(*leaves)
        found = [gradient(element(position), leaf)(*leaves) for position in range(result.size)]
        return np.reshape(np.stack(found), like.shape)

    found = None
    if order:
        recorded = _recorded(subject, _on_leaves(subject))
        found = straight_line(recorded, leaf, Wanted(order), registry(), subject.call.search)
    return Derivative(found.tape if found else _recorded(subject, rows), like)


def gradient(function: Callable[..., Any], leaf: int) -> Callable[..., Any]:
    """The gradient by one argument, inside of a trace."""
    form = Differentiated(function, leaf, Target(), dynamic=False)
    return lambda *leaves: form.traced(leaves, {})[1]


def _wanted(subject: Subject, what: str) -> tuple[int, TensorType]:
    leaves = subject.layout.wanted
    named = [subject.arguments.leaves[leaf] for leaf in leaves]
    if len(leaves) != 1:
        names = ", ".join(leaf.place for leaf in named)
        raise ArgumentError(f"with_={what!r} differentiates by one array, not by {names}; choose an argument with wrt=")
    found = type_of(named[0].value)
    if found.is_complex:
        raise ArgumentError(f"with_={what!r} needs a real argument; {named[0].place} is complex")
    return leaves[0], found


def _on_leaves(subject: Subject) -> Callable[..., Any]:
    return lambda *leaves: subject.function(*subject.arguments.rebuild(leaves))


def _recorded(subject: Subject, function: Callable[..., Any], *extra: Leaf) -> Tape:
    leaves = [
        Leaf(leaf.value, position, leaf.name, leaf.path)
        for position, leaf in enumerate((*subject.arguments.leaves, *extra))
    ]
    function.__name__ = subject.tape.name
    found = record(function, leaves, tuple, registry=registry(), rolls=subject.rolls)
    return unsigned(rolled(found, subject.call.worth).tape)
