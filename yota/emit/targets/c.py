"""The C target: a tape becomes kernels in one C file, and a Python function that calls them and NumPy in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from yota.emit.c.c_loops import plan_loop
from yota.emit.c.c_plan import KernelPlan, Tables, parts, preludes, vector_forms
from yota.emit.c.c_standalone import Shared
from yota.emit.c.dialect import EXACT, EXACT_OF_REAL, C
from yota.emit.c.in_process import InProcess, NumberLoop, with_single_items
from yota.emit.c.kernels import WORTH_KEEPING, Kernel, plan_kernel, plan_kernels
from yota.emit.c.lines import Needs
from yota.emit.names import Names
from yota.emit.python.function_plan import FunctionPlan, Step
from yota.emit.python.lower import KernelDriver
from yota.emit.render import render
from yota.emit.targets import generated as base
from yota.emit.targets.generated import in_comment
from yota.ir.semantics import MOVES
from yota.ir.tape import Op, Tape
from yota.optimize import interchange
from yota.optimize.blocked_chains import Blocks
from yota.optimize.polynomials import symbolic
from yota.optimize.rewrite import cone, with_own_outputs
from yota.schedule.nests.contractions import small_as_sums
from yota.schedule.nests.groups import GATHERS, Group, Schedule, schedule
from yota.schedule.nests.index_patterns import given_places, normalised
from yota.schedule.nests.scatter_forms import in_place, read_where_written
from yota.schedule.target_forms import as_products

_BLOCKS = Blocks(64, 512, 1 << 19)
"""Elements for which a loop does all trips at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Source(base.Source):
    """Source of one generated function; ``entry`` is in ``driver`` if that is not empty, else in ``code``.

    code: the C file; empty if nothing is left for C to do.
    kernels: names of the functions that the compiled file offers.
    memory: whether the compiled file makes arrays in kept memory; see `yota.run.machine.native`.
    """

    code: str = ""
    kernels: tuple[str, ...] = ()
    driver: str = ""
    memory: bool = False


def generate(tape: Tape, *, strict: bool = False, values: int = 1) -> Source:
    """Source of a function that computes the outputs of a simplified tape, of which the first ``values`` are values."""
    if not strict:
        tape = interchange.run(tape, _BLOCKS, InProcess().is_known_op, values=values)
    tape = symbolic.optimise(tape, strict=strict, values=values)
    tape = normalised(tape, _first(tape, strict))
    kept = _first(tape, strict)
    tape, stored = small_as_sums(as_products(tape, kept), kept)
    tape = in_place(read_where_written(tape))
    kept = _first(tape, strict)
    outside = frozenset(op.result for op in tape.ops if op.result in kept and not _is_exact(tape, op))
    # Of numbers, arguments that are results too become results of the kernel.
    single = with_single_items(tape)
    numbers = [each for each in (single, tape)[single is tape :] if not any(type.shape for type in each.types.values())]
    forms = [*map(with_own_outputs, numbers), tape]
    for tape in forms:
        language = InProcess()
        plan = schedule(tape, outside, language.is_known_op, gathers=GATHERS, places=given_places(tape), stored=stored)
        if _is_direct(tape, plan):
            break
    direct = _is_direct(tape, plan)
    entry = Names().fresh(tape.name)
    needs = Needs(language=language)
    tables = Tables(language.names(entry))
    steps, helpers = _steps(tape, plan, entry, direct, Shared(language.names(entry), needs, tables), kept)
    called = [replace(each.plan, fails=bool(language.loops)) for each in steps if isinstance(each, Kernel)]
    plans = tuple({each.name: each for each in called}.values())
    code = _code(tape, entry, plans, needs, [*language.loops.values()], helpers, tables.lines) if plans else ""
    names = tuple(each.name for each in plans)
    memory = _keeps_memory(plans)
    if direct:
        return Source(code, entry, code=code, kernels=names, memory=memory)
    driver = Driver(tape, steps, kept)
    function = driver.plan()
    text = render("numpy/module.py.jinja", plan=function)
    both = f"{text}\n\n# {entry}.c\n\n{code}" if code else text
    constants = driver.constants.objects
    memory |= any(tape.types[step.result].nbytes >= WORTH_KEEPING for step in plan.steps if isinstance(step, Op))
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


def _steps(
    tape: Tape, plan: Schedule, entry: str, direct: bool, shared: Shared, exact: frozenset[int]
) -> tuple[list[Kernel | Op], list[KernelPlan]]:
    """Kernels, and ops that are none, in their order; and what kernels of loops call."""
    groups = iter(_kernels(tape, plan, entry, direct, shared.needs))
    steps: list[Kernel | Op] = []
    helpers: list[KernelPlan] = []
    made: set[int] = set()
    for number, step in enumerate(plan.steps):
        if isinstance(step, Group):
            steps.append(next(groups))
        elif step.result not in made:
            loop = step.regions and step.result not in exact and plan_loop(step, tape, f"{entry}_loop{number}", shared)
            steps.append(loop[0] if loop else step)
            if loop:
                made.update(loop[0].outputs)
                helpers += loop[1]
    return steps, helpers


def _code(
    tape: Tape,
    entry: str,
    plans: Sequence[KernelPlan],
    needs: Needs,
    number_loops: Sequence[NumberLoop],
    helpers: Sequence[KernelPlan] = (),
    tables: Sequence[str] = (),
) -> str:
    functions = vector_forms(needs) if any(each.extent for each in (*helpers, *plans)) else ()
    plan = {
        "banner": in_comment(tape, entry, tape.types.__getitem__),
        "functions": functions,
        "own": {name for _, name, _ in functions}.intersection(C["own"].split()),
        "parts": parts(needs),
        "preludes": tuple(preludes(plans)),
        "complex": needs.complex,
        "number_loops": tuple(number_loops),
        "parallel": any(each.parallel for each in plans),
        "memory": _keeps_memory(plans),
        "kernels": tuple(plans),
        "helpers": tuple(helpers),
        "tables": tables,
    }
    return render("c/module.c.jinja", plan=plan)


class Driver(KernelDriver):
    """Calls kernels of C, and NumPy."""

    def __init__(self, tape: Tape, steps: Sequence[Kernel | Op], bitwise: frozenset[int]) -> None:
        ops = [step for step in steps if isinstance(step, Op)]
        kernels = [step for step in steps if isinstance(step, Kernel)]
        self._kernels = {kernel.outputs[0]: kernel for kernel in kernels}
        self._freed = _freed(tape, ops, kernels)
        self._quiet = all(op.semantics.quiet for op in ops)
        super().__init__(tape, steps, [each.plan.name for each in kernels], self._freed)
        self.bitwise = bitwise

    def plan(self) -> FunctionPlan:
        """The plan; NumPy can only warn where NumPy is called."""
        plan = super().plan()
        banner = self._banner(plan, "C and NumPy", "Kernels in C", self.tape.types.__getitem__)
        return replace(plan, banner=banner, decorators=() if self._quiet else plan.decorators)

    def _lower_op(self, op: Op) -> Step:
        kernel = self._kernels.get(op.result)
        if kernel is None:
            return super()._lower_op(op)
        arguments = ", ".join(self._text(variable) for variable in kernel.inputs)
        names = []
        for variable in kernel.outputs:
            self.texts[variable] = self.name(variable)
            names.append(self.texts[variable])
        names += ["_"] * (len(kernel.plan.results) - len(names))  # memory to work in
        lines = [f"{', '.join(names)} = {kernel.plan.name}({arguments})"]
        freed = ", ".join(self.texts[variable] for variable in self._freed.get(op.result, ()))
        if freed:
            lines.append(f"del {freed}")
        return Step(before=(*self.remark(op), *lines))


def _freed(tape: Tape, ops: Sequence[Op], kernels: Sequence[Kernel]) -> dict[int, list[int]]:
    """By a kernel's first result: large results of other kernels that it is the last to read.

    Their memory is still in the cache when it is given to the next result.
    """
    kept = {*tape.outputs, *(guard.variable for guard in tape.guards), *(each for op in ops for each in op.operands)}
    kept.update(entry.variable for entry in tape.inputs)
    last = {variable: kernel.outputs[0] for kernel in kernels for variable in kernel.inputs}
    freed: dict[int, list[int]] = {}
    for kernel in kernels:
        for variable in kernel.outputs:
            type = tape.types[variable]
            if variable in last and variable not in kept and type.nbytes >= WORTH_KEEPING:
                freed.setdefault(last[variable], []).append(variable)
    return freed
