"""References to primitives by name, for tapes in pickles and in the cache."""

from __future__ import annotations

from yota.ir import catalog
from yota.ir.primitive import Primitive
from yota.rules.registry import registry

_RULE = "rule "


def reference(known: Primitive) -> str | None:
    """The name of a primitive for other processes; None if it has no rule.

    >>> reference(catalog.primitive("exp"))
    'exp'
    """
    try:
        if catalog.primitive(known.name) is known:
            return known.name
    except KeyError:
        pass
    return _RULE + known.name if registry().knows(known.name) else None


def find(name: str) -> Primitive:
    """The primitive of a `reference`; a user-defined rule must be loaded in this process too."""
    if name.startswith(_RULE):
        return registry().primitive(name.removeprefix(_RULE))
    return catalog.primitive(name)
