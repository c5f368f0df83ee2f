"""The function of a library that a traced value was given to: its public name, and the rule that it could have."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from yota.rules.language.rule_text import template
from yota.structures import package_of
from yota.tracing.bytecode import is_call, resolved, running
from yota.tracing.methods import is_traced
from yota.tracing.source_lines import is_library, is_own, passed

_MOST = 12
"""Parameters of a rule to paste."""
_SIMPLE = (bool, int, float, str, type(None))
_ROOTS = re.compile(r"^[A-Za-z]\w*(\.[A-Za-z]\w*)*$")


@dataclass(frozen=True)
class LibraryCall:
    """A function that was called, or a method; ``traced`` are the parameters with traced values."""

    name: str
    function: Any
    is_method: bool = False
    traced: tuple[str, ...] = ()

    def kind(self) -> str:
        """What the function is, in words."""
        inner = inspect.unwrap(self.function) if callable(self.function) else self.function
        inner = getattr(inner, "__func__", inner)
        return "has code in Python that takes plain arrays" if isinstance(inner, FunctionType) else "is compiled code"

    def advice(self) -> str:
        """The rule to complete and paste, and the one that says that there is no derivative."""
        target, short = self.name, self.name.rpartition(".")[2]
        start = f"Give {self.name} a rule with yota.diffrule"
        if self.is_method or not short.isidentifier():
            short = "_".join(part for part in self.name.split(".")[-2:] if part.isidentifier()).strip("_").lower()
            target = f"your_module.{short}"
            start = f"Call {self.name} in a function of your own, {target}, and give that a rule with yota.diffrule"
        names, keywords = self._parameters()
        rule = template(short, target, names, False, keywords=keywords)
        head = rule.partition("\n")[2].partition("\n")[0]
        nothing = f'@nodiff("{target}")\n{head} ...'
        return f"{start}, completing\n\n{rule}\n\nor, where no derivative goes through it,\n\n{nothing}\n"

    def _parameters(self) -> tuple[list[str], list[str]]:
        """Names of operands, and the others as a rule writes them."""
        try:
            parameters = [each for each in inspect.signature(self.function).parameters.values() if each.name != "self"]
        except (TypeError, ValueError):
            return ["x"], []
        plain = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)][:_MOST]
        known = {each.name for each in plain}
        operands = [name for name in self.traced if name in known]
        operands = operands or [each.name for each in plain if each.default is each.empty] or ["x"]
        statics = []  # a rule takes operands first
        for each in plain:
            if each.name not in operands:
                is_simple = type(each.default) in _SIMPLE and repr(each.default) not in ("inf", "-inf", "nan")
                default = "" if each.default is each.empty else f" = {each.default!r}" if is_simple else " = None"
                statics.append(f"{each.name}: Static{default}")
        return operands, statics


def library_call(frame: FrameType | None, *, parameters: bool = True) -> LibraryCall | None:
    """The running function of a library that the user's code called; None if there is none."""
    found = None
    while frame is not None and is_library(frame):
        if not is_own(frame):
            found = frame
        frame = frame.f_back
    if found is not None:
        return _of_frame(found, parameters)
    if frame is None:
        return None
    step = running(frame)
    return _of_call(frame, step.offset) if is_call(step) else None


def raised_by(fault: BaseException) -> LibraryCall | None:
    """The function of a library that the user's code called when an error was raised; None if it is not known."""
    user, found = None, None
    for each in passed(fault.__traceback__):
        if not is_library(each.tb_frame):
            user, found = each, None
        elif found is None and not is_own(each.tb_frame):
            found = each.tb_frame
    if found is not None:
        return _of_frame(found, True)
    return None if user is None else _of_call(user.tb_frame, user.tb_lasti)


def _of_call(frame: FrameType, offset: int) -> LibraryCall | None:
    """The function of a library that the user's code calls, where it is compiled and has no frame of its own."""
    known = resolved(frame, offset)
    if known is None or not callable(known[1]) or package_of(known[1]) in ("", "builtins", "numpy", "yota"):
        return None
    owner, function = known
    is_method = not isinstance(owner, (type(None), ModuleType, type))
    return LibraryCall(
        _method_name(owner, function.__name__) if is_method else public_name(function), function, is_method
    )


def _of_frame(frame: FrameType, parameters: bool) -> LibraryCall:
    code, variables = frame.f_code, frame.f_locals
    owner = variables.get("self")
    if owner is not None and code.co_varnames[:1] == ("self",):
        function = getattr(type(owner), code.co_name, None)
        name = _method_name(owner, code.co_name)
        traced = _traced(function, variables) if parameters else ()
        return LibraryCall(name.replace(".__init__", ""), function, True, traced)
    function = frame.f_globals.get(code.co_name)
    if getattr(inspect.unwrap(function), "__code__", None) is not code if callable(function) else True:
        # What decorators make stands for the function that it holds.
        held = (variables.get(name) for name in code.co_freevars)
        inner = (each for each in held if isinstance(each, FunctionType) and not each.__name__.startswith("<"))
        function = next(inner, function)
    if not callable(function):
        return LibraryCall(f"{frame.f_globals.get('__name__', '')}.{code.co_name}", None)
    return LibraryCall(public_name(function), function, traced=_traced(function, variables) if parameters else ())


def _method_name(owner: Any, name: str) -> str:
    return f"{public_name(owner) or public_name(type(owner))}.{name}"


def library_call_of(function: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> LibraryCall:
    """What a call is of, by its arguments."""
    owner = getattr(function, "__self__", None)
    is_method = owner is not None and not isinstance(owner, (ModuleType, type))
    name = public_name(function)
    if is_method:
        name = _method_name(owner, getattr(function, "__name__", "__call__"))
    elif not callable(function) or not hasattr(function, "__name__"):
        name, is_method = f"{public_name(type(function))}.__call__", True
    variables: dict[str, Any] = {"args": arguments, "kwargs": dict(keywords)}
    return LibraryCall(name, function, is_method, _traced(function, variables))


def _traced(function: Any, variables: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the parameters that hold traced values, of a frame's variables or of ``args`` and ``kwargs``."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind_partial(*variables.get("args", ()), **variables.get("kwargs", {})).arguments
    except (TypeError, ValueError):
        return ()
    held = {**bound, **{name: variables[name] for name in signature.parameters if name in variables}}
    return tuple(name for name in signature.parameters if is_traced(held.get(name)))


def public_name(value: Any) -> str:
    """The shortest name under which modules that are loaded have something; of an object, empty if none has it."""
    named = value if hasattr(value, "__name__") else type(value)
    module, name = getattr(named, "__module__", None) or "", getattr(named, "__name__", "")
    if isinstance(value, np.ufunc) and not module:
        # A ufunc does not say where it comes from.
        libraries = sorted((each for each in sys.modules if each.startswith(("numpy", "scipy"))), key=len)
        homes = (
            f"{each}.{name}"
            for each in libraries
            if _ROOTS.match(each) and getattr(sys.modules[each], "__dict__", {}).get(name) is value
        )
        return next(homes, name)
    parts = module.split(".")
    around = [".".join(parts[: number + 1]) for number in range(len(parts))]
    # The outermost first; a private module only where there is no other.
    for prefix in (*(each for each in around if "._" not in each and not each.startswith("_")), module):
        space = vars(sys.modules[prefix]) if prefix in sys.modules else {}
        if named is value and space.get(name) is value:
            return f"{prefix}.{name}"
        if named is not value:
            for own, each in space.items():
                if each is value:
                    return f"{prefix}.{own}"
    return f"{module}.{name}" if named is value else ""
