"""NumPy without its annotations, which ask for arrays where traced values go too."""

from __future__ import annotations

from typing import Any

import numpy

np: Any = numpy
