"""Checks of gradients and rules against independent oracles."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.api.gradients import grad
from yota.ir.callables import name_of
from yota.rules.laws.sampling import noise, slope_along
from yota.run.device import to_cpu
from yota.structures import flatten, is_leaf, is_on_device, rebuild
from yota.tracing.source_lines import users_frames

if TYPE_CHECKING:
    from yota.rules.language.model import Rule
    from yota.rules.proof.findings import Finding

__all__ = ["check_rule", "gradcheck"]


def gradcheck(
    f: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    atol: float = 1e-8,
    directions: int = 3,
    random: Any = 0,
) -> bool:
    """Compare the gradient of ``f`` with central differences along random directions.

    The step is halved until rounding dominates. The differences are extrapolated to step 0 with an estimate of the
    remaining error (C. J. F. Ridders, Accurate computation of F'(x) and F'(x)F''(x), Advances in Engineering
    Software 4(2), 1982, 75-76). Differences are computed in double precision, for all dtypes.

    Parameters
    ----------
    f
        A scalar function.
    *args
        The point: numbers, arrays, and structures of them, real or complex.
    rtol, atol
        Tolerances for each directional derivative, in addition to the estimated error of the difference. ``rtol`` is
        relative to the derivative, or to the root of the sum of squares of its terms. The default is 1e-6, or more
        for lower-precision dtypes.
    directions
        Number of directions.
    random
        Seed of the directions.

    Returns
    -------
    bool
        True; a mismatch raises.

    Warns
    -----
    UserWarning
        If the error of a difference exceeds the tolerances; the message gives the accuracy that was tested.

    Raises
    ------
    AssertionError
        If a directional derivative differs; the message has both numbers. Also if no difference has a correct digit,
        for example at a jump of ``f``.

    Examples
    --------
    >>> import numpy as np
    >>> gradcheck(lambda x: np.sum(np.sin(x) * x), np.array([0.3, 0.7]))
    True
    """
    if any(is_on_device(value) for arg in args for _, value in flatten(arg)):
        args = to_cpu(args)
    with users_frames:
        _, g = grad(f, *args)
    generator = np.random.default_rng(random)
    leaves = [(position, path, value) for position, arg in enumerate(args) for path, value in flatten(arg)]
    moving = [entry for entry in leaves if _is_moving(entry[2])]
    adjoints = [_adjoint(g, position, path) for position, path, _ in moving]
    if rtol is None:
        rtol = max([1e-6, *(float(np.finfo(np.asarray(value).dtype).eps) ** (2 / 3) for *_, value in moving)])
    vague = []
    for _ in range(directions):
        draws = [_draw(generator, value) for *_, value in moving]
        # If elements have very different magnitudes, a step for the largest is too long for the others.
        for even in (True, False):
            steps = [draw * _sizes(value, even) for draw, (*_, value) in zip(draws, moving, strict=True)]
            expected, error = _difference(_along(f, args, steps), rtol, atol)
            if error < abs(expected):
                break
        terms = [np.real(np.conjugate(a) * step) for a, step in zip(adjoints, steps, strict=True)]
        found = float(sum(map(np.sum, terms)))
        # The sum of cancelling terms has their rounding errors.
        tolerance = atol + rtol * max(abs(expected), float(np.sqrt(sum(np.sum(term**2) for term in terms))))
        if abs(found - expected) > tolerance + error:
            raise AssertionError(
                f"the gradient of {name_of(f)} gives the directional derivative {found!r}, "
                f"central differences give {expected!r} with an error of about {error:.1g}"
            )
        if not error <= tolerance:
            vague.append((expected, error))
    if vague:
        _report_vague(name_of(f), vague, directions, f"rtol={rtol:.1g}, atol={atol:.1g}")
    return True


def _difference(along: Callable[[float], float], rtol: float, atol: float) -> tuple[float, float]:
    """The directional derivative and its error, with as many digits as double precision needs."""
    with np.errstate(all="ignore"):
        return slope_along(along, noise(along), min(rtol, 1e-6), atol)


def _report_vague(name: str, vague: list[tuple[float, float]], directions: int, wanted: str) -> None:
    """Warn about directions in which the error of the differences exceeds the tolerances."""
    found = ", ".join(f"{expected:.6g} with an error of about {error:.1g}" for expected, error in vague)
    if len(vague) == directions and not any(error < abs(expected) for expected, error in vague):
        raise AssertionError(
            f"finite differences have no correct digit for the gradient of {name}, as at a jump or where its values "
            f"are rounded: they give {found}; choose another point"
        )
    warnings.warn(
        f"{name} is tested less accurately than {wanted} along {len(vague)} of {directions} directions: differences "
        f"give {found}",
        stacklevel=3,
    )


def check_rule(rule: str | Rule, *, points: int = 16) -> tuple[Finding, ...]:
    """Verify a loaded rule, as ``yota check`` verifies the rules of a file.

    Parameters
    ----------
    rule
        The rule, or the name of a primitive to verify all of its rules.
    points
        Number of points at which each partial is tested.

    Returns
    -------
    tuple of Finding
        One finding for each law and argument, with the worst error and its place.

    Raises
    ------
    AssertionError
        If a law is violated; the message lists all violations.

    Examples
    --------
    >>> {found.law for found in check_rule("tanh", points=3)} >= {"formula", "second order"}
    True
    """
    from yota.rules.proof.checker import prove
    from yota.rules.registry import registry

    known = registry()
    rules = known.rules(rule) if isinstance(rule, str) else (rule,)
    found = tuple(each for one in rules for each in prove(one, known, points))
    wrong = [each for each in found if not each.held]
    if wrong:
        lines = [f"{each.rule} {each.argument}: {each.law}: {each.error} ({each.where}) {each.note}" for each in wrong]
        raise AssertionError("\n".join(line.rstrip() for line in lines))
    return found


def _is_moving(value: Any) -> bool:
    return is_leaf(value) and np.asarray(value).dtype.kind in "fc"


def _draw(generator: np.random.Generator, value: Any) -> Any:
    array = np.asarray(value)
    draw = generator.standard_normal(array.shape)
    return draw + 1j * generator.standard_normal(array.shape) if array.dtype.kind == "c" else draw


def _sizes(value: Any, even: bool) -> Any:
    """Step lengths of elements: their magnitudes; with ``even`` at least the root mean square."""
    sizes = np.abs(np.asarray(value)).astype(float)
    mean = np.sqrt(np.mean(sizes**2)) if np.any(sizes) else 1.0
    return np.maximum(sizes, mean) if even else np.where(sizes > 0, sizes, mean)


def _adjoint(g: Any, position: int, path: tuple[Any, ...]) -> Any:
    adjoint = g[position]
    return adjoint.get(path, 0.0) if path else adjoint


def _along(f: Callable[..., Any], args: tuple[Any, ...], steps: list[Any]) -> Callable[[float], float]:
    """``f`` as a function of the step length along ``steps``; NaN where it raises."""

    def at(h: float) -> float:
        rest = iter(steps)
        moved = [
            rebuild(arg, iter([_moved(part, rest, h) for _, part in flatten(arg) if is_leaf(part)])) for arg in args
        ]
        try:
            return float(f(*moved))
        except (ArithmeticError, ValueError):
            return np.nan

    return at


def _moved(value: Any, steps: Iterator[Any], h: float) -> Any:
    if not _is_moving(value):
        return value
    moved = value + h * next(steps)
    return moved if isinstance(value, (np.ndarray, np.generic)) else type(value)(moved)
