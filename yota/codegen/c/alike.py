"""Kernels that do the same, as the steps of a loop do: each is written once, and called for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from yota.codegen.c.groups import Group, Schedule
from yota.codegen.c.kernel import Kernel, plan_kernel, remarks
from yota.codegen.c.lines import Needs

__all__ = ["plan_kernels"]

_MOST_REMARKS = 12


def plan_kernels(plan: Schedule, entry: str, needs: Needs) -> list[Kernel]:
    """A kernel for each group; groups of one form share what is written."""
    known: dict[Any, tuple[int, tuple[int, ...]]] = {}
    found: list[Kernel] = []
    texts: dict[str, dict[str, None]] = {}
    for group in plan.steps:
        if not isinstance(group, Group):
            continue
        form, read = _form(plan, group)
        try:
            first, places = known.get(form, (None, ()))
        except TypeError:  # a keyword that cannot be hashed
            form, first, places = object(), None, ()
        if first is None:
            known[form] = len(found), read
            kernel = plan_kernel(plan, group, f"{entry}_kernel{len(known) - 1}", needs)
        else:
            kernel = _called(found[first], group, dict(zip(places, read, strict=True)))
        found.append(kernel)
        texts.setdefault(kernel.plan.name, {}).update(dict.fromkeys(remarks(plan, group)))
    plans = {
        kernel.plan.name: replace(kernel.plan, remarks=tuple(texts[kernel.plan.name])[:_MOST_REMARKS])
        for kernel in reversed(found)
    }
    return [replace(kernel, plan=plans[kernel.plan.name]) for kernel in found]


def _called(first: Kernel, group: Group, same: Mapping[int, int]) -> Kernel:
    """The first kernel of its form, with what it takes and gives for another group."""
    inputs = tuple(same.get(variable, variable) for variable in first.inputs)
    return Kernel(inputs, tuple(root.variable for root in group.roots), first.plan)


def _form(plan: Schedule, group: Group) -> tuple[Any, tuple[int, ...]]:
    """What tells a group from others that compute something else, and the variables in memory in order.

    Arguments of the function's keep their names, for errors name them; constants are told apart, for code depends on
    them.
    """
    tape = plan.tape
    numbers: dict[int, int] = {}
    read: list[int] = []
    parts: list[Any] = [group.extents]
    names = {entry.variable: (entry.name, entry.path) for entry in tape.inputs}
    for root in group.roots:
        parts.append((root.shape, root.loops, tuple(tuple(sorted(cut)) for cut in root.cuts)))
        waiting = [(root.variable, True)]
        while waiting:
            variable, whole = waiting.pop()
            op = plan.definitions.get(variable)
            if variable in numbers and not (whole and variable == root.variable):
                continue
            if op is None or (variable in plan.leaves and not whole):
                numbers[variable] = len(numbers)
                read.append(variable)
                constant = variable if variable in tape.constants else None
                parts.append((tape.types[variable], names.get(variable), constant))
                continue
            missing = [operand for operand in op.operands if operand not in numbers]
            if missing:
                waiting.append((variable, whole))
                waiting.extend((operand, False) for operand in missing)
                continue
            operands = tuple(numbers[operand] for operand in op.operands)
            numbers[variable] = len(numbers)
            parts.append((op.primitive, op.static, tape.types[variable], operands))
    return tuple(parts), tuple(read)
