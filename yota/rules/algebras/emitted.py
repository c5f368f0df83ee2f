"""The algebra of primitives: an expression is written onto an emitter, a tape that grows or NumPy at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.ir.infer import infer
from yota.ir.primitive import Emitter, Primitive
from yota.ir.types import TensorType, type_of
from yota.rules.algebras.evaluate import Algebra
from yota.rules.language.model import Adjoint, Call, Expression, Item, Name, Spread
from yota.rules.language.rule_text import show
from yota.rules.language.statics import STATIC_FUNCTIONS, arithmetic, bind, normalised
from yota.rules.laws.inspection import Registered
from yota.rules.macros import MACROS
from yota.rules.macros.macro import Value

_NUMBERS = (bool, int, float, complex, np.generic)


@dataclass(frozen=True, slots=True)
class Static:
    """A plain Python value among the names of an expression: a keyword, a number, a shape."""

    value: Any


@dataclass(frozen=True, slots=True)
class Absent:
    """Zeros of ``type`` that are not computed: the adjoint of a result that nothing depends on."""

    type: TensorType


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


def expand(expression: Expression, names: Mapping[str, Any], emitter: Emitter, registry: Registered) -> Any:
    """Write ``expression`` onto ``emitter``, and give back the handle of its value.

    expression: right-hand side of a rule.
    names: handles by parameter and result; a tuple of handles for a variadic parameter; `Static` for keywords and for
        the loop index; and, under ``"d[y]"``, the adjoint of the result ``y``, which may be `Absent`.
    emitter: takes the primitives.
    registry: knows the primitives by name.
    Raises RuleError if the expression cannot be computed for these types.
    """
    algebra = Emitted(emitter, registry)
    return algebra.present(algebra.operand(expression, names))


def contribution(expression: Expression, names: Mapping[str, Any], emitter: Emitter, registry: Registered) -> Any:
    """Like `expand`, for an adjoint: `Absent` if it is exactly zero because all adjoints that it needs are."""
    return Emitted(emitter, registry).operand(expression, names)


def evaluate(expression: Expression, names: Mapping[str, Any], registry: Registered) -> Any:
    """The value of ``expression`` over concrete ``names``, computed with NumPy."""
    return expand(expression, names, EVALUATE, registry)


def depends(expression: Expression, on: Callable[[Expression], bool]) -> bool:
    """Whether a value in ``expression`` depends on a leaf for which ``on`` holds; shapes and dtypes do not count."""
    if isinstance(expression, Call):
        return expression.function not in STATIC_FUNCTIONS and any(depends(each, on) for each in expression.inside)
    return on(expression)


def mentions_adjoint(expression: Expression) -> bool:
    """Whether a value in ``expression`` depends on an adjoint."""
    return depends(expression, lambda leaf: isinstance(leaf, Adjoint))


@dataclass(frozen=True, slots=True)
class Emitted(Algebra):
    """Handles of an emitter; `Static` where a value is known, `Absent` where it is exactly zero."""

    emitter: Emitter
    registry: Registered

    def operand(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        """The handle of ``expression``; a number becomes a constant."""
        found = self.of(expression, names)
        if not isinstance(found, Static):
            return found
        if not isinstance(found.value, _NUMBERS):
            raise RuleError(f"`{show(expression)}` is {found.value!r}, where an array or a number is needed")
        return self.emitter.constant(found.value)

    def present(self, value: Any) -> Any:
        """The handle of ``value``, with zeros spelled out and a number as a constant."""
        if isinstance(value, Static):
            return self.emitter.constant(value.value)
        if isinstance(value, Absent):
            return self.emitter.constant(np.broadcast_to(np.zeros((), value.type.dtype), value.type.shape))
        return value

    def literal(self, value: Any) -> Any:
        """A value that is known."""
        return Static(value)

    def leaf(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        """What an identifier stands for."""
        if isinstance(expression, Name):
            return _named(expression.id, names)
        if isinstance(expression, Adjoint):
            return _named(f"d[{expression.of}]", names)
        if isinstance(expression, Item):
            return _named(expression.name, names)[_named(expression.index, names).value]
        raise RuleError(f"`{show(expression)}` can only stand among the arguments of a call")

    def arguments(self, call: Call, names: Mapping[str, Any]) -> list[Any]:
        """The arguments, with those of a variadic parameter one by one."""
        found: list[Any] = []
        for argument in call.arguments:
            if isinstance(argument, Spread):
                found.extend(_named(argument.name, names))
            else:
                found.append(self.of(argument, names))
        return found

    def call(self, call: Call, names: Mapping[str, Any]) -> Any:
        """A tuple, a macro, a static function or a primitive."""
        if call.function == "tuple":
            return Static(tuple(self._static(argument, names) for argument in call.arguments))
        if call.function in MACROS:
            return self._macro(call, names)
        arguments = self.arguments(call, names)
        if call.function in STATIC_FUNCTIONS:
            plain = {name: self._plain(self.of(argument, names)) for name, argument in call.keywords}
            return Static(STATIC_FUNCTIONS[call.function](*map(self._plain, arguments), **plain))
        keywords = {name: self._static(argument, names) for name, argument in call.keywords}
        if any(isinstance(argument, Absent) for argument in arguments):
            return self._without(call, arguments, keywords)
        return self._applied(call, arguments, keywords)

    def _static(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        found = self.of(expression, names)
        if not isinstance(found, Static):
            raise RuleError(f"`{show(expression)}` is an array, where a static value is needed")
        return found.value

    def _plain(self, argument: Any) -> Any:
        return argument.value if isinstance(argument, Static) else self.emitter.type(argument)

    def _type(self, argument: Any) -> TensorType:
        return argument.type if isinstance(argument, Absent) else self.emitter.type(self.present(argument))

    def _macro(self, call: Call, names: Mapping[str, Any]) -> Any:
        macro = MACROS[call.function]
        keywords = {name: self.of(argument, names) for name, argument in call.keywords}
        bound = macro.signature.bind(*self.arguments(call, names), **keywords)
        for name, argument in bound.arguments.items():
            if name in macro.values:
                many = isinstance(argument, tuple)
                bound.arguments[name] = tuple(map(self._value, argument)) if many else self._value(argument)
            elif name in macro.optional:
                bound.arguments[name] = None if isinstance(argument, Absent) else self._value(argument)
            elif isinstance(argument, Static):
                bound.arguments[name] = argument.value
            else:
                raise RuleError(f"`{name}` of {call.function} must be static in `{show(call)}`")
        return macro.function(*bound.args, **bound.kwargs).handle

    def _value(self, argument: Any) -> Value:
        return Value(self.emitter, self.present(argument))

    def _bound(self, call: Call, arguments: list[Any], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        operands, static = bind(self.registry.rules(call.function)[0], arguments, keywords, Static)
        return operands, {name: each.value if isinstance(each, Static) else each for name, each in static.items()}

    def _without(self, call: Call, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A call with adjoints that are exactly zero, in which it is linear."""
        spread = len(arguments) != len(call.arguments)
        rest = [
            argument
            for argument, expression in zip(arguments, call.arguments, strict=False)
            if not isinstance(argument, Absent) and (spread or mentions_adjoint(expression))
        ]
        types = tuple(self._type(argument) for argument in arguments)
        whole = np.broadcast_shapes(*(each.shape for each in types)) if call.function in ("add", "subtract") else None
        if len(rest) == 1 and whole == self._type(rest[0]).shape:
            added = call.function == "add" or rest[0] is arguments[0]
            return rest[0] if added else self._applied(Call("negative", call.arguments[1:]), rest, {})
        if rest:
            return self._applied(call, list(map(self.present, arguments)), keywords)
        _, static = self._bound(call, arguments, keywords)
        pairs = tuple(sorted(normalised(call.function, static, types).items()))
        return Absent(infer(self.registry.primitive(call.function), types, pairs))

    def _applied(self, call: Call, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if not keywords and all(isinstance(argument, Static) for argument in arguments):
            return Static(self._number(call, tuple(argument.value for argument in arguments)))
        operands, static = self._bound(call, arguments, keywords)
        handles = tuple(map(self.present, operands))
        types = tuple(map(self.emitter.type, handles))
        if call.function in ("conjugate", "real") and not types[0].is_complex:
            return handles[0]
        static = normalised(call.function, static, types)
        return self.emitter.emit(self.registry.primitive(call.function), handles, static)

    def _number(self, call: Call, values: tuple[Any, ...]) -> Any:
        try:
            found = arithmetic(call.function, values)
            if found is NotImplemented:
                found = self.registry.primitive(call.function).function(*values)
        except (ArithmeticError, TypeError, ValueError) as fault:
            raise RuleError(f"`{show(call)}` cannot be computed: {fault}") from None
        return found.item() if isinstance(found, (np.generic, np.ndarray)) else found


def _named(name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        raise RuleError(f"`{name}` is not known here")
    return names[name]
