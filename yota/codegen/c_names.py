"""Names of local variables in generated C: no keyword, no macro of a header, no name that the file uses itself."""

from __future__ import annotations

from yota.codegen.names import Names

__all__ = ["LocalNames"]

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register"
    " restrict return short signed sizeof static struct switch typedef typeof union unsigned void volatile while asm"
    " complex imaginary I"
).split()
_MACROS = (
    "linux unix i386 errno stdin stdout stderr assert offsetof environ signgam slots methods ptrdiff_t size_t int32_t"
    " int64_t uint8_t"
).split()
_OWN = (
    "first last at parts part so_far extent threads args count module result number done memset malloc free larger"
    " smaller larger_number smaller_number sign_of remainder_of floored_quotient heaviside log_add_exp square total"
    " add_to complex_add_to complex_total complex_multiply complex_divide complex_square complex64 complex128 parts_of"
).split()
_LIBRARY = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p pow sqrt"
    " cbrt hypot erf erfc fabs floor ceil trunc rint fmod copysign isnan isinf isfinite signbit cexp clog csqrt csin"
    " ccos ctan csinh ccosh ctanh conj creal cimag cabs"
).split()
_SINGLE = [f"{name}f" for name in (*_LIBRARY, *_OWN)]
_ENDINGS = ("_shape", "_parts", "_part", "_call", "_loops", "_run")
_BEGINNINGS = ("Py", "NPY", "npy", "take_", "number_", "plain_")


class LocalNames(Names):
    """Names in the functions of one kernel.

    Parameters
    ----------
    kernel
        The kernel's own name.

    Examples
    --------
    >>> names = LocalNames("f")
    >>> [names.fresh(text) for text in ("x", "x", "double", "RAND_MAX", "x_shape", "NPY_INT")]
    ['x', 'x_1', 'double_1', 'rand_max', 'x_shape_value', 'v_NPY_INT']
    """

    def __init__(self, kernel: str) -> None:
        super().__init__([*_KEYWORDS, *_MACROS, *_OWN, *_LIBRARY, *_SINGLE, kernel])

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that was not given before."""
        if hint.isupper() and len(hint) > 1 and not hint.startswith(_BEGINNINGS):
            # Most macros of the headers are in capitals.
            hint = hint.lower()
        if hint.startswith(_BEGINNINGS):
            hint = f"v_{hint}"
        if hint.endswith(_ENDINGS):
            hint = f"{hint}_value"
        return super().fresh(hint)
