"""Primitives made from rules: looked up by their targets, or evaluated and expanded by their primals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from yota.errors import RuleError
from yota.ir.catalog import primitive as built_in
from yota.ir.primitive import Emitter, Primitive
from yota.rules.algebras.emitted import EVALUATE, Static, expand
from yota.rules.display import template
from yota.rules.inspection import Registered
from yota.rules.model import Rule
from yota.rules.statics import bind
from yota.rules.targets import Late, resolve

__all__ = ["make", "missing"]


def make(rule: Rule, registry: Registered) -> Primitive:
    """The primitive that ``rule`` describes."""
    several = _several(rule)
    elementwise = rule.kind == "elementwise" and not several
    if rule.target is None:
        body = _expansion(rule.name, registry)
        return Primitive(rule.name, None, elementwise, _evaluated(rule.name, registry), body, several)
    if rule.target.startswith(("numpy.", "yota.ir.")):
        try:
            known = built_in(rule.name)
        except KeyError:
            known = None
        if known is not None and known.target == rule.target:
            return known
    function = resolve(rule.target)
    if isinstance(function, np.ufunc):
        elementwise = function.signature is None and function.nout == 1
    return Primitive(rule.name, rule.target, elementwise, function or Late(rule.target), None, several)


def _several(rule: Rule) -> Literal["", "elementwise", "tensor"]:
    if len(rule.results) == 1:
        return ""
    return "elementwise" if rule.kind == "elementwise" else "tensor"


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
