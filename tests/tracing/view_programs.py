"""Random programs of views and writes into them: values against NumPy, gradients against the complex step.

Command: ``python -m tests.tracing.view_programs COUNT [FIRST]`` runs that many programs, and prints each that differs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import yota
from yota.errors import YotaError
from yota.rules.registry import registry
from yota.transform.reverse.backward import gradient_tape

__all__ = ["Program", "fault"]

SHAPES = [(3, 4), (4, 4), (2, 3, 2), (6,), (1, 5), (4, 1), (5, 3), (2, 2, 3), (12,), (1,)]
LAYOUTS: list[Callable[[Any], Any]] = [
    lambda x: x.copy(),
    np.asfortranarray,
    lambda x: np.kron(x, np.ones((2,) * x.ndim))[(slice(None, None, 2),) * x.ndim],
    lambda x: np.flip(np.flip(x).copy()),
    lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
]

VIEWS = """
    {name}[{index}]; {name}[{index}]; {name}[{index}]; {name}.T; {name}.reshape(-1);
    {name}.reshape({name}.shape[::-1]); np.reshape({name}, -1, order='{fixed}'); {name}.ravel('{order}');
    np.ravel({name}); {name}.flatten('{order}'); np.moveaxis({name}, 0, {axis}); np.swapaxes({name}, 0, {axis});
    np.squeeze({name}); np.expand_dims({name}, {axis}); np.flip({name}, {axis}); np.rot90({name}, {number});
    np.atleast_2d({name}); np.asarray({name}); np.array({name}, copy=None); np.ascontiguousarray({name});
    np.asfortranarray({name}); np.require({name}, requirements='F'); {name}.astype(float, copy=False); {name}.view();
    np.take({name}, -1, axis={axis}); np.take({name}, [0], axis={axis}); {name}.copy('{order}'); np.copy({name});
    np.repeat({name}, 1, axis={axis}); np.repeat({name}[:1], 3, axis=0); np.split({name}, 2, axis={axis})[1];
    np.array_split({name}, 2)[0]; np.einsum('ij->ji', {name}); np.einsum('ii->i', {name});
    np.meshgrid({name}, {name})[0]; np.meshgrid({name}, {name}, copy=False, sparse=True)[1]; np.tile({name}, 2);
    np.roll({name}, 1); np.sort({name}, axis={axis}); np.concatenate([{name}, {name}], axis={axis});
    np.stack([{name}, {name}], {axis}); np.where({name} > 1, {name}, 1.0); np.clip({name}, None, 9.0);
    np.cumsum({name}, axis={axis}); {name} * 1.0; np.add({name}, 0.5, order='{order}'); {name}.real; {name}.conj();
    np.pad({name}, 0); np.delete({name}, 0, axis={axis}); np.insert({name}, 0, 2.0, axis={axis}); np.tril({name});
    {name} @ {name}.T; np.tensordot({name}, {name}, ({axis}, {axis})) / 9; np.diag({name}); np.diff({name}, 0);
    {name}.flat[1:4]; np.unstack({name})[0]; np.hsplit({name}, 2)[0]; np.outer({name}, {name}[:1]) / 3;
    np.full_like({name}, 0.5); np.zeros_like({name}); np.linspace({name}, 2.0, 2); {name}.mean({axis}, keepdims=True);
    np.broadcast_to({name}, (2, *{name}.shape)).copy()
"""
WRITES = """
    {place} = {value}; {place} = {value}; {place} *= {value}; {place} += {value}; {place} -= 0.5; {name} *= 1.5;
    {name} += {value}; {name}[{name} > 1.0] = 0.9; {name}[{name} > 1.0] *= 0.8; np.add({name}, {value}, out={name});
    np.multiply({name}, 0.5, out={view}); {name}.fill(0.6); np.copyto({name}, {value}); {name}.sort(axis=0);
    {name}.flat[::2] = 0.4; {name}.flat[1] += 0.4; np.add.at({name}, [0], 0.3); np.multiply.at({name}, [0, -1], 0.7);
    np.put({name}, [0, 1], 0.2); np.fill_diagonal({name}, 0.8); np.maximum({name}, 0.9, out={name});
    {name}.shape = {name}.shape[::-1]; np.putmask({name}, {name} > 1, 0.3); np.einsum('ii->i', {name})[...] = 0.2
"""


class Program:
    """A random program, the same for a number: lines of Python, that make arrays ``a0``, ``a1``, ... of ``x``.

    Parameters
    ----------
    number
        Which one.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.rng = np.random.default_rng(number)
        self.shape = SHAPES[self.rng.integers(len(SHAPES))]
        self.layout = LAYOUTS[self.rng.integers(len(LAYOUTS))]
        self.lines: list[str] = []
        self.arrays: dict[str, Any] = {"x": self.argument(0)}
        self._grow()
        self.run, self.loss = functions(self._code, tuple(self.arrays))

    def argument(self, seed: int) -> Any:
        """An argument of the program."""
        return self.layout(np.random.default_rng((self.number, seed)).uniform(0.5, 1.5, self.shape))

    def __str__(self) -> str:
        return f"# {self.number}: x is {self.shape}, strides {self.argument(0).strides}\n" + "\n".join(self.lines)

    @property
    def _code(self) -> Any:
        return compile("\n".join(self.lines), f"<program {self.number}>", "exec")

    # -- growing -----------------------------------------------------------------------------------------

    def _grow(self) -> None:
        if self.rng.random() < 0.7:
            self._try("a0 = x * 1.0")
        for _ in range(self.rng.integers(4, 12)):
            if self.rng.random() < 0.55:
                self._try(f"a{len(self.arrays)} = {self._made()}")
            else:
                self._try(self._written())

    def _try(self, line: str) -> None:
        """Add a line if NumPy runs the program with it; ``arrays`` is what the names hold then."""
        scope: dict[str, Any] = {"np": np, "x": self.argument(0)}
        if "einsum" in line and not all(each.size for each in self.arrays.values()):
            return  # NumPy reads elements that an empty array does not have
        self.lines.append(line)
        try:
            with np.errstate(all="ignore"):
                exec(self._code, scope)
        except (ValueError, IndexError, TypeError, AttributeError):
            self.lines.pop()
            return
        names = ["x", *(name for name in scope if name.startswith("a") and name[1:].isdigit())]
        found = {name: scope[name] for name in names}
        if all(
            isinstance(each, np.ndarray) and np.all(np.abs(each) < 1e3) and each.size < 200 for each in found.values()
        ):
            self.arrays = found
        else:
            self.lines.pop()

    def _pick(self, *choices: str) -> str:
        return choices[self.rng.integers(len(choices))]

    def _name(self) -> str:
        return self._pick(*self.arrays)

    def _number(self) -> int:
        return int(self.rng.integers(-5, 6))

    def _slice(self) -> str:
        parts = [self._pick("", "", str(self._number())) for _ in "ab"]
        return ":".join([*parts, self._pick("", "", "", "2", "-1", "-2", "3")])

    def _index(self, ndim: int) -> str:
        """A basic or advanced index."""
        entries = [
            self._pick(
                self._slice(),
                self._slice(),
                str(self.rng.integers(-2, 3)),
                "None",
                "...",
                "[0, -1]",
                "np.array(0)",
                "np.int64(1)",
            )
            for _ in range(max(ndim, 1))
        ]
        return ", ".join(entries[: self.rng.integers(1, len(entries) + 1)])

    def _viewed(self, name: str) -> str:
        """An expression that is a view of an array, or looks like one."""
        ndim = self.arrays[name].ndim
        order = self._pick("C", "C", "F", "A", "K")
        return self._pick(*calls(VIEWS)).format(
            name=name,
            axis=self.rng.integers(max(ndim, 1)),
            index=self._index(ndim),
            number=self._number(),
            order=order,
            fixed=order.replace("K", "A"),
        )

    def _made(self) -> str:
        name = self._name()
        return self._viewed(name)

    def _written(self) -> str:
        name = self._name()
        index = f"{name}[{self._index(self.arrays[name].ndim)}]"
        value = self._pick("0.75", "1.25", self._name(), self._viewed(self._name()), f"{name} * 0.5", f"np.sin({name})")
        place = self._pick(index, index, f"{name}[...]", f"({self._viewed(name)})[...]")
        return self._pick(*calls(WRITES)).format(name=name, value=value, place=place, view=self._viewed(name))


def calls(text: str) -> list[str]:
    """The templates of a text, apart at semicolons."""
    return [" ".join(each.split()) for each in text.split(";")]


def functions(code: Any, names: tuple[str, ...]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """All arrays that a program made, after the last write, and one number of them."""

    def run(x: Any) -> Any:
        scope = {"np": np, "x": x}
        exec(code, scope)
        return np.concatenate([np.reshape(scope[name] * 1.0, (scope[name].size,)) for name in names])

    def loss(x: Any) -> Any:
        found = run(x)
        return np.sum(found * found * np.cos(np.arange(found.size) + 0.5))

    return run, loss


def fault(program: Program, targets: tuple[str, ...] = ()) -> str | None:
    """What is wrong with the traced program; None if nothing is, "refused" if yota refuses it."""
    x = program.argument(0)
    with np.errstate(all="ignore"):
        wanted = program.run(program.argument(0))
    try:
        value, tape = yota.trace(program.run, x)
    except YotaError:
        return "refused"
    if not close(value, wanted):
        return f"{program}\ngives {value}\nand by NumPy {wanted}"
    again = program.argument(1)
    try:
        moved = yota.play(tape, again)
    except YotaError:
        moved = None  # another branch
    with np.errstate(all="ignore"):
        if moved is not None and not close(moved, program.run(program.argument(1))):
            return f"{program}\nplayed again gives {moved}"
    return gradient_fault(program, targets)


def close(found: Any, wanted: Any) -> bool:
    """Whether values agree but for what products and sums of another order in memory make of the last bits."""
    return found.shape == wanted.shape and np.allclose(found, wanted, 1e-13, 1e-15)


def gradient_fault(program: Program, targets: tuple[str, ...]) -> str | None:
    """What is wrong with the gradient of the program: of the tape's adjoints, and of those that targets compile."""
    x = program.argument(0)
    tape = yota.trace(program.loss, program.argument(0))[1]
    adjoints = gradient_tape(tape, [tape.inputs[0].variable], registry())
    played = yota.play(adjoints.tape, x)
    found = {"tape": played[1] if isinstance(played, tuple) and len(played) > 1 else np.zeros(x.shape)}
    found.update((each, yota.value_and_grad(program.loss, target=each)(program.argument(0))[1]) for each in targets)
    with np.errstate(all="ignore"):
        expected = np.reshape([slope(program, place) for place in np.ndindex(x.shape)], x.shape)
    for by, gradient in found.items():
        if not np.allclose(gradient, expected, 1e-5, 1e-5):
            return f"{program}\nhas by {by} the gradient {gradient}\nand by the complex step {expected}"
    return None


def slope(program: Program, place: tuple[int, ...]) -> float:
    """The derivative by one element, by the complex step; by differences where imaginary parts are dropped."""
    x, unit = np.ascontiguousarray(program.argument(0)), np.zeros(program.shape)
    unit[place] = 1.0
    if not any(each in line for line in program.lines for each in (".real", ".conj", "astype")):
        return float(program.loss(program.layout(x + 1e-30j * unit)).imag / 1e-30)
    ahead, behind = (program.loss(program.layout(x + step * unit)) for step in (1e-6, -1e-6))
    return float((ahead - behind) / 2e-6)


def main(count: int, first: int = 0) -> None:
    """Run programs, and print what is wrong."""
    warnings.simplefilter("ignore")
    refused = wrong = 0
    for number in range(first, first + count):
        program = Program(number)
        try:
            found = fault(program, () if number % 40 else ("numpy", "c"))
        except Exception as error:  # noqa: BLE001  (the report names the program)
            found = f"{program}\nraises {error!r}"
        refused += found == "refused"
        if found and found != "refused":
            wrong += 1
            print(found, end="\n\n", flush=True)
    print(f"{count} programs, {refused} refused, {wrong} wrong")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
