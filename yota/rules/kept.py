"""What has been computed beside a registry, for as long as its rules stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from yota.rules.inspection import Registered

__all__ = ["once"]

_T = TypeVar("_T")
_MOST = 20_000
_kept: WeakKeyDictionary[Registered, dict[Any, Any]] = WeakKeyDictionary()


def once(registry: Registered, key: Any, compute: Callable[[], _T]) -> _T:
    """What ``compute`` gives, computed once for each ``key`` while no rule is added to ``registry``."""
    key = (registry.revision, key)
    known = _kept.setdefault(registry, {})
    if key not in known:
        if len(known) > _MOST:
            known.clear()
        known[key] = compute()
    found: _T = known[key]
    return found
