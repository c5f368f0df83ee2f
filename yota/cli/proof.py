"""What ``yota check`` finds out about a file: faults by law, and the worst error of each derivative."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from yota._resources import folder
from yota.cli.terminal import steps
from yota.errors import MissingRuleError, RuleError, YotaError

__all__ = ["proved"]

_POINTS = 6
_DIRECTION = 1e-5
_SYMMETRIC = ("cholesky",)
"""Directions at random would leave the set on which these are defined."""


def proved(path: Path, ulps: float) -> dict[str, Any]:
    """The report on one file, fit for JSON."""
    from yota.rules.registry import registry

    report: dict[str, Any] = {"file": str(path), "faults": [], "rows": [], "unproved": []}
    trial = registry().copy()
    try:
        rules = _shipped(path, trial) if folder("rules") in path.resolve().parents else trial.load(path)
    except RuleError as fault:
        report["faults"].append(str(fault))
        return report
    except OSError as fault:
        report["faults"].append(f"{path}: {fault.strerror}")
        return report
    for rule in steps(rules, "proving"):
        report["rows"].append(_row(rule, "", "laws", "", True))
        if rule.kind == "elementwise":
            report["rows"] += _partials(rule, trial, ulps)
        elif rule.kind == "tensor" and rule.name in _SYMMETRIC:
            report["unproved"].append(f"adjoints of {rule.name}: it takes symmetric matrices only")
        elif rule.kind == "tensor":
            try:
                report["rows"].append(_adjoints(rule, trial))
            except (YotaError, TypeError, ValueError, ArithmeticError, AttributeError, np.linalg.LinAlgError) as fault:
                report["unproved"].append(
                    f"adjoints of {rule.name}: {str(fault).splitlines()[0] if str(fault) else fault}"
                )
    return report


def _shipped(path: Path, trial: Any) -> Any:
    """Rules of a file of yota's own, which need not be taken in again."""
    from yota.rules import laws
    from yota.rules.syntax import parse

    source, rules = parse(path.read_text(encoding="utf-8"), str(path), header=True)
    laws.check(source, rules, trial)
    laws.prove(source, rules, trial)
    return rules


def _row(rule: Any, argument: str, law: str, error: str, held: bool) -> dict[str, Any]:
    where = f"{Path(rule.file).name}:{rule.line}"
    return {"rule": rule.name, "argument": argument, "law": law, "error": error, "where": where, "held": held}


def _partials(rule: Any, registry: Any, ulps: float) -> Iterator[dict[str, Any]]:
    from yota.rules import precise, trials
    from yota.rules.sampling import points

    for parameter in rule.operands:
        if parameter.domain.kind not in ("real", "complex"):
            continue
        try:
            found = list(points(rule, registry, _POINTS))
            worst = max((trials.excess(rule, parameter.name, point, registry) for point in found), default=math.nan)
            yield _row(rule, parameter.name, "partial, 50 digits", f"{worst:.1f} ulp", worst <= ulps)
        except precise.NotPreciseError:
            yield _direction(rule, parameter.name, registry)
        except MissingRuleError as fault:
            yield _row(rule, parameter.name, "partial", str(fault).splitlines()[0], False)


def _direction(rule: Any, parameter: str, registry: Any) -> dict[str, Any]:
    from yota.rules.sampling import points, statics
    from yota.rules.trials import direction_error

    keywords = {name: value.value for name, value in statics(rule).items()}
    worst = 0.0
    for point in points(rule, registry, _POINTS):
        operands = [value if isinstance(value, int) else np.array([value]) for value in point.values()]
        worst = max(worst, direction_error(rule, operands, keywords, registry))
    return _row(rule, parameter, "partial, differences", f"{worst:.1e}", worst <= _DIRECTION)


def _adjoints(rule: Any, registry: Any) -> dict[str, Any]:
    from yota.cli.specimen import operands
    from yota.rules.sampling import statics
    from yota.rules.trials import direction_error

    keywords = {name: value.value for name, value in statics(rule).items()}
    worst = direction_error(rule, operands(rule), keywords, registry)
    names = ", ".join(parameter.name for parameter in rule.operands)
    return _row(rule, names, "adjoint, directions", f"{worst:.1e}", worst <= _DIRECTION)
