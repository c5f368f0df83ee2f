"""Public functions for tracing and for user-defined rules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from yota.ir.callables import Derived, Recipe
from yota.ir.tape import Tape
from yota.rules.language.model import Rule
from yota.rules.registry import registry
from yota.run.arguments import function_of, positional, sort_arguments
from yota.run.derivatives.differentiated import with_receiver
from yota.run.derivatives.inside import record
from yota.run.device import on_host
from yota.run.playing import compile, play
from yota.tape_methods import proofs
from yota.tracing.captured.captured import reached_generators
from yota.tracing.intercept import recorded
from yota.tracing.source_lines import users_frames

__all__ = ["compile", "ctrace", "diffrule", "itrace", "load_rules", "play", "trace"]


def trace(
    f: Callable[..., Any], *args: Any, primitives: Collection[Callable[..., Any]] | None = None, **kwargs: Any
) -> tuple[Any, Tape]:
    """Run ``f`` once and record its operations on a tape.

    Parameters
    ----------
    f
        A plain NumPy function.
    *args, **kwargs
        Its arguments; see `grad`.
    primitives
        Functions to record as one op each, in addition to those with rules.

    Returns
    -------
    value
        The result of ``f``.
    tape
        The tape; ``print(tape)`` shows it.

    Examples
    --------
    >>> import numpy as np
    >>> value, tape = trace(lambda x: np.sum(np.exp(x)), np.zeros(3))
    >>> float(value), [op.name for op in tape.ops]
    (3.0, ['exp', 'sum'])
    """
    with users_frames:
        return _recorded(f, args, kwargs, primitives or (), reads=False)


ctrace = trace


def itrace(
    f: Callable[..., Any], *args: Any, primitives: Collection[Callable[..., Any]] | None = None, **kwargs: Any
) -> tuple[Any, Tape]:
    """Run ``f`` once from its source and record its operations on a tape.

    The value and the tape equal those of `trace`, but the source gives more information. Each op and each guard has
    its exact source expression, and assignments name variables. Functions are known wherever they come from, such as
    `math.sin` from a table. ``float(x)`` keeps its derivative. Functions wrapped by `functools.cache` or
    `numpy.vectorize` and the functions of yours that ``f`` calls run from their sources too; Python's standard library,
    NumPy and SciPy run unchanged.

    Parameters
    ----------
    f
        A plain NumPy function with a source.
    *args, **kwargs
        Its arguments; see `grad`.
    primitives
        Functions to record as one op each, in addition to those with rules.

    Returns
    -------
    value
        The result of ``f``.
    tape
        The tape.

    Raises
    ------
    TracingError
        If something cannot be recorded; the message gives file, line and column.

    Examples
    --------
    >>> import numpy as np
    >>> def f(x):
    ...     half = float(x[0]) / 2
    ...     return np.sin(half)
    >>> value, tape = itrace(f, np.array([3.0]))
    >>> [(op.name, op.location.text) for op in tape.ops]
    [('getitem', 'x[0]'), ('positive', 'float(x[0])'), ('divide', 'float(x[0]) / 2'), ('sin', 'np.sin(half)')]
    """
    with users_frames:
        return _recorded(f, args, kwargs, primitives or (), reads=True)


def _recorded(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    primitives: Collection[Callable[..., Any]],
    *,
    reads: bool,
) -> tuple[Any, Tape]:
    function, hidden = with_receiver(function_of(f))
    if reads:
        from yota.tracing.rewriting.interpreted import interpreted

        function = interpreted(function)
    function, args = positional(function, (*hidden, *args), kwargs)
    arguments = on_host(sort_arguments(function, args))
    found = record(
        function,
        arguments.leaves,
        arguments.rebuild,
        registry=registry(),
        primitives=primitives,
        reads=reads,
        generators=reached_generators(function, args),
        statics=arguments.statics,
    )
    return found.value, found.tape


def load_rules(path: Any) -> Sequence[Rule]:
    """Load a rule file, or all ``*.rules`` files of a folder.

    These rules override shipped rules of the same pattern. yota verifies every rule first. The private cache
    (``$YOTA_CACHE_DIR``, or ``yota`` in the user's cache folder) remembers verified files for other processes.

    Parameters
    ----------
    path
        Path of the file or folder.

    Returns
    -------
    sequence of Rule
        The loaded rules.

    Raises
    ------
    RuleError
        If the file has an error; the message gives the place and the correction.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "mine.rules")
    ...     _ = file.write_text('''# yota rules 1
    ... @elementwise
    ... def fifth_power(x: Real) -> y:
    ...     y = x * x * x * x * x
    ... ''')
    ...     [rule.name for rule in load_rules(file)]
    ['fifth_power']
    """
    return registry().load(path, proofs())


def diffrule(text: str) -> Any:
    """Define rules by a text in the rule language.

    Parameters
    ----------
    text
        One or several rules.

    Returns
    -------
    Callable
        The function that the rule defines, for plain and traced arguments; a tuple of functions if the text has
        rules for several.

    Raises
    ------
    RuleError
        If the text has an error.

    Examples
    --------
    >>> cube = diffrule('''
    ... @elementwise
    ... def cube(x: Real) -> y:
    ...     y = x * x * x
    ... ''')
    >>> import yota
    >>> yota.grad(lambda x: cube(x), 2.0)[1][0]
    12.0
    """
    defined = registry().define(text)
    home = sys._getframe(1).f_globals.get("__name__", "")
    several = defined if isinstance(defined, tuple) else (defined,)
    found = tuple(_Ruled((_ruled, (each.name,), {}), recorded(each), home) for each in several)
    return found if isinstance(defined, tuple) else found[0]


class _Ruled(Derived):
    """The function that a rule defines; ``home`` is its module."""

    def __init__(self, recipe: Recipe, function: Callable[..., Any], home: str) -> None:
        super().__init__(recipe, function, call=function)
        self.__module__ = home


def _ruled(name: str) -> Callable[..., Any]:
    """The function of a rule that this process has loaded; used by pickle."""
    return recorded(registry().primitive(name))
