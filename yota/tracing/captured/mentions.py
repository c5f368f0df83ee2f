"""What code does with names, from its bytecode: which it looks up, and whether it only records with an array."""

from __future__ import annotations

import builtins
import dis
import functools
import itertools
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yota.tracing.bytecode import SILENT, called_at, consumer, is_call, nested, steps
from yota.tracing.memory import owner_of

_DYNAMIC = frozenset("getattr hasattr vars globals eval exec attrgetter methodcaller".split())
"""Functions that look up computed names."""
_STORES = tuple(f"{how}_{what}" for how in ("STORE", "DELETE") for what in ("GLOBAL", "DEREF", "NAME", "ATTR"))
_WRITERS = frozenset(
    "append extend insert remove pop clear sort reverse update setdefault popitem add discard appendleft popleft rotate"
    " extendleft move_to_end setitem delitem iadd heappush heappop heapify insort insort_left insort_right"
    " shuffle".split()
)
"""Functions that write into lists, dicts and sets."""
_ANY_WRITERS = frozenset("setattr delattr __setattr__ __delattr__ __dict__ vars globals locals exec eval".split())
"""Names of functions that bind computed names."""
_REACH = 8
"""Instructions that end a call of `getattr` with a constant name."""
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "__setstate__")
_IMPORTERS = frozenset({"import_module", "__import__"})


@dataclass(frozen=True, slots=True)
class Mentions:
    """Names that code looks up, and non-local names that it binds.

    writes, writes_any: whether it may write items of lists and dicts, or bind computed names.
    asks, is_dynamic: whether it may test for missing attributes, or look up computed names.
    """

    names: tuple[str, ...]
    attributes: frozenset[str]
    modules: tuple[str, ...]
    stored: frozenset[str]
    writes: bool
    writes_any: bool
    asks: bool
    is_dynamic: bool


@functools.lru_cache(4096)
def mentions(code: types.CodeType) -> Mentions:
    """The names that ``code`` and its nested code (comprehensions, lambdas, functions) look up."""
    names: dict[str, None] = {}
    attributes: set[str] = set()
    modules: dict[str, None] = {}
    stored: set[str] = set()
    every = [step for step in steps(code) if step.opname not in (*SILENT, "PUSH_NULL")]
    is_dynamic = any(_is_dynamic(every[at : at + _REACH]) for at in range(len(every)))
    writes = any(step.opname in ("STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR") for step in every)
    for before, step in itertools.pairwise([every[0], *every]):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[step.argval] = None
        elif step.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER")) or step.opname == "IMPORT_FROM":
            attributes.add(step.argval)
        elif step.opname.startswith(_STORES) and not _is_of_new(code, before):
            stored.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            modules[step.argval] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = mentions(constant)
            names.update(dict.fromkeys(inner.names))
            attributes |= inner.attributes
            modules.update(dict.fromkeys(inner.modules))
            stored |= inner.stored
            writes = writes or inner.writes
            is_dynamic = is_dynamic or inner.is_dynamic
        elif isinstance(constant, str) and constant.isidentifier():  # getattr(module, "name")
            attributes.add(constant)
    if _IMPORTERS & {*names, *attributes}:
        modules.update(dict.fromkeys(each for each in code.co_consts if isinstance(each, str)))
    asks = not {"getattr", "hasattr"}.isdisjoint(names)
    used = attributes.union(names)
    return Mentions(
        tuple(names),
        frozenset(attributes),
        tuple(modules),
        frozenset(stored),
        writes or not _WRITERS.isdisjoint(used),
        not _ANY_WRITERS.isdisjoint(used),
        asks,
        is_dynamic,
    )


def _is_of_new(code: types.CodeType, before: dis.Instruction) -> bool:
    """Whether the attribute store of a constructor, after the instruction ``before``, is on the new object."""
    loaded = before.argval if isinstance(before.argval, tuple) else (before.argval,)
    is_first = before.opname.startswith("LOAD_FAST") and loaded[-1:] == code.co_varnames[:1]
    return code.co_name in _CONSTRUCTORS and is_first


def _is_dynamic(following: Sequence[dis.Instruction]) -> bool:
    """Whether an instruction and its successors look up an attribute with a computed name."""
    if not following[0].opname.startswith("LOAD_") or following[0].argval not in _DYNAMIC:
        return False
    if following[0].argval not in ("getattr", "hasattr"):
        return True
    for at, step in enumerate(following):
        if step.opname.startswith("CALL"):
            before = [each.opname.startswith("LOAD_CONST") for each in following[max(at - 2, 1) : at]]
            # The name is the last argument, unless there is a default.
            return not any(before) or not all(each.opname.startswith("LOAD_") for each in following[at - 2 : at])
    return True


_Site = tuple[int, int]
"""Identity of a code object, and the offset of an instruction."""
_HARMLESS = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides"})
_VIEWS = ("BINARY_SUBSCR", "BINARY_SLICE")


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Uses of captured arrays by instructions, calls with such arguments, and global variables of code that ran."""

    uses: Mapping[int, Collection[_Site]] = field(default_factory=dict)
    calls: Mapping[_Site, Sequence[tuple[types.CodeType, Mapping[str, Any]]]] = field(default_factory=dict)
    globals: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def only_records(self, array: Any, names: Iterable[str], codes: Iterable[types.CodeType]) -> bool:
        """Whether ``codes``, which name ``array`` by ``names``, only pass it to recorded ops."""
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
            # Python 3.14 has a subscript as a binary operator.
            subscribes = following.opname in _VIEWS or (following.opname == "BINARY_OP" and following.argrepr == "[]")
            is_view = following.opname.startswith("LOAD_ATTR") and following.argval in ("T", "mT")
            if not (is_view or subscribes):
                return False
            following = consumer(code, following.offset)
        return False

    def _is_handed_on(self, array: Any, code: types.CodeType, call: dis.Instruction, inside: tuple[Any, ...]) -> bool:
        """Whether a call passes the array to one observed function that only passes it to recorded ops."""
        chain = called_at(code, call.offset).chain
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
    """For each load of ``name`` by an instruction, other than for a cell, how many values it pushes above."""
    if not step.opname.startswith("LOAD_") or step.opname == "LOAD_CLOSURE":
        return []
    if step.opname.startswith("LOAD_FAST") and name in (*code.co_cellvars, *code.co_freevars):
        return []
    if isinstance(step.argval, tuple) and "LOAD_FAST" in step.opname:
        return [above for above, each in enumerate(reversed(step.argval)) if each == name]
    return [0] if isinstance(step.argval, str) and step.argval == name else []
