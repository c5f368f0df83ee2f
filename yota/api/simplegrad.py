"""`yota.simplegrad`: gradients that are compiled once, for one combination of argument types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.errors import ArgumentError, StaleTapeError
from yota.marks import MISSING
from yota.run.compiled import Compiled
from yota.run.derivatives.call_entry import entry
from yota.run.derivatives.calling import form_of
from yota.run.derivatives.differentiated import Differentiated
from yota.run.options import evaluates, worded
from yota.run.playing import leaves
from yota.run.specialise import Specialisation, Target
from yota.structures import mapped
from yota.tracing.captures import copied


class SimpleGradient(Compiled):
    """A gradient compiled once: ``val, d0, d1 = dloss(*args)``; ``dloss.source`` is its code."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], target: Target) -> None:
        options = {"target": target.name, "strict": target.strict, "effort": target.effort}
        form = Differentiated(f, None, target, dynamic=False)
        # It never compiles again, also if other derivatives of the function do.
        others = form_of(Differentiated, f, None, target, dynamic=False)
        others.prepare(args, {})
        if others.captured.agrees(form.captured) or others.function is form.function:
            form.take_over(others)
        recipe = simplegrad, (f, *(mapped(each, copied) for each in args)), options
        super().__init__(recipe, f, "gradient", journal=form.journal)
        self._captured, self._outdated = form.captured, False
        self._prepared, self._function, *_ = form.prepare(args, {})
        self._hidden = form.hidden
        self._count = len(args)
        prepared = self._prepared
        self._entry = entry(args, form.hidden, prepared.root, self._flat, prepared.checks())

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """The value, and the derivative by each argument."""
        self.calls += 1
        if self._entry is not None and not self._outdated:
            found = self._entry(*args)
            if found is not MISSING:
                return found  # type: ignore[no-any-return]
        self._outdated = self._outdated or self._captured.changed()
        if self._outdated:
            raise StaleTapeError(
                f"data that {self.__name__} reads has changed since it was compiled. Call simplegrad again, or use "
                "yota.value_and_grad, which compiles again."
            )
        if len(args) != self._count:
            raise ArgumentError(f"{self.__name__} takes {self._count} arguments, not {len(args)}")
        args = (*self._hidden, *args)
        # The generated code does not check its inputs.
        given = leaves(self._prepared.root.gradient.tape, args)
        (value, gradients), _ = self._prepared(self._function, args, given)
        return (value, *gradients)

    def _flat(self, chosen: Specialisation, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        value, gradients = self._prepared.result(chosen, outputs)
        return (value, *gradients)

    def clear(self) -> None:
        """Raise an error: this function cannot be compiled again."""
        raise ArgumentError(f"{self!r} is compiled only once; call simplegrad again")


@worded
def simplegrad(
    f: Callable[..., Any], *args: Any, target: str | None = None, strict: bool = False, effort: str = "quick"
) -> SimpleGradient:
    """Compile the gradient of ``f`` once, for the argument types of ``args``.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    *args
        Sample arguments; see `grad`. Their static values become part of the code.
    target, strict, effort
        See `grad`.

    Returns
    -------
    SimpleGradient
        Takes arguments of these types and returns ``(value, d0, d1, ...)``; ``.source`` is the generated code.

    Raises
    ------
    ArgumentError
        When called, if the argument types, structure or static values differ.
    StaleTapeError
        When called, if a branch on traced data takes another direction than for ``args``, or if data that ``f``
        reads has changed.

    Examples
    --------
    >>> import numpy as np
    >>> dloss = simplegrad(lambda w, x: np.sum(w * x), np.ones(2), np.array([3.0, 4.0]))
    >>> val, dw, dx = dloss(np.ones(2), np.array([3.0, 4.0]))
    >>> dw
    array([3., 4.])
    """
    if not args:
        evaluates("simplegrad", f, "For a function that compiles when it is called: yota.value_and_grad(f)")
    return SimpleGradient(f, args, Target.wanted(target, strict, effort))
