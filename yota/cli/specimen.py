"""Generated code for a single primitive, to show what its rule comes to."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.errors import YotaError

__all__ = ["operands", "specimen"]

_EXTENT = 3


def specimen(known: Any, name: str) -> str:
    """Code of the value and gradient of ``sum(primitive(...))`` for small arrays, or why there is none."""
    from yota.autodiff.reverse import gradient_tape
    from yota.codegen.targets.numpy import generate
    from yota.passes.pipeline import run
    from yota.tracing.intercept import recorded
    from yota.tracing.record import Leaf, record

    rule = known.rules(name)[0]
    if rule.kind == "nodiff":
        return "# Not differentiable: its derivative is zero wherever it has one, and no code is generated."
    primitive = known.primitive(name)
    values = operands(rule)
    leaves = [
        Leaf(value, position, names, ())
        for position, (names, value) in enumerate(zip(_names(rule, values), values, strict=True))
    ]

    def call(*arguments: Any) -> Any:
        return np.sum(np.real(recorded(primitive)(*arguments)))

    call.__name__ = name
    try:
        tape = record(call, leaves, tuple, registry=known).tape
        floating = [entry.variable for entry in tape.inputs if tape.types[entry.variable].differentiable]
        found = gradient_tape(tape, floating, known).tape
        return generate(run(found)).text
    except (YotaError, TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError) as fault:
        return f"# No code for operands made up from the pattern: {str(fault).splitlines()[0]}"


def _names(rule: Any, values: list[Any]) -> list[str]:
    names = [parameter.name for parameter in rule.operands]
    return names if len(names) == len(values) else [f"{names[-1]}{position}" for position in range(len(values))]


def operands(rule: Any) -> list[Any]:
    """Operands that fit the pattern of a rule."""
    from yota.rules.sampling import sample

    sizes: dict[str, int] = {}
    found = []
    for stream, parameter in enumerate(rule.operands):
        for _ in range(2 if parameter.variadic else 1):
            domain = parameter.domain
            if domain.kind == "array":
                named = [each for each in domain.dimensions or ("n",) if each != "..."]
                shape = tuple(sizes.setdefault(each, _EXTENT + len(sizes)) for each in named)
                found.append(_filled(shape))
            else:
                found.append(np.array([sample(domain, number, stream) for number in range(_EXTENT)]))
    return found


def _filled(shape: tuple[int, ...]) -> Any:
    value = 0.25 + 0.5 * ((np.arange(1, int(np.prod(shape)) + 1) * 0.6180339887498949) % 1.0).reshape(shape)
    square = len(shape) > 1 and shape[-1] == shape[-2]
    return (value + value.swapaxes(-1, -2)) / 2 + shape[-1] * np.eye(shape[-1]) if square else value
