"""Random functions with plain Python loops, and how they are held against themselves unrolled."""

from __future__ import annotations

import linecache
import random
import warnings
from typing import Any

import numpy as np

import yota
from yota.ir.tape import Tape
from yota.ir.verify import verify
from yota.rules.registry import registry
from yota.transform.reverse.backward import gradient_tape
from yota.transform.rolling import roll
from yota.transform.rolling.periods import Worth

N = 24


class Program:
    """The source of a function of two vectors, a matrix and a number."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.text = self._text()

    def _one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _position(self, i: str) -> str:
        return self._one(i, f"{i}-1", f"{i}+1", f"({i}*5)%N", f"N-1-{i}", f"2*{i}%N", "3", "0", "-1", f"P[{i}]")

    def _number(self, i: str, depth: int = 0) -> str:
        at, kind = self._position(i), self.random.random()
        if depth > 2 or kind < 0.3:
            reads = f"x[{at}]", f"y[{at}]", f"K[{i}]", f"m[{at}%3, 1]", f"z[{at}]", f"q[{at}%6]"
            constant = repr(round(self.random.uniform(-1, 1), 3))
            return self._one("a", "b", "c", "a", "t", "s", i, f"{i}*0.1", "np.sum(v)", "v[1]", constant, *reads)
        if kind < 0.75:
            return f"({self._number(i, depth + 1)} {self._one(*'+-*')} {self._number(i, depth + 1)})"
        return f"np.{self._one('sin', 'tanh', 'cos', 'arctan')}({self._number(i, depth + 1)})"

    def _vector(self, i: str, depth: int = 0) -> str:
        at, kind = self._position(i), self.random.random()
        if depth > 2 or kind < 0.3:
            reads = (
                f"m[{at}%3]",
                f"m[:, {at}%3]",
                f"g[{at}]",
                f"g[{at}, :]",
                f"H[{i}]",
                f"x[{i}:{i}+3]",
                f"z[{i}:{i}+3]",
            )
            return self._one("v", "w", "v", "u", "m@v", "w[::-1]", "v.copy()", *reads)
        if kind < 0.7:
            other = self.random.choice([self._vector, self._number])(i, depth + 1)
            return f"({self._vector(i, depth + 1)} {self._one(*'+-*')} {other})"
        return f"np.{self._one('sin', 'tanh')}({self._vector(i, depth + 1)})"

    def _statement(self, i: str, depth: int) -> list[str]:
        at, number, vector = self._position(i), f"np.tanh({self._number(i)})", f"np.tanh({self._vector(i)})"
        rare = "b = 1", "c = a", "v = v.astype(np.float32)", "v = v[:3]", "t = 0", "a = x[0]", "s = s*1.01"
        condition = self._one(f"{i} == 7", f"{i} % 2", f"{i} > 9", f"{i} % 3 == 1", f"{i} == 0")
        kinds = [
            lambda: [f"{self._one('a', 'b', 'c')} = {number}"],
            lambda: [f"{self._one('a', 'b', 'c')} = {number}"],
            lambda: [f"t = t + {number}"],
            lambda: [f"{self._one('u', 'v', 'w')} = {vector}"],
            lambda: [f"z[{at}] {self._one('=', '+=', '*=')} {number}"],
            lambda: [f"z[{i}] = 0.5*z[{i}-1] + {number}"],
            lambda: [f"g[{at}] = {vector}"],
            lambda: [f"q[{at}%6] = {number}"],
            lambda: [f"out.append({self._one('a', number)})"],
            lambda: [f"rows.append({self._one('v', 'w', vector)})"],
            lambda: [self._one("a, b = b, a", "c, b, a = b, a, c")],
            lambda: [f"v[{self._one('0', '2')}] = {number}*0.1", "v = np.tanh(v)"],
            lambda: ["u = v", "v = v*1.0", f"v += 0.1*{vector}"],
            lambda: ["w = v", "v *= 0.9"],
            lambda: [f"d = {number} - e", "h = t + d", "e = (h - t) - d", "t = h"],
            lambda: [f"if {i} == {self.random.randrange(12)}:", f"    {self._one(*rare)}"],
            lambda: [f"if {condition}:", *self._block(i, depth + 1)],
            lambda: [f"for j in range({self._one('3', '2', f'{i}%3', f'{i}//4')}):", *self._block("j", depth + 1)],
        ]
        return self.random.choice(kinds[: len(kinds) if depth < 1 else -2])()

    def _block(self, i: str, depth: int) -> list[str]:
        return [f"    {line}" for _ in range(self.random.randint(1, 4)) for line in self._statement(i, depth)]

    def _text(self) -> str:
        start = self._one("0", "0.0", "x[2]")
        lines = [f"a, b, c, t, e = x[0], y[1], 0.5, {start}, 0.0", "v = m[0]*1.0", "w = u = m[1]"]
        lines += [f"z = {self._one('np.zeros(N+2)', 'np.ones(N+2)')}", "g = np.zeros((N+2, 3))", "q = y[:6].copy()"]
        lines += ["out, rows = [], []"]
        for _ in range(self.random.choice([1, 1, 2])):
            trips = self._one("N-2", "1, N-2", "N-3, 0, -1", "0, 22, 2")
            lines += [f"for i in range({trips}):", *self._block("i", 0)]
        parts = ["t", "a", "b*c", "np.sum(v*w)", "np.sum(u)", "np.sum(z**2)", "np.sum(g)", "np.sum(q)", "e"]
        lines += [f"r = {' + '.join(self.random.sample(parts, self.random.randint(1, 4)))} + a*1.0"]
        sums = (
            "sum(out)",
            "np.sum(np.stack(out)**2)",
            "out[-1]",
            "out[-2]*out[0]",
            "sum(o*k for k, o in enumerate(out))",
        )
        lines += [f"if out: r = r + {self._one(*sums)}"]
        sums = "np.sum(sum(rows))", "np.sum(np.stack(rows)**2)", "np.sum(rows[-1])", "np.sum(np.stack(rows, axis=1))"
        lines += [f"if rows: r = r + {self._one(*sums)}", "return r"]
        return "\n".join(["def f(x, y, m, s):", "    N = len(x)", *(f"    {line}" for line in lines)])

    def check(self) -> bool:
        """Hold the function rolled against itself unrolled; whether it had anything to roll."""
        name, source = f"<program {self.seed}>", np.random.default_rng(self.seed)
        linecache.cache[name] = len(self.text), None, [f"{line}\n" for line in self.text.split("\n")], name
        known: dict[str, Any] = {"np": np, "K": source.normal(size=40), "H": source.normal(size=(40, 3))}
        known["P"] = [*source.permutation(N).tolist(), *[0] * 10]
        exec(compile(self.text, name, "exec"), known)
        dtype = np.float32 if self.seed % 5 == 0 else np.float64
        arrays = [source.normal(size=shape).astype(dtype) for shape in (N, N, (3, 3))]
        arguments = (*arrays, float(source.normal()))
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                known["f"](*[np.copy(each) for each in arrays], arguments[-1])
        except (IndexError, ValueError, TypeError):
            return False  # no function at all
        _, tape = yota.trace(known["f"], *arguments)
        found = verify(roll.run(tape, Worth(trips=4, ops=24, computed=0)))
        if not any(op.regions for op in found.ops):
            return False
        one, other = tape.play(*arguments), found.play(*arguments)
        assert (one == other or one != one) and type(one) is type(other), (one, other, self.text)
        if tape.types[tape.outputs[0]].differentiable:
            self._compare(tape, found, arguments)
        return True

    def _compare(self, tape: Tape, found: Tape, arguments: tuple[Any, ...]) -> None:
        tight = all(type.dtype.char not in "fF" for type in tape.types.values())
        for slopes in zip(_slopes(tape, arguments), _slopes(found, arguments), strict=True):
            scale = 1 + np.max(np.abs(slopes[0]))
            np.testing.assert_allclose(*slopes, rtol=1e-9 if tight else 2e-3, atol=(1e-9 if tight else 2e-3) * scale)


def _slopes(tape: Tape, arguments: tuple[Any, ...]) -> list[Any]:
    """The gradient by the arguments, evaluated op by op."""
    wrt = [entry.variable for entry in tape.inputs[:4]]
    found = gradient_tape(tape, wrt, registry())
    played = found.tape.play(*arguments)
    values = iter(played[1:] if isinstance(played, tuple) else ())
    return [0.0 if each is None else next(values) for each in found.variables]
