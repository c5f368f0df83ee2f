"""Law: a rule contains nothing that sympy would cancel, such as ``(x + 1) - 1``: code computes what is written."""

from __future__ import annotations

from yota.errors import RuleError
from yota.rules.algebras.opaque import to_sympy
from yota.rules.algebras.readback import from_sympy
from yota.rules.language.model import Call, Literal, Name
from yota.rules.language.rule_text import show, walk
from yota.rules.laws.inspection import Inspection, Registered


def round_trip(case: Inspection) -> None:
    """Nothing is written that sympy would cancel."""
    if case.rule.kind != "elementwise":
        return
    for side in case.sides():
        if side.role == "kink":
            continue
        for part in walk(side.expression):
            if isinstance(part, Call) and _is_read(part) and (shorter := _cancelled(case.registry, part)) is not None:
                raise case.fault(part, "a part of this cancels", found=show(part)[:80], write=shorter)


def _is_read(call: Call) -> bool:
    """Whether sympy would read it, and find names in it; a zero is written in the place of an argument left out."""
    parts = list(walk(call))
    return (
        any(isinstance(each, Name) for each in parts)
        and not any(isinstance(each, Call) and each.keywords for each in parts)
        and not any(argument == Literal(0) for argument in call.arguments)
    )


def _cancelled(registry: Registered, expression: Call) -> str | None:
    import sympy

    try:
        whole = to_sympy(expression, registry)
        parts = [to_sympy(argument, registry) for argument in expression.arguments]
        if expression.function in ("add", "subtract"):
            written = sum(len(sympy.Add.make_args(part)) for part in parts)
            lost = len(sympy.Add.make_args(whole)) < written
        else:
            lost = set().union(*(part.free_symbols for part in parts)) != whole.free_symbols
        return show(from_sympy(whole)) if lost else None
    except (RuleError, TypeError):
        return None
