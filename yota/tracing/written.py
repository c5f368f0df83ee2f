"""Whether what becomes of a traced value is only written out: printed, logged, or put into an exception's message."""

from __future__ import annotations

from types import FrameType

from yota.tracing.bytecode import callee_name, consumer, is_call, running
from yota.tracing.location import Reader

__all__ = ["CONVERTERS", "WRITERS", "is_written_out"]

WRITERS = frozenset(
    "print write writelines pprint pp debug info warning warn error critical exception log display echo secho "
    "set_description set_description_str set_postfix set_postfix_str".split()
)
"""Names of functions that write what they are given, and keep nothing of it."""
CONVERTERS = frozenset("str repr format float int round join item tolist array2string array_str array_repr".split())
"""Names of functions whose result is written out where they are called among the arguments of a writer."""


def is_written_out(user: FrameType | Reader | None) -> bool:
    """Whether what the running instruction, or expression, of the user's makes of a value is only written out.

    It goes through conversions and formatting into a call of a writer, such as `print`, into an exception that is
    raised, or is dropped.
    """
    if user is None:
        return False
    if not isinstance(user, FrameType):
        return user.is_written_out()
    code, step = user.f_code, running(user)
    while True:
        following = consumer(code, step.offset)
        if is_call(step):
            name = callee_name(code, step.offset)
            if name in WRITERS or (following is not None and following.opname == "RAISE_VARARGS"):
                return True
            if name not in CONVERTERS:
                return False
        elif not step.opname.startswith(("FORMAT_", "BUILD_", "CONVERT_", "BINARY_OP", "BINARY_MODULO", "BINARY_ADD")):
            return False
        if following is None or following.opname == "POP_TOP":
            return following is not None
        step = following
