"""Texts that are broken at random: each is refused with a `RuleError` or taken in, and nothing else happens."""

import random
import re
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yota._resources import folder
from yota.errors import RuleError
from yota.rules.registry import registry
from yota.rules.syntax import parse

TEXTS = [rule.source for name in registry().names() for rule in registry().rules(name)]
FILES = [path.read_text() for path in sorted(folder("rules").rglob("*.rules"))]
TOKENS = (
    "x y d 0 1 9**9**9 -1e308 1e-320 oo pi E ... ( ) [ ] { } , : = == ** * / + - @ -> <= != lambda if else for in not "
    "and import yield await None True 1j 'a' f'{x}' := . ; # assert def return Real Array Static Integer(0,0) exp log "
    "__import__ sum matmul unreduce shape contraction coproduct where \n \t \0 \u00e9 \\ \ud7ff d[y] d[x] *xs **xs "
    "xs[i] axis=axis"
).split(" ")


def broken(text, source):
    pieces = re.split(r"(\W)", text)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        place = source.randrange(len(pieces))
        kind = source.randrange(6)
        if kind == 0:
            pieces[place] = source.choice(TOKENS)
        elif kind == 1:
            pieces.insert(place, source.choice(TOKENS))
        elif kind == 2:
            del pieces[place]
        elif kind == 3:
            other = source.randrange(len(pieces))
            pieces[place], pieces[other] = pieces[other], pieces[place]
        elif kind == 4:
            pieces[place] = pieces[place] * source.randrange(2, 50)
        else:
            pieces[place] = chr(source.choice((source.randrange(128), source.randrange(0xD7FF))))
        if not pieces:
            break
    return "".join(pieces)


def refused(take_in):
    """The message with which a text is refused; none if it is taken in."""
    try:
        take_in()
    except RuleError as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize("seed", range(8))
def test_broken_rules(seed):
    source = random.Random(seed)
    for _ in range(250):
        text = broken(source.choice(TEXTS), source)
        start = time.perf_counter()
        message = refused(lambda text=text: registry().copy().define(text))
        assert not message or re.match(r"<diffrule>:\d+:\d+: ", message), (text, message)
        assert time.perf_counter() - start < 5, text


@pytest.mark.parametrize("seed", range(2))
def test_broken_files(seed):
    source = random.Random(seed)
    for _ in range(100):
        text = broken(source.choice(FILES), source)
        message = refused(lambda text=text: parse(text, "my.rules", header=True))
        assert not message or re.match(r"my\.rules:\d+:\d+: ", message), (text, message)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuleError):
            registry().copy().define(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=12))
def test_any_right_hand_side(tokens):
    text = "@elementwise\ndef f(x: Real) -> y:\n    y = " + " ".join(tokens)
    message = refused(lambda: registry().copy().define(text))
    assert not message or message.startswith("<diffrule>:")
