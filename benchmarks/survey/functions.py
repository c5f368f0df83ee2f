"""The calls of a function that its documentation makes, and what becomes of them."""

from __future__ import annotations

import collections
import importlib
import re
import sys
from typing import Any

from benchmarks.survey.calls import Call, call_of
from benchmarks.survey.distributions import methods
from benchmarks.survey.examine import DIFFERENTIABLE, Outcome, examine
from benchmarks.survey.examples import Observed, Observer, observe, same_random
from benchmarks.survey.limits import limited, quiet
from benchmarks.survey.public import MODULES, documents, public
from benchmarks.survey.written import written

__all__ = ["outcomes"]

_MOST = 3
"""Calls of one function that are differentiated."""
_OTHERS = 3
"""Documentations of other functions that are searched."""


def outcomes(name: str) -> list[Outcome]:
    """What becomes of the calls of a function, or of a class and its methods."""
    with quiet():
        calls = _observed(name)
        extra = methods(name)
        for each in {each.name for each in extra}:
            del calls[each][1:]
        found = [_outcome(call_of(each)) for owner in sorted(calls) for each in _chosen(calls[owner])]
        found += [_outcome(each) for each in extra]
        known = {each.name for each in found if each.kind in DIFFERENTIABLE}
        found += [_outcome(each) for each in written(name) if each.name not in known]
    return found or [Outcome(name, "", "no example")]


def _outcome(call: Call) -> Outcome:
    try:
        with same_random():
            return examine(call)
    except Exception as fault:  # noqa: BLE001  (of what examines)
        return Outcome(
            call.name,
            call.text,
            "failed",
            f"in the survey: {type(fault).__name__}: {fault}"[:300],
        )


def _observed(name: str) -> dict[str, list[Observed]]:
    found: dict[str, list[Observed]] = collections.defaultdict(list)
    texts = documents(name)
    for title, text in texts:
        _run(title, text, name, found)
    if not found:
        short = name.rpartition(".")[2]
        package = name.partition(".")[0]
        others = [(title, text) for title, text in _all(package) if re.search(rf"\b{short}\(", text) and ">>>" in text]
        for title, text in others[:_OTHERS]:
            _run(title, text, name, found)
            if found:
                break
    return found


def _run(title: str, text: str, name: str, found: dict[str, list[Observed]]) -> None:
    observer = Observer()
    try:
        with limited(30), same_random():
            observe(title, text, observer)
    except TimeoutError:
        pass
    for each in observer.calls:
        if each.name == name or each.name.startswith(name + "."):
            found[each.name].append(each)


_KEPT: dict[str, list[tuple[str, str]]] = {}


def _all(package: str) -> list[tuple[str, str]]:
    if package not in _KEPT:
        _KEPT[package] = [
            pair
            for module in MODULES
            if module.partition(".")[0] == package and module in sys.modules
            for name in public(module)
            for pair in documents(name)
        ]
    return _KEPT[package]


def _chosen(calls: list[Observed]) -> list[Observed]:
    """A few calls of different kinds."""
    kept: dict[Any, Observed] = {}
    for each in calls:
        kept.setdefault(_kind(each), each)
    return list(kept.values())[:_MOST]


def _kind(observed: Observed) -> Any:
    kinds = tuple(_kind_of(each) for each in observed.arguments)
    return (
        kinds,
        tuple((key, _kind_of(each)) for key, each in sorted(observed.keywords.items())),
        observed.maker is None,
    )


def _kind_of(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return (
        type(value).__name__,
        getattr(value, "ndim", 0),
        str(getattr(value, "dtype", "")),
    )


def modules_named(wanted: list[str]) -> list[str]:
    """The modules that are asked for, or all."""
    found = [each for one in wanted or [""] for each in MODULES if not one or each == one or each.startswith(one + ".")]
    for each in found:
        importlib.import_module(each)
    return found
