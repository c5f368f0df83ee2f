"""Rule texts broken at random, by bytes, tokens, lines and parts of formulas: for one seed always the same."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable

TOKENS = (
    "x y d 0 1 9**9**9 -1e308 1e-320 1e999 0x1p3 0o17 1_000 oo pi E ... ( ) [ ] { } , : ; = == ** * / // % + - @ -> "
    "<= != := . # | & ~ ! lambda if else for in is not and or import from yield await async global return del raise "
    "try with class None True 1j 'a' b'a' f'{x}' __import__ __import__('os') os.system('x') eval('1') exec('1') "
    "open('x') x.__class__ (lambda:x)() [x(for)x(in)y] assert def return Real Complex Boolean Array Static "
    "Integer(0,0) Real(1,0) Real(0,oo) Array[...,m] exp log sum matmul unreduce shape shapes dtype contraction "
    "coproduct where power tuple "
    "getitem Slice None \n \t \0 \r \u00e9 \u2028 \uff58 \u0661 \\ d[y] d[x] d[y,x] *xs **xs xs[i] "
    "axis=axis axis=-1 dtype=dtype(x) @elementwise @tensor @nodiff"
).split(" ")


def by_bytes(text: str, source: random.Random) -> bytes:
    """Bytes changed, put in, taken out, doubled, or cut off."""
    raw = bytearray(text.encode())
    for _ in range(source.choice((1, 1, 2, 4, 16))):
        place = source.randrange(len(raw) + 1)
        kind = source.randrange(6)
        if kind == 0 and raw:
            raw[place % len(raw)] = source.randrange(256)
        elif kind == 1:
            raw.insert(place, source.choice(b"()[]{},:;=*/+-@.#'\"\\\n\t\r\0 x0\xff\xc3\xed"))
        elif kind == 2:
            del raw[place : place + source.randrange(1, 9)]
        elif kind == 3:
            raw[place:place] = raw[place : place + source.randrange(1, 60)]
        elif kind == 4 and raw:
            raw[place % len(raw)] ^= 1 << source.randrange(8)
        else:
            raw[place:place] = bytes([source.choice(b"([{-~x1'\"#\n ")]) * source.choice((1, 40, 3000))
    return bytes(raw[: source.randrange(1, len(raw) + 1)] if source.random() < 0.05 else raw)


def by_tokens(text: str, source: random.Random) -> bytes:
    """Words and signs replaced, put in, taken out, swapped, repeated."""
    pieces = re.split(r"(\W)", text)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        place, other = source.randrange(len(pieces)), source.randrange(len(pieces))
        kind = source.randrange(6)
        if kind == 0:
            pieces[place] = source.choice(TOKENS)
        elif kind == 1:
            pieces.insert(place, source.choice(TOKENS))
        elif kind == 2 and len(pieces) > 1:
            del pieces[place]
        elif kind == 3:
            pieces[place], pieces[other] = pieces[other], pieces[place]
        elif kind == 4:
            pieces[place] = pieces[place] * source.randrange(2, 50)
        else:
            pieces[place] = pieces[other]
    return "".join(pieces).encode()


def by_lines(text: str, source: random.Random) -> bytes:
    """Lines taken out, doubled, swapped, joined, shifted, or brought in from nowhere."""
    lines = text.split("\n")
    for _ in range(source.choice((1, 1, 2, 3))):
        place, other = source.randrange(len(lines)), source.randrange(len(lines))
        kind = source.randrange(6)
        if kind == 0 and len(lines) > 1:
            del lines[place]
        elif kind == 1:
            lines.insert(place, lines[other])
        elif kind == 2:
            lines[place], lines[other] = lines[other], lines[place]
        elif kind == 3 and place + 1 < len(lines):
            lines[place] += lines.pop(place + 1)
        elif kind == 4:
            lines[place] = " " * source.randrange(9) + lines[place].strip()
        else:
            lines.insert(place, "    " + source.choice(STATEMENTS))
    return "\n".join(lines).encode()


def by_parts(text: str, source: random.Random) -> bytes:
    """Parts of formulas replaced by others and by strange ones; mostly Python can still parse the text."""
    for _ in range(source.choice((1, 1, 2, 3))):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            break
        roots = [part for part in ast.walk(tree) if isinstance(part, (ast.Assign, ast.Assert))]
        # Mostly in right-hand sides, for what stands elsewhere is refused soon.
        inside = [root.value if isinstance(root, ast.Assign) else root.test for root in roots]
        places = inside if inside and source.random() < 0.85 else [tree]
        parts = [part for place in places for part in ast.walk(place) if isinstance(part, ast.expr)]
        if not parts:
            break
        chosen, other = source.choice(parts), ast.unparse(source.choice(parts))
        text = _spliced(text, chosen, other if source.random() < 0.6 else source.choice(PARTS))
    return text.encode()


def by_growth(text: str, source: random.Random) -> bytes:
    """Parts of formulas wrapped in others, deep, wide or with numbers at the ends of what doubles hold."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text.encode()
    parts = [part for root in ast.walk(tree) if isinstance(root, ast.Assign) for part in ast.walk(root.value)]
    parts = [part for part in parts if isinstance(part, ast.expr)]
    if not parts:
        return text.encode()
    chosen = source.choice(parts)
    inner, number = ast.unparse(chosen), source.choice(NUMBERS)
    many = source.choice((2, 5, 12, 60))
    other = source.choice(
        (
            f"({inner}) * {number}",
            f"({inner}) ** {number}",
            f"({inner}) ** ({inner})",
            f"where(({inner}) > {number}, {inner}, {number})",
            f"where({inner}, {inner}, ({inner}) * d[y])",
            "exp(" * many + inner + ")" * many,
            "(" * many + inner + " + 1) / 3" * many,
            " + ".join([f"({inner})"] * many),
            " * ".join(f"({inner} - {place})" for place in range(many)),
            "where(x > 0, " * min(many, 12) + inner + ", 0)" * min(many, 12),
        )
    )
    return _spliced(text, chosen, f"({other})").encode()


def by_crowds(text: str, source: random.Random) -> bytes:
    """The rules beside others that call each other: in long chains, twice each, in circles, or by the same name."""
    length = source.choice((3, 12, 40))
    step = source.choice(
        (
            "f{0}(x) + 1",
            "f{0}(x) * f{0}(x + 1)",
            "f{0}(f{0}(x))",
            "where(x > {0}, f{0}(x), 0)",
            "f{0}(x) - f{0}(x)",
            "exp(f{0}(x)) ** f{0}(-x)",
        )
    )
    first = source.choice(("x", "x * x", f"f{length}(x)", "f0(x)", "nothing(x)"))
    kind, domain = source.choice((("elementwise", "Real"), ("elementwise", "Real(0, oo)"), ("tensor", "Array[n]")))
    rules = [f"@{kind}\ndef f0(x: {domain}) -> y:\n    y = {first}\n"]
    for number in range(length):
        name = "f1" if source.random() < 0.05 else f"f{number + 1}"
        derivative = source.choice(("", "", "    d[y, x] = 1\n", f"    d[y, x] = f{number}(x)\n", "    d[x] = d[y]\n"))
        rules.append(f"@{kind}\ndef {name}(x: {domain}) -> y:\n    y = {step.format(number)}\n{derivative}")
    if source.random() < 0.5:
        source.shuffle(rules)
    return "\n".join([text, *rules]).encode()


NUMBERS = ("1e308", "5e-324", "-0.0", "1024", "1025", "-1024", "0.1", "1 / 3", "1e-9", "2**62", "2**1000", "1e16", "pi")


def _spliced(text: str, place: ast.expr, other: str) -> str:
    lines = text.split("\n")
    first, last = place.lineno - 1, (place.end_lineno or place.lineno) - 1
    head, tail = lines[first].encode()[: place.col_offset], lines[last].encode()[place.end_col_offset :]
    return "\n".join([*lines[:first], head.decode() + other + tail.decode(), *lines[last + 1 :]])


PARTS = (
    "x",
    "y",
    "d",
    "0",
    "1.0",
    "-1",
    "True",
    "None",
    "'text'",
    "'no closed form at all'",
    "b'bytes'",
    "1j",
    "oo",
    "1e999",
    "1e308 * 1e308",
    "10**400",
    "9**9**9**9",
    "x**1e9",
    "1 / 0",
    "d[y]",
    "d[x]",
    "d[y, x]",
    "d[y] * d[y]",
    "d[y] + 1",
    "x.real",
    "x.__class__.__bases__[0].__subclasses__()",
    "__import__('os').system('true')",
    "open('x', 'w')",
    "eval('1')",
    "lambda: x",
    "(lambda: x)()",
    "[x for x in y]",
    "{x: y}",
    "{x}",
    "[x]",
    "(x, y)",
    "f'{x}'",
    "(z := x)",
    "x if x > 0 else y",
    "not x",
    "x and y",
    "x < y < 1",
    "x @ x",
    "x[0]",
    "x[0:1]",
    "x[y]",
    "*x",
    "exp(x)",
    "exp(x, y)",
    "exp(*x)",
    "exp(**x)",
    "exp(x, out=y)",
    "zeta(x, 1e-300)",
    "gamma(exp(exp(exp(x))))",
    "kv(x, 1e-9)",
    "erfinv(1 - 1e-300)",
    "exp(exp(exp(exp(exp(x)))))",
    "power(power(power(x, 1000), 1000), 1000)",
    "sin(1e300 * x)",
    "hyp2f1(1000, 1000, 0.001, x)",
    "sum(x)",
    "sum(x, axis=10**30)",
    "reshape(d[y], shape=(-1, -1))",
    "reshape(d[y], shape=10**12)",
    "broadcast_to(d[y], shape=(10**9, 10**9))",
    "matmul(d[y], adjoint(x))",
    "where(x > 0, x, y)",
    "unreduce(d[y], shape(x), None, False)",
    "shape(x)",
    "Real(0, 1)",
    "Integer(0, 10**400)",
    "Real(oo, -oo)",
    "Array[..., m, m]",
    "Static",
    "Boolean",
)


STATEMENTS = (
    "import os",
    "y = __import__('os').system('true')",
    "y = x.__class__.__bases__",
    "y = (lambda: x)()",
    "y = [x for x in y]",
    "y = f'{x}'",
    "y = (z := x)",
    "y = x if x > 0 else 0",
    "y = 9**9**9**9",
    "y = x**(10**9)",
    "d[y, x] = 1",
    "d[x] = d[y]",
    "d[y, x] = 'no closed form at all'",
    "d[x] = d[y] * d[y]",
    "assert x > 0",
    "assert False",
    "y = y",
    "...",
    "pass",
    "return x",
    "exec('x')",
    "global x",
)

WAYS: dict[str, Callable[[str, random.Random], bytes]] = {
    "bytes": by_bytes,
    "tokens": by_tokens,
    "lines": by_lines,
    "parts": by_parts,
    "growth": by_growth,
    "crowds": by_crowds,
}
