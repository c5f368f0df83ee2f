"""A sample of the random programs of views and writes; ``python -m tests.tracing.view_programs`` runs more."""

from __future__ import annotations

import pytest

from tests.tracing.view_programs import Program, fault


@pytest.mark.parametrize("part", range(8))
def test_programs(part: int) -> None:
    found = [fault(Program(number)) for number in range(100_000 + part, 100_096, 8)]
    assert [each for each in found if each not in (None, "refused")] == []
    assert found.count("refused") < 5


def test_a_copy_that_is_taken_for_a_view_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yota.tracing.aliasing.detached", lambda tracer: tracer)
    found = [fault(Program(number)) for number in range(100_000, 100_040)]
    assert any(each and "and by NumPy" in each for each in found)
