"""All errors that yota raises on purpose. Each message gives the place, what was found, and the remedy."""

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
    """An argument has an unsupported type, dtype or structure, or an option is wrong."""


class TracingError(YotaError, TypeError):
    """The function did something with a traced value that yota cannot record."""


class MissingRuleError(TracingError):
    """A function without a rule received a traced value; the message shows the rule to complete."""


class DifferentiationError(YotaError, ValueError):
    """The tape cannot be differentiated as asked, for example because its output is not a scalar."""


class StaleTapeError(YotaError, RuntimeError):
    """A branch on traced data takes another direction than on the tape.

    ``decision`` is the number of the failed guard and the value found. ``layout`` is True if the guard is not a
    branch of the function, but depends on an argument's memory layout or on the signs of its indices. ``missed`` is
    the compiled code of that guard, for functions with several tapes.
    """

    decision: tuple[int, Any] = (0, None)
    layout: bool = False
    missed: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code is not pickled with the error.
        return type(self), self.args, {name: value for name, value in vars(self).items() if name != "missed"}


class ScheduleError(AssertionError):
    """A schedule reads memory with other content: a bug in yota, which ``YOTA_VERIFY=1`` detects.

    It is not a `YotaError`, so that no fallback catches it.
    """


class TapeError(YotaError, ValueError):
    """A tape violates an invariant of the intermediate representation."""


class ChunkError(YotaError, RuntimeError):
    """The computation of a chunk of data failed; the message names the chunk and the reason."""


class CodegenError(YotaError, RuntimeError):
    """A tape cannot be turned into source for the target."""


class CompilerError(CodegenError):
    """There is no working C compiler, or required headers are missing."""


class DeviceError(CodegenError):
    """There is no usable GPU, or it has too little memory."""


class RuleError(YotaError, ValueError):
    """A rule text has an error; the message has ``file:line:column``, the line with a caret, and the correction."""
