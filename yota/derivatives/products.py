"""`yota.hvp`: Hessian-vector products, compiled for each combination of argument types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from yota.batching.batch import Batched
from yota.compilation.arguments import Arguments
from yota.compilation.branches import Dynamic
from yota.compilation.layout import layout_of, only_leaf
from yota.compilation.specialise import Gradient, Specialisation, Target, simplified
from yota.compilation.words import worded
from yota.derivatives.calling import caller
from yota.derivatives.differentiated import Differentiated
from yota.derivatives.directions import along, product_of
from yota.derivatives.forms import form_of
from yota.derivatives.inside import inside
from yota.derivatives.prepared import Prepared
from yota.errors import ArgumentError, DifferentiationError
from yota.ir.callables import name_of
from yota.ir.tape import Tape
from yota.rules.registry import Registry, registry
from yota.tracing.record import Leaf, Recording, record

__all__ = ["HessianProducts", "hvp"]


@worded
def hvp(
    f: Callable[..., Any],
    wrt: int | str = 0,
    *,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    dynamic: Dynamic = False,
) -> Callable[..., Any]:
    """Return a function of ``(x, v)``: the Hessian of ``f`` at ``x`` times ``v``.

    The product takes a small multiple of the gradient's operations, for any size of ``x``. It never forms the
    Hessian.

    Parameters
    ----------
    f
        A plain NumPy function that returns a real number.
    wrt
        Position or name of the argument to differentiate by, an array or a number.
    target, strict, effort, dynamic
        See `yota.grad`. ``strict`` has no effect, because no value is returned.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and then a direction of the shape of ``args[wrt]``; returns an array of that
        shape.

    Raises
    ------
    DifferentiationError
        When called, if ``x`` is complex or the direction has another shape.

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    >>> hvp(lambda x, a: a * np.sum(x**3))(np.array([1.0, 2.0]), 10.0, np.array([1.0, 1.0]))
    array([ 60., 120.])
    """
    wanted = Target.wanted(target, strict, effort)
    if isinstance(f, Batched):
        return f.mapped(lambda one: hvp(one, wrt, dynamic=dynamic), wanted, dynamic=dynamic, also=(-1,))
    recipe = hvp, (f, wrt), {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic}
    return caller(form_of(HessianProducts, f, wrt, wanted, dynamic=dynamic), recipe, "Hessian times a vector")


class HessianProducts(Differentiated):
    """``function`` with compiled code for its Hessian-vector product; the vector is the last argument.

    Parameters
    ----------
    function
        The user's function.
    wrt
        Position or name of the argument to differentiate by.
    target, dynamic
        See `Differentiated`.
    """

    def __init__(self, function: Callable[..., Any], wrt: int | str, target: Target, *, dynamic: Dynamic) -> None:
        if not isinstance(wrt, (int, str)):
            raise ArgumentError(f"wrt={wrt!r}: a Hessian times a direction is by one argument, a position or a name")
        # A negative position counts the function's own arguments, without the direction.
        place = wrt - 1 if isinstance(wrt, int) and wrt < 0 else wrt
        super().__init__(function, place, replace(target, strict=False), dynamic=dynamic)

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """Code for argument types like those of ``args``."""
        return _Product(self, function, args)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the product on the tape of a running trace."""
        call = inside(self.function, (*self.hidden, *args), kwargs)
        leaf = only_leaf(layout_of(call.function, self.wrt, len(self.hidden), call.plain), call.plain)
        recorded = _recorded(call.function, call.plain, leaf, call.trace.registry)
        (product,) = call.inline(along(recorded.tape, leaf, call.trace.registry), recorded.outer)
        return product


class _Product(Prepared):
    """Compiled product for one combination of argument types."""

    values = 0

    def gradient(self, function: Callable[..., Any], arguments: Arguments) -> Gradient:
        """The tape of the product."""
        leaf = only_leaf(self.layout, arguments)
        around = self.owner.captured.surroundings(arguments.values)
        recorded = _recorded(function, arguments, leaf, registry(), live=True, around=around)
        return Gradient.of(recorded, product_of(recorded.tape, leaf, registry(), self.target), (leaf,))

    def compiled_tape(self, gradient: Gradient, target: Target) -> Tape:
        """The tape to compile; for the first target it is simplified already."""
        return gradient.tape if target == self.target else simplified(gradient.tape, target)

    def result(self, chosen: Specialisation, outputs: tuple[Any, ...]) -> Any:
        """The product."""
        return self.layout.shaped(chosen.gradient.leaves, outputs)


def _recorded(
    function: Callable[..., Any], arguments: Arguments, leaf: int, known: Registry, **options: Any
) -> Recording:
    """Record ``function`` without the last argument, the direction."""
    *leaves, given = arguments.leaves
    direction = Leaf(given.value, given.argument, "v", given.path)
    _check(function, leaves[leaf] if leaf < len(leaves) else given, direction, len(leaves))
    return record(
        function, [*leaves, direction], lambda values: arguments.rebuild(values)[:-1], registry=known, **options
    )


def _check(function: Callable[..., Any], by: Leaf, direction: Leaf, count: int) -> None:
    name = name_of(function)
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
