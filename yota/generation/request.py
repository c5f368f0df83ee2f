"""What was asked for: a function, its arguments, and what the generated file shall hold."""

from __future__ import annotations

from dataclasses import dataclass

from yota.compilation.layout import Wrt
from yota.errors import ArgumentError
from yota.generation.subject import Call
from yota.ir.callables import name_of


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request; see `yota.export.generate`."""

    call: Call
    target: str
    name: str | None
    wrt: Wrt
    wanted: tuple[str, ...]
    license: str
    self_test: bool
    strict: bool
    extension: bool
    command: tuple[str, ...] | None
    stem: str | None = None

    def __post_init__(self) -> None:
        if self.self_test and "gradient" not in self.wanted:
            raise ArgumentError("self_test checks the gradient; add 'gradient' to with_")

    @property
    def wish(self) -> str:
        """What the function should be called."""
        function = self.call.function
        return self.name or name_of(function)

    def flags(self) -> tuple[tuple[str, bool], ...]:
        """Options of the command line that are given or not."""
        return ("--self-test", self.self_test), ("--extension", self.extension), ("--strict", self.strict)
