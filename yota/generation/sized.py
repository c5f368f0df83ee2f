"""Kernels for all sizes: one NumPy call for each op, with shapes and constants computed from the sizes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from yota.codegen.constants import UNNAMED
from yota.codegen.count import operations
from yota.codegen.literals import dtype_text, scalar
from yota.codegen.names import Names
from yota.codegen.targets.call import infix, owner
from yota.errors import ArgumentError, CodegenError
from yota.generation.borrowed import MODULES, PREFIX
from yota.generation.constants import Constants
from yota.generation.generalise import Extent, General
from yota.generation.kernel import PRECONDITION, Kernel
from yota.generation.plain import visible
from yota.generation.ranks import FURTHER
from yota.ir.calls import Form, Items, Place
from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.tape import Op
from yota.tracing.location import source_line

__all__ = ["sized_kernel"]

_REDUCTIONS = ("sum", "prod", "max", "min")
_VIEWS = ("getitem", "reshape", "broadcast_to", "transpose", "real", "imag")
_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "**",
    "matmul": "@",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST = 72
"""Characters of an expression that may stand in another."""
_STATEMENTS = ("setitem", "scatter", "call")
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
    return Kernel(name, (text,), (*imports, *writer.imports), counts, used)


class _Writer:
    """Writes one kernel."""

    def __init__(self, general: General, sizes: Sequence[str], constants: Constants) -> None:
        self.general, self.tape, self.constants = general, general.tape, constants
        self.names = Names(("np", "math", "scipy", "further", PRECONDITION, *sizes))
        self.texts: dict[int, str] = {}
        self.inlined = self._single_uses()
        self.imports: dict[str, None] = {}
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
            and op.name not in _STATEMENTS
            and reader[op.result].name not in _STATEMENTS
            and source_line(reader[op.result].location) == source_line(op.location)
        }

    def lines(self) -> Iterator[str]:
        """The body."""
        yield from self._guards({entry.variable for entry in self.tape.inputs})
        last = ""
        known: dict[str, str] = {}
        for variable, text in self.general.constants.items():
            if self.tape.types[variable].shape and text not in known:
                known[text] = self.names.fresh(UNNAMED)
                yield f"{known[text]} = {text}"
            if text in known:
                self.texts[variable] = known[text]
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
            if len(text) <= _LONGEST:
                self.texts[op.result] = text
                return
        hint = self.tape.names.get(op.result)
        name = self.names.fresh(hint) if hint else self.names.numbered("v")
        self.texts[op.result] = name
        if op.name == "call" and op.keyword("form").writes:
            yield f"{name} = np.array({operands[0]})"
            yield self._called(op.keyword("form"), [name, *operands[1:]])
        elif op.name == "setitem":
            yield f"{name} = np.array({operands[0]})"
            yield f"{name}{self._index(op, op.keyword('index'), operands[2:])} = {operands[1]}"
        elif op.name == "scatter":
            yield f"{name} = np.zeros({_tuple(op.keyword('shape'))}, {dtype_text(type.dtype)})"
            yield from self._additions(op, name, operands)
        else:
            yield f"{name} = {self._value(op, operands)}"

    def _value(self, op: Op, operands: Sequence[str]) -> str:
        """The expression of an op's result, in its type."""
        text, type = self._expression(op, operands), self.tape.types[op.result]
        if type.weak and op.name not in ("add", "subtract", "multiply"):
            return f"{type.dtype.type(0).item().__class__.__name__}({text})"
        return f"np.asarray({text})[()]" if not type.shape and op.name in _BOXED else text

    def _operand(self, op: Op, operand: int) -> str:
        """An operand; beside an array of its dtype a number needs none of its own."""
        value, type = self.tape.constants.get(operand), self.tape.types[operand]
        if operand not in self.general.constants and not type.shape and type.dtype == np.float64:
            beside = [self.tape.types[other] for other in op.operands if other != operand]
            if op.name in _OPERATORS and any(each.shape and each.dtype == np.float64 for each in beside):
                literal = scalar(float(value)) if value is not None else None
                return literal if literal is not None else self._text(operand)
        return self._text(operand)

    def _additions(self, op: Op, name: str, operands: Sequence[str]) -> Iterator[str]:
        rest = iter(operands)
        for index in op.keyword("indices"):
            piece = next(rest)
            arrays = [next(rest) for entry in index if entry is GATHER]
            place = self._index(op, index, arrays)
            if place == f"[{arrays[0]}]" if arrays else False:
                yield f"np.add.at({name}, {arrays[0]}, {piece})"
            elif arrays:
                where = self.names.fresh("where")
                yield f"{where}: Any = np.s_{place}"
                yield f"np.add.at({name}, {where}, {piece})"
            else:
                yield f"{name}{place} += {piece}"

    def _expression(self, op: Op, operands: Sequence[str]) -> str:
        listed = ", ".join(operands)
        if op.name == "call":
            return self._called(op.keyword("form"), operands)
        if op.name == "getitem":
            source = owner(operands[0]) if self.tape.types[op.operands[0]].shape else f"np.asarray({operands[0]})"
            return f"{source}{self._index(op, op.keyword('index'), operands[1:])}"
        if op.name == "astype":
            kind = self.tape.types[op.operands[0]]
            value = f"np.real({listed})" if kind.is_complex and op.keyword("dtype").kind != "c" else listed
            if kind.shape:
                return f"{owner(value)}.astype({dtype_text(op.keyword('dtype'))})"
            return f"np.asarray({value}).astype({dtype_text(op.keyword('dtype'))})[()]"
        if op.name in ("reshape", "broadcast_to"):
            return f"np.{op.name}({listed}, {_tuple(op.keyword('shape'))})"
        if op.name == "transpose":
            return f"np.transpose({listed}, {_tuple(op.keyword('axes'))})"
        if op.name in ("concatenate", "stack"):
            return f"np.{op.name}(({listed},), axis={op.keyword('axis')})"
        if op.name == "einsum":
            return f'np.einsum("{op.keyword("subscripts")}", {listed}, optimize=True)'
        if op.name in _OPERATORS and self._plain(op):
            return infix(_OPERATORS[op.name], *operands)
        if op.name == "item":
            return f"{owner(operands[0])}[{op.keyword('index')}]"
        if op.name in _REDUCTIONS:
            return f"np.{op.name}({listed}{self._axes(op)})"
        keywords = [f"{name}={_static(value)}" for name, value in op.static]
        return f"{self._function(op)}({', '.join([*operands, *keywords])})"

    def _called(self, form: Form, operands: Sequence[str]) -> str:
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
        text = "" if whole else f", axis={axis[0] if len(axis) == 1 else _tuple(axis)}"
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

    def _index(self, op: Op, index: Sequence[Any], arrays: Sequence[str]) -> str:
        rest = iter(arrays)
        texts = []
        extents = iter(self.general.shapes[op.result if op.name == "scatter" else op.operands[0]])
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

    def _outputs(self) -> str:
        made = {op.result: op for op in self.tape.ops}
        found: list[str] = []
        for variable in self.tape.outputs:
            text = self._text(variable)
            op = made.get(variable)
            if self.tape.types[variable].shape and (op is None or op.name in _VIEWS or text in found):
                text = f"np.array({text})"
            found.append(text)
        return ", ".join(found)


def _tuple(values: Sequence[Any]) -> str:
    return f"({', '.join(map(str, values))},)" if len(values) == 1 else f"({', '.join(map(str, values))})"


def _static(value: Any) -> str:
    if isinstance(value, tuple):
        return _tuple([_static(item) for item in value])
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, Extent):
        return str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    text = scalar(value)
    if text is None:
        raise ArgumentError(f"the keyword value {value!r} cannot be spelled")
    return text
