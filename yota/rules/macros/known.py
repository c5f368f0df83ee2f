"""All macros by name."""

from __future__ import annotations

import yota.rules.macros.blocks
import yota.rules.macros.contraction
import yota.rules.macros.elimination
import yota.rules.macros.scans
import yota.rules.macros.shapes
import yota.rules.macros.singular
import yota.rules.macros.spectra  # noqa: F401  (all register macros)
from yota.rules.macros.base import REGISTERED as MACROS

__all__ = ["MACROS"]
