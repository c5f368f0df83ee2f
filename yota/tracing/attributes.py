"""The attributes of ndarray, on traced values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from yota.tracing.captures import is_frozen
from yota.tracing.untyped import np

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


class ArrayAttributes:
    """What an ndarray has: dtype, extents, parts and transposes."""

    __slots__ = ()

    if TYPE_CHECKING:
        _trace: Trace

        def _current(self) -> int: ...
        def _value(self) -> Any: ...
        def _recorder(self) -> Trace: ...
        @property
        def shape(self) -> tuple[int, ...]:
            """Extents."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._trace.builder.types[self._current()].dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        if self._trace.sizes is not None:
            return math.prod(self._trace.sizes.shape(self._trace.builder.types[self._current()].shape))
        return self._trace.builder.types[self._current()].size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def device(self) -> str:
        """Where the array is."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        """See `numpy.ndarray.to_device`."""
        if device != "cpu":
            raise ValueError(f"Unsupported device: {device}.")
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The array API that the value follows."""
        return np

    @property
    def flags(self) -> Any:
        """Memory layout of the concrete value."""
        self._trace.rely_on_order()
        value = np.asarray(self._value())
        if self._trace.is_constant(self._current()) and is_frozen(value):
            value = value.base
        return value.flags

    @property
    def base(self) -> None:
        """None, of an array that owns its memory."""
        if getattr(self._value(), "base", None) is not None:
            raise self._trace.refuse("the base of a traced view cannot be recorded.", "Do without it.")

    @property
    def T(self) -> Any:  # noqa: N802  (NumPy's name)
        """Transpose."""
        return np.transpose(self)

    @property
    def mT(self) -> Any:  # noqa: N802  (NumPy's name)
        """Transpose of the last two axes."""
        return np.swapaxes(self, -1, -2)

    @property
    def real(self) -> Any:
        """Real part."""
        return np.real(self) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """Imaginary part."""
        return np.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value


def _refused(name: str) -> Any:
    def refuse(self: ArrayAttributes) -> Any:
        raise self._trace.refuse(f"the attribute .{name} of a traced value cannot be recorded.", "Do without it.")

    return property(refuse)


for _name in "byteswap ctypes data dump dumps getfield resize setfield tofile".split():
    setattr(ArrayAttributes, _name, _refused(_name))
