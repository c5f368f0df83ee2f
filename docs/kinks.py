"""Writes the table of ends in `docs/kinks.md`: where a partial is infinite, or no number, at an end of its domain.

python docs/kinks.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.special  # its functions are looked up among loaded modules

from yota.errors import YotaError
from yota.rules.language.model import Parameter, Rule, refusal
from yota.rules.laws.sampling import points
from yota.rules.laws.trials import partial
from yota.rules.registry import Registry, registry

PAGE = Path(__file__).with_name("kinks.md")
RARE = ("several", "waves", "distributions", "inverses", "kelvin", "shapes")
BEGIN, END = "<!-- ends: written by docs/kinks.py -->\n", "<!-- end of ends -->\n"


def ends(known: Registry) -> Iterator[tuple[str, str]]:
    """Each function with what its partials are at the ends of a domain where they are not finite."""
    for name in known.names():
        if name.startswith("_") or known.is_user(name):
            continue
        for rule in known.rules(name):
            # Some of SciPy's rarer functions do not come back from an end of their domain.
            if rule.kind == "elementwise" and not rule.file.startswith(tuple(f"special_{each}" for each in RARE)):
                found = [text for operand in rule.operands for text in _at_ends(rule, operand, known)]
                if found:
                    yield (rule.target or name).removeprefix("numpy.").removeprefix("scipy.special."), "; ".join(found)


def _at_ends(rule: Rule, operand: Parameter, known: Registry) -> Iterator[str]:
    domain = operand.domain
    base = next(points(rule, known, 1), None)
    if domain is None or domain.kind != "real" or base is None:
        return
    for end in (domain.low, domain.high):
        if not math.isfinite(end):
            continue
        names: dict[str, Any] = {
            key: np.float64(value) if isinstance(value, float) else value for key, value in base.items()
        }
        names[operand.name] = np.float64(end)
        values = _slopes(rule, names, known)
        shown = ", ".join(f"by {other} {_word(value)}" for other, value in values if not np.isfinite(value))
        if shown:
            yield f"{operand.name} = {end:g}: {shown}"


def _slopes(rule: Rule, names: dict[str, Any], known: Registry) -> Iterator[tuple[str, Any]]:
    for other in rule.operands:
        kind = other.domain.kind if other.domain is not None else "integer"
        if kind not in ("real", "complex"):
            continue
        for result in rule.results:
            try:
                if refusal(known.partial(rule, other.name, result)) is None:
                    yield other.name, partial(rule, other.name, names, known, result)
            except (YotaError, TypeError, ValueError, ArithmeticError):
                continue


def _word(value: Any) -> str:
    if np.isnan(value):
        return "no number"
    return "infinity" if value > 0 else "-infinity"


def version() -> str:
    """SciPy's version, without its last part."""
    return scipy.__version__.rpartition(".")[0]


def table() -> str:
    """The table as text."""
    head = f"As SciPy {version()} computes the functions of which the partials are made:\n\n"
    rows = dict.fromkeys(ends(registry()))
    return (
        head
        + "\n".join(["| function | at an end |", "| --- | --- |", *(f"| `{name}` | {what} |" for name, what in rows)])
        + "\n"
    )


def written(page: str) -> str:
    """The page with its table as the rules have it now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
