"""What a running instruction calls and what takes its result, on every version of Python."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import yota
from yota.tracing.bytecode import called_at, callee, consumer, is_call, running

seen = []


def probe(*args, **keywords):
    frame = sys._getframe(1)
    step = running(frame)
    following = consumer(frame.f_code, step.offset)
    seen.append(
        (
            is_call(step) and called_at(frame.f_code, step.offset).name,
            callee(frame) is probe,
            following.opname if following else None,
        )
    )
    return 3


box = types.ModuleType("box")
box.probe, box.inner = probe, types.SimpleNamespace(probe=probe)
flag, numbers, options = True, [1, 2], {"a": 1}

CASES = {
    "name": (lambda: probe(), "probe", True),
    "module": (lambda: box.probe(), "probe", True),
    "arguments": (lambda: box.probe(flag, box, [box.inner]), "probe", True),
    "keywords": (lambda: box.probe(1, a=2, b=box.inner), "probe", True),
    "star": (lambda: box.probe(*numbers), "probe", True),
    "double star": (lambda: box.probe(*numbers, **options), "probe", True),
    "object": (lambda: box.inner.probe(1), "probe", True),
    "of a result": (lambda: dict.get(options, "b", box).probe(1), "probe", False),
    "conditional argument": (lambda: box.probe(1 if flag else 2, 3), "probe", True),
    "and": (lambda: box.probe(flag and numbers), "probe", True),
    "comprehension": (lambda: box.probe([each + 1 for each in numbers]), "probe", True),
    "call among the arguments": (lambda: box.probe(len(numbers), str(flag)), "probe", True),
    "argument of another": (lambda: len([box.probe(1)]), "probe", True),
    "compiled caller": (lambda: list(map(box.probe, [1])), "list", False),
    "compiled caller with it as a keyword": (lambda: sorted([1], key=box.probe), "sorted", False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_called(name):
    f, expected, found = CASES[name]
    seen.clear()
    f()
    assert seen[0][:2] == (expected, found)


def test_a_local_variable_is_found():
    local = probe
    seen.clear()
    local(1)
    assert seen[0][:2] == ("local", True)


def test_what_takes_a_result():
    def f():
        kept = box.probe()
        kept + box.probe()
        box.probe()
        len([box.probe() if flag else 2])
        return box.probe()

    seen.clear()
    f()
    taken = [following for _, _, following in seen]
    assert taken[0].startswith("STORE_FAST") and taken[1].startswith("BINARY")
    assert taken[2:] == ["POP_TOP", "BUILD_LIST", "RETURN_VALUE"]


def test_compiled_callers_get_plain_arrays():
    found = []

    def f(x):
        found.extend([np.empty(1), *map(np.empty, [2]), sorted([np.ones(1)[0]], key=np.zeros_like)])
        zeros = np.zeros
        out, other = zeros(2), np.zeros(2 if flag else 3)
        out[0], other[1] = x[0], x[1]
        return np.sum(out * out + other)

    np.testing.assert_allclose(yota.grad(f, np.array([1.0, 2.0]))[1][0], [2.0, 1.0])
    assert type(found[1]) is np.ndarray and type(found[0]) is not np.ndarray
