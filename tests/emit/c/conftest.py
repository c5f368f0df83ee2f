"""C is compiled here with all optimisation, as for users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from yota.run.machine import compiler


@pytest.fixture(autouse=True, scope="module")
def _optimised() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_QUICK", 200_000)
        yield
