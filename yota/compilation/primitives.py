"""Primitives by name: how a tape that goes to another process says which it means."""

from __future__ import annotations

from yota.ir import catalog
from yota.ir.primitive import Primitive
from yota.rules.registry import registry

__all__ = ["find", "reference"]

_RULE = "rule "


def reference(known: Primitive) -> str | None:
    """The name by which another process finds a primitive; None if it has no rule.

    Examples
    --------
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
    """The primitive that `reference` gave the name of; one with a rule of the user's needs that rule here too."""
    if name.startswith(_RULE):
        return registry().primitive(name.removeprefix(_RULE))
    return catalog.primitive(name)
