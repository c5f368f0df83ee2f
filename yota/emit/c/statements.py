"""What C functions that stand alone do besides loops: checks, memory, sorting, and what comes from sizes."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from yota.emit.c.dialect import is_known
from yota.emit.c.lines import Needs
from yota.emit.language import Language, filled
from yota.emit.tree import Assign, Loop, Scope, Statement
from yota.errors import CodegenError
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap, Positions
from yota.ir.tape import Guard, Op, Tape


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a function takes from sizes.

    on_stack: bytes of an intermediate array that may stand on the stack.
    may_be_none: whether a number of elements is 0 at some sizes.
    """

    names: tuple[str, ...] = ()
    on_stack: int = 2_048
    may_be_none: Callable[[int], bool] = lambda count: False


def is_sort(tape: Tape, op: Op) -> bool:
    """Whether an op finds the places of real numbers along an axis from the smallest on."""
    type = tape.types[op.operands[0]] if op.semantics.positions == Positions.SORTED else None
    return type is not None and bool(type.shape) and is_known(type.dtype) and type.dtype.kind != "c"


def is_called(tape: Tape, op: Op) -> bool:
    """Whether an op is one call of a function of the file: places of extrema, a search, a convolution."""
    types = [tape.types[each] for each in op.operands]
    if not all(is_known(type.dtype) and type.dtype.kind != "c" and type.dtype == types[0].dtype for type in types):
        return False
    if op.primitive in _SLIDING:
        return types[0].dtype.kind == "f"
    return bool(types[0].shape) and op.semantics.positions in (Positions.EXTREME, Positions.BETWEEN)


_EXTREMES = {primitive("argmax"): "largest_places", primitive("argmin"): "smallest_places"}
_SLIDING = {primitive("convolve"): "convolved", primitive("correlate"): "correlated"}


def calling(tape: Tape, op: Op, texts: Sequence[str], target: str, needs: Needs) -> list[str]:
    """The call of an op of `is_called`; ``texts`` and ``target`` are pointers."""
    types = [tape.types[each] for each in op.operands]
    sizes: Sequence[int] = [type.size for type in types]
    if op.primitive in _EXTREMES:
        axis = op.keyword("axis")
        shape, axis = (types[0].shape, axis % types[0].ndim) if axis is not None else ((types[0].size,), 0)
        name, sizes = _EXTREMES[op.primitive], (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    else:
        found = _SLIDING.get(op.primitive)
        name = found or ("places_right_of" if op.keyword("side") == "right" else "places_left_of")
    return filled(f"{called(name, tape, op, needs)}({', '.join([target, *texts, *map(str, sizes)])});")


def is_ordered(tape: Tape, op: Op) -> bool:
    """Whether an op is done here."""
    if op.access == AccessMap.WRITE and op.keyword("index") == (GATHER,):
        return all(is_known(tape.types[each].dtype) for each in (*op.operands, op.result))
    return is_sort(tape, op)


def sorting(tape: Tape, op: Op, source: str, target: str, spare: str, needs: Needs) -> list[str]:
    """The call that puts the places of ``source`` in order; ``spare`` is memory for twice as many as an axis has."""
    type, axis = tape.types[op.operands[0]], op.keyword("axis")
    name = "sorted_places" if type.dtype.kind == "f" else "whole_sorted_places"
    function = called(name, tape, op, needs)
    axis %= type.ndim
    rows, step = math.prod(type.shape[:axis]), math.prod(type.shape[axis + 1 :])
    given = ", ".join((target, source, str(rows), str(type.shape[axis]), str(step), spare))
    return filled(f"{function}({given});")


def writing(tape: Tape, op: Op, texts: Sequence[str], target: str, language: Language, counter: str) -> Statement:
    """The statement that writes a value at places, of which the last one stays; ``texts`` are those of both."""
    value, places = texts
    values, positions = (tape.types[each] for each in op.operands[1:])
    if not positions.shape:
        return Assign(language.element(target, places), value)
    if values.shape:
        value = language.element(value, "0" if values.shape == (1,) else counter)
    write = Assign(language.element(target, language.element(places, counter)), value)
    return Scope((Loop(counter, "0", str(positions.size), (write,)),))


NO_MEMORY = -1
"""What a function returns if there is no memory for its intermediate arrays."""
WRONG_SIZES = -2
"""What a function returns if sizes are too small for what it does."""
OUT_OF_BOUNDS = -3
"""What a function returns if an array of indices has one that is out of bounds for its axis."""


def framed(own: Sequence[str], heap: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Statements between getting memory and giving it back."""
    if not heap and not any(line.lstrip() == "goto done;" for line in lines):
        return [*own, *lines, "return 0;"]
    found = [*own, f"int status = {NO_MEMORY if heap else 0};"]
    if heap:
        found += filled(f"if ({' || '.join(f'{name} == NULL' for name in heap)})")
        found += ["    goto done;", "status = 0;"]
    return [*found, *lines, "", "done:", *(f"free({name});" for name in heap), "return status;"]


def failed(tape: Tape, guard: Guard, text: str, language: Language) -> str:
    """The condition under which a decision would be another one."""
    expected, type = guard.expected, tape.types[guard.variable]
    if type.shape:
        raise CodegenError(
            f"the function decides by the values of a whole array, which generated {language.name} does not check"
        )
    if guard.kind == "bool" or isinstance(expected, (bool, np.bool_)):
        if type.dtype.kind == "b":
            return language.applied("logical_not", type.dtype, text) if expected else text
        zero = language.literal(0, type.dtype)
        return language.applied("equal" if expected else "not_equal", type.dtype, text, zero)
    if expected != expected:
        return language.applied("equal", type.dtype, text, text)
    value = text
    if guard.kind == "int" and type.dtype.kind == "f":
        value = language.applied("trunc", type.dtype, text)
    return language.applied("not_equal", type.dtype, value, language.literal(expected, type.dtype))


def called(name: str, tape: Tape, op: Op, needs: Needs) -> str:
    """The inline function that does an op, which the file has then."""
    dtype = tape.types[op.operands[0]].dtype
    found = needs.language.part(name, dtype)
    if found is None:
        raise CodegenError(refusal(tape, op, needs.language))
    needs.parts.add((name, dtype.name))
    return found


def refusal(tape: Tape, op: Op, language: Language) -> str:
    """Why an op is refused, where it stands, and what to do instead."""
    target = op.primitive.target or op.name
    target = op.name if target.startswith("yota.") else target
    types = ", ".join(str(tape.types[operand]) for operand in op.operands)
    place = op.location
    line = linecache.getline(place.filename, place.line).strip() if place else ""
    where = f"\n  {place}: {line}" if place and line else ""
    needs = f" {language['needs']}" if language["needs"] else ""
    return (
        f"{target} of {types} cannot be said in {language.name}{needs}{where}\n"
        'Generate a module for NumPy instead (target="numpy"), or compute this outside and pass it as an argument.'
    )
