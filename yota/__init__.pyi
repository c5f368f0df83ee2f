"""The types of the public names. ``tests/test_types.py`` compares them with what is there."""

from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from types import EllipsisType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike

from yota import distributed as distributed
from yota import errors as errors
from yota import export as export
from yota import interop as interop
from yota import testing as testing
from yota.export import Module
from yota.ir.tape import Tape as Tape
from yota.rules.language.model import Rule
from yota.run.compiled import Information
from yota.run.result import GradResult as GradResult
from yota.settings import Settings

__version__: str

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)
_T = TypeVar("_T")

_Target: TypeAlias = Literal["numpy", "c", "cuda", "auto"]
_Language: TypeAlias = Literal["numpy", "c", "cuda", "fortran", "javascript"]
_Dynamic: TypeAlias = bool | Literal["auto"]
_Effort: TypeAlias = Literal["quick", "high"]
_Place: TypeAlias = int | str
_Places: TypeAlias = tuple[_Place, ...]
_Content: TypeAlias = Literal["value", "gradient", "jacobian", "hessian", "hvp"]
# No `Sequence`, which a string is too.
_Several: TypeAlias = tuple[Any, ...] | list[Any]
_Axes: TypeAlias = int | tuple[_Axes, ...] | list[_Axes] | Mapping[str, _Axes] | None
_Pullback: TypeAlias = Callable[[Any], tuple[Any, ...]]

class _WithSource(Protocol, Generic[_P, _R_co]):
    source: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...

class Compiled(Generic[_P, _R_co]):
    """A derivative of a function, which is called as the function is."""

    __name__: str
    @property
    def source(self) -> str: ...
    @property
    def tape(self) -> Tape | None: ...
    def info(self) -> Information: ...
    def clear(self) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    @overload
    def __get__(self, instance: None, owner: Any = ..., /) -> Compiled[_P, _R_co]: ...
    @overload
    def __get__(
        self: Compiled[Concatenate[Any, _Q], _R], instance: object, owner: Any = ..., /
    ) -> Compiled[_Q, _R]: ...

# The options of functions that pass arguments on stand in overloads of their own, each of which needs one of them:
# without any, all arguments are those of ``f``, as the last overload has it.

@overload
def grad(
    f: Callable[..., _R],
    *args: Any,
    target: _Target | None,
    strict: bool = ...,
    effort: _Effort = ...,
    dynamic: _Dynamic = ...,
    seed: Any = ...,
    has_aux: bool = ...,
    **kwargs: Any,
) -> tuple[_R, GradResult]: ...
@overload
def grad(
    f: Callable[..., _R],
    *args: Any,
    strict: bool,
    effort: _Effort = ...,
    dynamic: _Dynamic = ...,
    seed: Any = ...,
    has_aux: bool = ...,
    **kwargs: Any,
) -> tuple[_R, GradResult]: ...
@overload
def grad(
    f: Callable[..., _R],
    *args: Any,
    effort: _Effort,
    dynamic: _Dynamic = ...,
    seed: Any = ...,
    has_aux: bool = ...,
    **kwargs: Any,
) -> tuple[_R, GradResult]: ...
@overload
def grad(
    f: Callable[..., _R], *args: Any, dynamic: _Dynamic, seed: Any = ..., has_aux: bool = ..., **kwargs: Any
) -> tuple[_R, GradResult]: ...
@overload
def grad(f: Callable[..., _R], *args: Any, seed: Any, has_aux: bool = ..., **kwargs: Any) -> tuple[_R, GradResult]: ...
@overload
def grad(f: Callable[..., _R], *args: Any, has_aux: bool, **kwargs: Any) -> tuple[_R, GradResult]: ...
@overload
def grad(f: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, GradResult]: ...
@overload
def value_and_grad(
    f: Callable[_P, _R],
    wrt: _Place = 0,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: bool = False,
    args: Mapping[str, Any] | _Several | None = None,
) -> Compiled[_P, tuple[_R, Any]]: ...
@overload
def value_and_grad(
    f: Callable[_P, _R],
    wrt: _Places | None,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: bool = False,
    args: Mapping[str, Any] | _Several | None = None,
) -> Compiled[_P, tuple[_R, tuple[Any, ...]]]: ...
@overload
def gradient(
    f: Callable[_P, Any],
    wrt: _Place = 0,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: Literal[False] = False,
    args: Mapping[str, Any] | _Several | None = None,
) -> Compiled[_P, Any]: ...
@overload
def gradient(
    f: Callable[_P, Any],
    wrt: _Places | None,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: Literal[False] = False,
    args: Mapping[str, Any] | _Several | None = None,
) -> Compiled[_P, tuple[Any, ...]]: ...
@overload
def gradient(
    f: Callable[_P, tuple[Any, _R]],
    wrt: _Place | _Places | None = 0,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: Literal[True],
    args: Mapping[str, Any] | _Several | None = None,
) -> Compiled[_P, tuple[Any, _R]]: ...
@overload
def jacobian(
    f: Callable[_P, Any],
    wrt: _Place | _Places = 0,
    *,
    with_value: Literal[False] = False,
    sparse: bool = False,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: Literal[False] = False,
) -> Compiled[_P, Any]: ...
@overload
def jacobian(
    f: Callable[_P, _R],
    wrt: _Place | _Places = 0,
    *,
    with_value: Literal[True],
    sparse: bool = False,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: Literal[False] = False,
) -> Compiled[_P, tuple[_R, Any]]: ...
@overload
def jacobian(
    f: Callable[_P, tuple[Any, _R]],
    wrt: _Place | _Places = 0,
    *,
    with_value: bool = False,
    sparse: bool = False,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = "auto",
    has_aux: Literal[True],
) -> Compiled[_P, tuple[Any, Any]]: ...
@overload
def hessian(
    f: Callable[_P, Any],
    wrt: _Place | _Places = 0,
    *,
    with_value: Literal[False] = False,
    sparse: bool = False,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = False,
) -> Compiled[_P, Any]: ...
@overload
def hessian(
    f: Callable[_P, _R],
    wrt: _Place | _Places = 0,
    *,
    with_value: Literal[True],
    sparse: bool = False,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = False,
) -> Compiled[_P, tuple[_R, Any, Any]]: ...

# The vector follows the arguments of ``f``; those that have defaults may be left out.

@overload
def hvp(
    f: Callable[[Any], Any],
    wrt: _Place = 0,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = False,
) -> Compiled[Concatenate[Any, Any, ...], Any]: ...
@overload
def hvp(
    f: Callable[[Any, Any], Any],
    wrt: _Place = 0,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = False,
) -> Compiled[Concatenate[Any, Any, Any, ...], Any]: ...
@overload
def hvp(
    f: Callable[[Any, Any, Any], Any],
    wrt: _Place = 0,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = False,
) -> Compiled[Concatenate[Any, Any, Any, Any, ...], Any]: ...
@overload
def hvp(
    f: Callable[_P, Any],
    wrt: _Place = 0,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = False,
) -> Compiled[..., Any]: ...
def jvp(
    f: Callable[..., _R],
    args: _Several,
    tangents: _Several,
    *,
    target: _Target | None = None,
    strict: bool = False,
    effort: _Effort = "quick",
    dynamic: _Dynamic = False,
) -> tuple[_R, Any]: ...
@overload
def vjp(
    f: Callable[..., _R],
    *args: Any,
    target: _Target | None,
    strict: bool = ...,
    effort: _Effort = ...,
    dynamic: bool = ...,
) -> tuple[_R, _Pullback]: ...
@overload
def vjp(
    f: Callable[..., _R], *args: Any, strict: bool, effort: _Effort = ..., dynamic: bool = ...
) -> tuple[_R, _Pullback]: ...
@overload
def vjp(f: Callable[..., _R], *args: Any, effort: _Effort, dynamic: bool = ...) -> tuple[_R, _Pullback]: ...
@overload
def vjp(f: Callable[..., _R], *args: Any, dynamic: bool) -> tuple[_R, _Pullback]: ...
@overload
def vjp(f: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, _Pullback]: ...

# Where a function takes one number, its batch takes an array of them; its other arguments keep their types.

@overload
def batch(
    f: Callable[Concatenate[np.float64, ...], Any],
    *,
    over: _Place | _Places | None = None,
    axis: Literal[0, -1] = 0,
    in_axes: _Axes = 0,
    out_axes: _Axes = 0,
    target: _Target | None = None,
    strict: bool = False,
    dynamic: _Dynamic = False,
) -> Compiled[..., Any]: ...
@overload
def batch(
    f: Callable[Concatenate[Any, np.float64, ...], Any],
    *,
    over: _Place | _Places | None = None,
    axis: Literal[0, -1] = 0,
    in_axes: _Axes = 0,
    out_axes: _Axes = 0,
    target: _Target | None = None,
    strict: bool = False,
    dynamic: _Dynamic = False,
) -> Compiled[..., Any]: ...
@overload
def batch(
    f: Callable[Concatenate[Any, Any, np.float64, ...], Any],
    *,
    over: _Place | _Places | None = None,
    axis: Literal[0, -1] = 0,
    in_axes: _Axes = 0,
    out_axes: _Axes = 0,
    target: _Target | None = None,
    strict: bool = False,
    dynamic: _Dynamic = False,
) -> Compiled[..., Any]: ...
@overload
def batch(
    f: Callable[Concatenate[Any, Any, Any, np.float64, ...], Any],
    *,
    over: _Place | _Places | None = None,
    axis: Literal[0, -1] = 0,
    in_axes: _Axes = 0,
    out_axes: _Axes = 0,
    target: _Target | None = None,
    strict: bool = False,
    dynamic: _Dynamic = False,
) -> Compiled[..., Any]: ...
@overload
def batch(
    f: Callable[_P, Any],
    *,
    over: _Place | _Places | None = None,
    axis: Literal[0, -1] = 0,
    in_axes: _Axes = 0,
    out_axes: _Axes = 0,
    target: _Target | None = None,
    strict: bool = False,
    dynamic: _Dynamic = False,
) -> Compiled[_P, Any]: ...
@overload
def simplegrad(
    f: Callable[..., Any], *args: Any, target: _Target | None, strict: bool = ..., effort: _Effort = ...
) -> Compiled[..., tuple[Any, ...]]: ...
@overload
def simplegrad(
    f: Callable[..., Any], *args: Any, strict: bool, effort: _Effort = ...
) -> Compiled[..., tuple[Any, ...]]: ...
@overload
def simplegrad(f: Callable[..., Any], *args: Any, effort: _Effort) -> Compiled[..., tuple[Any, ...]]: ...
@overload
def simplegrad(f: Callable[_P, Any], *args: _P.args, **kwargs: _P.kwargs) -> Compiled[_P, tuple[Any, ...]]: ...
def configure(
    *,
    target: _Target | EllipsisType | None = ...,
    threads: int | EllipsisType | None = ...,
    cache: str | PathLike[str] | bool | EllipsisType | None = ...,
    memory: int | EllipsisType | None = ...,
) -> Settings: ...
def update(structure: _T, gradient: Any, step: Callable[[Any, Any], Any]) -> _T: ...
def gradcheck(
    f: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    atol: float = 1e-8,
    directions: int = 3,
    random: int | np.random.Generator = 0,
) -> bool: ...
@overload
def trace(
    f: Callable[..., _R], *args: Any, primitives: Collection[Callable[..., Any]] | None, **kwargs: Any
) -> tuple[_R, Tape]: ...
@overload
def trace(f: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, Tape]: ...
@overload
def itrace(
    f: Callable[..., _R], *args: Any, primitives: Collection[Callable[..., Any]] | None, **kwargs: Any
) -> tuple[_R, Tape]: ...
@overload
def itrace(f: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, Tape]: ...

ctrace = trace

def interpreted(f: Callable[_P, _R]) -> Callable[_P, _R]: ...
def play(tape: Tape, *args: Any) -> Any: ...
def compile(
    tape: Tape, target: _Target | None = None, *, strict: bool = False, effort: _Effort = "quick"
) -> _WithSource[..., Any]: ...
def freeze(f: Compiled[_P, _R]) -> Compiled[_P, _R]: ...
def generate(
    f: Callable[..., Any],
    args: Mapping[str, Any] | _Several,
    target: _Language = "numpy",
    name: str | None = None,
    *,
    wrt: _Place | _Places | None = None,
    with_: _Content | tuple[_Content, ...] = ("value", "gradient"),
    license: str | None = None,
    self_test: bool = False,
    strict: bool = False,
    effort: _Effort = "high",
    extension: bool = False,
    command: tuple[str, ...] | None = None,
    stem: str | None = None,
    sample: Callable[..., Mapping[str, Any]] | None = None,
) -> Module: ...
def from_sympy(
    expressions: Any, symbols: Any, *, name: str = ..., functions: Mapping[str, Callable[..., Any]] | None = ...
) -> Callable[..., Any]: ...
def lambdify(
    args: Any,
    expr: Any,
    modules: Any = ...,
    printer: None = ...,
    use_imps: bool = ...,
    dummify: bool = ...,
    cse: Any = ...,
    docstring_limit: int | None = ...,
    *,
    target: _Target | None = ...,
    strict: bool = ...,
    effort: _Effort = ...,
) -> Compiled[..., Any]: ...
def scan(
    step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any = None, length: int | None = None
) -> tuple[Any, Any]: ...
def fori(n: Any, body: Callable[[Any, _R], _R], x: _R) -> _R: ...
def while_loop(condition: Callable[[_R], Any], body: Callable[[_R], _R], x: _R) -> _R: ...
def stop_gradient(x: _R) -> _R: ...
def checkpoint(f: Callable[_P, _R]) -> Callable[_P, _R]: ...
def load_rules(path: str | PathLike[str]) -> Sequence[Rule]: ...
def diffrule(text: str) -> Any: ...
def to_cuda(x: Any, dtype: DTypeLike | None = None) -> Any: ...
def to_cpu(x: Any) -> Any: ...
