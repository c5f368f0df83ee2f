"""The tape: a list of ops in static single assignment form, and its builder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yota.ir.infer import infer
from yota.ir.inputs import Input, Static
from yota.ir.location import Location
from yota.ir.primitive import Primitive
from yota.ir.printing import operations
from yota.ir.semantics import Semantics
from yota.ir.types import Record, TensorType, type_of

Keywords: TypeAlias = "Mapping[str, Any] | tuple[tuple[str, Any], ...]"
"""Static keywords: a mapping, or pairs in order."""


@dataclass(slots=True, unsafe_hash=True)
class Op(Record):
    """``result = primitive(*operands, **static)``; an op never changes."""

    result: int
    primitive: Primitive
    operands: tuple[int, ...]
    static: tuple[tuple[str, Any], ...] = ()
    location: Location | None = None

    @property
    def name(self) -> str:
        """The primitive's name."""
        return self.primitive.name

    @property
    def semantics(self) -> Semantics:
        """The primitive's record in the semantics table."""
        return self.primitive.semantics

    @property
    def access(self) -> str:
        """The access map, one of those in `AccessMap`."""
        return self.primitive.access

    def keyword(self, name: str, default: Any = None) -> Any:
        """Value of the static keyword ``name``."""
        for own, value in self.static:
            if own == name:
                return value
        return default

    @property
    def regions(self) -> tuple[Tape, ...]:
        """The tapes that the op owns: the body of a loop, and its condition."""
        region = None if self.primitive.typed is None else self.keyword("region")
        if region is None:
            return ()
        return (region.body,) if region.condition is None else (region.body, region.condition)


@dataclass(frozen=True, slots=True)
class Guard:
    """A branch on a traced value: ``variable`` must equal ``expected`` for the tape to be valid.

    ``after`` is the number of ops on the tape before the branch. ``kind`` names the conversion (``"bool"``,
    ``"int"``, ``"float"``, ``"value"``), or an implicit condition: the memory layout of arrays (``"layout"``), or
    whether the triangles of a matrix differ (``"hermitian"``). ``signs`` marks another implicit condition: whether
    an index array has negative numbers. Targets that support negative numbers ignore it.
    """

    variable: int
    expected: Any
    kind: str
    after: int
    location: Location | None = None
    signs: bool = False


@dataclass(frozen=True, slots=True)
class Tape:
    """An immutable tape.

    Parameters
    ----------
    name
        Name of the traced function.
    inputs
        Its inputs in order.
    constants
        Values of constant variables: Python scalars, NumPy scalars, or read-only arrays.
    ops
        Ops in order of definition.
    outputs
        Result variables.
    types
        Type of each variable.
    guards
        Conditions for the validity of the tape.
    names
        Readable names of variables where the source gave one; for printing and generated code only.
    captured
        Captured arrays, by the input that reads their content at each call.
    statics
        Static values in the arguments, if known.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> _, tape = yota.trace(lambda x: np.sum(x * x), np.ones(3))
    >>> len(tape), tape.operations
    (2, {'multiply': 1, 'sum': 1})
    """

    name: str
    inputs: tuple[Input, ...]
    constants: Mapping[int, Any]
    ops: tuple[Op, ...]
    outputs: tuple[int, ...]
    types: Mapping[int, TensorType]
    guards: tuple[Guard, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    captured: Mapping[int, Any] = field(default_factory=dict)
    statics: tuple[Static, ...] = ()

    def __str__(self) -> str:
        from yota.ir.printing import show

        return show(self)

    def __len__(self) -> int:
        return len(self.ops)

    @property
    def operations(self) -> dict[str, int]:
        """Count of each primitive that computes, most frequent first."""
        return operations(self)

    if TYPE_CHECKING:  # yota.tape_methods defines these methods

        def play(self, *args: Any) -> Any:
            """See `yota.play`."""

        def compile(
            self, target: str | None = None, *, strict: bool = False, effort: str = "quick"
        ) -> Callable[..., Any]:
            """See `yota.compile`."""

        def to_sympy(self) -> Any:
            """The results as sympy expressions."""

        def latex(self) -> str:
            """The results as formulas in LaTeX."""

        def _repr_html_(self) -> str:
            """HTML for notebooks."""

        def _repr_latex_(self) -> str | None:
            """LaTeX for notebooks that do not show HTML."""

    def definitions(self) -> dict[int, Op]:
        """The defining op of each variable."""
        return {op.result: op for op in self.ops}

    def builder(self) -> TapeBuilder:
        """A builder that starts with this tape's content."""
        builder = TapeBuilder(self.name)
        builder.inputs = list(self.inputs)
        builder.constants = dict(self.constants)
        builder.ops = list(self.ops)
        builder.types = dict(self.types)
        builder.guards = list(self.guards)
        builder.names = dict(self.names)
        builder.captured = dict(self.captured)
        builder.statics = self.statics
        builder._definitions = self.definitions()
        builder.count = max(self.types, default=0)
        return builder


class TapeBuilder:
    """Appends ops to a tape; an `Emitter`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Input] = []
        self.constants: dict[int, Any] = {}
        self.ops: list[Op] = []
        self.types: dict[int, TensorType] = {}
        self.guards: list[Guard] = []
        self.names: dict[int, str] = {}
        self.captured: dict[int, Any] = {}
        self.statics: tuple[Static, ...] = ()
        self.count = 0
        self.location: Location | None = None
        self.interned: dict[tuple[type, Any], int] = {}
        """Constants that are numbers, by class and value; those that equal others, or not themselves, by their text."""
        self._definitions: dict[int, Op] = {}

    def type(self, variable: int) -> TensorType:
        """Type of ``variable``."""
        return self.types[variable]

    def variable(self, type: TensorType) -> int:
        """A new variable of ``type``."""
        self.count += 1
        self.types[self.count] = type
        return self.count

    def input(self, type: TensorType, argument: int, name: str, path: tuple[Any, ...] = ()) -> int:
        """A new input variable."""
        variable = self.variable(type)
        self.inputs.append(Input(variable, argument, name, path))
        return variable

    def constant(self, value: Any) -> int:
        """The variable of a constant, which must never change; equal scalars share one variable."""
        if isinstance(value, np.ndarray):
            return self._constant(value)
        # Zeros of both signs are equal, and so are those in complex numbers.
        is_told = type(value) in (float, int) and value and value == value
        key = type(value), value if is_told else repr(value)
        found = self.interned.get(key)
        if found is None:
            found = self.interned[key] = self._constant(value)
        return found

    def constant_of(self, value: Any, type: TensorType) -> int:
        """The variable of a constant whose recorded type rules: a strong scalar may be kept as a Python number."""
        found = self.constant(value)
        if self.types[found] != type:
            found = self.variable(type)
            self.constants[found] = value
        return found

    def _constant(self, value: Any) -> int:
        variable = self.variable(type_of(value))
        self.constants[variable] = value
        return variable

    def emit(
        self, primitive: Primitive, operands: Iterable[int], static: Keywords = (), type: TensorType | None = None
    ) -> int:
        """Append an op; its type is inferred by default."""
        operands, pairs, type = self.completed(primitive, operands, static, type)
        self.count = result = self.count + 1
        self.types[result] = type
        self._definitions[result] = op = Op(result, primitive, operands, pairs, self.location)
        self.ops.append(op)
        return result

    def completed(
        self, primitive: Primitive, operands: Iterable[int], static: Keywords, type: TensorType | None
    ) -> tuple[tuple[int, ...], tuple[tuple[str, Any], ...], TensorType]:
        """Operands, static keywords and type as ops have them."""
        operands = tuple(operands)
        pairs = static if isinstance(static, tuple) else tuple(sorted(static.items())) if static else ()
        if type is None:
            type = infer(primitive, tuple([self.types[operand] for operand in operands]), pairs)
        return operands, pairs, type

    def definition(self, variable: int) -> Op | None:
        """The op that defines ``variable``; None for inputs and constants."""
        return self._definitions.get(variable)

    def replace(self, op: Op, type: TensorType) -> None:
        """Replace the op with the same result by ``op``, which has more results at the end."""
        place = next(number for number in reversed(range(len(self.ops))) if self.ops[number].result == op.result)
        self.ops[place] = self._definitions[op.result] = op
        self.types[op.result] = type

    def guard(self, variable: int, expected: Any, kind: str, *, signs: bool = False) -> None:
        """Record that the tape is valid only while ``variable`` equals ``expected``; for ``signs`` see `Guard`."""
        self.guards.append(Guard(variable, expected, kind, len(self.ops), self.location, signs))

    def finished(self) -> tuple[Op, ...]:
        """The ops so far."""
        return tuple(self.ops)

    def finish(self, outputs: Iterable[int]) -> Tape:
        """The finished tape."""
        return Tape(
            self.name,
            tuple(self.inputs),
            self.constants,
            self.finished(),
            tuple(outputs),
            self.types,
            tuple(self.guards),
            self.names,
            self.captured,
            self.statics,
        )


Rewrite = Callable[[Tape], Tape]
"""A pass: tape to tape."""
