"""GPU arrays as arguments: target selection, copies for tracing, and transfers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.inputs import Leaf
from yota.ir.location import where
from yota.run.arguments import Arguments
from yota.run.specialise import Specialisation, Target, in_main_memory
from yota.structures import flatten, is_on_device, mapped


def target_for(target: Target, arguments: Arguments) -> Target:
    """The target for these arguments: GPU arrays select "cuda"."""
    there = [leaf for leaf in arguments.leaves if is_on_device(leaf.value)]
    if not there:
        return target
    here = [leaf for leaf in arguments.leaves if isinstance(leaf.value, np.ndarray) and not is_on_device(leaf.value)]
    if any(leaf.value.ndim for leaf in here):
        other = next(leaf for leaf in here if leaf.value.ndim)
        raise ArgumentError(
            f"argument {there[0].place} is on the GPU and argument {other.place} is a NumPy array; move one: "
            f"yota.to_cuda({other.place}) or yota.to_cpu({there[0].place})"
        )
    if target.name == "c":
        raise ArgumentError(
            f'argument {there[0].place} is on the GPU, where target="c" does not run; leave target out, or pass '
            f"yota.to_cpu({there[0].place})"
        )
    return replace(target, name="cuda")


def on_host(arguments: Arguments) -> Arguments:
    """The arguments with main-memory copies of GPU arrays, for tracing."""
    if not any(is_on_device(leaf.value) for leaf in arguments.leaves):
        return arguments
    leaves = (Leaf(_seen(leaf.value), leaf.argument, leaf.name, leaf.path) for leaf in arguments.leaves)
    return replace(arguments, leaves=tuple(leaves))


def _seen(value: Any) -> Any:
    """A value for tracing: bfloat16, which NumPy lacks, becomes float32."""
    found = in_main_memory(value)
    return found.astype(np.float32) if is_on_device(value) and value.dtype.name == "bfloat16" else found


def captor_of(prepared: Any, chosen: Specialisation, leaves: Sequence[Any]) -> Callable[[], Callable[[], Any]]:
    """The function of `GradResult.capture` for a call."""

    def captor() -> Callable[[], Any]:
        from yota.run.machine.cuda_program import Replay

        guards = [guard for guard in chosen.gradient.tape.guards if not guard.signs]
        if guards:
            raise ArgumentError(
                f"{where(guards[0].location)}a function that branches on traced data cannot be captured, for each "
                "call asks which way to go. Use np.where, or call yota.grad"
            )
        replay = Replay(chosen.call, (*leaves, *chosen.gradient.captured))
        outputs = replay.results if isinstance(replay.results, tuple) else (replay.results,)
        results = outputs[0], prepared.layout.shaped(chosen.gradient.leaves, outputs[1:])

        def launch() -> Any:
            replay()
            return results

        return launch

    return captor


def computed(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """``function(*args)`` with the value on the device of the arguments."""
    if not any(is_on_device(value) for argument in args for _, value in flatten(argument)):
        return np.asarray(function(*args))
    from yota.run.machine import cupy as cuda

    try:
        value = function(*args)
    except Exception:  # noqa: BLE001  (what is the user's own fault is raised again in main memory)
        # CuPy refuses NumPy arrays, which the function may have captured, and lacks some functions.
        value = function(*[mapped(argument, in_main_memory) for argument in args])
    return cuda.to_device(value)


def stacked(rows: Sequence[Any]) -> Any:
    """Stack arrays as rows."""
    return _library(rows[0]).stack(rows)


def joined(blocks: Sequence[Any]) -> Any:
    """Concatenate arrays along their first axis."""
    return _library(blocks[0]).concatenate(blocks)


def _library(value: Any) -> Any:
    """NumPy or CuPy, whichever ``value`` is an array of."""
    if not is_on_device(value):
        return np
    from yota.run.machine import cupy as cuda

    return cuda.cupy()


def beside(value: Any, other: Any) -> Any:
    """An array of ``value``'s dtype on the device of ``value``."""
    if not is_on_device(value):
        return np.asarray(other, dtype=value.dtype)
    from yota.run.machine import cupy as cuda

    return cuda.to_device(other, value.dtype)


def to_cuda(x: Any, dtype: Any = None) -> Any:
    """Move an array, or all arrays of a structure, to the current GPU.

    Parameters
    ----------
    x
        An array, or a structure: dataclass, object, tuple, list, dict, nested.
    dtype
        Dtype for floating-point arrays, such as ``numpy.float32``. By default arrays keep their dtype.

    Returns
    -------
    object
        A CuPy array, or a copy of the structure with CuPy arrays. Other parts stay as they are. Arrays already on
        the GPU are not copied.

    Raises
    ------
    DeviceError
        If there is no CuPy, no driver, no GPU, or too little memory.
    """
    from yota.run.machine import cupy as cuda

    cuda.cupy()

    def moved(value: Any) -> Any:
        if not isinstance(value, np.ndarray) and not is_on_device(value):
            return value
        return cuda.to_device(value, dtype if value.dtype.kind == "f" else None)

    return mapped(x, moved)


def to_cpu(x: Any) -> Any:
    """Move an array, or all arrays of a structure, to main memory as NumPy arrays.

    Parameters
    ----------
    x
        An array, or a structure: dataclass, object, tuple, list, dict, nested.

    Returns
    -------
    object
        A NumPy array, or a copy of the structure with NumPy arrays.

    Examples
    --------
    >>> import numpy as np
    >>> to_cpu({"w": np.ones(2), "steps": 3})
    {'w': array([1., 1.]), 'steps': 3}
    """
    return mapped(x, in_main_memory)
