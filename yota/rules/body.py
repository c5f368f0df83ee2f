"""Expanding an expression of a rule onto an emitter: a tape that grows, or plain evaluation with NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import yota.rules.blocks
import yota.rules.contraction
import yota.rules.scans
import yota.rules.singular
import yota.rules.spectra  # noqa: F401  (all register macros)
from yota.errors import RuleError
from yota.ir.primitive import Emitter, Primitive
from yota.ir.types import TensorType, type_of
from yota.rules.display import show
from yota.rules.macros import MACROS
from yota.rules.model import Adjoint, Call, Expression, Item, Literal, Name, Parameter, Rule, Spread
from yota.rules.statics import STATIC_FUNCTIONS, arithmetic, normalised

__all__ = ["EVALUATE", "Evaluate", "Names", "Primitives", "Static", "bind", "evaluate", "expand"]

_NUMBERS = (bool, int, float, complex, np.generic)


@dataclass(frozen=True, slots=True)
class Static:
    """A plain Python value among the names of a body: a keyword, a number, a shape."""

    value: Any


Names = Mapping[str, Any]
"""Handles by parameter and result; a tuple of handles for a variadic parameter; `Static` for keywords and for the
loop index; and, under ``"d"``, the adjoint of the result."""


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
            return self._named("d")
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
            else:
                if not isinstance(argument, Static):
                    raise RuleError(f"`{name}` of {call.function} must be static in `{show(call)}`")
                bound.arguments[name] = argument.value
        return macro.function(*bound.args, **bound.kwargs)

    def _handle(self, argument: Any) -> Any:
        return self.emitter.constant(argument.value) if isinstance(argument, Static) else argument

    def _primitive(self, call: Call) -> Any:
        arguments = self._arguments(call)
        keywords = {name: self._static(argument) for name, argument in call.keywords}
        if not keywords and all(isinstance(argument, Static) for argument in arguments):
            return Static(self._number(call, tuple(argument.value for argument in arguments)))
        operands, static = bind(self.registry.rules(call.function)[0], arguments, keywords)
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


def bind(rule: Rule, arguments: list[Any], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Operands and static keywords of a call of the primitive that ``rule`` describes.

    Positional arguments beyond the operands are its keywords in their order; keywords that are left out take their
    defaults.

    Raises
    ------
    RuleError
        If the call does not fit the signature.
    """
    fixed = [parameter for parameter in rule.operands if not parameter.variadic]
    variadic = len(fixed) < len(rule.operands)
    if len(arguments) < len(fixed):
        raise RuleError(f"{rule.name} takes {len(fixed)} operands, found {len(arguments)}")
    operands, rest = (arguments, []) if variadic else (arguments[: len(fixed)], arguments[len(fixed) :])
    if len(rest) > len(rule.keywords):
        raise RuleError(f"{rule.name} takes at most {len(rule.parameters)} arguments, found {len(arguments)}")
    static = dict(zip((parameter.name for parameter in rule.keywords), rest, strict=False))
    for name, value in keywords.items():
        if name in static:
            raise RuleError(f"{rule.name} is given `{name}` twice")
        if not any(parameter.name == name for parameter in rule.keywords):
            raise RuleError(f"{rule.name} has no keyword `{name}`")
        static[name] = value
    for parameter in rule.keywords:
        if parameter.name not in static:
            static[parameter.name] = _default(rule, parameter)
    return operands, static


def _default(rule: Rule, parameter: Parameter) -> Any:
    if not isinstance(parameter.default, Literal):
        raise RuleError(f"{rule.name} needs the keyword `{parameter.name}`")
    return parameter.default.value
