"""Sample code for a single primitive, generated from its rule."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.errors import YotaError
from yota.proof.specimens import operands

TARGETS = ("numpy", "c", "cuda")
_FAULTS = (YotaError, TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError)


def specimen(known: Any, name: str, targets: Sequence[str] = TARGETS) -> dict[str, str]:
    """The code of value and gradient of ``sum(primitive(...))`` for each target, or why there is none."""
    from yota.autodiff.reverse import gradient_tape
    from yota.passes.pipeline import run
    from yota.tracing.intercept import recorded
    from yota.tracing.record import Leaf, record

    rule = known.rules(name)[0]
    if rule.kind == "nodiff":
        return {"numpy": "# Not differentiable: its derivative is zero wherever it has one, and no code is generated."}
    primitive = known.primitive(name)
    values = operands(rule)
    leaves = [
        Leaf(value, position, names, ())
        for position, (names, value) in enumerate(zip(_names(rule, values), values, strict=True))
    ]

    def call(*arguments: Any) -> Any:
        found = recorded(primitive)(*arguments)
        return np.sum(np.real(found[0] if len(rule.results) > 1 else found))

    call.__name__ = name
    try:
        tape = record(call, leaves, tuple, registry=known).tape
        floating = [entry.variable for entry in tape.inputs if tape.types[entry.variable].differentiable]
        planned = run(gradient_tape(tape, floating, known).tape)
    except _FAULTS as fault:
        return {"numpy": f"# No code for operands made up from the pattern: {_line(fault)}"}
    return {target: _written(target, planned) for target in targets}


def _written(target: str, planned: Any) -> str:
    generate = importlib.import_module(f"yota.codegen.targets.{target}").generate
    try:
        return str(generate(planned).text)
    except _FAULTS as fault:
        return f"# No code: {_line(fault)}"


def _names(rule: Any, values: list[Any]) -> list[str]:
    names = [parameter.name for parameter in rule.operands]
    return names if len(names) == len(values) else [f"{names[-1]}{position}" for position in range(len(values))]


def _line(fault: BaseException) -> str:
    return " ".join(str(fault).split())
