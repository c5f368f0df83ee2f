"""The option ``dynamic``, and error messages for options of other libraries, with yota's equivalents."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from yota.errors import ArgumentError, StaleTapeError
from yota.ir.location import where

if TYPE_CHECKING:
    from yota.ir.tape import Guard

TargetName = Literal["numpy", "c", "cuda", "auto"]
Dynamic = bool | Literal["auto"]
"""Whether each branch combination is traced; ``"auto"`` allows `MOST_FOLLOWED` of them."""
MOST_FOLLOWED = 64
"""Largest number of tapes for one combination of argument types with ``dynamic="auto"``."""
MOST_TAPES = 1024
"""Largest number of tapes in one decision tree."""


def check_dynamic(dynamic: Any) -> None:
    """Raise ArgumentError unless ``dynamic`` is True, False or ``"auto"``."""
    if not (dynamic is True or dynamic is False or dynamic == "auto"):
        raise ArgumentError(f"dynamic={dynamic!r} is not known; it is True, False or 'auto'")


def follow(dynamic: Dynamic, fault: StaleTapeError, guard: Guard, count: int) -> None:
    """Raise the error of a failed guard, unless a further tape is allowed after ``count`` tapes."""
    if guard.kind == "points" and fault.decision[1]:
        raise fault  # Points differ from one another: one tape cannot hold for all.
    if dynamic is True or fault.layout:
        return
    if not dynamic:
        raise fault
    if count >= MOST_FOLLOWED:
        known = type(fault)(
            f"{where(guard.location)}this branch goes another way in all of the {count} tapes that were recorded, one "
            "for each combination of branches that was met, and no more are unless they are asked for. Write the "
            f"choice with np.where, or pass dynamic=True, which keeps up to {MOST_TAPES} tapes."
        )
        known.decision, known.missed = fault.decision, fault.missed
        raise known from None


_Function = TypeVar("_Function", bound=Callable[..., Any])

_WRT = "say wrt=, a position, a name, or a tuple of them: yota.gradient(f, wrt=(0, 1))"
_AXES = "it is an option of yota.batch: yota.batch(f, in_axes=(0, None), out_axes=0)"
_WORDS = {
    "argnums": _WRT,
    "argnum": _WRT,
    "has_aux": "it is an option of yota.grad, value_and_grad, gradient and jacobian",
    "holomorphic": "leave it out: yota.jacobian gives the complex derivative of a holomorphic function",
    "allow_int": "leave it out: integer arrays are inputs without a derivative; pass x.astype(float) for one",
    "in_axes": _AXES,
    "out_axes": _AXES,
    "create_graph": "leave it out: every derivative can be differentiated again",
    "retain_graph": "leave it out: a derivative can be called any number of times",
}


def explained(name: str, option: str) -> ArgumentError | None:
    """The error for an option of another library; None for other options."""
    word = _WORDS.get(option)
    return None if word is None else ArgumentError(f"{name} has no {option}=; {word}")


def evaluates(name: str, f: Callable[..., Any], instead: str) -> None:
    """Raise an error if a function that evaluates at once is called without the arguments that ``f`` needs."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    missing = [each.name for each in parameters if each.kind in plain and each.default is each.empty]
    if missing:
        given = ", ".join(missing)
        raise ArgumentError(
            f"yota.{name} evaluates at once, and argument {missing[0]!r} is missing: yota.{name}(f, {given}). "
            f"{instead}({given})"
        )


def worded(function: _Function) -> _Function:
    """``function`` with explanatory errors for options of other libraries."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        # Importing these functions must not import tracing.
        from yota.tracing.source_lines import users_frames

        for option in options:
            if option not in known and (fault := explained(f"yota.{function.__name__}", option)) is not None:
                raise fault
        with users_frames:
            return function(*args, **options)

    return call  # type: ignore[return-value]
