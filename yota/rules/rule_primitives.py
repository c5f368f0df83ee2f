"""Primitives made from rules: functions, or the primals evaluated and expanded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from typing import Literal as OneOf

import numpy as np

from yota.errors import RuleError
from yota.ir.catalog import primitive as built_in
from yota.ir.primitive import Emitter, Primitive, Shared
from yota.rules.algebras.emitted import EVALUATE, Emitted, Static, expand
from yota.rules.algebras.opaque import slope_of
from yota.rules.functions import Late, resolve
from yota.rules.language.model import Call, Expression, Literal, Name, Rule
from yota.rules.language.rule_text import template
from yota.rules.language.statics import bind
from yota.rules.laws.inspection import Registered

STEPS = 16
"""So many steps are taken; a start from which they do not lead to a root gives NaN."""
_STEP, _SLOPE = "last step", "slope before"
"""Stand for the last step, and the slope before it, among a rule's names, of which none has a space."""
_ULPS = 8
"""Twice the error, in units of the precision, that a root may have."""


def newton(rule: Rule, names: Mapping[str, Any], emitter: Emitter, registry: Registered) -> Any:
    """The root, from the rule's start; NaN where the last step is not small, or changes the slope too much.

    The error after a step is about the step times half of the relative change of the slope. At a multiple root, and
    where there is none, the slope changes as much as it is large, however small the steps are.
    """
    assert rule.start is not None
    assert rule.equation is not None
    result = rule.results[0]
    slope = slope_of(rule.equation, result, registry)
    step = Call("divide", (rule.equation, slope))

    def written(expression: Expression, root: Any, **others: Any) -> Any:
        return expand(expression, {**names, result: root, **others}, emitter, registry)

    # A number stays Python's, so that it takes the precision of the operands.
    before = root = moved = Emitted(emitter, registry).of(rule.start, names)
    for _ in range(STEPS):
        before, moved = root, written(step, root)
        root = written(Call("subtract", (Name(result), Name(_STEP))), root, **{_STEP: moved})
    precision = emitter.type(root).dtype
    eps = float(np.finfo(precision if precision.kind == "f" else np.float64).eps)
    return written(_settled(result, slope, eps), root, **{_STEP: moved, _SLOPE: written(slope, before)})


def _settled(result: str, slope: Expression, eps: float) -> Expression:
    step, root = (Call("absolute", (Name(name),)) for name in (_STEP, result))
    changed = Call("absolute", (Call("subtract", (slope, Name(_SLOPE))),))
    small = Call("less_equal", (step, Call("multiply", (Literal(math.sqrt(eps)), root))))
    least = Call("multiply", (Call("multiply", (Literal(_ULPS * eps), root)), Call("absolute", (slope,))))
    exact = Call("less_equal", (Call("multiply", (step, changed)), least))
    return Call("where", (Call("logical_and", (small, exact)), Name(result), Literal(math.nan)))


def make(rule: Rule, registry: Registered) -> Primitive:
    """The primitive that ``rule`` describes."""
    several: OneOf["", "elementwise", "tensor"] = ""
    if len(rule.results) > 1:
        several = "elementwise" if rule.kind == "elementwise" else "tensor"
    elementwise = rule.kind == "elementwise" and not several
    if rule.target is None:
        body = _expansion(rule.name, registry)
        shared = _shared(rule, registry)
        return Primitive(rule.name, None, elementwise, _evaluated(rule.name, registry), body, several, shared=shared)
    if rule.target.startswith(("numpy.", "yota.ir.")):
        try:
            known = built_in(rule.name)
        except KeyError:
            known = None
        if known is not None and known.target == rule.target:
            if known.shared is None and not registry.is_user(rule.name):
                # Tapes hold NumPy's primitives before anyone asks for their rules.
                object.__setattr__(known, "shared", _shared(rule, registry))
            return known
    function = resolve(rule.target)
    if isinstance(function, np.ufunc):
        elementwise = function.signature is None and function.nout == 1
    shared = _shared(rule, registry)
    return Primitive(rule.name, rule.target, elementwise, function or Late(rule.target), None, several, shared=shared)


def _shared(rule: Rule, registry: Registered) -> Shared | None:
    """The form of an elementwise function in the locals of its rule."""
    if rule.kind != "elementwise" or len(rule.results) > 1 or rule.keywords:
        return None
    names = [each.name for each in rule.operands]
    if rule.equation is not None and rule.start is not None:
        return Shared(lambda *_: (), lambda to, given: newton(rule, dict(zip(names, given, strict=True)), to, registry))
    if not rule.shared:
        return None

    def parts(emitter: Emitter, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        given = dict(zip(names, operands, strict=True))
        return tuple(expand(each, given, emitter, registry) for each in rule.parts.values())

    def value(emitter: Emitter, operands: tuple[Any, ...]) -> Any:
        return expand(rule.shared[rule.results[0]], dict(zip(names, operands, strict=True)), emitter, registry)

    return Shared(parts, value)


def _evaluated(name: str, registry: Registered) -> Callable[..., Any]:
    def function(*operands: Any, **static: Any) -> Any:
        return _expand(name, registry, EVALUATE, operands, static)

    function.__name__ = function.__qualname__ = name
    return function


def _expansion(name: str, registry: Registered) -> Callable[..., Any]:
    def body(emitter: Emitter, operands: tuple[Any, ...], static: Any = None) -> Any:
        if static is None and registry.rule(name, tuple(emitter.type(each).ndim for each in operands)).keywords:
            raise RuleError(f"{name} has static keywords; they must be given when it is expanded")
        return _expand(name, registry, emitter, operands, dict(static or ()))

    return body


def _expand(name: str, registry: Registered, emitter: Emitter, operands: Sequence[Any], static: dict[str, Any]) -> Any:
    handles, keywords = bind(registry.rules(name)[0], list(operands), static)
    rule = registry.rule(name, tuple(emitter.type(handle).ndim for handle in handles))
    names: dict[str, Any] = {key: Static(value) for key, value in keywords.items()}
    rest = iter(handles)
    for parameter in rule.operands:
        names[parameter.name] = tuple(rest) if parameter.variadic else next(rest)
    if rule.equation is not None:
        return newton(rule, names, emitter, registry)
    found = tuple(expand(rule.primal[result], names, emitter, registry) for result in rule.results)
    return found if len(found) > 1 else found[0]


def missing(name: str, ndims: Sequence[int]) -> str:
    """The message for a primitive without a fitting rule, with one to paste."""
    pattern = ", ".join(str(count) for count in ndims) or "no"
    try:
        known = built_in(name)
        target, elementwise = known.target or name, known.elementwise
    except KeyError:
        target, elementwise = f"module.{name}", False
    return (
        f"no rule for {name} with operands of {pattern} axes. Paste this into a rule file, fill it in, and load it "
        f"with yota.load_rules(path), or pass it to yota.diffrule(text):\n\n"
        f"{template(name, target, max(len(ndims), 1), elementwise)}"
    )
