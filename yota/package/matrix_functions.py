"""Functions for all partial derivatives: Jacobian, Hessian, and Hessian times vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from yota.emit.numpy_literals import dtype_text
from yota.ir.specs import REST
from yota.ir.tape import Tape
from yota.package.assembly import Parts
from yota.package.python_functions import Documented, Function
from yota.package.python_kernel import Kernel, kernel_of, sized_kernel
from yota.package.recorded_matrices import Derivative, hessian_of, hvp_of, jacobian_of
from yota.package.signature import Parameter, described, hint, parameters
from yota.package.size_recordings import Sized
from yota.package.subject import Subject

_Shape = tuple[int | str, ...]


class _Of(Protocol):
    """Records a derivative of a function."""

    def __call__(self, subject: Subject, *, whole: bool = ...) -> Derivative: ...


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A derivative with its kernel; ``rows`` and ``shape`` write extents that depend on sizes by their names."""

    found: Derivative
    kernel: Kernel
    rows: _Shape
    shape: _Shape


@dataclass(frozen=True, slots=True)
class Matrices:
    """Adds functions to a module, each of which gives the tape that it was made from.

    parts: the module.
    subject: the recorded function, at its only size or at the first.
    common: what all functions of the module share.
    strict: whether the value has NumPy's bits.
    sized: the function at several sizes, where sizes have names.
    """

    parts: Parts
    subject: Subject
    common: Documented
    strict: bool
    sized: Sized | None = None

    def jacobian(self) -> Tape:
        """Add the partial derivatives of each element of the result."""
        return self._matrix("jacobian", jacobian_of, f"Partial derivatives of {self.common.name} by {{}}.")

    def hessian(self) -> Tape:
        """Add the second derivatives."""
        return self._matrix("hessian", hessian_of, f"Second derivatives of {self.common.name} by {{}}.")

    def hvp(self) -> Tape:
        """Add the second derivatives times a vector."""
        made = self._recorded(f"_{self.common.name}_hvp", hvp_of)
        assert made.found.extra is not None
        shapes = [made.shape] if self.sized else None
        names = [each.name for each in self.common.parameters]
        (extra,) = parameters([made.found.extra], names, shapes=shapes, rest=self.common.rest)
        result = hint(self._by.type)
        (product,) = self.common.free("product", extra=(extra,))
        call = f"{product}: {result} = {made.kernel.name}({self.common.checked(made.kernel, (extra,))})"
        kind = described(self._by.type, self._by.shape)
        documentation = self.common.sections([("product", kind)], (extra,), made.kernel.operations)
        summary = f"Second derivatives of {self.common.name} by {self._by.name}, times {extra.name}."
        body = (*self.common.opening, call, f"return {self.common.restored(product, made.shape)}")
        name, header = f"{self.common.name}_hvp", self.common.header((extra,))
        self.parts.functions.append(Function(name, header, result, summary, documentation, body))
        return made.found.tape

    @property
    def _by(self) -> Parameter:
        return self.common.parameters[self.subject.layout.wanted[0]]

    def _recorded(self, name: str, of: _Of) -> _Recorded:
        """The derivative with a kernel of this name: the one that the module has, if it has it."""
        kernel = next((kernel for kernel in self.parts.kernels if kernel.name == name), None)
        if self.sized is None:
            found = of(self.subject)
            rows: _Shape = np.shape(found.extra.value) if found.extra else ()
            kernel = kernel or kernel_of(found.tape, name, self.parts.constants, strict=self.strict)
            made = _Recorded(found, kernel, rows, found.like.shape)
        else:
            all_sizes = [of(subject, whole=False) for subject in self.sized.subjects]
            rows = self.sized.shape([np.shape(each.extra.value) for each in all_sizes if each.extra])
            shape = self.sized.shape([each.like.shape for each in all_sizes])
            if kernel is None:
                kernel = sized_kernel(self.sized, [each.tape for each in all_sizes], name, self.parts.constants)
            made = _Recorded(all_sizes[0], kernel, rows, shape)
        if kernel not in self.parts.kernels:
            self.parts.kernels.append(kernel)
        return made

    def _matrix(self, what: str, of: _Of, summary: str) -> Tape:
        name = f"{self.common.name}_{what}"
        product = f"_{self.common.name}_hvp"
        small = self.sized is None and of(self.subject).extra is None
        shared = what == "hessian" and not small and any(kernel.name == product for kernel in self.parts.kernels)
        made = self._recorded(f"_{name}" if small else product if shared else f"_{name}_row", of)
        like = made.found.tape.types[made.found.tape.outputs[0]] if small else made.found.like
        (matrix,) = self.common.free("matrix")
        if small:
            lines = [f"{matrix}: {hint(like)} = {made.kernel.name}({self.common.checked(made.kernel)})"]
        else:
            lines = self._loop(made, hint(like), dtype_text(like.dtype))
        work = made.kernel.operations if small else f"for each row {made.kernel.operations}"
        documentation = self.common.sections([("matrix", described(like, self._shown(made.shape)))], operations=work)
        body = (*self.common.opening, *lines, f"return {matrix}")
        text = summary.format(self._by.name)
        self.parts.functions.append(Function(name, self.common.header(), hint(like), text, documentation, body))
        return made.found.tape

    def _loop(self, made: _Recorded, returns: str, dtype: str) -> list[str]:
        """A matrix whose rows come from one kernel, called with each unit vector."""
        rows = list(map(self.common.extent, made.rows))
        count = (
            _product(made.rows) if self.sized is None else self.common.extent(" * ".join(map(_factor, made.rows)) or 1)
        )
        unit, units, found, matrix = self.common.free("unit", "units", "rows", "matrix")
        given = [*(each.name for each in self.common.parameters), unit]
        given += map(self.common.extent, made.kernel.sizes)
        cast = "" if dtype == "np.float64" else f", dtype={dtype}"
        return [
            *(f"{each.name} = {each.checked}" for each in self.common.parameters),
            f"{units} = np.eye({count}{cast}).reshape({', '.join([count, *rows])})",
            f"{found} = [{made.kernel.name}({', '.join(given)}) for {unit} in {units}]",
            f"{matrix}: {returns} = np.array({found}, {dtype}){self._reshaped(made.shape)}",
        ]

    def _reshaped(self, shape: _Shape) -> str:
        if self.common.rest in shape:
            return self.common.restored("", shape)
        return f".reshape({', '.join(map(self.common.extent, shape))})"

    def _shown(self, shape: _Shape) -> _Shape:
        return tuple(REST if extent == self.common.rest else extent for extent in shape)


MATRICES = {"jacobian": Matrices.jacobian, "hvp": Matrices.hvp, "hessian": Matrices.hessian}
"""How each kind of function is added; the Hessian uses the kernel of the product, and comes after it."""


def _product(extents: Sequence[int | str]) -> str:
    return str(int(np.prod([int(extent) for extent in extents])))


def _factor(extent: int | str) -> str:
    return f"({extent})"
