"""From specs to values, from values to specs, and arguments from the user at several sizes."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.ir.specs import REST, Array, Fixed, Record, Sequence, Spec, Table, resolved
from yota.structures import children, is_leaf

_MOST_INTEGERS = 4
"""Integers of an example are below this; sizes at which code is tested are not."""


@dataclass(slots=True)
class Integers:
    """The integers of examples, which are indices of every axis of the floating-point arrays beside them.

    Two along the last axis of a table, and two at the same place of two arrays, differ: the distance between points
    with these indices is not zero. Any array of more than one row has an index twice.

    bound: what they are less than.
    """

    bound: int
    _starts: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    def beside(cls, arrays: Iterable[tuple[np.dtype[Any], Iterable[int]]]) -> Integers:
        """The integers of examples that have these dtypes and shapes.

        >>> Integers.beside([(np.dtype(np.float64), (9, 3)), (np.dtype(np.int64), (5, 2))]).bound
        3
        """
        extents = (int(extent) for dtype, shape in arrays if dtype.kind in "fc" for extent in shape)
        return cls(max(1, min(_MOST_INTEGERS, min(extents, default=1))))

    def start(self) -> int:
        """The first integer of the next array."""
        return next(self._starts) % self.bound

    def array(self, shape: tuple[int, ...]) -> np.ndarray:
        """The integers of the next array."""
        last = row_length(shape)
        place = np.arange(int(np.prod(shape, dtype=np.int64)))
        return ((place // (2 * last) + place % last + self.start()) % self.bound).reshape(shape)


def row_length(shape: tuple[int, ...]) -> int:
    """How many integers of an array are beside each other: those along the last axis of a table."""
    return max(shape[-1], 1) if len(shape) > 1 else 1


def arrays_of(spec: Spec, sizes: Mapping[str, int] | None = None) -> Iterator[tuple[np.dtype[Any], tuple[int, ...]]]:
    """Dtype and shape of each array in ``spec``; extents without a known size are left out."""
    if isinstance(spec, Array):
        known = {**(sizes or {})}
        extents = (known.get(each) if isinstance(each, str) else each for each in spec.shape)
        yield np.dtype(spec.dtype), tuple(each for each in extents if each is not None)
    elif isinstance(spec, Sequence):
        for item in spec.items:
            yield from arrays_of(item, sizes)
    elif isinstance(spec, (Table, Record)):
        for _, part in spec.items if isinstance(spec, Table) else spec.fields:
            yield from arrays_of(part, sizes)


def example(spec: Spec, sizes: Mapping[str, int] | None = None, integers: Integers | None = None) -> Any:
    """A value that ``spec`` describes, the same one every time; ``sizes`` are the extents that have names.

    Floating-point values lie between 1/4 and 3/4, and square matrices are symmetric and positive definite, so that
    most functions have a value there. Integers are zero, unless ``integers`` says what they are.

    >>> example(Array("float64", (2,))).shape
    (2,)
    """
    if isinstance(spec, Fixed):
        return spec.value
    if isinstance(spec, Sequence):
        return spec.kind(example(item, sizes, integers) for item in spec.items)
    if isinstance(spec, Table):
        return {key: example(item, sizes, integers) for key, item in spec.items}
    if isinstance(spec, Record):
        return _instance(spec.kind, {name: example(item, sizes, integers) for name, item in spec.fields})
    unknown = [extent for extent in spec.shape if isinstance(extent, str) and extent not in (sizes or {})]
    if unknown:
        cure = "write its axes out" if unknown[0] == REST else f"write a number for {unknown[0]}"
        raise ArgumentError(f"{spec} has no fixed shape, which is needed here; {cure}")
    shape = tuple((sizes or {})[extent] if isinstance(extent, str) else extent for extent in spec.shape)
    value = _values(np.dtype(spec.dtype), shape, integers or Integers(1))
    return value.item() if spec.weak else value if shape else value[()]


def _values(dtype: np.dtype[Any], shape: tuple[int, ...], integers: Integers) -> Any:
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind not in "fc":
        return integers.array(shape).astype(dtype)
    size = math.prod(shape)
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

    Raises ArgumentError if the value holds something that no spec describes, such as a function.

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


Sample: TypeAlias = Callable[..., Mapping[str, Any]]
"""A function of the named sizes that gives arguments by name."""


def sampled(sample: Sample, specs: Mapping[str, Spec | None], sizes: Mapping[str, int]) -> dict[str, Any]:
    """The arguments that ``sample`` gives at ``sizes``, held against their ``specs``.

    Raises ArgumentError if they are no dict, or one is unknown or is not what its spec says.

    >>> sampled(lambda N: {"i": np.arange(N)}, {"i": Array("int64", ("N",))}, {"N": 3})
    {'i': array([0, 1, 2])}
    """
    title = f"the sample {name_of(sample)}"
    try:
        found = sample(**sizes)
    except TypeError as fault:
        raise ArgumentError(f"{title} is called as {name_of(sample)}({_shown(sizes)}): {fault}") from fault
    if not isinstance(found, Mapping):
        raise ArgumentError(f"{title} gives a {type(found).__name__}; it must give a dict of arguments by name")
    for name, value in found.items():
        if name not in specs:
            raise ArgumentError(f"{title} gives {name!r}; the arguments are {', '.join(specs)}")
        spec = specs[name]
        if spec is not None and not _fits(resolved(spec, sizes), value):
            raise ArgumentError(f"{title} gives {_described(value)} for {name} at {_shown(sizes)}, not {spec}")
    return {name: _cast(specs[name], value) for name, value in found.items()}


def _fits(spec: Spec, value: Any) -> bool:
    if isinstance(spec, Array):
        array = np.asarray(value)
        return array.shape == spec.shape and np.can_cast(array.dtype, spec.dtype, "same_kind")
    try:
        return spec_of(value) == spec
    except ArgumentError:
        return False


def _cast(spec: Spec | None, value: Any) -> Any:
    if not isinstance(spec, Array):
        return value
    array = np.array(value, spec.dtype)
    return array.item() if spec.weak else array if array.shape else array[()]


def _described(value: Any) -> str:
    try:
        return str(spec_of(value))
    except ArgumentError:
        return f"a {type(value).__name__}"


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={extent}" for name, extent in sizes.items())
