"""Random tapes, a fixed set of them, so that many can be compiled at once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import HealthCheck, Phase, given, settings

from tests.emit.programs import tapes
from yota.ir.tape import Tape

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "long": ((1007,), (1007,), ()),
    "rows": ((97, 7), (7,), (97, 1)),
    "wide": ((3, 1503), (1503,), (3, 1)),
    "tall": ((1503, 40), (40,), (1503, 1)),
    "pairs": ((21, 1, 3), (1, 21, 3), (21, 21)),
    "small": ((4, 3), (3,), ()),
    "blocks": ((30, 4, 33), (4, 1), (30, 1, 33)),
    "single": ((1, 1), (1,), ()),
    "empty": ((0, 3), (3,), (0, 1)),
}
DTYPES = ("float64", "float32", "complex128")
EACH = 5
SAMPLE = tuple(
    (shapes, dtype)
    for place, shapes in enumerate(SHAPES)
    for number, dtype in enumerate(DTYPES)
    if dtype == "float64" or (place + number) % 2
)
"""Shapes and dtypes that the test suite runs; `tests.cuda.sweep` runs all."""


@cache
def collected(shapes: str, dtype: str, count: int = EACH) -> tuple[Tape, ...]:
    """Random tapes over arrays of these shapes, the same ones each time."""
    found: list[Tape] = []

    @settings(
        deadline=None,
        max_examples=count,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
    )
    @given(tapes(SHAPES[shapes], dtype))
    def gather(tape: Tape) -> None:
        found.append(replace(tape, name=f"{shapes}_{dtype}_{len(found)}"))

    gather()
    return tuple(found)
