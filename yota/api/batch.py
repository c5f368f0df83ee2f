"""`yota.batch`: functions of one point mapped over many points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.optimize.pipeline import run
from yota.optimize.polynomials.symbolic import optimise
from yota.rules.registry import registry
from yota.run.arguments import Arguments, function_of, positional
from yota.run.compiled import titled
from yota.run.derivatives.calling import Derivative, form_of
from yota.run.derivatives.differentiated import Differentiated, Forms
from yota.run.derivatives.inside import inside, record
from yota.run.derivatives.value_only import Values
from yota.run.gradient_layout import Layout
from yota.run.options import Dynamic, worded
from yota.run.specialise import Gradient, Target, simplified
from yota.structures import Path
from yota.tracing.record import Recording, refuse_sharing
from yota.tracing.results import ResultForm, parted
from yota.tracing.tracer import Tracer
from yota.transform.batching.op_batching import batched

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
    """Map a function of one point over many points.

    Parameters
    ----------
    f
        A plain NumPy function of one point, or a derivative of one, such as `value_and_grad` returns.
    over
        Position or name of the argument that holds the points, or a tuple of them; by default all arrays.
    axis
        Axis of the points in those arguments and in the results: 0 for an array ``(N, n)`` of points, -1 for ``(n,
        N)``.
    in_axes
        Axis of the points in each argument, instead of ``over`` and ``axis``: a tuple, with None for an argument
        that all points share. For a structure it may be a dict or tuple by key.
    out_axes
        Axis of the points in the results, or a structure of axes like the result of ``f``; None for results that all
        points share.
    target, strict, dynamic
        See `yota.grad`; the target and ``strict`` of ``f`` by default, if it is a derivative. Where a branch depends on
        the values of a point, all points of a call must take the same one: that of the first call, or another if
        ``dynamic`` is set.

    Returns
    -------
    Batched
        Takes the arguments of ``f`` with one more axis and returns its results with one more axis; the number of
        points may be 0. It can be differentiated.

    Raises
    ------
    ArgumentError
        When called, if the arguments have different numbers of points.
    TracingError
        When called, if ``f`` decides by several numbers of a point at once.
    StaleTapeError
        When called, if points take different branches; or if all of them, or a branch on shared values, take another
        one and ``dynamic`` is not set.

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
    form = getattr(f, "form", None)
    chosen = Target.wanted(target, strict)
    if target is None and isinstance(form, Differentiated):
        chosen = replace(form.target, strict=strict or form.target.strict)
    return Batched(function_of(f), over, in_axes, out_axes, chosen, dynamic=dynamic)


class Batched(Derivative):
    """A function over many points; ``given`` is what `Points` takes."""

    def __init__(self, *given: Any, dynamic: Dynamic = False) -> None:
        super().__init__(form_of(Points, *given, dynamic=dynamic), (Batched, given, {"dynamic": dynamic}), "")
        # Beside many points the way to the compiled code takes no time.
        self.front = self
        self.title = self.journal.name = f"batch of {titled(given[0])}"

    def mapped(
        self,
        change: Callable[[Callable[..., Any]], Callable[..., Any]],
        target: Target,
        *,
        dynamic: Dynamic = False,
        also: tuple[int, ...] = (),
    ) -> Batched:
        """The same batch of another function, which ``make`` creates from the function of one point.

        ``target`` applies unless it is the default; arguments at the positions ``also`` hold points too.
        """
        function, over, axes, out_axes, own = self.recipe[1]
        over = None if over is None else (*_several(over), *also)
        if also and isinstance(axes, (tuple, list)):
            axes = (*axes, *[next((axis for axis in axes if isinstance(axis, int)), 0) for _ in also])
        wanted = own if target == Target.wanted() else target
        return Batched(change(function), over, axes, out_axes, wanted, dynamic=self.form.dynamic or dynamic)

    def make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the compiled code for these argument types, compiled if necessary; for Dask arrays on each chunk."""
        if "dask.array" in sys.modules:
            from yota.distributed.mapped import over_points

            found = over_points(self, *positional(self.recipe[1][0], args, kwargs))
            if found is not None:
                return found
        return super().make(args, kwargs)


class Points(Values):
    """``function`` over many points, with compiled code for each combination of argument types; see `batch`."""

    def __init__(
        self,
        function: Callable[..., Any],
        over: int | str | tuple[int | str, ...] | None,
        in_axes: Any,
        out_axes: Any,
        target: Target,
        *,
        dynamic: Dynamic,
    ) -> None:
        super().__init__(function, target, dynamic=dynamic)
        self.over, self.in_axes, self.out_axes = over, in_axes, out_axes
        self.options = over, in_axes, out_axes

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the results on the tape of a running trace, if arguments are traced."""
        call = inside(*self.positional(args, kwargs))
        if any(type(leaf.value) is Tracer for leaf in call.arguments.leaves):
            return Differentiated.traced(self, args, kwargs)
        prepared, function, positions, leaves = self.prepare(args, kwargs)
        return prepared(function, positions, leaves)[0]

    def recorded(
        self, function: Callable[..., Any], arguments: Arguments, layout: Layout, forms: list[ResultForm], **how: Any
    ) -> Recording:
        """A recording of one point."""
        axes = self._axes(arguments)
        _count(arguments.leaves, axes, len(self.hidden))
        points = [
            leaf if axis is None else replace(leaf, value=_point(leaf.value, axis))
            for leaf, axis in zip(arguments.leaves, axes, strict=True)
        ]
        generators = self.captured.generators(arguments.values)
        how = {"registry": registry(), "rolls": how["rolls"]}
        recorded = record(parted(function, forms), points, arguments.rebuild, generators=generators, **how)
        refuse_sharing(recorded.tape.name, arguments.leaves, recorded.written)
        if recorded.outer:
            name = name_of(self.given)
            raise ArgumentError(f"{name} uses traced values besides its arguments; pass them as arguments")
        return recorded

    def derived(
        self, recorded: Recording, arguments: Arguments, layout: Layout, forms: Forms = (), target: Target | None = None
    ) -> Gradient:
        """The tape over all points, from a recording of one point."""
        target, axes = target or self.target, self._axes(arguments)
        # The tape of one point is simplified first: more of it is scalar.
        tape = run(recorded.tape, strict=target.strict, compiled=target.name in ("c", "cuda"))
        tape = optimise(tape, strict=target.strict)
        outer = [self.out_axis_of(path) for path in forms[-1].paths()]
        count = _count(arguments.leaves, axes, len(self.hidden))
        return Gradient.of(recorded, batched(tape, axes, count, outer), (), forms)

    def shortened(self, gradient: Gradient, target: Target, first: Target) -> Tape:
        """The tape to compile."""
        return simplified(gradient.tape, target)

    def _axes(self, arguments: Arguments) -> list[int | None]:
        return [self._axis_of_argument(leaf, len(arguments.values)) for leaf in arguments.leaves]

    def _axis_of_argument(self, leaf: Leaf, count: int) -> int | None:
        """`axis_of` for positions that include bound arguments, which hold no points."""
        hidden = len(self.hidden)
        if leaf.argument < hidden:
            return None
        return self.axis_of(replace(leaf, argument=leaf.argument - hidden), count - hidden)

    def out_axis_of(self, path: Path) -> int | None:
        """Axis of the points in a part of the results; None for shared results."""
        return axis_at(self.out_axes, path, "out_axes")

    def axis_of(self, leaf: Leaf, count: int) -> int | None:
        """Axis of the points in an argument; None for shared arguments."""
        ndim = np.ndim(leaf.value)
        axis: int | None
        if isinstance(self.in_axes, (tuple, list)):
            if len(self.in_axes) != count:
                name = name_of(self.given)
                raise ArgumentError(
                    f"in_axes={self.in_axes!r} is for {len(self.in_axes)} arguments, and {name} was called with {count}"
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


def _several(over: int | str | tuple[int | str, ...]) -> tuple[int | str, ...]:
    return over if isinstance(over, tuple) else (over,)


def axis_at(axes: Any, path: Path, option: str) -> int | None:
    """The axis for the part at ``path``; ``axes`` is one axis for all, or a structure of axes by key."""
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


def _count(leaves: Sequence[Leaf], axes: Sequence[int | None], hidden: int) -> int:
    """Number of points, equal in all arguments after the first ``hidden`` ones."""
    held = [(leaf, axis) for leaf, axis in zip(leaves, axes, strict=True) if axis is not None]
    counts = {leaf.place: leaf.value.shape[axis] for leaf, axis in held}
    if not counts:
        listed = ", ".join(leaf.place for leaf in leaves if leaf.argument >= hidden) or "none"
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
    """The first point, or a sample if there are none: the tape does not depend on its values."""
    if points.shape[axis]:
        return np.take(points, 0, axis=axis)
    shape = points.shape[:axis] + points.shape[axis + 1 :]
    return np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(points.dtype)[()]
