"""The plan of a generated C file, ready for a template, and what it holds besides kernels."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.c.dialect import NAMES, C, c_type, real_type, scalar_type, suffix
from yota.emit.c.lines import Needs
from yota.emit.language import Language
from yota.emit.names import Names
from yota.emit.render import render
from yota.emit.tree import Table
from yota.errors import CodegenError


@dataclass(frozen=True, slots=True)
class Part:
    """An inline function: the template that has its text, the types that fill it, and how it is declared.

    ``vectors`` says whether compilers must be told how it reduces vectors.
    """

    template: str
    type: str
    suffix: str
    qualifier: str = "static inline"
    vectors: bool = True


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a kernel.

    shape: C initialiser of its shape; empty for a number.
    number: for a number: the function that converts it.
    used: whether the loops read it.
    """

    name: str
    type: str
    npy_type: str
    shape: str
    axes: int
    number: str
    used: bool
    what: str


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a kernel.

    ``make`` is a function that makes a Python object of a number; empty for an array. ``handed`` is what one of
    several threads gets to write to, ``allocate`` the function that makes the array. ``given`` is the position of an
    argument that is given back if it is a Python float.
    """

    name: str
    type: str
    npy_type: str
    shape: str
    axes: int
    make: str
    what: str
    handed: str
    allocate: str
    given: int | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """A result that every thread has a part of: its elements, and the statement by which a total takes in one part."""

    name: str
    type: str
    size: int
    joined: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A function that runs a part of a kernel's straight code: name, parameters as text, and lines."""

    name: str
    parameters: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """One kernel.

    name: name of its loops in C, and of the function in Python.
    lines: body of the function that runs a range of the outermost loop.
    extent: where the outermost loop ends; 0 without loops.
    work: about how many operations it takes.
    parallel, released: whether it is worth threads, and worth letting other Python threads run meanwhile.
    pieces: functions that ``lines`` call.
    places: index arrays, and extents of the axes that they are places on.
    runs: the C function that does it all.
    failure: the function that raises what ``runs`` returned, if it returns anything.
    splits: whether a further function of Python gives all results but the first in a tuple of their own.
    fails: whether functions that it calls may set an error of Python's.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    lines: tuple[str, ...]
    work: int
    released: bool
    remarks: tuple[str, ...] = ()
    partials: tuple[Partial, ...] = ()
    extent: int = 0
    parallel: bool = False
    pieces: tuple[Piece, ...] = ()
    places: tuple[tuple[str, int], ...] = ()
    runs: str = ""
    failure: str = ""
    splits: bool = False
    fails: bool = False


_CALLS = {
    "log_add_exp": ("larger",),
    "complex_square": ("complex_multiply",),
    "complex_add_to": ("add_to",),
    "complex_total": ("total",),
}


def parts(needs: Needs, qualifier: str = "static inline", *, vectors: bool = True) -> tuple[Part, ...]:
    """The inline functions that ``needs`` asks for, declared by ``qualifier``."""
    found = set(needs.parts)
    for name, dtype in needs.parts:
        inner = "float64" if name in ("complex_add_to", "complex_total") else dtype
        found |= {(called, inner) for called in _CALLS.get(name, ())}
    order = sorted(found, key=lambda part: (part[0] in _CALLS, part))
    return tuple(
        Part(f"c/parts/{name}.c.jinja", c_type(np.dtype(dtype)), suffix(np.dtype(dtype)), qualifier, vectors)
        for name, dtype in order
    )


def vector_forms(needs: Needs) -> tuple[tuple[str, str, str], ...]:
    """Functions of libm that have vector forms: type, name and parameters."""
    found = []
    for name in sorted(needs.functions):
        kind = "float" if name.endswith("f") and name != "erf" else "double"
        count = 2 if name.rstrip("f") in ("pow", "atan2", "hypot") else 1
        found.append((kind, name, ", ".join([kind] * count)))
    return tuple(found)


_WIDER = {"float": "double", "cfloat": "cdouble", "int32": "int64", "uint8": "int64"}
"""What numbers are taken as first, by the names that NumPy's C interface has for them."""


def preludes(kernels: Iterable[KernelPlan], *, arrays: bool = True) -> list[str]:
    """Texts of what takes arguments (arrays only with ``arrays``) and makes results, each after what it calls."""
    wanted: set[str] = set()
    for kernel in kernels:
        for argument in kernel.arguments:
            wanted.update([argument.number] if argument.number else ["take_array", "wrong_array"])
        wanted.update(result.make for result in kernel.results if result.make)
        wanted.update(["checked_places"] if kernel.places else [])
    narrow = {f"take_{name}": f"take_{wider}" for name, wider in _WIDER.items()}
    wanted.update([narrow[name] for name in wanted if name in narrow])
    later = sorted(wanted, key=lambda name: (name in narrow or name == "take_array", name))
    return [_prelude(name) for name in later if arrays or name != "take_array"]


@functools.cache
def _prelude(name: str) -> str:
    kind, _, scalar = name.partition("_")
    found = next((each for each in map(np.dtype, NAMES) if scalar_type(each).lower() == scalar), None)
    if found is None:
        return render(f"c/preludes/{name}.c.jinja").rstrip("\n")
    wide = _WIDER.get(scalar, "")
    words = {"scalar": scalar_type(found), "type": c_type(found), "called": f"take_{wide}"}
    types = {"double": "double", "cdouble": "complex128", "int64": "int64_t"}
    return render(f"c/preludes/{kind}.c.jinja", wide=types.get(wide, ""), **words).rstrip("\n")


_MOST = 1 << 16
"""Elements of one table that a file may carry."""
_COLUMNS = 96


class Tables:
    """The tables of one file; equal ones share a name."""

    def __init__(self, names: Names, language: Language = C) -> None:
        self.lines: list[str] = []
        self._names, self._language = names, language
        self._known: dict[tuple[str, bytes], str] = {}

    def name(self, hint: str, value: np.ndarray[Any, Any]) -> str:
        """The expression by which code reads a table in C order."""
        if not self._language.is_known(value.dtype):
            raise CodegenError(
                f"the constant {hint} has dtype {value.dtype}, which generated {self._language.name} cannot spell"
            )
        if value.size > _MOST:
            raise CodegenError(
                f"the function uses an array of {value.size} elements of its surroundings, more than the {_MOST} that "
                "a file may carry; pass it as an argument"
            )
        key = value.dtype.name, np.ascontiguousarray(value).tobytes()
        if key not in self._known:
            flat, language = np.ascontiguousarray(value).ravel(), self._language
            name, kind, count, part = self._names.fresh(f"{hint}_table"), language.type(flat.dtype), flat.size, ""
            if flat.dtype.kind == "c":
                # C99 has no constant expression for a complex number with an infinite part: its parts are listed.
                flat = flat.view(real_type(flat.dtype))
                part = c_type(flat.dtype)
            words = " ".join(f"{language.literal(item, flat.dtype)}," for item in flat)
            rows = textwrap.wrap(words, _COLUMNS - 4, break_on_hyphens=False)
            self.lines += language.printed([Table(kind, name, count, tuple(rows), part)])
            self._known[key] = f"{name}.values" if part else name
        return self._known[key]
