"""Decides whether a function only passes a captured array to recorded ops, so that its content may change."""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yota.tracing.bytecode import callee_chain, consumer, is_call, nested, steps
from yota.tracing.memory import owner_of

_Site = tuple[int, int]
"""Identity of a code object, and the offset of an instruction."""
_HARMLESS = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides"})
_VIEWS = ("BINARY_SUBSCR", "BINARY_SLICE")


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Uses of captured arrays during a trace.

    uses: the instructions that passed an array to a recorded op, by identity of the owner of its memory.
    calls: the user's code objects that each call instruction called, with the arrays among the arguments.
    globals: global variables by identity of the code that ran.
    """

    uses: Mapping[int, Collection[_Site]] = field(default_factory=dict)
    calls: Mapping[_Site, Sequence[tuple[types.CodeType, Mapping[str, Any]]]] = field(default_factory=dict)
    globals: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def only_records(self, array: Any, names: Iterable[str], codes: Iterable[types.CodeType]) -> bool:
        """Whether ``codes``, which name ``array`` by ``names``, only pass it to recorded ops.

        Other code computes with its present content.
        """
        every = [inner for code in codes for inner in nested(code)]
        return all(self._only_hands_over(array, name, code, ()) for name in names for code in every)

    def _only_hands_over(self, array: Any, name: str, code: types.CodeType, inside: tuple[Any, ...]) -> bool:
        return all(
            step.opname != "LOAD_CONST" and self._is_use(array, code, consumer(code, step.offset, above), inside)
            for step in steps(code)
            for above in _loads(code, step, name)
        )

    def _is_use(
        self, array: Any, code: types.CodeType, following: dis.Instruction | None, inside: tuple[Any, ...]
    ) -> bool:
        """Whether an instruction that pops the array passes it to a recorded op."""
        while following is not None:
            if (id(code), following.offset) in self.uses.get(id(owner_of(array)), ()):
                return True
            if following.opname.startswith("LOAD_ATTR") and following.argval in _HARMLESS:
                return True
            if is_call(following):
                return self._is_handed_on(array, code, following, inside)
            is_view = following.opname.startswith("LOAD_ATTR") and following.argval in ("T", "mT")
            if not (is_view or following.opname in _VIEWS or _subscribes(following)):
                return False
            following = consumer(code, following.offset)
        return False

    def _is_handed_on(self, array: Any, code: types.CodeType, call: dis.Instruction, inside: tuple[Any, ...]) -> bool:
        """Whether a call passes the array to one observed function that only passes it to recorded ops."""
        chain = callee_chain(code, call.offset)
        if len(chain) == 1 and chain[0].opname in ("LOAD_GLOBAL", "LOAD_NAME") and self._is_len(code, chain[0].argval):
            return True
        found = self.calls.get((id(code), call.offset), ())
        fixed = bool(chain) and (chain[0].opname in ("LOAD_GLOBAL", "LOAD_NAME") or chain[0].argval in code.co_freevars)
        if len(found) != 1 or not fixed or len(chain) != 1 or (code, call.offset) in inside:
            return False
        callee, arguments = found[0]
        names = [name for name, value in arguments.items() if value is array]
        return bool(names) and all(
            self._only_hands_over(array, name, inner, (*inside, (code, call.offset)))
            for name in names
            for inner in nested(callee)
        )

    def _is_len(self, code: types.CodeType, name: str) -> bool:
        """Whether a global variable of ``code`` is the function `len`, which does not depend on an array's content."""
        names = self.globals.get(id(code))
        return names is not None and names.get(name, vars(builtins).get(name)) is len


def _loads(code: types.CodeType, step: dis.Instruction, name: str) -> list[int]:
    """For each load of ``name`` by an instruction, the number of values that it pushes above.

    Creating a cell for nested code is not a load.
    """
    if not step.opname.startswith("LOAD_") or step.opname == "LOAD_CLOSURE":
        return []
    if step.opname.startswith("LOAD_FAST") and name in (*code.co_cellvars, *code.co_freevars):
        return []
    if isinstance(step.argval, tuple) and "LOAD_FAST" in step.opname:
        return [above for above, each in enumerate(reversed(step.argval)) if each == name]
    return [0] if isinstance(step.argval, str) and step.argval == name else []


def _subscribes(step: dis.Instruction) -> bool:
    """Whether an instruction is a subscript in the form of Python 3.14."""
    return step.opname == "BINARY_OP" and step.argrepr == "[]"
