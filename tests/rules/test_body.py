"""Expanding bodies: static values, calls, macros, dtypes; text of expressions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yota.errors import RuleError
from yota.ir.indexing import Slice
from yota.ir.tape import TapeBuilder
from yota.ir.types import TensorType
from yota.rules.algebras.emitted import Static, evaluate, expand
from yota.rules.language.model import Call, Literal, Name
from yota.rules.language.rule_text import show
from yota.rules.language.syntax import read_expression
from yota.rules.registry import registry

NAMES = frozenset({"x", "v", "axis", "b"})


def computed(text, **names):
    return evaluate(read_expression(text, NAMES), names, registry())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * pi", 2 * np.pi),
        ("2**0.5", 2**0.5),
        ("sqrt(2)", 2**0.5),
        ("7 // 2 + 7 % 4", 6),
        ("-2**2", -4),
        ("shape(x)", (2, 3)),
        ("shape(x) + (1,)", (2, 3, 1)),
        ("ndim(x) * size(x)", 12),
        ("extent(x, -1)", 3),
        ("inverse((2, 0, 1))", (1, 2, 0)),
        ("1 < 2", True),
        ("section(((2, 3), (4, 3)), 1, 0)", (Slice(2, 6), Slice(0, 3))),
        ("layer((2, 3), 1, 0)", (1, Slice(0, 3))),
    ],
)
def test_static_values(text, expected):
    from yota.rules.algebras.emitted import EVALUATE, Emitted

    found = Emitted(EVALUATE, registry()).of(read_expression(text, NAMES), {"x": np.ones((2, 3))})
    assert found == Static(expected)
    assert type(found.value) is type(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shape(x)", "where an array or a number is needed"),
        ("1 / (axis - axis)", "cannot be computed"),
        ("unknown", "is not known here"),
        ("sum(x, axis=x)", "is an array, where a static value is needed"),
        ("unreduce(x, x)", "must be static"),
        ("sum(x, 0, False, 1)", "at most 3 arguments"),
        ("cumsum(x)", "needs the keyword `axis`"),
    ],
)
def test_faults(text, message):
    with pytest.raises(RuleError, match=message):
        computed(text, x=np.ones(3), axis=Static(1))


@pytest.mark.parametrize(
    ("text", "static"),
    [
        ("sum(x)", {"axis": (0, 1), "keepdims": False}),
        ("sum(x, -1, True)", {"axis": (1,), "keepdims": True}),
        ("max(x, axis=(-1, 0))", {"axis": (0, 1), "keepdims": False}),
        ("cumsum(x, axis=-1)", {"axis": 1}),
        ("transpose(x)", {"axes": (1, 0)}),
        ("reshape(x, shape=(3, -1))", {"shape": (3, 2)}),
        ("reshape(x, shape=-1)", {"shape": (6,)}),
        ("concatenate(x, x, axis=-2)", {"axis": 0}),
        ("stack(x, x, axis=-1)", {"axis": 2}),
        ("astype(x, dtype='float32')", {"dtype": np.dtype("float32")}),
    ],
)
def test_keywords_are_in_normal_form(text, static):
    builder = TapeBuilder("test")
    x = builder.variable(TensorType(np.dtype(float), (2, 3)))
    expand(read_expression(text, NAMES), {"x": x}, builder, registry())
    assert dict(builder.ops[-1].static) == static


def test_real_numbers_have_no_conjugate():
    builder = TapeBuilder("test")
    x = builder.variable(TensorType(np.dtype(float), (2,)))
    assert expand(read_expression("conjugate(x)", NAMES), {"x": x}, builder, registry()) == x
    assert not builder.ops


def test_numbers_stay_weak():
    x = np.ones(2, np.float32)
    assert computed("2 * pi * x / 3 + sqrt(2)", x=x).dtype == np.float32


@pytest.mark.parametrize(
    ("shape", "axis", "keepdims"),
    [
        ((2, 3), 0, False),
        ((2, 3), -1, False),
        ((2, 3), None, False),
        ((2, 3), 1, True),
        ((2, 3), (), False),
        ((), None, False),
    ],
)
def test_unreduce(shape, axis, keepdims):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1.0
    v = np.sum(x, axis=axis, keepdims=keepdims)
    found = computed(f"unreduce(v, shape(x), axis, {keepdims})", v=v, x=x, axis=Static(axis))
    assert np.array_equal(found, np.broadcast_to(np.sum(x, axis=axis, keepdims=True), shape))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ((2, 3), (3,)),
        ((2, 3), (2, 1)),
        ((2, 3), (1, 1)),
        ((2, 3), ()),
        ((4, 2, 3), (1, 3)),
        ((3,), (2, 3)),
        ((), (2,)),
        ((1, 3), (2, 1)),
        ((0, 3), (3,)),
    ],
)
def test_unbroadcast(found, wanted):
    v = np.ones(found)
    result = computed("unbroadcast(v, shape(x))", v=v, x=np.zeros(wanted))
    assert np.shape(result) == wanted


@pytest.mark.parametrize("length", range(10))
def test_coproduct(length):
    x = np.random.default_rng(length).standard_normal((2, length))
    if length > 2:
        x[0, 1] = 0
    expected = [[np.prod(np.delete(row, i)) for i in range(length)] for row in x]
    assert np.allclose(computed("coproduct(x, 1)", x=x), np.reshape(expected, x.shape), rtol=1e-14, atol=0)


def test_coproduct_takes_few_ops():
    builder = TapeBuilder("test")
    x = builder.variable(TensorType(np.dtype(float), (1024,)))
    expand(read_expression("coproduct(x)", NAMES), {"x": x}, builder, registry())
    assert len(builder.ops) < 100
    assert sum(builder.types[op.result].size for op in builder.ops) < 12 * 1024


@pytest.mark.parametrize("length", range(1, 12))
def test_cumprod_adjoint(length):
    random = np.random.default_rng(length)
    x, v = random.standard_normal(length), random.standard_normal(length)
    x[length // 2] = 0
    jacobian = [[0 if j > i else np.prod(np.delete(x[: i + 1], j)) for j in range(length)] for i in range(length)]
    assert np.allclose(computed("cumprod_adjoint(v, x, 0)", v=v, x=x), v @ np.array(jacobian), rtol=1e-13, atol=1e-300)


def expressions():
    leaves = st.sampled_from(
        [
            Name("x"),
            Name("v"),
            Literal(2),
            Literal(-3),
            Literal(0.5),
            Literal(1j),
            Literal(True),
            Literal(None),
            Literal((1, 2)),
        ]
    )

    def grown(inner):
        pairs = st.tuples(inner, inner)
        infix = "add subtract multiply divide power matmul less equal remainder floor_divide".split()
        return st.one_of(
            st.builds(Call, st.sampled_from(infix), pairs),
            st.builds(lambda a: Call("exp", (a,)), inner),
            st.builds(lambda a, b: Call("f", (a,), (("axis", b),)), inner, inner),
            st.builds(lambda a: Call("negative", (Call("exp", (a,)),)), inner),
            st.builds(lambda a: Call("tuple", (Name("x"), a)), inner),
        )

    return st.recursive(leaves, grown, max_leaves=12)


@given(expressions())
def test_text_of_an_expression_reads_as_the_same(expression):
    assert read_expression(show(expression), NAMES) == expression
