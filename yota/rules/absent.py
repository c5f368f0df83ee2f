"""Adjoints that are exactly zero: of several results, one that nothing depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.primitive import Emitter
from yota.ir.types import TensorType
from yota.rules.model import Adjoint, Call, Expression
from yota.rules.statics import STATIC_FUNCTIONS

__all__ = ["Absent", "mentions_adjoint", "present"]


@dataclass(frozen=True, slots=True)
class Absent:
    """Stands for zeros of ``type`` that nobody need compute with."""

    type: TensorType


def present(emitter: Emitter, value: Any) -> Any:
    """``value``, with zeros spelled out if it is `Absent`."""
    if not isinstance(value, Absent):
        return value
    return emitter.constant(np.broadcast_to(np.zeros((), value.type.dtype), value.type.shape))


def mentions_adjoint(expression: Expression) -> bool:
    """Whether a value in ``expression`` depends on an adjoint; shapes and dtypes do not count."""
    if isinstance(expression, Adjoint):
        return True
    if not isinstance(expression, Call) or expression.function in STATIC_FUNCTIONS:
        return False
    return any(map(mentions_adjoint, expression.inside))
