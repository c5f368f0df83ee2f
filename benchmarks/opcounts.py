"""How many operations value and derivatives take: yota's generated code, and what SymPy and CasADi make of the same.

``python -m benchmarks.opcounts`` prints the table. Every addition, subtraction, product and division counts, and each
power and negation that is left in the code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.systems import cyclic, harmonics, harmonics_by_recurrence, katsura, random_polynomial
from benchmarks.workloads.polynomials import polynomial, write_linear_form

__all__ = ["PROBLEMS", "Problem", "by_casadi", "by_sympy", "by_yota", "horner"]

RATIO = 0.8
"""At most this much of the best of the others."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A polynomial, or a list of them, in ``size`` variables; ``bound`` is a promise of its own."""

    name: str
    function: Callable[[Any], Any]
    size: int
    bound: int | None = None


PROBLEMS = (
    Problem("polynomial of eight variables", polynomial, 8, 46),
    Problem("l**4 - l**2", write_linear_form(None), 4, 17),
    Problem("sparse, 6 variables, 50 terms, degree 4", random_polynomial(6, 50, 4), 6),
    Problem("dense, 8 variables, 200 terms, degree 6", random_polynomial(8, 200, 6), 8),
    Problem("katsura-8, value and Jacobian", katsura(8), 9),
    Problem("cyclic-6, value and Jacobian", cyclic(6), 6),
    Problem("solid harmonics to degree 6", harmonics(6), 3),
    Problem("the same by recurrences", harmonics_by_recurrence(6), 3),
)


def by_yota(problem: Problem, effort: str = "high") -> int:
    """Operations of the generated code."""
    import yota
    from yota.api.matrix_derivatives import Matrices
    from yota.run.gradient_layout import Wanted
    from yota.run.result import operations_of
    from yota.run.specialise import Target

    point = np.linspace(0.5, 1.5, problem.size)
    if not isinstance(problem.function(point), list):
        return sum(yota.grad(problem.function, point, effort=effort)[1].operations.values())
    form = Matrices(problem.function, 0, Wanted(with_value=True), yota.jacobian, Target(effort=effort), dynamic=False)
    prepared, *_ = form.prepare((point,), {})
    return sum(operations_of(prepared.root.source).values())


def by_sympy(problem: Problem, rewrite: Callable[[Any], Any] = lambda expression: expression) -> int:
    """Common subexpressions of value and all derivatives, each rewritten before."""
    import sympy

    symbols = sympy.symbols(f"x:{problem.size}")
    found = problem.function(symbols)
    values = [sympy.sympify(each) for each in (found if isinstance(found, list) else [found])]
    wanted = [*values, *(sympy.diff(value, symbol) for value in values for symbol in symbols)]
    replacements, reduced = sympy.cse([rewrite(each) for each in wanted])
    return sum(map(operations, [*(each for _, each in replacements), *reduced]))


def horner(expression: Any) -> Any:
    """Horner's form, by the symbols in their order."""
    import sympy

    if not expression.free_symbols:
        return expression
    return sympy.horner(sympy.expand(expression), wrt=sorted(expression.free_symbols, key=str))


def operations(expression: Any) -> int:
    """Operations of one expression of SymPy's; a power is one, and a factor of -1 one where nothing is subtracted."""
    count = sum(map(operations, expression.args))
    if expression.is_Add:
        return (
            count
            + len(expression.args)
            - 1
            - sum(1 for each in expression.args if _is_negated(each))
            + _alone(expression.args)
        )
    if expression.is_Mul:
        return count + len(expression.args) - 1
    return count + int(bool(expression.args))


def _is_negated(expression: Any) -> bool:
    """Whether a term of a sum is only negated, which subtraction does."""
    return bool(expression.is_Mul and expression.args[0] == -1)


def _alone(terms: Iterable[Any]) -> int:
    """One negation where there is no term to subtract from."""
    return int(all(map(_is_negated, terms)))


def by_casadi(problem: Problem) -> int:
    """Instructions of CasADi's function for value and derivatives, common subexpressions eliminated."""
    import casadi

    x = casadi.SX.sym("x", problem.size)
    found = problem.function([x[k] for k in range(problem.size)])
    value = casadi.vertcat(*found) if isinstance(found, list) else found
    slopes = casadi.jacobian(value, x) if isinstance(found, list) else casadi.gradient(value, x)
    function = casadi.Function("derivatives", [x], casadi.cse([value, slopes]))
    free = {casadi.OP_INPUT, casadi.OP_OUTPUT, casadi.OP_CONST, casadi.OP_PARAMETER}
    return sum(function.instruction_id(number) not in free for number in range(function.n_instructions()))


CONTENDERS: dict[str, Callable[[Problem], int]] = {
    "cse": by_sympy,
    "Horner, cse": functools.partial(by_sympy, rewrite=horner),
    "CasADi": by_casadi,
}


def main() -> None:
    """Print the table."""
    print(f"{'value and derivatives':42}{'yota':>7}" + "".join(f"{name:>13}" for name in CONTENDERS) + f"{'ratio':>8}")
    for problem in PROBLEMS:
        own = by_yota(problem)
        others: dict[str, int] = {}
        for name, count in CONTENDERS.items():
            try:
                others[name] = count(problem)
            except ImportError:
                continue
        ratio = own / min(others.values()) if others else float("nan")
        kept = own <= problem.bound if problem.bound is not None else ratio <= RATIO
        line = f"{problem.name:42}{own:7}" + "".join(f"{others.get(name, '-'):>13}" for name in CONTENDERS)
        print(f"{line}{ratio:8.2f}  {'kept' if kept else 'MISSED'}", flush=True)


if __name__ == "__main__":
    main()
