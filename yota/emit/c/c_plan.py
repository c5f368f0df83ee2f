"""The plan of a generated C file: pure data, all decisions taken, ready for a template to loop over."""

from __future__ import annotations

from dataclasses import dataclass


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

    name: its name in C.
    type, npy_type: types of its elements.
    shape: C initialiser of its shape; empty for a number.
    number: for a number: the function that converts it.
    used: whether the loops read it.
    what: its type for a reader.
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
