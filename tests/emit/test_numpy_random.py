"""Random programs: generated NumPy code against op-by-op evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.emit.programs import arguments, check, evaluate, tapes
from yota.emit.targets.numpy import generate
from yota.ir.catalog import primitive
from yota.ir.indexing import Slice
from yota.ir.tape import TapeBuilder
from yota.ir.types import TensorType
from yota.run.machine.python import load

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "long": ((10_007,), (10_007,), ()),
    "rows": ((997, 7), (7,), (997, 1)),
    "wide": ((3, 5003), (5003,), (3, 1)),
    "pairs": ((61, 1, 3), (1, 61, 3), (61, 61)),
    "square": ((64, 64), (64,), (64, 1)),
    "small": ((4, 3), (3,), ()),
    "middle": ((50, 3), (3,), (50, 1)),
    "blocks": ((300, 4, 3), (4, 1), (300, 1, 3)),
    "single": ((1, 1), (1,), ()),
    "empty": ((0, 3), (3,), (0, 1)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("shapes", SHAPES)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_generated_code_computes_what_the_tape_says(data: Any, shapes: str, dtype: str, small_pieces: None) -> None:
    tape = data.draw(tapes(SHAPES[shapes], dtype))
    values = arguments(tape)
    kept = [np.array(value) for value in values]
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    expected = evaluate(tape, *values)
    noisy = [evaluate(tape, *values, noise=np.random.default_rng(seed)) for seed in range(3)]
    source = generate(tape)
    note(source.text)
    function = load(source)
    results = function(*values)
    check(tape, results, expected, noisy=noisy)
    again = function(*values)
    check(tape, again, expected, noisy=noisy)
    check(tape, results, expected, noisy=noisy)
    for value, copy in zip(values, kept, strict=True):
        np.testing.assert_array_equal(value, copy)
    arrays = [found for found in (results if len(tape.outputs) > 1 else [results]) if isinstance(found, np.ndarray)]
    for number, found in enumerate(arrays):
        assert found.flags.writeable
        for other in [*arrays[:number], *values]:
            assert not (isinstance(other, np.ndarray) and np.shares_memory(found, other))


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Any:
    """Small pieces, so that small arrays already need several."""
    import yota.emit.python.storage
    import yota.schedule.blocked.fuse

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yota.schedule.blocked.fuse, "CACHE_BYTES", 12_000)
        patch.setattr(yota.schedule.blocked.fuse, "_SMALLEST_RUN", 16)
        patch.setattr(yota.schedule.blocked.fuse, "_SMALLEST_TURNED", 64)
        patch.setattr(yota.emit.python.storage, "WORKSPACE_BYTES", 512)
        yield


def test_a_view_of_a_view_that_leaves_a_loop_has_memory_of_its_own() -> None:
    builder = TapeBuilder("f")
    x = builder.input(TensorType(np.dtype(np.complex128), (3, 5003)), 0, "x")
    part = builder.emit(primitive("real"), (builder.emit(primitive("negative"), (x,)),))
    tape = builder.finish((builder.emit(primitive("real"), (part,)),))
    values = np.random.default_rng(0).normal(size=(2, 3, 5003))
    source = generate(tape)
    assert "np.array(v0)" not in source.text
    np.testing.assert_array_equal(load(source)(values[0] + 1j * values[1]), -values[0])


def test_what_a_view_is_of_is_computed_before_its_memory_is_taken() -> None:
    """A sum that is written where a view of it is used would read memory that holds something else by then."""
    builder = TapeBuilder("f")
    x = builder.input(TensorType(np.dtype(np.float32), (61, 1, 3)), 0, "x")
    total = builder.emit(
        primitive("sum"), (builder.emit(primitive("negative"), (x,)),), {"axis": (0,), "keepdims": False}
    )
    view = builder.emit(primitive("reshape"), (total,), {"shape": (1, 3, 1)})
    index = (Slice(0, 1, 1), Slice(0, 1, 1), Slice(0, 3, 1))
    written = builder.emit(primitive("setitem"), (x, builder.constant(0.5)), {"index": index})
    tape = builder.finish((builder.emit(primitive("add"), (written, view)),))
    value = np.random.default_rng(0).normal(size=(61, 1, 3)).astype(np.float32)
    kept = value.copy()
    kept[:1] = 0.5
    expected = kept + np.sum(-value, axis=0).reshape(1, 3, 1)
    np.testing.assert_allclose(load(generate(tape))(value), expected, rtol=1e-5, atol=1e-5)
