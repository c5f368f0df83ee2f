"""The libraries that the shipped rules speak of; what a user's file names is never imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from yota._resources import folder
from yota.rules.model import Rule

__all__ = ["imported"]


def imported(path: Path, rules: Sequence[Rule]) -> bool:
    """Whether a file is a shipped one; if so, the modules of its functions are imported."""
    if folder("rules") not in path.resolve().parents:
        return False
    modules = {rule.target.rpartition(".")[0] for rule in rules if rule.target is not None}
    if path.resolve().parent.name == "scipy":
        modules.add("scipy.special")
    for module in sorted(modules):
        import_module(module)
    return True
