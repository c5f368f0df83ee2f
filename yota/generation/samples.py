"""Arguments from the user, at the sizes at which a function is traced and its code is tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from yota.errors import ArgumentError
from yota.generation.examples import spec_of
from yota.ir.callables import name_of
from yota.specs import Array, Spec, resolved

Sample: TypeAlias = Callable[..., Mapping[str, Any]]
"""A function of the named sizes that gives arguments by name."""


def sampled(sample: Sample, specs: Mapping[str, Spec | None], sizes: Mapping[str, int]) -> dict[str, Any]:
    """The arguments that ``sample`` gives at ``sizes``, held against their ``specs``.

    Raises ArgumentError if they are no dict, or one is unknown or is not what its spec says.

    >>> sampled(lambda N: {"i": np.arange(N)}, {"i": Array("int64", ("N",))}, {"N": 3})
    {'i': array([0, 1, 2])}
    """
    title = f"the sample {name_of(sample)}"
    try:
        found = sample(**sizes)
    except TypeError as fault:
        raise ArgumentError(f"{title} is called as {name_of(sample)}({_shown(sizes)}): {fault}") from fault
    if not isinstance(found, Mapping):
        raise ArgumentError(f"{title} gives a {type(found).__name__}; it must give a dict of arguments by name")
    for name, value in found.items():
        if name not in specs:
            raise ArgumentError(f"{title} gives {name!r}; the arguments are {', '.join(specs)}")
        spec = specs[name]
        if spec is not None and not _fits(resolved(spec, sizes), value):
            raise ArgumentError(f"{title} gives {_described(value)} for {name} at {_shown(sizes)}, not {spec}")
    return {name: _cast(specs[name], value) for name, value in found.items()}


def _fits(spec: Spec, value: Any) -> bool:
    if isinstance(spec, Array):
        array = np.asarray(value)
        return array.shape == spec.shape and np.can_cast(array.dtype, spec.dtype, "same_kind")
    try:
        return spec_of(value) == spec
    except ArgumentError:
        return False


def _cast(spec: Spec | None, value: Any) -> Any:
    if not isinstance(spec, Array):
        return value
    array = np.array(value, spec.dtype)
    return array.item() if spec.weak else array if array.shape else array[()]


def _described(value: Any) -> str:
    try:
        return str(spec_of(value))
    except ArgumentError:
        return f"a {type(value).__name__}"


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={extent}" for name, extent in sizes.items())
