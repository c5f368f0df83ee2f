"""From specs to values, and from values to specs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.specs import REST, Array, Fixed, Record, Sequence, Spec, Table
from yota.structures import children, is_leaf

__all__ = ["example", "spec_of"]


def example(spec: Spec, sizes: Mapping[str, int] | None = None) -> Any:
    """A value that ``spec`` describes, the same one every time; ``sizes`` are the extents that have names.

    Floating-point values lie between 1/4 and 3/4, and square matrices are symmetric and positive definite, so that
    most functions have a value there.

    Examples
    --------
    >>> example(Array("float64", (2,))).shape
    (2,)
    """
    if isinstance(spec, Fixed):
        return spec.value
    if isinstance(spec, Sequence):
        return spec.kind(example(item, sizes) for item in spec.items)
    if isinstance(spec, Table):
        return {key: example(item, sizes) for key, item in spec.items}
    if isinstance(spec, Record):
        return _instance(spec.kind, {name: example(item, sizes) for name, item in spec.fields})
    unknown = [extent for extent in spec.shape if isinstance(extent, str) and extent not in (sizes or {})]
    if unknown:
        cure = "write its axes out" if unknown[0] == REST else f"write a number for {unknown[0]}"
        raise ArgumentError(f"{spec} has no fixed shape, which is needed here; {cure}")
    shape = tuple((sizes or {})[extent] if isinstance(extent, str) else extent for extent in spec.shape)
    value = _values(np.dtype(spec.dtype), shape)
    return value.item() if spec.weak else value if shape else value[()]


def _values(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    if dtype.kind not in "fc":
        return np.ones(shape, dtype) if dtype.kind == "b" else np.zeros(shape, dtype)
    size = int(np.prod(shape, dtype=np.int64))
    found = (0.25 + 0.5 * ((np.arange(1, size + 1) * 0.6180339887498949) % 1.0)).reshape(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        found = (found + found.swapaxes(-1, -2)) / 2 + shape[-1] * np.eye(shape[-1])
    return found.astype(dtype)


def _instance(kind: type, fields: Mapping[str, Any]) -> Any:
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind(**fields)
    # The user's constructor may check or convert what it is given; fields are all that matters here.
    made: Any = object.__new__(kind)
    if dataclasses.is_dataclass(kind):
        for each in dataclasses.fields(kind):
            if each.name not in fields and each.default is not dataclasses.MISSING:
                object.__setattr__(made, each.name, each.default)
            elif each.name not in fields and each.default_factory is not dataclasses.MISSING:
                object.__setattr__(made, each.name, each.default_factory())
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def spec_of(value: Any) -> Spec:
    """The spec of a value.

    Raises
    ------
    ArgumentError
        If the value holds something that no spec describes, such as a function.

    Examples
    --------
    >>> print(spec_of([np.zeros((2, 3)), 1.0, 4]))
    [float64[2,3], float, 4]
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return Array("bool" if value.dtype.kind == "b" else value.dtype.name, value.shape)
    if is_leaf(value):
        return Array("complex128" if isinstance(value, complex) else "float64", (), True)
    parts = children(value)
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        return Table(tuple((key, spec_of(part)) for key, part in value.items()))
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return Sequence(tuple(map(spec_of, value)), list if isinstance(value, list) else tuple)
    if parts is not None and all(isinstance(key, str) and key.isidentifier() for key, _ in parts):
        return Record(type(value), tuple((key, spec_of(part)) for key, part in parts), type(value).__qualname__)
    if value is None or type(value) in (bool, int, str):
        return Fixed(value)
    raise ArgumentError(f"a {type(value).__name__} cannot be written as a spec")
