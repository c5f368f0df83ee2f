"""What a traced function may return: numbers, arrays, and structures of them; anything else is refused."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import TracingError
from yota.ir.callables import name_of
from yota.ir.serialised import Unwritable
from yota.structures import Path, bare, children, is_bare, is_leaf, rebuilt
from yota.tracing.methods import is_traced
from yota.tracing.trace import Trace

_NUMBERS = (bool, int, float, complex, np.ndarray, np.generic)
_FIXED = (str, bytes, type(None), enum.Enum)


def outputs(trace: Trace, result: Any) -> list[int]:
    """The variables of what the traced function returned; TracingError if it is no number, array, or tuple of them."""
    items = result if isinstance(result, (tuple, list)) else [result]
    for item in items:
        if not (is_traced(item) or isinstance(item, _NUMBERS)):
            raise _refusal(trace.builder.name, item)
        if isinstance(item, np.ma.MaskedArray):
            raise trace.refuse(f"{trace.builder.name} returns a masked array.", "Return .filled(...) or .compressed().")
        known = trace.conversions.get(id(item))
        if known is not None and known.guard is not None:
            trace.builder.guards.remove(known.guard)
            known.guard, known.returned = None, True
    return [_variable(trace, item) for item in items]


def _variable(trace: Trace, item: Any) -> int:
    known = trace.conversions.get(id(item))
    if known is None:
        return trace.lift(item)
    # A Python number, as the function returned it, and not the NumPy scalar that it was made of.
    number = trace.wrap(known.variable, trace.values[known.variable]).item()
    return int(number._variable)


@dataclass(frozen=True, slots=True, eq=False)
class ResultForm:
    """How a function's result is put together from its numbers and arrays.

    shell: the structure without what is in it; of a number or an array its shape and dtype; else the part itself.
    parts: key and form of each part of a structure; None for a number or an array, which is put in.
    """

    shell: Any = None
    parts: tuple[tuple[Any, ResultForm], ...] | None = None

    def filled(self, values: Sequence[Any]) -> Any:
        """The result with these numbers and arrays, in the order of `paths`."""
        return self._fill(iter(values))

    def _fill(self, values: Iterator[Any]) -> Any:
        if self.parts is None:
            return next(values)
        return (
            rebuilt(self.shell, [(key, part._fill(values)) for key, part in self.parts]) if self.parts else self.shell
        )

    def paths(self, path: Path = ()) -> Iterator[Path]:
        """Where numbers and arrays are."""
        if self.parts is None:
            yield path
        for key, part in self.parts or ():
            yield from part.paths((*path, key))

    def types(self) -> Iterator[tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shapes and dtypes of numbers and arrays, in the order of `paths`."""
        if self.parts is None:
            yield self.shell
        for _, part in self.parts or ():
            yield from part.types()

    @property
    def is_structured(self) -> bool:
        """Whether it is neither an array nor a list or tuple of numbers, which count as a vector."""
        if self.parts is None:
            return False
        several = isinstance(self.shell, (tuple, list)) and bool(self.parts)
        numbers = all(part.parts is None for _, part in self.parts)
        return not (several and numbers and not any(shape for shape, _ in self.types()))

    def written(self) -> tuple[Any, ...]:
        """The form as plain data for `read`; Unwritable if structures have more than their parts.

        >>> form = taken_apart("f", {"a": 1.0, "b": [2.0, None]}, [])
        >>> ResultForm.read(form.written()).filled([3.0, 4.0])
        {'a': 3.0, 'b': [4.0, None]}
        """
        if self.parts is None:
            return None, *self.shell
        if not self.parts:
            return (type(self.shell), self.shell.name) if isinstance(self.shell, enum.Enum) else (self.shell,)
        keys = tuple(key for key, _ in self.parts)
        if not is_bare(self.shell):
            raise Unwritable(f"its result is a {type(self.shell).__name__}, which has more than its items")
        return type(self.shell), keys, tuple(part.written() for _, part in self.parts)

    @classmethod
    def read(cls, written: Sequence[Any]) -> ResultForm:
        """The form that was written."""
        kind, *rest = written
        if len(rest) == 2:
            if kind is None:
                return cls(tuple(rest))
            keys, parts = rest
            return cls(bare(kind, keys), tuple(zip(keys, map(cls.read, parts), strict=True)))
        return cls(kind[rest[0]] if rest else kind, ())


def taken_apart(name: str, result: Any, found: list[Any], fixed: tuple[type, ...] = ()) -> ResultForm:
    """The form of what ``name`` returned, whose numbers and arrays, but for ``fixed`` types, are added to ``found``."""
    if is_traced(result) and type(result) not in (tuple, list):
        found.append(result)
        return ResultForm(type_of(result))
    if isinstance(result, (*_FIXED, *fixed)):
        return ResultForm(result, ())
    if isinstance(result, _NUMBERS) or is_leaf(result):
        found.append(result)
        return ResultForm(type_of(result))
    parts = children(result)
    if parts is None:
        raise _refusal(name, result)
    shell = rebuilt(result, [(key, None) for key, _ in parts])
    return ResultForm(shell, tuple([(key, taken_apart(name, part, found, fixed)) for key, part in parts]))


def parted(function: Callable[..., Any], forms: list[ResultForm], *, joined: bool = False) -> Callable[..., Any]:
    """``function`` with a tuple of its numbers and arrays as result; the form of that is appended to ``forms``."""
    name = name_of(function)

    def flat(*values: Any) -> Any:
        found: list[Any] = []
        form = taken_apart(name, function(*values), found)
        forms.append(form)
        return tuple(found) if form.parts is None or not joined else (vector(found),)

    flat.__name__ = name
    return flat


def vector(parts: Sequence[Any]) -> Any:
    """All elements of numbers and arrays in one vector."""
    return np.concatenate([np.reshape(part, (-1,)) for part in parts]) if parts else np.zeros(0)


def type_of(part: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of a number or an array."""
    return tuple(np.shape(part)), np.dtype(part.dtype) if hasattr(part, "dtype") else np.asarray(part).dtype


def _refusal(name: str, item: Any) -> TracingError:
    if inspect.iscoroutine(item):
        item.close()  # or Python would warn that nobody awaited it
        return TracingError(f"{name} is an async function; pass a plain one, and await what it needs before")
    if inspect.isgenerator(item) or inspect.isasyncgen(item):
        return TracingError(f"{name} returned a generator, which computes nothing yet; return a number or an array")
    what = "nothing (None)" if item is None else f"a {type(item).__name__}"
    return TracingError(
        f"{name} returned {what}; a function to be traced returns a number, an array, or a tuple of them."
    )
