"""Code for all sizes: recordings at several of them, and what the writers of C and CUDA share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from yota.emit.c.dialect import FOREIGN, language_of
from yota.emit.language import Language
from yota.emit.names import Names
from yota.errors import ArgumentError, CodegenError
from yota.ir.extents import Extent
from yota.ir.tape import Tape
from yota.package.c.c_functions import Recording
from yota.package.c.fixed_sizes import recorded
from yota.package.c.interface import Parameter
from yota.package.c.size_arithmetic import SizeNames, real, whole
from yota.package.provenance import called
from yota.package.request import Request
from yota.package.size_recordings import Sized, sized
from yota.package.varying import Separated, Varying
from yota.transform.sizes.conditions import Conditions, demand

_T = TypeVar("_T")


class AllSizes:
    """What is made of a function that was traced at several sizes.

    sized: the function at several sizes.
    title: its name in the file.
    names: what sizes are called in C.
    """

    def __init__(self, request: Request, sized: Sized, title: str, names: SizeNames) -> None:
        self.request, self.subjects, self.title, self.names = request, sized.subjects, title, names
        self.sized, self.recorded = sized, sized.samples
        self.samples = replace(sized.large, spell=lambda text: whole(text, names))
        self.sizes = tuple(names.values())
        self.conditions = Conditions(self.samples, names, lambda text: str(whole(text, names)), sized.least)
        demand([subject.tape for subject in self.subjects], self._demand)

    def file_names(self) -> Names:
        """Names of one file, of which the title is one."""
        names = self.names.language.file_names()
        names.fresh(self.title)
        return names

    def local_names(self, tape: Tape) -> Names:
        """Names that are none of the function's own."""
        return self.names.language.names(self.title, [*FOREIGN, *self.sizes, *(entry.name for entry in tape.inputs)])

    def separated(self, tapes: Sequence[Tape]) -> Separated:
        """The tapes of one function without constants that depend on sizes."""
        found = self.sized.separated(tapes, self.samples, negative=False)
        demand(tapes, self._demand)
        return found

    def number(self, varying: Varying, names: SizeNames | None = None) -> str:
        """The text of a number that comes from sizes; ``names`` in another language."""
        spelled = whole if varying.type.dtype.kind in "iu" else real
        return str(spelled(varying.text, names or self.names))

    def larger(self, values: Sequence[int]) -> int:
        """What has ``values`` at the sizes of the recordings, at sizes for which code has its general form."""
        return self.sized.larger(values, self.samples)

    def demand_at_most(self, most: int, values: Sequence[int]) -> None:
        """What has ``values`` at the sizes of the recordings must not be more than ``most``."""
        self.conditions.demand_at_most(most, _values(self.larger(values)))

    def recordings(self) -> list[dict[str, Recording]]:
        """What functions are written from, at each size."""
        results = {subject.tape.types[subject.tape.outputs[0]].shape for subject in self.subjects}
        wanted = {np.shape(each.arguments.leaves[leaf].value) for each in self.subjects for leaf in each.layout.wanted}
        # Where the number of rows is a size, a matrix is no one piece of code, however few there are.
        whole = {"jacobian": len(results) == 1, "hessian": len(wanted) == 1, "hvp": True}
        return [dict(recorded(each, self.request.wanted, whole=whole, scalar=False)) for each in self.subjects]

    def _demand(self, values: Sequence[int]) -> None:
        if (len(set(values)) > 1 or values[0] < 0) and self.recorded.whole(values) is not None:
            self.conditions.demand(_values(self.larger(values)))

    def told(self, inputs: Iterable[Parameter]) -> Iterator[tuple[str, str, int]]:
        """Each size with the name of the argument, and the axis, that tells it first."""
        known: set[str] = set()
        for each in inputs:
            for axis, extent in enumerate(map(str, each.type.shape)):
                if extent in self.sizes and extent not in known:
                    known.add(extent)
                    yield extent, each.name, axis

    def extents(self) -> list[tuple[str, int]]:
        """Extents for a test of the file, by what sizes are called in C."""
        least = self.conditions.least
        return [(self.names[name], least[name] + 4 + place) for place, name in enumerate(self.samples.names)]


def at_samples(request: Request, write: Callable[[Sized, str, SizeNames], _T]) -> _T:
    """What ``write`` makes of the function at several sizes, its name, and those of sizes in C.

    Raises ArgumentError if the function does something else at another size.
    """
    language = language_of(request.target)
    title = language.file_names().fresh(called(request.wish))
    names = _size_names(title, request.call.dimensions(), language)
    try:
        return write(sized(request.call, request.wrt, strict=request.strict, few=True), title, names)
    except (ArgumentError, CodegenError):
        return write(sized(request.call, request.wrt, strict=request.strict), title, names)


def _values(number: int) -> Sequence[int]:
    return number.values if isinstance(number, Extent) else (number,)


def _size_names(title: str, names: Sequence[str], language: Language) -> SizeNames:
    local = language.names(title, FOREIGN)
    return SizeNames({name: local.fresh(name) for name in names}, language)
