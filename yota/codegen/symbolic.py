"""The symbolic stage: fewest operations for the value and all its partials together.

Products are flattened to monomials, common factors pulled out of sums, common products shared, signs folded into
subtractions. Sums keep the user's order and are never expanded or cancelled; sums of adjoints may be reordered.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from yota.codegen.count import elements
from yota.codegen.factor import Options, factor
from yota.codegen.forest import Forest
from yota.codegen.harvest import Harvest
from yota.codegen.horner import nest
from yota.codegen.plant import ARITHMETIC, plant
from yota.codegen.revise import revise
from yota.codegen.scheme import arrange, is_worth_it
from yota.codegen.sharing import share
from yota.codegen.table import Table
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.passes import cse, dce
from yota.passes.rewrite import Rewriting, protected, use_counts

__all__ = ["best", "forms", "is_form_enough", "nested", "optimise"]

Kind: TypeAlias = tuple[tuple[int, ...], "np.dtype[Any]"]

_LARGEST_EXPONENT = 64
_SMALL = 400
"""Number of ops up to which many ways of factoring are tried and the best is taken."""
_TINY = 120
"""Number of ops up to which these are tried after the long search too."""
_MEDIUM = 1000
"""Number of ops up to which the best is improved for as long as that helps."""
_LARGE = 4000
"""Number of ops past which only one is tried, so that time grows no faster than the tape."""

_THOROUGH = (
    Options(),
    Options(equal_outside=False),
    Options(shared=False),
    Options(shared=False, equal_outside=False),
    *(Options(seed=seed, equal_outside=False) for seed in range(1, 5)),
    Options(nest=True),
    *(Options(nest=True, seed=seed, equal_outside=seed % 2 == 0) for seed in range(1, 6)),
)
_SOME = (Options(nest=True, window=16), Options(window=8))
_ONE = (Options(nest=True, window=5),)
_QUICK = (Options(window=8), Options(window=8, equal_outside=False))
_WORTH_A_LOOK = 1.02
_MOST_REVISED = 2
"""Forms of one function that are compared in earnest."""
_revisions: deque[tuple[Tape, tuple[bool, int], Tape]] = deque(maxlen=_MOST_REVISED)
_finished: deque[tuple[Tape, tuple[bool, int]]] = deque(maxlen=_MOST_REVISED)
"""What was made last, of which nothing more is to be expected."""
_AGAIN = (Options(seed=1, equal_outside=False), Options(seed=2), Options(nest=True), Options(nest=True, seed=3))
_SCHEMES = 3
"""Ways to nest a sum that are differentiated, to take the best."""
_ROUNDS = 4
"""How often what was found is rewritten again, while that helps."""


def optimise(tape: Tape, *, strict: bool = False, values: int = 1, once: bool = False) -> Tape:
    """``tape`` with its elementwise arithmetic rewritten to fewer operations; never more than it had.

    Parameters
    ----------
    strict
        Leave what the value and the guards are computed from as it is.
    values
        How many of the outputs, the first ones, are values rather than derivatives.
    once
        Try one way only: the code will run so seldom that a search costs more than it saves.
    """
    if once:
        return _tried(tape, _ONE, strict, values)[0]
    asked = strict, values
    if any(how == asked and _is_same(known, tape) for known, how in list(_finished)):
        return tape
    revised = _revised(tape, strict, values) if _gains(tape, strict, values) else tape
    better = elements(revised) < elements(tape)
    rounds = [_AGAIN] if better and len(tape) > _TINY else _rounds(len(tape))
    found = _improved(revised if better else tape, rounds, strict, values)
    _finished.append((found, asked))
    return found


def _gains(tape: Tape, strict: bool, values: int) -> bool:
    """Whether a short tape takes fewer operations already when it is factored in a quick way."""
    return len(tape) <= _SMALL and elements(_tried(tape, _QUICK, strict, values)[0]) < elements(tape)


def _improved(tape: Tape, rounds: Iterable[tuple[Options, ...]], strict: bool, values: int) -> Tape:
    """The best of many ways, and of what further rounds make of it."""
    least = tape
    for choices in rounds:
        found = _tried(least, choices, strict, values)[0]
        if elements(found) >= elements(least):
            break
        least = found
    return least


def forms(tape: Tape, *, strict: bool = False, values: int = 1) -> list[Tape]:
    """``tape`` and ways to write it with fewer operations, the best first; the arguments are those of `optimise`."""
    return _tried(tape, _choices(len(tape)), strict, values)


def nested(tape: Tape) -> Iterator[Tape]:
    """Ways to write a scalar tape that is one long sum, nested so that its gradient takes few operations."""
    kept = protected(tape, len(tape.outputs))
    kinds = _kinds(tape, frozenset())
    forests = _forests(tape, kinds, kept)
    if len(tape) > _SMALL or len(forests) != 1 or not all(map(is_worth_it, forests.values())):
        return
    for seed in range(1, _SCHEMES + 1):
        found = {kind: planted.copy() for kind, planted in forests.items()}
        for forest in found.values():
            arrange(forest, seed)
        yield _harvested(tape, kinds, found)


def is_form_enough(tape: Tape) -> bool:
    """Whether the long search makes of this form of a function what it would of any: it is short, but not too short."""
    return _TINY < len(tape) <= _SMALL


def best(tapes: Sequence[Tape], *, values: int = 1, revised: int = _MOST_REVISED) -> int:
    """Which of several tapes that compute the same comes out with the fewest operations.

    All are factored in a quick way, and those that look best with some care, if more than one is to be ``revised``.
    """
    if len(tapes) == 1:
        return 0
    quick = [elements(_tried(tape, _QUICK, False, values)[0]) for tape in tapes]
    close = [number for number, count in enumerate(quick) if count <= _WORTH_A_LOOK * min(quick)]
    # What has been factored less before leaves more to be found.
    close.sort(key=lambda number: (quick[number], -len(tapes[number])))
    found = {number: quick[number] for number in sorted(close[:revised])}
    if len(found) > 1:
        found = {
            number: min(count, elements(_revised(tapes[number], False, values))) for number, count in found.items()
        }
    return min(found, key=found.__getitem__)


def _tried(tape: Tape, choices: tuple[Options, ...], strict: bool, values: int) -> list[Tape]:
    kept = protected(tape, values)
    kinds = _kinds(tape, kept if strict else frozenset())
    if not kinds:
        return [tape]
    forests = _forests(tape, kinds, kept)
    made: dict[Any, Tape] = {}
    found = [tape]
    for options in choices:
        factored = {kind: _factored(planted, options) for kind, planted in forests.items()}
        # Small tapes come out alike, whichever way is taken.
        looks = tuple(each.looks() for each in factored.values())
        if looks not in made:
            made[looks] = _harvested(tape, kinds, factored)
        found.append(made[looks])
    return sorted(found, key=elements)


def _rounds(length: int) -> Iterator[tuple[Options, ...]]:
    """What is tried first, and what again on the best of it."""
    yield _choices(length)
    if length <= _LARGE:
        yield from [_AGAIN] * (_ROUNDS if length <= _MEDIUM else 1)


def _choices(length: int) -> tuple[Options, ...]:
    if length <= _SMALL:
        return _THOROUGH
    return _SOME if length <= _LARGE else _ONE


def _kinds(tape: Tape, excluded: set[int] | frozenset[int]) -> dict[int, Kind]:
    """Shape and dtype of the arithmetic that each variable belongs to, for those that do."""
    found: dict[int, Kind] = {}
    for op in tape.ops:
        if op.name in ARITHMETIC and op.result not in excluded:
            type = tape.types[op.result]
            if (
                type.dtype.kind in "fc"
                and all(_fits(tape, operand, type) for operand in op.operands)
                and (op.name != "power" or _small_power(tape, op))
            ):
                found[op.result] = type.shape, type.dtype
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


def _forests(tape: Tape, kinds: dict[int, Kind], ordered: set[int]) -> dict[Kind, Forest]:
    uses = use_counts(tape)
    groups: dict[Kind, list[Op]] = {}
    roots = {*tape.outputs, *(guard.variable for guard in tape.guards)}
    for op in tape.ops:
        kind = kinds.get(op.result)
        roots.update(operand for operand in op.operands if kinds.get(operand, kind) != kind)
        if kind is None:
            roots.update(op.operands)
        else:
            groups.setdefault(kind, []).append(op)
    return {kind: plant(tape, ops, roots, ordered, uses) for kind, ops in groups.items()}


def _revised(tape: Tape, strict: bool, values: int) -> Tape:
    """A short tape with its scalar arithmetic factored well, and greedy choices taken back; the last ones are kept.

    Which form of a function is best is found in this way, and that one is wanted next.
    """
    asked = strict, values
    found = next((made for known, how, made in list(_revisions) if how == asked and _is_same(known, tape)), None)
    if found is None:
        found = _revision(tape, strict, values)
        _revisions.append((tape, asked, found))
    return found


def _is_same(one: Tape, other: Tape) -> bool:
    """Whether two tapes differ in nothing; their arrays are not looked into."""
    arrays = (one.constants, other.constants), (one.captured, other.captured)
    if any(left.keys() != right.keys() for left, right in arrays):
        return False
    if any(value is not right[variable] for left, right in arrays for variable, value in left.items()):
        return False
    parts = {each.name for each in fields(Tape)} - {"constants", "captured"}
    return all(getattr(one, part) == getattr(other, part) for part in parts)


def _revision(tape: Tape, strict: bool, values: int) -> Tape:
    if len(tape) > _SMALL:
        return tape
    kept = protected(tape, values)
    kinds = _kinds(tape, kept if strict else frozenset())
    forests = _forests(tape, kinds, kept)
    if all(each.is_array for each in forests.values()):
        return tape
    found = {
        kind: _factored(planted, _THOROUGH[0]) if planted.is_array else revise(planted)
        for kind, planted in forests.items()
    }
    return _harvested(tape, kinds, found)


def _factored(planted: Forest, options: Options) -> Forest:
    if options.nest:
        planted = planted.copy()
        nest(planted, options.seed)
    table = Table(planted, options.window)
    return table.forest(factor(table, table.planted, options))


def _harvested(tape: Tape, kinds: dict[int, Kind], forests: dict[Kind, Forest]) -> Tape:
    rewriting = Rewriting(tape)
    harvests = {kind: Harvest(rewriting, forest, share(forest)) for kind, forest in forests.items()}
    for op in tape.ops:
        rewriting.builder.location = op.location
        if op.result not in kinds:
            rewriting.copy(op)
            continue
        harvest = harvests[kinds[op.result]]
        if op.result in harvest.forest.roots:
            rewriting.bind(op.result, harvest.root(op.result))
    return dce.run(cse.run(rewriting.finish()))
