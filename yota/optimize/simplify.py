"""Pass `simplify`: local algebra on single ops; the tables of rules are in `arithmetic`, `layout` and `contraction`."""

from __future__ import annotations

from yota.ir.tape import Tape
from yota.optimize import simplify_arithmetic as arithmetic
from yota.optimize import simplify_contractions as contraction
from yota.optimize import simplify_layout as layout
from yota.optimize import simplify_reads as reading
from yota.optimize.array_writes import Chains
from yota.optimize.case import Case, Rule
from yota.optimize.rewrite import Rewriting, protected, use_counts

EXACT: dict[str, tuple[Rule, ...]] = {**arithmetic.EXACT, **layout.EXACT, **reading.EXACT}
"""Rules whose result has the same bits: for scalars they also hold where the value is computed in strict mode."""

_TABLES = (arithmetic.LOOSE, contraction.LOOSE, reading.LOOSE)
LOOSE: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}
"""Rules that may change the last bit."""

_DEEPEST = 8


class Simplifier:
    """Applies rules to one op after the other; what a rule emits is simplified in turn."""

    def __init__(self, tape: Tape) -> None:
        self.rewriting = Rewriting(tape)
        self.uses: dict[int, int] = {}
        self.writes = Chains()
        self.loose, self.derived = True, False
        self._depth = 0

    def is_settled(self, name: str, operands: tuple[int, ...]) -> bool:
        """Whether no rule fits an op on scalars, as can be told from what its operands are."""
        looked_for = arithmetic.LOOKED_FOR.get(name)
        if looked_for is None or (len(operands) > 1 and operands[0] == operands[1]):
            return False
        builder, uses = self.rewriting.builder, self.uses
        for operand in operands:
            if operand in builder.constants:
                beside = arithmetic.BESIDE_NUMBERS.get(name)
                if beside is None or not arithmetic.is_ordinary(builder.constants[operand]):
                    return False
                looked_for = beside
        for operand in operands:
            op = builder.definition(operand)
            if op is not None and op.primitive.name in looked_for and (uses.get(operand, 0) <= 1 or name == "negative"):
                return False
        return True

    def apply(self, case: Case) -> int:
        """What stands for ``case``: what the first fitting rule gives, or the op itself."""
        if self._depth < _DEEPEST:
            self._depth += 1
            try:
                found = self._first(case)
            finally:
                self._depth -= 1
            if found is not None:
                return found
        return self.rewriting.emit(case.primitive, case.operands, case.static, case.type)

    def _first(self, case: Case) -> int | None:
        if not self.loose and case.type.shape:
            # How an array lies in memory decides the order of the sums over it, so even a product by one must stay.
            return None
        name = case.primitive.name
        for rule in EXACT.get(name, ()):
            found = rule(case)
            if found is not None:
                return found
        if not self.loose:
            return None
        for rule in LOOSE.get(name, ()):
            found = rule(case)
            if found is not None:
                return found
        return layout.unbroadcast(case) if case.type.shape and case.primitive.elementwise else None


def run(tape: Tape, *, strict: bool = False, values: int | None = 1) -> Tape:
    """Simplify every op; with ``strict``, the value only loses ops on scalars that do nothing."""
    simplifier = Simplifier(tape)
    rewriting = simplifier.rewriting
    value = protected(tape, values)
    kept = value if strict else set()
    counts = use_counts(tape)
    for entry in tape.inputs:
        simplifier.uses[rewriting[entry.variable]] = counts.get(entry.variable, 0)
    for op in tape.ops:
        rewriting.builder.location = op.location
        operands, type = rewriting.operands(op), tape.types[op.result]
        if not type.shape and simplifier.is_settled(op.primitive.name, operands):
            found = rewriting.builder.emit(op.primitive, operands, op.static, type)
        else:
            simplifier.loose, simplifier.derived = op.result not in kept, op.result not in value
            found = simplifier.apply(Case(simplifier, op.primitive, operands, op.static, type))
        rewriting.bind(op.result, found)
        simplifier.uses[found] = simplifier.uses.get(found, 0) + counts.get(op.result, 0)
    return rewriting.finish()
