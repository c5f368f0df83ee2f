"""Argument specs such as ``float64[4,3]``: the type of an argument without its values."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from yota.errors import ArgumentError

REST = "..."
"""Any number of further axes, the same in all arrays of a call."""

_Shape: TypeAlias = "tuple[int | str, ...]"
_NUMBERS = ("float64", "float32", "float16", "complex128", "complex64", "longdouble", "clongdouble")
_DATA = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
_PYTHON = {"float": "float64", "complex": "complex128"}
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Array:
    """An array or a number; ``weak`` for a Python float or complex.

    Extents may be names. The last may be ``"..."``, for any number of further axes.
    """

    dtype: str
    shape: tuple[int | str, ...] = ()
    weak: bool = False

    def __str__(self) -> str:
        if self.weak:
            return self.dtype.rstrip("0123456789")
        return f"{self.dtype}[{','.join(map(str, self.shape))}]" if self.shape else self.dtype


@dataclass(frozen=True, slots=True)
class Fixed:
    """A static value: an int, a bool, a string or None."""

    value: Any

    def __str__(self) -> str:
        return ascii(self.value)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list or a tuple."""

    items: tuple[Spec, ...]
    kind: type = list

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        if self.kind is list:
            return f"[{inner}]"
        return f"({inner},)" if len(self.items) == 1 else f"({inner})"


@dataclass(frozen=True, slots=True)
class Table:
    """A dict."""

    items: tuple[tuple[Any, Spec], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key!a}: {spec}" for key, spec in self.items) + "}"


@dataclass(frozen=True, slots=True)
class Record:
    """An instance of a dataclass, a named tuple, or a plain class with attributes."""

    kind: type
    fields: tuple[tuple[str, Spec], ...]
    name: str

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={spec}' for name, spec in self.fields)})"


Spec: TypeAlias = "Array | Fixed | Sequence | Table | Record"


def parse(text: str, find: Callable[[str], Any] | None = None) -> Spec:
    """Parse the spec in ``text``.

    text: ``float64[4,3]``, ``float64`` (a NumPy scalar), ``float`` (a Python one), ``3`` or ``"mean"`` (fixed), and
        structures of them: ``[float, float]``, ``{"w": float64[3]}``, ``Params(w=float64[3], b=float64)``.
    find: returns the class of a name, or None.
    Raises ArgumentError if ``text`` is not a spec; the message has a caret under the error.

    >>> parse("float64[4,N]")
    Array(dtype='float64', shape=(4, 'N'), weak=False)
    """
    return _Reader(text, find or (lambda name: None)).read()


class _Reader:
    """Converts the syntax tree of a spec to the spec; it executes nothing."""

    def __init__(self, text: str, find: Callable[[str], Any]) -> None:
        self.text, self.find = text, find

    def read(self) -> Spec:
        if not self.text.strip():
            raise self.fault(0, "the spec is empty; examples: float64[4,3], float, 3")
        if len(self.text) > _LONGEST:
            raise ArgumentError(f"the spec has {len(self.text)} characters; the longest allowed has {_LONGEST}")
        try:
            # In brackets, line breaks and indentation have no meaning.
            tree = ast.parse(f"({self.text}\n)", mode="eval").body
        except SyntaxError as fault:
            if "[]" in self.text.replace(" ", ""):
                empty = "between these brackets extents are missing, as in float64[4,N]; a number has none: float64"
                raise self.fault(self.text.index("["), empty) from None
            column = (fault.offset or 2) - 2 if fault.lineno == 1 else len(self.text)
            raise self.fault(column, f"this is not a spec: {fault.msg}") from None
        except (ValueError, RecursionError, MemoryError) as fault:
            raise self.fault(0, f"this is not a spec: {fault}") from None
        return self.spec(tree)

    def fault(self, place: ast.AST | int, what: str) -> ArgumentError:
        """The error with a caret under ``place``."""
        column = place if isinstance(place, int) else self._column(place)
        shown = "".join(each if each.isprintable() else "?" for each in self.text)
        column = max(0, min(column, len(shown)))
        start = max(0, column - 60)
        return ArgumentError(f"{what}\n    {shown[start : start + 100]}\n    {' ' * (column - start)}^")

    def _column(self, tree: ast.AST) -> int:
        if getattr(tree, "lineno", 1) != 1:
            return len(self.text)
        before = f"({self.text}".split("\n")[0].encode()[: getattr(tree, "col_offset", 1)]
        return len(before.decode(errors="ignore")) - 1

    def spec(self, tree: ast.expr) -> Spec:
        if isinstance(tree, ast.Name):
            return self.scalar(tree)
        if isinstance(tree, ast.Subscript):
            return self.array(tree)
        if isinstance(tree, (ast.List, ast.Tuple)):
            return Sequence(tuple(map(self.spec, tree.elts)), list if isinstance(tree, ast.List) else tuple)
        if isinstance(tree, ast.Dict):
            return Table(tuple((self.key(key), self.spec(value)) for key, value in zip(tree.keys, tree.values)))  # noqa: B905
        if isinstance(tree, ast.Call):
            return self.record(tree)
        return Fixed(self.constant(tree))

    def scalar(self, tree: ast.Name) -> Array:
        if tree.id in _PYTHON:
            return Array(_PYTHON[tree.id], (), True)
        if tree.id in ("int", "str"):
            like = "3" if tree.id == "int" else "'mean'"
            raise self.fault(tree, f"a Python {tree.id} is static; write its value, as in n={like}")
        return Array(self.dtype(tree))

    def dtype(self, tree: ast.expr) -> str:
        if isinstance(tree, ast.Name) and tree.id in (*_NUMBERS, *_DATA):
            return tree.id
        found = ast.unparse(tree)[:40]
        raise self.fault(
            tree, f"{found!r} is not a dtype; use for example float64, float32, complex128, int64 and bool"
        )

    def array(self, tree: ast.Subscript) -> Array:
        entries = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        for entry in entries[:-1]:
            if isinstance(entry, ast.Constant) and entry.value is ...:
                raise self.fault(entry, "further axes stand at the end, as in float64[B,...]")
        return Array(self.dtype(tree.value), tuple(map(self.extent, entries)))

    def extent(self, tree: ast.expr) -> int | str:
        if isinstance(tree, ast.Constant) and type(tree.value) is int and tree.value < 2**40:
            return tree.value
        if isinstance(tree, ast.Name):
            return tree.id
        if isinstance(tree, ast.Constant) and tree.value is ...:
            return REST
        raise self.fault(tree, "an extent is an integer or a name, as in float64[4,N]")

    def key(self, tree: ast.expr | None) -> Any:
        if isinstance(tree, ast.Constant) and isinstance(tree.value, (str, int)):
            return tree.value
        raise self.fault(tree or 0, "a key is a string or an integer")

    def record(self, tree: ast.Call) -> Record:
        name = ast.unparse(tree.func)
        kind = self.find(name) if isinstance(tree.func, (ast.Name, ast.Attribute)) else None
        if not isinstance(kind, type):
            raise self.fault(tree, f"{name[:40]!r} is not a class in the function's module")
        if tree.args:
            raise self.fault(tree.args[0], "fields are given by name, as in Params(w=float64[3])")
        fields: list[tuple[str, Spec]] = []
        for keyword in tree.keywords:
            if keyword.arg is None:
                raise self.fault(keyword.value, "fields are given by name, as in Params(w=float64[3])")
            fields.append((keyword.arg, self.spec(keyword.value)))
        known = _fields(kind)
        for (field, _), keyword in zip(fields, tree.keywords, strict=True):
            if known and field not in known:
                raise self.fault(keyword.value, f"{name} has no field {field!r}; it has {', '.join(known)}")
        missing = [field for field, needed in known.items() if needed and field not in dict(fields)]
        if missing:
            raise self.fault(tree, f"{name} lacks the fields {', '.join(missing)}")
        return Record(kind, tuple(fields), name)

    def constant(self, tree: ast.expr) -> Any:
        try:
            value = ast.literal_eval(tree)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise self.fault(
                tree, "this is not a spec; examples: float64[4,3], float, 3, 'mean', [float, float]"
            ) from None
        if isinstance(value, (float, complex)):
            raise self.fault(tree, f"a {type(value).__name__} is an argument and not static: write float")
        return value


def _fields(kind: type) -> dict[str, bool]:
    """Declared fields of a class, and whether each is required."""
    if dataclasses.is_dataclass(kind):
        absent = dataclasses.MISSING
        return {
            each.name: each.default is absent and each.default_factory is absent for each in dataclasses.fields(kind)
        }
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: name not in kind._field_defaults for name in kind._fields}  # type: ignore[attr-defined]
    return {}


def dimensions(spec: Spec) -> list[str]:
    """Names of the extents in ``spec``, in order of appearance; `REST` if it has further axes."""
    found: list[str] = []

    def collected(shape: _Shape) -> _Shape:
        found.extend(extent for extent in shape if isinstance(extent, str))
        return shape

    _mapped(spec, collected)
    return found


def resolved(spec: Spec, sizes: Mapping[str, int]) -> Spec:
    """``spec`` with numbers for the extents that have names.

    >>> print(resolved(parse("{'w': float64[N,3]}"), {"N": 5}))
    {'w': float64[5,3]}
    """
    return _mapped(
        spec, lambda shape: tuple(sizes.get(each, each) if isinstance(each, str) else each for each in shape)
    )


def _mapped(spec: Spec, change: Callable[[_Shape], _Shape]) -> Spec:
    """``spec`` with the shapes of its arrays changed."""
    if isinstance(spec, Array):
        return dataclasses.replace(spec, shape=change(spec.shape))
    if isinstance(spec, Sequence):
        return dataclasses.replace(spec, items=tuple(_mapped(item, change) for item in spec.items))
    if isinstance(spec, Table):
        return dataclasses.replace(spec, items=tuple((key, _mapped(part, change)) for key, part in spec.items))
    if isinstance(spec, Record):
        return dataclasses.replace(spec, fields=tuple((name, _mapped(part, change)) for name, part in spec.fields))
    return spec


def ranked(spec: Spec, names: tuple[str, ...]) -> Spec:
    """``spec`` with as many further axes as there are ``names``, which name their extents.

    >>> print(ranked(parse("[float64[B,...], float]"), ("N", "M")))
    [float64[B,N,M], float]
    """
    return _mapped(spec, lambda shape: (*shape[:-1], *names) if REST in shape else shape)
