"""What the tests of the C target share: compiling a tape, and skipping where there is no compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from yota.emit.targets import c
from yota.errors import CodegenError
from yota.ir.tape import Tape
from yota.optimize import pipeline
from yota.run.machine import compiler, native


def has_compiler() -> bool:
    try:
        compiler.find()
    except CodegenError:
        return False
    return True


needs_compiler = pytest.mark.skipif(
    not has_compiler(), reason="there is no C compiler, or Python's headers are missing"
)


def compiled(tape: Tape, *, strict: bool = False) -> Callable[..., Any]:
    """The C function of a tape."""
    return native.load(c.generate(pipeline.run(tape, strict=strict), strict=strict))
