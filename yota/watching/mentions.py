"""Names that code looks up, from its bytecode; they determine what is tracked, and never a computed result."""

from __future__ import annotations

import dis
import functools
import itertools
import types
from collections.abc import Sequence
from dataclasses import dataclass

from yota.tracing.bytecode import SILENT, steps

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
    """Names that code looks up: globals, attributes and imported modules.

    ``stored`` are the non-local names that it binds. ``writes`` is True if it may write items of lists and dicts,
    ``writes_any`` if it may bind computed names. ``asks`` is True if it may test for missing attributes,
    ``is_dynamic`` if it looks up computed names.
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
