"""The public functions: tracing, differentiating, compiling and updating."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import numpy as np

from yota.arguments import positional, sort_arguments
from yota.calling import caller
from yota.captured import Captured
from yota.device import captor_of, on_host, to_cpu
from yota.differentiated import Differentiated, with_receiver
from yota.errors import ArgumentError, StaleTapeError
from yota.ir.tape import Tape
from yota.layout import Wrt
from yota.result import GradResult
from yota.rules.model import Rule
from yota.rules.registry import registry
from yota.runtime.cache import Table
from yota.runtime.signals import StaleTape
from yota.specialise import Target, compile_tape
from yota.structures import is_on_device
from yota.tracing.intercept import recorded
from yota.tracing.record import record
from yota.tracing.replay import evaluate, stale
from yota.tracing.state import current

__all__ = [
    "compile",
    "ctrace",
    "diffrule",
    "grad",
    "gradient",
    "load_rules",
    "named",
    "play",
    "simplegrad",
    "trace",
    "value_and_grad",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_known = Table(most=128)
"""Differentiated forms that `grad` has made, the latest used last."""


def _differentiated(function: Callable[..., Any], target: Target, dynamic: bool) -> Differentiated:
    plain, hidden = with_receiver(function)
    # A lambda that is written in a loop is a new function in each round, with the same code and captured values.
    key = (getattr(plain, "__code__", plain), target, dynamic, tuple(map(id, hidden)))
    found: Differentiated | None = _known.pop(key, None)
    if found is None:
        found = Differentiated(function, None, target, dynamic=dynamic)
    elif found.function is not plain:
        captured = Captured(plain)
        if not found.captured.agrees(captured):
            found = Differentiated(function, None, target, dynamic=dynamic)
        found.adopt(plain, captured)
    _known.insert(key, found)
    return found


def grad(
    f: Callable[..., Any],
    *args: Any,
    dynamic: bool = False,
    seed: Any = None,
    target: str = "numpy",
    strict: bool = False,
    **kwargs: Any,
) -> tuple[Any, GradResult]:
    """Value of ``f(*args)`` and its gradient by every argument.

    The function is traced, differentiated and compiled at the first call for each combination of dtypes, shapes,
    structure and static values; later calls run the generated code.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    *args
        Arrays, numbers, or structures of them. Python ints, bools, strings, None and callables are static.
    dynamic
        Whether to trace again when a branch on traced data goes another way than recorded. Up to 1024 tapes are
        kept for one kind of arguments, and chosen among without tracing; past that they are forgotten.
    seed
        The derivative of the final result by the value of ``f``, of the value's shape; one by default. With a
        seed ``f`` may return an array.
    target
        What to generate code for: ``"numpy"``; ``"c"``, which needs a C compiler; or ``"cuda"``, which arrays of
        CuPy's choose by themselves.
    strict
        Whether the value must be bitwise what NumPy gives for ``f(*args)``.
    **kwargs
        Keyword arguments of ``f``.

    Returns
    -------
    value
        What ``f(*args)`` gives, of the same type: a NumPy scalar from NumPy's functions, a Python float from
        arithmetic on Python floats.
    g
        `GradResult`: ``g[0]`` is the gradient by the first argument, in its shape and dtype; a dict from field path
        to array for a structure; None for an argument without derivative. By a complex ``z`` it is
        ``dL/dRe(z) + i dL/dIm(z)``.

    Raises
    ------
    ArgumentError, TracingError, MissingRuleError, DifferentiationError, StaleTapeError
        See `yota.errors`; exceptions of ``f`` itself come through unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> val, g = grad(lambda x: np.sum(x**2), np.array([1.0, 2.0, 3.0]))
    >>> float(val), g[0]
    (14.0, array([2., 4., 6.]))
    """
    if seed is not None:

        def seeded(weights: Any, *arguments: Any, **keywords: Any) -> Any:
            return np.sum(np.real(np.conjugate(weights) * f(*arguments, **keywords)))

        weights = seed if is_on_device(seed) else np.asarray(seed)
        _, g = grad(seeded, weights, *args, dynamic=dynamic, target=target, strict=strict, **kwargs)
        return f(*args, **kwargs), GradResult(g.gradients[1:], g.tape, g.source)
    form = _differentiated(f, Target(target, strict), dynamic)
    if current() is not None:
        value, gradients = form.traced(args, kwargs)
        return value, GradResult(gradients, Tape("", (), {}, (), (), {}), "")
    prepared, function, positions, leaves = form.prepare(args, kwargs)
    (value, gradients), chosen = prepared(function, positions, leaves)
    captor = captor_of(prepared, chosen, leaves) if prepared.target.name == "cuda" else None
    return value, GradResult(gradients, chosen.gradient.tape, chosen.source, captor)


def value_and_grad(
    f: Callable[..., Any],
    wrt: Wrt = 0,
    *,
    target: str = "numpy",
    strict: bool = False,
    dynamic: bool = False,
    args: Any = None,
) -> Callable[..., tuple[Any, Any]]:
    """A function that gives the value of ``f`` and its gradient, fit for ``scipy.optimize.minimize(..., jac=True)``.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    wrt
        What to differentiate by: an argument's position or name, or a tuple of them.
    target, strict, dynamic
        See `grad`.
    args
        Specs of the arguments in which sizes have names, such as ``{"x": "float64[N,3]"}`` (see `yota.generate`). The
        function is then compiled here and now for all sizes, and never traced again when one changes.

    Returns
    -------
    Callable
        Takes the arguments of ``f``; gives ``(value, gradient)``, the gradient a tuple if ``wrt`` is one.

    Raises
    ------
    ArgumentError
        With ``args``: if the function takes other steps when a size changes, as a loop over it or a branch on it
        does; the message names the line.

    Examples
    --------
    >>> import numpy as np
    >>> fg = value_and_grad(lambda x: np.sum(np.sin(x)))
    >>> value, gradient = fg(np.zeros(2))
    >>> gradient
    array([1., 1.])
    >>> fg = value_and_grad(lambda x: np.mean(x**2), args={"x": "float64[N]"})
    >>> fg(np.ones(2))[1], fg(np.ones(4))[1]
    (array([1., 1.]), array([0.5, 0.5, 0.5, 0.5]))
    """
    # A batched function exists only once its module is loaded, which brings much of the code generation with it.
    batching = sys.modules.get("yota.batching")
    if batching is not None and isinstance(f, batching.Batched):
        target_ = Target(target, strict)
        many: Callable[..., tuple[Any, Any]] = f.mapped(lambda one: value_and_grad(one, wrt, strict=strict), target_)
        return many
    if args is not None:
        return _for_all_sizes(f, wrt, target, strict, dynamic, args)
    form = Differentiated(f, wrt, Target(target, strict), dynamic=dynamic)
    return named(caller(form), f, "value and gradient")


def _for_all_sizes(
    f: Callable[..., Any], wrt: Wrt, target: str, strict: bool, dynamic: bool, args: Any
) -> Callable[..., tuple[Any, Any]]:
    from yota.allsizes import AllSizes, check_options

    check_options(target, dynamic)
    form = AllSizes(f, args, wrt, strict=strict)

    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return form(*args, **kwargs)

    return named(value_and_gradient, f, "value and gradient")


def gradient(
    f: Callable[..., Any],
    wrt: Wrt = 0,
    *,
    target: str = "numpy",
    strict: bool = False,
    dynamic: bool = False,
    args: Any = None,
) -> Callable[..., Any]:
    """A function that gives the gradient of ``f`` alone; see `value_and_grad`.

    Examples
    --------
    >>> import numpy as np
    >>> gradient(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    both = value_and_grad(f, wrt, target=target, strict=strict, dynamic=dynamic, args=args)

    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return named(gradient_of, f, "gradient")


def named(wrapper: _Function, f: Callable[..., Any], what: str) -> _Function:
    """``wrapper`` with the name and the signature of ``f``."""
    name = getattr(f, "__name__", type(f).__name__)
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__ = f"The {what} of {name}."
    # So that its signature is that of `f`.
    wrapper.__wrapped__ = f  # type: ignore[attr-defined]
    return wrapper


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
    function, hidden = with_receiver(f)
    function, args = positional(function, (*hidden, *args), kwargs)
    arguments = on_host(sort_arguments(function, args))
    found = record(
        function,
        arguments.leaves,
        arguments.rebuild,
        registry=registry(),
        primitives=primitives or (),
        around=Captured(function).surroundings(args),
    )
    return found.value, found.tape


ctrace = trace


def play(tape: Tape, *args: Any) -> Any:
    """Evaluate a tape op by op with NumPy, on arguments of the types it was recorded with.

    Returns
    -------
    object
        The value, or a tuple if the function returned one.

    Raises
    ------
    ArgumentError
        If the arguments are of other types.
    StaleTapeError
        If a branch on traced data goes another way.

    Examples
    --------
    >>> value, tape = trace(lambda x: x * x, 3.0)
    >>> play(tape, 5.0)
    25.0
    """
    values = to_cpu(_inputs(tape, args))
    results = evaluate(tape, dict(zip((entry.variable for entry in tape.inputs), values, strict=True)))
    return results[0] if len(results) == 1 else tuple(results)


def compile(tape: Tape, target: str = "numpy", *, strict: bool = False) -> Callable[..., Any]:
    """A fast function that computes what the tape does.

    Parameters
    ----------
    tape
        From `trace`.
    target, strict
        See `grad`.

    Returns
    -------
    Callable
        Takes the arguments of the traced function; its ``source`` attribute is the generated code.

    Examples
    --------
    >>> value, tape = trace(lambda x: x * x, 3.0)
    >>> compile(tape)(5.0)
    25.0
    """
    call, source = compile_tape(tape, Target(target, strict))
    direct = [entry.argument for entry in tape.inputs] == list(range(len(tape.inputs))) and not tape.guards
    kinds = [
        float if type_.weak else (type_.dtype, type_.shape)
        for type_ in (tape.types[entry.variable] for entry in tape.inputs)
    ]
    array = np.ndarray

    def compiled(*args: Any) -> Any:
        if direct and [(a.dtype, a.shape) if type(a) is array else type(a) for a in args] == kinds:
            return call(*args)
        try:
            return call(*_inputs(tape, args))
        except StaleTape as signal:
            raise stale(tape.guards[signal.index], signal.value, signal.index) from None

    compiled.source = source  # type: ignore[attr-defined]
    compiled.__name__ = compiled.__qualname__ = tape.name
    return compiled


def _inputs(tape: Tape, args: tuple[Any, ...]) -> list[Any]:
    """The leaves of a call in the order of the tape's inputs, of the types that the tape has."""
    found: list[Any] = []
    for entry in tape.inputs:
        if entry.argument >= len(args):
            raise ArgumentError(f"{tape.name} misses argument {entry.argument + 1}, {entry.name}")
        value = args[entry.argument]
        for key in entry.path:
            value = getattr(value, key) if isinstance(key, str) and hasattr(value, key) else value[key]
        found.append(_fitting(tape, entry.variable, entry.name, value))
    return found


def _fitting(tape: Tape, variable: int, name: str, value: Any) -> Any:
    type_ = tape.types[variable]
    if type_.weak and type(value) in (float, int):
        return type_.dtype.type(value).item()
    array = value if is_on_device(value) else np.asarray(value)
    if array.shape != type_.shape or array.dtype != type_.dtype:
        given = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise ArgumentError(f"argument {name} of {tape.name} is {given}, but the tape was recorded with {type_}")
    return value


def _repr_html_(tape: Tape) -> str:
    """What a notebook shows of a tape."""
    from yota.report.notebook import tape_html

    return tape_html(tape)


# The intermediate representation knows neither evaluation nor code generation nor pages; its tapes offer all the same.
for _method in (play, compile, _repr_html_):
    setattr(Tape, _method.__name__, _method)


class SimpleGradient:
    """A compiled gradient for arguments of one kind: ``val, d0, d1 = dloss(*args)``; ``dloss.source`` is its code."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], target: Target) -> None:
        form = Differentiated(f, None, target, dynamic=False)
        self._captured, self._outdated = form.captured, False
        self._prepared, self._function, *_ = form.prepare(args, {})
        self._hidden = form.hidden
        self.tape = self._prepared.root.gradient.tape
        self.source = self._prepared.root.source
        self.__name__ = getattr(f, "__name__", type(f).__name__)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        self._outdated = self._outdated or (bool(self._captured) and self._captured.changed())
        if self._outdated:
            raise StaleTapeError(
                f"what {self.__name__} reads from outside has changed since it was compiled. Call simplegrad again, or "
                "use yota.value_and_grad, which notices."
            )
        args = (*self._hidden, *args)
        # Checked first: the generated code trusts its inputs.
        leaves = _inputs(self.tape, args)
        (value, gradients), _ = self._prepared(self._function, args, leaves)
        return (value, *gradients)

    def __repr__(self) -> str:
        return f"<gradient of {self.__name__}>"


def simplegrad(f: Callable[..., Any], *args: Any, target: str = "numpy", strict: bool = False) -> SimpleGradient:
    """Compile the gradient of ``f`` for arguments like ``args``, once and for all.

    Returns
    -------
    SimpleGradient
        Called with such arguments it gives ``(value, d0, d1, ...)``; ``.source`` is the generated code.

    Raises
    ------
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
    return SimpleGradient(f, args, Target(target, strict))


def load_rules(path: Any) -> Sequence[Rule]:
    """Load a rule file, or all ``*.rules`` files of a folder; its rules override shipped ones of the same pattern.

    Every rule is proved first. That its text was proved beside the rules that were there is remembered in the private
    cache (``$YOTA_CACHE_DIR``, or ``yota`` in the user's cache folder), so that the next process need not do it again.

    Raises
    ------
    RuleError
        If the file has a fault; the message says where and how to mend it.
    """
    import yota
    from yota.runtime.proofs import Proofs

    return registry().load(path, Proofs(yota.__version__))


def diffrule(text: str) -> Any:
    """Add rules from a text in the rule language.

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
    >>> grad(lambda x: cube(x), 2.0)[1][0]
    12.0
    """
    defined = registry().define(text)
    return tuple(map(recorded, defined)) if isinstance(defined, tuple) else recorded(defined)
