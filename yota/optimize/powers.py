"""Pass `powers`: of two powers of one base whose exponents differ by 1, one is computed from the other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from yota.ir.tape import Op, Tape
from yota.optimize.rewrite import Rewriting, protected


def run(tape: Tape, *, strict: bool = False, values: int | None = 1) -> Tape:
    """``tape`` with powers in terms of others: ``x**2.5`` is ``x * x**1.5``, and ``x**-1.5`` is ``x**-0.5 / abs(x)``.

    That holds for 0 and infinities too; exponents between 0 and 1 are left alone, for which it does not. With
    ``strict`` the value stays. For ``values`` see `yota.optimize.pipeline.run`.
    """
    powers: dict[int, dict[float, Op]] = {}
    for op in tape.ops:
        if op.primitive.name == "power" and (exponent := _exponent(tape, op)) is not None:
            powers.setdefault(op.operands[0], {}).setdefault(exponent, op)
    others = {
        op.result: (exponent, known[lower])
        for known in powers.values()
        for exponent, op in known.items()
        if (lower := _source(exponent, known)) is not None
    }
    for kept in protected(tape, values) if strict else ():
        others.pop(kept, None)
    return _Powers(tape, others).run() if others else tape


def _exponent(tape: Tape, op: Op) -> float | None:
    """The exponent of a real power that is no integer."""
    value, type = tape.constants.get(op.operands[1]), tape.types[op.result]
    if type.dtype.kind != "f" or tape.types[op.operands[0]] != type or not isinstance(value, (float, np.floating)):
        return None
    exponent = float(type.dtype.type(value))
    return None if exponent.is_integer() else exponent


def _source(exponent: float, known: Iterable[float]) -> float | None:
    """The exponent of the power that a power is computed from."""
    if exponent > 1:
        return next((each for each in known if each == exponent - 1), None)
    return next((each for each in known if each < 0 and each - 1 == exponent), None)


class _Powers:
    """Writes the powers of a tape: by their variables, exponents and the ops of those that they are computed from."""

    def __init__(self, tape: Tape, others: dict[int, tuple[float, Op]]) -> None:
        self.tape, self.others = tape, others
        self.sources = {op.result for _, op in others.values()}
        self.rewriting = Rewriting(tape)
        self.made: dict[int, int] = {}

    def run(self) -> Tape:
        for op in self.tape.ops:
            self.rewriting.builder.location = op.location
            if op.result in self.others or op.result in self.sources:
                self.rewriting.bind(op.result, self._power(op))
            else:
                self.rewriting.copy(op)
        return self.rewriting.finish()

    def _power(self, op: Op) -> int:
        """The power of an op, which is computed once."""
        found = self.made.get(op.result)
        if found is None:
            rewriting, type = self.rewriting, self.tape.types[op.result]
            if op.result not in self.others:
                found = rewriting.emit(op.primitive, rewriting.operands(op), op.static, type)
            else:
                exponent, other = self.others[op.result]
                base, power = rewriting[op.operands[0]], self._power(other)
                if exponent > 0:
                    found = rewriting.emit("multiply", (base, power), (), type)
                else:
                    found = rewriting.emit("divide", (power, rewriting.emit("absolute", (base,), (), type)), (), type)
            self.made[op.result] = found
        return found
