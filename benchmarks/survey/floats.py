"""Makes arguments of calls floating, and calls that write into an argument give it back."""

from __future__ import annotations

import contextlib
import copy
import re
from typing import Any

import numpy as np

from benchmarks.survey.calls import Call, floating, parts
from benchmarks.survey.compare import plain_of
from benchmarks.survey.slopes import directions, moved

__all__ = ["with_floats", "with_targets"]

_NEAR = 1e-9


def with_targets(call: Call) -> Call:
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


def with_floats(call: Call, found: list[Any]) -> Call:
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
            if not _alike(found, list(parts(plain_of(call))), 1e-4 if h else 1e-9):
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
