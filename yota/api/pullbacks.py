"""`yota.jvp` and `yota.vjp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.api.gradients import gradient
from yota.errors import ArgumentError, DifferentiationError
from yota.ir.callables import name_of
from yota.run.arguments import function_of
from yota.run.compiled import Compiled, Journal
from yota.run.derivatives.calling import READ_EACH_CALL, shared
from yota.run.derivatives.differentiated import with_receiver
from yota.run.device import beside
from yota.run.gradient_layout import Wrt
from yota.run.options import Dynamic, evaluates, worded
from yota.run.specialise import Target
from yota.structures import flatten, is_leaf, is_on_device, mapped
from yota.tracing.captured.captured import Captured
from yota.tracing.captures import copied
from yota.tracing.results import ResultForm, taken_apart


@worded
def vjp(
    f: Callable[..., Any],
    *args: Any,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    dynamic: Dynamic = False,
) -> tuple[Any, Callable[[Any], Any]]:
    """Return the value of ``f(*args)`` and its pullback.

    Parameters
    ----------
    f
        A function of arrays that returns an array, or a structure of them.
    *args
        The point.
    target, strict, effort, dynamic
        See `yota.grad`.

    Returns
    -------
    value
        ``f(*args)``.
    pullback
        Takes a cotangent of the value's shape, or a structure like it. Returns a tuple with the adjoint of each
        argument, or None for an argument without a derivative. Later writes into the arguments do not affect it.

    Examples
    --------
    >>> import numpy as np
    >>> value, pullback = vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 0.0]))
    (array([2., 0.]),)
    """
    if not args:
        evaluates("vjp", function_of(f), "For a function that gives the gradient: yota.gradient(f)")
    moved = [position for position, value in enumerate(args) if _is_moving(value)] or range(len(args))
    by = tuple(1 + position for position in moved)
    options = {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic}
    pulled = _gradient_around(function_of(f), weighted, (), by, options)
    point = mapped(args, copied)
    found = _on_copies(f, args)
    form, values = _values(f, found)

    def call(cotangent: Any) -> Any:
        seeds = [beside(value, each) for value, each in zip(values, _cotangents(form, cotangent), strict=True)]
        for seed, value in zip(seeds, values, strict=True):
            if seed.shape != value.shape:
                raise DifferentiationError(f"the cotangent has shape {seed.shape}, the value has shape {value.shape}")
        adjoints = dict(zip(moved, pulled(seeds[0] if form is None else seeds, *point), strict=True))
        return tuple(adjoints.get(position) for position in range(len(point)))

    recipe = pullback, (f, *point), options
    journal = Journal("", Target.wanted(target).name)
    return found, Compiled(recipe, None, "pullback", call, journal=journal, parts=(pulled,))


def _on_copies(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What ``f`` gives, which may write into its arguments; an argument that it gives as it is, itself."""
    given = mapped(args, copied)
    found = f(*given)
    for own, each in zip(args, given, strict=True):
        if found is each and isinstance(each, np.ndarray) and own.tobytes() == each.tobytes():
            return own
    return found


def pullback(f: Callable[..., Any], *point: Any, **options: Any) -> Callable[[Any], Any]:
    """The pullback alone; unpickling calls this function."""
    return vjp(f, *point, **options)[1]


def _values(f: Callable[..., Any], found: Any) -> tuple[ResultForm | None, list[Any]]:
    """The arrays of a result, and its form if it is a structure; a list or tuple of numbers is a vector."""
    parts: list[Any] = []
    form = taken_apart(name_of(f), found, parts)
    if form.parts is None or (isinstance(found, (tuple, list)) and found and not any(map(np.ndim, found))):
        return None, [found if is_on_device(found) else np.asarray(found)]
    return form, [part if is_on_device(part) else np.asarray(part) for part in parts]


def _cotangents(form: ResultForm | None, cotangent: Any) -> list[Any]:
    if form is None:
        return [cotangent]
    parts: list[Any] = []
    given, wanted = list(taken_apart("the cotangent", cotangent, parts).paths()), list(form.paths())
    if set(given) != set(wanted):
        raise DifferentiationError(f"the cotangent has parts at {given}, the value has them at {wanted}")
    known = dict(zip(given, parts, strict=True))
    return [known[path] for path in wanted]


def _is_moving(value: Any) -> bool:
    """Whether an argument has a derivative."""
    parts = (part for _, part in flatten(value) if is_leaf(part))
    return any(not hasattr(part, "dtype") or part.dtype.kind not in "biu" for part in parts)


@worded
def jvp(
    f: Callable[..., Any],
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    dynamic: Dynamic = False,
) -> tuple[Any, Any]:
    """Return the value of ``f(*args)`` and its directional derivative.

    The pullback is linear in its cotangent. The pullback of the pullback is the pushforward, so the same rules serve
    both (J. Townsend, A new trick for calculating Jacobian vector products, 2017).

    Parameters
    ----------
    f
        A function of arrays that returns an array, or a structure of them.
    args
        The point.
    tangents
        The direction: for each argument an array of its shape, or None for a fixed argument.
    target, strict, effort, dynamic
        See `yota.grad`.

    Returns
    -------
    value
        ``f(*args)``.
    tangent
        The derivative of the value along ``tangents``: an array of its shape, or a structure like it.

    Raises
    ------
    DifferentiationError
        If the shape of a tangent differs from that of its argument.

    Examples
    --------
    >>> import numpy as np
    >>> value, tangent = jvp(lambda x, y: x * y, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), None))
    >>> tangent
    array([3., 0.])
    """
    for given, what in ((args, "the arguments"), (tangents, "the tangents")):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(f"{what} of jvp are a {type(given).__name__}; give a tuple: jvp(f, (x,), (v,))")
    args, count = tuple(args), len(args)
    if len(tangents) != count:
        raise ArgumentError(f"there are {count} arguments and {len(tangents)} tangents; give None for a fixed argument")
    moved = tuple(position for position, tangent in enumerate(tangents) if tangent is not None)
    for position in moved:
        if not is_leaf(args[position]):
            raise ArgumentError(
                f"argument {position + 1} is a {type(args[position]).__name__}; a direction is one of an array or a "
                "floating-point number, None for every other argument"
            )
        given, wanted = np.shape(tangents[position]), np.shape(args[position])
        if given != wanted:
            raise DifferentiationError(f"tangent {position + 1} has shape {given}, its argument has shape {wanted}")
    value = _on_copies(function_of(f), args)
    form, values = _values(f, value)
    zeros = [np.zeros(each.shape, each.dtype if each.dtype.kind in "fc" else float) for each in values]
    if not moved:
        still = [each[()] for each in zeros]
        return value, still[0] if form is None else form.filled(still)
    options = {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic}
    forward = _gradient_around(f, _along, (moved, dynamic), 0, options)
    directions = [tangents[position] for position in moved]
    seeds = [beside(one, zero) for one, zero in zip(values, zeros, strict=True)]
    if form is None:
        tangent = forward(seeds[0], *args, *directions)
        return value, tangent if values[0].shape else tangent[()]
    found = forward(seeds, *args, *directions)
    return value, form.filled([found.get((number,), seed)[()] for number, seed in enumerate(seeds)])


def pushforward(f: Callable[..., Any], moved: tuple[int, ...], **options: Any) -> Callable[..., Any]:
    """A function of the tangents of the results of ``f``.

    Its arguments are weights as in `weighted`, whose values do not matter, the arguments of ``f``, and a direction
    for each argument in ``moved``.
    """
    return gradient(_along(f, moved, options["dynamic"]), 0, **options)


def _along(f: Callable[..., Any], moved: tuple[int, ...], dynamic: Dynamic) -> Callable[..., Any]:
    """The function whose gradient by its first argument is the pushforward."""
    pulled = gradient(weighted(f), tuple(position + 1 for position in moved), dynamic=dynamic)
    count = len(moved)

    def along(seed: Any, *rest: Any) -> Any:
        adjoints = pulled(seed, *rest[:-count])
        return sum(np.sum(np.real(np.conjugate(a) * t)) for a, t in zip(adjoints, rest[-count:], strict=True))

    return along


@dataclass(frozen=True, slots=True, eq=False)
class _Around:
    """The gradient of a function around a user's, for `shared`."""

    gradient: Any

    @property
    def captured(self) -> Captured:
        found: Captured = self.gradient.form.captured
        return found

    def take_over(self, other: Any) -> None:
        """Nothing: `gradient` has taken over what is compiled."""


def _gradient_around(
    f: Callable[..., Any], around: Callable[..., Any], more: tuple[Any, ...], wrt: Wrt, options: dict[str, Any]
) -> Callable[..., Any]:
    """The gradient of ``around(f, *more)``, created once for ``f``."""

    def make() -> _Around:
        return _Around(gradient(around(f, *more), wrt, **options))

    # The function around ``f`` would keep such bound arguments of its first call.
    fixed = not any(isinstance(each, READ_EACH_CALL) for each in with_receiver(f)[1])
    found = shared(f, make, around, *more, wrt, *options.items()) if fixed else make()
    return found.gradient  # type: ignore[no-any-return]


def weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the results of ``f`` times weights, its first argument; its gradient is the pullback."""
    name = name_of(f)

    def total(seed: Any, *args: Any) -> Any:
        if type(seed) is list:
            parts: list[Any] = []
            taken_apart(name, f(*args), parts)
            return sum(np.sum(np.real(np.conjugate(one) * part)) for one, part in zip(seed, parts, strict=True))
        return np.sum(np.real(np.conjugate(seed) * f(*args)))

    total.__name__ = name
    return total
