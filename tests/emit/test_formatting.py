"""What yota formats is what ruff would leave as it is, on random code of the kind that is generated."""

from __future__ import annotations

import ast
import random
import subprocess
import sys

import pytest

from yota.emit.python.formatting import formatted

NAMES = ["x", "v12", "margin", "t0", "weights_rows", "exponent", "a_rather_long_name"]
ATOMS = ["2.0", "1e-05", "-0.5", "x[0]", "w[1, 2]", "np.pi", "x[:, None]", "x[1:]", "x[: n - 1]"]
FUNCTIONS = ["np.add", "np.exp", "pow", "np.array", "np.add.reduce", "_kernel"]
KEYWORDS = ["out=t0", "axis=1", "axis=(0, 1)"]


class Writer:
    """Writes random statements."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def atom(self) -> str:
        return self.random.choice(NAMES if self.random.random() < 0.7 else ATOMS)

    def chain(self, depth: int) -> str:
        signs = [self.random.choice("+-*/") for _ in range(self.random.randint(1, 6))]
        return self.operand(depth) + "".join(f" {sign} {self.operand(depth)}" for sign in signs)

    def operand(self, depth: int) -> str:
        kind = self.random.random()
        if depth <= 0 or kind < 0.6:
            return self.atom()
        return f"({self.chain(depth - 1)})" if kind < 0.8 else self.call(depth - 1)

    def call(self, depth: int) -> str:
        parts = [self.argument(depth) for _ in range(self.random.randint(1, 5))]
        parts += [self.random.choice(KEYWORDS)] if self.random.random() < 0.5 else []
        return f"{self.random.choice(FUNCTIONS)}({', '.join(parts)})"

    def argument(self, depth: int) -> str:
        kind = self.random.random()
        if depth <= 0 or kind < 0.5:
            return self.atom()
        return self.chain(depth - 1) if kind < 0.7 else self.row(depth - 1) if kind < 0.85 else self.call(depth - 1)

    def row(self, depth: int) -> str:
        return f"[{', '.join(self.argument(depth) for _ in range(self.random.randint(1, 10)))}]"

    def statement(self) -> str:
        kind, name = self.random.random(), self.random.choice(NAMES)
        if kind < 0.4:
            return f"{name} = {self.chain(2)}"
        if kind < 0.6:
            return f"{name} = {self.call(3)}"
        if kind < 0.7:
            return f"{name} = {self.chain(0)} if {self.atom()} > {self.atom()} else {self.chain(0)}"
        if kind < 0.8:
            return f"{name} = {self.row(1)}"
        if kind < 0.9:
            return f"return {', '.join(self.argument(1) for _ in range(self.random.randint(2, 12)))}"
        return f"{', '.join(self.random.choice(NAMES) for _ in range(self.random.randint(2, 14)))} = work"


@pytest.mark.parametrize("seed", range(4))
def test_ruff_has_nothing_to_change(seed: int) -> None:
    writer = Writer(seed)
    text = "def f(x):\n" + "".join(f"    {writer.statement()}\n" for _ in range(300))
    found = formatted(text)
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(text))
    words = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "-"]
    done = subprocess.run(words, input=found, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_comments_and_long_strings_stay() -> None:
    text = 'table = """\n1 2\n"""\n\n# x = 1   \nif x:\n    # y\n    return (x)\n'
    assert formatted(text) == 'table = """\n1 2\n"""\n\n# x = 1\nif x:\n    # y\n    return x\n'
