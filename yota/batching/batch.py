"""Functions of one point over many points: `yota.batch`."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.batching.ops import batched
from yota.codegen.symbolic import optimise
from yota.compilation.arguments import Arguments, function_of, key_of, positional, sort_arguments
from yota.compilation.branches import MOST_TAPES, Dynamic, check_dynamic, follow
from yota.compilation.compiled import CHANGED, CLEARED, CONTENT, OTHER_WAY, Compiled, Journal
from yota.compilation.device import on_host, target_for
from yota.compilation.specialise import Target, compile_tape, simplified
from yota.compilation.words import worded
from yota.derivatives.forms import shared
from yota.derivatives.inside import inside
from yota.errors import ArgumentError, StaleTapeError
from yota.ir.tape import Tape
from yota.passes.pipeline import run
from yota.rules.registry import registry
from yota.runtime.cache import Table
from yota.runtime.signals import StaleTape
from yota.structures import Path
from yota.tracing.observation import Running
from yota.tracing.record import Leaf, record
from yota.tracing.replay import stale
from yota.tracing.results import ResultForm, parted
from yota.tracing.state import current
from yota.tracing.tracebacks import users_frames
from yota.tracing.tracer import Tracer
from yota.watching.captured import Captured
from yota.watching.contents import Contents
from yota.watching.reach import bearers

__all__ = ["Batched", "batch"]


@worded
def batch(
    f: Callable[..., Any],
    *,
    over: int | str | tuple[int | str, ...] | None = None,
    axis: int = 0,
    in_axes: Any = 0,
    out_axes: Any = 0,
    target: str | None = None,
    strict: bool = False,
    dynamic: Dynamic = False,
) -> Batched:
    """A function of one point, over many points at once.

    Parameters
    ----------
    f
        A plain NumPy function of one point; also `value_and_grad`, `gradient` or another function of one.
    over
        Position or name of the argument that holds the points, or a tuple of them; all arrays by default.
    axis
        Along which axis of those arguments, and of the results, the points are: 0 for an array ``(N, n)`` of points,
        -1 for rows ``(n, N)``.
    in_axes
        In the place of ``over`` and ``axis``: the axis of points in each argument, a tuple with None for an argument
        that is the same for all points. For an argument that is a structure it may be a dict or tuple by key.
    out_axes
        The axis of points in the results, or a structure of such axes like what ``f`` returns; None for what is the
        same for all points.
    target, strict, dynamic
        See `yota.grad`. A branch may ask for what is the same for all points, and for nothing else.

    Returns
    -------
    Batched
        Takes the arguments of ``f`` with one more axis, and gives its results with one more axis, for no points too. It
        can be differentiated like any function.

    Raises
    ------
    ArgumentError
        When called, if the arguments do not have the same number of points.
    TracingError
        When called, if ``f`` branches on the values of a point, or uses a function that is not known over many points.
    StaleTapeError
        When called, if a branch on what is the same for all points goes another way, unless ``dynamic`` is given.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> batch(lambda x: x[0] * x[1])(points)
    array([ 2., 12.])
    >>> batch(lambda x, w: {"sum": np.sum(w * x)}, in_axes=(1, None))(points, np.array([1.0, 10.0]))
    {'sum': array([31., 42.])}
    """
    if axis not in (0, -1):
        raise ArgumentError(f"axis={axis!r}: points are along the first axis, 0, or along the last, -1")
    if axis:
        if in_axes != 0 or out_axes != 0:
            raise ArgumentError(f"axis={axis} is in_axes={axis}, out_axes={axis}; give one or the other")
        in_axes = out_axes = axis
    if over is not None and not isinstance(in_axes, int):
        raise ArgumentError(f"in_axes={in_axes!r} says which arguments hold points; leave over= out")
    wanted = Target.wanted(target, strict)

    def make() -> Batched:
        return Batched(function_of(f), over, in_axes, out_axes, wanted, dynamic=dynamic)

    # What a method or a partial function supplies is part of it here.
    given = None if isinstance(f, types.FunctionType) else f
    return shared(function_of(f), make, Batched, given, over, in_axes, out_axes, wanted, dynamic)


class Batched(Compiled):
    """``function`` over many points; see `batch`."""

    def __init__(
        self,
        function: Callable[..., Any],
        over: int | str | tuple[int | str, ...] | None,
        in_axes: Any,
        out_axes: Any,
        target: Target,
        *,
        dynamic: Dynamic = False,
    ) -> None:
        check_dynamic(dynamic)
        self.function, self.over, self.target, self.dynamic = function, over, target, dynamic
        self.in_axes, self.out_axes = in_axes, out_axes
        recipe = Batched, (function, over, in_axes, out_axes, target), {"dynamic": dynamic}
        super().__init__(recipe, function, journal=Journal("", target.name))
        self.title = self.journal.name = f"batch of {self.__name__}"
        self.captured = Captured(function)
        self._table = Table()

    def mapped(
        self,
        change: Callable[[Callable[..., Any]], Callable[..., Any]],
        target: Target,
        *,
        dynamic: Dynamic = False,
        also: tuple[int, ...] = (),
    ) -> Batched:
        """The same over the points of another function, made from this one's.

        ``target`` counts unless it is the default; arguments in the places ``also`` hold points too.
        """
        wanted = self.target if target == Target.wanted() else target
        over = None if self.over is None else (*_several(self.over), *also)
        axes = self.in_axes
        if also and isinstance(axes, (tuple, list)):
            axes = (*axes, *[next((axis for axis in axes if isinstance(axis, int)), 0) for _ in also])
        return Batched(change(self.function), over, axes, self.out_axes, wanted, dynamic=self.dynamic or dynamic)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results for all points."""
        self.calls += 1
        with users_frames:
            return self._results(args, kwargs)

    def _results(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function, args = positional(self.function, args, kwargs)
        trace = current()
        if trace is not None and any(type(leaf.value) is Tracer for leaf in sort_arguments(function, args).leaves):
            return self._traced(function, args)
        leaves: list[Any] = []
        key = tuple([key_of(argument, leaves) for argument in args])
        if function is not self.function:
            key = (function.names, *key)  # type: ignore[attr-defined]
        if self._table.get(key) is None and "dask.array" in sys.modules:
            from yota.distributed.mapped import over_points

            found = over_points(self, function, args)
            if found is not None:
                return found
        with self._table.lock:
            if self.captured.changed():
                self._forget(CHANGED)
                self.captured.settle()
            ways = self._table.get(key)
            if ways is None or any(way.contents.changed() for way in ways):
                ways = (self._compiled(function, args, CONTENT if ways else ""),)
                self._table.insert(key, ways)
        for way in ways:
            fault, results = way.run(leaves)
            if fault is None:
                return self._filled(way, results)
            follow(self.dynamic, fault, way.tape.guards[fault.decision[0]], len(ways))
        with self._table.lock:
            way = self._compiled(function, args, OTHER_WAY)
            self._table.insert(key, (*ways[1 - MOST_TAPES :], way))
        return self._filled(way, way.call(*leaves))

    def take_over(self, other: Batched) -> None:
        """Take the compiled code of another function, of the same code, that captured the same."""
        self.captured.adopt(other.captured)
        self.journal = other.journal
        self._table.update(other._table)

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles anew."""
        self._forget(CLEARED)

    def _forget(self, why: str) -> None:
        self._table.clear()
        self.journal.forget(why)

    def _filled(self, way: _Compiled, results: Any) -> Any:
        return way.form.filled(results if isinstance(results, tuple) else (results,))

    def _compiled(self, function: Callable[..., Any], args: tuple[Any, ...], why: str) -> _Compiled:
        arguments = sort_arguments(function, args)
        target = target_for(self.target, arguments)
        with self.journal.compiling(arguments, target.first.name, why) as made:
            found = self._made(function, arguments, target)
            made(found.tape, found.source)
        return found

    def _made(self, function: Callable[..., Any], arguments: Arguments, target: Target) -> _Compiled:
        self.captured.take(bearers(arguments.values))
        recording = self._record(function, on_host(arguments))
        self.captured.take(recording.ran)
        self.captured.absorb()
        contents = Contents.of(recording.watched, self.captured.parts(), ())

        def code(target: Target) -> tuple[Callable[..., Any], Tape, str]:
            call, source = compile_tape(simplified(recording.tape, target), target)
            return call, recording.tape, source

        call, tape, source = code(target.first)
        call = self.journal.going_on(arguments, target, call, code)
        return _Compiled(call, recording.form, tape, source, contents)

    def _traced(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        call = inside(function, args, {})
        found = self._record(function, call.plain)
        return found.form.filled(call.inline(found.tape, {}))

    def _record(self, function: Callable[..., Any], arguments: Arguments) -> _Recording:
        """The tape over all points, from a run at one of them."""
        axes = [self.axis_of(leaf, len(arguments.values)) for leaf in arguments.leaves]
        count = _count(arguments.leaves, axes)
        points = [
            leaf if axis is None else Leaf(_point(leaf.value, axis), leaf.argument, leaf.name, leaf.path)
            for leaf, axis in zip(arguments.leaves, axes, strict=True)
        ]
        forms: list[ResultForm] = []
        around = self.captured.surroundings(arguments.values)
        recorded = record(parted(function, forms), points, arguments.rebuild, registry=registry(), around=around)
        if recorded.outer:
            raise ArgumentError(f"{self.__name__} uses traced values besides its arguments; pass them as arguments")
        # One point's tape is rewritten first: there, more is a scalar.
        compiled = self.target.name in ("c", "cuda")
        tape = run(recorded.tape, strict=self.target.strict, compiled=compiled)
        tape = optimise(tape, strict=self.target.strict)
        outer = [self.out_axis_of(path) for path in forms[-1].paths()]
        return _Recording(batched(tape, axes, count, outer), forms[-1], recorded.watched, recorded.ran)

    def out_axis_of(self, path: Path) -> int | None:
        """Along which axis of a part of the results the points are; None for what is the same for all."""
        return axis_at(self.out_axes, path, "out_axes")

    def axis_of(self, leaf: Leaf, count: int) -> int | None:
        """Along which axis of an array the points are; None for what is the same for all."""
        ndim = np.ndim(leaf.value)
        axis: int | None
        if isinstance(self.in_axes, (tuple, list)):
            if len(self.in_axes) != count:
                raise ArgumentError(
                    f"in_axes={self.in_axes!r} is for {len(self.in_axes)} arguments, and {self.__name__} was called "
                    f"with {count}"
                )
            axis = axis_at(self.in_axes[leaf.argument], leaf.path, "in_axes")
        elif not ndim or not self._is_over(leaf, count):
            return None
        else:
            axis = axis_at(self.in_axes, (), "in_axes")
        if axis is None:
            return None
        if not -ndim <= axis < ndim:
            raise ArgumentError(f"points are along axis {axis}, and {leaf.place} has {ndim} axes")
        return axis % ndim

    def _is_over(self, leaf: Leaf, count: int) -> bool:
        wanted = None if self.over is None else _several(self.over)
        return wanted is None or bool({leaf.argument, leaf.argument - count, leaf.name} & set(wanted))


@dataclass(frozen=True, slots=True)
class _Recording:
    tape: Tape
    form: ResultForm
    watched: Sequence[tuple[Any, Any]]
    ran: Sequence[Running]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """Code for one way through the function."""

    call: Callable[..., Any]
    form: ResultForm
    tape: Tape
    source: str
    contents: Contents

    def run(self, leaves: Sequence[Any]) -> tuple[StaleTapeError | None, Any]:
        """The results, or the error that a branch goes another way."""
        try:
            return None, self.call(*leaves)
        except StaleTape as signal:
            return stale(self.tape.guards[signal.index], signal.value, signal.index), None


def _several(over: int | str | tuple[int | str, ...]) -> tuple[int | str, ...]:
    return over if isinstance(over, tuple) else (over,)


def axis_at(axes: Any, path: Path, option: str) -> int | None:
    """The axis for the part at ``path``, where ``axes`` is one for all, or a structure of them by key."""
    found = axes
    for key in path:
        if not isinstance(found, (Mapping, tuple, list)):
            break
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError):
            raise ArgumentError(f"{option}={axes!r} has no entry for {key!r} of {list(path)}") from None
    if found is not None and (not isinstance(found, (int, np.integer)) or isinstance(found, bool)):
        raise ArgumentError(f"{option}={axes!r}: an axis is an integer, or None where there are no points")
    return None if found is None else int(found)


def _count(leaves: Sequence[Leaf], axes: Sequence[int | None]) -> int:
    """Number of points, the same in all arguments."""
    held = [(leaf, axis) for leaf, axis in zip(leaves, axes, strict=True) if axis is not None]
    counts = {leaf.place: leaf.value.shape[axis] for leaf, axis in held}
    if not counts:
        listed = ", ".join(leaf.place for leaf in leaves) or "none"
        raise ArgumentError(
            f"batch was called without an array of points, or over= names none; the arguments are: {listed}"
        )
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise ArgumentError(
            f"the arguments hold different numbers of points ({listed}); "
            "name those that hold points: batch(f, over=...)"
        )
    (count,) = set(counts.values())
    return int(count)


def _point(points: np.ndarray, axis: int) -> Any:
    """The first of the points; where there are none, one like any other: nothing depends on its values."""
    if points.shape[axis]:
        return np.take(points, 0, axis=axis)
    shape = points.shape[:axis] + points.shape[axis + 1 :]
    return np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(points.dtype)[()]
