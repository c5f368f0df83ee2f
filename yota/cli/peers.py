"""Value and gradient of a plain NumPy function by other installed libraries."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Thunk = Callable[[], tuple[Any, Sequence[Any]]]
"""A function of the value and a sequence of gradients."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library.

    name: its name, also for the import.
    prepare: returns the computation for a function, the positions to differentiate by, and the arguments. It may raise
        any exception for code that the library does not support.
    """

    name: str
    prepare: Callable[[Callable[..., Any], tuple[int, ...], Sequence[Any]], Thunk]

    @property
    def installed(self) -> bool:
        """Whether it is installed."""
        return find_spec(self.name) is not None


def _with_names(f: Callable[..., Any], library: Any) -> Callable[..., Any]:
    """``f`` with the global name of NumPy bound to ``library``."""
    import numpy as np

    code = getattr(f, "__code__", None)
    if code is None:
        raise TypeError("its source is not available")
    names = {key: library if value is np else value for key, value in getattr(f, "__globals__", {}).items()}
    closure = tuple(
        types.CellType(library) if cell.cell_contents is np else cell for cell in getattr(f, "__closure__", None) or ()
    )
    return types.FunctionType(code, names, code.co_name, getattr(f, "__defaults__", None), closure)


def _autograd(f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any]) -> Thunk:
    library = import_module("autograd")
    both = library.value_and_grad(_with_names(f, import_module("autograd.numpy")), positions)
    return lambda: both(*args)


def _jax(f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any]) -> Thunk:
    library = import_module("jax")
    library.config.update("jax_enable_x64", True)
    static = tuple(place for place, value in enumerate(args) if isinstance(value, (bool, int, str, type(None))))
    differentiated = library.value_and_grad(_with_names(f, import_module("jax.numpy")), positions)
    both = library.jit(differentiated, static_argnums=static)
    # Transfer the arguments once, so that the time is that of the computation.
    placed = [
        value if place in static else library.tree_util.tree_map(library.numpy.asarray, value)
        for place, value in enumerate(args)
    ]
    return lambda: library.block_until_ready(both(*placed))


def _torch(f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any]) -> Thunk:
    import numpy as np

    library = import_module("torch")
    # PyTorch runs NumPy code on tensors only in compiled functions.
    forward = library.compile(library.compiler.wrap_numpy(f), backend="aot_eager")
    leaves = [
        library.tensor(value, requires_grad=place in positions)
        if isinstance(value, (np.ndarray, np.floating, float))
        else value
        for place, value in enumerate(args)
    ]
    wanted = [leaves[place] for place in positions]

    def both() -> tuple[Any, Sequence[Any]]:
        value = forward(*leaves)
        return value.detach().numpy(), [each.numpy() for each in library.autograd.grad(value, wanted)]

    return both


PEERS = (Peer("autograd", _autograd), Peer("jax", _jax), Peer("torch", _torch))
