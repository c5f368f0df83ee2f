"""Elementwise rules: values at kinks and ends, single precision. Their proofs are in tests/proof."""

import numpy as np
import pytest
import scipy.special  # noqa: F401  (its functions are looked up among loaded modules)

from yota.rules.laws.sampling import points
from yota.rules.laws.trials import partial
from yota.rules.registry import registry

REGISTRY = registry()
RULES = [rule for name in REGISTRY.names() for rule in REGISTRY.rules(name) if rule.kind == "elementwise"]


def is_special(rule):
    return rule.file.startswith("special_")


@pytest.mark.parametrize(
    ("rule", "parameter", "point", "expected"),
    [
        ("power", "x", {"x": 0.0, "p": 0.0}, 0.0),
        ("power", "x", {"x": 0.0, "p": 1.0}, 1.0),
        ("power", "x", {"x": 0.0, "p": 3.0}, 0.0),
        ("power", "x", {"x": -2.0, "p": 3.0}, 12.0),
        ("power", "p", {"x": 0.0, "p": 2.0}, 0.0),
        ("hypot", "a", {"a": 0.0, "b": 0.0}, 0.0),
        ("absolute", "x", {"x": 0.0}, 0.0),
        ("tanh", "x", {"x": 1000.0}, 0.0),
        ("tanh", "x", {"x": 0.0}, 1.0),
        ("logaddexp", "a", {"a": -1000.0, "b": 1000.0}, 0.0),
        ("logaddexp", "a", {"a": 1000.0, "b": -1000.0}, 1.0),
        ("xlogy", "z", {"x": 0.0, "z": 0.0}, 0.0),
        ("expit", "x", {"x": -800.0}, 0.0),
        ("copysign", "a", {"a": -2.0, "b": 3.0}, -1.0),
        ("sqrt", "x", {"x": 0.0}, np.inf),
    ],
)
def test_at_the_edge(rule, parameter, point, expected):
    found = partial(
        REGISTRY.rules(rule)[0], parameter, {key: np.float64(value) for key, value in point.items()}, REGISTRY
    )
    assert found == expected


# Some of SciPy's functions have loops for double precision only.
@pytest.mark.parametrize("rule", [rule for rule in RULES if not is_special(rule)], ids=lambda rule: rule.name)
def test_single_precision_stays(rule):
    point = next(points(rule, REGISTRY, 1))
    operands = {
        key: np.full(2, value, np.float32) if isinstance(value, float) else value for key, value in point.items()
    }
    for operand in rule.operands:
        if operand.domain.kind in ("real", "complex"):
            found = partial(rule, operand.name, operands, REGISTRY)
            weak = type(found) in (int, float, complex)
            assert weak or found.dtype in (np.float32, np.int64) or rule.name == "float_power", operand.name
