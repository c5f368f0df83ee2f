"""What the tests of loops share."""

from __future__ import annotations

import pytest

from yota.tracing.rewriting import carried_values


@pytest.fixture
def recorded(monkeypatch):
    """Whether each loop was recorded by one trip, of those where that was tried."""
    found = []
    plain = carried_values.CarriedValues.attempted

    def record(*args):
        after = plain(*args)
        found.append(after is not None)
        return after

    monkeypatch.setattr(carried_values.CarriedValues, "attempted", record)
    return found
