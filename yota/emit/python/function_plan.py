"""The plan of a generated array function: pure data, all decisions taken, ready for a template to loop over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class Line(str):
    """A line of a plan that knows which variables it computes."""

    __slots__ = ("variables",)

    variables: tuple[int, ...]

    def __new__(cls, text: str, variables: tuple[int, ...]) -> Line:
        """The line ``text``."""
        made = super().__new__(cls, text)
        made.variables = variables
        return made


def marked(lines: Iterable[str], *variables: int) -> list[str]:
    """``lines``, each of which computes ``variables``; those that know theirs keep them."""
    return [line if isinstance(line, Line) else Line(line, variables) for line in lines]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over pieces of one axis."""

    header: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Statements, then at most one loop, then statements."""

    before: tuple[str, ...] = ()
    loops: tuple[Loop, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """A slot of the workspace: its name, and the call that allocates it."""

    name: str
    allocation: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """Scratch memory that one call in progress owns.

    kept: how many may wait for the next call.
    pack: statement that returns arrays of the shapes that the function works with, each in the memory of a buffer.
    unpack: statements that give these arrays their names in the function.
    pool, maker: names of those that wait, and of the function that makes one.
    """

    kept: int
    buffers: tuple[Buffer, ...]
    pack: tuple[str, ...]
    unpack: tuple[str, ...]
    pool: str = "_pool"
    maker: str = "_workspace"


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """A module with one function.

    banner: lines of the module's docstring.
    """

    banner: tuple[str, ...]
    imports: tuple[str, ...]
    constants: tuple[str, ...]
    workspaces: tuple[Workspace, ...]
    decorators: tuple[str, ...]
    name: str
    parameters: tuple[str, ...]
    steps: tuple[Step, ...]
    result: str
    helpers: tuple[str, ...] = ()
