"""Names of local variables in generated C: no keyword, no macro of a header, no name that the file uses itself."""

from __future__ import annotations

from collections.abc import Iterable

from yota.emit.names import Names

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register"
    " restrict return short signed sizeof static struct switch typedef typeof union unsigned void volatile while asm"
    " complex imaginary I"
).split()
_MACROS = (
    "linux unix i386 errno stdin stdout stderr assert offsetof environ signgam slots methods ptrdiff_t size_t int32_t"
    " int64_t uint8_t"
).split()
_VARIABLES = "first last at parts part so_far extent threads args count module result number done status".split()
_OWN = (
    "memset memcpy malloc free larger smaller larger_number smaller_number sign_of remainder_of floored_quotient"
    " heaviside cosine log_add_exp logistic log_logistic log_odds square total add_to complex_add_to complex_total"
    " complex_multiply complex_divide complex_reciprocal at_hand write_past_caches finish_writing"
    " complex_square complex64 complex128 parts_of widened complex_widened large_array"
).split()
_LIBRARY = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p pow sqrt"
    " cbrt hypot erf erfc fabs floor ceil trunc rint fmod copysign isnan isinf isfinite signbit cexp clog csqrt csin"
    " ccos ctan csinh ccosh ctanh conj creal cimag cabs"
).split()
_SINGLE = [f"{name}f" for name in (*_LIBRARY, *_OWN)]
_ENDINGS = ("_shape", "_parts", "_part", "_call", "_loops", "_run")
_BEGINNINGS = ("Py", "NPY", "npy", "take_", "number_", "plain_")


class _Names(Names):
    """Names that mean nothing else in C, nor in the headers that files include."""

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that was not given before."""
        if hint.isupper() and len(hint) > 2 and not hint.startswith(_BEGINNINGS):
            # Most macros of the headers are in capitals.
            hint = hint.lower()
        if hint.startswith(_BEGINNINGS):
            hint = f"v_{hint}"
        if hint.endswith(_ENDINGS):
            hint = f"{hint}_value"
        return super().fresh(hint)


class LocalNames(_Names):
    """Names in the functions of one kernel.

    kernel: the kernel's own name.
    known: further names that are taken.

    >>> names = LocalNames("f")
    >>> [names.fresh(text) for text in ("x", "x", "double", "RAND_MAX", "x_shape", "NPY_INT")]
    ['x', 'x_1', 'double_1', 'rand_max', 'x_shape_value', 'v_NPY_INT']
    """

    def __init__(self, kernel: str, known: Iterable[str] = ()) -> None:
        super().__init__([*_KEYWORDS, *_MACROS, *_VARIABLES, *_OWN, *_LIBRARY, *_SINGLE, kernel, *known])


FOREIGN = (
    "alignas alignof and and_eq bitand bitor bool catch class compl concept const_cast constexpr consteval constinit"
    " co_await co_return co_yield decltype delete dynamic_cast explicit export false friend mutable namespace new"
    " noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert"
    " static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq"
).split()
"""Keywords of C++, which reads headers too, and of later C."""
_SYSTEM = (
    "abort abs accept access alarm atexit atof atoi atol bind bsearch calloc ceil close connect crypt div drem dup"
    " environ exec exit exp10 fclose fdim ffs fma fmax fmin fopen fork fread frexp fwrite gamma getc getenv gets ilogb"
    " index ioctl j0 j1 jn jrand48 kill labs ldexp ldiv lgamma link listen llabs llrint llround logb longjmp lrint"
    " lround lseek main mmap modf nan nanosleep nearbyint nextafter nexttoward open pause pipe poll pow10 printf putc"
    " puts qsort raise rand random read realloc recv remainder remove remquo rename rindex round scalb scalbln scalbn"
    " select send setjmp signal significand sincos sleep socket srand stat sync system tgamma time times truncate"
    " unlink vfork wait write y0 y1 yn carg cpow cproj cacos casin catan cacosh casinh catanh"
).split()
"""Functions of the C library: a program that defines one of these gets its own where the library calls it."""
_LIBRARY_BEGINNINGS = ("str", "mem", "wcs", "is", "to", "pthread_", "omp_", "cr_", "atomic_")


_OWN_FUNCTIONS = [
    *"drawn main rounded sort_keys sort_pairs sort_stretches first_of in_order check_indices".split(),
    *(
        f"{name}_{kind}"
        for name in ("places_from", "sorted_places", "whole_sorted_places")
        for kind in ("double", "float", "int64_t", "int32_t", "uint8_t")
    ),
]
"""What files define themselves where they need it."""


class FileNames(_Names):
    """Names of functions and tables of one file, which other files of a program see.

    >>> names = FileNames()
    >>> [names.fresh(text) for text in ("energy", "read", "sin", "class", "strain")]
    ['energy', 'read_1', 'sin_1', 'class_', 'f_strain']
    """

    def __init__(self) -> None:
        system = [*_SYSTEM, *(f"{name}{end}" for name in _SYSTEM for end in "fl")]
        super().__init__([*_KEYWORDS, *_MACROS, *_OWN, *_LIBRARY, *_SINGLE, *FOREIGN, *system, *_OWN_FUNCTIONS])

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that was not given before, and that no library has."""
        return super().fresh(f"f_{hint}" if hint.startswith(_LIBRARY_BEGINNINGS) else hint)
