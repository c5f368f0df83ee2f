"""NumPy's windows and frequencies, spelled in C: one element of them, computed in NumPy's order."""

from __future__ import annotations

__all__ = ["WINDOWS", "window"]

_ANGLE = "3.141592653589793 * (double)(2 * {at} + 1 - {size}) / (double)({size} - 1)"
_BELOW = "(double)(2 * {at} + 1 - {size}) / (double)({size} - 1)"
WINDOWS = {
    "np.hanning": f"{{size}} == 1 ? 1.0 : 0.5 + 0.5 * cos({_ANGLE})",
    "np.hamming": f"{{size}} == 1 ? 1.0 : 0.54 + 0.46 * cos({_ANGLE})",
    "np.blackman": "{size} == 1 ? 1.0 : "
    f"0.42 + 0.5 * cos({_ANGLE}) + 0.08 * cos({_ANGLE.replace('3.141592653589793', '6.283185307179586')})",
    "np.bartlett": f"{{size}} == 1 ? 1.0 : 1.0 - fabs({_BELOW})",
    "np.fft.fftfreq": "(double)(2 * {at} < {size} ? {at} : {at} - {size}) * (1.0 / (double){size})",
    "np.fft.rfftfreq": "(double){at} * (1.0 / (double){size})",
}
"""C texts of the element number ``at``."""


def window(name: str, at: str, size: str) -> str:
    """An element of what NumPy's function ``name`` makes of the name of a size.

    Examples
    --------
    >>> window("np.fft.rfftfreq", "row", "N")
    '(double)row * (1.0 / (double)N)'
    """
    return WINDOWS[name].format(at=at, size=size)
