"""Macros: functions of rule bodies that expand to several primitives."""

from __future__ import annotations

from yota.rules.macros import arrays, matrices  # noqa: F401  (they register macros)
from yota.rules.macros.base import REGISTERED as MACROS

__all__ = ["MACROS"]
