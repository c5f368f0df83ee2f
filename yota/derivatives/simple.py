"""Gradients for arguments of one kind, compiled once and for all: `yota.simplegrad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.compilation.compiled import Compiled
from yota.compilation.playing import leaves
from yota.compilation.specialise import Specialisation, Target
from yota.compilation.words import evaluates, worded
from yota.derivatives.differentiated import Differentiated
from yota.derivatives.entry import MISSING, entry
from yota.derivatives.forms import form_of
from yota.errors import ArgumentError, StaleTapeError
from yota.structures import mapped
from yota.tracing.captures import copied

__all__ = ["SimpleGradient", "simplegrad"]


class SimpleGradient(Compiled):
    """A compiled gradient for arguments of one kind: ``val, d0, d1 = dloss(*args)``; ``dloss.source`` is its code."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], target: Target) -> None:
        options = {"target": target.name, "strict": target.strict, "effort": target.effort}
        form = Differentiated(f, None, target, dynamic=False)
        # It is compiled once and for all, whatever others compile anew after a change.
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
        """The value and the derivative by each argument."""
        self.calls += 1
        if self._entry is not None and not self._outdated:
            found = self._entry(args)
            if found is not MISSING:
                return found  # type: ignore[no-any-return]
        self._outdated = self._outdated or self._captured.changed()
        if self._outdated:
            raise StaleTapeError(
                f"what {self.__name__} reads from outside has changed since it was compiled. Call simplegrad again, or "
                "use yota.value_and_grad, which notices."
            )
        if len(args) != self._count:
            raise ArgumentError(f"{self.__name__} takes {self._count} arguments, not {len(args)}")
        args = (*self._hidden, *args)
        # Checked first: the generated code trusts its inputs.
        given = leaves(self._prepared.root.gradient.tape, args)
        (value, gradients), _ = self._prepared(self._function, args, given)
        return (value, *gradients)

    def _flat(self, chosen: Specialisation, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        value, gradients = self._prepared.result(chosen, outputs)
        return (value, *gradients)

    def clear(self) -> None:
        """Refused: what is compiled once and for all cannot be compiled anew."""
        raise ArgumentError(f"{self!r} is compiled once and for all; call simplegrad again")


@worded
def simplegrad(
    f: Callable[..., Any], *args: Any, target: str | None = None, strict: bool = False, effort: str = "quick"
) -> SimpleGradient:
    """Compile the gradient of ``f`` for arguments like ``args``, once and for all.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    *args
        Arguments of the types that it will be called with; see `grad`. What is static among them stays as it is here.
    target, strict, effort
        See `grad`.

    Returns
    -------
    SimpleGradient
        Called with such arguments it gives ``(value, d0, d1, ...)``; ``.source`` is the generated code.

    Raises
    ------
    ArgumentError
        When called, if the arguments have other types, parts or static values.
    StaleTapeError
        When called, if a branch on traced data goes another way than for ``args``, or if a variable that ``f``
        reads from outside has changed.

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
