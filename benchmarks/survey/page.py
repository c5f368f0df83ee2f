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
Names after a colon are methods of the classes or distributions before it.

right
: value and gradient are right for all calls.

refused
: an error that says why.

NaN
: the value has NaN or infinite elements, and the gradient has NaN where differences of the others are known.

slow
: the first gradient takes more than 20 seconds.

without derivative
: the result is whole numbers, text, truth values, other objects, or random; it is piecewise constant; or no argument is
  of floating point.

not examined
: the documentation has no call; the call does not repeat; differences tell nothing; or the plain calls for them take
  more than 30 seconds.
"""
_WITHOUT = {
    **dict.fromkeys(("discrete", "constant", "object", "random", "no float"), "without derivative"),
    **dict.fromkeys(("unknown", "no example", "failed"), "not examined"),
}
"""What the page says of functions that no call differentiates, the first that is so for one of their calls."""


def page(found: list[Found]) -> str:
    """The text of docs/coverage.md."""
    libraries = {"NumPy": "numpy", "SciPy": "scipy", "scikit-learn": "sklearn"}
    versions = ", ".join(f"{title} {version(name)}" for title, name in libraries.items())
    modules = [module for module in MODULES if any(each["module"] == module for each in found)]
    lines = [
        _HEAD.format(versions=versions),
        "| module | calls with a derivative | right | wrong | NaN | refused | slow | not examined |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for library in libraries.values():
        inner = [each for each in found if each["module"].partition(".")[0] == library]
        lines.append(_counts(f"all of {library}", inner))
    lines += [_counts(module, [each for each in found if each["module"] == module]) for module in modules]
    for module in modules:
        lines += [
            "",
            *_section(module, [each for each in found if each["module"] == module]),
        ]
    return "\n".join(lines) + "\n"


def _counts(title: str, found: list[Found]) -> str:
    counts = collections.Counter(each["kind"] for each in found)
    known = sum(counts[kind] for kind in DIFFERENTIABLE)
    rest = " | ".join(str(counts[kind]) for kind in DIFFERENTIABLE[1:])
    apart = sum(counts[kind] for kind, words in _WITHOUT.items() if words == "not examined")
    return f"| {title} | {known} | {share(counts)} | {rest} | {apart} |"


def _section(module: str, found: list[Found]) -> list[str]:
    """What becomes of the functions of one module."""
    names: dict[str, list[Found]] = collections.defaultdict(list)
    for each in found:
        names[each["name"].removeprefix(f"{module}.")].append(each)
    groups: dict[str, list[str]] = collections.defaultdict(list)
    rows: dict[str, list[str]] = collections.defaultdict(list)
    for name, calls in sorted(names.items()):
        bad = [each for each in calls if each["kind"] in DIFFERENTIABLE and each["kind"] != "right"]
        if bad:
            for row in dict.fromkeys(_row(name, each) for each in bad):
                rows[row].append(name)
        elif any(each["kind"] == "right" for each in calls):
            groups["right"].append(name)
        else:
            kinds = {each["kind"] for each in calls}
            groups[next(words for kind, words in _WITHOUT.items() if kind in kinds)].append(name)
    lines = [f"## {module}", ""]
    for words in ("right", *dict.fromkeys(_WITHOUT.values())):
        if groups[words]:
            lines += [words, f": {_listed(groups[words])}", ""]
    if rows:
        lines += ["| function | | reason |", "| --- | --- | --- |"]
        lines += [f"| {_listed(names)} | {row} |" for row, names in rows.items()]
        lines.append("")
    return lines[:-1]


def _row(name: str, each: Found) -> str:
    kind = {"nan": "NaN"}.get(each["kind"], each["kind"])
    # A reason that does not name the function itself may be that of others too.
    own = re.compile(rf"(?<![\w.])[\w.]+[.]{re.escape(name)}(?![\w.])")
    return f"{kind} | {own.sub('it', reason(each['detail']))}"


def reason(message: str) -> str:
    """A refusal in a line."""
    text = message_of(message)
    # Where a class or a version is named, or the cure is the usual one, the first sentence says enough.
    text = re.split(r"\. (?=[A-Z])", text)[0]
    return re.sub(r"\s*\([A-Z]\w*Error: .*", "", text).replace("|", "\\|")[:160].strip()


def _listed(names: list[str]) -> str:
    """Functions, and then owners with their methods; owners that have the same ones stand together."""
    methods: dict[str, list[str]] = collections.defaultdict(list)
    for name in sorted(names):
        owner, _, method = name.rpartition(".")
        methods[owner].append(method)
    owners: dict[str, list[str]] = collections.defaultdict(list)
    for owner, inner in methods.items():
        owners[_names(inner)].append(owner)
    functions = _names(methods.pop("", []))
    rest = [f"{_names(each)}: {inner}" for inner, each in owners.items() if each != [""]]
    return "; ".join(filter(None, [functions, *rest]))


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def version(library: str) -> str:
    """A library's version without its last part, by which its functions do not change."""
    module: Any = importlib.import_module(library)
    return ".".join(module.__version__.split(".")[:2])
