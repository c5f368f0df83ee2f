"""Random functions that write into arrays in place, and their derivatives by complex steps through plain NumPy.

Arrays have lengths around each limit at which generated code changes. What is held against the complex steps is a
derivative along random directions: an element that is wrong shows in it.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import yota
from yota.emit.c import kernels as kernel
from yota.emit.c import nest
from yota.emit.python import numpy_arrays, storage
from yota.optimize import scalarize
from yota.schedule import target_forms as forms
from yota.schedule.blocked import fuse
from yota.schedule.nests import stencils
from yota.schedule.nests import tiling as regions

__all__ = ["KINDS", "Program", "agree", "lengths", "program"]

KINDS = ("gradient", "jacobian", "hvp")
"""What is differentiated: a number once, an array once, a number twice."""

_STEP = 1e-30
_SMOOTH = (
    "np.sin({0})",
    "{0}/({0}**2 + 0.5)",
    "1/(1 + np.exp(-{0}))",
    "np.tanh({0})",
    "0.3*{0}**2",
    "np.exp(-{0}**2)",
    "0.5*{0} + 0.1",
    "np.cos({0}) + {0}",
)
"""Analytic functions that keep numbers of moderate size moderate."""
_FEW = 300
"""Elements of an array that has a whole Jacobian."""
_READS = ("np.sum({0}**2)", "np.mean(np.sin({0}))", "np.sum({0})", "np.sum(np.cos({0})*{0})", "np.mean({0}[::2])")


def lengths() -> tuple[int, ...]:
    """Lengths of arrays around each limit at which generated code changes."""
    limits = {
        *(regions.LONGEST_UNROLLED, regions._MOST_LANES, regions._MOST_PUT_TOGETHER, regions._MOST_SCALARS),
        *(stencils.SMALLEST, nest._BLOCK, nest._SHORT, 2 * nest._BLOCK, scalarize._MOST_UNROLLED),
        *(storage.WORKSPACE_BYTES // 8, numpy_arrays._SMALLEST, fuse._SMALLEST_TURNED, fuse._LARGEST_ROW),
        *(kernel.WORTH_KEEPING // 8, fuse._SMALLEST_RUN, 2 * fuse._SMALLEST_TURNED, 1 << 16),
        *(extent * forms._SPARSE for extent in (nest._BLOCK, 257)),
    }
    return tuple(sorted({length for limit in limits for length in (limit - 1, limit, limit + 1, 2 * limit + 3)}))


@dataclass(slots=True)
class Program:
    """A function in plain NumPy, its source, and where it is to be evaluated."""

    number: int
    source: str
    arguments: tuple[np.ndarray[Any, Any], ...]
    arrays: dict[str, Any]
    function: Callable[..., Any] = field(init=False)

    def __post_init__(self) -> None:
        filename = f"<in place {self.number}>"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(keepends=True), filename)
        space: dict[str, Any] = {"np": np, **self.arrays}
        exec(compile(self.source, filename, "exec"), space)
        self.function = space["f"]

    def __str__(self) -> str:
        shapes = ", ".join(str(each.shape) for each in self.arguments)
        return f"program {self.number} on {shapes}:\n{self.source}"

    def directions(self) -> tuple[np.ndarray[Any, Any], ...]:
        """A random direction for each argument."""
        draw = np.random.default_rng(self.number + 1)
        return tuple(draw.normal(size=each.shape) for each in self.arguments)


def along(program: Program, directions: tuple[Any, ...], at: tuple[Any, ...] | None = None) -> Any:
    """The derivative along ``directions``, by a complex step."""
    moved = (x + _STEP * 1j * d for x, d in zip(at or program.arguments, directions, strict=True))
    return np.imag(program.function(*moved)) / _STEP


def second(program: Program, directions: tuple[Any, ...], others: tuple[Any, ...], step: float = 1e-5) -> Any:
    """The second derivative along two lists of directions: differences of complex steps, to some nine digits."""

    def slope(distance: float) -> Any:
        at = tuple(x + distance * d for x, d in zip(program.arguments, others, strict=True))
        return along(program, directions, at)

    return (8 * (slope(step) - slope(-step)) - slope(2 * step) + slope(-2 * step)) / (12 * step)


def program(number: int, *, longest: int = 150_000, array: bool = False) -> Program:
    """Program ``number``: the same one each time, on arrays of up to ``longest`` elements.

    ``array`` says whether it gives an array: a short one, or what it has written into.
    """
    return _Growth(random.Random(number), number, longest).program(array)


def agree(number: int, target: str, kind: str = "gradient", longest: int = 150_000) -> None:
    """Assert that a derivative of program ``number`` is what complex steps say."""
    made = program(number, longest=longest, array=kind == "jacobian")
    directions = made.directions()
    wanted: Any
    if kind == "hvp":
        made = _by_one(made)
        directions = made.directions()
        others = tuple(np.roll(each, 1) for each in directions)
        wanted = second(made, directions, others)
        products = [yota.hvp(made.function, target=target)(*made.arguments, directions[0])]
        found, scale = _along(products, others)
        tolerance = 1e-6
    else:
        wanted = along(made, directions)
        wrt = tuple(range(len(directions)))
        if kind == "gradient":
            value, slopes = yota.value_and_grad(made.function, wrt=wrt, target=target)(*made.arguments)
            np.testing.assert_allclose(value, made.function(*made.arguments), rtol=1e-9, atol=1e-9)
        else:
            slopes = yota.jacobian(made.function, wrt=wrt, target=target)(*made.arguments)
        found, scale = _along(slopes, directions)
        tolerance = 1e-9
    slack = tolerance * np.maximum(scale, 1e-3)
    off = np.abs(found - wanted)
    assert np.all(off <= slack), f"{kind}, {target}: {off} is more than {slack} from {wanted} in\n{made}"


def _along(slopes: Any, directions: tuple[Any, ...]) -> tuple[Any, Any]:
    """Derivatives along ``directions``, and about how much their terms are."""
    pairs = [(np.asarray(slope), each) for slope, each in zip(slopes, directions, strict=True)]
    found = sum(np.tensordot(slope, each, each.ndim) for slope, each in pairs)
    return found, sum(np.tensordot(np.abs(slope), np.abs(each), each.ndim) for slope, each in pairs)


def _by_one(program: Program) -> Program:
    """A program of one argument, from which the other one is made."""
    if len(program.arguments) > 1:
        _, *body = program.source.splitlines()
        source = "\n".join(["def f(x):", "    y = np.cos(x) - 0.3*x", *body]) + "\n"
        return Program(program.number, source, program.arguments[:1], program.arrays)
    return program


class _Growth:
    """A program that grows by a statement at a time."""

    def __init__(self, draw: random.Random, number: int, longest: int) -> None:
        self.draw, self.number = draw, number
        self.arrays: dict[str, Any] = {}
        self.lines: list[str] = []
        self.names = ["v"]
        known = [length for length in lengths() if length <= longest]
        if draw.random() < 0.7:
            self.shape: tuple[int, ...] = (draw.choice(known),)
        else:
            short = draw.choice([2, 3, 4, 5, 16, 17, 31, 64, 65])
            long = max(2, draw.choice(known) // short)
            self.shape = draw.choice([(long, short), (short, long)])
        self.numbers = np.random.default_rng(number)

    def program(self, array: bool) -> Program:
        """The whole program."""
        draw = self.draw
        two = draw.random() < 0.3
        self.inputs = ["x", "y"] if two else ["x"]
        arguments = tuple(self.numbers.normal(size=self.shape) for _ in self.inputs)
        self.lines.append(f"v = {self.smooth('x')}")
        if two:
            self.lines.append(f"w = {self.smooth('y')} * {draw.choice(['x', 'v', '0.7'])}")
            self.names.append("w")
        self.lines.append("total = 0.0")
        kinds = ("slice", "slice", "slice", "whole", "indices", "indices", "mask", "place", "view", "out", "at", "copy")
        for _ in range(draw.randint(1, 6)):
            getattr(self, f"_{draw.choice(kinds)}")(draw.choice(self.names))
            if draw.random() < 0.5:
                name = draw.choice(self.names)
                self.lines.append(f"total = total + {draw.choice(_READS).format(name)}")
        ends = " + ".join(draw.choice(_READS).format(name) for name in self.names)
        result = f"total + {ends}"
        if array:
            short = f"np.stack([{result}, np.sum(np.sin(v))*0.1 + total])"
            result = f"v + 0.01*({result})" if np.prod(self.shape) < _FEW else short
        self.lines.append(f"return {result}")
        body = "\n".join(f"    {line}" for line in self.lines)
        return Program(self.number, f"def f({', '.join(self.inputs)}):\n{body}\n", arguments, self.arrays)

    def smooth(self, text: str) -> str:
        return f"({self.draw.choice(_SMOOTH).format(text)})"

    def array(self, value: Any) -> str:
        name = f"ix{len(self.arrays)}"
        self.arrays[name] = value
        return name

    def entry(self, extent: int) -> str:
        """A slice of an axis that has elements."""
        draw = self.draw
        step = draw.choice([1, 1, 2, 2, 3, 5, 7, -1, -2, -3])
        start, stop = sorted(draw.sample(range(extent + 1), 2)) if extent > 1 else (0, 1)
        texts = [f"::{step}", f"{start}:{stop}:{step}"]
        if step > 0:
            texts += [f"{start}:", f":{stop}", f"{draw.randint(0, min(3, extent - 1))}::{step}", f"1:{extent}", ":-1"]
        else:
            texts = [f"::{step}", f"{stop - 1}:{start - 1 if start else ''}:{step}", f"{extent - 1}::{step}"]
        while True:
            text = draw.choice(texts)
            parts = [int(part) if part else None for part in text.split(":")]
            if len(range(extent)[slice(*parts)]):
                return text

    def cut(self) -> str:
        """Brackets of slices, or of a number and slices."""
        draw, shape = self.draw, self.shape
        if len(shape) == 1:
            return self.entry(shape[0])
        kind = draw.randint(0, 4)
        rows, columns = shape
        if kind == 0:
            return f"{draw.randint(-rows, rows - 1)}"
        if kind == 1:
            return f":, {draw.randint(-columns, columns - 1)}"
        if kind == 2:
            return f"{self.entry(rows)}, {self.entry(columns)}"
        if kind == 3:
            return f":, {self.entry(columns)}"
        return self.entry(rows)

    def indices(self) -> str:
        """Brackets of index arrays: unique, repeated, negative; on one axis or on both."""
        draw, shape = self.draw, self.shape

        def one(extent: int, count: int) -> Any:
            if draw.random() < 0.4:
                found = self.numbers.permutation(extent)[: min(count, extent)]
                found = np.resize(found, count) if len(found) < count else found
            else:
                found = self.numbers.integers(0, extent, count)
            return found - extent * (self.numbers.random(count) < draw.choice([0.0, 0.0, 0.5, 1.0]))

        extent = draw.choice(shape)
        count = max(1, min(draw.choice([1, 7, 16, 65, 777, extent // 3, extent]), extent))
        if len(shape) == 1:
            return self.array(one(shape[0], count))
        rows, columns = shape
        kind = draw.randint(0, 2)
        if kind == 0:
            return self.array(one(rows, min(count, rows)))
        if kind == 1:
            return f":, {self.array(one(columns, min(count, columns)))}"
        return f"{self.array(one(rows, count))}, {self.array(one(columns, count))}"

    def write(self, name: str, place: str) -> None:
        """A write at a place, by what stands there and there in another array."""
        draw = self.draw
        other = draw.choice([*self.names, *self.inputs])
        kind = draw.randint(0, 6)
        target = f"{name}[{place}]"
        if kind == 0:
            line = f"{target} *= {draw.choice(['1.5', '-0.5', '0.0', '2'])}"
        elif kind == 1:
            line = f"{target} += {draw.choice(['0.5', f'0.3*{other}[{place}]', self.smooth(f'{other}[{place}]')])}"
        elif kind == 2:
            line = f"{target} -= {self.smooth(f'{name}[{place}]')}"
        elif kind == 3:
            line = f"{target} = {draw.choice(['0.0', '0.25', 'total*0.001', self.smooth(f'{other}[{place}]')])}"
        elif kind == 4:
            line = f"{target} /= ({other}[{place}]**2 + 1.5)"
        elif kind == 5:
            line = f"{target} = {self.smooth(f'{name}[{place}]')}"
        else:
            line = (
                f"{target} = {target}[::-1]*0.9"
                if "ix" not in place and not self.is_number(place)
                else f"{target} *= 0.9"
            )
        self.lines.append(line)

    def is_number(self, place: str) -> bool:
        return len(self.shape) == 1 and ":" not in place and "ix" not in place

    def _slice(self, name: str) -> None:
        self.write(name, self.cut())

    def _indices(self, name: str) -> None:
        self.write(name, self.indices())

    def _place(self, name: str) -> None:
        self.write(name, ", ".join(str(self.draw.randint(-extent, extent - 1)) for extent in self.shape))
        if self.lines[-1].endswith("[::-1]*0.9"):
            self.lines[-1] = self.lines[-1].removesuffix("[::-1]*0.9") + "*0.9"

    def _whole(self, name: str) -> None:
        other = self.draw.choice([*self.names, *self.inputs])
        self.lines.append(
            self.draw.choice(
                (
                    f"{name} *= {self.smooth(other)}",
                    f"{name} += {self.smooth(other)}",
                    f"{name}[...] = {self.smooth(other)}",
                    f"{name} = {self.smooth(name)}",
                    f"{name}[:] = {self.smooth(name)}",
                )
            )
        )

    def _mask(self, name: str) -> None:
        draw = self.draw
        other = draw.choice([*self.names, *self.inputs])
        if draw.random() < 0.5:
            mask = self.array(self.numbers.random(self.shape) < draw.choice([0.01, 0.3, 0.9]))
        else:
            mask = f"np.real({draw.choice(['x', name])}) > {draw.choice(['0.1', '-0.7', '5.0'])}"
        self.lines.append(
            draw.choice(
                (
                    f"{name}[{mask}] = {draw.choice(['0.0', '0.75'])}",
                    f"{name}[{mask}] *= 1.5",
                    f"{name} = np.where({mask}, {self.smooth(name)}, {other})",
                    f"np.copyto({name}, {self.smooth(other)}, where={mask})",
                )
            )
        )

    def _view(self, name: str) -> None:
        """A write through a view, or through a view of one."""
        draw, count = self.draw, len(self.lines)
        view = f"u{count}"
        other = draw.choice([*self.names, *self.inputs])
        place = self.cut()
        if self.is_number(place):
            return
        if len(self.shape) == 2 and draw.random() < 0.3:
            self.lines += [f"{view} = {name}.T", f"{view}[{draw.randint(0, self.shape[1] - 1)}] *= 1.3"]
            return
        if len(self.shape) == 1 and self.shape[0] % 2 == 0 and draw.random() < 0.4:
            self.lines += [f"{view} = {name}.reshape(-1, 2)", f"{view}[:, {draw.randint(0, 1)}] += 0.2*{view}[:, 1]"]
            return
        self.lines.append(f"{view} = {name}[{place}]")
        self.lines.append(
            draw.choice(
                (
                    f"{view} *= 1.25",
                    f"{view}[...] = {self.smooth(f'{other}[{place}]')}",
                    f"{view}[::2] += 0.5",
                    f"{view}[1:] = {view}[:-1]*0.5",
                    f"{view} += {self.smooth(view)}",
                )
            )
        )

    def _out(self, name: str) -> None:
        draw = self.draw
        other = draw.choice([*self.names, *self.inputs])
        place = self.cut()
        lines = [f"np.multiply({name}, {other}, out={name})", f"np.sin({name}, out={name})"]
        if not self.is_number(place):
            cut = f"{name}[{place}]"
            lines += [f"np.add({cut}, {other}[{place}], out={cut})", f"np.tanh({other}[{place}], out={cut})"]
        self.lines.append(draw.choice(lines))

    def _at(self, name: str) -> None:
        place = self.indices()
        index = f"np.s_[{place}]" if ":" in place else f"({place})"
        other = self.draw.choice([*self.names, *self.inputs])
        self.lines.append(f"np.add.at({name}, {index}, {self.smooth(f'{other}[{place}]')})")

    def _copy(self, name: str) -> None:
        """An array that keeps what another one holds now."""
        made = f"c{len(self.lines)}"
        self.lines.append(f"{made} = {self.draw.choice([f'{name}.copy()', self.smooth(name), f'{name} + 0.0'])}")
        self.names.append(made)
