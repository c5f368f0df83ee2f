"""A ``while`` on traced values as one loop of the tape, for every number of trips."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from yota.errors import TracingError
from yota.tracing.conversions import FirstRun
from yota.tracing.current import current
from yota.tracing.interpreter.activation import Activation, evaluate, execute
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace

_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Try, ast.With)
_forms: list[Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]] = []


def follows(form: Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]) -> None:
    """Have ``form(condition, body, carried)`` record a loop."""
    _forms[:] = [form]


class _OneTrip(FirstRun):
    """A trip that stands for all: it may do nothing outside of itself, be it printing."""

    skips_output = False

    def is_over(self, trace: Trace) -> bool:
        return False

    def arrives(self, trace: Trace) -> bool:
        return False

    def block(self, trace: Trace) -> TracingError:
        return TracingError("a trip does something besides computing")


def is_looped(activation: Activation, part: ast.While) -> bool:
    """Whether a ``while`` was recorded as a loop; otherwise nothing was done.

    Its condition must be traced, and its trips may do nothing but compute numbers and arrays for names.
    """
    trace = current()
    if trace is None or not (trace.rolls and _forms) or trace.sizes is not None or trace.first_run is not None:
        return False
    names = _assigned(activation, part)
    if names is None or not _is_traced(activation, part.test, trace):
        return False
    before = {name: activation.variables[name] for name in sorted(names) if name in activation.variables}
    held, refused = activation.variables, trace.refused

    def entered(carried: tuple[Any, ...]) -> None:
        inner = current()
        if inner is not None and inner is not trace and not isinstance(inner.first_run, _OneTrip):
            inner.first_run = _OneTrip(inner, ())
        activation.variables = {**held, **dict(zip(before, carried, strict=True))}

    def condition(carried: tuple[Any, ...]) -> Any:
        entered(carried)
        return _tested(activation, part.test)

    def body(carried: tuple[Any, ...]) -> tuple[Any, ...]:
        entered(carried)
        variables = [each._variable for each in carried]
        for _ in execute(activation, part.body):
            pass
        if any(each._variable != variable for each, variable in zip(carried, variables, strict=True)):
            # Under another name the array would have to change too.
            raise TracingError("a trip writes into an array that it was given")
        return tuple([activation.variables[name] for name in before])

    at = activation.part
    try:
        after = _forms[0](condition, body, tuple(before.values()))
    except Exception:  # noqa: BLE001
        # Step by step it may be recorded all the same, or end with an error of its own.
        trace.refused = refused
        return False
    finally:
        activation.variables, activation.part = held, at
    activation.variables.update(zip(before, after, strict=True))
    return True


def _is_traced(activation: Activation, test: ast.expr, trace: Trace) -> bool:
    """Whether a condition depends on inputs, and does nothing but compute."""
    trace.first_run = _OneTrip(trace, ())
    try:
        return trace.varies(_tested(activation, test))
    except Exception:  # noqa: BLE001  (it comes again)
        return False
    finally:
        trace.first_run = None


def _tested(activation: Activation, test: ast.expr) -> Any:
    """The value of a condition, all parts of which are computed."""
    if isinstance(test, ast.BoolOp):
        join = np.logical_and if isinstance(test.op, ast.And) else np.logical_or
        return functools.reduce(join, [_tested(activation, each) for each in test.values])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return np.logical_not(_tested(activation, test.operand))
    return evaluate(activation, test)


def _assigned(activation: Activation, part: ast.While) -> set[str] | None:
    """The names that a ``while`` assigns numbers and arrays to; None if it may do anything else."""
    inside = [*ast.walk(part.test), *(each for statement in part.body for each in ast.walk(statement))]
    stored = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    own, variables = {id(each) for each in inside}, activation.variables
    around = (each for each in ast.walk(activation.definition.tree) if id(each) not in own)
    read = {each.id for each in around if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    tests = [*ast.walk(part.test)]
    joined = any(isinstance(each, ast.BoolOp) for each in tests)
    fits = (
        not part.orelse
        # What asks for a truth within, or what another part keeps from being computed.
        and not any(isinstance(each, ast.IfExp) or len(getattr(each, "ops", ())) > 1 for each in tests)
        and not (joined and any(_may_fail(each) for each in tests))
        and not any(isinstance(each, _LEAVING) for each in inside)
        and stored <= activation.definition.local
        # What trips assign first is not there if there are none.
        and all(name in variables or name not in read for name in stored)
        and all(_is_number(variables[name]) for name in stored if name in variables)
    )
    return stored if fits else None


def _may_fail(part: ast.AST) -> bool:
    is_size = isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "abs"
    return isinstance(part, (ast.Subscript, ast.Call)) and not is_size


def _is_number(value: Any) -> bool:
    return is_tracer(value) or type(value) in (int, float) or isinstance(value, (np.floating, np.ndarray))
