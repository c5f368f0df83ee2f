"""Functions with their derivatives: what was compiled never outlives what it was compiled for."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.run.derivatives.differentiated import Differentiated
from yota.run.machine.cache import Table
from yota.run.specialise import Target

POINT = np.array([1.0, 2.0])


def test_compiled_code_is_forgotten_before_the_new_state_counts() -> None:
    factor = 2.0

    def f(x: Any) -> Any:
        return np.sum(x) * factor

    form = Differentiated(f, 0, Target(), dynamic=False)
    form.prepare((POINT,), {})
    seen = []

    class Watched(Table):
        def clear(self) -> None:
            # What another thread would find now: it must not take the table for one of the present state.
            seen.append(form.captured.changed())
            super().clear()

    form.table = Watched()
    factor = 3.0
    assert form.captured.changed()
    prepared, function, args, leaves = form.prepare((POINT,), {})
    assert seen == [True]
    assert not form.captured.changed()
    assert prepared(function, args, leaves)[0][0] == 9.0


def test_equal_numbers_are_no_change() -> None:
    factor = 1000.5

    def f(x: Any) -> Any:
        return np.sum(x) * factor

    form = Differentiated(f, 0, Target(), dynamic=False)
    first, *_ = form.prepare((POINT,), {})
    factor = float("1000.5")
    assert form.prepare((POINT,), {})[0] is first
    factor = np.float64(1000.5)
    assert form.prepare((POINT,), {})[0] is not first
