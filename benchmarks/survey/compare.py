"""Holds value, gradient and second order of a call against differences."""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import yota
from benchmarks.survey.calls import Call, floating, is_moving, parts, total_of
from benchmarks.survey.limits import limited
from benchmarks.survey.slopes import Slope, directions, moved, slope, symmetric, symmetrised
from yota.errors import YotaError
from yota.structures import flatten

__all__ = ["along_of", "compare", "is_finite", "plain_of", "seed_of", "steps_of"]

_SHORTEST = 50e-6
"""Plain calls that are shorter are not timed."""


@contextlib.contextmanager
def _to_all_digits() -> Iterator[None]:
    """Integrals by scipy.integrate.quad to 12 digits, where its own tolerance leaves a moment with six."""
    module = sys.modules.get("scipy.integrate")
    if module is None:
        yield
        return
    own = module.quad

    def quad(*args: Any, **keywords: Any) -> Any:
        return own(*args, **({"epsabs": 0.0, "epsrel": 1e-12, "limit": 200} | keywords))

    module.quad = quad
    try:
        yield
    finally:
        module.quad = own


def plain_of(call: Call) -> Any:
    copies = {name: copy.deepcopy(value) for name, value in call.given.items()}
    with _to_all_digits():
        return call.function(list(call.given))(*copies.values())


def seed_of(call: Call) -> int:
    return zlib.crc32(f"{call.name} {call.text}".encode())


def steps_of(call: Call, name: str, even: bool = False) -> list[Any]:
    steps = directions(call.given[name], np.random.default_rng([seed_of(call), *name.encode()]))
    if even:
        steps = symmetrised(call.given[name], steps)
    return steps


def along_of(call: Call, name: str, steps: list[Any], total: Callable[[Any], Any]) -> Callable[[float], float]:
    function = call.function(list(call.given), total)

    def along(h: float) -> float:
        given = {each: copy.deepcopy(value) for each, value in call.given.items() if each != name}
        given[name] = moved(call.given[name], steps, h)
        try:
            with _to_all_digits():
                return float(np.real(function(*(given[each] for each in call.given))))
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001  (it refuses what is around)
            return math.nan

    return along


def compare(
    call: Call, names: list[str], slopes: dict[str, Slope], once: bool = False
) -> tuple[str, str, str, tuple[float, float, float]]:
    """What becomes of the gradient by the arguments that are named."""
    plain = plain_of(call)
    total = total_of(plain, call.name)
    function = call.function(names, total)
    given = [call.given[name] for name in names]
    nothing = (0.0, 0.0, 0.0)
    expected = float(np.real(function(*copy.deepcopy(given))))
    with _to_all_digits():
        exact = float(np.real(function(*copy.deepcopy(given))))
    try:
        with limited(20):
            started = time.thread_time()
            value, gradient = yota.grad(function, *copy.deepcopy(given))
            first = time.thread_time() - started
    except TimeoutError:
        return "slow", "to compile", "", nothing
    except YotaError as fault:
        return "refused", _message(fault), "", nothing
    except Exception as fault:  # noqa: BLE001  (of the package's own code, met by traced values)
        return "refused", f"{type(fault).__name__}: {_message(fault)}", "", nothing
    spread = max(
        (
            abs(along_of(call, name, steps_of(call, name), total)(sign * 4 * 2.0**-52) - exact)
            for name in names
            for sign in (-1, 1)
        ),
        default=0.0,
    )
    allowed = 1e-9 * abs(exact) + 100 * (0.0 if math.isnan(spread) else spread) + abs(exact - expected) + 1e-12
    if not abs(float(np.real(value)) - exact) <= allowed:
        return "wrong", f"value {value} for {expected}", "", nothing
    for place, name in enumerate(names):
        found, scale = _directional(gradient, place, call, name, steps_of(call, name))
        if not _close(found, scale, slopes[name]):
            if symmetric(call.given[name]):
                steps = steps_of(call, name, True)
                even = slope(along_of(call, name, steps, total))
                found, scale = _directional(gradient, place, call, name, steps)
                if not even.known or _close(found, scale, even):
                    continue
            kind = "nan" if math.isnan(found) and not is_finite(plain) else "wrong"
            what = f"by {name}: {found!r} for {slopes[name].value!r} +- {slopes[name].error:.1g}"
            return kind, what, "", nothing
    if once:
        return "right", "", "", nothing
    second = _second(call, names, total) if seed_of(call) % 10 == 0 else ""
    return (
        ("wrong" if second.startswith("wrong") else "right"),
        "",
        second,
        (*_times(function, given), first),
    )


def is_finite(plain: Any) -> bool:
    return all(np.all(np.isfinite(np.asarray(each))) for each in parts(plain) if floating(each))


def _close(found: float, scale: float, expected: Slope) -> bool:
    return abs(found - expected.value) <= 1e-5 * abs(expected.value) + 1e-9 * scale + 20 * expected.error + 1e-12


def _directional(gradient: Any, place: int, call: Call, name: str, steps: list[Any]) -> tuple[float, float]:
    adjoint = gradient[place]
    leaves = [(path, leaf) for path, leaf in flatten(call.given[name]) if yota.structures.is_leaf(leaf)]
    total, scale = 0.0, 0.0
    for (path, leaf), step in zip(leaves, steps, strict=True):
        if is_moving(leaf):
            inner = adjoint.get(path, 0.0) if path else adjoint
            # A number that is not finite does not move.
            term = np.where(step == 0, 0.0, np.real(np.conjugate(inner) * step))
            total += float(np.sum(term))
            scale += float(np.sum(np.abs(term)))
    return total, scale


def _second(call: Call, names: list[str], total: Callable[[Any], Any]) -> str:
    """Products with the Hessian against differences of the gradient."""
    for name in names:
        value = call.given[name]
        if not isinstance(value, (np.ndarray, float)) or np.asarray(value).dtype != np.float64:
            continue
        one = call.function([name], total)
        (step,) = steps_of(call, name)
        (seed,) = directions(value, np.random.default_rng(seed_of(call) + 2))
        try:
            product = yota.hvp(one)(value, step if np.ndim(step) else float(step))
            gradient = yota.gradient(one)
        except TimeoutError:
            return "slow"
        except Exception as fault:  # noqa: BLE001
            return f"refused: {_message(fault)}"

        def along(
            h: float,
            value: Any = value,
            step: Any = step,
            seed: Any = seed,
            gradient: Any = gradient,
        ) -> float:
            try:
                return float(np.sum(np.asarray(gradient(value + h * step)) * seed))
            except TimeoutError:
                raise
            except Exception:  # noqa: BLE001
                return math.nan

        expected = slope(along)
        found = float(np.sum(np.asarray(product) * seed))
        scale = float(np.sum(np.abs(np.asarray(product) * seed)))
        if expected.known and not _close(found, scale, expected):
            return f"wrong by {name}: {found!r} for {expected.value!r} +- {expected.error:.1g}"
        if expected.known:
            return "right"
    return ""


def _times(function: Callable[..., Any], given: list[Any]) -> tuple[float, float]:
    """Seconds of the plain call and of a recording."""
    plain = _least(lambda: function(*given))
    if plain < _SHORTEST:
        return plain, 0.0
    try:
        return plain, _least(lambda: yota.trace(function, *given))
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001
        return plain, 0.0


def _least(action: Callable[[], Any]) -> float:
    """Seconds of the thread's clock. While a limit of time is set, the clock of the process ticks every 4 ms."""
    best = math.inf
    for _ in range(3):
        started = time.thread_time()
        action()
        best = min(best, time.thread_time() - started)
    return best


def _message(fault: Exception) -> str:
    return str(fault)[:3000]
