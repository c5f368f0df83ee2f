"""Expanding an expression of a rule onto an emitter: a tape that grows, or plain evaluation with NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from yota.errors import RuleError
from yota.ir.infer import infer
from yota.ir.primitive import Emitter, Primitive
from yota.ir.types import TensorType, type_of
from yota.rules.absent import Absent, mentions_adjoint, present
from yota.rules.calls import bind
from yota.rules.display import show
from yota.rules.macros.known import MACROS
from yota.rules.model import Adjoint, Call, Expression, Item, Literal, Name, Rule, Spread
from yota.rules.statics import STATIC_FUNCTIONS, arithmetic, normalised

__all__ = ["EVALUATE", "Evaluate", "Names", "Primitives", "Static", "contribution", "evaluate", "expand"]

_NUMBERS = (bool, int, float, complex, np.generic)


@dataclass(frozen=True, slots=True)
class Static:
    """A plain Python value among the names of a body: a keyword, a number, a shape."""

    value: Any


Names = Mapping[str, Any]
"""Handles by parameter and result; a tuple of handles for a variadic parameter; `Static` for keywords and for the
loop index; and, under ``"d[y]"``, the adjoint of the result ``y``, which may be `Absent`."""


class Primitives(Protocol):
    """What expansion asks of a registry."""

    def primitive(self, name: str) -> Primitive:
        """The primitive called ``name``."""

    def rules(self, name: str) -> tuple[Rule, ...]:
        """All rules of the primitive called ``name``."""


class Evaluate:
    """An emitter that computes with NumPy at once; handles are the values themselves."""

    def emit(self, primitive: Primitive, operands: tuple[Any, ...], static: dict[str, Any]) -> Any:
        """The primitive's value."""
        return primitive.function(*operands, **static)

    def constant(self, value: Any) -> Any:
        """The value itself."""
        return value

    def type(self, handle: Any) -> TensorType:
        """Type of a value."""
        return type_of(handle)


EVALUATE = Evaluate()


def expand(expression: Expression, names: Names, emitter: Emitter, registry: Primitives) -> Any:
    """Write ``expression`` onto ``emitter``, and give back the handle of its value.

    Parameters
    ----------
    expression
        Right-hand side of a rule.
    names
        What the identifiers stand for; see `Names`.
    emitter
        Takes the primitives.
    registry
        Knows the primitives by name.

    Raises
    ------
    RuleError
        If the expression cannot be computed for these types.
    """
    return present(emitter, _Expansion(names, emitter, registry).operand(expression))


def contribution(expression: Expression, names: Names, emitter: Emitter, registry: Primitives) -> Any:
    """Like `expand`, for an adjoint: `Absent` if it is exactly zero because all adjoints that it needs are."""
    return _Expansion(names, emitter, registry).operand(expression)


def evaluate(expression: Expression, names: Names, registry: Primitives) -> Any:
    """The value of ``expression`` over concrete ``names``, computed with NumPy."""
    return expand(expression, names, EVALUATE, registry)


@dataclass(slots=True)
class _Expansion:
    names: Names
    emitter: Emitter
    registry: Primitives

    def operand(self, expression: Expression) -> Any:
        """The handle of ``expression``; a number becomes a constant."""
        found = self.value(expression)
        if not isinstance(found, Static):
            return found
        if not isinstance(found.value, _NUMBERS):
            raise RuleError(f"`{show(expression)}` is {found.value!r}, where an array or a number is needed")
        return self.emitter.constant(found.value)

    def value(self, expression: Expression) -> Any:
        """The handle of ``expression``, or a `Static`."""
        if isinstance(expression, Call):
            return self._call(expression)
        if isinstance(expression, Literal):
            return Static(expression.value)
        if isinstance(expression, Name):
            return self._named(expression.id)
        if isinstance(expression, Adjoint):
            return self._named(f"d[{expression.of}]")
        if isinstance(expression, Item):
            return self._named(expression.name)[self._named(expression.index).value]
        raise RuleError(f"`{show(expression)}` can only stand among the arguments of a call")

    def _named(self, name: str) -> Any:
        if name not in self.names:
            raise RuleError(f"`{name}` is not known here")
        return self.names[name]

    def _call(self, call: Call) -> Any:
        if call.function == "tuple":
            return Static(tuple(self._static(argument) for argument in call.arguments))
        if call.function in MACROS:
            return self._macro(call)
        if call.function in STATIC_FUNCTIONS:
            return self._static_function(call)
        return self._primitive(call)

    def _arguments(self, call: Call) -> list[Any]:
        found: list[Any] = []
        for argument in call.arguments:
            if isinstance(argument, Spread):
                found.extend(self._named(argument.name))
            else:
                found.append(self.value(argument))
        return found

    def _static(self, expression: Expression) -> Any:
        found = self.value(expression)
        if not isinstance(found, Static):
            raise RuleError(f"`{show(expression)}` is an array, where a static value is needed")
        return found.value

    def _static_function(self, call: Call) -> Static:
        plain = [self._plain(argument) for argument in self._arguments(call)]
        keywords = {name: self._plain(self.value(argument)) for name, argument in call.keywords}
        return Static(STATIC_FUNCTIONS[call.function](*plain, **keywords))

    def _plain(self, argument: Any) -> Any:
        return argument.value if isinstance(argument, Static) else self.emitter.type(argument)

    def _macro(self, call: Call) -> Any:
        macro = MACROS[call.function]
        keywords = {name: self.value(argument) for name, argument in call.keywords}
        bound = inspect.signature(macro.function).bind(self.emitter, *self._arguments(call), **keywords)
        for name, argument in bound.arguments.items():
            if name == "emitter":
                continue
            if name in macro.values:
                many = isinstance(argument, tuple)
                bound.arguments[name] = tuple(map(self._handle, argument)) if many else self._handle(argument)
            elif name in macro.optional:
                bound.arguments[name] = None if isinstance(argument, Absent) else self._handle(argument)
            else:
                if not isinstance(argument, Static):
                    raise RuleError(f"`{name}` of {call.function} must be static in `{show(call)}`")
                bound.arguments[name] = argument.value
        return macro.function(*bound.args, **bound.kwargs)

    def _handle(self, argument: Any) -> Any:
        if isinstance(argument, Static):
            return self.emitter.constant(argument.value)
        return present(self.emitter, argument)

    def _type(self, argument: Any) -> TensorType:
        return argument.type if isinstance(argument, Absent) else self.emitter.type(self._handle(argument))

    def _primitive(self, call: Call) -> Any:
        arguments = self._arguments(call)
        if any(isinstance(argument, Absent) for argument in arguments):
            return self._without(call, arguments)
        return self._applied(call, arguments)

    def _without(self, call: Call, arguments: list[Any]) -> Any:
        """A call with adjoints that are exactly zero, in which it is linear."""
        spread = len(arguments) != len(call.arguments)
        rest = [
            argument
            for argument, expression in zip(arguments, call.arguments, strict=False)
            if not isinstance(argument, Absent) and (spread or mentions_adjoint(expression))
        ]
        types = [self._type(argument) for argument in arguments]
        whole = np.broadcast_shapes(*(each.shape for each in types)) if call.function in ("add", "subtract") else None
        if len(rest) == 1 and whole == self._type(rest[0]).shape:
            added = call.function == "add" or rest[0] is arguments[0]
            return rest[0] if added else self._applied(Call("negative", call.arguments[1:]), rest)
        if rest:
            return self._applied(call, [present(self.emitter, argument) for argument in arguments])
        keywords = {name: self._static(argument) for name, argument in call.keywords}
        _, static = bind(self.registry.rules(call.function)[0], arguments, keywords, Static)
        plain = {name: value.value if isinstance(value, Static) else value for name, value in static.items()}
        pairs = tuple(sorted(normalised(call.function, plain, tuple(types)).items()))
        return Absent(infer(self.registry.primitive(call.function), tuple(types), pairs))

    def _applied(self, call: Call, arguments: list[Any]) -> Any:
        keywords = {name: self._static(argument) for name, argument in call.keywords}
        if not keywords and all(isinstance(argument, Static) for argument in arguments):
            return Static(self._number(call, tuple(argument.value for argument in arguments)))
        operands, static = bind(self.registry.rules(call.function)[0], arguments, keywords, Static)
        handles = tuple(map(self._handle, operands))
        types = tuple(map(self.emitter.type, handles))
        if call.function in ("conjugate", "real") and not types[0].is_complex:
            return handles[0]
        plain = {name: value.value if isinstance(value, Static) else value for name, value in static.items()}
        return self.emitter.emit(
            self.registry.primitive(call.function), handles, normalised(call.function, plain, types)
        )

    def _number(self, call: Call, values: tuple[Any, ...]) -> Any:
        try:
            found = arithmetic(call.function, values)
            if found is NotImplemented:
                found = self.registry.primitive(call.function).function(*values)
        except (ArithmeticError, TypeError, ValueError) as fault:
            raise RuleError(f"`{show(call)}` cannot be computed: {fault}") from None
        return found.item() if isinstance(found, (np.generic, np.ndarray)) else found
