"""Arithmetic of one shape and dtype, imported from a tape as a system of polynomials."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from yota.ir.tape import Op, Tape
from yota.optimize.polynomials.system import (
    Monomial,
    PolynomialSystem,
    Sum,
    Term,
    common,
    multiply,
    quotient,
    same_scale,
)

ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "negative", "square", "power"})

_MOST_FACTORS = 12
_MOST_SHARED_FACTORS = 5
_LARGEST_EXPONENT = 64


class _Importer:
    """Reads one kind of arithmetic off a tape."""

    def __init__(self, tape: Tape, ordered: set[int], uses: dict[int, int], is_array: bool) -> None:
        self.tape = tape
        self.ordered = ordered
        self.uses = uses
        self.system = PolynomialSystem(is_array=is_array)
        self.terms: dict[int, Term] = {}
        self._atoms: dict[int, int] = {}
        self._quotients: dict[tuple[Term, Term], int] = {}
        self._sole: set[int] = set()

    def add(self, op: Op) -> None:
        name = op.primitive.name
        found = self.terms[op.result] = _READERS[name](self, op)
        if name in ("add", "subtract") or (self._sole and len(found[1]) == 1 and self._is_sole(op, found)):
            self._sole.add(op.result)

    def _is_sole(self, op: Op, term: Term) -> bool:
        """Whether all that reads the sum in ``term`` reads it through this op: no other scaled it in between."""
        sole, uses = self._sole, self.uses
        found = [operand for operand in op.operands if operand in sole and uses[operand] == 1]
        return bool(found) and any(self.terms[operand][1] == term[1] for operand in found)

    def term(self, variable: int) -> Term:
        found = self.terms.get(variable)
        if found is not None:
            return found
        value = self.tape.constants.get(variable)
        if value is not None and not isinstance(value, (np.ndarray, complex, np.complexfloating)):
            number = float(value)
            if number == value and math.isfinite(number):
                found = self.terms[variable] = number, ()
                return found
        found = self.terms[variable] = self._opaque(variable)
        return found

    def _opaque(self, variable: int) -> Term:
        atom = self._atoms.get(variable)
        if atom is None:
            atom = self._atoms[variable] = self.system.atom()
            self.system.variables[atom] = variable
            if self.system.is_array and not self.tape.types[variable].shape:
                self.system.scalars.add(atom)
        return 1.0, ((atom, 1),)

    def product(self, left: int, right: int) -> Term:
        first, second = self.factor(left), self.factor(right)
        one, other = first[0], second[0]
        fits = one == 1.0 or other == 1.0 or same_scale(one, other)
        if not fits or len(first[1]) + len(second[1]) > _MOST_FACTORS:
            first, second = self.whole(left, first), self.whole(right, second)
        return first[0] * second[0], multiply(first[1], second[1])

    def factor(self, variable: int) -> Term:
        """An operand of a product; a long product that others read too stays whole."""
        found = self.terms.get(variable) or self.term(variable)
        if len(found[1]) > _MOST_SHARED_FACTORS and self.uses.get(variable, 0) > 1:
            return self.whole(variable, found)
        return found

    def whole(self, variable: int, term: Term) -> Term:
        """The operand as an atom of its own."""
        if not term[1] or (term[0] == 1.0 and len(term[1]) == 1):
            return term
        self.system.roots[variable] = term
        return self._opaque(variable)

    def sum(self, op: Op) -> Term:
        left, right = op.operands
        sign = -1.0 if op.primitive.name == "subtract" else 1.0
        first, second = self.term(left), self.term(right)
        ordered = op.result in self.ordered
        before = self._mergeable(left, first, ordered, leading=True)
        after = self._mergeable(right, (sign * second[0], second[1]), ordered, leading=False)
        if before is None:
            before = [first]
        if after is None:
            after = [(sign * second[0], second[1])]
        if not ordered and len(after) > len(before):
            before, after = after, before
        before.extend(after)
        atom = self.system.atom()
        self.system.sums[atom] = Sum(before, ordered)
        return 1.0, ((atom, 1),)

    def _mergeable(self, variable: int, term: Term, ordered: bool, leading: bool) -> list[Term | None] | None:
        """Terms of an operand that is a sum which nobody else reads."""
        coefficient, monomial = term
        if variable not in self._sole or len(monomial) != 1 or monomial[0][1] != 1 or abs(coefficient) != 1.0:
            return None
        inner = self.system.sums.get(monomial[0][0])
        if inner is None or self.uses.get(variable, 0) != 1:
            return None
        if inner.ordered != ordered or (ordered and not (leading and coefficient == 1.0)):
            return None
        # A long sum that grows term by term would be there at every length.
        del self.system.sums[monomial[0][0]]
        if coefficient == 1.0:
            return inner.terms
        return [(-each[0], each[1]) for each in inner.alive()]

    def ratio(self, op: Op) -> Term:
        """A quotient; signs and powers of two go outside, for which no digit changes."""
        top, bottom = (self.term(operand) for operand in op.operands)
        over, under = _outside(top), _outside(bottom)
        sign = over / under
        pair = (top[0] / over, top[1]), (bottom[0] / under, bottom[1])
        atom = self._quotients.get(pair)
        if atom is None:
            atom = self._quotients[pair] = self.system.atom()
            self.system.quotients[atom] = pair
            if self.system.is_array and self.system.is_scalar(top[1]) and self.system.is_scalar(bottom[1]):
                self.system.scalars.add(atom)
        return sign, ((atom, 1),)

    def power(self, op: Op) -> Term:
        coefficient, monomial = self.term(op.operands[0])
        exponent = int(self.tape.constants[op.operands[1]])
        raised = coefficient**exponent if abs(coefficient) == 1.0 else None
        if raised is None or len(monomial) * exponent > _LARGEST_EXPONENT:
            coefficient, monomial = self.whole(op.operands[0], (coefficient, monomial))
            raised = coefficient**exponent
        return raised, tuple((atom, each * exponent) for atom, each in monomial)


def _outside(term: Term) -> float:
    """The part of a coefficient that leaves a quotient: its sign, and all of it if it is a modest power of two."""
    fraction, exponent = math.frexp(term[0])
    if abs(fraction) == 0.5 and abs(exponent) < _LARGEST_EXPONENT and term[1]:
        return term[0]
    return math.copysign(1.0, term[0])


def _negative(importer: _Importer, op: Op) -> Term:
    coefficient, monomial = importer.term(op.operands[0])
    return -coefficient, monomial


def _product(importer: _Importer, op: Op) -> Term:
    return importer.product(op.operands[0], op.operands[-1])


_READERS = {
    "add": _Importer.sum,
    "subtract": _Importer.sum,
    "multiply": _product,
    "square": _product,
    "negative": _negative,
    "divide": _Importer.ratio,
    "power": _Importer.power,
}


def imported(
    tape: Tape, ops: Iterable[Op], roots: set[int], ordered: set[int], uses: dict[int, int]
) -> PolynomialSystem:
    """The polynomials of ``ops``, all of one shape and dtype; sums of ``ordered`` variables keep the order of terms."""
    ops = list(ops)
    importer = _Importer(tape, ordered, uses, bool(tape.types[ops[0].result].shape))
    for op in ops:
        importer.add(op)
    system = importer.system
    for op in ops:
        if op.result in roots:
            system.roots[op.result] = importer.terms[op.result]
    _share_quotients(system)
    for each in system.sums.values():
        terms = each.alive()
        if len({monomial for _, monomial in terms}) < len(terms):
            each.terms = [*_merged(terms, each.ordered)]
    return system


def _share_quotients(system: PolynomialSystem) -> None:
    """Write quotients as products with others of the same denominator."""
    found = _as_products(system)
    if not found:
        return
    for atom in found:
        del system.quotients[atom]

    def written(term: Term) -> Term:
        coefficient, monomial = term
        kept = tuple([each for each in monomial if each[0] not in found])
        for atom, exponent in monomial if len(kept) < len(monomial) else ():
            if atom in found:
                scale, factors = written(found[atom])
                coefficient *= scale**exponent
                kept = multiply(kept, tuple([(each, times * exponent) for each, times in factors]))
        return coefficient, kept

    system.quotients.update({atom: (written(a), written(b)) for atom, (a, b) in system.quotients.items()})
    system.roots.update({variable: written(term) for variable, term in system.roots.items()})
    for each in system.sums.values():
        each.terms = [written(term) for term in each.alive()]


def _as_products(system: PolynomialSystem) -> dict[int, Term]:
    """Products that are equal to quotients; a factor of each is a quotient whose numerator is a part of its own."""
    groups: dict[Term, list[int]] = {}
    for atom, (_, bottom) in system.quotients.items():
        groups.setdefault(bottom, []).append(atom)
    found: dict[int, Term] = {}
    for atoms in groups.values():
        atoms.sort(key=lambda atom: -len(system.quotients[atom][0][1]))
        for place, atom in enumerate(atoms):
            coefficient, monomial = system.quotients[atom][0]
            for other in atoms[place + 1 :]:
                scale, part = system.quotients[other][0]
                if part and scale in (1.0, coefficient) and common(monomial, part) == part:
                    found[atom] = coefficient / scale, multiply(quotient(monomial, part), ((other, 1),))
                    break
    return found


def _merged(terms: list[Term], ordered: bool) -> list[Term]:
    """Equal monomials with coefficients of one sign become one term, where the first stood; nothing ever cancels.

    Of the user's own sums only products are pulled together: what he adds twice as it is stays.
    """
    totals: dict[tuple[bool, Monomial, int], float] = {}
    for place, (coefficient, monomial) in enumerate(terms):
        alone = ordered and sum(exponent for _, exponent in monomial) < 2
        key = (math.copysign(1.0, coefficient) < 0, monomial, place if alone else -1)
        totals[key] = totals.get(key, 0.0) + coefficient
    return [(coefficient, monomial) for (_, monomial, _), coefficient in totals.items()]
