"""Writes docs/coverage.md from what was found."""

from __future__ import annotations

import collections
import importlib
import re
from typing import Any

from benchmarks.survey.examine import DIFFERENTIABLE
from benchmarks.survey.public import MODULES
from benchmarks.survey.report import Found, message_of, share

__all__ = ["page", "version"]

_HEAD = """# Coverage

Written by `python -m benchmarks.survey --page` with {versions}.
The calls of public functions in the examples of the documentation are differentiated by their floating arguments. Value
and gradient are held against extrapolated differences with an estimate of their error, the second order too for a tenth
of the calls. For functions whose documentation shows no call with a derivative, and for the methods of distributions,
calls are written by hand. Plain calls take integrals by `scipy.integrate.quad` to 12 digits.

right
: value and gradient are right for all calls.

refused
: an error that says why.

NaN
: the value has NaN or infinite elements, and the gradient has NaN where differences of the others are known.

without derivative
: the result is whole numbers, text, truth values, other objects, or random; it is piecewise constant; no argument is of
  floating point; or differences tell nothing about the calls that there are.
"""
_WITHOUT = {
    "discrete": "whole numbers, truth values or text",
    "constant": "piecewise constant",
    "object": "other objects",
    "random": "random",
    "no float": "no argument of floating point",
    "unknown": "differences tell nothing",
    "no example": "no call",
    "failed": "the call does not repeat",
}
"""Why a function has no derivative here, the first that is so for one of its calls."""


def page(found: list[Found]) -> str:
    """The text of docs/coverage.md."""
    libraries = {"NumPy": "numpy", "SciPy": "scipy", "scikit-learn": "sklearn"}
    versions = ", ".join(f"{title} {version(name)}" for title, name in libraries.items())
    modules = [module for module in MODULES if any(each["module"] == module for each in found)]
    lines = [
        _HEAD.format(versions=versions),
        "| module | calls with a derivative | right | refused | NaN | slow |",
    ]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for module in (*libraries.values(), *modules):
        inner = [each for each in found if f"{each['module']}.".startswith(f"{module}.") or each["module"] == module]
        inner = inner if module in libraries.values() else [each for each in inner if each["module"] == module]
        counts = collections.Counter(each["kind"] for each in inner)
        known = sum(counts[kind] for kind in DIFFERENTIABLE)
        title = f"all of {module}" if module in libraries.values() else module
        lines.append(
            f"| {title} | {known} | {share(counts)} | {counts['refused']} | {counts['nan']} | {counts['slow']} |"
        )
    for module in modules:
        lines += [
            "",
            *_section(module, [each for each in found if each["module"] == module]),
        ]
    return "\n".join(lines) + "\n"


def _section(module: str, found: list[Found]) -> list[str]:
    """What becomes of the functions of one module."""
    names: dict[str, list[Found]] = collections.defaultdict(list)
    for each in found:
        names[each["name"].removeprefix(f"{module}.")].append(each)
    groups: dict[str, list[str]] = collections.defaultdict(list)
    rows = []
    for name, calls in sorted(names.items()):
        bad = [each for each in calls if each["kind"] in DIFFERENTIABLE and each["kind"] != "right"]
        if bad:
            rows += list(dict.fromkeys(_row(name, each) for each in bad))
        elif any(each["kind"] == "right" for each in calls):
            groups["right"].append(name)
        else:
            kinds = {each["kind"] for each in calls}
            groups[next(kind for kind in _WITHOUT if kind in kinds)].append(name)
    lines = [f"## {module}", ""]
    if groups["right"]:
        lines += ["right", f": {_listed(groups['right'])}", ""]
    for kind, words in _WITHOUT.items():
        if groups[kind]:
            lines += [f"without derivative: {words}", f": {_listed(groups[kind])}", ""]
    if rows:
        lines += ["| function | | reason |", "| --- | --- | --- |", *rows, ""]
    return lines[:-1]


def _row(name: str, each: Found) -> str:
    kind = {"nan": "NaN"}.get(each["kind"], each["kind"])
    return f"| `{name}` | {kind} | {reason(each['detail'])} |"


def reason(message: str) -> str:
    """A refusal in a line."""
    text = message_of(message)
    # Where a class or a version is named, or the cure is the usual one, the first sentence says enough.
    text = re.split(r"\. (?=[A-Z])", text)[0]
    return re.sub(r"\s*\([A-Z]\w*Error: .*", "", text).replace("|", "\\|")[:160].strip()


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def version(library: str) -> str:
    """A library's version without its last part, by which its functions do not change."""
    module: Any = importlib.import_module(library)
    return ".".join(module.__version__.split(".")[:2])
