"""Calls of functions that generated NumPy code makes under their own names, or under names that it is given."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from yota.codegen.literals import static_text, tuple_text
from yota.codegen.targets.call import Call
from yota.ir.calls import Form, Items, Place

__all__ = ["plain_call", "recorded_call"]


def recorded_call(call: Call, form: Form) -> str:
    """A call spelled as the user, or NumPy for him, made it."""
    arguments = [_argument(call, value) for value in form.arguments]
    arguments += [f"{name}={_argument(call, value)}" for name, value in form.keywords]
    module, _, rest = form.path.partition(".")
    if module != "numpy":
        call.import_module(form.path.rpartition(".")[0])
    text = f"{'np' if module == 'numpy' else module}.{rest}({', '.join(arguments)})"
    return text if form.part is None else f"{text}[{form.part}]"


def _argument(call: Call, value: Any) -> str:
    if isinstance(value, Place):
        return call.operands[value.operand]
    if isinstance(value, Items):
        texts = [_argument(call, item) for item in value.items]
        return tuple_text(texts) if value.kind is tuple else f"[{', '.join(texts)}]"
    return static_text(value) or call.name_object("argument", value)


def plain_call(call: Call) -> str:
    """The call of the op's function on its operands."""
    op = call.op
    arguments = list(call.operands)
    optional = _optional(op.primitive.function)
    for name, value in op.static:
        if value is None and name in optional:
            continue
        text = static_text(value)
        arguments.append(f"{name}={call.name_object(name, value) if text is None else text}")
    return f"{_function(call)}({', '.join(arguments)})"


@functools.cache
def _optional(function: Any) -> frozenset[str]:
    """Keywords that a function takes for None where they are left out."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return frozenset()
    return frozenset(name for name, each in parameters.items() if each.default is None)


def _function(call: Call) -> str:
    primitive = call.op.primitive
    module, _, name = (primitive.target or "").rpartition(".")
    if module and name.isidentifier() and _resolves(module, name, primitive.function):
        if module == "numpy" or module.startswith("numpy."):
            return f"np{module[5:]}.{name}"
        call.import_module(module)
        return f"{module}.{name}"
    return call.name_object(primitive.name, primitive.function)


def _resolves(module: str, name: str, function: Any) -> bool:
    if module == "__main__":
        return False
    try:
        return getattr(importlib.import_module(module), name, None) is function
    except ImportError:
        return False
