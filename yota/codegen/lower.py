"""Lowers a schedule of array ops to the plan of a NumPy function."""

from __future__ import annotations

import linecache
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.codegen import banner
from yota.codegen.literals import dtype_text, scalar, shape_text
from yota.codegen.loops import inverse, lower_loop, turned
from yota.codegen.names import Names
from yota.codegen.plan import Buffer, FunctionPlan, Loop, Step, Workspace
from yota.codegen.storage import plan_storage
from yota.codegen.targets import numpy_calls
from yota.codegen.wrap import wrapped
from yota.errors import TapeError
from yota.ir.infer import infer
from yota.ir.tape import Guard, Op, Tape
from yota.ir.types import TensorType
from yota.passes.units import Unit

__all__ = ["Lowering"]

_OWN_NAMES = ("np", "deque", "StaleTape", "work", "start", "stop", "piece", "_pool", "_workspace")
_PRINTED_ELEMENTS = 16
_KEPT = ((1 << 26, 4), (1 << 30, 1), (math.inf, 0))
"""How many workspaces may wait for the next call, by their size in bytes."""
_QUIET = frozenset(
    "negative positive absolute fabs conjugate sign where real imag maximum minimum fmax fmin copysign less"
    " less_equal greater greater_equal equal not_equal isnan isinf isfinite logical_and logical_or logical_not"
    " signbit invert bitwise_and bitwise_or getitem setitem reshape transpose broadcast_to concatenate stack".split()
)


class Lowering:
    """Lowers one tape; afterwards `objects` holds what the text uses by name without spelling it out.

    What computes ``exact`` is left to NumPy to allocate: the order of a result in memory decides the order of sums.
    """

    def __init__(self, tape: Tape, units: Sequence[Unit], exact: frozenset[int] = frozenset()) -> None:
        self.tape, self.units = tape, units
        self.storage = plan_storage(tape, units, exact)
        self.names = Names(_OWN_NAMES)
        self.objects: dict[str, Any] = {}
        self.texts: dict[int, str] = {}
        self.constants: list[str] = []
        self.imports: dict[str, None] = {}
        self.looks: dict[Any, tuple[str, str]] = {}
        self._named_objects: dict[int, str] = {}
        self._last_remark: Any = None

    def plan(self) -> FunctionPlan:
        """The plan."""
        tape = self.tape
        entry = self.names.fresh(tape.name)
        parameters = []
        for item in tape.inputs:
            name = self.names.fresh(".".join((item.name, *map(str, item.path))))
            parameters.append(name)
            self.texts[item.variable] = name
        steps = [Step(before=tuple(self._guards(self._known())))]
        for position, unit in enumerate(self.units):
            steps.append(lower_loop(self, position, unit) if unit.extent else self._lower_op(unit.members[0].op))
            steps.append(Step(before=tuple(self._guards(set(unit.results)))))
        outputs, copies = self._outputs()
        steps.append(Step(before=tuple(copies)))
        workspaces = self._workspaces()
        imports = ["import numpy as np", *(f"import {module}" for module in sorted(self.imports))]
        if workspaces:
            imports.insert(0, "from collections import deque\n")
        noisy = any(op.name not in _QUIET and tape.types[op.result].dtype.kind in "fc" for op in tape.ops)
        return FunctionPlan(
            banner=banner.lines(tape, entry, parameters, self.units),
            imports=tuple(imports),
            constants=wrapped(self.constants, 0),
            workspaces=workspaces,
            decorators=('@np.errstate(all="ignore")',) if noisy else (),
            name=entry,
            parameters=tuple(parameters),
            steps=tuple(_formatted(step) for step in steps),
            result=", ".join(outputs) if outputs else "()",
        )

    def name(self, variable: int) -> str:
        """A name for a whole variable: the one it has in the user's source, if any."""
        hint = self.tape.names.get(variable)
        return self.names.fresh(hint) if hint else self.names.numbered("v")

    def call(self, op: Op, operands: tuple[str, ...], rows: tuple[int, str] | None = None) -> numpy_calls.Call:
        """``op`` with the texts of its operands."""
        types = tuple(self.tape.types[operand] for operand in op.operands)
        return numpy_calls.Call(
            op, operands, types, self.tape.types[op.result], self.name_object, self._import, rows
        )

    def name_object(self, hint: str, value: Any) -> str:
        """Name under which the generated code finds an object that has no literal."""
        known = self._named_objects.get(id(value))
        if known is None:
            known = self._named_objects[id(value)] = self.names.fresh(hint)
            self.objects[known] = value
        return known

    def _import(self, module: str) -> None:
        self.imports[module] = None

    def operand(self, op: Op, number: int) -> str:
        """Text of an operand that is read whole."""
        variable = op.operands[number]
        if variable in self.tape.constants:
            return self._constant(variable, op, number)
        return self.texts[variable]

    def _constant(self, variable: int, op: Op | None = None, number: int = 0) -> str:
        value, type = self.tape.constants[variable], self.tape.types[variable]
        if not type.shape:
            literal = scalar(value)
            if literal is not None:
                if type.weak or (op is not None and self._may_be_weak(op, number)):
                    return literal
                return f"{dtype_text(type.dtype)}({literal})"
        if variable not in self.texts:
            self.texts[variable] = self._spelled(variable, value) or self.name_object(
                self.tape.names.get(variable, "constant"), value
            )
        return self.texts[variable]

    def _spelled(self, variable: int, value: Any) -> str | None:
        array = np.asarray(value)
        if array.size > _PRINTED_ELEMENTS or array.dtype.itemsize > 16 or array.dtype.kind not in "biufc":
            return None
        if array.size == 0:
            text = f"np.zeros({shape_text(array.shape)}, {dtype_text(array.dtype)})"
        else:
            rows = _nested(array)
            text = f"np.array({rows}, {dtype_text(array.dtype)})"
        name = self.names.fresh(self.tape.names.get(variable, "constant"))
        self.constants.append(f"{name} = {text}")
        return name

    def _may_be_weak(self, op: Op, number: int) -> bool:
        """Whether a plain literal for this operand gives a result of the same type."""
        types = [self.tape.types[operand] for operand in op.operands]
        types[number] = TensorType(types[number].dtype, (), True)
        if types[number].dtype not in (np.dtype(kind) for kind in (bool, int, float, complex)):
            base = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[types[number].dtype.kind]
            types[number] = TensorType(np.dtype(base), (), True)
        try:
            return infer(op.primitive, tuple(types), op.static) == self.tape.types[op.result]
        except (TapeError, TypeError, ValueError):
            return False

    def look(
        self,
        key: Any,
        shape: tuple[int, ...],
        scope: Any = None,
        order: tuple[int, ...] | None = None,
    ) -> str | None:
        """Name of the workspace array of ``key`` in this shape, or None if it has no slot.

        ``order`` lists its axes from outermost to innermost in memory.
        """
        slot = self.storage.slot.get(key)
        if slot is None:
            return None
        if (slot, shape, scope, order) not in self.looks:
            size = int(np.prod(shape, dtype=np.int64))
            text = f"s{slot}" if size == self.storage.slots[slot].size else f"s{slot}[:{size}]"
            if order is not None:
                extents = ", ".join(str(shape[axis]) for axis in order)
                text = turned(f"{text}.reshape({extents})", inverse(order))
            elif len(shape) > 1:
                text = f"{text}.reshape({', '.join(map(str, shape))})"
            self.looks[slot, shape, scope, order] = (self.names.numbered("t"), text)
        return self.looks[slot, shape, scope, order][0]

    def whole_look(self, variable: int) -> str | None:
        """Name of the workspace array of a whole variable."""
        return self.look(variable, self.tape.types[variable].shape)

    def _lower_op(self, op: Op) -> Step:
        operands = tuple(self.operand(op, number) for number in range(len(op.operands)))
        call = self.call(op, operands)
        remark = self.remark(op)
        source = self.storage.inherits.get(op.result)
        out = self.texts[source] if source is not None else self.whole_look(op.result)
        if out is None:
            out = self.name(op.result)
            lines = numpy_calls.statements(call, out)
        else:
            lines = numpy_calls.into(call, out, held=out if out in operands else None)
        self.texts[op.result] = out
        return Step(before=(*remark, *lines))

    def remark(self, op: Op) -> list[str]:
        """The user's source line as a comment, where it changes."""
        place = op.location
        if place is None or (place.filename, place.line) == self._last_remark:
            return []
        self._last_remark = (place.filename, place.line)
        line = linecache.getline(place.filename, place.line).strip()
        printable = "".join(character if character.isprintable() else " " for character in line)
        return [f"# {printable[:80]}"] if printable else []

    def _known(self) -> set[int]:
        return {item.variable for item in self.tape.inputs} | set(self.tape.constants)

    def _guards(self, variables: set[int]) -> list[str]:
        """Checks of the guards whose variables have just been computed."""
        lines = []
        for index, guard in enumerate(self.tape.guards):
            if guard.variable in variables:
                text = self.texts.get(guard.variable) or self._constant(guard.variable)
                lines.append(f"if {self._failed(guard, text)}:")
                lines.append(f"    raise StaleTape({index}, {text})")
        return lines

    def _failed(self, guard: Guard, text: str) -> str:
        expected = guard.expected
        if guard.kind == "bool" or isinstance(expected, bool | np.bool_):
            return f"not {text}" if expected else text
        literal = scalar(expected) if np.ndim(expected) == 0 else None
        if literal is None:
            known = self.name_object("expected", expected)
            return f"not np.array_equal({text}, {known}, equal_nan=True)"
        if expected != expected:
            return f"{text} == {text}"
        return f"{guard.kind}({text}) != {literal}" if guard.kind in ("int", "float") else f"{text} != {literal}"

    def _outputs(self) -> tuple[list[str], list[str]]:
        """Texts of the results, and the statements that make each an array of its own."""
        texts, lines, given = [], [], set()
        for variable in self.tape.outputs:
            type = self.tape.types[variable]
            known = variable in self.tape.constants
            text = self._constant(variable) if known else self.texts[variable]
            if not type.shape:
                from_outside = any(item.variable == variable for item in self.tape.inputs)
                texts.append(f"{text}[()]" if from_outside and not type.weak else text)
                continue
            found = self.storage.roots[variable]
            if self.storage.lent(variable) or found & given or self._partial(variable):
                name = self.names.fresh("result")
                lines.append(f"{name} = np.array({text})")
                text = name
            given |= found
            texts.append(text)
        return texts, lines

    def _partial(self, variable: int) -> bool:
        """Whether a result looks at an array of another size than its own."""
        (root,) = self.storage.roots[variable]
        return self.tape.types[root].size != self.tape.types[variable].size

    def _workspaces(self) -> tuple[Workspace, ...]:
        if not self.looks:
            return ()
        buffers = []
        for number, slot in enumerate(self.storage.slots):
            dtype = "" if slot.dtype == np.dtype(np.float64) else f", {dtype_text(slot.dtype)}"
            buffers.append(Buffer(f"s{number}", f"np.empty({slot.size}{dtype})"))
        total = sum(slot.size * slot.dtype.itemsize for slot in self.storage.slots)
        kept = next(kept for limit, kept in _KEPT if total <= limit)
        names = [name for name, _ in self.looks.values()]
        unpack = f"{', '.join(names)} = work" if len(names) > 1 else f"({names[0]},) = work"
        looks = tuple(text for _, text in self.looks.values())
        return (Workspace(kept, tuple(buffers), looks, wrapped([unpack], 4)),)


def _formatted(step: Step) -> Step:
    """The step with its long lines broken."""
    loops = tuple(Loop(loop.header, wrapped(loop.lines, 8)) for loop in step.loops)
    return Step(wrapped(step.before, 4), loops, wrapped(step.after, 4))


def _nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return str(scalar(array))
    return f"[{', '.join(_nested(row) for row in array)}]"
