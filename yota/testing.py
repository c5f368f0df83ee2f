"""Checking gradients and rules against independent oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.compilation.device import to_cpu
from yota.derivatives.gradients import grad
from yota.structures import flatten, is_leaf, is_on_device, rebuild

if TYPE_CHECKING:
    from yota.proof.findings import Finding
    from yota.rules.model import Rule

__all__ = ["check_rule", "gradcheck"]


def gradcheck(
    f: Callable[..., Any], *args: Any, rtol: float = 1e-6, atol: float = 1e-8, directions: int = 3, random: Any = 0
) -> bool:
    """Compare the gradient of ``f`` with central differences along random directions.

    The step is the cube root of the precision, scaled by the point (Nocedal and Wright, Numerical Optimization,
    2nd ed., section 8.1), and the difference is extrapolated once (Richardson).

    Parameters
    ----------
    f
        A scalar function.
    *args
        The point; float64 or complex128 throughout.
    rtol, atol
        Tolerances for each directional derivative.
    directions
        How many directions to try.
    random
        Seed of the directions.

    Returns
    -------
    bool
        True; a mismatch raises.

    Raises
    ------
    AssertionError
        If a directional derivative is off; the message has both numbers.

    Examples
    --------
    >>> import numpy as np
    >>> gradcheck(lambda x: np.sum(np.sin(x) * x), np.array([0.3, 0.7]))
    True
    """
    if any(is_on_device(value) for arg in args for _, value in flatten(arg)):
        args = to_cpu(args)
    _, g = grad(f, *args)
    against_differences(
        f,
        args,
        lambda position, path: _adjoint(g, position, path),
        rtol=rtol,
        atol=atol,
        directions=directions,
        random=random,
    )
    return True


def against_differences(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    adjoint: Callable[[int, tuple[Any, ...]], Any],
    *,
    rtol: float,
    atol: float,
    directions: int = 3,
    random: Any = 0,
) -> None:
    """Compare adjoints, by position of the argument and path inside it, with differences of ``f``; see `gradcheck`."""
    generator = np.random.default_rng(random)
    leaves = [(position, path, value) for position, arg in enumerate(args) for path, value in flatten(arg)]
    moving = [entry for entry in leaves if is_leaf(entry[2]) and np.asarray(entry[2]).dtype.kind in "fc"]
    for _ in range(directions):
        steps = [_direction(generator, value) for *_, value in moving]
        found = sum(
            float(np.sum(np.real(np.conjugate(adjoint(position, path)) * step)))
            for (position, path, _), step in zip(moving, steps, strict=True)
        )
        expected = _directional(f, args, steps)
        if not np.isclose(found, expected, rtol=rtol, atol=atol):
            raise AssertionError(
                f"the gradient of {getattr(f, '__name__', f)} gives the directional derivative {found!r}, "
                f"central differences give {expected!r}"
            )


def check_rule(rule: str | Rule, *, points: int = 16) -> tuple[Finding, ...]:
    """Prove a rule that is loaded, as ``yota check`` proves those of a file.

    Parameters
    ----------
    rule
        The rule, or the name of a primitive: then all of its rules are proved.
    points
        Points at which each partial is measured.

    Returns
    -------
    tuple of Finding
        What was measured: the law, the argument, the worst error and where it is.

    Raises
    ------
    AssertionError
        If a law does not hold; the message has all findings against it.

    Examples
    --------
    >>> {found.law for found in check_rule("tanh", points=3)} >= {"formula", "second order"}
    True
    """
    from yota.proof.checker import prove
    from yota.rules.registry import registry

    known = registry()
    rules = known.rules(rule) if isinstance(rule, str) else (rule,)
    found = tuple(each for one in rules for each in prove(one, known, points))
    wrong = [each for each in found if not each.held]
    if wrong:
        lines = [f"{each.rule} {each.argument}: {each.law}: {each.error} ({each.where}) {each.note}" for each in wrong]
        raise AssertionError("\n".join(line.rstrip() for line in lines))
    return found


def _direction(generator: np.random.Generator, value: Any) -> Any:
    array = np.asarray(value)
    step = generator.standard_normal(array.shape)
    if array.dtype.kind == "c":
        step = step + 1j * generator.standard_normal(array.shape)
    return step * np.maximum(np.abs(array), 1.0)


def _adjoint(g: Any, position: int, path: tuple[Any, ...]) -> Any:
    adjoint = g[position]
    return adjoint.get(path, 0.0) if path else adjoint


def _directional(f: Callable[..., Any], args: tuple[Any, ...], steps: list[Any]) -> float:
    def at(h: float) -> float:
        rest = iter(steps)
        return float(f(*(rebuild(arg, iter(_moved(arg, rest, h))) for arg in args)))

    def difference(h: float) -> float:
        return (at(h) - at(-h)) / (2 * h)

    h = 1e-4
    return (4 * difference(h / 2) - difference(h)) / 3


def _moved(arg: Any, steps: Any, h: float) -> list[Any]:
    moved: list[Any] = []
    for _, value in flatten(arg):
        if not is_leaf(value):
            continue
        if np.asarray(value).dtype.kind in "fc":
            shifted = value + h * next(steps)
            moved.append(shifted if isinstance(value, np.ndarray) else type(value)(shifted))
        else:
            moved.append(value)
    return moved
