"""Gradients of plain NumPy functions, by symbolic rules and generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yota import errors
    from yota.api import compile, ctrace, diffrule, itrace, load_rules, play, trace
    from yota.batching.batch import batch
    from yota.compilation.compiled import Compiled
    from yota.compilation.device import to_cpu, to_cuda
    from yota.derivatives.gradients import grad, gradient, value_and_grad
    from yota.derivatives.jacobians import hessian, jacobian
    from yota.derivatives.products import hvp
    from yota.derivatives.pullbacks import jvp, vjp
    from yota.derivatives.simple import simplegrad
    from yota.export import generate
    from yota.freezing import freeze
    from yota.interop.sympy import from_sympy, lambdify
    from yota.ir.tape import Tape
    from yota.loops import fori, scan, while_loop
    from yota.result import GradResult
    from yota.settings import configure
    from yota.steps import update
    from yota.testing import gradcheck
    from yota.tracing.interpreter.entry import interpreted

__all__ = [
    "Compiled",
    "GradResult",
    "Tape",
    "batch",
    "checkpoint",
    "compile",
    "configure",
    "ctrace",
    "diffrule",
    "errors",
    "fori",
    "freeze",
    "from_sympy",
    "generate",
    "grad",
    "gradcheck",
    "gradient",
    "hessian",
    "hvp",
    "interpreted",
    "itrace",
    "jacobian",
    "jvp",
    "lambdify",
    "load_rules",
    "play",
    "scan",
    "simplegrad",
    "stop_gradient",
    "to_cpu",
    "to_cuda",
    "trace",
    "update",
    "value_and_grad",
    "vjp",
    "while_loop",
]

__version__ = "0.1.0"

_HOMES = {
    "Compiled": "yota.compilation.compiled",
    "GradResult": "yota.result",
    "Tape": "yota.ir.tape",
    "batch": "yota.batching.batch",
    "freeze": "yota.freezing",
    "generate": "yota.export",
    **dict.fromkeys(("from_sympy", "lambdify"), "yota.interop.sympy"),
    "to_cpu": "yota.compilation.device",
    "to_cuda": "yota.compilation.device",
    "gradcheck": "yota.testing",
    "interpreted": "yota.tracing.interpreter.entry",
    "update": "yota.steps",
    "configure": "yota.settings",
    "simplegrad": "yota.derivatives.simple",
    **dict.fromkeys(("grad", "gradient", "value_and_grad"), "yota.derivatives.gradients"),
    **dict.fromkeys(("jvp", "vjp"), "yota.derivatives.pullbacks"),
    **dict.fromkeys(("hessian", "jacobian"), "yota.derivatives.jacobians"),
    **dict.fromkeys(("checkpoint", "stop_gradient"), "yota.annotations"),
    "hvp": "yota.derivatives.products",
    **dict.fromkeys(("fori", "scan", "while_loop"), "yota.loops"),
}


_MODULES = ("distributed", "errors", "export", "interop", "testing")
"""Modules with public names of their own."""


def __getattr__(name: str) -> Any:
    # Public names are imported when first used, so that `import yota` costs next to nothing.
    if name not in __all__ and name not in _MODULES:
        raise AttributeError(f"module 'yota' has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"yota.{name}")
    value = getattr(import_module(_HOMES.get(name, "yota.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
