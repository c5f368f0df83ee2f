"""Random functions with plain Python loops, held against themselves unrolled: ``python -m tests.loops.programs``.

With ``--targets numpy c``, compiled gradients are held against Python and complex steps too.
"""

from __future__ import annotations

import argparse
import linecache
import random
import warnings
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np

import yota
from tests.loops.array_statements import STEPS, statement
from yota.ir.tape import Tape
from yota.ir.verify import verify
from yota.rules.registry import registry
from yota.run.machine import compiler
from yota.transform.reverse.backward import gradient_tape
from yota.transform.rolling import roll
from yota.transform.rolling.periods import Worth

N = 24
WORTH = Worth(trips=4, ops=24, computed=0)
TRIPS = (
    *(f"i in range({each})" for each in ("N-2", "N-2", "1, N-2", "N-3, 0, -1", "0, 22, 2")),
    "i in reversed(range(N-2))",
    "i, o in enumerate(x[:-2])",
    "i, (o, d) in enumerate(zip(x[2:], y))",
    "i, o in zip(range(1, N-2), y[::-1])",
)


class Program:
    """The source of a function of two vectors, a matrix and a number."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed, self.arrays = seed, self.random.choice([0.0, 0.3, 0.8])
        self.text = self._text()

    def _one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _position(self, i: str) -> str:
        return self._one(i, f"{i}-1", f"{i}+1", f"({i}*5)%N", f"N-1-{i}", f"2*{i}%N", "3", "0", "-1", f"P[{i}]")

    def _number(self, i: str, depth: int = 0) -> str:
        at, kind = self._position(i), self.random.random()
        if depth > 2 or kind < 0.3:
            reads = f"x[{at}]", f"y[{at}]", f"K[{i}]", f"m[({at})%3, 1]", f"z[{at}]", f"q[({at})%6]"
            constant = repr(round(self.random.uniform(-1, 1), 3))
            own = "a", "b", "c", "a", "t", "s", "o", i, f"{i}*0.1", "np.sum(v)", "v[1]", constant
            return self._one(*own, *reads)
        if kind < 0.75:
            return f"({self._number(i, depth + 1)} {self._one(*'+-*')} {self._number(i, depth + 1)})"
        return f"np.{self._one('sin', 'tanh', 'cos', 'arctan')}({self._number(i, depth + 1)})"

    def _vector(self, i: str, depth: int = 0) -> str:
        at, kind = self._position(i), self.random.random()
        if depth > 2 or kind < 0.3:
            reads = (
                f"m[({at})%3]",
                f"m[:, ({at})%3]",
                f"g[{at}]",
                f"g[{at}, :]",
                f"H[{i}]",
                f"x[{i}:{i}+3]",
                f"z[{i}:{i}+3]",
            )
            made = "M@v", "np.roll(v, 1)", "p[:3]", "p[9:]", "G[1, 1:4]", "G[:3, 2]", "np.where(v > w, v, 0.5*u)"
            return self._one("v", "w", "v", "u", "m@v", "w[::-1]", "v.copy()", *reads, *made)
        if kind < 0.7:
            other = self.random.choice([self._vector, self._number])(i, depth + 1)
            return f"({self._vector(i, depth + 1)} {self._one(*'+-*')} {other})"
        return f"np.{self._one('sin', 'tanh')}({self._vector(i, depth + 1)})"

    def _statement(self, i: str, depth: int) -> list[str]:
        at, number, vector = self._position(i), f"np.tanh({self._number(i)})", f"np.tanh({self._vector(i)})"
        rare = "b = 1", "c = a", "v = v.astype(np.float32)", "v = v[:3]", "t = 0", "a = x[0]", "s = s*1.01"
        condition = self._one(f"{i} == 7", f"{i} % 2", f"{i} > 9", f"{i} % 3 == 1", f"{i} == 0")
        decision = self._one("np.real(a) > 0.2", "np.real(b) < np.real(c)", f"np.real(t) > {i}", condition, condition)
        end = self._one("break", "break", "continue", "raise ValueError(a)")
        ends = {"break": f"{i} > 14 and {decision}", "continue": decision, "raise ValueError(a)": "abs(a) > 1e9"}
        inner = self._one("3", "2", f"{i}%3", f"{i}//4", f"{i}", f"{i}, min({i}+4, N)", f"{i}//2, {i}")
        kinds = [
            lambda: [f"{self._one('a', 'b', 'c')} = {number}"],
            lambda: [f"{self._one('a', 'b', 'c')} = {number}"],
            lambda: [f"t = t + {number}"],
            lambda: [f"{self._one('u', 'v', 'w')} = {vector}"],
            lambda: [f"z[{at}] {self._one('=', '+=', '*=')} {number}"],
            lambda: [f"z[{i}] = 0.5*z[{i}-1] + {number}"],
            lambda: [f"g[{at}] = {vector}"],
            lambda: [f"q[({at})%6] = {number}"],
            lambda: [f"out.append({self._one('a', number)})"],
            lambda: [f"rows.append({self._one('v', 'w', vector)})"],
            lambda: [self._one("a, b = b, a", "c, b, a = b, a, c", "u, v = v, u", "v, w = w, 0.9*v")],
            lambda: [f"{self._one('a', 't')} = {number} if {decision} else {self._one('b', 'a', number)}"],
            lambda: [f"if {ends[end]}:", f"    {end}"],
            lambda: ["out.append(t)", "rows.append(u*1.0)"],
            lambda: [f"v[{self._one('0', '2')}] = {number}*0.1", "v = np.tanh(v)"],
            lambda: ["u = v", "v = v*1.0", f"v += 0.1*{vector}"],
            lambda: ["w = v", "v *= 0.9"],
            lambda: [f"d = {number} - e", "h = t + d", "e = (h - t) - d", "t = h"],
            lambda: [f"if {i} == {self.random.randrange(12)}:", f"    {self._one(*rare)}"],
            lambda: [f"if {condition}:", *self._block(i, depth + 1)],
            lambda: [f"for j in range({inner}):", *self._block("j", depth + 1)],
            lambda: ["k = 0", f"while k < {self._one('3', f'{i}//3')}:", "    k += 1", *self._block("k", depth + 1)],
        ]
        if self.random.random() < self.arrays:
            return statement(self.random, i, lambda: self._number(i), lambda: self._vector(i))
        return self.random.choice(kinds[: len(kinds) if depth < 1 else -3])()

    def _block(self, i: str, depth: int) -> list[str]:
        return [f"    {line}" for _ in range(self.random.randint(1, 4)) for line in self._statement(i, depth)]

    def _text(self) -> str:
        start = self._one("0", "0.0", "x[2]")
        lines = [f"a, b, c, t, e, o = x[0], y[1], 0.5, {start}, 0.0, y[2]", "v = m[0]*1.0", "w = u = m[1]"]
        lines += [f"z = {self._one('np.zeros(N+2, x.dtype)', 'np.ones(N+2, x.dtype)')}"]
        lines += ["g = np.zeros((N+2, 3), x.dtype)", "q = y[:6].copy()", "d = 0.0"]
        lines += [f"def step(c, r): return {self._one(*STEPS)}"]
        lines += ["p, G, M = y[4:16]*1.0, x[:20].reshape(4, 5)*1.0, m + 0.1*np.outer(x[:3], y[:3])"]
        lines += ["out, rows = [], []"]
        for _ in range(self.random.choice([1, 1, 2])):
            lines += [f"for {self._one(*TRIPS)}:", *self._block("i", 0)]
            lines += self._one([], [], ["else:", "    t = t*0.5"])
        parts = ["t", "a", "b*c", "np.sum(v*w)", "np.sum(u)", "np.sum(z**2)", "np.sum(g)", "np.sum(q)", "np.sum(e)"]
        chosen = self.random.sample(parts, self.random.randint(1, 4))
        chosen += [
            each for each in ("np.sum(p*x[:12])", "np.sum(G**2)", "np.sum(M@v)") if self.random.random() < self.arrays
        ]
        lines += [f"r = {' + '.join(chosen)} + a*1.0"]
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

    def check(self, targets: Sequence[str] = ()) -> bool:
        """Hold the function rolled against itself unrolled; whether it had anything to roll.

        For each of ``targets`` its compiled value and gradient are held against Python's, and complex steps.
        """
        function, arguments = self._made()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                expected = function(*[np.copy(each) for each in arguments[:-1]], arguments[-1])
        except (IndexError, ValueError, TypeError):
            return False  # no function at all
        _, tape = yota.trace(function, *arguments)
        found = verify(roll.run(tape, WORTH))
        if not any(op.regions for op in found.ops):
            return False
        one, other = tape.play(*arguments), found.play(*arguments)
        assert (one == other or one != one) and type(one) is type(other), (one, other, self.text)
        if tape.types[tape.outputs[0]].differentiable:
            self._compare(tape, found, arguments)
            for target in targets:
                self._compile(function, arguments, expected, target)
        return True

    def _made(self) -> tuple[Any, tuple[Any, ...]]:
        """The function, and arguments for it."""
        name, source = f"<program {self.seed}>", np.random.default_rng(self.seed)
        linecache.cache[name] = len(self.text), None, [f"{line}\n" for line in self.text.split("\n")], name
        known: dict[str, Any] = {"np": np, "yota": yota, "K": source.normal(size=40), "H": source.normal(size=(40, 3))}
        known["P"] = [*source.permutation(N).tolist(), *[0] * 10]
        exec(compile(self.text, name, "exec"), known)
        dtype = np.float32 if self.seed % 5 == 0 else np.float64
        arrays = [source.normal(size=shape).astype(dtype) for shape in (N, N, (3, 3))]
        return known["f"], (*arrays, float(source.normal()))

    def _compile(self, function: Any, arguments: tuple[Any, ...], expected: Any, target: str) -> None:
        """Hold a compiled value and gradient against Python's value, and a complex step."""
        is_strict = target == "numpy" and self.seed % 2 == 0
        with mock.patch.multiple(roll, LONG=WORTH, COMPILED=WORTH):
            compiled = yota.value_and_grad(function, wrt=(0, 1, 2, 3), target=target, strict=is_strict)
            value, slopes = compiled(*arguments)
        wide = self.seed % 5 and "float32" not in self.text
        if is_strict:
            assert value == expected or expected != expected, (value, expected, self.text)
        tolerance = 1e-9 if wide else 2e-3
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance, err_msg=self.text)
        if wide:
            source = np.random.default_rng(self.seed + 1)
            steps = [source.normal(size=np.shape(each)) for each in arguments]
            moved = [each + 1e-30j * step for each, step in zip(arguments, steps, strict=True)]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                try:
                    slope = np.imag(function(*moved)) / 1e-30
                except (np.exceptions.ComplexWarning, TypeError):
                    return  # an array of constants takes no complex number
            products = [np.sum(each * step) for each, step in zip(slopes, steps, strict=True)]
            scale = 1 + sum(np.sum(np.abs(each)) for each in slopes)
            np.testing.assert_allclose(sum(products), slope, rtol=1e-8, atol=1e-9 * scale, err_msg=self.text)

    def _compare(self, tape: Tape, found: Tape, arguments: tuple[Any, ...]) -> None:
        tight = all(type.dtype.char not in "fF" for type in tape.types.values())
        for slopes in zip(_slopes(tape, arguments), _slopes(found, arguments), strict=True):
            scale = 1 + np.max(np.abs(slopes[0]), initial=0, where=np.isfinite(slopes[0]))
            np.testing.assert_allclose(*slopes, rtol=1e-9 if tight else 2e-3, atol=(1e-9 if tight else 2e-3) * scale)


def _slopes(tape: Tape, arguments: tuple[Any, ...]) -> list[Any]:
    """The gradient by the arguments, evaluated op by op."""
    wrt = [entry.variable for entry in tape.inputs[:4]]
    found = gradient_tape(tape, wrt, registry())
    played = found.tape.play(*arguments)
    values = iter(played[1:] if isinstance(played, tuple) else ())
    return [0.0 if each is None else next(values) for each in found.variables]


def main() -> int:
    """Run what the command line asks for; 1 if a program came out otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--step", type=int, default=1, help="every so manieth program")
    parser.add_argument("--targets", nargs="*", default=[])
    options = parser.parse_args()
    compiler._QUICK = 0  # in less time, to slower code
    rolled = failed = 0
    for seed in range(options.seed, options.seed + options.programs, options.step):
        try:
            rolled += Program(seed).check(options.targets)
        except Exception as error:  # noqa: BLE001  (a program that fails is reported, whatever fails)
            failed += 1
            print(f"program {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{rolled} programs with loops, {failed} came out otherwise")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
