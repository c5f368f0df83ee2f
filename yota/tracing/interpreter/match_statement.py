"""The match statement."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from yota.tracing.interpreter import operator_rules as operators
from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.expression_rules import attribute, is_true
from yota.tracing.interpreter.tables import Running, block, evaluate, execute
from yota.tracing.methods import is_tracer

_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes of which a single positional pattern is matched against the value itself."""


@block(ast.Match)
def _match(activation: Activation, part: ast.Match) -> Running:
    subject = evaluate(activation, part.subject)
    for case in part.cases:
        activation.part = case.pattern
        bound: dict[str, Any] = {}
        if not _fits(activation, case.pattern, subject, bound):
            continue
        for name, value in bound.items():
            activation.store(name, value)
        if case.guard is None or is_true(activation, case.guard):
            return (yield from execute(activation, case.body))
    return None


def _fits(activation: Activation, pattern: ast.pattern, value: Any, bound: dict[str, Any]) -> bool:
    """Whether ``value`` matches; names that the pattern binds are put into ``bound``."""
    if isinstance(pattern, ast.MatchValue):
        return operators.truth(operators.compare(ast.Eq, value, evaluate(activation, pattern.value)))
    if isinstance(pattern, ast.MatchSingleton):
        return value is pattern.value
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None and not _fits(activation, pattern.pattern, value, bound):
            return False
        if pattern.name is not None:
            bound[pattern.name] = value
        return True
    if isinstance(pattern, ast.MatchOr):
        return any(_fits(activation, each, value, bound) for each in pattern.patterns)
    if isinstance(pattern, ast.MatchSequence):
        return _fits_sequence(activation, pattern.patterns, value, bound)
    if isinstance(pattern, ast.MatchMapping):
        return _fits_mapping(activation, pattern, value, bound)
    if isinstance(pattern, ast.MatchClass):
        return _fits_class(activation, pattern, value, bound)
    raise activation.refuse(pattern, "this pattern is not known to the interpreter of source.")


def _fits_sequence(activation: Activation, patterns: list[ast.pattern], value: Any, bound: dict[str, Any]) -> bool:
    # An array is no sequence to Python's matching.
    if is_tracer(value) or not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray)):
        return False
    starred = [place for place, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
    if not starred:
        return len(value) == len(patterns) and all(
            _fits(activation, each, item, bound) for each, item in zip(patterns, value, strict=True)
        )
    place, after = starred[0], len(patterns) - starred[0] - 1
    if len(value) < place + after:
        return False
    end = len(value) - after
    star = patterns[place]
    if isinstance(star, ast.MatchStar) and star.name is not None:
        bound[star.name] = list(value[place:end])
    pairs = [*zip(patterns[:place], value[:place], strict=True), *zip(patterns[place + 1 :], value[end:], strict=True)]
    return all(_fits(activation, each, item, bound) for each, item in pairs)


def _fits_mapping(activation: Activation, pattern: ast.MatchMapping, value: Any, bound: dict[str, Any]) -> bool:
    if not isinstance(value, Mapping):
        return False
    keys = [evaluate(activation, key) for key in pattern.keys]
    if not all(key in value for key in keys):
        return False
    if not all(_fits(activation, each, value[key], bound) for key, each in zip(keys, pattern.patterns, strict=True)):
        return False
    if pattern.rest is not None:
        bound[pattern.rest] = {key: item for key, item in value.items() if key not in keys}
    return True


def _fits_class(activation: Activation, pattern: ast.MatchClass, value: Any, bound: dict[str, Any]) -> bool:
    kind = evaluate(activation, pattern.cls)
    if not isinstance(value, kind):
        return False
    if kind in _SELF and len(pattern.patterns) == 1:
        return _fits(activation, pattern.patterns[0], value, bound)
    names = [*getattr(kind, "__match_args__", ())[: len(pattern.patterns)], *pattern.kwd_attrs]
    if len(names) != len(pattern.patterns) + len(pattern.kwd_attrs):
        raise TypeError(f"{kind.__name__}() accepts fewer positional sub-patterns")
    every = zip(names, [*pattern.patterns, *pattern.kwd_patterns], strict=True)
    return all(hasattr(value, name) and _fits(activation, each, attribute(value, name), bound) for name, each in every)
