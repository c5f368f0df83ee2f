"""Methods of SciPy's distributions against differences: ``python -m tests.tracing.distributions [NAME ...]``.

Each method of each distribution is called as it stands, and differentiated by the variable and by the parameters that
it has a slope by. It must come out right, or be refused.
"""

from __future__ import annotations

import argparse
import collections
import math
import multiprocessing
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.stats
from scipy.stats._distr_params import distcont, distdiscrete

import yota
from benchmarks.survey.limits import limited, quiet
from tests.tracing.differential import Outcome
from yota.rules.laws.sampling import noise, slope_along

_BY_VARIABLE = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")
_BY_PROBABILITY = ("ppf", "isf")
_BY_PARAMETERS = ("mean", "var", "std", "stats", "entropy", "median", "support", "moment", "interval", "nnlf", "expect")
_SECONDS = 20
_LOC, _SCALE = 0.3, 1.4
_BOUNDED = 1e-4
"""To which part of it a slope must be known."""


def main() -> int:
    """Run what the command line asks for; 1 if a derivative came out wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="distributions; all of them by default")
    parser.add_argument("--methods", default="", help="methods, with commas between them; all of them by default")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    methods = options.methods.split(",") if options.methods else [*_BY_VARIABLE, *_BY_PROBABILITY, *_BY_PARAMETERS]
    known = [*distcont, *distdiscrete]
    chosen = [(name, shapes) for name, shapes in known if isinstance(name, str) and hasattr(scipy.stats, name)]
    tasks = [
        (number, name, shapes, methods)
        for number, (name, shapes) in enumerate(chosen)
        if not options.names or name in options.names
    ]
    with tempfile.TemporaryDirectory() as private:
        os.environ["YOTA_CACHE_DIR"] = private
        context = multiprocessing.get_context("forkserver")
        with context.Pool(options.processes, maxtasksperchild=10) as pool:
            found: list[Outcome] = []
            for outcomes in pool.imap_unordered(_examine, tasks):
                for each in outcomes:
                    print(f"{each.kind:8} {each.name}: {each.detail}", flush=True)
                found += outcomes
    _report(found)
    return int(any(each.kind == "wrong" for each in found))


def _report(found: Sequence[Outcome]) -> None:
    kinds = ("right", "refused", "wrong", "slow", "skipped")
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for each in found:
        method = each.name.partition(".")[2].partition(" ")[0]
        table[method][each.kind] += 1
        table["all"][each.kind] += 1
    print(f"\n{'':12}" + "".join(f"{kind:>9}" for kind in kinds))
    for method, counts in table.items():
        print(f"{method:12}" + "".join(f"{counts[kind]:9}" for kind in kinds))
    reasons = collections.Counter(_reason(each.detail) for each in found if each.kind in ("refused", "slow"))
    for reason, count in reasons.most_common(60):
        print(f"{count:5} {reason}")


def _reason(detail: str) -> str:
    """What a refusal says, without places and numbers."""
    text = re.sub(r"\S*?([\w-]+/[\w.-]+\.py):\d+", r"\1", detail.replace("\n", " "))
    return re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "N", text)[:230]


def _examine(task: tuple[int, str, tuple[Any, ...], Sequence[str]]) -> list[Outcome]:
    number, name, shapes, methods = task
    distribution = getattr(scipy.stats, name)
    return [outcome for method in methods for outcome in _of_method(number, distribution, name, shapes, method)]


def _of_method(number: int, distribution: Any, name: str, shapes: tuple[Any, ...], method: str) -> Iterator[Outcome]:
    if not hasattr(distribution, method):
        return
    continuous = isinstance(distribution, scipy.stats.rv_continuous)
    parameters = (
        *(_parameter(each, continuous) for each in shapes),
        _LOC if continuous else 2,
        *([_SCALE] * continuous),
    )
    place = list(parameters)
    with quiet():
        point = distribution.ppf(0.4137, *parameters)
    if method in _BY_VARIABLE:
        place.insert(0, float(point))
    elif method in _BY_PROBABILITY:
        place.insert(0, 0.37)
    call = _call(distribution, method, len(shapes), point)
    groups = {"by parameters": range(len(place) - len(parameters), len(place))}
    if continuous and len(place) > len(parameters):
        groups["by x"] = range(1)
    for which, positions in groups.items():
        label = f"{name}.{method} {which}"
        try:
            with quiet(), limited(_SECONDS):
                yield examine(label, call, place, positions)
        except TimeoutError:
            yield Outcome(label, "slow", f"over {_SECONDS} s")


def _parameter(value: Any, continuous: bool) -> Any:
    return float(value) if continuous else value


def _call(distribution: Any, method: str, count: int, point: float) -> Callable[..., Any]:
    """A method as a function of its variable, if it has one, of the shapes, the location and the scale."""
    function = getattr(distribution, method)
    if method in (*_BY_VARIABLE, *_BY_PROBABILITY, "mean", "var", "std", "entropy", "median", "support"):
        return lambda *place: function(*place)
    if method == "stats":
        return lambda *place: function(*place, moments="mvsk")
    if method == "moment":
        return lambda *place: function(2, *place)
    if method == "interval":
        return lambda *place: function(0.83, *place)
    if method == "nnlf":
        points = distribution.ppf(np.array([0.2, 0.5, 0.7]), *_default(distribution, count))
        return lambda *place: function(place, points)
    keywords = ("loc", "scale")
    return lambda *place: function(
        lambda x: 1 / (1 + x * x), args=place[:count], **dict(zip(keywords, place[count:], strict=False))
    )


def _default(distribution: Any, count: int) -> tuple[Any, ...]:
    shapes = next(each for name, each in [*distcont, *distdiscrete] if name == distribution.name)
    return (*shapes, _LOC, _SCALE) if isinstance(distribution, scipy.stats.rv_continuous) else (*shapes, 2)


def examine(label: str, call: Callable[..., Any], place: Sequence[Any], positions: Sequence[int]) -> Outcome:
    """Whether the gradient by the arguments at ``positions`` that have a slope is right."""

    def total(*values: Any) -> Any:
        return _total(call(*values))

    try:
        plain = float(total(*place))
    except TimeoutError:
        raise
    except Exception as fault:  # noqa: BLE001  (SciPy has no answer)
        return Outcome(label, "skipped", f"SciPy: {type(fault).__name__}: {fault}")
    slopes = {at: _slope(total, place, at) for at in positions if isinstance(place[at], float)}
    known = {at: slope for at, slope in slopes.items() if slope[1] < math.inf}
    if not known:
        return Outcome(label, "skipped", "no derivative is known")

    def of_known(*values: float) -> Any:
        whole = list(place)
        for at, value in zip(known, values, strict=True):
            whole[at] = value
        return total(*whole)

    try:
        value, gradient = yota.grad(of_known, *(place[at] for at in known))
    except TimeoutError:
        raise
    except Exception as fault:  # noqa: BLE001  (it was not differentiated, and says so)
        return Outcome(label, "refused", f"{type(fault).__name__}: {fault}")
    errors = [error for _, error in known.values()]
    if not abs(value - plain) <= 1e-5 * abs(plain) + max(errors):
        return Outcome(label, "wrong", f"value {value} for {plain} at {place}")
    for found, (at, (slope, error)) in zip(gradient, known.items(), strict=True):
        if not abs(found - slope) <= 1e-5 * abs(slope) + 20 * error:
            return Outcome(label, "wrong", f"by argument {at}: {found} for {slope} +- {error} at {place}")
    return Outcome(label, "right", f"{len(known)} slopes")


def _total(found: Any) -> Any:
    """One number of the numbers that a method gives, but for those that are infinite."""
    if not isinstance(found, tuple):
        return np.sum(found)
    parts = [np.sum(each) for each in found]
    return sum((number + 1) * part for number, part in enumerate(parts) if np.isfinite(part))


def _slope(total: Callable[..., Any], place: Sequence[Any], at: int) -> tuple[float, float]:
    """A partial derivative by differences, and its error; infinite if there is none here, or it is not known well."""
    width = 0.3 * min(abs(place[at]), abs(1 - place[at]) or 1.0)

    def along(part: float) -> float:
        moved = [*place]
        moved[at] += width * part
        return float(total(*moved))

    try:
        rounding = noise(along)
        slope, error = slope_along(along, rounding, 1e-8, 0.0)
        check = (along(2.0**-9) - along(-(2.0**-9))) * 2.0**8
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001  (it is not defined around)
        return math.nan, math.inf
    error = max(error, 1e-12 * abs(along(0.0)))
    smooth = abs(check - slope) <= 0.05 * abs(slope) + 2.0**10 * rounding + 1e-9 * abs(along(0.0))
    known = smooth and error <= _BOUNDED * abs(slope) + 1e-7 * abs(along(0.0))
    return (slope / width, error / width) if known else (math.nan, math.inf)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
