"""Partials of ops on numbers are derived once for each combination of types."""

from __future__ import annotations

import numpy as np
import pytest

from yota.ir.tape import TapeBuilder
from yota.ir.types import TensorType
from yota.rules.registry import Registry, registry
from yota.transform.reverse.instantiate import partial

NUMBER = TensorType(np.dtype(float))


def found(known: Registry, name: str, position: int, *values: float, same: bool = False) -> float:
    """The partial of an op on numbers, computed by NumPy."""
    builder = TapeBuilder("f")
    inputs = [builder.input(NUMBER, number, "") for number in range(1 if same else len(values))]
    operands = inputs * len(values) if same else inputs
    result = builder.emit(known.primitive(name), operands)
    variable = partial(builder, known, builder.ops[-1], position)
    assert variable is not None
    known_values = {**builder.constants, **dict(zip(inputs, values, strict=False))}
    for op in builder.ops:
        known_values[op.result] = op.primitive.function(
            *[known_values[each] for each in op.operands], **dict(op.static)
        )
    assert result in known_values
    return float(known_values[variable])


@pytest.mark.parametrize(
    ("name", "position", "values", "wanted"),
    [
        ("multiply", 0, (2.0, 3.0), 3.0),
        ("multiply", 1, (2.0, 3.0), 2.0),
        ("divide", 1, (2.0, 4.0), -0.125),
        ("subtract", 1, (2.0, 3.0), -1.0),
        ("arctan2", 0, (1.0, 2.0), 0.4),
        ("sqrt", 0, (4.0,), 0.25),
    ],
)
def test_partials(name: str, position: int, values: tuple[float, ...], wanted: float) -> None:
    known = registry().copy()
    for _ in range(2):
        assert found(known, name, position, *values) == pytest.approx(wanted, rel=1e-15)


def test_operands_that_are_the_same() -> None:
    known = registry().copy()
    # Whichever comes first, the other one is not mistaken for it.
    assert found(known, "divide", 1, 5.0, 5.0, same=True) == pytest.approx(-0.2)
    assert found(known, "divide", 1, 3.0, 2.0) == pytest.approx(-0.75)
    assert found(known, "multiply", 0, 3.0, 2.0) == 2.0
    assert found(known, "multiply", 0, 3.0, 3.0, same=True) == 3.0


def test_rules_that_are_overridden_count() -> None:
    known = registry().copy()
    one = '@elementwise("math.erf")\ndef bent(x: Real) -> y:\n    d[y, x] = {} * x\n'
    known.define(one.format("x"))
    assert found(known, "bent", 0, 3.0) == 9.0
    known.define(one.format("2"))
    assert found(known, "bent", 0, 3.0) == 6.0
