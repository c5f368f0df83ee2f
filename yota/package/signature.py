"""The parameters of a standalone function: names, hints, checks, and how each is described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yota.emit.names import Names, identifier
from yota.emit.numpy_literals import dtype_text
from yota.emit.python.numpy_calls import python_type
from yota.ir.inputs import Leaf
from yota.ir.specs import REST
from yota.ir.types import TensorType, type_of

_IMPORTED = ("np", "npt", "math", "Any")
"""Names that functions of a module read."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    name: its name in the module.
    source: what it is in the function: an argument, or a field of one.
    shape: its shape; extents that have names are written by them.
    checked: expression of the value that the kernel takes.
    """

    name: str
    source: str
    type: TensorType
    shape: tuple[int | str, ...]
    checked: str

    @property
    def hint(self) -> str:
        """Type hint of what the caller may pass."""
        if self.type.shape:
            return "npt.ArrayLike"
        return python_type(self.type)

    @property
    def renamed(self) -> bool:
        """Whether the function's own name for it could not be kept."""
        return self.name != self.source.replace(".", "_").replace("[", "_").replace("]", "").replace("'", "")


def parameters(
    leaves: Sequence[Leaf],
    reserved: Sequence[str],
    *,
    shapes: Sequence[tuple[int | str, ...]] | None = None,
    rest: str = "",
) -> tuple[Parameter, ...]:
    """A parameter for each leaf, in order.

    ``shapes`` are their shapes where sizes have names, and ``rest`` is the one that stands for further axes.
    """
    names = Names((*_IMPORTED, *reserved, *(() if shapes is None else ("sizes",))))
    found = []
    for position, leaf in enumerate(leaves):
        type = type_of(leaf.value)
        shape = tuple(REST if each == rest else each for each in (type.shape if shapes is None else shapes[position]))
        wish = ".".join((leaf.name, *map(str, leaf.path)))
        name = names.fresh(f"x{wish}" if identifier(wish).startswith("_") else wish)
        found.append(Parameter(name, leaf.place, type, shape, _checked(name, type, shape)))
    return tuple(found)


def _checked(name: str, type: TensorType, shape: Sequence[int | str]) -> str:
    if type.weak:
        return f'_{python_type(type)}("{name}", {name})'
    if not type.shape:
        return f'_scalar("{name}", {name}, {dtype_text(type.dtype)})'
    extents = ", ".join(f'"{extent}"' if isinstance(extent, str) else str(extent) for extent in shape)
    given = f'"{name}", {name}, {dtype_text(type.dtype)}, ({extents}{"," if len(shape) == 1 else ""})'
    if REST in shape:
        return f"_open({given}, sizes)"
    return f"_sized({given}, sizes)" if any(isinstance(extent, str) for extent in shape) else f"_array({given})"


def hint(type: TensorType) -> str:
    """Type hint of a result."""
    if type.weak:
        return python_type(type)
    text = dtype_text(type.dtype)
    return f"npt.NDArray[{text}]" if type.shape else text


def described(type: TensorType, shape: Sequence[int | str] | None = None) -> str:
    """A result or parameter in numpydoc's words."""
    if type.weak:
        return python_type(type)
    if not type.shape:
        return type.dtype.name
    extents = type.shape if shape is None else tuple(shape)
    inner = f"{extents[0]}," if len(extents) == 1 else ", ".join(map(str, extents))
    return f"ndarray of {type.dtype.name}, shape ({inner})"


def class_name(name: str) -> str:
    """``lennard_jones`` as ``LennardJones``."""
    return "".join(part[:1].upper() + part[1:] for part in identifier(name).split("_")) or "Function"
