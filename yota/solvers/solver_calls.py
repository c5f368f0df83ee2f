"""Calls of SciPy's functions that take functions: what is called, what is traced, and the call with plain values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from yota.ir.serialised import Carried
from yota.solvers.carried_arguments import written
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Function, Inner
from yota.tracing.methods import is_traced, is_tracer
from yota.tracing.scipy.callbacks import inside
from yota.tracing.trace import Trace


class Operand(Carried):
    """Stands for a traced value among arguments."""

    def __init__(self, number: int) -> None:
        self.number = number


_UNPACKING = ("newton", "solve_ivp")
"""Solvers that pass the items of a list ``args`` as arguments; to others a list is one argument."""
_BROADCASTING = ("tanhsinh",)
"""Those that pass ``args`` as arrays which they have broadcast, and of which they take parts."""


class Callback(Carried):
    """Stands for a function among arguments."""

    def __init__(self, number: int) -> None:
        self.number = number


class Call(Carried):
    """A call of a solver.

    args, keywords: what it is called with, traced values among them; ``given`` are these by parameter.
    called: parameters that are functions of what is solved for, where they are functions.
    before: a function of the solution that the solver itself does not call, in the place of the first one.
    lifted: parameters whose arrays are operands, whether they are traced or not.
    others: traced values among the arguments.
    """

    def __init__(
        self,
        trace: Trace,
        original: Callable[..., Any],
        args: Sequence[Any],
        keywords: dict[str, Any],
        called: Sequence[str],
        before: Callable[..., Any] | None = None,
        lifted: Sequence[str] = (),
    ) -> None:
        self.trace, self.original = trace, inspect.unwrap(original)
        self.name = f"{_module(self.original)}.{self.original.__name__}"
        bound = inspect.signature(self.original).bind(*args, **keywords)
        bound.apply_defaults()
        self.arguments = bound.arguments
        self.given = dict(bound.arguments)
        for name in lifted:
            if isinstance(self.arguments[name], np.ndarray):
                self.arguments[name] = trace.traced(self.arguments[name])
        self.inner = Inner(trace)
        self.others: list[Any] = []
        more = self.arguments.get("args")
        unpacks = isinstance(more, list) and self.original.__name__ in _UNPACKING
        more = () if more is None else tuple(more) if unpacks or isinstance(more, tuple) else (more,)
        if self.original.__name__ in _BROADCASTING:
            more = ()
        elif "args" in self.arguments:
            self.arguments["args"] = ()
        if before is not None:
            Function(self.inner, before)
        for name in called:
            holder = self.arguments if name in self.arguments else self.arguments.get("options") or {}
            function = holder.get(name)
            several = self.arguments.get({"f": "fprime", "fun": "jac"}.get(name, "")) is True
            # `fmin_l_bfgs_b` and `fmin_tnc` ask by the absence of both.
            several |= self.arguments.get("approx_grad") == 0 and name == "func" and self.arguments["fprime"] is None
            several |= name == "bc_jac" or (name == "fun_jac" and self.arguments["p"] is not None)
            if name == "constraints":
                holder[name] = [self._constraint(each) for each in listed(function)]
            elif callable(function):
                holder[name] = self._called(function, more, several=several)
            elif name == "events" and function:
                holder[name] = [self._called(each, more) for each in function]
        self.arguments.update({name: self._placed(value) for name, value in self.arguments.items()})
        self._args, self._keywords = bound.args, bound.kwargs

    def state(self) -> dict[str, Any]:
        """See `Carried.state`; without arguments that are defaults, which may be objects of SciPy's."""
        defaults = inspect.signature(self.original).parameters
        given = {name: each for name, each in self.arguments.items() if each is not defaults[name].default}
        arguments = {name: written(each, f"{name} of {self.name}") for name, each in given.items()}
        return {"name": self.name, "original": written(self.original, self.name), "arguments": arguments}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Any:
        """See `Carried.restored`."""
        solver = inspect.unwrap(state["original"])
        bound = inspect.BoundArguments(inspect.signature(solver), state["arguments"])
        bound.apply_defaults()
        known = {"arguments": bound.arguments, "_args": bound.args, "_keywords": bound.kwargs}
        return super().restored({**state, "original": solver, **known})

    def _called(self, function: Callable[..., Any], more: Sequence[Any], *, several: bool = False) -> Callback:
        Function(self.inner, _with(function, more), several=several)
        return Callback(len(self.inner.functions) - 1)

    def _constraint(self, constraint: Any) -> Any:
        """A constraint of ``minimize`` whose functions are those that the solver calls."""
        more = constraint.get("args", ()) if isinstance(constraint, dict) else ()
        found = inside(constraint, lambda each: self._called(each, more) if callable(each) else each)
        return {**found, "args": ()} if isinstance(constraint, dict) else found

    def _placed(self, value: Any) -> Any:
        """``value`` with a place for each traced value in it; a sparse matrix that holds some is an array."""
        if hasattr(value, "toarray") and is_traced(value.data):
            value = value.toarray()
        if is_tracer(value):
            self.others.append(value)
            return Operand(len(self.others) - 1)
        if isinstance(value, (list, tuple)) and is_traced(value):
            self.others.append(self.trace.traced(value) if _is_regular(value) else None)
            if self.others[-1] is not None:
                return Operand(len(self.others) - 1)
            self.others.pop()
            return type(value)([self._placed(each) for each in value])
        if isinstance(value, list) and any(hasattr(each, "lb") for each in value):
            return [self._placed(each) for each in value]
        if isinstance(value, dict):
            return {key: self._placed(each) for key, each in value.items()}
        if hasattr(value, "lb"):
            return inside(value, self._placed)
        return value

    def run(self, functions: Sequence[Callable[..., Any]], *others: Any, **instead: Any) -> Any:
        """What SciPy gives for these functions, and these values in the place of traced ones.

        Further keywords are for parameters that are to be something else.
        """
        args, names = [_filled(each, functions, others) for each in self._args], list(self.arguments)
        for name in instead.keys() & set(names[: len(args)]):
            args[names.index(name)] = instead.pop(name)
        return self.original(*args, **{**_filled(self._keywords, functions, others), **instead})

    def value(self, name: str, functions: Sequence[Callable[..., Any]], others: Sequence[Any]) -> Any:
        """An argument, for these functions, and these values in the place of traced ones."""
        return _filled(self.arguments[name], functions, others)

    def is_placed(self, name: str) -> bool:
        """Whether there is a traced value in an argument."""
        return _has_place(self.arguments.get(name))

    def operand(self, name: str) -> Any:
        """The number of the operand that an argument is, after those that functions read; its value if it is none."""
        value = self.arguments[name]
        return len(self.inner.read) + value.number if isinstance(value, Operand) else value


class Calling(Host):
    """A call of SciPy's function, whose solution is at ``place`` of what it gives; see `Host`."""

    def __init__(self, call: Call, place: Path = ()) -> None:
        super().__init__(call.name, call.inner)
        self.call, self.place = call, place

    def run(self, functions: Sequence[Callable[..., Any]], *others: Any) -> Solution:
        """See `Host.run`."""
        return solution_at(self.place, self.call.run(functions, *others))


def _module(function: Any) -> str:
    return ".".join([part for part in function.__module__.split(".") if not part.startswith("_")][:2])


def _with(function: Callable[..., Any], more: Sequence[Any]) -> Callable[..., Any]:
    if not more:
        return function

    @functools.wraps(function)
    def call(*given: Any) -> Any:
        return function(*given, *more)

    return call


def _is_regular(value: Any) -> bool:
    """Whether a list or tuple is of numbers, or of arrays of one shape."""
    try:
        return not _has_none(value) and len({np.shape(each) for each in value}) == 1
    except ValueError:
        return False


def _has_none(value: Any) -> bool:
    return value is None or (isinstance(value, (list, tuple)) and any(map(_has_none, value)))


def _filled(value: Any, functions: Sequence[Any], others: Sequence[Any]) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Callback):
        return functions[value.number]
    if isinstance(value, Operand):
        found = others[value.number]
        return np.array(found) if np.ndim(found) else found
    if isinstance(value, (list, tuple)):
        return type(value)([_filled(each, functions, others) for each in value])
    if isinstance(value, dict):
        return {key: _filled(each, functions, others) for key, each in value.items()}
    if hasattr(value, "lb"):
        return inside(value, lambda each: _filled(each, functions, others))
    return value


def listed(constraints: Any) -> list[Any]:
    """The constraints of ``minimize``: SciPy takes one alone, too."""
    return [constraints] if isinstance(constraints, dict) or hasattr(constraints, "lb") else list(constraints or ())


def _has_place(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_place, value))
    return isinstance(value, Operand)


class Unavailable:
    """A part of a solver's result that no tape can hold."""

    def __init__(self, trace: Trace, name: str) -> None:
        self.__dict__["_refuse"] = lambda: trace.refuse(
            f"{name} is an object of SciPy's that changes with the arguments, and is not recorded.",
            "Use the solution, or call the solver outside of the function.",
        )

    def __getattr__(self, name: str) -> Any:
        raise self._refuse()

    def __getitem__(self, key: Any) -> Any:
        raise self._refuse()

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise self._refuse()

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Refuse the call."""
        raise self._refuse()


_FIXED = (str, bytes, type(None))
_PLAIN = frozenset((*_FIXED, bool, int, float))
_DECIDING = ("success", "converged", "status", "ier")
Path = tuple[Any, ...]


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Numbers, arrays and other objects in what a solver gives."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(value, tuple) or (isinstance(value, list) and not _is_number(value)):
        for key, each in enumerate(value):
            yield from _leaves(each, (*path, key))
    elif not isinstance(value, _FIXED):
        yield path, value


def _is_number(value: Any) -> bool:
    if isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        return np.asarray(value).dtype.kind in "biufc"
    return False


def _rebuilt(value: Any, known: dict[Path, Any], path: Path = ()) -> Any:
    """``value`` with other leaves."""
    if isinstance(value, dict):
        for key, each in list(value.items()):
            value[key] = _rebuilt(each, known, (*path, key))
        return value
    if isinstance(value, (tuple, list)) and path not in known:
        items = [_rebuilt(each, known, (*path, key)) for key, each in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return known.get(path, value)


def solution_at(place: Path, whole: Any) -> Solution:
    """The solution, which is at ``place``, and all else from what a solver gives."""
    arrays, ended, _ = _parts(whole, place)
    return Solution(list(arrays.values()), list(ended.values()), whole)


def _parts(whole: Any, place: Path) -> tuple[dict[Path, Any], dict[Path, int], list[Path]]:
    """Numbers and arrays, the solution first; how it ended; and where other objects are."""
    known = dict(_leaves(whole))
    # A linear program without a solution has None there.
    arrays, ended, rest = {place: known.pop(place)} if place in known else {}, {}, []
    for path, value in known.items():
        if path and path[-1] in _DECIDING and not np.ndim(value):
            ended[path] = int(value)
        elif _is_number(value):
            arrays[path] = value
        else:
            rest.append(path)
    return arrays, ended, rest


def recorded(call: Call, host: Host, place: Path = ()) -> tuple[Any, dict[Path, int]]:
    """What the solver gives, with traced values in it; and the number of each array."""
    found, traced = host.recorded(call.others)
    arrays, _, rest = _parts(found.whole, place)
    known: dict[Path, Any] = dict(zip(arrays, traced, strict=False))
    # Beside its number, SciPy's pair has an object that holds it.
    known.update({path: known[place] for path in arrays if path[-1:] == ("root",)})
    for path in rest:
        known[path] = Unavailable(call.trace, f"{path[-1] if path else 'the result'} of {call.name}")
    return _rebuilt(found.whole, known), {path: number for number, path in enumerate(arrays)}
