"""Extents: arithmetic against Python's at each sample, comparisons that are decided or not, and how they are shown."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from yota.ir.catalog import primitive
from yota.ir.extents import Extent, UndecidedError, at_most, factor, tentative
from yota.ir.indexing import Slice
from yota.ir.infer import infer
from yota.ir.types import TensorType
from yota.transform.sizes.size_expressions import samples_of

SAMPLES = samples_of(["N", "M"], 340, 13)
N, M = (Extent(tuple(size[name] for size in SAMPLES.sizes), SAMPLES) for name in ("N", "M"))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod"])
@pytest.mark.parametrize(("one", "other"), [(N, 3), (3, N), (N, M), (N * M, N), (N - 1, N)])
def test_arithmetic_is_that_of_the_values(name: str, one: int, other: int) -> None:
    def values(number: int) -> Any:
        return number.values if isinstance(number, Extent) else [number] * len(SAMPLES.sizes)

    found = getattr(operator, name)(one, other)
    pairs = zip(values(one), values(other), strict=True)
    assert list(values(found)) == [getattr(operator, name)(*pair) for pair in pairs]


def test_what_does_not_depend_on_sizes_is_a_plain_number() -> None:
    assert type(N - N + 4) is int
    assert type((3 * N) // N) is int


def test_expressions() -> None:
    assert (str(N * (M - 1)), f"{N - 1}", str(N - 1), f"{N}") == ("N*(M - 1)", "(N - 1)", "N - 1", "N")
    assert (factor(N), factor(7), factor(N - 1)) == ("N", "7", "(N - 1)")


def test_comparisons() -> None:
    assert N - 1 < N
    assert N > 5
    assert int(N) != N
    assert N == N + 1 - 1
    assert len({N, N + 0, M}) == 2
    with pytest.raises(UndecidedError, match="depends on how large"):
        bool(sorted(N.values)[1] < N)


def test_comparisons_refuse_sizes_at_which_they_come_out_otherwise() -> None:
    samples = samples_of(["N"], 340, 13)
    size = Extent(tuple(each["N"] for each in samples.sizes), samples)

    def demanded() -> list[str | None]:
        found = [samples.whole(values) for values in samples.demands]
        samples.demands.clear()
        return found

    assert size - 3 < size
    assert size >= 1
    assert not size < 0
    assert not demanded()
    assert size > 5
    assert demanded() == ["N - 6"]
    assert not size - 3 <= 3
    assert demanded() == ["N - 7"]
    assert int(size) > 5
    assert not at_most(size, 3)
    assert not at_most(3, size - 3)
    assert at_most(0, size - 1)
    with tentative():
        assert size > 5
    assert not demanded()


def test_types_have_the_shapes_of_all_sizes() -> None:
    double = np.dtype(np.float64)
    whole, row = TensorType(double, (N, M)), TensorType(double, (M,))
    assert infer(primitive("add"), (whole, row), ()).shape == (N, M)
    part = infer(primitive("getitem"), (whole,), (("index", (Slice(1, N - 1), Slice(0, M, 2))),))
    assert part.shape == (N - 2, (M + 1) // 2)
