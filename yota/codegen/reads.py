"""How a scalar function takes its arguments apart: all elements at once, or the few that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.codegen.literals import dtype_text
from yota.ir.semantics import AccessMap
from yota.ir.tape import Tape

__all__ = ["Reads", "plan"]

# Measured, in nanoseconds: one `item` call; a `tolist` call, and each element that it converts.
_ITEM, _LIST, _LIST_ELEMENT = 55, 60, 8


@dataclass(frozen=True, slots=True)
class Reads:
    """Names of input elements, and the statements ``pattern = value`` that bind them."""

    names: dict[int, str]
    statements: tuple[tuple[str, str], ...]


def plan(tape: Tape, parameters: Sequence[str], name: Callable[[int, str], str], *, fast: bool, mixed: bool) -> Reads:
    """Reads of all arguments of ``tape``.

    Parameters
    ----------
    name
        Gives the name of a variable, from a hint.
    fast
        As Python numbers; else as NumPy scalars.
    mixed
        Whether a Python number must stay one even among NumPy scalars.
    """
    elements: dict[int, dict[tuple[int, ...], int]] = {}
    again: dict[int, int] = {}
    used = set(tape.outputs) | {guard.variable for guard in tape.guards}
    for op in tape.ops:
        used.update(op.operands)
        if op.access == AccessMap.READ:
            known = elements.setdefault(op.operands[0], {}).setdefault(op.keyword("index"), op.result)
            again[op.result] = known
    names: dict[int, str] = {}
    statements: list[tuple[str, str]] = []
    for parameter, entry in zip(parameters, tape.inputs, strict=True):
        type = tape.types[entry.variable]
        if type.shape:
            found = elements.get(entry.variable, {})
            for index, variable in found.items():
                names[variable] = name(variable, parameter + "_".join(map(str, index)))
            statements.extend(_array(parameter, type.shape, found, names, fast))
        elif entry.variable in used:
            names[entry.variable] = parameter
            convert = _conversion(type.dtype, type.weak, fast, mixed)
            if convert:
                statements.append((parameter, f"{convert}({parameter})"))
    names.update({variable: names[first] for variable, first in again.items()})
    return Reads(names, tuple(statements))


def _conversion(dtype: np.dtype[Any], weak: bool, fast: bool, mixed: bool) -> str:
    if fast:
        return "" if weak else {"f": "float", "b": "bool"}.get(dtype.kind, "int")
    # Among single precision, a Python number must stay one, so as not to promote what it meets.
    return "" if weak and mixed else dtype_text(dtype)


def _array(
    parameter: str, shape: tuple[int, ...], found: dict[tuple[int, ...], int], names: dict[int, str], fast: bool
) -> list[tuple[str, str]]:
    if not found:
        return []
    size = int(np.prod(shape))
    if len(found) * _ITEM < _LIST + size * _LIST_ELEMENT:
        return [(names[variable], _item(parameter, index, fast)) for index, variable in sorted(found.items())]
    texts = {index: names[variable] for index, variable in found.items()}
    if len(shape) == 1:
        pattern = ", ".join(texts.get((i,), "_") for i in range(size))
        return [(f"{pattern}," if size == 1 else pattern, f"{parameter}.tolist()" if fast else parameter)]
    pattern = ", ".join(texts.get(index, "_") for index in np.ndindex(shape))
    return [(f"{pattern}," if size == 1 else pattern, f"{parameter}.ravel(){'.tolist()' if fast else ''}")]


def _item(parameter: str, index: tuple[int, ...], fast: bool) -> str:
    text = ", ".join(map(str, index))
    return f"{parameter}.item({text})" if fast else f"{parameter}[{text}]"
