"""Line breaks as ruff format puts them, and identifiers from any text."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yota.emit.names import Names, identifier
from yota.emit.python.formatting import wrapped

CHARACTERS = st.characters(exclude_categories=["Cs"])
"""All but surrogates; by default Hypothesis encodes every character first, for three seconds."""


@pytest.mark.parametrize(
    ("line", "indent", "expected"),
    [
        ("x = 1", 4, ("x = 1",)),
        ("f(" + "a" * 50 + ", " + "b" * 50 + ")", 0, ("f(", "    " + "a" * 50 + ",", "    " + "b" * 50 + ",", ")")),
        ("call(" + "a" * 94 + ", b)", 0, ("call(", "    " + "a" * 94 + ",", "    b,", ")")),
        ("call(" + "a" * 92 + ", b)", 0, ("call(", "    " + "a" * 92 + ", b", ")")),
        ("# " + "a b" * 40, 0, ("# " + "a b" * 40,)),
        ("x = " + "a" * 120, 0, ("x = " + "a" * 120,)),
        ("f('" + ", " * 60 + "', b)", 0, ("f(", '    "' + ", " * 60 + '",', "    b,", ")")),
    ],
)
def test_long_lines_break_at_the_last_brackets(line: str, indent: int, expected: tuple[str, ...]) -> None:
    assert wrapped([line], indent) == expected


@given(st.text(CHARACTERS, max_size=60))
def test_any_text_becomes_an_identifier(text: str) -> None:
    name = identifier(text)
    assert name.isidentifier()
    assert name.isascii()
    assert not keyword.iskeyword(name)


@given(st.lists(st.text(CHARACTERS, max_size=5), max_size=30))
def test_no_name_is_given_twice(texts: list[str]) -> None:
    names = Names(["np"])
    given = [names.fresh(text) for text in texts] + [names.numbered("t") for _ in texts] + ["np"]
    assert len(set(given)) == len(given)
