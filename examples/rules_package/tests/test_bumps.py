"""Who imports `bumps` has its derivatives."""

import bumps
import numpy as np

import yota


def test_derivatives_come_with_the_package():
    x = np.array([0.3, -0.7, 1.5])
    yota.gradcheck(lambda x: np.sum(bumps.bump(x)), x)
    yota.gradcheck(lambda x: np.sum(bumps.stretch(x) ** 2), x)
    _, tape = yota.trace(lambda x: np.sum(bumps.stretch(x)), x)
    assert "stretch" in tape.operations
