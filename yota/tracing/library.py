"""What libraries' functions are recorded as, gathered; and the places of those that do not dispatch."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing import python_math, subclassed  # noqa: F401  (they register what they implement or record)
from yota.tracing.implementations import ALWAYS, CALLING, FORMS, register_loaded, when_loaded
from yota.tracing.intercept import on_traced
from yota.tracing.numpy import (  # noqa: F401  (likewise)
    algebra,
    coefficients,
    linalg,
    padding,
    reductions,
    sampled_signals,
    selection,
    shapes,
    ufuncs,
)
from yota.tracing.trace import Trace

_HARMLESS = frozenset(
    "overwrite_a overwrite_A overwrite_b overwrite_x overwrite_data check_finite lapack_driver driver lwork turbo "
    "workers prefilter irlen".split()
)
"""Parameters of SciPy's functions that say how it is computed, and not what."""
_OF_ITERABLES = ("fsum", "prod", "sumprod", "dist")
"""Functions of `math` that do, as all of `statistics`."""


@when_loaded("scipy")
def _of_scipy() -> None:
    import yota.tracing.scipy  # noqa: F401  (its files register what they record)


@when_loaded("sklearn")
def _of_sklearn() -> None:
    import yota.tracing.sklearn  # noqa: F401


@when_loaded("bottleneck")
def _of_bottleneck() -> None:
    import yota.tracing.bottleneck  # noqa: F401


def replacements() -> list[tuple[Any, str, Any]]:
    """``(owner, name, recording function)`` for those of the functions whose modules are loaded."""
    register_loaded()
    found: list[tuple[Any, str, Any]] = []
    for module, name in (*FORMS, *CALLING):
        owner, original = _original(module, name)
        if original is not None:
            found.append((owner, name.rpartition(".")[2], _recording(module, name)))
    if "scipy.stats._kde" in sys.modules:
        from yota.tracing.scipy import multivariate

        found += multivariate.estimates(sys.modules["scipy.stats._kde"])
    return found


def _original(module: str, name: str) -> tuple[Any, Any]:
    """The module that has a function, or the class or dictionary in it, and the function; None where there is none."""
    owner, _, last = name.rpartition(".")
    found = sys.modules.get(module)
    found = getattr(found, owner, None) if owner else found
    if found is None:
        return None, None
    return found, found.get(last) if isinstance(found, dict) else getattr(found, last, None)


@functools.cache
def _recording(module: str, name: str) -> Any:
    owner, original = _original(module, name)
    if (module, name) in CALLING:
        from yota.tracing.scipy.callbacks import calling

        return calling(original, CALLING[module, name])
    form = FORMS[module, name]
    if module.startswith("scipy."):
        form = _bound(f"{module}.{name}", original, form)
    collects = module == "statistics" or (module == "math" and name in _OF_ITERABLES)
    # Kernels of sparse matrices write what they compute into arrays that they are given; classes make no arrays.
    path = None if module.startswith("scipy.sparse.") or isinstance(original, type) else f"{module}.{name}"
    always = (module, name) in ALWAYS
    return on_traced(original, form, path, collects=collects, of_object=isinstance(owner, type), always=always)


def _bound(path: str, original: Callable[..., Any], form: Callable[..., Any]) -> Callable[..., Any]:
    """``form`` with the arguments that it names, by SciPy's defaults; others are refused, unless it takes any."""
    wanted = inspect.signature(form).parameters
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in wanted.values()):
        return form
    try:
        signature = inspect.signature(original)
    except (TypeError, ValueError):
        return form

    def bound(trace: Trace, *args: Any, **keywords: Any) -> Any:
        found = signature.bind(*args, **keywords)
        found.apply_defaults()
        more = found.arguments.pop("kwargs", {})
        given = {**found.arguments, **more}
        others = [each for each in given if each not in wanted and each not in _HARMLESS]
        refused = [each for each in others if not _is_default(signature, each, given[each])]
        if refused:
            raise trace.unrecorded(f"{path} with {', '.join(refused)}", "Leave it out.")
        return form(trace, **{name: value for name, value in given.items() if name in wanted})

    return bound


def _is_default(signature: inspect.Signature, name: str, value: Any) -> bool:
    parameter = signature.parameters.get(name)
    default = None if parameter is None else parameter.default
    return value is default or (
        type(value) is type(default) and isinstance(value, (int, float, str)) and value == default
    )
