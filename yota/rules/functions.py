"""The functions that rules are for: found by their dotted names, and named by their objects."""

from __future__ import annotations

import sys
from typing import Any

from yota.errors import RuleError
from yota.ir.callables import original


def resolve(target: str) -> Any:
    """The object called ``target``, or None if no loaded module has it; nothing is imported.

    >>> resolve("math.sin")
    <built-in function sin>
    >>> resolve("nowhere.at.all")
    """
    parts = target.split(".")
    for length in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:length]))
        if found is None:
            continue
        for name in parts[length:]:
            # A package that loads its parts on demand would import here; its namespace alone is looked at.
            found = vars(found).get(name) if hasattr(found, "__dict__") else None
            if found is None:
                break
        else:
            found = original(getattr(found, "__func__", found))
            return found if callable(found) else None
    return None


class Late:
    """A function that is looked up by its dotted name when it is first called."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._found: Any = None

    def __call__(self, *operands: Any, **static: Any) -> Any:
        """The function's value."""
        if self._found is None:
            self._found = resolve(self.target)
        if self._found is None:
            module = self.target.rpartition(".")[0]
            raise RuleError(f"the function {self.target} is not loaded; add the line\n    import {module}")
        return self._found(*operands, **static)


class Targets:
    """Primitives by the function object they stand for; the index follows modules as they appear."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        # Functions are kept beside their ids, so that no id is used again.
        self._known: dict[int, tuple[Any, str]] = {}
        self._pending: set[str] = set()
        self._modules = 0

    def copy(self) -> Targets:
        """An index that grows apart from this one."""
        other = Targets()
        other._names = dict(self._names)
        other._known = dict(self._known)
        other._pending = set(self._pending)
        return other

    def add(self, target: str, name: str) -> None:
        """``target`` is the primitive ``name`` from now on."""
        before = self._names.get(target)
        self._known = {key: known for key, known in self._known.items() if known[1] != before}
        self._names[target] = name
        self._pending.add(target)
        self._modules = 0

    def find(self, function: Any) -> str | None:
        """Name of the primitive that ``function`` is, or None."""
        for _ in range(2):
            known = self._known.get(id(function))
            if known is not None and known[0] is function:
                return known[1]
            if not self._pending or len(sys.modules) == self._modules:
                break
            self.refresh()
        # A function that took the place of another one, as happens in notebooks, keeps its rule.
        target = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
        name = self._names.get(target)
        if name is None or resolve(target) is not function:
            return None
        self._known[id(function)] = (function, name)
        return name

    def refresh(self) -> None:
        """Look up the targets whose modules have appeared."""
        self._modules = len(sys.modules)
        for target in tuple(self._pending):
            found = resolve(target)
            if found is not None:
                self._known[id(found)] = (found, self._names[target])
                self._pending.discard(target)
