"""Minima by functions of scipy.optimize that are other spellings of ``minimize``."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from yota.solvers.constraints import pair
from yota.solvers.minima import minimize, recorded_minimum
from yota.solvers.solver_calls import Call
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace

_CALLED = {
    name: called
    for names, called in {
        "fmin fmin_powell fminbound brent golden": ["func"],
        "fmin_bfgs fmin_cg fmin_ncg": ["f", "fprime", "fhess", "fhess_p"],
        "fmin_l_bfgs_b fmin_tnc": ["func", "fprime"],
    }.items()
    for name in names.split()
}
"""Parameters that are functions."""


@calls_back("scipy.optimize", *_CALLED, named=True)
def _old(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """What records a function that gives the minimum, and more where that is asked for."""
    call = Call(trace, getattr(sys.modules["scipy.optimize"], name), args, keywords, _CALLED[name])
    several = name in ("fmin_l_bfgs_b", "fmin_tnc") or call.arguments.get("full_output")
    several = several or call.arguments.get("retall")
    ends = (call.given["x1"], call.given["x2"]) if "x1" in call.given else pair(call.given.get("bounds"))
    return recorded_minimum(call, (0,) if several else (), ends)


@calls_back("scipy.optimize", "fmin_slsqp")
def _fmin_slsqp(trace: Trace, *args: Any, **keywords: Any) -> Any:
    given = _given("fmin_slsqp", args, keywords)
    more, printed = given["args"], given["iprint"] if given["disp"] is None else given["disp"]
    constraints = [{"type": "eq", "fun": each, "args": more} for each in given["eqcons"]]
    constraints += [{"type": "ineq", "fun": each, "args": more} for each in given["ieqcons"]]
    for type, name in (("eq", "eqcons"), ("ineq", "ieqcons")):
        function, slope = given[f"f_{name}"], given[f"fprime_{name}"]
        constraints += [{"type": type, "fun": function, "jac": slope, "args": more}] if function else []
    found = minimize(
        trace,
        *(given["func"], given["x0"], more, "SLSQP", given["fprime"]),
        bounds=given["bounds"] if len(given["bounds"]) else None,
        constraints=constraints,
        callback=given["callback"],
        options={
            "maxiter": given["iter"],
            "ftol": given["acc"],
            "iprint": printed,
            "disp": printed != 0,
            "eps": given["epsilon"],
        },
    )
    names = ("x", "fun", "nit", "status", "message")
    return tuple(found[name] for name in names) if given["full_output"] else found["x"]


@calls_back("scipy.optimize", "fmin_cobyla")
def _fmin_cobyla(trace: Trace, *args: Any, **keywords: Any) -> Any:
    given = _given("fmin_cobyla", args, keywords)
    functions = [given["cons"]] if callable(given["cons"]) else given["cons"]
    more = given["args"] if given["consargs"] is None else given["consargs"]
    found = minimize(
        trace,
        *(given["func"], given["x0"], given["args"], "COBYLA"),
        constraints=[{"type": "ineq", "fun": each, "args": more} for each in functions],
        callback=given["callback"],
        options={
            "rhobeg": given["rhobeg"],
            "tol": given["rhoend"],
            "disp": bool(given["disp"]),
            "maxiter": given["maxfun"],
            "catol": given["catol"],
        },
    )
    return found["x"]


def _given(name: str, args: Any, keywords: Any) -> dict[str, Any]:
    """The arguments of a function of SciPy's by name."""
    original = inspect.unwrap(getattr(sys.modules["scipy.optimize"], name))
    bound = inspect.signature(original).bind(*args, **keywords)
    bound.apply_defaults()
    return bound.arguments
