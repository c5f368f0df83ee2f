"""The public functions that start from a user's text or function: tracing, and rules of one's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from yota.compilation.arguments import function_of, positional, sort_arguments
from yota.compilation.device import on_host
from yota.compilation.playing import compile, play
from yota.derivatives.differentiated import with_receiver
from yota.ir.callables import Derived, Recipe
from yota.ir.tape import Tape
from yota.rules.model import Rule
from yota.rules.registry import registry
from yota.tapes import proofs
from yota.tracing.intercept import recorded
from yota.tracing.record import record
from yota.tracing.tracebacks import users_frames
from yota.watching.captured import Captured

__all__ = ["compile", "ctrace", "diffrule", "itrace", "load_rules", "play", "trace"]


def trace(
    f: Callable[..., Any], *args: Any, primitives: Collection[Callable[..., Any]] | None = None, **kwargs: Any
) -> tuple[Any, Tape]:
    """Run ``f`` once and record what it does.

    Parameters
    ----------
    f
        A plain NumPy function.
    *args, **kwargs
        Its arguments; see `grad`.
    primitives
        Further functions to be recorded as one op each, besides those that have rules.

    Returns
    -------
    value
        What ``f`` returned.
    tape
        The recording; ``print(tape)`` shows it.

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
    """Run ``f`` once by an interpreter of its source and record what it does.

    Value and tape are those of `trace`, but the source shows what operators cannot: each op and each guard knows the
    exact expression that it comes from; variables have the names that they are assigned to; functions are known
    wherever they come from, a `math.sin` out of a table as well as ``np.sin``; ``float(x)`` keeps its derivative; what
    `functools.cache` or `numpy.vectorize` wrapped outside is looked into. The functions of yours that ``f`` calls are
    interpreted too; those of Python's own library, of NumPy and of SciPy run as they are.

    Parameters
    ----------
    f
        A plain NumPy function with a source.
    *args, **kwargs
        Its arguments; see `grad`.
    primitives
        Further functions to be recorded as one op each, besides those that have rules.

    Returns
    -------
    value
        What ``f`` returned.
    tape
        The recording.

    Raises
    ------
    TracingError
        If something cannot be recorded, or is not known to the interpreter; the message names file, line and column.

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
        from yota.tracing.interpreter.entry import interpreted

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
        around=Captured(function).surroundings(args),
        statics=arguments.statics,
    )
    return found.value, found.tape


def load_rules(path: Any) -> Sequence[Rule]:
    """Load a rule file, or all ``*.rules`` files of a folder; its rules override shipped ones of the same pattern.

    Every rule is proved first. That its text was proved beside the rules that were there is remembered in the private
    cache (``$YOTA_CACHE_DIR``, or ``yota`` in the user's cache folder), so that the next process need not do it again.

    Parameters
    ----------
    path
        Of the file or the folder.

    Returns
    -------
    sequence of Rule
        The rules that were loaded.

    Raises
    ------
    RuleError
        If the file has a fault; the message says where and how to mend it.

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
    """Add rules from a text in the rule language.

    Parameters
    ----------
    text
        One rule or several.

    Returns
    -------
    Callable
        The function that the rule describes, for plain and traced arguments; a tuple of them if the text has rules
        for several.

    Raises
    ------
    RuleError
        If the text has a fault.

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
    """The function that a rule describes; ``home`` is the module that has it."""

    def __init__(self, recipe: Recipe, function: Callable[..., Any], home: str) -> None:
        super().__init__(recipe, function, call=function)
        self.__module__ = home


def _ruled(name: str) -> Callable[..., Any]:
    """The function of a rule that this process has too."""
    return recorded(registry().primitive(name))
