"""Texts that are broken at random: each is refused with a place or taken in, in no time, and nothing else happens.

`YOTA_HOSTILE=10000 python -m pytest tests/rules/test_hostile.py` breaks ten thousand texts in place of a few hundred.
"""

import os
import random
import re
import sys
import time
import warnings

import pytest
import scipy.linalg
import scipy.signal
import scipy.special  # noqa: F401  (functions are looked up among loaded modules)
import sympy  # noqa: F401  (it writes code when it is imported)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.mutations import PARTS, TOKENS, WAYS
from yota._resources import folder
from yota.errors import RuleError
from yota.rules.language.syntax import HEADER, parse
from yota.rules.laws import agreement, cancellation  # noqa: F401  (classes of data write code when they are defined)
from yota.rules.laws import all_laws as laws
from yota.rules.registry import registry

COUNT = int(os.environ.get("YOTA_HOSTILE", "400"))
SEED = int(os.environ.get("YOTA_HOSTILE_SEED", "1"))
RULES = [f"{HEADER}\n{rule.source}\n" for name in registry().names() for rule in registry().rules(name)]
FILES = [path.read_text() for path in sorted(folder("rules").rglob("*.rules"))]
_MOST_SECONDS = 20
"""Of CPU time, for a text that is refused in the end: a proof may integrate with 50 digits, but it ends."""
PLACE = re.compile(r".*\.rules:\d+:\d+: ")

watched = False
seen = []


def watch(event, arguments):
    """Notes what a rule text must never bring about."""
    if not watched:
        return
    if event.startswith(("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.", "socket.", "shutil.")):
        seen.append((event, arguments))
    elif event == "exec" and arguments[0].co_filename.startswith(("<", "my.")):
        # mpmath writes code of its own.
        if "mpmath" not in sys._getframe(1).f_code.co_filename:
            seen.append((event, arguments))
    elif event == "open" and set(str(arguments[1])) & set("wax+"):
        seen.append((event, arguments))


sys.addaudithook(watch)


def refused(take_in):
    """The message with which a text is refused, none if it is taken in; with what it executed, and its seconds."""
    global watched
    start = time.process_time()
    seen.clear()
    watched = True
    try:
        take_in()
        message = ""
    except RuleError as fault:
        message = str(fault)
    finally:
        watched = False
    assert not seen
    assert time.process_time() - start < _MOST_SECONDS
    return message


def broken(text, way, source):
    raw = WAYS[way](text, source)
    # Without its first line a file is refused at once, which tries nothing else.
    return raw if source.random() < 0.2 or raw.startswith(HEADER.encode()) else HEADER.encode() + b"\n" + raw


@pytest.mark.parametrize("way", WAYS)
def test_broken_rules(way, tmp_path):
    source = random.Random(f"{SEED} {way}")
    path = tmp_path / "my.rules"
    # Libraries write code of their own when they are imported.
    registry().copy().define("@elementwise\ndef warmed(x: Real) -> y:\n    y = sin(x)**2\n    d[y, x] = sin(2 * x)")
    for _ in range(COUNT // len(WAYS)):
        raw = broken(source.choice(RULES), way, source)
        path.write_bytes(raw)
        message = refused(lambda: registry().copy().load(path))
        assert not message or PLACE.match(message), (raw, message)


@pytest.mark.parametrize("way", WAYS)
def test_broken_files(way):
    source = random.Random(f"{SEED} {way}")
    known = registry()

    def take_in(text):
        found, rules = parse(text, "my.rules", header=True)
        laws.check(found, rules, known.with_rules(rules), known)

    for _ in range(COUNT // (4 * len(WAYS))):
        raw = broken(source.choice(FILES), way, source)
        message = refused(lambda raw=raw: take_in(raw.decode(errors="replace")))
        assert not message or PLACE.match(message), (raw, message)


@settings(max_examples=max(COUNT // 4, 100))
@given(st.text(max_size=200))
def test_any_text(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuleError):
            registry().copy().define(text)


@settings(max_examples=max(COUNT // 4, 100))
@given(st.lists(st.sampled_from(TOKENS), max_size=12))
def test_any_right_hand_side(tokens):
    text = "@elementwise\ndef f(x: Real) -> y:\n    y = " + " ".join(tokens)
    message = refused(lambda: registry().copy().define(text))
    assert not message or message.startswith("<diffrule>:")


@pytest.mark.parametrize("kind", ["elementwise", "tensor"])
@pytest.mark.parametrize("part", PARTS)
def test_strange_parts(kind, part):
    """Each part as the whole of a right-hand side, inside of one, as a keyword, a condition, a default, a set."""
    left, domain = ("d[y, x]", "Real") if kind == "elementwise" else ("d[x]", "Array")
    for body in (
        f"{left} = {part}",
        f"{left} = exp(1 + {part})",
        f"{left} = sum(x, axis={part})",
        f"assert {part}\n    {left} = x",
        f"{left} = x\n    y = {part}",
    ):
        text = f'@{kind}("module.f")\ndef f(x: {domain}) -> y:\n    {body}\n'
        message = refused(lambda text=text: registry().copy().define(text))
        assert not message or message.startswith("<diffrule>:"), text
    for signature in (f"x: {part}", f"x: {domain}, *, k: Static = {part}", f"{part}: {domain}"):
        text = f'@{kind}("module.f")\ndef f({signature}) -> y:\n    {left} = 0\n'
        message = refused(lambda text=text: registry().copy().define(text))
        assert not message or message.startswith("<diffrule>:"), text


@pytest.mark.parametrize("act", [lambda: exec("1"), lambda: os.system("true"), lambda: open(os.devnull, "w").close()])
def test_what_is_executed_is_seen(act):
    with pytest.raises(AssertionError):
        refused(act)
