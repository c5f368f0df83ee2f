"""What ``type(x)`` gives in the user's code while a trace runs: the class of the value that a tracer stands for."""

from __future__ import annotations

from typing import Any

from yota.tracing.methods import is_tracer


class _Kind(type):
    """Makes `Type` behave as `type`, but for traced values."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and not keywords and is_tracer(args[0]):
            return args[0].__class__
        return type(*args, **keywords)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, type)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is type

    def __hash__(cls) -> int:
        return hash(type)


class Type(type, metaclass=_Kind):
    """Stands for `type` where a function says ``type(x) is np.ndarray``, which no class can answer for itself."""
