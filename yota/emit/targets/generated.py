"""What every target hands on: generated source, before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """What a Python function for named sizes takes beside its arguments, and does first.

    sizes: names of the sizes, which are further parameters.
    checks: statements that refuse sizes.
    made: texts of the last inputs of the tape, which are computed from the sizes.
    samples: values that each of these has at several sizes.
    """

    sizes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    samples: tuple[Sequence[Any], ...] = ()


FIXED = Opening()
"""That of code for fixed sizes."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Source text of one generated function.

    text: the whole module: imports, workspace, the function.
    entry: name of the function in ``text``.
    constants: objects that the text uses by name and does not spell out: large arrays, users' own functions.
    guards: number of guards; when positive, ``text`` uses the name ``StaleTape``.
    operations: how much work it is, as its banner says.
    """

    text: str
    entry: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    guards: int = 0
    operations: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        return self.text
