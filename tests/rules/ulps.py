"""By how much a partial that NumPy computes misses its value at 50 digits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from yota.rules.language.model import Rule
from yota.rules.laws.inspection import Registered
from yota.rules.laws.trials import miss, partial


def excess(rule: Rule, parameter: str, point: Mapping[str, float], registry: Registered) -> float:
    """In ulps; see `miss`."""
    given = {name: value if isinstance(value, int) else np.float64(value) for name, value in point.items()}
    found = partial(rule, parameter, given, registry)
    return miss(rule, parameter, point, complex(found), registry)
