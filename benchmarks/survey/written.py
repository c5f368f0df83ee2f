"""Calls that are written by hand, for functions whose documentation shows none that could be differentiated."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.survey.calls import Call
from benchmarks.survey.public import resolved

__all__ = ["written"]

_FILE = Path(__file__).with_name("written.calls")


def values() -> dict[str, Any]:
    """The arguments of the calls."""
    draw = np.random.default_rng(7).uniform
    return {
        "x": draw(0.3, 0.95, (2, 3)),
        "y": draw(0.3, 0.95, (2, 3)),
        "v": draw(0.3, 0.95, 3),
        "w": draw(0.3, 0.95, 3),
        "s": draw(0.2, 1.0, (3, 3)) + 2 * np.eye(3),
        "t": draw(0.3, 0.95, (2, 2, 2)),
        "k": np.array([3, 1, 2]),
        "p": np.array([[3.0, 0.5, 0.2], [0.5, 2.5, 0.4], [0.2, 0.4, 2.0]]),
        "z": np.array([0.5 + 0.2j, 0.3 - 0.4j, 0.8 + 0.1j]),
        "m": draw(-1.0, 1.0, (12, 2)),
        "u": np.array([0.0, 0.4, 1.1, 1.7, 2.0, 2.9, 3.3]),
        "r": draw(-1.0, 1.0, 7),
        "M": draw(-1.0, 1.0, (12, 2)),
        "R": draw(-1.0, 1.0, 12),
        "N": np.arange(12) % 2,
    }


@functools.cache
def _calls() -> dict[str, list[str]]:
    """The calls by the whole name of a function."""
    found: dict[str, list[str]] = {}
    text = _FILE.read_text(encoding="utf-8").replace("\n    ", " ")
    for part in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        module, _, lines = part.partition("]\n")
        for line in filter(None, lines.split("\n")):
            call, _, names = line.rpartition(": ")
            for name in names.split():
                found.setdefault(f"{module}.{name}", []).append(call)
    return found


def written(name: str) -> list[Call]:
    """The calls of a function and of its methods that are written by hand."""
    found = []
    for each, calls in _calls().items():
        if each == name or each.startswith(name + "."):
            # Of a class the text makes an object first; of an object such as a distribution it calls the method.
            called = name if isinstance(resolved(name), type) else each
            found += [_call(each, called, call) for call in calls]
    return found


def _call(each: str, name: str, text: str) -> Call:
    given = {key: value for key, value in values().items() if re.search(rf"\b{key}\b", text)}
    moving = {key: value for key, value in given.items() if key.islower() and value.dtype.kind in "fc"}
    rest = {key: value for key, value in given.items() if key not in moving}
    made, _, text = re.sub(r"\bf\b(?=[(.\[])", name, text).rpartition(" -> ")
    if made:
        rest["o"] = Call(each, made, {}, rest).function([])()
    return Call(each, text, moving, rest)
