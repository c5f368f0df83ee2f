"""A ``while`` on traced values as one loop of the tape, for every number of trips."""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import TracingError
from yota.tracing.conversions import FirstRun
from yota.tracing.current import current
from yota.tracing.interpreter.activation import Activation, evaluate, execute
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace

_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Try, ast.With)
_WHOLE = ("absolute", "add", "floor_divide", "multiply", "negative", "positive", "remainder", "subtract")
"""Primitives of whole numbers that do not outgrow 64 bits by a few trips."""
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


@dataclass(frozen=True, slots=True)
class Exit:
    """The one way out of the trips of a loop: an ``if`` among its statements.

    leaving: the ``if``; before, after: the statements ahead of it, and those behind it.
    name, numbers: the variable of a ``for`` and its values; the last trip need not leave.
    """

    leaving: ast.If
    before: list[ast.stmt]
    after: list[ast.stmt]
    name: str = ""
    numbers: range | None = None

    def is_followed(self, left: Any, variables: Mapping[str, Any]) -> Any:
        """Whether another trip follows one in which the test came out as ``left``."""
        stays = np.logical_not(left)
        return stays if self.numbers is None else np.logical_and(stays, variables[self.name] != self.numbers[-1])

    def advance(self, variables: dict[str, Any]) -> None:
        """Begin the next trip."""
        if self.numbers is not None:
            variables[self.name] = variables[self.name] + self.numbers.step


def exit_of(part: ast.For | ast.While, values: Any = None) -> Exit | None:
    """The exit of ``while True``, or of a ``for`` over a range, which goes through ``values``."""
    found = [each for each in part.body if _contains(each, _LEAVING)]
    leaving = found[0] if len(found) == 1 else None
    if not isinstance(leaving, ast.If) or leaving.orelse or not isinstance(leaving.body[-1], (ast.Break, ast.Return)):
        return None
    if _contains(leaving.test, _LEAVING) or any(_contains(each, _LEAVING) for each in leaving.body[:-1]):
        return None
    place = part.body.index(leaving)
    before, after = part.body[:place], part.body[place + 1 :]
    if isinstance(part, ast.While):
        return Exit(leaving, before, after) if isinstance(part.test, ast.Constant) and part.test.value is True else None
    if not (type(values) is range and len(values) > 1 and isinstance(part.target, ast.Name)):
        return None
    name = part.target.id
    stored = (each for statement in (*before, *after) for each in ast.walk(statement) if isinstance(each, ast.Name))
    if any(each.id == name and isinstance(each.ctx, ast.Store) for each in stored):
        return None
    return Exit(leaving, before, after, name, values)


def _contains(part: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(each, kinds) for each in ast.walk(part))


def is_left(activation: Activation, exit: Exit) -> bool:
    """Whether what follows the test of the exit in this trip, up to that in the last trip, was recorded as a loop.

    Otherwise nothing was done.
    """
    return _is_recorded(activation, exit.leaving.test, exit.after, exit)


def is_looped(activation: Activation, part: ast.While) -> bool:
    """Whether a ``while`` was recorded as a loop; otherwise nothing was done.

    Its condition must be traced, and its trips may do nothing but compute numbers and arrays for names.
    """
    return not part.orelse and _is_recorded(activation, part.test, part.body)


def _is_recorded(activation: Activation, test: ast.expr, first: list[ast.stmt], exit: Exit | None = None) -> bool:
    """Whether a loop was recorded: as long as a test holds, or until it does if there is an ``exit``."""
    trace, last = _outside(), exit.before if exit else []
    if trace is None:
        return False
    names = _assigned(activation, test, [*first, *last])
    if names is None or not _is_traced(activation, test, trace):
        return False
    if exit and exit.name:
        names.add(exit.name)
    before = {name: activation.variables[name] for name in sorted(names) if name in activation.variables}
    held, refused = activation.variables, trace.refused

    def entered(carried: tuple[Any, ...]) -> None:
        inner = current()
        if inner is not None and inner is not trace and not isinstance(inner.first_run, _OneTrip):
            inner.first_run = _OneTrip(inner, ())
        activation.variables = {**held, **dict(zip(before, carried, strict=True))}

    def condition(carried: tuple[Any, ...]) -> Any:
        entered(carried)
        found = _tested(activation, test)
        return exit.is_followed(found, activation.variables) if exit else found

    def body(carried: tuple[Any, ...]) -> tuple[Any, ...]:
        entered(carried)
        variables = [each._variable for each in carried]
        deque(execute(activation, first), 0)
        if exit:
            exit.advance(activation.variables)
        deque(execute(activation, last), 0)
        if any(each._variable != variable for each, variable in zip(carried, variables, strict=True)):
            # Under another name the array would have to change too.
            raise TracingError("a trip writes into an array that it was given")
        found = [activation.variables[each] for each in before]
        _refuse_growth(carried, found)
        return tuple(found)

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


def _outside() -> Trace | None:
    """The trace that is running, if loops may be recorded on it."""
    trace = current()
    takes = trace is not None and trace.rolls and _forms and trace.sizes is None and trace.first_run is None
    return trace if takes else None


def _refuse_growth(carried: tuple[Any, ...], after: list[Any]) -> None:
    """Refuse trips in which a number of Python's, of any size there, may outgrow 64 bits.

    It may move by a constant step, and be multiplied by constants beside what is carried.
    """
    trace = current()
    assert trace is not None
    types, builder = trace.builder.types, trace.builder
    for op in builder.ops:
        type, exponent = types[op.result], op.operands[-1]
        if op.name == "power" and type.shape and types[exponent].weak and not trace.is_constant(exponent):
            raise TracingError("NumPy rounds the square of an array otherwise than another power")
        if type.weak and type.dtype.kind == "i":
            moved = [each for each in op.operands if not trace.is_constant(each)]
            if op.name not in _WHOLE or (op.name == "multiply" and len(moved) > 1):
                raise TracingError("a whole number may outgrow 64 bits")
    for one, other in zip(carried, after, strict=True):
        first, last = one._variable, trace.lift(other)
        if types[first].weak and types[first].dtype.kind == "i":
            while (op := builder.definition(last)) and op.name in ("add", "subtract"):
                if not trace.is_constant(op.operands[1]):
                    break
                last = op.operands[0]
            if first != last and not trace.is_constant(last):
                raise TracingError("a whole number may outgrow 64 bits")


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


def _assigned(activation: Activation, test: ast.expr, statements: list[ast.stmt]) -> set[str] | None:
    """The names that a loop assigns numbers and arrays to; None if it may do anything else."""
    inside = [*ast.walk(test), *(each for statement in statements for each in ast.walk(statement))]
    stored = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    own, variables = {id(each) for each in inside}, activation.variables
    around = (each for each in ast.walk(activation.definition.tree) if id(each) not in own)
    read = {each.id for each in around if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    tests = [*ast.walk(test)]
    joined = any(isinstance(each, ast.BoolOp) for each in tests)
    fits = (
        # What asks for a truth within, or what another part keeps from being computed.
        not any(isinstance(each, ast.IfExp) or len(getattr(each, "ops", ())) > 1 for each in tests)
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
