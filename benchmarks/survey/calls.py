"""A call as the text of a function of its floating arguments."""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import yota.structures
from benchmarks.survey.examples import Observed
from benchmarks.survey.public import resolved

__all__ = ["Call", "call_of", "floating", "parts", "total_of"]

_DEEPEST = 3
_NUMBERS = itertools.count()
_EXACT = {
    "scipy.integrate.odeint": "rtol=1e-11, atol=1e-12",
    "scipy.integrate.solve_ivp": "rtol=1e-10, atol=1e-12, t_eval=np.linspace(*{1}, 5)",
}
"""Arguments with which results do not depend on how long the steps of a solver are, by the other arguments."""


@dataclass
class Call:
    """An expression of arguments that move, ``p0``, ..., and of others that stay, ``c0``, ..."""

    name: str
    text: str
    given: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    prepared: str = ""
    """A statement before, where the function writes into an argument."""

    def function(self, names: list[str], total: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The call as a function of some of its arguments."""
        space = {each: sys.modules.get(each) for each in ("numpy", "scipy", "sklearn")} | {"np": np} | self.fixed
        space |= {name: value for name, value in self.given.items() if name not in names}
        inner = f"total({self.text})" if total else self.text
        source = f"def call({', '.join(names)}):\n{self.prepared}    return {inner}\n"
        place = f"<{self.name}: call {next(_NUMBERS)}>"
        linecache.cache[place] = (len(source), None, source.splitlines(True), place)
        space["total"] = total
        exec(compile(source, place, "exec"), space)
        return space["call"]


def call_of(observed: Observed) -> Call:
    """The call that was observed, as a text."""
    call = Call(observed.name, "")
    call.text = _expression(observed, call, 0)
    return call


def _expression(observed: Observed, call: Call, depth: int) -> str:
    return f"{_callee(observed, call, depth)}({_arguments(observed, call)})"


def _callee(observed: Observed, call: Call, depth: int) -> str:
    method = observed.name.rpartition(".")[2]
    if observed.maker is not None and depth < _DEEPEST and not observed.maker.name.endswith((".fit", ".fit_transform")):
        inner = _expression(observed.maker, call, depth + 1)
        return inner if method == "__call__" else f"{inner}.{method}"
    try:
        # A method of a class that is called on an instance is not found by its name.
        function = resolved(observed.name)
        same = function is observed.function or function == observed.function
    except AttributeError:
        same = False
    if same:
        return observed.name
    name = f"o{len(call.fixed)}"
    call.fixed[name] = observed.owner
    return name if method == "__call__" else f"{name}.{method}"


def _arguments(observed: Observed, call: Call) -> str:
    texts = [_argument(value, call) for value in observed.arguments]
    named = {key: value for key, value in observed.keywords.items() if f"{key}=" not in _EXACT.get(observed.name, "")}
    texts += [f"{key}={_argument(value, call)}" for key, value in named.items()]
    return ", ".join([*texts, *filter(None, [_EXACT.get(observed.name, "").format(*texts)])])


def _argument(value: Any, call: Call) -> str:
    if type(value) is np.ma.MaskedArray and value.dtype.kind in "fc":
        parts = _argument(value.data.copy(), call), _argument(np.ma.getmaskarray(value), call)
        return "np.ma.array({}, mask={}, fill_value={!r}, copy=True)".format(*parts, value.fill_value.item())
    if moves(value):
        name = f"p{len(call.given)}"
        call.given[name] = _without_whole(value)
        return name
    if value is None or (isinstance(value, (bool, int, str)) and len(repr(value)) < 40):
        return repr(value)
    name = f"c{len(call.fixed)}"
    call.fixed[name] = value
    return name


def moves(value: Any) -> bool:
    """Whether an argument holds numbers of floating point."""
    try:
        return any(is_moving(leaf) for _, leaf in yota.structures.flatten(value))
    except Exception:  # noqa: BLE001  (it is no structure)
        return False


def _without_whole(value: Any) -> Any:
    """A list in which some numbers are of floating point has all of them so."""
    if type(value) not in (list, tuple):
        return value
    plain = any(isinstance(each, (float, complex, np.generic)) for each in value)
    return type(value)(float(each) if plain and type(each) is int else _without_whole(each) for each in value)


def is_moving(leaf: Any) -> bool:
    return yota.structures.is_leaf(leaf) and np.asarray(leaf).dtype.kind in "fc" and np.size(leaf) > 0


def parts(result: Any, depth: int = 0) -> Iterator[Any]:
    """The parts of a result, in order."""
    inner = _inner(result, depth)
    if inner is not None:
        for each in inner:
            yield from parts(each, depth + 1)
    elif hasattr(result, "tocoo"):
        yield result.tocoo().data
    elif result is not None:
        yield result


def _inner(result: Any, depth: int) -> list[Any] | None:
    """The parts of a structure or of an object that holds results; None for anything else."""
    if isinstance(result, (tuple, list)):
        return list(result)
    if isinstance(result, dict):
        return list(result.values())
    if isinstance(result, type) or hasattr(result, "dtype"):
        return None
    if dataclasses.is_dataclass(result):
        return [getattr(result, each.name, None) for each in dataclasses.fields(result)]
    if depth < 1 and type(result).__name__.endswith("Result"):
        return [each for name, each in vars(result).items() if not name.startswith("_")]
    return None


def floating(value: Any) -> bool:
    """Whether a part of a result is of floating point."""
    kind = getattr(
        getattr(value, "dtype", None),
        "kind",
        "f" if isinstance(value, (float, complex)) else "",
    )
    return kind in ("f", "c") and not isinstance(value, type)


def total_of(plain: Any, name: str = "") -> Callable[[Any], Any]:
    """A real number of a result: its parts with weights, those that are infinite or NaN left out.

    Phases of complex eigenvectors and singular vectors are a convention (docs/kinks.md); sizes do not depend on it.
    """
    sizes = name.rpartition(".")[2] in ("eig", "eigh", "svd")
    found = list(parts(plain))
    weights: list[Any] = []
    for number, each in enumerate(found):
        if not floating(each) or not np.size(each):
            weights.append(None)
            continue
        finite = np.asarray(np.isfinite(np.ma.filled(each, np.nan) if isinstance(each, np.ma.MaskedArray) else each))
        weight = np.cos(np.arange(np.size(each)).reshape(np.shape(each)) + number)
        weights.append((np.where(finite, weight, 0.0), None if finite.all() else finite, np.shape(each)))

    def total(result: Any) -> Any:
        value = 0.0
        for each, weight in zip(parts(result), weights, strict=False):
            if weight is not None:
                factor, finite, shape = weight
                if np.shape(each) != shape:
                    raise ValueError("the result has another shape")
                real = each = np.ma.filled(each, 0.0) if isinstance(each, np.ma.MaskedArray) else each
                if np.iscomplexobj(each):
                    real = np.abs(each) if sizes else np.real(each) + 0.5 * np.imag(each)
                value = value + np.sum(factor * (real if finite is None else np.where(finite, real, 0.0)))
        return value

    return total
