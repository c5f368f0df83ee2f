"""Rules that installed packages bring: files named by the entry-point group ``yota.rules``."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from yota.errors import RuleError
from yota.rules.functions import resolve
from yota.rules.loading import Proofs, read_file

if TYPE_CHECKING:
    from yota.rules.language.model import Rule
    from yota.rules.registry import Registry

_GROUP = "yota.rules"
_REFERENCE = r"(\w+)((?:\.\w+)*):([\w.]*\w)"


@dataclass(frozen=True, slots=True)
class Package:
    """A file of rules, or a folder of them, that a distribution brings.

    module: the module whose functions have these rules: they are loaded once it is imported.
    reference: ``package:file.rules``: the file ``file.rules`` in the folder of ``package``; or ``package:folder``.
    """

    name: str
    version: str
    module: str
    reference: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} (rules of {self.module!r})"

    @property
    def path(self) -> Path:
        """Where the file is; nothing is imported to find it."""
        match = re.fullmatch(_REFERENCE, self.reference)
        if match is None:
            raise RuleError(
                f"{self}: the entry point {self.reference!r} names no rule file; write\n"
                f'    [project.entry-points."{_GROUP}"]\n    {self.module} = "package:file.rules"'
            )
        spec = importlib.util.find_spec(match[1])
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            found = Path(folder, *match[2].split(".")[1:], match[3])
            if found.exists():
                return found
        raise RuleError(f"{self}: there is no file {match[3]} in the package {match[1]}{match[2]}; install it again")

    def read(self) -> list[Rule]:
        """The rules, of which nothing is proved yet."""
        from yota.rules.language.syntax import parse

        path = self.path
        files = sorted(path.rglob("*.rules")) if path.is_dir() else [path]
        try:
            found = [rule for each in files for rule in parse(read_file(each), str(each), header=True)[1]]
        except (RuleError, OSError) as fault:
            raise RuleError(f"{self}: {fault}") from None
        if not found:
            raise RuleError(f"{self}: there are no rules in {path}")
        return found


def installed() -> tuple[Package, ...]:
    """What distributions on the module search path bring, in order of their names."""
    if not any(map(_mentions, sys.path)):
        return ()
    import importlib.metadata

    found = {
        Package(each.dist.name, each.dist.version, each.name, each.value)
        for each in importlib.metadata.entry_points(group=_GROUP)
        if each.dist is not None
    }
    return tuple(sorted(found, key=lambda each: (each.name, each.module, each.reference)))


def _mentions(folder: str) -> bool:
    """Whether a distribution in a folder has the group; asked first, for `importlib.metadata` takes long to import."""
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.path for entry in entries if entry.name.endswith(("-info", ".egg"))]
    except OSError:
        return False
    for name in names:
        with suppress(OSError), open(os.path.join(name, "entry_points.txt"), "rb") as stream:
            if f"[{_GROUP}]".encode() in stream.read():
                return True
    return False


class Packages:
    """The packages of this process, and who brought which rule.

    proofs: makes what remembers which texts were proved; None where nothing does.
    """

    proofs: Callable[[], Proofs] | None = None

    def __init__(self) -> None:
        self.waiting = installed()
        self._owners: dict[str, tuple[Package, Rule]] = {}

    def load(self, registry: Registry) -> None:
        """Take in the rules of those whose modules have been imported since."""
        for package in self.waiting:
            # The module is there, and not just on its way.
            module = sys.modules.get(package.module)
            if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
                before = self.waiting
                self.waiting = tuple(each for each in before if each is not package)
                try:
                    self._take(package, registry)
                except BaseException:
                    self.waiting = before
                    raise

    def _take(self, package: Package, registry: Registry) -> None:
        rules = package.read()
        for rule in rules:
            for key in (rule.name, rule.target):
                other, its = self._owners.get(key or "", (package, rule))
                if other is not package:
                    raise RuleError(
                        f"{package} and {other} both have rules for {key}, at {rule.file}:{rule.line} and "
                        f"{its.file}:{its.line}; uninstall one"
                    )
            if rule.target is not None and _is_absent(rule.target):
                raise RuleError(
                    f"{package}: {rule.file}:{rule.line}: there is no function {rule.target}; its version may be "
                    "another than the one that the rule is for"
                )
        try:
            registry.load(package.path, Packages.proofs() if Packages.proofs is not None else None)
        except RuleError as fault:
            raise RuleError(f"{package}: {fault}") from None
        for rule in rules:
            self._owners.update({key: (package, rule) for key in (rule.name, rule.target) if key})


def _is_absent(target: str) -> bool:
    """Whether a module is imported that lacks a function; a part of it may be imported later."""
    if resolve(target) is not None:
        return False
    home, _, part = target.rpartition(".")
    while home and home not in sys.modules:
        home, _, part = home.rpartition(".")
    try:
        return bool(home) and importlib.util.find_spec(f"{home}.{part}") is None
    except (ImportError, ValueError):
        return True
