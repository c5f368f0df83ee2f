"""Scalar tapes as plain Python float code, with a second body on NumPy scalars for infinities and NaNs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.codegen.count import counted
from yota.codegen.expressions import ASSEMBLED, Body, write
from yota.codegen.names import Names
from yota.codegen.render import render
from yota.codegen.spelling import MATH_NAMES
from yota.codegen.targets.base import Source
from yota.codegen.vocabulary import Vocabulary, import_lines
from yota.ir.count import listed
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape

__all__ = ["FunctionText", "ScalarPlan", "is_fast", "is_scalar", "plan_scalar", "scalar_source"]

_OWN_NAMES = ("np", "scipy", "StaleTape", *sorted(MATH_NAMES))
_FAST_DTYPES = frozenset(map(np.dtype, (np.float64, np.int64, np.bool_)))


@dataclass(frozen=True, slots=True)
class FunctionText:
    """One function of the module.

    Parameters
    ----------
    decorators
        Lines ahead of ``def``.
    remarks
        Comments at the top of the body.
    reads
        Statements that take the arguments apart.
    body
        The rest, the ``return`` at the end.
    fallback
        Function to call instead when the body raises; empty if it cannot.
    """

    name: str
    decorators: tuple[str, ...]
    remarks: tuple[str, ...]
    reads: tuple[str, ...]
    body: tuple[str, ...]
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class ScalarPlan:
    """A module with one function, and perhaps a second one that it falls back to."""

    banner: tuple[str, ...]
    used: frozenset[str]
    parameters: tuple[str, ...]
    functions: tuple[FunctionText, ...]
    constants: Mapping[str, Any]

    @property
    def imports(self) -> tuple[str, ...]:
        """Lines that import what the functions use."""
        return import_lines(self.used)


def is_scalar(tape: Tape, *, inlined: bool = True) -> bool:
    """Whether all of a tape's ops are on scalars, arrays being only read at one index or put together at the end.

    Primitives with a primal of their own must have been replaced by it, unless ``inlined`` is false.
    """
    inputs = {entry.variable for entry in tape.inputs}
    outputs = set(tape.outputs)
    assembled = {op.result: op for op in tape.ops if op.access in ASSEMBLED}
    read = {operand for op in tape.ops for operand in op.operands}
    for op in tape.ops:
        if not _is_scalar_op(tape, op, inputs, outputs, assembled, inlined):
            return False
    if any(op.result in read and op.result in outputs for op in assembled.values()):
        return False
    loose = [variable for variable in tape.outputs if variable not in assembled]
    return not any(tape.types[variable].shape for variable in [*loose, *(guard.variable for guard in tape.guards)])


def _is_scalar_op(
    tape: Tape, op: Op, inputs: set[int], outputs: set[int], assembled: Mapping[int, Op], inlined: bool
) -> bool:
    flat = not any(tape.types[operand].shape for operand in op.operands)
    if op.primitive.elementwise:
        return flat and (op.primitive.expand is None or not inlined) and not tape.types[op.result].shape
    if op.access == AccessMap.READ:
        index = op.keyword("index")
        return op.operands[0] in inputs and bool(index) and all(isinstance(entry, int) for entry in index)
    if op.access == AccessMap.STACK:
        return flat and op.keyword("axis") == 0 and bool(op.operands)
    if op.access == AccessMap.RESHAPE:
        (operand,) = op.operands
        return op.result in outputs and operand in assembled and assembled[operand].access == AccessMap.STACK
    if op.access == AccessMap.SCATTER:
        indices = op.keyword("indices")
        plain = all(isinstance(entry, int) for index in indices for entry in index)
        return flat and plain and op.result in outputs and len(set(indices)) == len(indices)
    return False


def plan_scalar(tape: Tape, *, strict: bool = False, values: int = 1, names: Names | None = None) -> ScalarPlan:
    """The plan of a scalar tape.

    Parameters
    ----------
    strict
        Compute values with NumPy's functions wherever Python's differ in the last bit.
    values
        How many of the outputs, the first ones, are values.
    names
        Names of the module, where it has more functions.
    """
    names = names or Names(_OWN_NAMES)
    entry = names.fresh(tape.name)
    slow = names.fresh(f"{entry}_numpy")
    parameters = tuple(names.fresh(".".join((item.name, *map(str, item.path)))) for item in tape.inputs)
    words = Vocabulary(tape, names, parameters, values if strict else 0)
    fast = is_fast(tape)
    remark = ("# The same on NumPy scalars, for arguments where Python raises and NumPy goes on.",)
    body, *others = write(words, fast=fast)
    functions = [_function(entry, body, slow if others else "")]
    functions += [_function(slow, other, remarks=remark) for other in others]
    banner = counted(tape, f"{entry}: generated by yota for NumPy.", parameters, tape.types.__getitem__)
    return ScalarPlan(banner, frozenset(words.imports), parameters, tuple(functions), words.objects)


def is_fast(tape: Tape) -> bool:
    """Whether Python's numbers can hold all values of a scalar tape."""
    return all(type.dtype in _FAST_DTYPES for type in _used_types(tape)) and not any(
        op.semantics.wraps and tape.types[op.result].dtype.kind == "i" and not tape.types[op.result].weak
        for op in tape.ops
    )


def scalar_source(tape: Tape, *, strict: bool = False) -> Source:
    """Source of a function that computes the outputs of a scalar tape."""
    plan = plan_scalar(tape, strict=strict)
    text = render("numpy/scalar.py.jinja", plan=plan)
    return Source(text, plan.functions[0].name, plan.constants, len(tape.guards), operations=listed(tape.operations))


def _used_types(tape: Tape) -> list[Any]:
    """Types of what is computed, and of the elements that it is computed from."""
    used = {operand for op in tape.ops for operand in op.operands} | set(tape.outputs)
    return [
        tape.types[variable] for variable in sorted(used | {op.result for op in tape.ops}) if _matters(tape, variable)
    ]


def _matters(tape: Tape, variable: int) -> bool:
    """Constants of a wider type than the results are spelled as literals."""
    return variable not in tape.constants or tape.types[variable].dtype.kind not in "iu"


def _function(name: str, body: Body, fallback: str = "", remarks: tuple[str, ...] = ()) -> FunctionText:
    decorators = ('@np.errstate(all="ignore")',) if body.warns else ()
    return FunctionText(name, decorators, remarks, body.reads, body.lines, fallback)
