"""Calls that go straight to compiled functions, and only while what those were compiled for still holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from tests.codegen.compiled import needs_compiler
from yota.runtime.dispatch import quick

SCALE = 1.0
X = np.array([2.0, 9.0])


def scaled(x: Any) -> Any:
    return SCALE * x[0] * np.sqrt(x[1])


@needs_compiler
def test_global_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    both: Any = yota.value_and_grad(scaled, target="c")
    assert both(X)[0] == 6.0
    assert both.forms and both.watched
    assert both(X)[0] == 6.0
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert both(X)[0] == 12.0
    assert both(X)[0] == 12.0


@needs_compiler
def test_variables_of_enclosing_functions() -> None:
    def made() -> tuple[Callable[..., Any], Callable[[int], None]]:
        power = 2

        def function(x: Any) -> Any:
            return x[0] ** power

        def change(value: int) -> None:
            nonlocal power
            power = value

        return function, change

    function, change = made()
    both: Any = yota.value_and_grad(function, target="c")
    assert both(X)[0] == 4.0 and both(X)[0] == 4.0
    assert both.watched
    change(3)
    assert both(X)[0] == 8.0 and both(X)[0] == 8.0


@needs_compiler
def test_structures_are_compared_in_python() -> None:
    weights = {"a": 2.0}
    both: Any = yota.value_and_grad(lambda x: weights["a"] * x[0], target="c")
    assert both(X)[0] == 4.0
    assert not both.forms
    weights["a"] = 3.0
    assert both(X)[0] == 6.0


@needs_compiler
def test_what_is_watched_is_checked() -> None:
    dispatcher = quick(len)
    for wrong in ([], (1,), (({},),), ((1, 2),), (({}, 1, 2, 3),)):
        with pytest.raises(TypeError, match="watched must be"):
            dispatcher.set_watched(wrong)
    # A key that cannot be looked up holds nothing.
    dispatcher.set_watched((({}, [], 1),))
    assert dispatcher([1, 2]) == 2
