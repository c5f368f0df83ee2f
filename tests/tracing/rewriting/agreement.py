"""Holds a function that is interpreted against the same one run by Python, and traced."""

from __future__ import annotations

import numpy as np

import yota
from yota.tracing import patching as places


def assert_interpreted(function, *args, differs=False):
    """The value is Python's; so is what the tape gives; the tape is that of `trace`, unless it ``differs``."""
    expected = function(*map(np.copy, args))
    value, tape = yota.itrace(function, *args)
    _assert_same(value, expected)
    _assert_same(yota.play(tape, *args), expected)
    assert not places._held
    if not differs:
        traced = yota.trace(function, *args)[1]
        assert shown(tape) == shown(traced)
    return tape


def _assert_same(value, expected):
    if isinstance(expected, tuple):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            _assert_same(one, other)
        return
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-300)
    assert np.shape(value) == np.shape(expected)


def shown(tape):
    """Ops and guards without what only readers see: numbers of variables, constants and places."""
    number = {entry.variable: place for place, entry in enumerate(tape.inputs)}
    ops = []
    for op in tape.ops:
        ops.append((op.name, tuple(number.get(each, "constant") for each in op.operands), op.static))
        number[op.result] = len(number)
    guards = [(number[guard.variable], guard.expected, guard.kind) for guard in tape.guards]
    return ops, guards, [number.get(each) for each in tape.outputs]
