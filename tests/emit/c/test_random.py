"""Random programs: generated C against op-by-op evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import yota
from tests.emit.compiled import needs_compiler
from tests.emit.programs import arguments, check, evaluate, tapes
from yota.emit.targets.c import generate
from yota.run.machine import native

pytestmark = needs_compiler

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "long": ((1007,), (1007,), ()),
    "rows": ((97, 7), (7,), (97, 1)),
    "wide": ((3, 503), (503,), (3, 1)),
    "pairs": ((21, 1, 3), (1, 21, 3), (21, 21)),
    "small": ((4, 3), (3,), ()),
    "blocks": ((30, 4, 3), (4, 1), (30, 1, 3)),
    "single": ((1, 1), (1,), ()),
    "empty": ((0, 3), (3,), (0, 1)),
}
SAMPLE = [(shapes, "float64") for shapes in SHAPES]
SAMPLE += [(shapes, ("float32", "complex128")[place % 2]) for place, shapes in enumerate(SHAPES)]
"""`python -m tests.emit.c.fuzz` runs all dtypes for each shape."""


@pytest.fixture(autouse=True, scope="module")
def _several_threads() -> Any:
    """Threads for small work too, so that small arrays are cut among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("yota.emit.c.kernels._WORTH_THREADS", 1)
        patch.setattr("yota.emit.c.kernels.WORTH_RELEASING", 1)
        patch.setenv("YOTA_NUM_THREADS", "3")
        yield


@pytest.mark.parametrize(("shapes", "dtype"), SAMPLE)
@settings(max_examples=3, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_generated_code_computes_what_the_tape_says(data: Any, shapes: str, dtype: str) -> None:
    tape = data.draw(tapes(SHAPES[shapes], dtype))
    values = arguments(tape)
    kept = [np.array(value) for value in values]
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    expected = evaluate(tape, *values)
    source = generate(tape)
    note(source.text)
    function = native.load(source)
    results = function(*values)
    check(tape, results, expected)
    check(tape, function(*values), expected)
    for value, copy in zip(values, kept, strict=True):
        np.testing.assert_array_equal(value, copy)
    arrays = [found for found in (results if len(tape.outputs) > 1 else [results]) if isinstance(found, np.ndarray)]
    for number, found in enumerate(arrays):
        assert found.flags.writeable
        for other in [*arrays[:number], *values]:
            assert not (isinstance(other, np.ndarray) and np.shares_memory(found, other))


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize(
    "name, dtype",
    [*((name, "float64") for name in ("sum", "prod", "max", "min")), ("sum", "complex128"), ("prod", "complex128")],
)
def test_sums_within_reductions(
    name: str, axis: Any, dtype: str, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YOTA_NUM_THREADS", threads)
    x = np.random.default_rng(0).normal(size=(70, 40)).astype(dtype)
    x = x * (1 + 0.5j) if dtype == "complex128" else x

    def function(x: Any) -> Any:
        return getattr(np, name)(0.9 + 0.01 * x, axis=axis)

    _, tape = yota.trace(function, x)
    np.testing.assert_allclose(yota.compile(tape, target="c")(x), function(x), rtol=1e-12)
