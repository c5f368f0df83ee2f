"""What a proof finds out: one finding for each law and argument, and the report on a whole file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from yota.errors import DifferentiationError, YotaError
from yota.rules.algebras.digits import NotPreciseError
from yota.rules.language.model import Rule

FAULTS = (
    *(YotaError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError, AssertionError),
    np.linalg.LinAlgError,
)
"""What a wrong rule may raise when it is differentiated or run."""
_UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a rule keeps a law.

    law: what was measured, and against what.
    error: the worst error with its unit; empty where nothing was measured.
    where: file and line of the rule, and the arguments at which the error is worst.
    held: whether the error is within the tolerance.
    note: why more is tolerated than usual, or why nothing was measured.
    """

    rule: str
    argument: str
    law: str
    error: str
    where: str
    held: bool = True
    note: str = ""
    measured: float = 0.0

    @property
    def status(self) -> str:
        """``"held"``, ``"wrong"``, or ``"not measured"``; the note of the last says why."""
        if not self.held:
            return "wrong"
        return "held" if self.error else _UNMEASURED


@dataclass(slots=True)
class Report:
    """What was found in one file."""

    file: str
    faults: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    rules: int = 0

    @property
    def held(self) -> bool:
        """Whether every rule keeps every law."""
        return not self.faults and all(found.held for found in self.findings)

    def data(self) -> dict[str, Any]:
        """The report in plain Python, for JSON."""
        return {
            "file": self.file,
            "held": self.held,
            "rules": self.rules,
            "faults": list(self.faults),
            "findings": [asdict(each) for each in self.findings],
        }


def finding(
    rule: Rule, argument: str, law: str, error: float, tolerance: float, *, unit: str = "", place: str = ""
) -> Finding:
    """A measured finding: it holds if ``error`` is a number of at most ``tolerance``."""
    shown = f"{error:.1f} ulp" if unit == "ulp" and error < 1e4 else f"{error:.1e}{f' {unit}' if unit else ''}"
    if not unit and 0 < error < tolerance / 1000:
        # Far below, it is the rounding of the oracle's own that is seen.
        shown = f"< {tolerance / 1000:.0e}"
    held = not math.isnan(error) and error <= tolerance
    return Finding(rule.name, argument, law, shown if error else "0", _where(rule, place), held, measured=error)


def measured(
    rule: Rule,
    argument: str,
    law: str,
    tolerance: float,
    cases: Iterable[tuple[Any, Callable[[], float | None]]],
    *,
    skipped: tuple[type[Exception], ...] = (),
    otherwise: str = "",
    enough: float = math.inf,
    unit: str = "",
    may_refuse: bool = False,
) -> Finding:
    """The finding on the worst of several errors, or on the first that cannot be computed.

    cases: places, each with what computes the error there; None says nothing.
    skipped: exceptions that say nothing either.
    otherwise: what to say if no error was computed; by default nothing is wrong then.
    enough: no further case is computed beyond this error.
    may_refuse: whether a derivative that is refused says nothing of the rule.
    Raises NotPreciseError if that is not ``skipped``.
    """
    worst, where, is_told = 0.0, "", False
    for place, error in cases:
        try:
            off = error()
        except skipped:
            continue
        except NotPreciseError:
            raise
        except FAULTS as fault:
            if may_refuse and isinstance(fault, DifferentiationError):
                return unmeasured(rule, argument, law, f"refused: {first_line(fault)}")
            return failed(rule, law, place, fault, argument)
        if off is None:
            continue
        is_told, off = True, math.inf if math.isnan(off) else off
        if off > worst:
            worst, where = off, str(place)
        if off > enough:
            break
    if otherwise and not is_told:
        return unmeasured(rule, argument, law, otherwise)
    return finding(rule, argument, law, worst, tolerance, unit=unit, place=where)


def unmeasured(rule: Rule, argument: str, law: str, reason: str) -> Finding:
    """A finding that says nothing of the rule, and why."""
    return Finding(rule.name, argument, law, "", _where(rule, ""), note=f"{_UNMEASURED}: {reason}")


def failed(rule: Rule, law: str, place: Any, fault: BaseException, argument: str = "") -> Finding:
    """A finding that nothing could be measured, because of ``fault``."""
    return Finding(rule.name, argument, law, "failed", _where(rule, place), False, first_line(fault))


def first_line(fault: BaseException) -> str:
    """The first line of an exception's text; its class if it has none."""
    return (str(fault) or type(fault).__name__).splitlines()[0]


def _where(rule: Rule, place: Any) -> str:
    return f"{Path(rule.file).name}:{rule.line}{f', {place}' if place else ''}"
