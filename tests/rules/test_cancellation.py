"""What sympy would cancel is found, though sympy is seldom asked."""

import random
import subprocess
import sys

import pytest

from yota.rules.language.model import Call, Literal, Name
from yota.rules.language.rule_text import show, walk
from yota.rules.laws import cancellation
from yota.rules.registry import registry

KNOWN = registry()
LEAVES = [*map(Name, "xxyz"), *map(Literal, (1, 2, -1, 0.5, 3, 3.141592653589793))]


def drawn(draw, depth):
    kind = draw.random()
    if depth == 0 or kind < 0.15:
        return draw.choice(LEAVES)
    if kind < 0.6:
        name = draw.choice(["add", "subtract", "add", "subtract", "multiply", "multiply", "divide"])
        return Call(name, (drawn(draw, depth - 1), drawn(draw, depth - 1)))
    if kind < 0.75:
        return Call(draw.choice(["negative", "square", "reciprocal"]), (drawn(draw, depth - 1),))
    if kind < 0.85:
        return Call("power", (drawn(draw, depth - 1), Literal(draw.choice([-1, 2, 3, -2, 0.5, 1.5, 1, 0]))))
    if kind < 0.95:
        return Call(draw.choice(["exp", "sin", "sqrt", "absolute"]), (drawn(draw, depth - 1),))
    condition = Call("greater", (drawn(draw, 1), drawn(draw, 1)))
    return Call("where", (condition, drawn(draw, depth - 1), drawn(draw, depth - 1)))


@pytest.mark.parametrize("seed", range(4))
def test_whatever_sympy_cancels_is_a_suspect(seed):
    draw = random.Random(seed)
    cancelled = 0
    for _ in range(250):
        expression = drawn(draw, draw.choice([2, 3, 4]))
        suspects = set(map(id, cancellation.suspects(expression, KNOWN)))
        for part in walk(expression):
            if isinstance(part, Call) and cancellation._is_read(part) and cancellation._cancelled(KNOWN, part):
                cancelled += 1
                assert id(part) in suspects, show(part)
    assert cancelled > 20


FILE = """# yota rules 1
@elementwise
def bell(x: Real, s: Real(0, oo)) -> y:
    y = exp(-x * x / (2 * s * s)) * x**1.5
    d[y, x] = (1.5 / x - x / (s * s)) * y
    d[y, s] = x * x / s**3 * y
"""


def test_plain_rules_are_loaded_without_symbolic_mathematics(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text(FILE)
    program = (
        f"import sys; from yota.rules.registry import registry; registry().load({str(path)!r});"
        "print([name for name in ('sympy', 'mpmath') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
