"""C is compiled here with all optimisation, as for users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from yota.run.machine import compiler


@pytest.fixture(autouse=True, scope="module")
def _optimised() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_FLAGS", ("-O3", *compiler._FLAGS[1:]))
        compiler._found.cache_clear()
        yield
    compiler._found.cache_clear()
