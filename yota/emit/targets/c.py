"""The C target: a tape becomes kernels in one C file, and a Python function around them where NumPy does the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from yota.emit.c.c_driver import Driver
from yota.emit.c.c_loops import LoopKernel, plan_loop
from yota.emit.c.c_plan import KernelPlan, parts, preludes, vector_forms
from yota.emit.c.dialect import EXACT, EXACT_OF_REAL
from yota.emit.c.kernels import Kernel, plan_kernel, plan_kernels
from yota.emit.c.lines import Needs
from yota.emit.names import Names
from yota.emit.render import render
from yota.emit.targets import generated as base
from yota.emit.targets.generated import in_comment
from yota.ir.semantics import MOVES
from yota.ir.tape import Op, Tape
from yota.optimize.polynomials import symbolic
from yota.optimize.rewrite import cone, with_own_outputs
from yota.schedule.nests.contractions import small_as_sums
from yota.schedule.nests.groups import GATHERS, Group, Schedule, schedule
from yota.schedule.nests.index_patterns import given_places, normalised
from yota.schedule.nests.scatter_forms import in_place, read_where_written
from yota.schedule.target_forms import as_products


@dataclass(frozen=True, slots=True, eq=False)
class Source(base.Source):
    """Source of one generated function; ``entry`` is in ``driver`` if that is not empty, else in ``code``.

    code: the C file; empty if nothing is left for C to do.
    kernels: names of the functions that the compiled file offers.
    driver: the Python module around the kernels.
    memory: whether the compiled file makes arrays in kept memory; see `yota.run.machine.native`.
    """

    code: str = ""
    kernels: tuple[str, ...] = ()
    driver: str = ""
    memory: bool = False


def generate(tape: Tape, *, strict: bool = False, values: int = 1) -> Source:
    """Source of a function that computes the tape's outputs from its inputs.

    tape: a simplified tape.
    strict: compute the first output exactly as NumPy does for the function that was traced.
    values: how many of the outputs, the first ones, are values rather than derivatives.
    """
    tape = symbolic.optimise(tape, strict=strict, values=values)
    tape = normalised(tape, _first(tape, strict))
    kept = _first(tape, strict)
    tape, stored = small_as_sums(as_products(tape, kept), kept)
    kept = _first(tape, strict)
    tape = in_place(read_where_written(tape))
    outside = frozenset(op.result for op in tape.ops if op.result in kept and not _is_exact(tape, op))
    # Of numbers, arguments that are results too become results of the kernel.
    forms = [tape] if any(type.shape for type in tape.types.values()) else [with_own_outputs(tape), tape]
    for tape in forms:
        plan = schedule(tape, outside, gathers=GATHERS, places=given_places(tape), stored=stored)
        if _is_direct(tape, plan):
            break
    direct = _is_direct(tape, plan)
    entry = Names().fresh(tape.name)
    needs = Needs()
    kernels = _kernels(tape, plan, entry, direct, needs)
    loops = _loops(tape, plan, entry, needs, kept)
    helpers = [helper for loop in loops.values() for helper in loop.helpers]
    called = [*(each.plan for each in kernels), *(each.plan for each in loops.values())]
    plans = tuple({each.name: each for each in called}.values())
    code = _code(tape, entry, plans, needs, helpers) if plans else ""
    names = tuple(each.name for each in plans)
    memory = _keeps_memory(plans)
    if direct:
        return Source(code, entry, code=code, kernels=names, memory=memory)
    driver = Driver(tape, plan.steps, kernels, loops, kept)
    function = driver.plan()
    text = render("numpy/module.py.jinja", plan=function)
    both = f"{text}\n\n# {entry}.c\n\n{code}" if code else text
    constants = driver.constants.objects
    return Source(both, function.name, constants, len(tape.guards), code, names, text, memory)


def _first(tape: Tape, strict: bool) -> frozenset[int]:
    """What computes the first output, if that is to have NumPy's bits."""
    return frozenset(cone(tape, tape.outputs[:1])) if strict else frozenset()


def _keeps_memory(plans: Sequence[KernelPlan]) -> bool:
    return any(result.allocate == "large_array" for each in plans for result in each.results)


def _is_exact(tape: Tape, op: Op) -> bool:
    """Whether C gives NumPy's bits: each element by itself, by correctly rounded operations.

    Arrays of several axes may lie otherwise in NumPy's memory than in C's, and that decides the order of sums.
    """
    if any(tape.types[variable].ndim > 1 for variable in (op.result, *op.operands)):
        return False
    if op.name in EXACT_OF_REAL and tape.types[op.operands[0]].is_complex:
        return False
    return op.access in MOVES or (op.primitive.elementwise and op.name in EXACT)


def _is_direct(tape: Tape, plan: Schedule) -> bool:
    """Whether a single kernel is the whole function."""
    if len(plan.steps) != 1 or tape.guards:
        return False
    (group,) = plan.steps
    if not isinstance(group, Group):
        return False
    made = [root.variable for root in group.roots]
    return sorted(made) == sorted(tape.outputs) and not any(v in plan.leaves for v in tape.constants)


def _kernels(tape: Tape, plan: Schedule, entry: str, direct: bool, needs: Needs) -> list[Kernel]:
    if direct:
        (group,) = (step for step in plan.steps if isinstance(step, Group))
        group.roots.sort(key=lambda root: tape.outputs.index(root.variable))
        inputs = tuple(item.variable for item in tape.inputs)
        kernel = plan_kernel(plan, group, entry, needs, inputs)
        return [replace(kernel, plan=replace(kernel.plan, splits=len(kernel.outputs) > 1))]
    return plan_kernels(plan, entry, needs)


def _loops(tape: Tape, plan: Schedule, entry: str, needs: Needs, exact: frozenset[int]) -> dict[int, LoopKernel]:
    """Loops that C can do alone, by the op."""
    found: dict[int, LoopKernel] = {}
    for step in plan.steps:
        if isinstance(step, Op) and step.regions and step.result not in exact:
            made = plan_loop(step, tape.types, f"{entry}_loop{len(found)}", needs)
            if made is not None:
                found[step.result] = made
    return found


def _code(tape: Tape, entry: str, plans: Sequence[KernelPlan], needs: Needs, helpers: Sequence[KernelPlan] = ()) -> str:
    plan = {
        "banner": in_comment(tape, entry, tape.types.__getitem__),
        "functions": vector_forms(needs) if any(each.extent for each in (*helpers, *plans)) else (),
        "parts": parts(needs),
        "preludes": tuple(preludes(plans)),
        "complex": needs.complex,
        "parallel": any(each.parallel for each in plans),
        "memory": _keeps_memory(plans),
        "kernels": tuple(plans),
        "helpers": tuple(helpers),
    }
    return render("c/module.c.jinja", plan=plan)
