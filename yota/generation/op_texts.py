"""Ops of a kernel for all sizes, spelled as NumPy code: one expression for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yota.codegen.literals import dtype_text, static_text, tuple_text
from yota.codegen.targets.call import OPERATORS, infix, negated, owner
from yota.errors import ArgumentError, CodegenError
from yota.generation.borrowed import MODULES, PREFIX
from yota.generation.generalise import General
from yota.ir.calls import Form, Items, Place
from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.semantics import JOINS, AccessMap
from yota.ir.tape import Op

__all__ = ["OpTexts"]


class OpTexts:
    """Texts of ops, from those of their operands.

    Parameters
    ----------
    general
        The tape for all sizes.
    """

    def __init__(self, general: General) -> None:
        self.general, self.tape = general, general.tape
        self.imports: dict[str, None] = {}
        """Imports that the texts need."""

    def expression(self, op: Op, operands: Sequence[str]) -> str:
        """What computes the result of ``op``."""
        listed = ", ".join(operands)
        if op.access == AccessMap.CALL:
            return self.called(op.keyword("form"), operands)
        if op.access in (AccessMap.READ, AccessMap.ITEM):
            return self._read(op, operands)
        if op.semantics.casts:
            kind = self.tape.types[op.operands[0]]
            value = f"np.real({listed})" if kind.is_complex and op.keyword("dtype").kind != "c" else listed
            if kind.shape:
                return f"{owner(value)}.astype({dtype_text(op.keyword('dtype'))})"
            return f"np.asarray({value}).astype({dtype_text(op.keyword('dtype'))})[()]"
        if op.access in (AccessMap.RESHAPE, AccessMap.BROADCAST):
            return f"np.{op.name}({listed}, {tuple_text(op.keyword('shape'))})"
        if op.access == AccessMap.TRANSPOSE:
            return _transposed(listed, op.keyword("axes"))
        if op.access in JOINS:
            return f"np.{op.name}(({listed},), axis={op.keyword('axis')})"
        if op.access == AccessMap.EINSUM:
            return f'np.einsum("{op.keyword("subscripts")}", {listed}, optimize=True)'
        sign = OPERATORS.get(op.name)
        if sign and self._plain(op):
            return infix(sign, *operands)
        if op.semantics.exact and not sign:
            return negated(listed)
        if op.access == AccessMap.REDUCTION:
            return f"np.{op.name}({listed}{self._axes(op)})"
        keywords = [f"{name}={_static(value)}" for name, value in op.static]
        return f"{self._function(op)}({', '.join([*operands, *keywords])})"

    def _read(self, op: Op, operands: Sequence[str]) -> str:
        """An element of an array, or one result of several."""
        if op.access == AccessMap.ITEM:
            return f"{owner(operands[0])}[{op.keyword('index')}]"
        source = owner(operands[0]) if self.tape.types[op.operands[0]].shape else f"np.asarray({operands[0]})"
        return f"{source}{self.index(op, op.keyword('index'), operands[1:])}"

    def called(self, form: Form, operands: Sequence[str]) -> str:
        """A call as the function made it."""

        def text(value: Any) -> str:
            if isinstance(value, Place):
                return operands[value.operand]
            if isinstance(value, Items):
                inner = ", ".join(map(text, value.items))
                return f"[{inner}]" if value.kind is list else f"({inner},)"
            return _static(value)

        given = [*map(text, form.arguments), *(f"{name}={text(value)}" for name, value in form.keywords)]
        module, _, rest = form.path.partition(".")
        if module == "numpy":
            function = f"np.{rest}"
        elif module in ("yota", "__main__"):
            raise CodegenError(f"{form.path} is no function that a module could call")
        else:
            self.imports[f"import {form.path.rpartition('.')[0]}"] = None
            function = form.path
        return f"{function}({', '.join(given)})" + ("" if form.part is None else f"[{form.part}]")

    def _plain(self, op: Op) -> bool:
        """Whether the operator does what the function does: Python's own raise at zero, and numbers are no matrices."""
        weak = all(self.tape.types[operand].weak for operand in op.operands)
        return op.name in ("add", "subtract", "multiply") or not weak

    def _axes(self, op: Op) -> str:
        axis = op.keyword("axis")
        whole = len(axis) == self.tape.types[op.operands[0]].ndim
        text = "" if whole else f", axis={axis[0] if len(axis) == 1 else tuple_text(axis)}"
        return f"{text}, keepdims=True" if op.keyword("keepdims") else text

    def _function(self, op: Op) -> str:
        module, _, name = (op.primitive.target or "").rpartition(".")
        if module == "numpy" or module.startswith("numpy."):
            return f"np{module[5:]}.{name}"
        if module in (each.__name__ for each in MODULES):
            return f"{PREFIX}{name}"
        if not module or module.partition(".")[0] in ("yota", "__main__"):
            raise CodegenError(f"{op.name} has no function that a module could call")
        self.imports[f"import {module}"] = None
        return f"{module}.{name}"

    def index(self, op: Op, index: Sequence[Any], arrays: Sequence[str]) -> str:
        """An index in brackets, with ``arrays`` where it gathers."""
        rest = iter(arrays)
        texts = []
        extents = iter(self.general.shapes[op.operands[0] if op.access == AccessMap.READ else op.result])
        for entry in index:
            extent = None if entry is NEWAXIS else next(extents)
            if (
                isinstance(entry, Slice)
                and str(entry.stop) == str(extent)
                and (str(entry.start), str(entry.step)) == ("0", "1")
            ):
                texts.append(":")
            elif isinstance(entry, Slice):
                step = "" if type(entry.step) is int and entry.step == 1 else f":{entry.step}"
                start = "" if type(entry.start) is int and entry.start == 0 and not step else entry.start
                open_end = entry.stop is None or (not step and str(entry.stop) == str(extent))
                texts.append(f"{start}:{'' if open_end else entry.stop}{step}")
            else:
                texts.append("None" if entry is NEWAXIS else next(rest) if entry is GATHER else str(entry))
        # Whole axes at the end go without saying.
        while len(texts) > 1 and texts[-1] == ":":
            texts.pop()
        return f"[{', '.join(texts)}]" if texts else "[()]"


def _transposed(text: str, axes: Sequence[int]) -> str:
    if list(axes) == list(reversed(range(len(axes)))):
        return f"{owner(text)}.T"
    return f"np.transpose({text}, {tuple_text(axes)})"


def _static(value: Any) -> str:
    text = static_text(value)
    if text is None:
        raise ArgumentError(f"the keyword value {value!r} cannot be spelled")
    return text
