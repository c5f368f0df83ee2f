"""`yota.hvp`: Hessian-vector products, compiled for each combination of argument types."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.api.gradients import is_batched
from yota.errors import ArgumentError, DifferentiationError
from yota.ir.callables import name_of
from yota.ir.inputs import Leaf
from yota.rules.registry import registry
from yota.run.arguments import Arguments
from yota.run.derivatives.calling import caller, form_of
from yota.run.derivatives.differentiated import Differentiated, Forms
from yota.run.gradient_layout import Layout, only_leaf
from yota.run.options import Dynamic, worded
from yota.run.specialise import Gradient, Target, simplified

if TYPE_CHECKING:
    from yota.ir.tape import Tape
    from yota.tracing.record import Recording
    from yota.tracing.results import ResultForm
    from yota.transform.rolling.periods import Worth


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
        shape. The direction is the last argument by position; arguments of ``f`` may be given by name.

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
    recipe = hvp, (f, wrt), {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic}
    found: Callable[..., Any]
    if is_batched(f):
        found = f.mapped(lambda one: hvp(one, wrt, dynamic=dynamic), wanted, dynamic=dynamic, also=(-1,))
    else:
        found = caller(form_of(HessianProducts, f, wrt, wanted, dynamic=dynamic), recipe, "Hessian times a vector")
    sign_with_direction(found, f)
    return found


class HessianProducts(Differentiated):
    """``function`` with compiled code for its Hessian-vector product; the vector is the last argument."""

    values, merges = 0, False

    def __init__(self, function: Callable[..., Any], wrt: int | str, target: Target, *, dynamic: Dynamic) -> None:
        if not isinstance(wrt, (int, str)):
            raise ArgumentError(
                f"wrt={wrt!r}: a Hessian times a direction is by one argument, a position or a name. "
                "To evaluate it, call what is made: yota.hvp(f)(x, v)"
            )
        # A negative position counts the function's own arguments, without the direction.
        place = wrt - 1 if isinstance(wrt, int) and wrt < 0 else wrt
        super().__init__(function, place, replace(target, strict=False), dynamic=dynamic)

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function, and its arguments by position before the direction."""
        function, own = super().positional(args[:-1], kwargs)
        return function, (*own, *args[-1:])

    def named(self, arguments: Arguments) -> Arguments:
        """The arguments, of which the last is the direction and no further parameter of the function."""
        direction = [Leaf(each.value, each.argument, "v", each.path) for each in arguments.leaves[-1:]]
        return replace(arguments, leaves=(*arguments.leaves[:-1], *direction))

    def worth(self, target: Target) -> Worth | None:
        """Lengths from which ops that repeat become a loop; the straight code of a product is several times as long."""
        from yota.transform.rolling.periods import Worth

        return super().worth(target) or (Worth(trips=8) if target.effort == "quick" else None)

    def recorded(
        self, function: Callable[..., Any], arguments: Arguments, layout: Layout, forms: list[ResultForm], **how: Any
    ) -> Recording:
        """A recording of the function without its last argument, the direction."""
        from yota.run.derivatives.inside import record

        leaf, leaves = only_leaf(layout, arguments), self.named(arguments).leaves
        _check(function, leaves[leaf], leaves[-1], len(leaves) - 1)
        return record(function, leaves, lambda values: arguments.rebuild(values)[:-1], **how)

    def derived(
        self, recorded: Recording, arguments: Arguments, layout: Layout, forms: Forms = (), target: Target | None = None
    ) -> Gradient:
        """The tape of the product."""
        from yota.run.derivatives.directions import along, product_of

        leaf, tape, known = only_leaf(layout, arguments), recorded.tape, registry()
        product = along(tape, leaf, known) if target is None else product_of(tape, leaf, known, target)
        return Gradient.of(recorded, product, (leaf,))

    def shortened(self, gradient: Gradient, target: Target, first: Target) -> Tape:
        """The tape to compile; for the first target it is simplified already."""
        return gradient.tape if target == first else simplified(gradient.tape, target)

    def result(self, gradient: Gradient, layout: Layout, outputs: Sequence[Any]) -> Any:
        """The product."""
        return layout.shaped(gradient.leaves, outputs)


def sign_with_direction(found: Any, f: Callable[..., Any]) -> None:
    """Give ``found`` the signature of ``f`` with the direction as its last positional parameter, if ``f`` has one."""
    with contextlib.suppress(TypeError, ValueError):
        found.__signature__ = _with_direction(inspect.signature(f))


def _with_direction(signature: inspect.Signature) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_ONLY
    own = [*signature.parameters.values()]
    if any(each.kind is each.VAR_POSITIONAL for each in own):
        raise ValueError("nothing by position follows them")
    given = [each.replace(kind=kind, default=each.empty) for each in own if each.kind < each.VAR_POSITIONAL]
    name = "v" if "v" not in signature.parameters else "vector"
    return signature.replace(parameters=[*given, inspect.Parameter(name, kind), *own[len(given) :]])


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
