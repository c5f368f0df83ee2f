"""Loops that stay loops on a tape: `scan`, `fori` and `while_loop`; plain Python loops where nothing is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from yota.errors import ArgumentError, TracingError
from yota.ir.callables import name_of
from yota.ir.infer import sample
from yota.ir.types import TensorType
from yota.rules.language.statics import axes_of
from yota.tracing.current import current
from yota.tracing.implementations import IMPLEMENTATIONS, implements
from yota.tracing.loop_recording import LoopRecorder
from yota.tracing.results import ResultForm, taken_apart
from yota.tracing.rewriting import traced_loops
from yota.tracing.trace import Trace

__all__ = ["fori", "scan", "while_loop"]


def scan(step: Callable[[Any, Any], Any], carry: Any, xs: Any = None, length: int | None = None) -> tuple[Any, Any]:
    """Carry a value along the first axis of arrays: ``for x in xs: carry, y = step(carry, x)``.

    Plain Python where nothing is traced. In a function that is differentiated or compiled, ``step`` is recorded once
    and the loop stays one: what compiling costs does not depend on the number of trips. The derivative is a loop too.

    Parameters
    ----------
    step
        Takes what is carried and one row, gives the next of both. It is called with traced values; it decides by their
        values with `numpy.where`, not with ``if``.
    carry
        A number, an array, or a structure of them; every trip keeps its structure, dtypes and shapes. Trips may write
        into its arrays, which are copies.
    xs
        An array, or a structure of arrays, of as many rows; None if ``length`` is given.
    length
        The number of trips.

    Returns
    -------
    carry
        After the last trip.
    ys
        The second results of ``step``, stacked along the first axis; a structure if they are.

    Raises
    ------
    ArgumentError
        If the arrays have different numbers of rows, or a trip changes the type of what is carried.
    TracingError
        If ``step`` branches on a traced value.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> def path(speed):
    ...     return scan(lambda place, v: (place + 0.5 * v, place), 0.0, speed)
    >>> path(np.array([1.0, 2.0, 3.0]))
    (np.float64(3.0), array([0. , 0.5, 1.5]))
    >>> yota.grad(lambda speed: np.sum(path(speed)[1] ** 2), np.array([1.0, 2.0, 3.0]))[1][0]
    array([2. , 1.5, 0. ])
    """
    rows: list[Any] = []
    form = taken_apart("xs", xs, rows)
    if any(not np.ndim(each) for each in rows):
        raise ArgumentError("scan: xs are arrays whose first axis is scanned, and one of them has no axes")
    counts = {int(np.shape(each)[0]) for each in rows} | ({int(length)} if length is not None else set())
    if len(counts) != 1:
        found = f"they have {', '.join(map(str, sorted(counts)))}" if counts else "give xs or length="
        raise ArgumentError(f"scan: xs and length are one number of trips; {found}")
    (count,) = counts
    if current() is None:
        return _scanned(step, carry, rows, form, count)

    def trip(index: Any, carry: Any, x: Any) -> Any:
        found = step(carry, x)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ArgumentError(f"scan: {name_of(step)} returns a pair, what is carried and what is stacked")
        return found

    return LoopRecorder("scan", step, trip, carry, rows, form, count=max(count, 0)).run()


def fori(n: Any, body: Callable[[Any, Any], Any], x: Any) -> Any:
    """Do something a number of times: ``for i in range(n): x = body(i, x)``.

    Parameters
    ----------
    n
        The number of trips; it may be traced, and the code is then for every number.
    body
        Takes the number of the trip and what is carried, gives what is carried next; see `scan`.
    x
        A number, an array, or a structure of them.

    Returns
    -------
    Any
        What is carried after the last trip.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> yota.grad(lambda x: fori(1000, lambda i, y: y + 0.001 * np.sin(y), x), 1.0)[0].round(6)
    np.float64(1.95625)
    """
    if current() is None:
        x = _copied(x)
        for number in range(int(n)):
            x = body(number, x)
        return x
    return LoopRecorder("fori", body, lambda index, carry, row: (body(index, carry), None), x, count=n).run()[0]


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], x: Any) -> Any:
    """Do something as long as a condition holds: ``while condition(x): x = body(x)``.

    The code is for every number of trips. A derivative in reverse keeps what every trip begins with, for several times
    as many trips as the function took when it was recorded; a call with more of them is recorded anew, and refused
    under ``dynamic=False``.

    Parameters
    ----------
    condition
        Takes what is carried, gives a truth.
    body
        Gives what is carried next; see `scan`.
    x
        A number, an array, or a structure of them.

    Returns
    -------
    Any
        What is carried at the end.

    Examples
    --------
    >>> import yota
    >>> def root(a):
    ...     return while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)
    >>> value, (slope,) = yota.grad(root, 2.0)
    >>> round(float(value), 9), round(float(slope), 9)
    (1.414213562, 0.353553391)
    """
    if current() is None:
        x = _copied(x)
        while condition(x):
            x = body(x)
        return x
    return LoopRecorder(
        "while_loop", body, lambda index, carry, row: (body(carry), None), x, condition=condition
    ).run()[0]


_Moved: TypeAlias = Callable[[], dict[int, int]]


def _conditional(condition: Callable[[Any], Any], body: Callable[[Any], Any], x: Any, moved: _Moved) -> Any:
    """A ``while`` of the user's."""
    trip = lambda index, carry, row: (body(carry), None)  # noqa: E731
    return LoopRecorder("while", body, trip, x, condition=condition, checked=True, moved=moved).run()[0]


def _counted(n: int, body: Callable[[Any, Any], Any], x: Any, moved: _Moved = dict) -> Any:
    """A ``for`` of the user's over a range."""
    trip = lambda index, carry, row: (body(index, carry), None)  # noqa: E731
    found, (_, failures) = LoopRecorder("for", body, trip, x, count=n, checked=True, moved=moved).run()
    _refuse_failures(failures)
    return found


def _mapped(n: int, function: Callable[[Any], Any]) -> Any:
    """The results of ``function`` for numbers below ``n``, stacked."""
    trip = lambda index, carry, row: (carry, function(index))  # noqa: E731
    _, (found, failures) = LoopRecorder("map", function, trip, (), count=n, checked=True).run()
    _refuse_failures(failures)
    return found


def _refuse_failures(failures: Sequence[Any]) -> None:
    """Refuse a loop of which a trip raises an error; for other inputs that is a guard."""
    if any(bool(np.any(each)) for each in failures):
        raise TracingError("a trip raises an error")


traced_loops.follows(conditional=_conditional, counted=_counted, mapped=_mapped)


def _scanned(
    step: Callable[[Any, Any], Any], carry: Any, rows: Sequence[Any], form: ResultForm, count: int
) -> tuple[Any, Any]:
    """`scan` where nothing is traced."""
    parts: list[list[Any]] = []
    shape = None
    carry = _copied(carry)
    for number in range(count):
        carry, y = step(carry, form.filled([each[number].copy() for each in rows]))
        found = list[Any]()
        shape = taken_apart("step", y, found)
        parts.append([np.array(each) for each in found])
    if shape is None:
        # No trip tells what would be stacked: one beside the point does.
        found = []
        with np.errstate(all="ignore"):
            _, y = step(carry, form.filled([sample(TensorType(each.dtype, each.shape[1:])) for each in rows]))
        shape = taken_apart("step", y, found)
        return carry, shape.filled([np.empty((0, *np.shape(each)), np.asarray(each).dtype) for each in found])
    return carry, shape.filled([np.stack(column) for column in zip(*parts, strict=True)])


def _copied(carry: Any) -> Any:
    """``carry`` with copies of its arrays: the trips may write into them, as they may where they are traced."""
    parts: list[Any] = []
    form = taken_apart("carry", carry, parts)
    return form.filled([each.copy() if isinstance(each, np.ndarray) else each for each in parts])


_at_known_sizes = IMPLEMENTATIONS[np.cumprod]


@implements(np.cumprod)
def _cumprod(trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    if trace.sizes is None or trace.exact:
        return _at_known_sizes(trace, a, axis, dtype)
    a = trace.traced(a)
    a = a if dtype is None else a.astype(dtype)
    a, axis = (a.reshape(-1), 0) if axis is None or not a.ndim else (a, axes_of(axis, a.ndim)[0])
    rows = np.moveaxis(a, axis, 0)
    _, products = scan(lambda product, row: (product * row,) * 2, np.ones(rows.shape[1:], a.dtype)[()], rows)
    return np.moveaxis(products, 0, axis)
