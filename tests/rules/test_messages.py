"""Wrong rules: each fails with exactly the message that is written beside it in `wrong.txt`."""

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

import yota.rules
from yota.errors import RuleError
from yota.rules.language.rule_text import Source
from yota.rules.laws import agreement
from yota.rules.laws import all_laws as laws
from yota.rules.registry import registry

ENTRIES = [
    (entry.partition("\n")[0], *entry.partition("\n")[2].split("\n--- fails with\n"))
    for entry in (Path(__file__).parent / "wrong.txt").read_text(encoding="utf-8").split("=== ")[1:]
]


@pytest.mark.parametrize(
    ("text", "message"), [(text, message) for _, text, message in ENTRIES], ids=[name for name, _, _ in ENTRIES]
)
def test_message(text, message):
    known = registry().copy()
    with pytest.raises(RuleError) as caught:
        known.define(text)
    assert str(caught.value) == message.rstrip("\n")
    assert known.names() == registry().names()  # nothing is taken in


def body(right):
    return f"@elementwise\ndef f(x: Real) -> y:\n    y = {right}\n"


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        (body("x +"), "3:", "found: "),
        (body("x\0"), "3:10:", r"found: '\x00'"),
        (body("x").replace("    y", "\ty"), "3:1:", r"found: '\t'"),
        (body("x \u2212 1"), "3:11:", r"found: '\u2212'"),
        (body("\uff58"), "3:9:", r"found: '\uff58'"),
        (body("x \\\n + 1"), "3:11:", "found: '" + "\\" * 2),
        (body("x\r + 1"), "3:10:", r"found: '\r'"),
        (body("-" * 80 + "x"), "3:60:", "more than 50 levels"),
        (body("-" * 1900 + "x"), ":", "found: "),
        (body("-" * 100000 + "x"), "3:1:", "more than 2000 characters"),
        (body("(" * 40 + "x" + ")" * 40), "3:39:", "more than 30 open brackets"),
        (body("(" * 100000), "3:39:", "more than 30 open brackets"),
        (body(" + ".join(["x"] * 300)), "3:", "more than 50 levels"),
        (body(" + ".join(["x"] * 100000)), "3:1:", "more than 2000 characters"),
        (body("f(" + ",".join(["x"] * 600) + ")"), "3:", "more than 500 parts"),
        (body("1" * 5000), "3:", "found: "),
        (body("1" * 1500), "3:9:", "found: 1111"),
        (body("0x" + "f" * 1500), "3:9:", "found: 0xfff"),
        (body("x + 9**9**9**9"), "3:16:", "found: 9**9**9"),
        (body("x**9.5**9.5**9.5"), "3:12:", "found: 9.5**9.5**9.5"),
        (body('"' + "a" * 300 + '"'), "3:9:", "found: 300 characters"),
        (body('x + power("\u00e4\u00f6", t)'), "3:19:", "found: 2 characters"),
        ("", "1:1:", "found: nothing"),
        ("\ufeff" + body("x"), "1:1:", r"found: '\ufeff'"),
        ("# " + "x" * 1_100_000, "1:1:", "characters"),
        ("@elementwise\nasync def f(x: Real) -> y:\n    y = x", ":", "found: "),
        ("@elementwise\nclass f: pass", "2:1:", "found: class f"),
    ],
)  # fmt: skip
def test_place_of_what_python_says_in_its_own_words(text, place, found):
    with pytest.raises(RuleError) as caught:
        registry().copy().define(text)
    assert str(caught.value).startswith(f"<diffrule>:{place}" if place != ":" else "<diffrule>:")
    assert found in str(caught.value)


def test_column_counts_characters_not_bytes():
    text = '@elementwise\ndef f(x: Real) -> y:\n    y = where(x == "\u00e4", lenght, x)'
    with pytest.raises(RuleError, match="not ASCII"):
        registry().copy().define(text)
    text = '@elementwise\ndef f(x: Real) -> y:\n    """\u00e4\u00f6\u00fc"""; y = lenght\n'
    with pytest.raises(RuleError) as caught:
        registry().copy().define(text)
    assert str(caught.value).splitlines() == [
        "<diffrule>:3:20: `lenght` is not known here",
        '        """\u00e4\u00f6\u00fc"""; y = lenght',
        " " * 23 + "^",
        "found: lenght",
        "write: x",
    ]


def test_file_needs_its_first_line(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text(body("x"))
    with pytest.raises(RuleError) as caught:
        registry().copy().load(path)
    assert str(caught.value) == (
        f"{path}:1:1: the first line of a rule file names the version of the language\n"
        "    @elementwise\n    ^\nfound: @elementwise\nwrite: # yota rules 1"
    )


def test_file_must_be_text(tmp_path):
    path = tmp_path / "my.rules"
    path.write_bytes(b"# yota rules 1\n\xff")
    with pytest.raises(RuleError, match="not UTF-8"):
        registry().copy().load(path)


def sites():
    """Every place in yota that refuses a rule text: file, first and last line of the call."""
    for path in sorted(Path(yota.rules.__file__).parent.rglob("*.py")):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Call) and getattr(part.func, "attr", "") in ("fault", "_fault"):
                yield path.name, part.lineno, part.end_lineno


# What Python's version decides, what needs a whole file or absent functions, and what passes a fault on.
ELSEWHERE = {"inspection.py": 1, "checker.py": 2, "rule_text.py": 2, "syntax.py": 6}


def test_every_refusal_has_an_example(monkeypatch):
    hit = set()
    genuine = Source.fault

    def fault(self, *args, **keywords):
        frame = sys._getframe(1)
        while frame.f_code.co_name in ("fault", "_fault"):
            frame = frame.f_back
        hit.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        return genuine(self, *args, **keywords)

    monkeypatch.setattr(Source, "fault", fault)
    for _, text, _ in ENTRIES:
        with pytest.raises(RuleError):
            registry().copy().define(text)
    left = Counter(
        name for name, first, last in sites() if not any((name, line) in hit for line in range(first, last + 1))
    )
    assert left == ELSEWHERE


def test_every_law_is_a_function_with_wrong_examples(monkeypatch):
    broken = Counter()

    def counted(law):
        def held(case):
            try:
                law(case)
            except RuleError:
                broken[law.__name__] += 1
                raise

        return held

    names = [law.__name__ for law in (*laws.LAWS, *agreement.LAWS)]
    monkeypatch.setattr(laws, "LAWS", tuple(map(counted, laws.LAWS)))
    monkeypatch.setattr(agreement, "LAWS", tuple(map(counted, agreement.LAWS)))
    for _, text, _ in ENTRIES:
        with pytest.raises(RuleError):
            registry().copy().define(text)
    assert [name for name in names if not broken[name]] == []
    assert len(ENTRIES) >= 110
