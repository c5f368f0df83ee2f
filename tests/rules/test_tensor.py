"""Tensor rules: ties, empty arrays, symmetric matrices, single precision. Their proofs are in tests/proof."""

import numpy as np
import numpy.fft
import pytest

from yota.rules.laws.trials import adjoint
from yota.rules.proof.cases import CASES, SCIPY, SYMMETRIC, real, spd
from yota.rules.registry import registry

REGISTRY = registry()
TOLERANCE = 1e-6


def rule_of(name, operands):
    return REGISTRY.rule(name, tuple(np.ndim(operand) for operand in operands))


def label(case):
    name, operands, keywords = case
    shapes = "x".join(str(np.shape(operand)).replace(" ", "") for operand in operands)
    return f"{name}{shapes}{''.join(str(value).replace(' ', '') for value in keywords.values())}"


def test_every_tensor_rule_is_tried():
    tried = {id(rule_of(name, operands)) for name, operands, _ in (*CASES, *SYMMETRIC, *SCIPY)}
    left = [
        rule.name
        for name in REGISTRY.names()
        for rule in REGISTRY.rules(name)
        if rule.kind == "tensor" and id(rule) not in tried and not REGISTRY.is_user(name)
    ]
    # See tests/interop, tests/solvers, test_several.py, test_scipy.py.
    assert left == ["full_qr", "full_svd", "hosted", "hosted_vjp", "item", "linalg_eigh", "linalg_lu", "regular"]


@pytest.mark.parametrize("keywords", [{"UPLO": "L"}, {"UPLO": "U"}])
@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_hermitian_eigenvalues(name, keywords):
    a = real(2, 4, 4)
    a = a + np.swapaxes(a, -1, -2)
    random = np.random.default_rng(0)
    direction = random.standard_normal(a.shape)
    direction = direction + np.swapaxes(direction, -1, -2)
    function = REGISTRY.primitive(name).function
    ahead, back = (function(a + step * direction, **keywords) for step in (1e-5, -1e-5))
    several = isinstance(ahead, tuple)
    ahead, back = (each if several else (each,) for each in (ahead, back))
    seeds = tuple(random.standard_normal(each.shape) for each in ahead)
    found = adjoint(rule_of(name, (a,)), 0, (a,), keywords, seeds, REGISTRY)
    expected = sum(np.sum(seed * (one - other) / 2e-5) for seed, one, other in zip(seeds, ahead, back, strict=True))
    assert np.sum(found * direction) == pytest.approx(expected, rel=1e-7)


def test_cholesky():
    a = spd(4, 4)
    random = np.random.default_rng(0)
    direction = random.standard_normal((4, 4))
    direction = direction + direction.T
    seed = np.tril(random.standard_normal((4, 4)))
    rule = rule_of("cholesky", (a,))
    found = np.sum(adjoint(rule, 0, (a,), {}, (seed,), REGISTRY) * direction)
    step = 1e-5
    ahead, back = np.linalg.cholesky(a + step * direction), np.linalg.cholesky(a - step * direction)
    assert found == pytest.approx(np.sum(seed * (ahead - back) / (2 * step)), rel=1e-7)


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_share(name):
    x = np.array([[1.0, 1.0, 0.0], [2.0, 3.0, 3.0]]) * (1 if name == "max" else -1)
    found = adjoint(rule_of(name, (x,)), 0, (x,), {"axis": (1,), "keepdims": False}, (np.array([1.0, 2.0]),), REGISTRY)
    assert found.tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 1.0]]


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_equal_operands_take_half(name):
    x = np.array([1.0, 2.0])
    assert adjoint(rule_of(name, (x, x)), 0, (x, x), {}, (np.ones(2),), REGISTRY).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "axis"), [("sum", (0,)), ("prod", (0,)), ("prod", (0, 1)), ("cumsum", 0), ("cumprod", 0)]
)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_arrays(name, axis, shape):
    x = np.zeros(shape)
    keywords = {"axis": axis} if name.startswith("cum") else {"axis": axis, "keepdims": False}
    seed = np.ones_like(REGISTRY.primitive(name).function(x, **keywords))
    assert adjoint(rule_of(name, (x,)), 0, (x,), keywords, (seed,), REGISTRY).shape == shape


SINGLE = [
    case
    for case in CASES
    if all(np.asarray(each).dtype == np.float64 for each in case[1]) and case[0] not in ("astype", "eig")
]


@pytest.mark.parametrize("case", SINGLE, ids=label)
def test_single_precision_stays(case):
    name, operands, keywords = case
    operands = tuple(np.asarray(operand, np.float32) for operand in operands)
    result = REGISTRY.primitive(name).function(*operands, **keywords)
    seeds = tuple(map(np.ones_like, result if isinstance(result, tuple) else (result,)))
    rule = rule_of(name, operands)
    for position in range(len(operands)):
        assert np.asarray(adjoint(rule, position, operands, keywords, seeds, REGISTRY)).dtype == np.float32
