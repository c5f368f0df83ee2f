"""Laws of a rule's outline: names, results, kinds, domains, coverage, and that each rule can fire."""

from __future__ import annotations

import math
from dataclasses import replace

from yota.rules.language.model import Adjoint, Literal, refusal
from yota.rules.language.rule_text import show, signature, walk
from yota.rules.language.statics import STATIC_FUNCTIONS
from yota.rules.laws.inspection import Inspection
from yota.rules.macros import MACROS

_SHORTEST = 10
"""Characters of a reason."""


def plain_names(case: Inspection) -> None:
    """Names of parameters and results are different, and stand for nothing else."""
    rule = case.rule
    seen: set[str] = set()
    for name, thing in [*((each.name, each) for each in rule.parameters), *((each, rule) for each in rule.results)]:
        if name in ("d", "oo", "pi") or name in seen:
            what = "this name is taken" if name not in seen else "two parameters or results have one name"
            raise case.fault(thing, what, found=name, write=f"{name}_ or another name")
        seen.add(name)
    if rule.name in MACROS or rule.name in STATIC_FUNCTIONS or rule.name in ("d", "tuple"):
        raise case.fault(
            rule, "this name means something else in rule bodies", found=rule.name, write=f"def {rule.name}_of(...)"
        )
    if case.before is not None and rule.name.startswith("_"):
        what = "names with `_` in front are yota's own"
        raise case.fault(rule, what, found=rule.name, write=f"def {rule.name.lstrip('_') or 'f'}(...)")


def several_results(case: Inspection) -> None:
    """Of several results, the adjoint of each is used, or a line says that it is zero or why there is none."""
    rule = case.rule
    if len(rule.results) == 1 or rule.kind != "tensor":
        return
    used = {part.of for each in rule.adjoints.values() for part in walk(each) if isinstance(part, Adjoint)}
    for result in rule.results:
        expression = rule.adjoints.get(result)
        if expression is None and result not in used:
            operand = next((each.name for each in rule.operands), "x")
            what = f"the derivative of `{result}` is missing: no adjoint uses d[{result}]"
            write = f"d[{operand}] = ... d[{result}] ..., or, if it is zero: d[{result}] = 0"
            raise case.fault(rule, what, found=signature(rule), write=write)
        if expression is not None and result in used:
            what = f"d[{result}] is used in an adjoint, so it is neither zero nor refused"
            raise case.fault(expression, what, found=f"d[{result}] = {show(expression)}"[:60], write="one of the two")


def ownership(case: Inspection) -> None:
    """One name is one primitive: the same target and kind in all of its rules, and no other primitive's name."""
    rule = case.rule
    for other in case.peers:
        if other.name == rule.name and other.decorator != rule.decorator:
            what = f"the rules of `{rule.name}` differ in their decorator"
            raise case.fault(rule, what, found=rule.decorator, write=other.decorator)
        if other.name != rule.name and rule.target is not None and other.target == rule.target:
            what = f"the target {rule.target} has a rule under another name already"
            raise case.fault(rule, what, found=f"def {rule.name}", write=f"def {other.name}(...) -> {rule.results[0]}:")
    before = case.before
    if before is None or not before.knows(rule.name) or before.is_user(rule.name):
        return
    shipped = before.rules(rule.name)[0]
    if shipped.target != rule.target:
        what = f"`{rule.name}` is the name of {shipped.target} already"
        write = f"def my_{rule.name}(...), or to override it: {shipped.decorator}"
        raise case.fault(rule, what, found=rule.decorator, write=write)


def definition(case: Inspection) -> None:
    """Without a target, the primal says what the function is."""
    rule = case.rule
    if rule.equation is not None:
        for parameter in rule.operands:
            if parameter.domain is not None and parameter.domain.kind == "complex":
                what = "an @implicit rule is for real operands"
                raise case.fault(parameter, what, found=f"{parameter.name}: Complex", write=f"{parameter.name}: Real")
        if case.variadic:
            what = "an @implicit rule names each operand"
            raise case.fault(
                rule, what, found=signature(rule), write=f"def {rule.name}(x: Array, b: Array) -> {rule.results[0]}:"
            )
        if rule.kind == "tensor" and (rule.target is None or rule.start is not None):
            what = "an @implicit rule for arrays names the function that solves the equation, and no start"
            write = f'@implicit("module.{rule.name}"), and the equation alone'
            raise case.fault(rule.start or rule, what, found=rule.decorator, write=write)
        if rule.solve and rule.kind != "tensor":
            what = "an @implicit rule of numbers solves no linear system"
            raise case.fault(rule, what, found=rule.decorator, write=replace(rule, solve="").decorator)
        if rule.target is None and rule.start is None:
            what = "an @implicit rule without a target says where Newton's method starts"
            write = f'{rule.results[0]} = ..., or name the target: @implicit("module.{rule.name}")'
            raise case.fault(rule, what, found=rule.decorator, write=write)
        return
    if rule.target is None and (rule.kind == "nodiff" or set(rule.primal) != set(rule.results)):
        what = "a rule without a target defines its function by the primal, which is missing"
        write = f'{rule.results[0]} = ..., or name the target: @{rule.kind}("module.{rule.name}")'
        raise case.fault(rule, what, found=rule.decorator, write=write)


def form(case: Inspection) -> None:
    """Elementwise rules have partials, tensor rules have adjoints, of operands that carry derivatives."""
    rule = case.rule
    result = rule.results[0]
    for parameter in rule.operands:
        if rule.kind == "elementwise" and (
            parameter.variadic or (parameter.domain is not None and parameter.domain.kind == "array")
        ):
            what = f"an {rule.decorator.partition('(')[0]} rule speaks of one element of each operand"
            write = f"{parameter.name}: Real, or @tensor in place of {rule.decorator.partition('(')[0]}"
            raise case.fault(parameter, what, found=f"{'*' * parameter.variadic}{parameter.name}: Array", write=write)
    for name, expression in rule.adjoints.items():
        if rule.kind == "tensor" and name in rule.results and len(rule.results) > 1:
            if expression != Literal(0) and refusal(expression) is None:
                what = f"`{name}` is a result; its adjoint is given"
                write = f'd[{name}] = 0, or d[{name}] = "why there is no derivative"'
                raise case.fault(expression, what, found=f"d[{name}] = {show(expression)}"[:60], write=write)
            continue
        if rule.kind == "elementwise":
            what = "an elementwise rule has partials of one element, which do not mention d[y]"
            raise case.fault(expression, what, found=f"d[{name}] = ...", write=f"d[{result}, {name}] = ...")
        _differentiable(case, name, expression, f"d[{name}]")
    for (of, name), expression in rule.partials.items():
        if rule.kind == "tensor":
            what = "a tensor rule has adjoints, which are linear in d[y]"
            raise case.fault(expression, what, found=f"d[{of}, {name}] = ...", write=f"d[{name}] = ...")
        if of not in rule.results:
            raise case.fault(
                expression, f"`{of}` is not the result", found=f"d[{of}, {name}]", write=f"d[{result}, {name}] = ..."
            )
        _differentiable(case, name, expression, f"d[{of}, {name}]")


def _differentiable(case: Inspection, name: str, expression: object, left: str) -> None:
    known = {parameter.name: parameter for parameter in case.rule.parameters}
    parameter = known.get(name)
    if parameter is None:
        what = f"`{name}` is not a parameter"
        write = left[: left.rindex(name)] + next(iter(known), "x") + "] = ..."
        raise case.fault(expression, what, found=left, write=write)
    if not parameter.moves:
        what = f"`{name}` carries no derivative"
        raise case.fault(expression, what, found=left, write=f"{name}: Real in the signature, or leave the line out")
    if parameter.variadic and case.rule.loop is None:
        raise case.fault(expression, f"`{name}` stands for several arrays", found=left, write=f"d[{name}[i]] = ...")


def coverage(case: Inspection) -> None:
    """Each operand that carries a derivative has it written, or derivable from the primal."""
    rule = case.rule
    if rule.kind == "nodiff" or rule.equation is not None or rule.adjoints.keys() >= set(rule.results):
        return
    for parameter in rule.operands:
        if not parameter.moves:
            continue
        if rule.kind == "tensor" and parameter.name not in rule.adjoints:
            left = f"d[{parameter.name}[i]]" if parameter.variadic else f"d[{parameter.name}]"
            what = f"the adjoint of `{parameter.name}` is missing"
            raise case.fault(parameter, what, found=signature(rule), write=f"{left} = ...    # 0 where it is zero")
        for result in rule.results:
            written = (result, parameter.name) in rule.partials or result in rule.primal
            if rule.kind == "elementwise" and not written:
                what = f"the partial by `{parameter.name}` is missing, and there is no primal to derive it from"
                write = f"d[{result}, {parameter.name}] = ...    # 0 where it is zero"
                raise case.fault(parameter, what, found=signature(rule), write=write)


def non_empty_domain(case: Inspection) -> None:
    """Each domain has elements."""
    for parameter in case.rule.operands:
        domain = parameter.domain
        if domain is None:
            continue
        empty = not domain.low < domain.high
        if domain.kind == "integer" and not empty:
            empty = math.isfinite(domain.low) and math.ceil(domain.low) > domain.high
        if empty:
            name = domain.kind.capitalize()
            what = f"the domain of `{parameter.name}` is empty"
            write = f"{parameter.name}: {name}({min(domain.low, domain.high):g}, oo)"
            raise case.fault(parameter, what, found=f"{name}({domain.low:g}, {domain.high:g})", write=write)


def refusals(case: Inspection) -> None:
    """A string is a whole right-hand side of a derivative, and long enough to be a reason."""
    for side in case.sides():
        reason = refusal(side.expression)
        if reason is None:
            continue
        if side.role in ("primal", "kink", "equation"):
            what = "a string stands in the place of a derivative only, and says why there is none"
            write = f"{side.left} = ..." if side.role == "primal" else "assert x != 0"
            raise case.fault(side.expression, what, write=write)
        if len(reason.strip()) < _SHORTEST:
            what = f"{side.left} does not say why there is no derivative"
            write = f'{side.left} = "no closed form"'
            raise case.fault(side.expression, what, found=show(side.expression), write=write)


def reachable(case: Inspection) -> None:
    """No earlier rule of the same name takes operands away from this one."""
    for other in case.peers:
        if other is case.rule:
            return
        if other.name == case.rule.name and other.overlaps(case.rule):
            what = f"this rule and the one of line {other.line} fit the same operands, so one of them can never fire"
            write = "patterns that exclude each other, such as Array[k] and Array[m, k]"
            raise case.fault(case.rule, what, found=signature(case.rule), write=write)
