"""The parameters of a standalone function: names, hints, checks, and how each is described."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yota.emit.names import Names, identifier
from yota.emit.numpy_literals import dtype_text
from yota.emit.python.numpy_calls import python_type
from yota.ir.extents import Extent
from yota.ir.inputs import Leaf
from yota.ir.plain_text import visible
from yota.ir.specs import REST
from yota.ir.types import TensorType, type_of

_IMPORTED = ("np", "npt", "math", "Any")
"""Names that functions of a module read."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

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
        return "npt.ArrayLike" if self.type.shape else python_type(self.type)


def parameters(
    leaves: Sequence[Leaf], reserved: Sequence[str], shapes: Sequence[Sequence[int | str]], rest: str
) -> tuple[Parameter, ...]:
    """A parameter for each leaf, in order, of the ``shapes`` in which ``rest`` stands for further axes."""
    names = Names((*_IMPORTED, *reserved))
    found = []
    for leaf, extents in zip(leaves, shapes, strict=True):
        type, shape = type_of(leaf.value), tuple(REST if each == rest else each for each in extents)
        name = names.fresh(wish_of(leaf))
        found.append(Parameter(name, leaf.place, type, shape, _checked(name, type, shape)))
    return tuple(found)


def wish_of(leaf: Leaf) -> str:
    """What the parameter for a leaf should be called."""
    wish = ".".join((leaf.name, *map(str, leaf.path)))
    return f"x{wish}" if identifier(wish).startswith("_") else wish


def renamed(wish: str, title: str, sources: Mapping[str, str], place: str = "file") -> list[str]:
    """Notes for the user where the function, or a parameter, could not keep its name.

    sources: what each parameter is, an argument or a field of one.
    """
    notes = [f"{visible(wish)!r} is called {title} in the {place}"] if title != wish else []
    for name, source in sources.items():
        if name != re.sub(r"[.\[]", "_", source).translate({ord("]"): None, ord("'"): None}):
            notes.append(f"{visible(source)} is called {name} in the {place}")
    return notes


def shape_of(type: TensorType) -> tuple[int | str, ...]:
    """A shape by the names of sizes."""
    return tuple(str(extent) if isinstance(extent, Extent) else extent for extent in type.shape)


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
