"""Where in running code a value comes from and where it goes, read off the stack effects of its instructions."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
import types
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import numpy as np

SILENT = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "KW_NAMES", "PRECALL", "NOT_TAKEN"})
"""Instructions that consume nothing; the effect of PRECALL belongs to the CALL that follows."""
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
UNKNOWN: Any = object()
"""Stands for what cannot be known without running code."""


@functools.lru_cache(1024)
def steps(code: CodeType) -> tuple[dis.Instruction, ...]:
    """The instructions of ``code``."""
    return tuple(dis.get_instructions(code))


def nested(code: CodeType) -> Iterator[CodeType]:
    """``code``, and the code inside of it: comprehensions, lambdas, nested functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


@functools.lru_cache(1024)
def _offsets(code: CodeType) -> list[int]:
    return [step.offset for step in steps(code)]


def _position(code: CodeType, offset: int) -> int:
    # While a Python function is called, some versions stand in the caches behind the call instruction.
    return bisect_right(_offsets(code), offset) - 1


_CATCHING = tuple(
    dis.opmap[name] for name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "JUMP_IF_NOT_EXC_MATCH") if name in dis.opmap
)
_POP = dis.opmap["POP_TOP"]
_CATCHING_ALL = bytes((dis.opmap["PUSH_EXC_INFO"], _POP) if "PUSH_EXC_INFO" in dis.opmap else (_POP, _POP, _POP))
"""How a clause begins that catches every exception."""


MATCHES_ARRAYS = bool(np.ndarray.__flags__ & 1 << 5)
"""Whether ``case [first, *rest]`` takes arrays apart (Py_TPFLAGS_SEQUENCE), as from NumPy 2.5 on."""
_MATCHING = dis.opmap["MATCH_SEQUENCE"]


def needs_source(code: CodeType) -> bool:
    """Whether code may take another branch by traced values than by plain ones: it catches exceptions, or matches."""
    every = code.co_code[::2]
    if MATCHES_ARRAYS and _MATCHING in every:
        return True
    return _CATCHING_ALL in every or "suppress" in code.co_names or any(each in every for each in _CATCHING)


def running(frame: FrameType) -> dis.Instruction:
    """The instruction that a frame executes."""
    every, position = steps(frame.f_code), _position(frame.f_code, max(frame.f_lasti, 0))
    # Python 3.11 makes one instruction of these two after some rounds.
    while every[position].opname in ("PRECALL", "CACHE"):
        position += 1
    return every[position]


def is_call(step: dis.Instruction) -> bool:
    """Whether an instruction calls something."""
    return step.opname.startswith("CALL") and "INTRINSIC" not in step.opname


def _effect(step: dis.Instruction) -> int:
    """Change of the stack's depth from the beginning of an instruction to that of the next one in the code."""
    if step.opname in ("JUMP_FORWARD", "JUMP_BACKWARD"):
        # The other value of a conditional expression begins, with one value less; or a comprehension ends, with the
        # exhausted iterator's place still to be dropped.
        return -1 if step.opname == "JUMP_FORWARD" else 1
    return dis.stack_effect(step.opcode, step.arg, jump=False)


def consumer(code: CodeType, offset: int, above: int = 0) -> dis.Instruction | None:
    """The instruction that takes off the stack what the one at ``offset`` pushed, below ``above`` more values."""
    every = steps(code)
    position, depth = _position(code, offset) + 1, above
    while position < len(every):
        step = every[position]
        if step.opname == "JUMP_FORWARD" and not depth:
            # It is the first value of a conditional expression.
            position = _position(code, step.argval)
            continue
        depth += _effect(step)
        if depth <= 0 and step.opname not in SILENT:
            return step
        position += 1
    return None


@dataclass(frozen=True, slots=True)
class Callee:
    """Where a call has from what it calls.

    chain: loads of a variable and of attributes in turn.
    name: the last attribute, or the variable, as ``zeros`` in ``np.zeros(3)``; None if unknown.
    rebound: whether the variable is assigned to between its load and the call.
    """

    chain: tuple[dis.Instruction, ...]
    name: str | None
    rebound: bool


@functools.lru_cache(4096)
def called_at(code: CodeType, offset: int) -> Callee:
    """Where the call at ``offset`` has from what it calls."""
    position = start = _position(code, offset)
    every = steps(code)
    depth = 1
    while depth > 0 and start >= 0:
        depth -= _effect(every[start])
        start -= 1
    before = every[start + 1 : position]
    chain: list[dis.Instruction] = []
    for step in before:
        if step.opname == "PUSH_NULL" or step.opname in SILENT:
            continue
        if not step.opname.startswith(_ATTRIBUTES if chain else "LOAD_"):
            break
        chain.append(step)
    name = str(chain[0].argval) if chain else None
    # A NULL may lie below, pushed by itself or together with a global variable, until an inner call takes it.
    below = bool(before) and (before[0].opname == "PUSH_NULL" or _effect(before[0]) == 2)
    depth = 0
    for number, step in enumerate(before):
        below = below and (depth > 1 or number < 2)
        if depth == 1 + below and step.opname.startswith(_ATTRIBUTES):
            name = str(step.argval)
        depth += _effect(step)
    root = chain[0].argval if chain else None
    rebound = any(
        "STORE_" in step.opname and (root == step.argval or (isinstance(step.argval, tuple) and root in step.argval))
        for step in before
    )
    return Callee(tuple(chain), name, rebound)


def keywords(code: CodeType, offset: int) -> tuple[str, ...] | None:
    """The names of the keywords of the call at ``offset``; None where it unpacks a mapping."""
    position = _position(code, offset)
    call = steps(code)[position]
    before = [step for step in steps(code)[:position] if step.opname == "KW_NAMES" or step.opname not in SILENT]
    last = before[-1]
    if call.opname == "CALL_FUNCTION_EX":
        # Python 3.14 pushes a NULL where there is no mapping.
        unpacks = last.opname != "PUSH_NULL" if sys.version_info >= (3, 14) else bool(call.arg)
        return None if unpacks else ()
    if last.opname == "KW_NAMES":
        return tuple(code.co_consts[last.arg or 0])
    return tuple(last.argval) if "KW" in call.opname else ()


def positional(code: CodeType, offset: int) -> int | None:
    """The number of positional arguments of the call at ``offset``; None where it unpacks a sequence."""
    call = steps(code)[_position(code, offset)]
    named = keywords(code, offset)
    if named is None or call.opname == "CALL_FUNCTION_EX":
        return None
    return int(call.arg or 0) - len(named)


def operand_before(code: CodeType, offset: int, depth: int) -> dis.Instruction | None:
    """The first instruction of the operand at ``depth`` on the stack before ``offset``; None after a jump."""
    position = _position(code, offset)
    while depth > 0 and position > 0:
        position -= 1
        step = steps(code)[position]
        if "JUMP" in step.opname:
            return None
        depth -= _effect(step)
    return steps(code)[position] if not depth else None


def callee(frame: FrameType) -> Any:
    """What the running call of a frame calls, where it is a variable or an attribute that is no property; else None."""
    found = resolved(frame, running(frame).offset)
    return None if found is None else found[1]


def resolved(frame: FrameType, offset: int) -> tuple[Any, Any] | None:
    """What a call calls, found without running code, and its owner (None for a variable); None if unknown."""
    found = called_at(frame.f_code, offset)
    if not found.chain or found.rebound:
        return None
    first = found.chain[0]
    root = str(first.argval)
    value: Any = frame.f_globals.get(root, vars(builtins).get(root, UNKNOWN))
    if first.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        value = frame.f_locals.get(root, UNKNOWN)
    elif first.opname == "LOAD_NAME":
        value = frame.f_locals.get(root, value)
    owner: Any = None
    for step in found.chain[1:]:
        owner, value = value, static_attribute(value, str(step.argval))
    return None if value is UNKNOWN else (owner, value)


def static_attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored, without running code; `UNKNOWN` if there is none, or if it is computed."""
    if type(value) is types.ModuleType and name in vars(value):
        return vars(value)[name]
    found = inspect.getattr_static(value, name, UNKNOWN) if value is not UNKNOWN else UNKNOWN
    if isinstance(found, (property, types.GetSetDescriptorType, types.MemberDescriptorType)):
        return UNKNOWN
    return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
