"""Differentiates a call and holds value, gradient and second order against differences."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import re
import signal
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import yota
from benchmarks.survey.calls import Call, floating, is_moving, parts, total_of
from benchmarks.survey.slopes import Slope, directions, moved, slope, symmetric
from yota.errors import YotaError
from yota.structures import flatten

__all__ = ["DIFFERENTIABLE", "Outcome", "examine", "limited", "quiet"]

DIFFERENTIABLE = ("right", "wrong", "nan", "refused", "slow")
"""What becomes of calls that have a derivative."""
_NEAR = 1e-9
_NO_JUDGE = ("numpy.round", "numpy.around", "numpy.real_if_close")
"""Steps of differences go past the digits that are rounded, or the tolerance."""
_SHORTEST = 50e-6
"""Plain calls that are shorter are not timed."""


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


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing is printed, and nothing warned of."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of the processor's time."""

    def end(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def examine(call: Call, seconds: float = 20.0) -> Outcome:
    """What becomes of a call when it is differentiated."""
    if call.name in _NO_JUDGE:
        return Outcome(call.name, call.text, "unknown")
    outcome = Outcome(call.name, call.text, "slow", "differences")
    try:
        with limited(seconds):
            return _examined(call)
    except TimeoutError:
        return outcome


def _examined(call: Call) -> Outcome:
    call = _with_targets(call)

    def outcome(kind: str, detail: str = "") -> Outcome:
        return Outcome(call.name, call.text, kind, detail)

    try:
        plain = _plain(call)
        again = _plain(call)
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
        call = _with_floats(call, found)
    if not call.given:
        return outcome("no float")
    plain = _plain(call)
    slopes, call = _place(call, plain)
    names = [name for name in call.given if slopes[name].known]
    if not names:
        return outcome("unknown", "no derivative is known at the place of the example, or near it")
    moving = [name for name in names if not slopes[name].constant]
    kind, detail, second, times = _compare(call, names, slopes)
    if not moving and kind != "wrong":
        return outcome("constant")
    where = {name: _short(value) for name, value in call.given.items()}
    found = Outcome(call.name, call.text, kind, detail, second, *times, place=str(where))
    if kind == "refused" and len(moving) > 1:
        alone = [_compare(call, [name], slopes, once=True)[0] for name in moving]
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


def _plain(call: Call) -> Any:
    copies = {name: copy.deepcopy(value) for name, value in call.given.items()}
    return call.function(list(call.given))(*copies.values())


def _with_targets(call: Call) -> Call:
    """A function that gives None and writes into an argument becomes one of a copy of it that is given back."""
    try:
        copies = {name: copy.deepcopy(value) for name, value in call.given.items()}
        result = call.function(list(call.given))(*copies.values())
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001
        return call
    if result is not None:
        return call
    changed = [
        name
        for name, value in copies.items()
        if isinstance(value, np.ndarray) and not np.array_equal(value, call.given[name], equal_nan=True)
    ]
    if not changed:
        return call
    (name, *_) = changed
    text = re.sub(rf"\b{name}\b", "target", call.text)
    return Call(
        call.name,
        "target",
        call.given,
        call.fixed,
        f"    target = {name}.copy()\n    {text}\n",
    )


def _with_floats(call: Call, found: list[Any]) -> Call:
    """Whole numbers among the arguments as floating ones, where that changes nothing."""
    for name, value in list(call.fixed.items()):
        _try_float(call, name, value, found)
    if not call.given:
        for text in sorted(set(re.findall(r"(?<![\w.'\"\[])-?\d+(?![\w.'\"\]])", call.text))):
            _try_number(call, text, found)
    return call


def _try_float(call: Call, name: str, value: Any, found: list[Any]) -> None:
    changed = _floated(value)
    if changed is None:
        return
    text, number = call.text, f"p{len(call.given)}"
    del call.fixed[name]
    call.given[number] = changed
    call.text = re.sub(rf"\b{name}\b", number, text)
    if not _fits(call, number, found):
        del call.given[number]
        call.fixed[name] = value
        call.text = text


def _try_number(call: Call, text: str, found: list[Any]) -> None:
    before = call.text
    name = f"p{len(call.given)}"
    call.text = re.sub(
        rf"(?<=[(, =])(?<!axis=)(?<!dtype=)(?<![\w.]){re.escape(text)}(?=[,)])",
        name,
        before,
        count=1,
    )
    if call.text == before:
        return
    call.given[name] = float(text)
    if not _fits(call, name, found):
        del call.given[name]
        call.text = before


def _fits(call: Call, name: str, found: list[Any]) -> bool:
    """Whether an argument may be of floating point: results are as before, and close by where it is moved a little."""
    value = call.given[name]
    steps = directions(value, np.random.default_rng(0))
    try:
        for h in (0.0, _NEAR, -_NEAR):
            call.given[name] = moved(value, steps, h)
            if not _alike(found, list(parts(_plain(call))), 1e-4 if h else 1e-9):
                return False
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001
        return False
    finally:
        call.given[name] = value
    return True


def _alike(first: list[Any], second: list[Any], rtol: float) -> bool:
    if len(first) != len(second):
        return False
    with contextlib.suppress(Exception):
        return all(
            np.allclose(a, b, rtol=rtol, atol=1e-3 * rtol, equal_nan=True)
            for a, b in zip(first, second, strict=True)
            if floating(a)
        )
    return False


def _floated(value: Any) -> Any:
    if isinstance(value, np.ndarray) and type(value) is np.ndarray and value.dtype.kind in "iu" and value.size:
        return value.astype(float)
    if isinstance(value, (list, tuple)) and value:
        inner = [float(each) if type(each) is int else _floated(each) for each in value]
        return None if any(each is None for each in inner) or hasattr(value, "_fields") else type(value)(inner)
    return None


def _seed(call: Call) -> int:
    return zlib.crc32(f"{call.name} {call.text}".encode())


def _place(call: Call, plain: Any) -> tuple[dict[str, Slope], Call]:
    """The slopes by each argument at the place of the example, or where it is a kink, near it."""
    slopes = _slopes(call, total_of(plain, call.name))
    lost = [name for name, each in slopes.items() if not each.known]
    if not lost:
        return slopes, call
    random = np.random.default_rng(_seed(call) + 1)
    shifted = {
        name: moved(value, directions(value, random), 0.01) if name in lost else value
        for name, value in call.given.items()
    }
    other = replace(call, given=shifted)
    try:
        there = _plain(other)
        if _finite(plain) and not _finite(there):
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
        steps = _steps(call, name)
        found[name] = slope(_along(call, name, steps, total))
        if not found[name].known and symmetric(call.given[name]):
            found[name] = slope(_along(call, name, _steps(call, name, True), total))
    return found


def _steps(call: Call, name: str, even: bool = False) -> list[Any]:
    steps = directions(call.given[name], np.random.default_rng([_seed(call), *name.encode()]))
    if even:
        steps = [step + np.conj(np.swapaxes(step, -1, -2)) for step in steps]
    return steps


def _along(call: Call, name: str, steps: list[Any], total: Callable[[Any], Any]) -> Callable[[float], float]:
    function = call.function(list(call.given), total)

    def along(h: float) -> float:
        given = {each: copy.deepcopy(value) for each, value in call.given.items() if each != name}
        given[name] = moved(call.given[name], steps, h)
        try:
            return float(np.real(function(*(given[each] for each in call.given))))
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001  (it refuses what is around)
            return math.nan

    return along


def _compare(
    call: Call, names: list[str], slopes: dict[str, Slope], once: bool = False
) -> tuple[str, str, str, tuple[float, float, float]]:
    """What becomes of the gradient by the arguments that are named."""
    plain = _plain(call)
    total = total_of(plain, call.name)
    function = call.function(names, total)
    given = [call.given[name] for name in names]
    nothing = (0.0, 0.0, 0.0)
    try:
        expected = float(np.real(function(*copy.deepcopy(given))))
        with limited(20):
            started = time.process_time()
            value, gradient = yota.grad(function, *copy.deepcopy(given))
            first = time.process_time() - started
    except TimeoutError:
        return "slow", "to compile", "", nothing
    except YotaError as fault:
        return "refused", _message(fault), "", nothing
    except Exception as fault:  # noqa: BLE001  (of the package's own code, met by traced values)
        return "refused", f"{type(fault).__name__}: {_message(fault)}", "", nothing
    spread = max(
        (
            abs(_along(call, name, _steps(call, name), total)(sign * 4 * 2.0**-52) - expected)
            for name in names
            for sign in (-1, 1)
        ),
        default=0.0,
    )
    if (
        not abs(float(np.real(value)) - expected)
        <= 1e-9 * abs(expected) + 100 * (0.0 if math.isnan(spread) else spread) + 1e-12
    ):
        return "wrong", f"value {value} for {expected}", "", nothing
    for place, name in enumerate(names):
        found, scale = _directional(gradient, place, call, name, _steps(call, name))
        if not _close(found, scale, slopes[name]):
            if symmetric(call.given[name]):
                steps = _steps(call, name, True)
                even = slope(_along(call, name, steps, total))
                found, scale = _directional(gradient, place, call, name, steps)
                if not even.known or _close(found, scale, even):
                    continue
            kind = "nan" if math.isnan(found) and not _finite(plain) else "wrong"
            what = f"by {name}: {found!r} for {slopes[name].value!r} +- {slopes[name].error:.1g}"
            return kind, what, "", nothing
    if once:
        return "right", "", "", nothing
    second = _second(call, names, total) if _seed(call) % 10 == 0 else ""
    return (
        ("wrong" if second.startswith("wrong") else "right"),
        "",
        second,
        (*_times(function, given), first),
    )


def _finite(plain: Any) -> bool:
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
        (step,) = _steps(call, name)
        (seed,) = directions(value, np.random.default_rng(_seed(call) + 2))
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
    best = math.inf
    for _ in range(3):
        started = time.process_time()
        action()
        best = min(best, time.process_time() - started)
    return best


def _message(fault: Exception) -> str:
    return str(fault)[:3000]
