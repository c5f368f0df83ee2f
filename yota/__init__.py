"""Gradients of plain NumPy functions, by symbolic rules and generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yota import errors
    from yota.api.batch import batch
    from yota.api.freezing import freeze
    from yota.api.gradients import grad, gradient, value_and_grad
    from yota.api.jacobians import hessian, jacobian
    from yota.api.products import hvp
    from yota.api.pullbacks import jvp, vjp
    from yota.api.recording import compile, ctrace, diffrule, itrace, load_rules, play, trace
    from yota.api.simplegrad import simplegrad
    from yota.api.update import update
    from yota.export import generate
    from yota.interop.sympy import from_sympy, lambdify
    from yota.ir.tape import Tape
    from yota.run.compiled import Compiled
    from yota.run.device import to_cpu, to_cuda
    from yota.run.result import GradResult
    from yota.settings import configure
    from yota.testing import gradcheck
    from yota.tracing.loops import fori, scan, while_loop
    from yota.tracing.rewriting.interpreted import interpreted

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
    "Compiled": "yota.run.compiled",
    "GradResult": "yota.run.result",
    "Tape": "yota.ir.tape",
    "batch": "yota.api.batch",
    "freeze": "yota.api.freezing",
    "generate": "yota.export",
    **dict.fromkeys(("from_sympy", "lambdify"), "yota.interop.sympy"),
    "to_cpu": "yota.run.device",
    "to_cuda": "yota.run.device",
    "gradcheck": "yota.testing",
    "interpreted": "yota.tracing.rewriting.interpreted",
    "update": "yota.api.update",
    "configure": "yota.settings",
    "simplegrad": "yota.api.simplegrad",
    **dict.fromkeys(("grad", "gradient", "value_and_grad"), "yota.api.gradients"),
    **dict.fromkeys(("jvp", "vjp"), "yota.api.pullbacks"),
    **dict.fromkeys(("hessian", "jacobian"), "yota.api.jacobians"),
    **dict.fromkeys(("checkpoint", "stop_gradient"), "yota.api.annotations"),
    "hvp": "yota.api.products",
    **dict.fromkeys(("fori", "scan", "while_loop"), "yota.tracing.loops"),
}


_MODULES = ("distributed", "errors", "export", "interop", "testing")
"""Modules with public names of their own."""


def __getattr__(name: str) -> Any:
    # Public names are imported when first used, so that `import yota` costs next to nothing.
    if name not in __all__ and name not in _MODULES:
        raise AttributeError(f"module 'yota' has no attribute {name!r}")
    from importlib import import_module

    from yota.run.progress import uncollected

    with uncollected():
        if name in _MODULES:
            return import_module(f"yota.{name}")
        value = getattr(import_module(_HOMES.get(name, "yota.api.recording")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
