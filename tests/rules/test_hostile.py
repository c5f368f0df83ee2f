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
    "x y d 0 1 9**9**9 -1e308 1e-320 oo pi E ... ( ) [ ] { } , : = == ** * / + - @ -> <= != lambda if else for in not and "
    "import yield await None True 1j 'a' f'{x}' := . ; # assert def return Real Array Static Integer(0,0) __import__ exp log "
    "sum matmul unreduce shape contraction coproduct where \n \t \0 \u00e9 \\ \ud7ff d[y] d[x] *xs **xs xs[i] axis=axis"
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


@pytest.mark.parametrize("seed", range(8))
def test_broken_rules(seed):
    source = random.Random(seed)
    for _ in range(250):
        text = broken(source.choice(TEXTS), source)
        start = time.perf_counter()
        try:
            registry().copy().define(text)
        except RuleError as fault:
            assert re.match(r"<diffrule>:\d+:\d+: ", str(fault)), (text, str(fault))
        assert time.perf_counter() - start < 5, text


@pytest.mark.parametrize("seed", range(2))
def test_broken_files(seed):
    source = random.Random(seed)
    for _ in range(100):
        try:
            parse(broken(source.choice(FILES), source), "my.rules", header=True)
        except RuleError as fault:
            assert re.match(r"my\.rules:\d+:\d+: ", str(fault))


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
    try:
        registry().copy().define("@elementwise\ndef f(x: Real) -> y:\n    y = " + " ".join(tokens))
    except RuleError as fault:
        assert "<diffrule>:" in str(fault)
