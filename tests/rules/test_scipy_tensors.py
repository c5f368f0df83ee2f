"""Tensor rules of SciPy's functions: adjoints along random directions, and what wrong coefficients do to them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.signal  # noqa: F401  (their functions are looked up among loaded modules)

from yota.rules.model import Call, Literal
from yota.rules.registry import registry
from yota.rules.trials import direction_error

REGISTRY = registry()
FILES = ("matrices.rules", "filters.rules")


def real(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


def compound(*shape, seed=0):
    return real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 1)


def regular(*shape, seed=0):
    return real(*shape, seed=seed) + 4 * np.eye(shape[-1])


TRIANGULAR = [{"lower": lower, "unit_diagonal": unit} for lower in (True, False) for unit in (True, False)]
FULL = {"mode": "full", "method": "auto"}
VALID = {"mode": "valid", "method": "direct"}
CASES = [
    *(("solve_triangular", (regular(3, 3), real(3)), keywords) for keywords in TRIANGULAR),
    *(("solve_triangular", (regular(3, 3), real(3, 2)), keywords) for keywords in TRIANGULAR),
    ("solve_triangular", (regular(3, 3) + 1j * real(3, 3), compound(3)), TRIANGULAR[1]),
    ("solve_triangular", (regular(3, 3) + 1j * real(3, 3), compound(3, 2)), TRIANGULAR[3]),
    ("solve_sylvester", (regular(3, 3), regular(2, 2), real(3, 2)), {}),
    ("solve_sylvester", (compound(3, 3) + 4 * np.eye(3), compound(2, 2), compound(3, 2)), {}),
    ("sqrtm", (regular(3, 3),), {}),
    ("expm", (real(3, 3),), {}),
    ("expm", (compound(3, 3),), {}),
    ("logm", (regular(3, 3),), {}),
    ("_expm_slope", (real(3, 3), real(3, 3, seed=4)), {}),
    ("_logm_slope", (regular(3, 3), real(3, 3, seed=4)), {}),
    *(("linalg_svd", (real(*shape),), {"full_matrices": False}) for shape in [(3, 3), (4, 3), (3, 4)]),
    *(("linalg_qr", (each,), {"mode": "economic"}) for each in (real(4, 3), compound(4, 3), compound(3, 4))),
    ("signal_convolve", (real(7), real(3)), FULL),
    ("signal_convolve", (real(3), real(7)), FULL),
    ("signal_convolve", (compound(4, 3), compound(2, 2)), FULL),
    ("signal_correlate", (real(7), real(3)), VALID),
    ("signal_correlate", (compound(4, 3), compound(2, 2)), VALID),
    ("lfilter", (real(3), np.array([1.3, -0.4, 0.2, 0.1]), real(2, 9)), {"axis": 1}),
    ("lfilter", (real(3), np.array([1.3, -0.4]), real(9, 2)), {"axis": 0}),
    ("lfilter", (real(5), np.array([0.7]), real(3)), {"axis": 0}),
    ("lfilter", (compound(3), np.array([1.3, -0.4j]), compound(7)), {"axis": 0}),
]


def rule_of(name, operands):
    return REGISTRY.rule(name, tuple(np.ndim(operand) for operand in operands))


def label(case):
    name, operands, keywords = case
    shapes = "x".join(str(np.shape(operand)).replace(" ", "") for operand in operands)
    return f"{name}{shapes}{''.join(str(value) for value in keywords.values())}"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_along_random_directions(case):
    name, operands, keywords = case
    assert direction_error(rule_of(name, operands), operands, keywords, REGISTRY) < 1e-6


@pytest.mark.parametrize("change", [1.001, -1.0], ids=["off by 1e-3", "sign"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_wrong_adjoint_is_found(case, change):
    name, operands, keywords = case
    rule = rule_of(name, operands)
    for parameter, expression in rule.adjoints.items():
        planted = replace(rule, adjoints={**rule.adjoints, parameter: Call("multiply", (Literal(change), expression))})
        assert direction_error(planted, operands, keywords, REGISTRY) > 1e-4


def test_every_rule_is_tried():
    tried = {id(rule_of(name, operands)) for name, operands, _ in CASES}
    rules = [rule for name in REGISTRY.names() for rule in REGISTRY.rules(name) if rule.file in FILES]
    # Directions at random would leave the Hermitian matrices; see test_scipy.py.
    assert [rule.name for rule in rules if id(rule) not in tried] == ["linalg_eigh"]
