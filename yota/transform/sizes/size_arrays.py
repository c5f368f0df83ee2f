"""Arrays that come from sizes: ``np.eye(N)``, ``np.arange(N)``, ``np.triu_indices(N, 1)`` and the like, recognised."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from yota.emit.numpy_literals import dtype_text
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.size_expressions import Samples, closeness

_GRIDS = ("np.hanning", "np.hamming", "np.blackman", "np.bartlett", "np.fft.fftfreq", "np.fft.rfftfreq")
_OFFSETS = (0, 1, -1, 2, -2)


def array_text(arrays: Sequence[np.ndarray[Any, Any]], samples: Samples) -> str | None:
    """Python text that makes each of ``arrays`` at its sample; None if none is known."""
    key = tuple((array.dtype, array.shape, array.tobytes()) for array in arrays)
    if key not in samples.arrays:
        samples.arrays[key] = _text(arrays, samples)
    return samples.arrays[key]


def _text(arrays: Sequence[np.ndarray[Any, Any]], samples: Samples) -> str | None:
    dtype = arrays[0].dtype
    if dtype.kind not in "biuf" or len({(array.dtype, array.ndim) for array in arrays}) != 1:
        return None
    extents = [samples.whole([array.shape[axis] for array in arrays]) for axis in range(arrays[0].ndim)]
    if None in extents:
        return None
    for text in _candidates(arrays, [str(extent) for extent in extents], samples):
        if text is not None and _makes(text, arrays, samples):
            return text
    return _smaller(arrays, [str(extent) for extent in extents], samples)


def _makes(text: str, arrays: Sequence[Any], samples: Samples) -> bool:
    for array, size in zip(arrays, samples.sizes, strict=True):
        try:
            made = evaluated(text, size)
        except (ValueError, TypeError, ZeroDivisionError):
            return False
        if made.dtype != array.dtype or made.shape != array.shape or not np.array_equal(made, array, equal_nan=True):
            return False
    return True


def _candidates(arrays: Sequence[Any], extents: list[str], samples: Samples) -> Iterator[str | None]:
    dtype = arrays[0].dtype
    cast = dtype_text(dtype)
    shape = f"({', '.join(extents)},)" if len(extents) == 1 else f"({', '.join(extents)})"
    if any(array.size == 0 for array in arrays):
        return
    first = _number([array.flat[0] for array in arrays], samples)
    if first is not None:
        yield f"np.full({shape}, {first}, {cast})"
    if dtype.kind == "i" and len(extents) > 1:
        total = samples.whole([array.size for array in arrays])
        yield f"np.arange({total}, dtype={cast}).reshape{shape}"
    if len(extents) == 1:
        yield from _lines(arrays, extents[0], samples, cast)
    if len(extents) == 2:
        yield _sum(arrays, extents, samples) if dtype == np.int64 else None
        yield from _planes(arrays, extents, samples, cast)


def _lines(arrays: Sequence[Any], extent: str, samples: Samples, cast: str) -> Iterator[str | None]:
    kind = arrays[0].dtype.kind
    start = _number([array[0] for array in arrays], samples)
    if kind == "f":
        for function, name in itertools.product(_GRIDS, samples.names):
            yield f"{function}({name})"
        inner = _number([array[1] for array in arrays], samples) if all(len(array) > 2 for array in arrays) else None
        for name in samples.names if inner is not None else ():
            # Half a spectrum: the first frequency and that of the middle stand for one each, the others for two.
            yield _as(f"np.where(2 * np.arange({extent}) % {name} == 0, {start}, {inner})", cast)
    if kind in "iuf" and start is not None:
        step = _number([(array[1] - array[0]) if len(array) > 1 else array[0] for array in arrays], samples)
        end = _number([array[-1] for array in arrays], samples)
        index = f"np.arange({extent}, dtype={cast})"
        yield index
        if kind == "f" and end is not None:
            yield f"np.linspace({start}, {end}, {extent})"
            yield f"np.linspace({start}, {end}, {extent}, dtype={cast})"
        if step is not None:
            yield f"np.arange({start}, {extent} + {start}, dtype={cast})"
            yield f"{step} * {index}" if start in ("0", "0.0") else f"{start} + {step} * {index}"
        yield from _curves(arrays, index, samples) if kind == "i" else _quotients(arrays, extent, samples)
    if kind == "i":
        for name in samples.names:
            for offset in _OFFSETS:
                for which in ("triu", "tril"):
                    for part in (0, 1):
                        found = f"np.{which}_indices({name}, {offset})[{part}]"
                        yield from (found, f"{found}.astype({cast})")


def _curves(arrays: Sequence[Any], index: str, samples: Samples) -> Iterator[str]:
    """Squares of whole numbers, and polynomials of the second degree."""
    if any(len(array) < 3 for array in arrays):
        return
    seconds = [int(array[2] - 2 * array[1] + array[0]) for array in arrays]
    if any(each % 2 for each in seconds):
        return
    squares = [each // 2 for each in seconds]
    slopes = [int(array[1] - array[0]) - square for array, square in zip(arrays, squares, strict=True)]
    texts = [samples.whole(each) for each in (squares, slopes, [int(array[0]) for array in arrays])]
    forms = zip(texts, (f"{index} ** 2", index, None), strict=True)
    if None not in texts and set(texts) != {"0"}:
        yield " + ".join(f"({text})" if form is None else f"({text}) * {form}" for text, form in forms if text != "0")


def _quotients(arrays: Sequence[Any], extent: str, samples: Samples) -> Iterator[str]:
    """Whole numbers, one after the other, by a size."""
    if any(len(array) < 2 or array[1] == array[0] or not np.isfinite(array[:2]).all() for array in arrays):
        return
    parts = [round(float(1 / (array[1] - array[0]))) for array in arrays]
    firsts = [round(float(array[0] * part)) for array, part in zip(arrays, parts, strict=True)]
    divisor, first = samples.whole(parts), samples.whole(firsts)
    if divisor is not None and first is not None:
        yield (
            f"(np.arange({extent}) + ({first})) / ({divisor})" if first != "0" else f"np.arange({extent}) / ({divisor})"
        )


def _planes(arrays: Sequence[Any], extents: list[str], samples: Samples, cast: str) -> Iterator[str | None]:
    rows, columns = extents
    if all(min(array.shape) < 3 for array in arrays):
        return
    for offset in _OFFSETS:
        for text, make in _masks(rows, columns, offset):
            inside = [array[make(array)] for array in arrays]
            outside = [array[~make(array)] for array in arrays]
            if any(part.size == 0 for part in (*inside, *outside)):
                continue
            one, other = (_number([part.flat[0] for part in parts], samples) for parts in (inside, outside))
            if one is None or other is None:
                continue
            if (one, other) == ("1.0", "0.0") and cast == "np.float64":
                yield text
            yield _as(f"np.where({text} == 1.0, {one}, {other})", cast)
    if rows == columns:
        yield from _triangles(arrays, rows, samples, cast)


def _sum(arrays: Sequence[Any], extents: list[str], samples: Samples) -> str | None:
    """A column plus a row, as the positions of windows."""
    if any(not array.size or (array - array[:1] != array[:, :1] - array[0, 0]).any() for array in arrays):
        return None
    column = array_text([array[:, 0] for array in arrays], samples)
    row = array_text([array[0] - array[0, 0] for array in arrays], samples)
    if column is None or row is None:
        return None
    shape = ", ".join(extents)
    return f"np.broadcast_to(({column})[:, None], ({shape})) + np.broadcast_to(({row})[None], ({shape}))"


def _triangles(arrays: Sequence[Any], size: str, samples: Samples, cast: str) -> Iterator[str]:
    """A number below the diagonal, another on it and a third above."""
    if any(len(array) < 2 for array in arrays):
        return
    below, on, above = (_number([array[place] for array in arrays], samples) for place in ((1, 0), (0, 0), (0, 1)))
    if None not in (below, on, above):
        inner = f"np.where(np.eye({size}) == 1.0, {on}, {above})"
        yield _as(f"np.where(np.tri({size}, k=-1) == 1.0, {below}, {inner})", cast)


def _as(text: str, cast: str) -> str:
    """``text``, an array of Python's numbers, in a dtype."""
    return text if cast == "np.float64" else f"{text}.astype({cast})"


def _masks(rows: str, columns: str, offset: int) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    where = f"{rows}, {columns}" if rows != columns else rows
    shift = f", k={offset}" if offset else ""
    yield f"np.eye({where}{shift})", lambda array: np.eye(array.shape[0], array.shape[1], offset) == 1.0
    yield f"np.tri({where}{shift})", lambda array: np.tri(array.shape[0], array.shape[1], offset) == 1.0


def _number(values: Sequence[Any], samples: Samples) -> str | None:
    dtype = np.asarray(values[0]).dtype
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if isinstance(plain[0], bool):
        return str(plain[0]) if len(set(plain)) == 1 else None
    return samples.whole(plain) if isinstance(plain[0], int) else samples.real(plain, closeness(dtype))


def _smaller(arrays: Sequence[Any], extents: list[str], samples: Samples) -> str | None:
    """An array that repeats itself along an axis, made from one of fewer axes."""
    for axis in range(arrays[0].ndim):
        first = [np.take(array, [0], axis) for array in arrays]
        if all(array.shape[axis] for array in arrays) and all(
            np.array_equal(array, np.broadcast_to(one, array.shape)) for array, one in zip(arrays, first, strict=True)
        ):
            inner = array_text([np.take(array, 0, axis) for array in arrays], samples) if arrays[0].ndim > 1 else None
            if inner is None:
                return None
            index = ", ".join("None" if each == axis else ":" for each in range(axis + 1))
            shape = ", ".join(extents)
            text = f"({inner})[{index}]" if extents[axis] == "1" else f"np.broadcast_to(({inner})[{index}], ({shape}))"
            return text if _makes(text, arrays, samples) else None
    return None
