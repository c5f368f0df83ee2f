"""Writes docs/coverage.md: what becomes of each function of NumPy and SciPy, found by tracing and differentiating it.

Run as ``python docs/coverage.py``; ``python docs/coverage.py --check`` only says whether the page is current.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats

import yota
from yota.autodiff.reverse import gradient_tape
from yota.errors import YotaError
from yota.proof.differences import noise, slope_along
from yota.rules.model import Rule, refusal
from yota.rules.registry import registry

PAGE = Path(__file__).with_name("coverage.md")
CALLS = Path(__file__).with_name("coverage.calls")

MODULES = ("special", "linalg", "stats", "signal", "ndimage")


@dataclass(frozen=True)
class Finding:
    """What becomes of one function."""

    name: str
    how: str
    remark: str


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
    }


@dataclass(frozen=True)
class Calls:
    """What coverage.calls says of one namespace: the call of a function, and why others have none."""

    calls: dict[str, str]
    apart: dict[str, str]

    def call(self, name: str, function: Any) -> str:
        """The call that stands for a function."""
        usual = f"f({', '.join(('x', 'y')[: function.nin])})" if isinstance(function, np.ufunc) else "f(x)"
        return self.calls.get(name, usual)


def read_calls() -> dict[str, Calls]:
    """The calls by namespace."""
    found: dict[str, Calls] = {}
    text = CALLS.read_text(encoding="utf-8").replace("\n    ", " ")
    for part in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        title, _, lines = part.partition("]\n")
        found[title] = Calls({}, {})
        for line in filter(None, lines.split("\n")):
            head, _, names = line.rpartition(": ")
            place = found[title].apart if head.startswith("- ") else found[title].calls
            place.update(dict.fromkeys(names.split(), head.removeprefix("- ")))
    return found


def resolved(space: Any, name: str) -> Any:
    """A function by its name, which may have dots."""
    for part in name.split("."):
        space = getattr(space, part)
    return space


def probe(space: Any, name: str, calls: Calls) -> Finding:
    """What becomes of the function ``name`` when it is called as it should be."""
    function = resolved(space, name)
    call = calls.call(name, function)
    given = values()
    if isinstance(function, np.ufunc) and all("d" not in each and "e" not in each for each in function.types):
        call = call.replace("x", "k").replace("y", "k")
    names = [each for each in given if re.search(rf"\b{each}\b", call)]
    changed = call.startswith(("f(x.copy()", "f(s.copy()"))

    def run(*arguments: Any) -> Any:
        # By name: while a function is traced, some names stand for what records.
        scope = dict(zip(names, arguments, strict=True)) | {"f": resolved(space, name), "np": np}
        if changed:
            target = call[2]
            scope["target"] = scope[target].copy()
            eval(call.replace(f"{target}.copy()", "target", 1), scope)
            return scope["target"]
        return eval(call, scope)

    arguments = [given[each] for each in names]
    try:
        plain = run(*arguments)
    except Exception as fault:
        raise AssertionError(f"{name}: {call} is no call that it takes: {fault}") from fault
    if not any(_floating(each) for each in _parts(plain)):
        return _without_derivative(name, run, arguments)
    try:
        _, tape = yota.trace(lambda *inner: _flat(run(*inner)), *arguments)
        _check_gradient(lambda *inner: _weighted(run(*inner)), tuple(arguments))
    except YotaError as fault:
        return Finding(name, "refused", _reason(str(fault)))
    except AssertionError as fault:
        raise AssertionError(f"{name}: {call}: {fault}") from fault
    except (TypeError, ValueError, AttributeError) as fault:
        # SciPy's compiled code refuses traced values itself.
        return Finding(name, "refused", _reason(str(fault)))
    known = registry().find(function)
    if known is not None and registry().rules(known.name)[0].kind != "nodiff":
        return Finding(name, "rule", f"`{registry().rules(known.name)[0].file}`")
    # An auxiliary rule is for one of several results.
    if known is not None and not known.name.startswith("_"):
        return Finding(name, "nodiff", "no derivative")
    used = sorted({op.name for op in tape.ops})
    return Finding(name, "traced through", ", ".join(used) if used else "no op")


def _check_gradient(f: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Hold the adjoints against central differences; the tape is played op by op, so no code is generated."""
    _, tape = yota.trace(f, *arguments)
    moving = [place for place, each in enumerate(arguments) if each.dtype.kind in "fc"]
    found = gradient_tape(tape, [tape.inputs[place].variable for place in moving], registry())
    played = yota.play(found.tape, *arguments)
    parts = iter(played[1:] if isinstance(played, tuple) else ())
    adjoints = {
        place: next(parts) if variable is not None else 0.0
        for place, variable in zip(moving, found.variables, strict=True)
    }
    random = np.random.default_rng(0)
    for _ in range(3):
        steps = {place: _direction(random, arguments[place]) for place in moving}
        found = sum(float(np.sum(np.real(np.conjugate(adjoints[place]) * step))) for place, step in steps.items())
        along = partial(_along, f, arguments, steps)
        expected, error = slope_along(along, noise(along), 1e-6, 1e-6)
        if not abs(found - expected) <= 1e-6 + 1e-5 * abs(expected) + error:
            raise AssertionError(f"the adjoints give {found!r}, differences {expected!r}, within about {error:.1g}")


def _direction(random: np.random.Generator, value: Any) -> Any:
    step = random.standard_normal(value.shape)
    step = step + 1j * random.standard_normal(value.shape) if value.dtype.kind == "c" else step
    return step * np.maximum(np.abs(value), 1.0)


def _along(f: Callable[..., Any], arguments: tuple[Any, ...], steps: dict[int, Any], distance: float) -> float:
    moved = [each + distance * steps[place] if place in steps else each for place, each in enumerate(arguments)]
    return float(f(*moved))


def _without_derivative(name: str, run: Callable[..., Any], arguments: list[Any]) -> Finding:
    try:
        yota.trace(lambda *inner: _flat(run(*inner)), *arguments)
    except YotaError as fault:
        return Finding(name, "refused", _reason(str(fault)))
    return Finding(name, "nodiff", "truth values, positions, counts or plain objects")


def _parts(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for each in result:
            yield from _parts(each)
    elif result is not None:
        yield result


def _floating(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "f" if isinstance(value, (float, complex)) else "") in (
        "f",
        "c",
    )


def _flat(result: Any) -> Any:
    kept = tuple(each for each in _parts(result) if hasattr(each, "dtype") and not isinstance(each, type))
    return kept or 0.0


def _weighted(result: Any) -> Any:
    total = 0.0
    for number, each in enumerate(_parts(result)):
        if _floating(each):
            weights = np.cos(np.arange(np.size(each)).reshape(np.shape(each)) + number)
            total = total + np.sum(weights * (np.real(each) + 0.5 * np.imag(each)))
    return total


def _reason(message: str) -> str:
    text = re.sub(r"^\S+:\d+(?: in \S+)?: (`.*?`: )?", "", message.partition("\n")[0])
    text = re.sub(r"\. Give it one with yota\.diffrule.*", "; give it one", text).strip()
    # Where a class or a version is named, or the cure is the usual one, the first sentence says enough.
    for usual in ("a traced value is being turned into a plain array", "a traced value is given to something"):
        if text.startswith(usual):
            return "its code takes plain arrays only"
    return re.sub(r" \(\w+\.rules:\d+\).*", "", text)


def section(space: Any, names: list[str], calls: Calls) -> list[Finding]:
    """What becomes of the functions of one namespace."""
    findings: list[Finding] = []
    for name in sorted(names):
        function = resolved(space, name)
        own = getattr(function, "__name__", name)
        if own != name and getattr(space, own, None) is function:
            findings.append(Finding(name, "as", f"`{own}`"))
        elif name in calls.apart:
            findings.append(Finding(name, "no derivative asked", calls.apart[name]))
        else:
            findings.append(probe(space, name, calls))
    return findings


def ruled(space: Any, names: list[str]) -> list[Finding]:
    """What the registry says of ufuncs: their file, and the arguments that have no derivative, with the reason."""
    findings: list[Finding] = []
    for name in sorted(names):
        function = getattr(space, name)
        own = function.__name__
        known = registry().find(function)
        if own != name and getattr(space, own, None) is function:
            findings.append(Finding(name, "as", f"`{own}`"))
        elif known is None:
            findings.append(Finding(name, "refused", "no rule is known"))
        else:
            findings.append(_by_arguments(name, registry().rules(known.name)[0]))
    return findings


def _by_arguments(name: str, rule: Rule) -> Finding:
    reasons: dict[str, list[str]] = {}
    for parameter in rule.operands:
        found = refusal(rule.partials.get((rule.results[0], parameter.name)))
        if parameter.domain is not None and parameter.domain.kind == "integer":
            found = "a whole number"
        if found is not None:
            reasons.setdefault(found, []).append(parameter.name)
    remarks = "".join(f"; not by {', '.join(names)}: {reason}" for reason, names in reasons.items())
    refused = sum(map(len, reasons.values())) == len(rule.operands)
    return Finding(name, "refused" if refused else "rule", f"`{rule.file}`{remarks}")


def page() -> str:
    """The text of docs/coverage.md."""
    calls = read_calls()
    plain = [
        name
        for name in np.__all__
        if callable(getattr(np, name)) and not isinstance(getattr(np, name), (type, np.ufunc))
    ]
    lines = [
        "# Coverage",
        "",
        f"Written by `python docs/coverage.py` with NumPy {version(np)} and SciPy {version(scipy)}: each function is",
        "called, traced, and its gradient is held against central differences; of the ufuncs of `scipy.special`, which",
        "yota's tests hold against 50 digits or differences, the rules are listed.",
        "",
        "rule",
        ": a primitive with a rule, in the file named.",
        "",
        "traced through",
        ": recorded as the primitives named, by yota or by the library's own source.",
        "",
        "nodiff",
        ": traced, without derivative.",
        "",
        "refused",
        ": an error that says why.",
        "",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numpy = calls["numpy"]
        algebra = [name for name in np.linalg.__all__ if not isinstance(getattr(np.linalg, name), type)]
        lines += table("numpy: ufuncs", section(np, ufuncs(np), numpy))
        lines += table("numpy: functions", section(np, plain, numpy))
        lines += table("numpy.linalg", section(np.linalg, algebra, numpy))
        lines += table("numpy.fft", section(np.fft, list(np.fft.__all__), numpy))
        lines += table("scipy.special: ufuncs", ruled(scipy.special, ufuncs(scipy.special)))
        for module in MODULES:
            space, own = getattr(scipy, module), calls[f"scipy.{module}"]
            title = "scipy.special: functions" if module == "special" else f"scipy.{module}"
            lines += table(title, section(space, functions(space, own), own))
    return "\n".join(lines)


def ufuncs(space: Any) -> list[str]:
    """The ufuncs of a namespace."""
    return [name for name in dir(space) if isinstance(getattr(space, name), np.ufunc) and not name.startswith("_")]


def functions(space: Any, calls: Calls) -> list[str]:
    """The functions of a module of SciPy's; of its distributions the methods that coverage.calls names."""
    if space is scipy.stats:
        return list(calls.calls)
    return [
        name
        for name in space.__all__
        if callable(getattr(space, name)) and not isinstance(getattr(space, name), (type, np.ufunc))
    ]


def table(title: str, findings: list[Finding]) -> list[str]:
    """A section of the page."""
    rows = [f"| `{each.name}` | {each.how} | {each.remark} |" for each in findings]
    return [f"## {title}", "", "| function | how | |", "| --- | --- | --- |", *rows, ""]


def version(library: Any) -> str:
    """A library's version without its last part, by which its functions do not change."""
    return ".".join(library.__version__.split(".")[:2])


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == text else "docs/coverage.md is not current")
    PAGE.write_text(text, encoding="utf-8")
