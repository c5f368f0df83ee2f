"""Operation counts."""

from __future__ import annotations

from tests.optimize.tapes import tape_of
from yota.ir.printing import elements, operations, total


def test_counts_what_computes():
    tape = tape_of(lambda x: (x[0] * x[1] + x[2] * 2.0).call("exp"), (3,))
    assert operations(tape) == {"multiply": 2, "add": 1, "exp": 1}
    assert list(operations(tape)) == ["multiply", "add", "exp"]
    assert total(tape) == 4


def test_elements_weigh_arrays():
    tape = tape_of(lambda a, b: (a @ b).sum() + 1.0, (3, 4), (4, 5))
    assert elements(tape) == 60 + 15 + 1
