"""C is compiled here with all optimisation, as for users, but in tests of what surrounds the kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from yota.run.machine import compiler

SURROUNDINGS = {"test_calls", "test_in_process"}


@pytest.fixture(autouse=True, scope="module")
def _optimised(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.stem in SURROUNDINGS:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_FLAGS", ("-O3", *compiler._FLAGS[1:]))
        compiler._found.cache_clear()
        yield
    compiler._found.cache_clear()
