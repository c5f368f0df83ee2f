"""Every error that yota raises on purpose; each message says where, what was found, and the cure."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArgumentError",
    "ChunkError",
    "CodegenError",
    "CompilerError",
    "DeviceError",
    "DifferentiationError",
    "MissingRuleError",
    "RuleError",
    "StaleTapeError",
    "TapeError",
    "TracingError",
    "YotaError",
]


class YotaError(Exception):
    """Base of all errors that yota raises on purpose."""


class ArgumentError(YotaError, TypeError):
    """An argument of a function under differentiation cannot be used: its type, dtype or structure."""


class TracingError(YotaError, TypeError):
    """The function did something with a traced value that cannot be recorded."""


class MissingRuleError(TracingError):
    """A function met a traced value and no rule is known for it; the message holds the rule to paste."""


class DifferentiationError(YotaError, ValueError):
    """The tape cannot be differentiated as asked, for example because its output is not a scalar."""


class StaleTapeError(YotaError, RuntimeError):
    """A branch on traced data went another way than when the tape was recorded.

    ``decision`` is the number of the guard that failed and what was found there; ``layout`` says that it is no branch
    of the function's own, but how an argument lies in memory, or from which end an array of indices counts. ``missed``
    is what was compiled with that guard, where a function keeps several forms.
    """

    decision: tuple[int, Any] = (0, None)
    layout: bool = False
    missed: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code stays where it is: the error alone goes to another process.
        return type(self), self.args, {name: value for name, value in vars(self).items() if name != "missed"}


class ScheduleError(AssertionError):
    """A schedule would read memory that holds something else: a defect of yota's own, which ``YOTA_VERIFY=1`` finds.

    It is no `YotaError`: nothing may take another way and go on.
    """


class TapeError(YotaError, ValueError):
    """A tape breaks an invariant of the intermediate representation."""


class ChunkError(YotaError, RuntimeError):
    """What was to be computed for a chunk of data failed; the message names the chunk, and says what went wrong."""


class CodegenError(YotaError, RuntimeError):
    """A tape cannot be turned into source for the target."""


class CompilerError(CodegenError):
    """There is no C compiler here, or it does not work, or headers are missing that it needs."""


class DeviceError(CodegenError):
    """There is no GPU to run on, or no way to reach it, or it has too little memory."""


class RuleError(YotaError, ValueError):
    """A rule text has a fault; the message has ``file:line:column``, the line, a caret and the mend."""
