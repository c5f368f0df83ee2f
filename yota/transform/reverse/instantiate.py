"""Writing the derivative part of one rule onto a tape, for one op and one of its operands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from yota.errors import DifferentiationError, MissingRuleError, RuleError, TracingError
from yota.ir.catalog import item_of, primitive
from yota.ir.indexing import takes_all
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType, TupleType
from yota.rules.algebras.emitted import Absent, Static, expand
from yota.rules.algebras.emitted import contribution as adjoint
from yota.rules.language.model import Expression, Parameter, Rule, refusal
from yota.rules.registry import Registry
from yota.transform.reverse.masking import narrowed

_DEEPEST = 4
"""So many ops back a factor is looked at."""


def contribution(
    builder: TapeBuilder, registry: Registry, op: Op, position: int, adjoints: Mapping[int, int]
) -> int | None:
    """What ``op`` adds to the adjoint of its operand at ``position``; see `contributions`."""
    return next((found for _, found in contributions(builder, registry, op, (position,), adjoints)), None)


def contributions(
    builder: TapeBuilder, registry: Registry, op: Op, positions: Iterable[int], adjoints: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """What ``op`` adds to the adjoints of its operands at ``positions``, without what is exactly nothing.

    For an elementwise op that is the adjoint of its result times the conjugate of the partial (the conjugate
    makes the gradient of a real loss by a complex variable its direction of steepest ascent); the shape is that
    of the result, broadcasting is not undone yet.

    adjoints: adjoint of each result, by its number; those that are left out are zero.
    """
    names: _Names | None = None
    for position in positions:
        found = partial(builder, registry, op, position) if op.primitive.elementwise and not op.static else None
        if found is not None:
            sharp = bool(builder.types[op.result].shape) and (
                _is_sharp(builder, registry, op) or (found in op.operands and _is_from_sharp(builder, registry, found))
            )
            found = _times(builder, adjoints[0], found, sharp=sharp)
        else:
            names = names or _Names(builder, _rule(builder, registry, op), op)
            found = _by_rule(builder, registry, op, position, names, adjoints)
        if found is not None:
            yield position, found


def _by_rule(
    builder: TapeBuilder, registry: Registry, op: Op, position: int, names: _Names, adjoints: Mapping[int, int]
) -> int | None:
    """What an op adds to the adjoint of one operand, by its rule."""
    rule, parameter = names.rule, names.at(position)
    if rule.kind == "nodiff":
        return None
    _refuse_kind(rule, parameter, builder.types[op.operands[position]])
    if rule.kind == "elementwise":
        return _elementwise(builder, registry, parameter, names, adjoints)
    if (
        op.semantics.access is AccessMap.WRITE
        and position == 0
        and takes_all(op.keyword("index"), builder.types[op.result].shape)
    ):
        return None
    for number in adjoints:
        _refuse(rule, parameter, rule.adjoints.get(rule.results[number]), rule.results[number])
    body = rule.adjoints.get(parameter.name)
    if body is None:
        raise MissingRuleError(
            f"{rule.file}:{rule.line}: the rule of {rule.name} has no adjoint for {parameter.name}; add the line\n"
            f"    d[{parameter.name}] = ..."
        )
    _refuse(rule, parameter, body)
    if getattr(body, "value", None) == 0:
        return None
    for number, result in enumerate(rule.results):
        names[f"d[{result}]"] = adjoints.get(number, Absent(_type(builder, op, number)))
    try:
        found = adjoint(body, names, builder, registry)
    except (DifferentiationError, RuleError, TracingError):
        raise
    except (ValueError, TypeError) as fault:
        raise RuleError(f"{_place(builder, rule, parameter, op)} cannot be computed: {fault}") from fault
    if isinstance(found, Absent):
        return None
    handle = _handle(builder, found)
    shape = builder.types[op.operands[position]].shape
    if not _is_broadcast(builder.types[handle].shape, shape):
        raise RuleError(
            f"{_place(builder, rule, parameter, op)} has the shape {builder.types[handle].shape}, where "
            f"{parameter.name} has {shape}. Write an expression of the shape of {parameter.name}, as in\n"
            f"    d[{parameter.name}] = reshape(..., shape=shape({parameter.name}))"
        )
    return handle


def _place(builder: TapeBuilder, rule: Rule, parameter: Parameter, op: Op) -> str:
    """Which adjoint, of which rule, for which operands."""
    types = ", ".join(str(builder.types[operand]) for operand in op.operands)
    return f"{rule.file}:{rule.line}: d[{parameter.name}] of {rule.name}({types})"


def _is_broadcast(found: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether an array of the shape ``found`` may have been broadcast from one of the shape ``shape``."""
    last = found[len(found) - len(shape) :]
    return len(found) >= len(shape) and all(own in (extent, 1) for own, extent in zip(shape, last, strict=True))


def partial(builder: TapeBuilder, registry: Registry, op: Op, position: int) -> int | None:
    """The partial of an elementwise op by its operand at ``position``; None if its rule has only adjoints."""
    if op.static:
        return _direct_partial(builder, registry, op, position)
    variables = (*op.operands, op.result)
    types = tuple([builder.types[variable] for variable in variables])
    known: Tape | None = registry.partials.get((op.primitive, position, types))
    if known is None:
        if any(type.shape for type in types):
            return _direct_partial(builder, registry, op, position)
        # Ops on numbers of the same types have the same partial, of other variables.
        known = _pattern(types, registry, op, position)
        if known is None:
            return None
        registry.partials[op.primitive, position, types] = known
    return _written(builder, known, variables)


def _pattern(types: Sequence[TensorType], registry: Registry, op: Op, position: int) -> Tape | None:
    """The partial of an op like ``op`` as a tape; its inputs are the operands and the result."""
    builder = TapeBuilder(op.name)
    *operands, result = [builder.input(type, number, "") for number, type in enumerate(types)]
    found = _direct_partial(builder, registry, replace(op, operands=tuple(operands), result=result), position)
    return None if found is None else builder.finish([found])


def _written(builder: TapeBuilder, pattern: Tape, variables: Sequence[int]) -> int:
    """Write a pattern with these ``variables`` as its inputs."""
    if not pattern.ops and pattern.outputs[0] <= len(variables):
        # The inputs have the first numbers.
        return variables[pattern.outputs[0] - 1]
    places = dict(enumerate(variables, start=1))

    def place(variable: int) -> int:
        found = places.get(variable)
        if found is None:
            found = places[variable] = builder.constant_of(pattern.constants[variable], pattern.types[variable])
        return found

    for each in pattern.ops:
        operands = [place(operand) for operand in each.operands]
        places[each.result] = builder.emit(each.primitive, operands, each.static, pattern.types[each.result])
    return place(pattern.outputs[0])


def _direct_partial(builder: TapeBuilder, registry: Registry, op: Op, position: int) -> int | None:
    rule = _rule(builder, registry, op)
    if rule.kind == "nodiff":
        return builder.constant(0.0)
    names = _Names(builder, rule, op)
    parameter = names.at(position)
    _refuse_kind(rule, parameter, builder.types[op.operands[position]])
    if rule.kind != "elementwise" or len(rule.results) > 1:
        return None
    return _partial(builder, registry, parameter, names, 0)


def _rule(builder: TapeBuilder, registry: Registry, op: Op) -> Rule:
    rule = registry.rule(op.name, tuple([builder.types[operand].ndim for operand in op.operands]))
    if rule.kind != "nodiff":
        _refuse_count(rule, builder.types[op.result])
        _refuse_extents(rule, [builder.types[operand].shape for operand in op.operands])
    return rule


def _partial(builder: TapeBuilder, registry: Registry, parameter: Parameter, names: _Names, number: int) -> int:
    """The partial of one result."""
    rule = names.rule
    found = registry.partial(rule, parameter.name, rule.results[number])
    _refuse(rule, parameter, found, rule.results[number])
    return _handle(builder, expand(found, names, builder, registry))


def _elementwise(
    builder: TapeBuilder, registry: Registry, parameter: Parameter, names: _Names, adjoints: Mapping[int, int]
) -> int | None:
    """The sum over all results of the adjoint times the partial."""
    total: int | None = None
    for number, slope in adjoints.items():
        found = _times(builder, slope, _partial(builder, registry, parameter, names, number))
        if total is None or found is None:
            total = found if total is None else total
        else:
            total = builder.emit(primitive("add"), (total, found))
    return total


def _type(builder: TapeBuilder, op: Op, number: int) -> TensorType:
    type_ = builder.types[op.result]
    return type_.parts[number] if isinstance(type_, TupleType) else type_


def _refuse(rule: Rule, parameter: Parameter, body: Expression | None, result: str | None = None) -> None:
    reason = refusal(body)
    if reason is not None:
        of = f"'s {result}" if result is not None and len(rule.results) > 1 else ""
        raise DifferentiationError(
            f"{rule.target or rule.name}{of} has no derivative by {parameter.name}: {reason} "
            f"({rule.file}:{rule.line}). "
            f"Keep {parameter.name} constant: leave it out of wrt, or do not compute it from an argument."
        )


def _refuse_count(rule: Rule, type_: TensorType) -> None:
    """Raise if the function gave another number of results than its rule names."""
    found = len(type_.parts) if isinstance(type_, TupleType) else 1
    if found != len(rule.results):
        names = ", ".join(f"y{number}" for number in range(1, found + 1))
        raise DifferentiationError(
            f"{rule.target or rule.name} gave {found} result{'s' * (found > 1)}, and its rule "
            f"({rule.file}:{rule.line}) names {len(rule.results)}: {', '.join(rule.results)}. "
            f"Write def {rule.name}(...) -> {f'({names})' if found > 1 else 'y'}: there."
        )


def _refuse_kind(rule: Rule, parameter: Parameter, type_: TensorType) -> None:
    """Raise if no derivative by an operand of this type is meant by the rule."""
    kind = parameter.domain.kind if parameter.domain else ""
    is_real = kind == "real" or (parameter.domain is not None and parameter.domain.is_real)
    if is_real and type_.is_complex:
        raise DifferentiationError(
            f"{rule.name} has no derivative by a complex {parameter.name}: its rule ({rule.file}:{rule.line}) is for "
            "real arguments. Take .real, .imag or abs() first, or give it a rule with "
            f"`{'Array' if kind == 'array' else 'Complex'}`."
        )
    if kind == "integer" and rule.kind == "elementwise":
        raise DifferentiationError(
            f"{rule.target or rule.name} has no derivative by {parameter.name}, which ranges over integers "
            f"({rule.file}:{rule.line}). Pass an int, or keep {parameter.name} constant."
        )


def _refuse_extents(rule: Rule, shapes: Sequence[tuple[int, ...]]) -> None:
    """Raise if an operand has not the extents that the rule says."""
    for position, shape in enumerate(shapes):
        parameter = rule.operands[min(position, len(rule.operands) - 1)]
        domain = parameter.domain
        if domain is not None and domain.dimensions and not domain.has_extents(shape):
            wanted = ", ".join(map(str, domain.dimensions))
            raise DifferentiationError(
                f"{rule.target or rule.name} got {parameter.name} of shape {shape}, and its rule "
                f"({rule.file}:{rule.line}) is for Array[{wanted}]. Write a name in the place of the extent, if the "
                "rule holds for any."
            )


class _Names(dict[str, Any]):
    """What a rule's identifiers stand for; one of several results is read when its name is met."""

    def __init__(self, builder: TapeBuilder, rule: Rule, op: Op) -> None:
        super().__init__()
        self.rule = rule
        operands = iter(op.operands)
        for parameter in rule.operands:
            self[parameter.name] = tuple(operands) if parameter.variadic else next(operands)
        for name, value in op.static:
            self[name] = Static(value)
        self._builder, self._op, self._results = builder, op, rule.results
        if len(rule.results) == 1:
            self[rule.results[0]] = op.result

    def at(self, position: int) -> Parameter:
        """The parameter of the operand at ``position``, whose number the loop index becomes."""
        last = len(self.rule.operands) - 1
        if self.rule.loop is not None:
            self[self.rule.loop] = Static(position - last)
        return self.rule.operands[min(position, last)]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._results

    def __missing__(self, name: str) -> int:
        self[name] = item_of(self._builder, self._op.result, self._results.index(name))
        return int(self[name])


def _handle(builder: TapeBuilder, value: Any) -> int:
    return builder.constant(value.value) if isinstance(value, Static) else int(value)


def _is_sharp(builder: TapeBuilder, registry: Registry, op: Op) -> bool:
    """Whether a partial may be infinite: the rule has points without a derivative, or domains that end."""
    rule = _rule(builder, registry, op)
    domains = (each.domain for each in rule.operands)
    return bool(rule.kinks) or any(each is not None and math.isfinite(min(-each.low, each.high)) for each in domains)


def _is_from_sharp(builder: TapeBuilder, registry: Registry, variable: int) -> bool:
    """Whether a factor may be infinite: an op that made it has such a partial."""
    for _ in range(_DEEPEST):
        op = builder.definition(variable)
        if op is None or not op.operands:
            return False
        if op.primitive.elementwise and _is_sharp(builder, registry, op):
            return True
        variable = op.operands[-1]
    return False


def _times(builder: TapeBuilder, adjoint: int, partial: int, *, sharp: bool = True) -> int | None:
    value = builder.constants.get(partial)
    if isinstance(value, (bool, int, float)):
        if value == 0:
            return None
        if value == 1:
            return adjoint
    found = narrowed(builder, adjoint, partial, sharp=sharp)
    if found is not None:
        parts = [each for pair in found.pairs if (each := _times(builder, *pair, sharp=sharp)) is not None]
        if not parts:
            return None
        if len(parts) == len(found.pairs):
            return found.whole(parts)
    value = builder.constants.get(partial)
    if isinstance(value, (int, float)) and value == -1:
        return builder.emit(primitive("negative"), (adjoint,))
    if builder.types[partial].is_complex:
        partial = builder.emit(primitive("conjugate"), (partial,))
    return builder.emit(primitive("multiply"), (adjoint, partial))
