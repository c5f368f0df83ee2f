"""The registry: which primitives there are, by name and by function, and the rules of each."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from yota._resources import folder
from yota.errors import MissingRuleError
from yota.rules import loading
from yota.rules.functions import Late, Targets, resolve
from yota.rules.loading import Excerpt
from yota.rules.packages import Packages

# Code that is read from the private cache needs the texts of rules alone, which are parsed when one is asked for.
if TYPE_CHECKING:
    from yota.ir.primitive import Primitive
    from yota.rules.language.model import Expression, Rule

_LIBRARIES = ("numpy.", "scipy.", "yota.")


class Registry:
    """Primitives and their rules; all methods may be called from several threads."""

    def __init__(self) -> None:
        self._unread: Sequence[tuple[str, str]] = ()
        """Texts and names of files of which no rule has been asked for."""
        self._content = ""
        """A digest of these texts, while there are no other rules."""
        self._held: dict[str, tuple[Rule | Excerpt, ...]] = {}
        self._primitives: dict[str, Primitive] = {}
        self._named = Targets()
        self._user: set[str] = set()
        self._derived: dict[tuple[Rule, str, str], Expression] = {}
        self._lock = threading.RLock()
        self.partials: dict[Any, Any] = {}
        """Partials of ops by primitive, position and types; `yota.transform.reverse.instantiate` keeps them here."""
        self.symbols: dict[str, Any] = {}
        """Sympy's stand-ins for primitives; `yota.rules.algebras.opaque` keeps them here."""
        self.revision = 0
        """Grows by one with each text that is taken in."""

    @classmethod
    def shipped(cls) -> Registry:
        """A registry with the rules that come with yota."""
        made = cls()
        made._unread = loading.shipped(folder("rules"))
        made._content = hashlib.sha256(repr(made._unread).encode()).hexdigest()
        made.revision = 1
        return made

    @property
    def _rules(self) -> dict[str, tuple[Rule | Excerpt, ...]]:
        if self._unread:
            self._read()
        return self._held

    @property
    def _targets(self) -> Targets:
        if self._unread:
            self._read()
        return self._named

    def _read(self) -> None:
        """Find the rules in texts that are held."""
        with self._lock:
            groups: dict[str, list[Excerpt]] = {}
            for text, file in self._unread:
                for part in loading.excerpts(text, file):
                    groups.setdefault(part.name, []).append(part)
            for name, group in groups.items():
                self._held[name] = tuple(group)
                if group[0].target is not None:
                    self._named.add(group[0].target, name)
            self._unread = ()

    def copy(self) -> Registry:
        """A registry with the same rules, which grows apart from this one."""
        with self._lock:
            other = Registry()
            other._held = dict(self._rules)
            # A primitive without target evaluates through its registry, so it is made again.
            other._primitives = {name: each for name, each in self._primitives.items() if each.expand is None}
            other._named = self._targets.copy()
            other._user = set(self._user)
            other._derived = dict(self._derived)
            other.revision = self.revision
            return other

    def with_rules(self, rules: Sequence[Rule]) -> Registry:
        """A copy that holds ``rules`` too, as a user's, though nothing about them is checked."""
        other = self.copy()
        other._put(rules, user=True)
        return other

    # -- asking ------------------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """Names of all primitives in alphabetical order."""
        return tuple(sorted(self._rules))

    def knows(self, name: str) -> bool:
        """Whether there is a primitive called ``name``."""
        return name in self._rules

    def is_user(self, name: str) -> bool:
        """Whether a rule of the primitive ``name`` came from outside yota."""
        return name in self._user

    def rules(self, name: str) -> tuple[Rule, ...]:
        """All rules of the primitive called ``name``."""
        found = self._found(name)
        if not found:
            from yota.rules.rule_primitives import missing

            raise MissingRuleError(missing(name, (0,)))
        return found

    def rule(self, name: str, ndims: Sequence[int]) -> Rule:
        """The rule of ``name`` whose pattern fits operands with these numbers of axes."""
        counts = tuple(ndims)
        for rule in self._found(name):
            if rule.matches(counts):
                return rule
        from yota.rules.rule_primitives import missing

        raise MissingRuleError(missing(name, counts))

    def partial(self, rule: Rule, parameter: str, result: str | None = None) -> Expression:
        """The partial of ``result`` by ``parameter``: as written, or derived from the primal."""
        result = result or rule.results[0]
        written = rule.partials.get((result, parameter))
        if written is not None:
            return written
        if result not in rule.primal and rule.equation is None:
            raise MissingRuleError(
                f"{rule.file}:{rule.line}: the rule of {rule.name} has no partial by {parameter}; add the line\n"
                f"    d[{result}, {parameter}] = ..."
            )
        with self._lock:
            key = (rule, result, parameter)
            if key not in self._derived:
                from yota.rules.algebras.opaque import derive

                self._derived[key] = derive(rule, result, parameter, self)
            return self._derived[key]

    def primitive(self, name: str) -> Primitive:
        """The primitive called ``name``."""
        known = self._primitives.get(name)
        if known is None:
            from yota.rules.rule_primitives import make

            with self._lock:
                known = self._primitives.get(name) or self._primitives.setdefault(name, make(self.rules(name)[0], self))
        if isinstance(known.function, Late):
            function = resolve(known.function.target)
            if function is not None:
                # The primitive may be on tapes already, so it stays the same one when its module has appeared.
                object.__setattr__(known, "function", function)
                known.__post_init__()
        return known

    def find(self, function: Any) -> Primitive | None:
        """The primitive that ``function`` is, if it has a rule."""
        with self._lock:
            name = self._targets.find(function)
            return None if name is None else self.primitive(name)

    def user_targets(self) -> tuple[Primitive, ...]:
        """Primitives that stand for plain Python functions of the user's, which NumPy does not dispatch."""
        with self._lock:
            found = [self.primitive(name) for name in sorted(self._user) if self.rules(name)[0].target is not None]
        return tuple(
            each
            for each in found
            if not isinstance(each.function, (Late, np.ufunc)) and not (each.target or "").startswith(_LIBRARIES)
        )

    def digest(self) -> str:
        """A short digest of all rules, for the banner of generated files."""
        found = hashlib.sha256()
        for name in self.names():
            for each in self._rules[name]:
                found.update((each.text if isinstance(each, Excerpt) else each.source).encode())
        return found.hexdigest()[:16]

    def content(self) -> str:
        """A digest of all that the rules depend on, for keys of caches; it reads no rule that nobody has asked for."""
        return self._content or self.digest()

    def _found(self, name: str) -> tuple[Rule, ...]:
        """The rules of a primitive, parsed by now; none if there is no such primitive."""
        held = self._rules.get(name, ())
        if held and isinstance(held[0], Excerpt):
            with self._lock:
                held = self._rules[name] = tuple([each.rule if isinstance(each, Excerpt) else each for each in held])
        return cast("tuple[Rule, ...]", held)

    # -- taking in ---------------------------------------------------------------------------------------

    def load(self, path: str | os.PathLike[str], proofs: loading.Proofs | None = None) -> Sequence[Rule]:
        """Take in a rule file, or all ``*.rules`` files of a folder; they override what was there."""
        with self._lock:
            return loading.load(self, path, proofs)

    def define(self, text: str) -> Primitive | tuple[Primitive, ...]:
        """Take in the rules of ``text``, and give back their primitive, or several in order."""
        from yota.rules.language.rule_text import Place
        from yota.rules.language.syntax import parse

        source, rules = parse(text)
        if not rules:
            what = "there is no rule in this text"
            write = "@elementwise\ndef f(x: Real) -> y:\n    y = x * x"
            raise source.fault(Place(1, 1), what, found="nothing", write=write)
        self.take([(source, rules)])
        found = tuple(self.primitive(name) for name in dict.fromkeys(rule.name for rule in rules))
        return found[0] if len(found) == 1 else found

    def take(self, sources: loading.Sources) -> tuple[Rule, ...]:
        """Hold rules against all laws, and take them in as a user's."""
        # Shipped rules are held against them by the tests, and users' rules are rare.
        from yota.rules.laws import all_laws as laws

        with self._lock:
            trial = self.copy()
            for _, rules in sources:
                trial._put(rules, user=True)
            for source, rules in sources:
                laws.check(source, rules, trial, self)
            for source, rules in sources:
                laws.prove(source, rules, trial, self)
            for _, rules in sources:
                self._put(rules, user=True)
            self.symbols.clear()
            self.revision += 1
            return tuple(rule for _, rules in sources for rule in rules)

    def hold(self, parts: Sequence[Excerpt], *, user: bool) -> None:
        """Take in rules that were proved before; they are parsed when they are asked for."""
        groups: dict[str, list[Excerpt]] = {}
        for part in parts:
            groups.setdefault(part.name, []).append(part)
        with self._lock:
            self._content = ""
            for name, group in groups.items():
                if name in self._rules:
                    self._put([part.rule for part in group], user)
                else:
                    self._rules[name] = tuple(group)
                    self._note(name, group[0].target, user)
            self.symbols.clear()
            self.revision += 1

    def _put(self, rules: Sequence[Rule], user: bool) -> None:
        names = {rule.name for rule in rules}
        self._content = ""
        if not names.isdisjoint(self._rules):
            # What was derived from rules that are overridden no longer follows.
            self._derived.clear()
            self.partials.clear()
        for name in names:
            added = tuple(rule for rule in rules if rule.name == name)
            target = added[0].target
            kept = (each for each in self._found(name) if each.target == target)
            self._rules[name] = added + tuple(each for each in kept if not any(map(each.overlaps, added)))
            self._primitives.pop(name, None)
            self._note(name, added[0].target, user)

    def _note(self, name: str, target: str | None, user: bool) -> None:
        if user:
            self._user.add(name)
        if target is not None:
            self._targets.add(target, name)


_default: Registry | None = None
_packages: Packages | None = None
_default_lock = threading.RLock()


def registry() -> Registry:
    """The registry of this process, with the shipped rules and what was loaded since.

    Rules of installed packages are among them once the modules that they are for are imported.

    >>> registry().primitive("exp").target
    'numpy.exp'
    """
    global _default, _packages  # noqa: PLW0603  (made on first use, so that `import yota` stays quick)
    if _default is None or _packages is None:
        with _default_lock:
            _default = _default or Registry.shipped()
            _packages = _packages or Packages()
    if _packages.waiting:
        with _default_lock:
            _packages.load(_default)
    return _default
