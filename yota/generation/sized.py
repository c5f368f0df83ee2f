"""Kernels for all sizes: one NumPy call for each op, with shapes and constants computed from the sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from yota.codegen.count import operations
from yota.codegen.literals import dtype_text, scalar
from yota.codegen.names import Names
from yota.codegen.targets.call import infix
from yota.errors import ArgumentError, CodegenError
from yota.generation.borrowed import MODULES, PREFIX
from yota.generation.constants import Constants
from yota.generation.generalise import Extent, General
from yota.generation.kernel import PRECONDITION, Kernel
from yota.generation.plain import visible
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
_BOXED = ("where", "reshape", "broadcast_to", "transpose", "stack", "concatenate", "real", "imag", "conjugate")


def sized_kernel(general: General, name: str, sizes: Sequence[str], constants: Constants) -> Kernel:
    """The kernel of a tape for all sizes; its parameters are the tape's inputs, then ``sizes``.

    Raises
    ------
    CodegenError
        If the tape calls something that only this process has.
    """
    writer = _Writer(general, sizes, constants)
    lines = list(writer.lines())
    parameters = ", ".join(f"{each}: Any" for each in (*writer.parameters, *sizes))
    header = ['@np.errstate(all="ignore")', f"def {name}({parameters}) -> Any:"]
    text = "\n".join([*header, *(f"    {line}" for line in lines)])
    counts = ", ".join(f"{count} {each}" for each, count in operations(general.tape).items())
    imports = ["import math"] if "math." in text else []
    return Kernel(name, (text,), (*imports, *writer.imports), counts)


class _Writer:
    """Writes one kernel."""

    def __init__(self, general: General, sizes: Sequence[str], constants: Constants) -> None:
        self.general, self.tape, self.constants = general, general.tape, constants
        self.names = Names(("np", "math", "scipy", "further", PRECONDITION, *sizes))
        self.texts: dict[int, str] = {}
        self.imports: dict[str, None] = {}
        self.parameters: list[str] = []
        for entry in self.tape.inputs:
            name = self.names.fresh(".".join((entry.name, *map(str, entry.path))))
            self.parameters.append(name)
            self.texts[entry.variable] = name

    def lines(self) -> Iterator[str]:
        """The body."""
        yield from self._guards({entry.variable for entry in self.tape.inputs})
        last = ""
        known: dict[str, str] = {}
        for variable, text in self.general.constants.items():
            if self.tape.types[variable].shape and text not in known:
                known[text] = self.names.fresh("constant")
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
            self.texts[variable] = self.constants.array(self.tape.names.get(variable, "constant"), value)
            return self.texts[variable]
        literal = scalar(value)
        if literal is None:
            raise CodegenError(f"the constant {value!r} cannot be spelled")
        return literal if type.weak else f"{dtype_text(type.dtype)}({literal})"

    def _statements(self, op: Op) -> Iterator[str]:
        hint = self.tape.names.get(op.result)
        name = self.names.fresh(hint) if hint else self.names.numbered("v")
        operands = [self._text(operand) for operand in op.operands]
        self.texts[op.result] = name
        type = self.tape.types[op.result]
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
            text = self._expression(op, operands)
            if type.weak and op.name not in ("add", "subtract", "multiply"):
                text = f"{type.dtype.type(0).item().__class__.__name__}({text})"
            elif not type.shape and op.name in _BOXED:
                text = f"np.asarray({text})[()]"
            yield f"{name} = {text}"

    def _additions(self, op: Op, name: str, operands: Sequence[str]) -> Iterator[str]:
        rest = iter(operands)
        for index in op.keyword("indices"):
            piece = next(rest)
            arrays = [next(rest) for entry in index if entry is GATHER]
            place = self._index(op, index, arrays)
            if arrays:
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
            source = operands[0] if self.tape.types[op.operands[0]].shape else f"np.asarray({operands[0]})"
            return f"{source}{self._index(op, op.keyword('index'), operands[1:])}"
        if op.name == "astype":
            kind = self.tape.types[op.operands[0]]
            value = f"np.real({listed})" if kind.is_complex and op.keyword("dtype").kind != "c" else listed
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
            return f"{operands[0]}[{op.keyword('index')}]"
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
                texts.append(f"{start}:{'' if entry.stop is None else entry.stop}{step}")
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
