"""Operators are written with the parentheses that Python needs, and no others."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yota.emit.python.op_call import infix, negated, owner

OPERATORS = ("+", "-", "*", "/", "@", "**", "<", ">=", "==", "!=")
LEAVES = ("x", "-2.5", "2.5", "f(a - b, c)", "x[1 - 2]", "(-x)[:, None]")
EXPRESSIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(OPERATORS), inner, inner),
        st.tuples(st.just("negative"), inner),
        st.tuples(st.just("transposed"), inner),
    ),
    max_leaves=8,
)


def written(expression: str | tuple[str, ...]) -> str:
    """As generated code has it."""
    if isinstance(expression, str):
        return expression
    head, *parts = expression
    texts = [written(part) for part in parts]
    if head == "negative":
        return negated(texts[0])
    return f"{owner(texts[0])}.T" if head == "transposed" else infix(head, *texts)


def bracketed(expression: str | tuple[str, ...]) -> str:
    """With parentheses around everything."""
    if isinstance(expression, str):
        return f"({expression})"
    head, *parts = expression
    texts = [bracketed(part) for part in parts]
    if head == "negative":
        return f"(-{texts[0]})"
    return f"({texts[0]}.T)" if head == "transposed" else f"({texts[0]} {head} {texts[1]})"


@given(EXPRESSIONS)
def test_python_reads_what_was_meant(expression: str | tuple[str, ...]) -> None:
    assert ast.dump(ast.parse(written(expression))) == ast.dump(ast.parse(bracketed(expression)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (infix("+", "h @ W", "b"), "h @ W + b"),
        (infix("-", "a", "b - c"), "a - (b - c)"),
        (infix("!=", "x > 0.5", "0"), "(x > 0.5) != 0"),
        (infix("*", "-2.0", "x"), "-2.0 * x"),
        (infix("**", "-2.0", "x"), "(-2.0) ** x"),
        (owner("a @ b"), "(a @ b)"),
        (owner("f(a - b)"), "f(a - b)"),
    ],
)
def test_no_needless_parentheses(text: str, expected: str) -> None:
    assert text == expected
