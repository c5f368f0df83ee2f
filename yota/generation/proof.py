"""Holds a module for all sizes against tapes of one size each, at sizes that it was not made from."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from yota.autodiff.reverse import gradient_tape
from yota.compilation.layout import Wrt
from yota.errors import ArgumentError, YotaError
from yota.generation.derivatives import Derivative, hessian_of, hvp_of, jacobian_of
from yota.generation.subject import Call, Subject, subject_of
from yota.rules.registry import registry
from yota.tracing.replay import evaluate

__all__ = ["compared", "gradients_of", "is_finite", "is_single", "products_of", "proved", "trials"]

_LARGE, _MOST_LARGE = 67, 3
_TOLERANCE, _TOLERANCE_OF_SINGLE = 1e-9, 1e-4
_MOST_ROWS = 256
"""Rows of a matrix up to which all of it is compared; the product with a vector is at every size."""


def proved(text: str, name: str, call: Call, wrt: Wrt, wanted: Sequence[str], *, strict: bool = False) -> None:
    """Hold a module against yota at sizes 1 and 2, at mixed ones and at a large one; strict values to the bit.

    Raises
    ------
    ArgumentError
        If it computes something else there.
    """
    module = types.ModuleType("yota.proved")
    # Named tuples look their module up by name.
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, "<module under proof>", "exec"), module.__dict__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for size in trials(call.dimensions()):
                _proved_at(module, name, call, wrt, wanted, size, strict)
    finally:
        del sys.modules[module.__name__]


def trials(names: Sequence[str]) -> list[Mapping[str, int]]:
    """Sizes at which code for all of them is tried."""
    same = [dict.fromkeys(names, size) for size in (1, 2, 3)]
    mixed = [{name: 1 + (position + shift) % 3 for position, name in enumerate(names)} for shift in (0, 1)]
    # An array that has many axes is large soon enough.
    large = {name: _LARGE - 4 * position if position < _MOST_LARGE else 2 for position, name in enumerate(names)}
    return [*same, *mixed, large]


def _proved_at(
    module: types.ModuleType,
    name: str,
    call: Call,
    wrt: Wrt,
    wanted: Sequence[str],
    size: Mapping[str, int],
    strict: bool,
) -> None:
    function, arguments = call.arguments(size)
    try:
        with np.errstate(all="ignore"):
            value = function(*arguments.values)
    except Exception:  # noqa: BLE001
        # Where the function has no value, neither has the module.
        return
    leaves = [leaf.value for leaf in arguments.leaves]
    single = is_single([*leaves, *(value if isinstance(value, tuple) else [value])])
    shown = ", ".join(f"{each} = {extent}" for each, extent in size.items())
    try:
        if "value" in wanted:
            found = getattr(module, name)(*leaves)
            compared(found, value, f"the value at {shown}", single=single)
            if strict and np.asarray(found).tobytes() != np.asarray(value).tobytes():
                raise ArgumentError(f"at {shown} the code for all sizes has other bits than NumPy; leave strict out")
        if set(wanted) <= {"value"} or not is_finite(value):
            return
        subject = subject_of(call, wrt, size)
        if "gradient" in wanted:
            found = getattr(module, f"{name}_value_and_gradient")(*leaves)
            _compare_gradients(found, value, gradients_of(subject, leaves), shown, single)
        for what, given, expected in products_of(subject, leaves, wanted):
            found = getattr(module, f"{name}_{what}")(*leaves, *given)
            compared(found, expected, f"the {what} at {shown}", single=single)
    except (ArithmeticError, IndexError, ValueError) as fault:
        if isinstance(fault, YotaError):
            raise
        raise ArgumentError(f"at {shown} the code for all sizes raises {type(fault).__name__}: {fault}") from None


def gradients_of(subject: Subject, leaves: Sequence[Any]) -> list[Any]:
    """Gradients by a tape of just this size, op by op."""
    wanted = [subject.tape.inputs[leaf].variable for leaf in subject.layout.wanted]
    found = gradient_tape(subject.tape, wanted, registry())
    inputs = {entry.variable: leaf for entry, leaf in zip(found.tape.inputs, leaves, strict=True)}
    rest = iter(evaluate(found.tape, inputs)[1:])
    return [None if variable is None else next(rest) for variable in found.variables]


def products_of(
    subject: Subject, leaves: Sequence[Any], wanted: Sequence[str]
) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Functions that involve a vector or give a matrix, with further arguments and what they should give."""
    if "hvp" in wanted:
        found = hvp_of(subject, whole=False)
        assert found.extra is not None
        direction = np.cos(np.arange(float(np.size(found.extra.value)))).reshape(np.shape(found.extra.value))
        direction = direction.astype(np.asarray(found.extra.value).dtype)[()]
        yield "hvp", (direction,), _row(found, leaves, direction)
    for what, of in (("jacobian", jacobian_of), ("hessian", hessian_of)):
        if what in wanted:
            found = of(subject, whole=False)
            assert found.extra is not None
            rows = np.asarray(found.extra.value)
            if rows.size <= _MOST_ROWS:
                units = np.eye(rows.size, dtype=rows.dtype).reshape(-1, *rows.shape)
                matrix = [_row(found, leaves, unit[()]) for unit in units]
                yield what, (), np.reshape(matrix, found.like.shape)


def _row(found: Derivative, leaves: Sequence[Any], vector: Any) -> Any:
    """The matrix times a vector, op by op."""
    values = zip(found.tape.inputs, (*leaves, vector), strict=True)
    return evaluate(found.tape, {entry.variable: value for entry, value in values})[0]


def _compare_gradients(found: Any, value: Any, gradients: Sequence[Any], shown: str, single: bool) -> None:
    compared(found[0], value, f"the value at {shown}", single=single)
    parts = found[1] if isinstance(found[1], tuple) else (found[1],)
    for part, gradient in zip(parts, gradients, strict=True):
        expected = np.zeros(np.shape(part)) if gradient is None else gradient
        compared(part, expected, f"the gradient at {shown}", single=single)


def is_finite(value: Any) -> bool:
    """Whether a function's value is finite throughout: at a pole, derivatives depend on the order of operations."""
    return all(bool(np.all(np.isfinite(part))) for part in (value if isinstance(value, tuple) else (value,)))


def is_single(values: Iterable[Any]) -> bool:
    """Whether there are numbers of single precision among ``values``."""
    return any(each.dtype.char in "efF" for each in map(np.asarray, values))


def compared(found: Any, expected: Any, what: str, *, single: bool) -> None:
    """Raise unless ``what`` was found as expected, of numbers of ``single`` precision or not."""
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            compared(one, other, what, single=single)
        return
    # Where large terms cancel, what is left has errors of their size.
    finite = np.isfinite(expected)
    tolerance = _TOLERANCE_OF_SINGLE if single else _TOLERANCE
    scale = tolerance * max(1.0, float(np.abs(np.asarray(expected)[finite]).max(initial=0.0)))
    same = np.shape(found) == np.shape(expected) and np.array_equal(np.isfinite(found), finite)
    if not (same and np.allclose(np.asarray(found)[finite], np.asarray(expected)[finite], rtol=tolerance, atol=scale)):
        raise ArgumentError(
            f"{what} is not what the code for all sizes gives: the function does something else there, as with a "
            "branch on the size. Fix the size, or write the function without it"
        )
