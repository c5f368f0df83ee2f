"""Functions without a source, which programs write: they run as they are, and what they call runs from its source."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from types import CellType, FunctionType
from typing import Any

from yota.tracing.interpreter.definition import is_marked
from yota.tracing.location import is_library_file
from yota.tracing.places import ABSENT, content

_DEEPEST = 4
"""Such functions that call one another: how many are followed."""


def reading(function: FunctionType, form: Callable[[Any], Any], depth: int = 0) -> FunctionType:
    """``function`` with ``form`` applied to the functions that it calls by its global variables and closure."""
    code = function.__code__
    if (is_library_file(code.co_filename) and not code.co_filename.startswith("<")) or is_marked(function):
        return function

    def of(value: Any) -> Any:
        found = form(value)
        if found is value and type(value) is FunctionType and depth < _DEEPEST:
            return reading(value, form, depth + 1)
        return found

    found = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    cells = [(cell, content(cell)) for cell in function.__closure__ or ()]
    forms = {name: of(value) for name, value in found.items()}
    inner = [cell if (new := of(held)) is held or held is ABSENT else CellType(new) for cell, held in cells]
    if all(forms[name] is value for name, value in found.items()) and all(
        one is cell for one, (cell, _) in zip(inner, cells, strict=True)
    ):
        return function
    made = FunctionType(
        code, {**function.__globals__, **forms}, function.__name__, function.__defaults__, tuple(inner) or None
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def is_generated(kind: type, begin: Any) -> bool:
    """Whether ``begin`` is what `dataclasses.dataclass` wrote as the ``__init__`` of a class."""
    owner = next((each for each in kind.__mro__ if vars(each).get("__init__") is begin), None)
    return owner is not None and "__dataclass_fields__" in vars(owner) and begin.__code__.co_filename == "<string>"


def initialise(
    new: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], call: Callable[[Any, Any, Any], Any]
) -> None:
    """Set the fields of ``new``, an object of a dataclass, as the ``__init__`` does that was written for it."""
    kind: Any = type(new)
    bound = inspect.signature(kind.__init__).bind(new, *args, **keywords)
    frozen = kind.__dataclass_params__.frozen
    later = []
    for each in kind.__dataclass_fields__.values():
        sort = each._field_type.name
        if sort == "_FIELD_CLASSVAR":
            continue
        if each.name in bound.arguments:
            value = bound.arguments[each.name]
        elif each.default is not dataclasses.MISSING:
            value = each.default
        elif each.default_factory is not dataclasses.MISSING:
            value = call(each.default_factory, (), {})
        else:
            continue
        if sort == "_FIELD_INITVAR":
            later.append(value)
        elif frozen:
            object.__setattr__(new, each.name, value)
        else:
            setattr(new, each.name, value)
    if hasattr(kind, "__post_init__"):
        call(kind.__post_init__, (new, *later), {})
