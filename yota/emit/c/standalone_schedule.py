"""The loops of a tape in their order, for functions that have no library to fall back on."""

from __future__ import annotations

from functools import partial

from yota.emit.c.dialect import is_known_op
from yota.emit.language import Language
from yota.errors import CodegenError
from yota.ir.tape import Tape
from yota.optimize.dce import run as without_dead
from yota.optimize.polynomials import symbolic
from yota.optimize.rewrite import cone
from yota.schedule.nests.contractions import as_counts, as_loops, as_sums
from yota.schedule.nests.groups import GATHERS, Schedule, schedule
from yota.schedule.nests.index_patterns import from_sizes, index_arrays, is_inside, normalised, with_places
from yota.schedule.nests.scatter_forms import in_place, without_strides


def standalone_schedule(tape: Tape, language: Language, strict: bool) -> Schedule:
    """The loops of a tape in their order."""
    tape = without_strides(symbolic.optimise(tape, strict=strict))
    # A strict value is never computed by a loop.
    tape = as_loops(tape, cone(tape, tape.outputs[:1]) if strict else ())
    tape = normalised(as_counts(as_sums(tape)))
    # What is made from sizes is inside wherever sizes will do.
    tape = in_place(without_dead(with_places(tape, from_sizes(tape))))
    for entry in tape.inputs:
        if tape.types[entry.variable].size == 0:
            raise CodegenError(f"{entry.name} has no elements, and {language.name} has no arrays without any")
    made, definition = from_sizes(tape), tape.definitions().get
    places = {
        each
        for op in tape.ops
        for each, extent in index_arrays(tape, op)
        if each in made or is_inside(definition, tape.types, each, extent)
    }
    known = partial(is_known_op, language=language)
    return schedule(tape, known=known, looks=False, gathers=GATHERS, places=frozenset(places))
