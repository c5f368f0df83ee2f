"""Types of tape variables: dtype, shape and weakness, or the types of several results; and the base of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod  # during a trace, math.prod is a recording function
from typing import Any, ClassVar

import numpy as np


@dataclass(slots=True)
class Record:
    """A small record of a tape that never changes: an op, a type, a slice, the form of a call.

    Its classes are no frozen dataclasses, which take five to ten times as long to create: a pass creates thousands.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    """The names of the fields, as `dataclasses` sets them."""

    def contents(self) -> tuple[Any, ...]:
        """The values of the fields in order."""
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __reduce__(self) -> tuple[Any, ...]:
        # Protocols 0 and 1 of pickle do not know slots.
        return type(self), self.contents()


@dataclass(slots=True, unsafe_hash=True)
class TensorType(Record):
    """Dtype and shape of a variable.

    dtype: a native numpy dtype: boolean, integer, floating or complex.
    shape: extents; ``()`` for a scalar.
    weak: whether it is a Python scalar. It takes the dtype of the other operand (NEP 50): a float32 array times a weak
        float64 scalar stays float32.

    >>> import numpy as np
    >>> print(TensorType(np.dtype("float64"), (4, 5)))
    float64[4,5]
    """

    dtype: np.dtype
    shape: tuple[int, ...] = ()
    weak: bool = False

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def differentiable(self) -> bool:
        """Whether values of this type carry derivatives: floating or complex."""
        return self.dtype.kind in "fc"

    @property
    def is_complex(self) -> bool:
        """Whether values of this type are complex."""
        return self.dtype.kind == "c"


@dataclass(slots=True, unsafe_hash=True)
class TupleType(TensorType):
    """Type of an op with several results; only the primitive ``item`` reads such a variable.

    Dtype and shape are those of one flat array of all results, for passes that estimate memory.
    """

    parts: tuple[TensorType, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"

    @property
    def differentiable(self) -> bool:
        """Whether one of the results carries derivatives."""
        return any(part.differentiable for part in self.parts)


def tuple_of(parts: Sequence[TensorType]) -> TupleType:
    """The type of several results.

    >>> import numpy as np
    >>> print(tuple_of([TensorType(np.dtype("float64"), (3,)), TensorType(np.dtype("int64"))]))
    (float64[3], int64[])
    """
    dtype = np.result_type(np.bool_, *(part.dtype for part in parts))
    return TupleType(dtype, (sum(part.size for part in parts),), False, tuple(parts))


NUMBERS: dict[type, TensorType] = {
    **{kind: TensorType(np.dtype(kind), (), True) for kind in (bool, int, float, complex)},
    **{kind: TensorType(np.dtype(kind)) for kind in (np.float64, np.float32, np.complex128, np.int64, np.bool_)},
}
"""The types of numbers of the most frequent classes."""


def type_of(value: object) -> TensorType:
    """The type of a value; Python scalars are weak; a tuple is several results.

    >>> type_of(2.0)
    TensorType(dtype=dtype('float64'), shape=(), weak=True)
    """
    if type(value) is np.ndarray:
        return TensorType(value.dtype, value.shape)
    number = NUMBERS.get(type(value))
    if number is not None:
        return number
    if isinstance(value, np.generic):
        return TensorType(value.dtype, ())
    if isinstance(value, tuple):
        return tuple_of([type_of(each) for each in value])
    array = np.asarray(value)
    return TensorType(array.dtype, array.shape)


def is_uniform(value: object) -> bool:
    """Whether all elements of an array are the same, to the bit."""
    array = np.asarray(value)
    if not array.size:
        return False
    flat = np.ascontiguousarray(array).reshape(-1)
    return bool(np.array_equal(flat[1:].view(np.uint8), flat[:-1].view(np.uint8)))
