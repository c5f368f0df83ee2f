"""Laws of right-hand sides: known names, known functions, fitting arguments, no endless definitions."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator

from yota.errors import RuleError
from yota.ir.catalog import primitive as built_in
from yota.rules.algebras.emitted import depends
from yota.rules.language.model import Adjoint, Call, Expression, Literal, Name, Spread
from yota.rules.language.rule_text import show, template, walk
from yota.rules.language.statics import STATIC_FUNCTIONS, bind
from yota.rules.laws.inspection import Inspection, Registered, Side
from yota.rules.macros import MACROS

_ELEMENTWISE_MACROS = frozenset({"branch", "phase"})


def scope(case: Inspection) -> None:
    """Names stand for parameters and, outside the primal, for the result; d[y] stands in adjoints only."""
    rule = case.rule
    parameters = {parameter.name for parameter in rule.parameters}
    for side in case.sides():
        known = parameters | (set() if side.role == "primal" else set(rule.results))
        if side.role == "adjoint" and rule.loop is not None:
            known |= {rule.loop}
        for part in walk(side.expression):
            _check_name(case, side, part, known)


def _check_name(case: Inspection, side: Side, part: Expression, known: set[str]) -> None:
    rule = case.rule
    if isinstance(part, Name) and part.id in case.variadic:
        write = f"*{part.id}, or {part.id}[i] in d[{part.id}[i]]"
        raise case.fault(part, f"`{part.id}` stands for several arrays", found=part.id, write=write)
    if isinstance(part, Name) and part.id not in known:
        near = difflib.get_close_matches(part.id, sorted(known), 1)
        write = _as_extent(case, part.id) or (near[0] if near else ", ".join(sorted(known)) or "a number")
        if part.id in rule.results:
            raise case.fault(part, "the primal cannot mention its own result", found=part.id, write=write)
        raise case.fault(part, f"`{part.id}` is not known here", found=part.id, write=write)
    if isinstance(part, Adjoint):
        if side.role != "adjoint":
            raise case.fault(
                part,
                "d[y] stands in adjoints only; the engine multiplies a partial by it",
                found=f"{show(part)} in {side.left}",
                write=f"{side.left} = ... without {show(part)}",
            )
        if part.of not in rule.results:
            raise case.fault(part, f"`{part.of}` is not the result", found=show(part), write=f"d[{rule.results[0]}]")


def _as_extent(case: Inspection, name: str) -> str | None:
    """The expression of an extent that a parameter's set names."""
    for parameter in case.rule.parameters:
        dimensions = (parameter.domain and parameter.domain.dimensions) or ()
        if name in dimensions:
            axis = dimensions.index(name)
            return f"extent({parameter.name}, {axis - len(dimensions) if '...' in dimensions else axis})"
    return None


def vocabulary(case: Inspection) -> None:
    """Every function in a right-hand side is a primitive, a macro or a static function."""
    for call in _calls(case):
        name = call.function
        if not _known(case, name) and not _in_numpy(name):
            names = [*case.registry.names(), *MACROS, *STATIC_FUNCTIONS]
            near = difflib.get_close_matches(name, [each for each in names if not each.startswith("_")], 1, 0.7)
            what = f"`{name}` is not a function of the rule language"
            write = f"{near[0]}(...)" if near else f"a rule of its own:\n{template(name, f'module.{name}', 1, True)}"
            raise case.fault(call, what, write=write)


def closure(case: Inspection) -> None:
    """A NumPy function in a right-hand side has a rule itself, so that derivatives have derivatives."""
    for call in _calls(case):
        if not _known(case, call.function) and _in_numpy(call.function):
            target = f"numpy.{call.function}"
            elementwise = built_in(call.function).elementwise
            what = f"{target} has no rule, so this line could not be differentiated again"
            write = f"a rule for it:\n{template(call.function, target, max(len(call.arguments), 1), elementwise)}"
            raise case.fault(call, what, write=write)


def one_element(case: Inspection) -> None:
    """An elementwise rule calls elementwise functions only."""
    if case.rule.kind != "elementwise":
        return
    for call in _calls(case):
        name = call.function
        if name in STATIC_FUNCTIONS or name in _ELEMENTWISE_MACROS or name == "item":
            continue
        known = case.registry
        if name in MACROS or not (known.rules(name)[0].kind == "elementwise" or known.primitive(name).elementwise):
            what = f"`{name}` is not elementwise, and the rule speaks of one element"
            raise case.fault(call, what, write="@tensor in place of @elementwise, and adjoints in place of partials")


def one_value(case: Inspection) -> None:
    """What is called gives one value; of several results `item` takes one."""
    within: set[int] = set()
    for call in _calls(case):
        name = call.function
        inner = call.arguments[0] if call.arguments else None
        if name == "item" and _results(case, inner) > 1:
            number = dict(call.keywords).get("index", call.arguments[1] if len(call.arguments) > 1 else None)
            if not isinstance(number, Literal) or number.value not in range(_results(case, inner)):
                what = f"`index` says which of the {_results(case, inner)} results, counted from 0"
                write = f"item({show(inner)[:40]}, index=0)" if inner else "item(f(x), index=0)"
                raise case.fault(call, what, write=write)
            within.add(id(inner))
        elif name == "item":
            what = "`item` takes one of the several results of a function"
            raise case.fault(call, what, write=f"{show(inner)[:40]}" if inner else "item(f(x), index=0)")
        elif _results(case, call) > 1 and id(call) not in within:
            what = f"`{name}` gives {_results(case, call)} results, and a right-hand side is made of single values"
            raise case.fault(call, what, write=f"item({show(call)[:40]}, index=0)")


def _results(case: Inspection, expression: Expression | None) -> int:
    """How many results a call has; 1 for what is no call of a primitive."""
    if not isinstance(expression, Call) or not case.registry.knows(expression.function):
        return 1
    return len(case.registry.rules(expression.function)[0].results)


def keywords(case: Inspection) -> None:
    """The arguments of each call fit the callee."""
    for call in _calls(case):
        fault = _misfit(case, call)
        if fault is not None:
            raise case.fault(call, fault, found=show(call)[:80], write=_usage(case, call.function))


def operands(case: Inspection) -> None:
    """Arrays are combined with numbers and arrays; strings, None and tuples meet static values and keywords only."""
    static = {each.name for each in case.rule.keywords} | {case.rule.loop}

    def is_array(leaf: Expression) -> bool:
        return not isinstance(leaf, Literal) and (not isinstance(leaf, Name) or leaf.id not in static)

    for call in _calls(case):
        if call.function in MACROS or call.function in STATIC_FUNCTIONS or not depends(call, is_array):
            continue
        taken = case.registry.rules(call.function)[0].operands
        count = len(call.arguments) if taken and taken[-1].variadic else len(taken)
        for argument in call.arguments[:count]:
            if isinstance(argument, Literal) and not isinstance(argument.value, (bool, int, float, complex)):
                what = f"{call.function} of an array takes numbers and arrays, and this is neither"
                raise case.fault(argument, what, write="a number, or the name of a parameter")


def _misfit(case: Inspection, call: Call) -> str | None:
    names = [name for name, _ in call.keywords]
    if len(set(names)) < len(names):
        return f"{call.function} is given a keyword twice"
    if any(isinstance(argument, Spread) for argument in call.arguments):
        return None
    given = dict(call.keywords)
    try:
        if call.function in MACROS:
            MACROS[call.function].signature.bind(*call.arguments, **given)
        elif call.function in STATIC_FUNCTIONS:
            inspect.signature(STATIC_FUNCTIONS[call.function]).bind(*call.arguments, **given)
        else:
            bind(case.registry.rules(call.function)[0], list(call.arguments), given, Literal)
    except (TypeError, RuleError) as fault:
        return f"the call does not fit: {fault}"
    return None


def _usage(case: Inspection, name: str) -> str:
    if name in MACROS:
        parameters = list(MACROS[name].signature.parameters.values())
    elif name in STATIC_FUNCTIONS:
        parameters = list(inspect.signature(STATIC_FUNCTIONS[name]).parameters.values())
    else:
        rule = case.registry.rules(name)[0]
        plain = [f"{'*' * each.variadic}{each.name}" for each in rule.operands]
        return f"{name}({', '.join(plain + [f'{each.name}=...' for each in rule.keywords])})"
    texts = [("*" if each.kind is each.VAR_POSITIONAL else "") + each.name for each in parameters]
    return f"{name}({', '.join(texts)})"


def grounded(case: Inspection) -> None:
    """A primal leads to other primitives in the end, never back to itself."""
    rule = case.rule
    for side in case.sides():
        defines = side.role == "equation" or (side.role == "primal" and rule.target is None)
        if defines and rule.name in _reached(case.registry, side.expression):
            raise case.fault(
                side.expression, f"`{rule.name}` is defined by itself", write="a primal of other primitives"
            )


def _reached(registry: Registered, expression: Expression) -> set[str]:
    found: set[str] = set()
    pending = [expression]
    while pending:
        for name in callees(pending.pop()):
            if name not in found and registry.knows(name):
                found.add(name)
                pending += [
                    primal
                    for rule in registry.rules(name)
                    if rule.target is None
                    for primal in (*rule.primal.values(), *([] if rule.equation is None else [rule.equation]))
                ]
    return found


def callees(expression: Expression) -> set[str]:
    """Names of the functions that ``expression`` calls."""
    return {part.function for part in walk(expression) if isinstance(part, Call)}


def _calls(case: Inspection) -> Iterator[Call]:
    for side in case.sides():
        yield from (part for part in walk(side.expression) if isinstance(part, Call) and part.function != "tuple")


def _known(case: Inspection, name: str) -> bool:
    return name in MACROS or name in STATIC_FUNCTIONS or case.registry.knows(name)


def _in_numpy(name: str) -> bool:
    try:
        built_in(name)
    except KeyError:
        return False
    return True
