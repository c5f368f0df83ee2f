"""Every tensor rule: its adjoints along random directions, with each keyword, in real and complex numbers."""

from dataclasses import replace

import numpy as np
import pytest

from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.rules.model import Call, Literal
from yota.rules.registry import registry
from yota.rules.trials import adjoint, direction_error

REGISTRY = registry()
TOLERANCE = 1e-6


def real(*shape, seed=0, shift=0.0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape) + shift


def compound(*shape, seed=0):
    return real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 1)


def spd(*shape):
    a = real(*shape)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1])


REDUCED = [
    ((3, 4), (0,), False),
    ((3, 4), (1,), True),
    ((3, 4), (0, 1), False),
    ((2, 3, 4), (0, 2), True),
    ((2, 3, 4), (1,), False),
    ((), (), False),
    ((5,), (0,), False),
    ((1, 1), (0, 1), True),
    ((2, 7), (1,), False),
    ((2, 8), (), False),
]
ZERO = real(3, 5)
ZERO[0, 1] = ZERO[2, 0] = ZERO[2, 3] = 0
ALL = Slice(0, 4)

CASES = [
    *(("sum", (real(*shape),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    *(("prod", (real(*shape, shift=1.5),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    *(("max", (real(*shape),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    *(("min", (real(*shape),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    ("sum", (compound(3, 2),), {"axis": (0,), "keepdims": False}),
    ("prod", (compound(3, 5),), {"axis": (1,), "keepdims": False}),
    ("prod", (ZERO,), {"axis": (1,), "keepdims": False}),
    (
        "prod",
        (np.where(np.arange(15).reshape(3, 5) == 7, 0.0, real(3, 5, shift=2.0)),),
        {"axis": (0, 1), "keepdims": False},
    ),
    *((name, (real(4, 5),), {"axis": axis}) for name in ("cumsum", "cumprod") for axis in (0, 1)),
    ("cumprod", (ZERO,), {"axis": 1}),
    ("cumprod", (compound(6),), {"axis": 0}),
    ("cumsum", (compound(6),), {"axis": 0}),
    ("cumprod", (real(1),), {"axis": 0}),
    ("reshape", (real(3, 4),), {"shape": (2, 6)}),
    ("reshape", (real(1),), {"shape": ()}),
    ("transpose", (real(2, 3, 4),), {"axes": (2, 0, 1)}),
    ("broadcast_to", (real(3, 1),), {"shape": (2, 3, 4)}),
    ("broadcast_to", (real(),), {"shape": (2, 3)}),
    ("concatenate", (real(2, 3), real(4, 3), real(1, 3)), {"axis": 0}),
    ("concatenate", (real(2, 3), compound(2, 1)), {"axis": 1}),
    ("stack", (real(2, 3), real(2, 3, seed=5)), {"axis": 1}),
    ("stack", (real(), real(seed=5)), {"axis": 0}),
    ("getitem", (real(4, 5),), {"index": (2, Slice(1, 5, 2))}),
    ("getitem", (real(4, 5),), {"index": (Slice(3, None, -1), NEWAXIS, 1)}),
    ("getitem", (real(4, 5), np.array([1, 1, 3])), {"index": (GATHER, Slice(0, 5))}),
    ("getitem", (real(4, 5), np.array([[1], [2]]), np.array([0, 0, 4])), {"index": (GATHER, GATHER)}),
    ("getitem", (real(4),), {"index": (2,)}),
    ("setitem", (real(4, 5), real(5)), {"index": (Slice(0, 2), Slice(0, 5))}),
    ("setitem", (real(4, 5), real()), {"index": (1, Slice(0, 5))}),
    ("setitem", (compound(4), real(2), np.array([3, 0])), {"index": (GATHER,)}),
    ("scatter", (real(3), np.array([1, 1, 3])), {"shape": (5,), "indices": ((GATHER,),)}),
    (
        "scatter",
        (real(2, 2), real(3), np.array([0, 0, 2]), real()),
        {"shape": (4, 2), "indices": ((Slice(1, 3), Slice(0, 2)), (GATHER, 1), (3, 0))},
    ),
    ("scatter", (real(1), np.array([1, 1, 3])), {"shape": (5,), "indices": ((GATHER,),)}),
    ("where", (np.array([True, False, True]), real(2, 3), real()), {}),
    ("where", (np.array([[True], [False]]), compound(3), real(2, 1)), {}),
    *((name, (real(2, 3), real(3, seed=2)), {}) for name in ("maximum", "minimum", "fmax", "fmin")),
    ("maximum", (real(2, 1), real(3, seed=2)), {}),
    ("conjugate", (compound(3),), {}),
    ("astype", (real(3),), {"dtype": np.dtype("complex128")}),
    ("astype", (compound(3),), {"dtype": np.dtype("float64")}),
    ("matmul", (real(3), real(3, seed=2)), {}),
    ("matmul", (compound(3), compound(3, seed=2)), {}),
    ("matmul", (real(2, 3), real(3)), {}),
    ("matmul", (compound(2, 3), compound(3)), {}),
    ("matmul", (real(5, 2, 3), real(3)), {}),
    ("matmul", (compound(4, 5, 2, 3), compound(3)), {}),
    ("matmul", (real(3), real(3, 4)), {}),
    ("matmul", (compound(3), compound(3, 4)), {}),
    ("matmul", (compound(3), compound(5, 3, 4)), {}),
    ("matmul", (real(2, 3), real(3, 4)), {}),
    ("matmul", (compound(2, 3), compound(3, 4)), {}),
    ("matmul", (compound(6, 5, 2, 3), compound(3, 4)), {}),
    ("matmul", (real(2, 3), real(5, 3, 4)), {}),
    ("matmul", (compound(5, 2, 3), compound(5, 3, 4)), {}),
    ("matmul", (real(6, 1, 2, 3), real(5, 3, 4)), {}),
    *(
        ("einsum", tuple(real(*shape, seed=i) for i, shape in enumerate(shapes)), {"subscripts": text})
        for text, shapes in [
            ("ij,jk->ik", [(2, 3), (3, 4)]),
            ("ij->ji", [(2, 3)]),
            ("ij->", [(2, 3)]),
            ("ij->i", [(2, 3)]),
            ("ii->i", [(3, 3)]),
            ("ii->", [(3, 3)]),
            ("iij->j", [(3, 3, 2)]),
            ("i,j->ij", [(2,), (3,)]),
            ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
            ("i,i->i", [(1,), (3,)]),
            ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]),
            ("ij,ij->", [(2, 3), (2, 3)]),
            ("i,j->i", [(2,), (3,)]),
            ("i,,j->ij", [(2,), (), (3,)]),
            ("iji,j->i", [(2, 3, 2), (3,)]),
            ("ij,j->i", [(1, 3), (1,)]),
            ("i->i", [(2,)]),
        ]
    ),
    ("einsum", (compound(2, 3), compound(3, 2)), {"subscripts": "ij,jk->ik"}),
    ("inv", (spd(3, 3) + real(3, 3),), {}),
    ("inv", (compound(2, 3, 3) + 4 * np.eye(3),), {}),
    ("solve", (spd(3, 3), real(3)), {}),
    ("solve", (compound(2, 3, 3) + 4 * np.eye(3), compound(3)), {}),
    ("solve", (compound(3, 3) + 4 * np.eye(3), compound(3, 2)), {}),
    ("solve", (real(2, 3, 3) + 4 * np.eye(3), real(3, 2)), {}),
    ("solve", (real(3, 3) + 4 * np.eye(3), real(2, 3, 2)), {}),
    ("det", (real(3, 3),), {}),
    ("det", (compound(2, 3, 3),), {}),
    *(
        (name, (compound(2, 5),), {"n": n, "axis": 1, "norm": "backward"})
        for name in ("fft", "ifft")
        for n in (4, 5, 7)
    ),
    *(("rfft", (real(2, 5),), {"n": n, "axis": 1, "norm": "ortho"}) for n in (1, 4, 5, 7, 8)),
    *(("irfft", (compound(5, 2),), {"n": n, "axis": 0, "norm": "forward"}) for n in (1, 2, 5, 8, 9, 12)),
    ("convolve", (real(5), real(3)), {}),
    ("convolve", (compound(3), compound(5)), {}),
    ("correlate", (real(5), real(3)), {}),
    ("correlate", (compound(5), compound(5, seed=2)), {}),
    ("pinv", (real(5, 3),), {"rcond": 1e-15, "hermitian": False}),
    ("pinv", (compound(2, 3, 5),), {"rcond": 1e-15, "hermitian": False}),
    ("lstsq_solution", (real(5, 3), real(5)), {"rcond": 1e-12}),
    ("lstsq_solution", (compound(3, 5), compound(3, 2)), {"rcond": 1e-12}),
    ("svdvals", (real(2, 3, 4),), {}),
    ("svdvals", (compound(4, 3),), {}),
    *(("svd", (real(*shape),), {"full_matrices": False}) for shape in [(3, 3), (4, 3), (3, 4), (2, 3, 3)]),
    *(("qr", (each,), {}) for each in (real(3, 3), real(4, 3), real(2, 3, 4), compound(4, 3), compound(3, 4))),
    ("slogdet", (real(3, 3),), {}),
    ("slogdet", (compound(2, 3, 3),), {}),
    ("eig", (np.diag(np.arange(3.0)) + 0.1 * real(3, 3),), {}),
]


def rule_of(name, operands):
    return REGISTRY.rule(name, tuple(np.ndim(operand) for operand in operands))


def label(case):
    name, operands, keywords = case
    shapes = "x".join(str(np.shape(operand)).replace(" ", "") for operand in operands)
    return f"{name}{shapes}{''.join(str(value).replace(' ', '') for value in keywords.values())}"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_along_random_directions(case):
    name, operands, keywords = case
    for seed in range(2):
        assert direction_error(rule_of(name, operands), operands, keywords, REGISTRY, seed) < TOLERANCE


@pytest.mark.parametrize("change", [1.001, -1.0], ids=["off by 1e-3", "sign"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_wrong_adjoint_is_found(case, change):
    name, operands, keywords = case
    rule = rule_of(name, operands)
    for parameter, expression in rule.adjoints.items():
        planted = replace(rule, adjoints={**rule.adjoints, parameter: Call("multiply", (Literal(change), expression))})
        kinds = [
            type_.dtype.kind
            for type_, each in zip(map(np.asarray, operands), rule.operands, strict=False)
            if each.name == parameter
        ]
        if "f" in kinds or "c" in kinds:
            assert direction_error(planted, operands, keywords, REGISTRY) > 1e-4


SCIPY = ("matrices.rules", "filters.rules")  # see test_scipy_tensors.py


def test_every_tensor_rule_is_tried():
    tried = {id(rule_of(name, operands)) for name, operands, _ in CASES}
    left = [
        rule.name
        for name in REGISTRY.names()
        for rule in REGISTRY.rules(name)
        if rule.kind == "tensor" and id(rule) not in tried and rule.file not in SCIPY and not REGISTRY.is_user(name)
    ]
    assert left == ["cholesky", "eigh", "eigvalsh", "item"]  # below


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
    found = adjoint(rule_of(name, (a,)), 0, (a,), keywords, seeds if several else seeds[0], REGISTRY)
    expected = sum(np.sum(seed * (one - other) / 2e-5) for seed, one, other in zip(seeds, ahead, back, strict=True))
    assert np.sum(found * direction) == pytest.approx(expected, rel=1e-7)


def test_cholesky():
    a = spd(4, 4)
    random = np.random.default_rng(0)
    direction = random.standard_normal((4, 4))
    direction = direction + direction.T
    seed = np.tril(random.standard_normal((4, 4)))
    rule = rule_of("cholesky", (a,))
    found = np.sum(adjoint(rule, 0, (a,), {}, seed, REGISTRY) * direction)
    step = 1e-5
    ahead, back = np.linalg.cholesky(a + step * direction), np.linalg.cholesky(a - step * direction)
    assert found == pytest.approx(np.sum(seed * (ahead - back) / (2 * step)), rel=1e-7)


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_share(name):
    x = np.array([[1.0, 1.0, 0.0], [2.0, 3.0, 3.0]]) * (1 if name == "max" else -1)
    found = adjoint(rule_of(name, (x,)), 0, (x,), {"axis": (1,), "keepdims": False}, np.array([1.0, 2.0]), REGISTRY)
    assert found.tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 1.0]]


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_equal_operands_take_half(name):
    x = np.array([1.0, 2.0])
    assert adjoint(rule_of(name, (x, x)), 0, (x, x), {}, np.ones(2), REGISTRY).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "axis"), [("sum", (0,)), ("prod", (0,)), ("prod", (0, 1)), ("cumsum", 0), ("cumprod", 0)]
)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_arrays(name, axis, shape):
    x = np.zeros(shape)
    keywords = {"axis": axis} if name.startswith("cum") else {"axis": axis, "keepdims": False}
    seed = np.ones_like(REGISTRY.primitive(name).function(x, **keywords))
    assert adjoint(rule_of(name, (x,)), 0, (x,), keywords, seed, REGISTRY).shape == shape


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
    seed = tuple(map(np.ones_like, result)) if isinstance(result, tuple) else np.ones_like(result)
    rule = rule_of(name, operands)
    for position in range(len(operands)):
        assert np.asarray(adjoint(rule, position, operands, keywords, seed, REGISTRY)).dtype == np.float32
