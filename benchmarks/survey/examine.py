"""Differentiates a call and says what becomes of it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.survey.calls import Call, floating, parts, total_of
from benchmarks.survey.compare import along_of, compare, is_finite, plain_of, seed_of, steps_of
from benchmarks.survey.floats import with_floats, with_targets
from benchmarks.survey.limits import limited
from benchmarks.survey.slopes import Slope, directions, moved, slope, symmetric

__all__ = ["DIFFERENTIABLE", "Outcome", "examine"]


DIFFERENTIABLE = ("right", "wrong", "nan", "refused", "slow")
"""What becomes of calls that have a derivative."""
_DIGITS = "steps of differences go past the digits that are rounded, or the tolerance"
_UNFINISHED = "the search stops at its tolerance, short of the solution, and where it stops depends on the start"
_DIVERGENT = "the integral diverges, and what SciPy gives for it is where its search ends"
_WHOLE = "the count is a whole number, and SciPy continues the sum between whole numbers"
_NO_JUDGE = {
    **dict.fromkeys(("numpy.round", "numpy.around", "numpy.real_if_close"), _DIGITS),
    **{
        f"scipy.optimize.{each}": _UNFINISHED
        for each in ("anderson", "broyden1", "broyden2", "diagbroyden", "fmin_bfgs")
    },
    **{
        f"scipy.stats.{each}.expect": _DIVERGENT
        for each in "alpha cauchy foldcauchy halfcauchy kappa3 landau levy levy_l skewcauchy".split()
    },
    **dict.fromkeys(("scipy.stats.Binomial.cdf", "scipy.stats.Binomial.logccdf"), _WHOLE),
}
"""Functions of which differences are no measure, with the reason."""


@dataclass(frozen=True)
class Outcome:
    """What becomes of one call."""

    name: str
    text: str
    kind: str
    detail: str = ""
    second: str = ""
    plain: float = 0.0
    recorded: float = 0.0
    first: float = 0.0
    place: str = ""


def examine(call: Call, seconds: float = 30.0) -> Outcome:
    """What becomes of a call when it is differentiated."""
    if call.name in _NO_JUDGE:
        return Outcome(call.name, call.text, "unknown", _NO_JUDGE[call.name])
    outcome = Outcome(call.name, call.text, "unknown", f"plain calls for differences take more than {seconds:g} s")
    try:
        with limited(seconds):
            return _examined(call)
    except TimeoutError:
        return outcome


def _examined(call: Call) -> Outcome:
    call = with_targets(call)

    def outcome(kind: str, detail: str = "") -> Outcome:
        return Outcome(call.name, call.text, kind, detail)

    try:
        plain = plain_of(call)
        again = plain_of(call)
    except TimeoutError:
        raise
    except Exception as fault:  # noqa: BLE001
        return outcome("failed", f"{type(fault).__name__}: {fault}"[:200])
    found = list(parts(plain))
    if not _same(found, list(parts(again))):
        return outcome("random")
    if not any(floating(each) for each in found):
        made = [each for each in found if not isinstance(each, (str, bytes, int, bool)) and not hasattr(each, "dtype")]
        return outcome(
            "object" if made else "discrete",
            ", ".join(sorted({type(each).__name__ for each in made})),
        )
    if not call.given:
        call = with_floats(call, found)
    if not call.given:
        return outcome("no float")
    plain = plain_of(call)
    slopes, call = _place(call, plain)
    names = [name for name in call.given if slopes[name].known]
    if not names:
        return outcome("unknown", "no derivative is known at the place of the example, or near it")
    moving = [name for name in names if not slopes[name].constant]
    kind, detail, second, times = compare(call, names, slopes)
    if not moving and kind != "wrong":
        return outcome("constant")
    where = {name: _short(value) for name, value in call.given.items()}
    found = Outcome(call.name, call.text, kind, detail, second, *times, place=str(where))
    if kind == "refused" and len(moving) > 1:
        alone = [compare(call, [name], slopes, once=True)[0] for name in moving]
        right = [name for name, each in zip(moving, alone, strict=True) if each == "right"]
        if right:
            found = replace(found, kind="refused", detail=f"[by {', '.join(right)} right] {detail}")
    return found


def _short(value: Any) -> str:
    text = re.sub(r"\s+", " ", repr(value))
    return text if len(text) < 300 else text[:300] + "..."


def _same(first: list[Any], second: list[Any]) -> bool:
    if len(first) != len(second):
        return False
    with contextlib.suppress(Exception):
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True) if floating(a))
    return True


def _place(call: Call, plain: Any) -> tuple[dict[str, Slope], Call]:
    """The slopes by each argument at the place of the example, or where it is a kink, near it."""
    slopes = _slopes(call, total_of(plain, call.name))
    lost = [name for name, each in slopes.items() if not each.known]
    if not lost:
        return slopes, call
    random = np.random.default_rng(seed_of(call) + 1)
    shifted = {
        name: moved(value, directions(value, random), 0.01) if name in lost else value
        for name, value in call.given.items()
    }
    other = replace(call, given=shifted)
    try:
        there = plain_of(other)
        if is_finite(plain) and not is_finite(there):
            return slopes, call
        near = _slopes(other, total_of(there, call.name))
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001
        return slopes, call
    return (near, other) if _told(near) > _told(slopes) else (slopes, call)


def _told(slopes: dict[str, Slope]) -> tuple[int, int]:
    """How much slopes say: those that are not zero first."""
    known = [each for each in slopes.values() if each.known]
    return sum(not each.constant for each in known), len(known)


def _slopes(call: Call, total: Callable[[Any], Any]) -> dict[str, Slope]:
    found = {}
    for name in call.given:
        steps = steps_of(call, name)
        found[name] = slope(along_of(call, name, steps, total))
        if not found[name].known and symmetric(call.given[name]):
            found[name] = slope(along_of(call, name, steps_of(call, name, True), total))
    return found
