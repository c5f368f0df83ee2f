"""Macros: functions of rule bodies that expand to several primitives."""

from __future__ import annotations

from yota.rules.macros import array_macros, matrix_macros  # noqa: F401  (they register macros)
from yota.rules.macros.macro import REGISTERED as MACROS

__all__ = ["MACROS"]
