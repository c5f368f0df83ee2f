"""The Python function around kernels: it calls them and NumPy in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from yota.codegen.c_groups import Group
from yota.codegen.c_kernel import Kernel
from yota.codegen.lower import Lowering
from yota.codegen.plan import FunctionPlan, Step
from yota.ir.tape import Op, Tape
from yota.passes.units import Member, Unit

__all__ = ["Driver"]

_QUIET = frozenset("getitem setitem reshape transpose broadcast_to concatenate stack real imag conjugate argsort".split())


class Driver(Lowering):
    """Lowers a schedule of kernels and single ops."""

    def __init__(self, tape: Tape, steps: Sequence[Group | Op], kernels: Sequence[Kernel]) -> None:
        ops = [step for step in steps if isinstance(step, Op)]
        self._kernels = {kernel.outputs[0]: kernel for kernel in kernels}
        self._others = {variable for kernel in kernels for variable in kernel.outputs[1:]}
        self._quiet = all(op.name in _QUIET for op in ops)
        definitions = tape.definitions()
        rest = iter(kernels)
        order: list[Op] = []
        for step in steps:
            order += [step] if isinstance(step, Op) else [definitions[v] for v in next(rest).outputs]
        units = [Unit((Member(op),)) for op in order]
        # Nothing is put into a workspace: kernels and NumPy allocate their results.
        super().__init__(tape, units, frozenset(tape.types))
        for kernel in kernels:
            self.names.fresh(kernel.plan.name)

    def plan(self) -> FunctionPlan:
        """The plan; NumPy can only warn where NumPy is called."""
        plan = super().plan()
        return replace(plan, decorators=()) if self._quiet else plan

    def _lower_op(self, op: Op) -> Step:
        kernel = self._kernels.get(op.result)
        if kernel is None:
            return Step() if op.result in self._others else super()._lower_op(op)
        arguments = ", ".join(self._text(variable) for variable in kernel.inputs)
        names = []
        for variable in kernel.outputs:
            self.texts[variable] = self.name(variable)
            names.append(self.texts[variable])
        return Step(before=(*self.remark(op), f"{', '.join(names)} = {kernel.plan.name}({arguments})"))

    def _text(self, variable: int) -> str:
        return self.texts[variable] if variable in self.texts else self.constants.text(variable)
