"""Kernels for all sizes: one NumPy call for each op, with shapes and constants computed from the sizes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from yota.codegen.constants import UNNAMED
from yota.codegen.count import operations
from yota.codegen.literals import dtype_text, scalar, shape_text
from yota.codegen.names import Names
from yota.codegen.targets.call import OPERATORS, dtype_argument
from yota.errors import CodegenError
from yota.generation.constants import Constants, name_of_form
from yota.generation.generalise import General
from yota.generation.kernel import PRECONDITION, Kernel
from yota.generation.op_texts import OpTexts
from yota.generation.plain import visible
from yota.generation.ranks import FURTHER
from yota.ir.extents import Extent
from yota.ir.indexing import pieces_of
from yota.ir.semantics import VIEWS, AccessMap
from yota.ir.tape import Op
from yota.tracing.location import source_line

__all__ = ["sized_kernel"]

_WORD = re.compile(r"[A-Za-z_]\w*")
_LOOKS = VIEWS | {AccessMap.READ}
_NAMES_OF_FURTHER = re.compile(rf"(\*|, )?{FURTHER}\d+")
_LONGEST = 72
"""Characters of an expression that may stand in another."""
_ARITHMETIC = ("add", "subtract", "multiply", "divide")
_STATEMENTS = (AccessMap.WRITE, AccessMap.SCATTER, AccessMap.CALL)
_BOXED = ("where", "reshape", "broadcast_to", "transpose", "stack", "concatenate", "real", "imag", "conjugate")


def sized_kernel(general: General, name: str, sizes: Sequence[str], constants: Constants) -> Kernel:
    """The kernel of a tape for all sizes; its parameters are the tape's inputs, then those of ``sizes`` that it needs.

    Raises
    ------
    CodegenError
        If the tape calls something that only this process has.
    """
    writer = _Writer(general, sizes, constants)
    lines = list(writer.lines())
    words = {word for line in lines if not line.startswith("#") for word in _WORD.findall(line)}
    # What is made for some number of further axes becomes code for any: it may need their extents even so.
    used = tuple(size for size in sizes if size in words or size.startswith(FURTHER))
    parameters = ", ".join(f"{each}: Any" for each in (*writer.parameters, *used))
    header = ['@np.errstate(all="ignore")', f"def {name}({parameters}) -> Any:"]
    text = "\n".join([*header, *(f"    {line}" for line in lines)])
    counts = ", ".join(f"{count} {each}" for each, count in operations(general.tape).items())
    imports = ["import math"] if "math." in text else []
    return Kernel(name, (text,), (*imports, *writer.ops.imports), counts, used)


class _Writer:
    """Writes one kernel."""

    def __init__(self, general: General, sizes: Sequence[str], constants: Constants) -> None:
        self.general, self.tape, self.constants = general, general.tape, constants
        self.names = Names(("np", "math", "scipy", "further", PRECONDITION, *sizes))
        self.texts: dict[int, str] = {}
        self.inlined = self._single_uses()
        self.ops = OpTexts(general)
        self.parameters: list[str] = []
        for entry in self.tape.inputs:
            name = self.names.fresh(".".join((entry.name, *map(str, entry.path))))
            self.parameters.append(name)
            self.texts[entry.variable] = name

    def _single_uses(self) -> set[int]:
        """Results that are read once, by an op of the same line of the user's, and stand in its expression."""
        uses = Counter(operand for op in self.tape.ops for operand in op.operands)
        uses.update([*self.tape.outputs, *(guard.variable for guard in self.general.guards)])
        kept = {*self.tape.outputs, *(guard.variable for guard in self.general.guards), *self.tape.names}
        reader = {operand: op for op in self.tape.ops for operand in op.operands}
        return {
            op.result
            for op in self.tape.ops
            if uses[op.result] == 1
            and op.result not in kept
            and op.access not in _STATEMENTS
            and reader[op.result].access not in _STATEMENTS
            and source_line(reader[op.result].location) == source_line(op.location)
        }

    def lines(self) -> Iterator[str]:
        """The body."""
        conditions = self.general.conditions
        if conditions is not None and (failed := conditions.failed("or", 2)):
            yield f"if {failed}:"
            yield f'    raise ValueError("sizes must be {conditions.described(2)}")'
        yield from self._guards({entry.variable for entry in self.tape.inputs})
        last = ""
        known: dict[str, str] = {}
        for variable, text in self.general.constants.items():
            if self.tape.types[variable].shape:
                if text not in known:
                    known[text] = self.names.fresh(self.tape.names.get(variable) or name_of_form(text))
                self.texts[variable] = known[text]
        yield from _assignments(known)
        for op in self.tape.ops:
            line = visible(source_line(op.location))[:80].rstrip()
            if line and line != last:
                yield f"# {line}"
                last = line
            yield from self._statements(op)
            yield from self._guards({op.result})
        yield f"return {self._outputs()}"

    def _guards(self, known: set[int]) -> Iterator[str]:
        for number, guard in enumerate(self.general.guards):
            if guard.variable not in known:
                continue
            text = self._text(guard.variable)
            expected = guard.expected
            if guard.kind == "bool" or isinstance(expected, (bool, np.bool_)):
                failed = f"not {text}" if expected else text
            else:
                literal = str(expected) if isinstance(expected, Extent) else scalar(expected)
                if literal is None:
                    raise CodegenError("a decision on a whole array cannot be made for all sizes")
                failed = f"{text} != {literal}"
            yield f"if {failed}:"
            yield f"    raise {PRECONDITION}({number}, {text})"

    def _text(self, variable: int) -> str:
        if variable in self.texts:
            return self.texts[variable]
        if variable in self.general.constants:
            text = self.general.constants[variable]
            # Their operators stand without blanks, which says nothing about precedence to who puts them into others.
            return f"({text})" if isinstance(ast.parse(text, mode="eval").body, ast.BinOp) else text
        value, type = self.tape.constants[variable], self.tape.types[variable]
        if isinstance(value, np.ndarray) and value.ndim:
            self.texts[variable] = self.constants.array(self.tape.names.get(variable, UNNAMED), value)
            return self.texts[variable]
        literal = scalar(value)
        if literal is None:
            raise CodegenError(f"the constant {value!r} cannot be spelled")
        return literal if type.weak else f"{dtype_text(type.dtype)}({literal})"

    def _statements(self, op: Op) -> Iterator[str]:
        operands = [self._operand(op, operand) for operand in op.operands]
        type = self.tape.types[op.result]
        if op.result in self.inlined:
            text = self._value(op, operands)
            if len(_NAMES_OF_FURTHER.sub("", text)) <= _LONGEST:
                self.texts[op.result] = text
                return
        hint = self.tape.names.get(op.result)
        name = self.names.fresh(hint) if hint else self.names.numbered("v")
        self.texts[op.result] = name
        if op.access == AccessMap.CALL and op.keyword("form").writes:
            yield f"{name} = np.array({operands[0]})"
            yield self.ops.called(op.keyword("form"), [name, *operands[1:]])
        elif op.access == AccessMap.WRITE:
            yield f"{name} = np.array({operands[0]})"
            yield f"{name}{self.ops.index(op, op.keyword('index'), operands[2:])} = {operands[1]}"
        elif op.access == AccessMap.SCATTER:
            yield f"{name} = np.zeros({shape_text(op.keyword('shape'))}{dtype_argument(type)})"
            yield from self._additions(op, name, operands)
        else:
            yield f"{name} = {self._value(op, operands)}"

    def _value(self, op: Op, operands: Sequence[str]) -> str:
        """The expression of an op's result, in its type."""
        text, type = self.ops.expression(op, operands), self.tape.types[op.result]
        if type.weak and op.name not in ("add", "subtract", "multiply"):
            return f"{type.dtype.type(0).item().__class__.__name__}({text})"
        return f"np.asarray({text})[()]" if not type.shape and op.name in _BOXED else text

    def _operand(self, op: Op, operand: int) -> str:
        """An operand; beside an array of its dtype a number needs none of its own."""
        value, type = self.tape.constants.get(operand), self.tape.types[operand]
        if operand not in self.general.constants and not type.shape and type.dtype == np.float64:
            beside = [self.tape.types[other] for other in op.operands if other != operand]
            if op.name in OPERATORS and any(each.shape and each.dtype == np.float64 for each in beside):
                literal = scalar(float(value)) if value is not None else None
                return literal if literal is not None else self._text(operand)
        text = self._text(operand)
        if text.startswith("float(np.divide(") and text == self.general.constants.get(operand):
            # A quotient in NumPy's double precision is as good as one in Python's beside other numbers of that.
            others = [self.tape.types[other] for other in op.operands if other != operand]
            if op.name in _ARITHMETIC and any(not each.weak and each.dtype.char in "dD" for each in others):
                return text.removeprefix("float(").removesuffix(")")
        return text

    def _additions(self, op: Op, name: str, operands: Sequence[str]) -> Iterator[str]:
        pairs = zip(op.operands, operands, strict=True)
        for (_, piece), places, index in pieces_of(pairs, op.keyword("indices")):
            arrays = [text for _, text in places]
            place = self.ops.index(op, index, arrays)
            if not arrays or self._lead_apart([variable for variable, _ in places]):
                yield f"{name}{place} += {piece}"
            elif place == f"[{arrays[0]}]":
                yield f"np.add.at({name}, {arrays[0]}, {piece})"
            else:
                where = self.names.fresh("where")
                yield f"{where}: Any = np.s_{place}"
                yield f"np.add.at({name}, {where}, {piece})"

    def _lead_apart(self, arrays: Sequence[int]) -> bool:
        """Whether index arrays, all of one axis, lead to no place twice, because one of them counts up."""
        return all(self.tape.types[array].ndim == 1 for array in arrays) and any(
            self.general.constants.get(array, "").startswith("np.arange(") for array in arrays
        )

    def _outputs(self) -> str:
        made = {op.result: op for op in self.tape.ops}
        found: list[str] = []
        for variable in self.tape.outputs:
            text = self._text(variable)
            op = made.get(variable)
            looks = op is None or op.access in _LOOKS or op.semantics.component
            if self.tape.types[variable].shape and (looks or text in found):
                text = f"np.array({text})"
            found.append(text)
        return ", ".join(found)


def _assignments(names: Mapping[str, str]) -> Iterator[str]:
    """Statements that give each text its name; both results of one call get theirs at once."""
    for text, name in names.items():
        call, result = text[:-3], text[-3:]
        pair = [names.get(f"{call}[{number}]") for number in (0, 1)]
        if result not in ("[0]", "[1]") or None in pair:
            yield f"{name} = {text}"
        elif result == "[0]":
            yield f"{pair[0]}, {pair[1]} = {call}"
