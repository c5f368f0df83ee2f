"""Whether what becomes of a traced value is only written out: printed, logged, or put into an exception's message."""

from __future__ import annotations

import dis
from types import FrameType

from yota.tracing.bytecode import consumer, is_call, keywords, operand_before, resolved, running
from yota.tracing.location import Reader
from yota.tracing.writers import Called, Outlets

_FORMATS = ("FORMAT_", "CONVERT_", "BUILD_STRING")
_SEQUENCES = ("BUILD_TUPLE", "BUILD_LIST")
_OPERATORS = ("BINARY_OP", "BINARY_MODULO", "BINARY_ADD")


def is_written_out(user: FrameType | Reader | None, outlets: Outlets) -> bool:
    """Whether what the running instruction, or expression, of the user's makes of a value is only written out.

    It goes through conversions and formatting into a call of a writer, such as `print`, or as a text into an exception
    that is raised; or it is dropped. What is called is looked up as the object that it is: where that cannot be done
    without running code, the answer is no.
    """
    if user is None:
        return False
    if not isinstance(user, FrameType):
        return user.is_written_out(outlets)
    code, step, is_text = user.f_code, running(user), False
    while True:
        following = consumer(code, step.offset)
        if is_call(step):
            called = _called(user, step)
            if called is None:
                return False
            if called.writes(outlets):
                return True
            raised = following is not None and following.opname == "RAISE_VARARGS"
            if raised and is_text and called.is_exception:
                outlets.raised = True
                return True
            if not called.converts:
                return False
            is_text = is_text or called.makes_text
        elif step.opname.startswith(_FORMATS) or _formats(user, step):
            is_text = True
        elif step.opname not in _SEQUENCES and not (is_text and _adds(step)):
            return False
        if following is None or following.opname == "POP_TOP":
            return following is not None
        step = following


def _called(frame: FrameType, call: dis.Instruction) -> Called | None:
    found = resolved(frame, call.offset)
    return None if found is None else Called(*found, keywords(frame.f_code, call.offset))


def _formats(frame: FrameType, step: dis.Instruction) -> bool:
    """Whether an instruction is the operator % with a text, written in the code, on its left."""
    if not step.opname.startswith(_OPERATORS) or (step.opname == "BINARY_OP" and step.argrepr != "%"):
        return False
    left = None if step.opname == "BINARY_ADD" else operand_before(frame.f_code, step.offset, 2)
    return left is not None and left.opname == "LOAD_CONST" and isinstance(left.argval, str)


def _adds(step: dis.Instruction) -> bool:
    return step.opname == "BINARY_ADD" or (step.opname == "BINARY_OP" and step.argrepr == "+")
