"""Scalar formulas of installed packages against differences: ``python -m tests.tracing.differential fluids chemicals``.

Each function of the packages that takes numbers and gives numbers is called at random places and differentiated there.
It must come out right, or be refused. The packages are no dependencies of yota; install those that are wanted.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import inspect
import math
import multiprocessing
import os
import pkgutil
import random
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import yota
from benchmarks.survey.limits import limited, quiet
from yota.rules.laws.sampling import noise, slope_along

_SKIPPED = re.compile(
    r"test|plot|numba|vector|_cli\b|__main__|print|save|load|write|download|read_|open|deprecat|conftest|gui"
)
"""Modules and functions that do something else than compute."""
_RANGES = {
    "T": (250.0, 450.0),
    "P": (5e4, 5e6),
    "Re": (1e2, 1e6),
    "rho": (0.5, 1500.0),
    "M": (10.0, 200.0),
    "year": (1980.0, 2040.0),
    "lat": (-60.0, 60.0),
    "lon": (-170.0, 170.0),
    "alt": (10.0, 3000.0),
}
"""Where arguments lie whose names begin so."""
_ATTEMPTS = 40
_MOST_ARGUMENTS = 8
_STEPS, _PARTS = (2.0**-11, 2.0**-21, 2.0**-42), (5e-2, 1e-4, 1e-4)
"""Steps that must agree, as far as digits go, for a slope to be one, and to which part of it."""
_CLOSE = 1e-9
_SMALLEST, _LARGEST = 1e-60, 1e60
"""Between these, values are far from where products overflow or vanish in another order."""


@dataclass(frozen=True)
class Outcome:
    """What became of one function.

    It is right, wrong, refused, slow or skipped; infinite where a number is wanted, as for a root of 0; or right for
    the branches that were taken, which are others close by.
    """

    name: str
    kind: str
    detail: str = ""


def main() -> int:
    """Run what the command line asks for; 1 if a function came out wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--functions", type=int, default=2000, help="how many are differentiated at the most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=20, help="of the processor's time, for one function")
    options = parser.parse_args()
    found = [(package, name) for package in options.packages for name in names(package)]
    random.Random(options.seed).shuffle(found)
    counts: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    jobs = [(name, options.seed, options.seconds) for _, name in found]
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        os.chdir(folder)
        for outcome in pool.imap_unordered(_examined, jobs):
            counts[outcome.kind] += 1
            reasons[f"{outcome.kind}: {re.sub(r'[0-9]+|`.*?`|/[^ ]*', '#', outcome.detail)[:90]}"] += 1
            if outcome.kind != "skipped":
                print(f"{outcome.kind:8} {outcome.name} {outcome.detail[:300]}", flush=True)
            if counts["right"] + counts["wrong"] + counts["refused"] >= options.functions:
                break
        pool.terminate()
        os.chdir("/")
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    print(dict(counts))
    return 1 if counts["wrong"] else 0


def names(package: str) -> Iterator[str]:
    """``module:function`` for each function that modules of a package define."""
    with quiet():
        root = _loaded(package)
        inner = pkgutil.walk_packages(getattr(root, "__path__", ()), package + ".", onerror=lambda _: None)
        for module in [package, *(each.name for each in inner)]:
            if _SKIPPED.search(module):
                continue
            for name, value in sorted(vars(_loaded(module)).items()):
                if isinstance(value, FunctionType) and value.__module__ == module and not _SKIPPED.search(name):
                    yield f"{module}:{name}"


def _loaded(module: str) -> ModuleType:
    """A module; an empty one if it cannot be imported."""
    try:
        return importlib.import_module(module)
    except BaseException:  # noqa: BLE001  (what cannot be imported has no functions)
        return ModuleType(module)


def _examined(job: tuple[str, int, int]) -> Outcome:
    name, seed, seconds = job
    module, _, attribute = name.partition(":")
    try:
        with quiet(), limited(seconds):
            function = getattr(importlib.import_module(module), attribute)
            return examine(name, function, random.Random(zlib.crc32(name.encode()) + seed))
    except TimeoutError:
        return Outcome(name, "slow")
    except Exception as fault:  # noqa: BLE001  (of the plain function)
        return Outcome(name, "skipped", f"{type(fault).__name__}")


def examine(name: str, function: Callable[..., Any], chance: random.Random) -> Outcome:
    """Whether the gradient of a function of numbers is right at a random place."""
    place = _place(function, chance)
    if place is None:
        return Outcome(name, "skipped", "no place where it gives numbers")

    def total(*values: float) -> Any:
        return _total(function(*values))

    slopes = [_slope(total, place, number) for number in range(len(place))]
    if all(error == math.inf for _, error in slopes):
        return Outcome(name, "skipped", "no derivative is known")
    try:
        value, gradient = yota.grad(total, *place)
    except TimeoutError:
        raise
    except Exception as fault:  # noqa: BLE001  (it was not differentiated, and says so)
        return Outcome(name, "refused", f"{type(fault).__name__}: {fault}")
    plain = total(*place)
    if not abs(value - plain) <= 1e-9 * abs(plain) + 100 * _spread(total, place):
        return Outcome(name, "wrong", f"value {value} for {plain} at {place}")
    for number, (found, (slope, error)) in enumerate(zip(gradient, slopes, strict=True)):
        if error < math.inf and not abs(found - slope) <= 1e-5 * abs(slope) + 20 * error:
            kind = (
                "infinite" if not math.isfinite(found) else "branches" if _switches(total, place, number) else "wrong"
            )
            return Outcome(name, kind, f"by argument {number}: {found} for {slope} +- {error} at {place}")
    return Outcome(name, "right")


def _switches(total: Callable[..., Any], place: Sequence[float], number: int) -> bool:
    """Whether another branch is taken close by on both sides, as where a root is found by bisection."""
    _, tape = yota.trace(total, *place)
    for factor in (1 - _CLOSE, 1 + _CLOSE):
        try:
            yota.play(tape, *place[:number], place[number] * factor, *place[number + 1 :])
        except yota.errors.StaleTapeError:
            continue
        return False
    return True


def _spread(total: Callable[..., Any], place: Sequence[float]) -> float:
    """How far the value moves where arguments move in their last digits: products may be taken in another order."""
    return max(
        abs(
            total(*place[:number], part * (1 + 4 * sign * sys.float_info.epsilon), *place[number + 1 :]) - total(*place)
        )
        for number, part in enumerate(place)
        for sign in (-1, 1)
    )


def _place(function: Callable[..., Any], chance: random.Random) -> tuple[float, ...] | None:
    """Arguments for which a function gives a number, or several; where it can be, such as are not all whole."""
    try:
        parameters = [
            each
            for each in inspect.signature(function).parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) and each.default is each.empty
        ]
    except (TypeError, ValueError):
        return None
    if not 1 <= len(parameters) <= _MOST_ARGUMENTS:
        return None
    for _ in range(_ATTEMPTS):
        place = tuple(_argument(each.name, chance) for each in parameters)
        try:
            total = _total(function(*place))
            usual = total is not None and (total == 0 or _SMALLEST < abs(total) < _LARGEST)
            if usual and total == _total(function(*place)):  # it draws no random numbers
                return place
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001  (it is not made for such numbers)
            continue
    return None


def _argument(name: str, chance: random.Random) -> float:
    for start, (low, high) in _RANGES.items():
        if name.startswith(start) and chance.random() < 0.7:
            return chance.uniform(low, high)
    return chance.choice(
        [chance.uniform(0.05, 0.95), chance.uniform(0.5, 3.0), chance.lognormvariate(0.0, 2.0), chance.uniform(5, 90)]
    )


def _total(found: Any) -> Any:
    """One number of the numbers that a function gives; None if it gives anything else."""
    if isinstance(found, (tuple, list)) and 0 < len(found) <= 8:
        parts = [_total(each) for each in found]
        return None if any(part is None for part in parts) else sum(part * (n + 1) for n, part in enumerate(parts))
    return found if isinstance(found, float) else None


def _slope(total: Callable[..., Any], place: Sequence[float], number: int) -> tuple[float, float]:
    """A partial derivative by differences, and its error; infinite if there is none here, or it is not known well."""
    width = 0.5 * abs(place[number])

    def along(part: float, sign: int = 1) -> float:
        moved = [*place]
        moved[number] += width * part * sign
        return float(total(*moved))

    try:
        rounding = noise(along)
        slope, error = slope_along(along, rounding, 1e-8, 0.0)
        ends = [(step, (along(step) - along(-step)) / (2 * step)) for step in _STEPS]
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001  (it is not defined around)
        return math.nan, math.inf
    # Stairs, as of whole days, look like a slope from afar, and a slope like stairs where digits end.
    digits = 50 * sys.float_info.epsilon * abs(along(0.0)) + 10 * rounding
    allowed = [abs(slope) * part + digits / step for part, (step, _) in zip(_PARTS, ends, strict=True)]
    smooth = all(abs(end - slope) <= most for most, (_, end) in zip(allowed, ends, strict=True))
    # An argument that shows nowhere may still have a slope, of which no digit arrives.
    error = max(error, digits / _STEPS[0], 0.0 if slope else 1e-8 * abs(along(0.0)))
    # A function that rounds to 0 shows nothing of its slope.
    shows = slope != 0 or along(0.0) != 0
    known = shows and smooth and error <= 1e-4 * abs(slope) + 1e-8 * abs(along(0.0))
    return (slope / width, error / width) if known else (math.nan, math.inf)


if __name__ == "__main__":
    sys.exit(main())
