"""The symbolic stage: few operations for the value and all its partials together.

Products are flattened to monomials, common factors pulled out of sums, common products shared, signs folded into
subtractions. Sums keep the user's order and are never expanded or cancelled; sums of adjoints may be reordered.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from yota.ir.printing import elements
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.polynomials.exporting import Exporter
from yota.optimize.polynomials.factor import Options, factor
from yota.optimize.polynomials.horner import nested
from yota.optimize.polynomials.importing import ARITHMETIC, imported
from yota.optimize.polynomials.sharing import Products, share
from yota.optimize.polynomials.system import PolynomialSystem
from yota.optimize.polynomials.terms import Table
from yota.optimize.rewrite import Rewriting, cone, protected, use_counts

Kind: TypeAlias = tuple[tuple[int, ...], "np.dtype[Any]"]

_LARGEST_EXPONENT = 64
_PAIRS, _FEWEST, _MOST = 8000, 3, 8
"""Pairs of terms that the quick search looks at; and how many others it pairs each with, at least and at most."""


def optimise(tape: Tape, *, strict: bool = False, values: int = 1) -> Tape:
    """``tape`` with its elementwise arithmetic factored in one pass; never more operations than it had."""

    def quick(system: PolynomialSystem) -> Table:
        terms = sum([len(each.terms) for each in system.sums.values()])
        window = min(max(_PAIRS // max(terms, 1), _FEWEST), _MOST)
        return factored(system, Options(window=window, near=2, lone=False))

    return rewritten(tape, quick, strict=strict, values=values)


def rewritten(
    tape: Tape, rewrite: Callable[[PolynomialSystem], Table], *, strict: bool = False, values: int = 1
) -> Tape:
    """``tape`` with its arithmetic of each shape and dtype rewritten; itself if that saves nothing."""
    kept = protected(tape, values)
    kinds = _kinds(tape, kept if strict else _decisive(tape))
    if not kinds:
        return tape
    shared: dict[Kind, Products] = {}
    for kind, (system, ops) in _imported(tape, kinds, kept).items():
        products = share(rewrite(system))
        if system.is_array or products.least() < len(ops):
            shared[kind] = products
        else:
            for op in ops:
                del kinds[op.result]
    if not shared:
        return tape
    found = _exported(tape, kinds, shared)
    return found if elements(found) < elements(tape) else tape


def factored(system: PolynomialSystem, options: Options) -> Table:
    """The sums of ``system`` with common factors pulled out, and nested after Horner before or after."""
    table = Table(system, options.window, options.near)
    sums = nested(table, table.original) if options.nest else table.original
    found = factor(table, sums, options)
    table.sums = found if options.lone else nested(table, found)
    return table


def _decisive(tape: Tape) -> set[int]:
    """What branches and comparisons are computed from: rounded otherwise, they might decide otherwise than NumPy's."""
    compared = [op for op in tape.ops if tape.types[op.result].dtype.kind == "b"]
    return cone(tape, [*(guard.variable for guard in tape.guards), *(each for op in compared for each in op.operands)])


def _kinds(tape: Tape, excluded: set[int]) -> dict[int, Kind]:
    """Shape and dtype of the arithmetic that each variable belongs to, for those that do."""
    found: dict[int, Kind] = {}
    types, known, same = tape.types, dict[Kind, Kind](), dict[int, Kind]()
    for op in tape.ops:
        name = op.primitive.name
        if name in ARITHMETIC and op.result not in excluded:
            type = types[op.result]
            kind = same.get(id(type))
            if kind is None:
                kind = type.shape, type.dtype
                kind = same[id(type)] = known.setdefault(kind, kind)
            if kind[1].kind not in "fc" or (name == "power" and not _small_power(tape, op)):
                continue
            for each in op.operands:
                if types[each] is not type and same.get(id(types[each])) is not kind and not _fits(tape, each, type):
                    break
            else:
                found[op.result] = kind
    return found


def _fits(tape: Tape, variable: int, type: TensorType) -> bool:
    """Whether an operand has the result's shape and dtype, or is a scalar that gives way to it."""
    found = tape.types[variable]
    if found.shape not in ((), type.shape):
        return False
    if found.dtype == type.dtype:
        return True
    if variable in tape.constants and not found.shape:
        # The type of the result says already that this constant does not change it.
        value = tape.constants[variable]
        return found.dtype.kind in "iuf" and math.isfinite(value) and float(value) == value
    return found.weak and found.dtype.kind == type.dtype.kind


def _small_power(tape: Tape, op: Op) -> bool:
    value = tape.constants.get(op.operands[1])
    if (
        value is None
        or isinstance(value, (np.ndarray, complex, np.complexfloating))
        or tape.types[op.operands[0]].shape != tape.types[op.result].shape
    ):
        return False
    return bool(1 <= value <= _LARGEST_EXPONENT and value == int(value))


def _imported(tape: Tape, kinds: dict[int, Kind], ordered: set[int]) -> dict[Kind, tuple[PolynomialSystem, list[Op]]]:
    """The polynomials of each kind, and the ops that they were read from."""
    uses = use_counts(tape)
    groups: dict[Kind, list[Op]] = {}
    roots = {*tape.outputs, *(guard.variable for guard in tape.guards)}
    for op in tape.ops:
        kind = kinds.get(op.result)
        if kind is None:
            roots.update(op.operands)
        else:
            for operand in op.operands:
                if operand in kinds and kinds[operand] is not kind:
                    roots.add(operand)
            groups.setdefault(kind, []).append(op)
    return {kind: (imported(tape, ops, roots, ordered, uses), ops) for kind, ops in groups.items()}


def _exported(tape: Tape, kinds: dict[int, Kind], products: dict[Kind, Products]) -> Tape:
    rewriting = Rewriting(tape)
    exporters = {kind: Exporter(rewriting, each, TensorType(kind[1], kind[0])) for kind, each in products.items()}
    for op in tape.ops:
        rewriting.builder.location = op.location
        if op.result not in kinds:
            rewriting.copy(op)
            continue
        exporter = exporters[kinds[op.result]]
        if op.result in exporter.products.roots:
            rewriting.bind(op.result, exporter.root(op.result))
    return rewriting.finish()


_log = logging.getLogger("yota.search")
_WAYS = (Options(), Options(nest=True))
"""How a function is factored before it is differentiated: its derivatives come out in other forms, too."""
_SHORT = 1000
"""Ops of a function up to which both are tried, and not the last alone."""
_ROUNDS, _LONG = 8, 2000
"""How often a tape is factored again at most, and ops past which it is not."""


def forms(tape: Tape) -> list[Tape]:
    """A tape of values, and the same factored in several ways."""
    found, values = [tape], len(tape.outputs)
    for options in _WAYS if len(tape) <= _SHORT else _WAYS[1:]:
        made = _again(rewritten(tape, partial(factored, options=options), values=values), values=values)
        if all(made.ops != each.ops for each in found):
            found.append(made)
    return found


def search(tapes: Sequence[Tape], *, strict: bool = False, values: int = 1) -> tuple[int, Tape]:
    """The shortest form that is found of any of several tapes that compute the same, and the number of that tape."""
    quick = [optimise(tape, strict=strict, values=values) for tape in tapes]
    again = partial(_again, strict=strict, values=values)
    found = [min(one, again(one), again(tape), key=elements) for one, tape in zip(quick, tapes, strict=True)]
    best = min(range(len(found)), key=lambda number: elements(found[number]))
    _log.info("%s: %d operations, %d after a long search", tapes[0].name, elements(quick[0]), elements(found[best]))
    return best, found[best]


def _again(tape: Tape, *, strict: bool = False, values: int) -> Tape:
    """``tape`` factored for as long as that helps: what was factored is read in other terms."""
    for _ in range(_ROUNDS if len(tape) <= _LONG else 0):
        found = rewritten(tape, partial(factored, options=Options()), strict=strict, values=values)
        if found is tape:
            break
        tape = found
    return tape
