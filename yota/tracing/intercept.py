"""Functions that are recorded where they are given traced values: primitives by their rules, others by their forms."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import RuleError, TracingError
from yota.ir.primitive import Primitive
from yota.rules.language import statics
from yota.rules.language.model import Literal, Parameter, Rule
from yota.structures import package_of
from yota.tracing.current import current
from yota.tracing.exact import record_call
from yota.tracing.methods import as_traced, collected, is_traced, is_tracer
from yota.tracing.patching import Patch

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


def bind(trace: Trace, known: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record ``known(*args, **kwargs)`` by the signature that its rule declares."""
    rule = trace.registry.rules(known.name)[0]
    fixed = [each for each in rule.operands if not each.variadic]
    absent = [each for each in fixed[len(args) :] if each.name not in kwargs]
    if any(each.default is None for each in absent):
        raise TypeError(f"{known.name}() misses the argument {absent[0].name!r}")
    if absent and rule.target is not None:
        _refuse_other_defaults(trace, rule, known.function, absent)
    try:
        operands, static = statics.bind(rule, list(args), kwargs)
    except RuleError as fault:
        names = ", ".join(parameter.name for parameter in rule.parameters)
        raise trace.refuse(
            f"the rule of {known.name} does not know this call: {fault}.", f"It takes {names}."
        ) from None
    return trace.apply(known, operands, {name: hashable(trace, value) for name, value in static.items()})


def _refuse_other_defaults(trace: Trace, rule: Rule, function: Any, absent: Sequence[Parameter]) -> None:
    """Refuse a call that leaves out operands whose defaults are others in the function than in its rule."""
    for parameter in absent:
        assert isinstance(parameter.default, Literal)
        try:
            own = inspect.signature(function).parameters[parameter.name].default
        except (TypeError, ValueError, KeyError):
            continue
        if not (isinstance(own, (int, float)) and own == parameter.default.value):
            raise trace.refuse(
                f"{rule.target} has {parameter.name}={own!r} by default, and its rule ({rule.file}:{rule.line}) "
                f"{parameter.default.value!r}.",
                f"Write the function's own default into the rule, or pass {parameter.name}.",
            )


def hashable(trace: Trace, value: Any) -> Any:
    """A static value that can be part of an op."""
    if is_tracer(value):
        if value.dtype.kind in "iub" and not value.ndim:
            return int(value)
        raise trace.refuse("a traced value is given where a static keyword is expected.", "Pass a plain number.")
    if isinstance(value, (list, tuple)):
        return tuple(hashable(trace, item) for item in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(hashable(trace, item) for item in value.tolist())
    hash(value)
    return value


def opaque(function: Callable[..., Any]) -> Primitive:
    """A primitive for a function that no rule describes; it can be recorded, not differentiated."""
    module = getattr(function, "__module__", "") or ""
    name = getattr(function, "__name__", type(function).__name__)
    return Primitive(name, f"{module}.{name}", False, function)


def interceptions(known: Iterable[Primitive]) -> tuple[Mapping[int, Any], Sequence[Patch]]:
    """Recording functions by the identity of what they stand for, and their places in the packages that have them."""
    return _intercepted(tuple(known), len(sys.modules))


@functools.lru_cache(4)
def _intercepted(known: tuple[Primitive, ...], modules: int) -> tuple[Mapping[int, Any], Sequence[Patch]]:
    """The same, looked for again when more modules are loaded."""
    forms = {id(primitive.function): recorded(primitive) for primitive in known}
    homes = set(map(package_of, forms.values()))
    found = [
        Patch(names, name, value, forms[id(value)])
        for names in (
            getattr(module, "__dict__", {}) for each, module in list(sys.modules.items()) if package_of(each) in homes
        )
        for name, value in list(names.items())
        if id(value) in forms
    ]
    return forms, found


def recorded(known: Primitive) -> Callable[..., Any]:
    """A function that computes ``known`` on plain values, and records it as one op on traced ones."""

    def form(trace: Trace, *args: Any, **keywords: Any) -> Any:
        if trace.registry.knows(known.name):
            return bind(trace, known, args, keywords)
        return trace.apply(known, args, {name: hashable(trace, value) for name, value in keywords.items()})

    found: Callable[..., Any] = on_traced(known.function, form)
    return found


def on_traced(
    original: Callable[..., Any],
    form: Callable[..., Any],
    path: str | None = None,
    *,
    collects: bool = False,
    of_object: bool = False,
    always: bool = False,
) -> Any:
    """A function that computes ``original`` on plain values, and is recorded by ``form`` on traced ones.

    form: records a call; it takes the trace first.
    path: the dotted name by which a recording that must have NumPy's bits calls the function; None if it has none.
    collects: whether the function takes the items of any iterable.
    of_object: whether its first argument is an object whose attributes it reads.
    always: whether calls on plain values are recorded too.
    """

    @functools.wraps(original, updated=() if isinstance(original, type) else functools.WRAPPER_UPDATES)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        if trace is None:
            return original(*args, **keywords)
        if collects:
            args = tuple(map(collected, args))
        held = [*getattr(args[0], "__dict__", {}).values()] if of_object and args else []
        held += [
            getattr(each, "data", None) for each in args if str(type(each).__module__).startswith("scipy.sparse._")
        ]
        if not (always or is_traced([*args, *keywords.values(), *held])):
            try:
                return original(*args, **keywords)
            except (TracingError, ValueError):  # NumPy takes plain arrays alone from the `__array__` of an object
                given = [as_traced(each) for each in args]
                if not is_traced(given):
                    raise
                trace.refused = None
            return call(*given, **keywords)
        if trace.exact and path is not None:
            found = record_call(trace, original, args, keywords, path)
            if found is not NotImplemented:
                return found
        return form(trace, *args, **keywords)

    call.recorded_from = original  # type: ignore[attr-defined]
    return call
