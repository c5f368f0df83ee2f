"""Pass `inline`: primitives that are defined by their rule's primal alone are replaced by their bodies.

So are functions that have a form in parts which are on the tape anyway, as a value and its slope have one exponential
in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from yota.errors import TapeError
from yota.ir.primitive import Primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Keywords, Op, Tape
from yota.ir.types import TensorType
from yota.optimize import cse
from yota.optimize.rewrite import Rewriting

_DEEPEST = 100
_SHORT = 17
"""So many ops of a form go through memory in less time than the calls that they save."""


def run(tape: Tape, *, strict: bool = False, compiled: bool = False, alone: bool = False) -> Tape:
    """Expand every op whose primitive has a body, and, unless ``strict``, those that share parts with others.

    Where the code is not ``compiled``, each op of a form goes through memory: long forms are left out. Otherwise loops
    compute each function of SciPy's that has a form in NumPy's. Code that runs ``alone`` has no functions of Python's,
    so each of the user's that has a form is computed by it too.
    """
    if not strict and any(_is_plain(op.primitive) for op in tape.ops):
        # What their bodies compute may be parts of others' forms.
        tape = _expanded(tape, set(), _is_plain)
    sharing = set() if strict else _sharing(tape, math.inf if compiled else _SHORT)
    if alone or (compiled and not strict):
        sharing |= _in_numpy(tape)
    if alone:
        sharing |= {op.result for op in tape.ops if op.primitive.shared is not None and _is_users(op.primitive)}
    if not sharing and all(op.primitive.expand is None for op in tape.ops):
        return tape
    return _expanded(tape, sharing, lambda primitive: primitive.expand is not None)


def _expanded(tape: Tape, sharing: Collection[int], wanted: Callable[[Primitive], bool]) -> Tape:
    """Write the bodies of primitives that are ``wanted``, and the forms of the results that are ``sharing``."""
    rewriting = Rewriting(tape)
    emitter = _Inliner(rewriting, wanted)
    several: dict[int, tuple[int, ...]] = {}
    for op in tape.ops:
        if op.access == AccessMap.ITEM and op.operands[0] in several:
            found = several[op.operands[0]][op.keyword("index")]
            rewriting.bind(op.result, _of_type(rewriting, found, tape.types[op.result]))
            continue
        rewriting.builder.location = op.location
        if op.result in sharing and op.primitive.shared is not None:
            found = op.primitive.shared.value(emitter, rewriting.operands(op))
            rewriting.bind(op.result, _of_type(rewriting, found, tape.types[op.result]))
            continue
        if not wanted(op.primitive):
            rewriting.copy(op)
            continue
        body = emitter.emit(op.primitive, rewriting.operands(op), op.static)
        if isinstance(body, tuple):
            several[op.result] = body
        else:
            rewriting.bind(op.result, _of_type(rewriting, body, tape.types[op.result]))
    return rewriting.finish()


def _is_plain(primitive: Primitive) -> bool:
    """Whether a primitive has a body, and no form that may be better."""
    return primitive.expand is not None and primitive.shared is None


def _is_users(primitive: Primitive) -> bool:
    return primitive.target is not None and not primitive.target.startswith(("numpy.", "scipy."))


def _in_numpy(tape: Tape) -> set[int]:
    """Results of SciPy's functions that have a form in functions of NumPy's alone."""
    builder, found = tape.builder(), set[int]()
    for op in tape.ops:
        shared = op.primitive.shared
        if shared is not None and (op.primitive.target or "").startswith("scipy.") and _is_real(tape, op):
            before = len(builder.ops)
            shared.value(builder, op.operands)
            if all((each.primitive.target or "").startswith("numpy.") for each in builder.ops[before:]):
                found.add(op.result)
    return found


def _sharing(tape: Tape, longest: float) -> set[int]:
    """Results of the ops one of whose parts another op computes too."""
    found = [(op, op.primitive.shared) for op in tape.ops if op.primitive.shared is not None and _is_real(tape, op)]
    if not found:
        return set()
    builder = tape.builder()
    owners: list[int] = []
    roots: list[int] = []
    lengths: dict[tuple[Primitive, tuple[TensorType, ...]], int] = {}
    for op, shared in found:
        kind = op.primitive, tuple([tape.types[operand] for operand in op.operands])
        if kind not in lengths and longest < math.inf:
            before = len(builder.ops)
            shared.value(builder, op.operands)
            lengths[kind] = len(builder.ops) - before
        if lengths.get(kind, 0) > longest:
            continue
        parts = [part for part in shared.parts(builder, op.operands) if part not in op.operands]
        owners += [op.result] * len(parts)
        roots += parts
    merged = cse.run(builder.finish([*tape.outputs, *roots]))
    same = merged.outputs[len(tape.outputs) :]
    users: dict[int, set[int]] = {}
    for owner, root in zip(owners, same, strict=True):
        users.setdefault(root, set()).add(owner)
    known = {op.result for op in tape.ops}
    return {owner for owner, root in zip(owners, same, strict=True) if root in known or len(users[root]) > 1}


def _is_real(tape: Tape, op: Op) -> bool:
    """Whether all operands are real and of the result's precision, in which a form then computes throughout."""
    precision = tape.types[op.result].dtype
    types = [tape.types[variable] for variable in op.operands]
    return precision in (np.float32, np.float64) and all(
        type.dtype == precision or (type.weak and type.dtype.kind in "if") for type in types
    )


class _Inliner:
    """An emitter that expands bodies that are wanted, to any depth."""

    def __init__(self, rewriting: Rewriting, wanted: Callable[[Primitive], bool]) -> None:
        self._rewriting, self._wanted = rewriting, wanted
        self._depth = 0

    def emit(self, primitive: Primitive, operands: Iterable[int], static: Keywords = ()) -> Any:
        if primitive.expand is None or not self._wanted(primitive):
            return self._rewriting.emit(primitive, operands, static)
        if self._depth == _DEEPEST:
            raise TapeError(f"{primitive.name}: its definition refers to itself")
        self._depth += 1
        try:
            found = primitive.expand(self, tuple(operands), static)
        finally:
            self._depth -= 1
        return found

    def constant(self, value: Any) -> int:
        return self._rewriting.builder.constant(value)

    def type(self, handle: int) -> TensorType:
        return self._rewriting.type(handle)


def _of_type(rewriting: Rewriting, variable: int, type: TensorType) -> int:
    found = rewriting.type(variable)
    if found.shape != type.shape:
        variable = rewriting.emit("broadcast_to", (variable,), {"shape": type.shape})
    if found.dtype != type.dtype or found.weak != type.weak:
        variable = rewriting.emit("astype", (variable,), {"dtype": type.dtype}, type)
    return variable
