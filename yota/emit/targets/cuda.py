"""The CUDA target: a tape becomes kernels in one CUDA file, and a Python function that launches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from yota.emit.c.c_plan import Tables
from yota.emit.c.dialect import CUDA, C, is_known_op
from yota.emit.c.lines import Needs
from yota.emit.cuda.cuda_driver import CudaDriver
from yota.emit.cuda.cuda_plan import KernelPlan, Step, inline_parts, on_device, plan_step, preludes, words_of
from yota.emit.cuda.halves import Stored, Widened, placed, widened
from yota.emit.cuda.loop_kernels import plan_thread, with_threads
from yota.emit.cuda.scatter import checks, is_sorted_scatter, leading, plan_addition, readable
from yota.emit.cuda.thread_memory import Layout
from yota.emit.cuda.threads import THREADS, separated
from yota.emit.names import Names
from yota.emit.render import render
from yota.emit.targets import generated as base
from yota.emit.targets.generated import in_comment
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.polynomials import symbolic
from yota.schedule.nests.groups import schedule
from yota.schedule.nests.index_patterns import normalised
from yota.schedule.target_forms import as_products, unsigned


@dataclass(frozen=True, slots=True)
class Form:
    """How an argument lies in memory.

    on_device: whether it is an array; else it is a number that launches hand over by value.
    strides: from one element to the next along each axis, in elements; None for C order.
    stored: its dtype in memory, if the tape has a wider one to compute in.
    """

    on_device: bool = True
    strides: tuple[int, ...] | None = None
    stored: Stored = None


@dataclass(frozen=True, slots=True, eq=False)
class Source(base.Source):
    """Source of one generated function; ``entry`` is in ``driver``.

    code: the CUDA file; empty if nothing is left for kernels to do.
    fault: what the driver calls the address of a number that kernels set where an index array has places outside of an
        axis; empty if none does.
    """

    code: str = ""
    kernels: tuple[KernelPlan, ...] = ()
    driver: str = ""
    fault: str = ""


def generate(
    tape: Tape, forms: Sequence[Form] | None = None, *, threads: int = THREADS, atomic: bool = False, values: int = 1
) -> Source:
    """Source of a function that computes the tape's outputs from its inputs, on the device.

    tape: a simplified tape.
    forms: how each input lies in memory; by default arrays are in C order, and what has no axes is a number.
    threads: threads of a block: a power of two from 32 to 1024.
    atomic: whether pieces that meet at one place may be added up in any order, by atomic additions.
    values: how many of the outputs, the first ones, are values rather than derivatives.
    Raises CodegenError if the tape has an op that neither a kernel nor CuPy can compute.
    """
    guards = [number for number, guard in enumerate(tape.guards) if not guard.signs]
    tape = unsigned(tape)
    # Kernels read constant arrays in C order.
    ordered = {
        variable: np.asarray(value, order="C") if isinstance(value, np.ndarray) else value
        for variable, value in tape.constants.items()
    }
    wide = widened(replace(tape, constants=ordered))
    tape = as_products(symbolic.optimise(wide.tape, values=values))
    if atomic:
        tape = normalised(tape, frozenset(op.result for op in tape.ops if op.access == AccessMap.SCATTER))
    else:
        tape = leading(normalised(tape))
    tape, stored = placed(tape, *_stored(wide, forms))
    layout = _layout(tape, forms, stored)
    plan = schedule(tape, known=partial(is_known_op, language=CUDA), gathers=(AccessMap.READ,), places=readable(tape))
    entry = Names(("cp",)).fresh(tape.name)
    needs, tables = Needs(language=CUDA), Tables(C.file_names())
    steps: list[Step | Op] = []
    number = 0
    sorted_: dict[int, KernelPlan] = {}
    for each in with_threads(plan):
        if isinstance(each, tuple):
            steps.append(plan_thread(tape, each, f"{entry}_kernel{number}", needs, tables, layout))
            number += 1
            continue
        if isinstance(each, Op):
            if not atomic and is_sorted_scatter(tape, each):
                adding = plan_addition(f"{entry}_add{len(sorted_)}", tape, each, threads)
                sorted_[each.result] = adding
                needs.device.update(words_of(adding.lines), ("sum",))
                needs.complex |= tape.types[each.result].is_complex
            steps.append(each)
            continue
        for group in separated(each):
            name = f"{entry}_kernel{number}"
            steps.append(plan_step(plan, group, name, needs, layout, threads))
            number += 1
    told = [each for step in steps if isinstance(step, Step) for each in step.checked]
    ops = [step for step in steps if isinstance(step, Op)]
    looked = checks(tape, ops, told, layout.pointers, f"{entry}_check", threads)
    kernels: tuple[KernelPlan, ...] = ()
    for step in steps:
        kernels += step.kernels if isinstance(step, Step) else tuple(filter(None, [sorted_.get(step.result)]))
    kernels += tuple(each.kernel for each in looked)
    banner = in_comment(tape, entry, lambda variable: layout.type(variable, tape.types))
    file = {
        "banner": banner,
        "preludes": preludes(needs),
        "tables": on_device(tables),
        "parts": inline_parts(needs),
        "kernels": kernels,
    }
    code = render("cuda/module.cu.jinja", plan=file) if kernels else ""
    driver = CudaDriver(tape, steps, layout, sorted_, looked, guards)
    function = driver.plan()
    text = render("numpy/module.py.jinja", plan=function)
    both = f"{text}\n\n# {entry}.cu\n\n{code}" if code else text
    constants = driver.constants.objects
    return Source(both, function.name, constants, len(tape.guards), code, kernels, text, driver.fault)


def _stored(wide: Widened, forms: Sequence[Form] | None) -> tuple[Sequence[Stored], Sequence[Stored]]:
    """How inputs and outputs are stored: results as the arguments are, if those are all of one kind."""
    tape = wide.tape
    inputs = [one or form.stored for one, form in zip(wide.inputs, forms or (), strict=True)] if forms else wide.inputs
    types = [tape.types[item.variable] for item in tape.inputs]
    single = {each for each, type in zip(inputs, types, strict=True) if type.dtype == np.float32 and not type.weak}
    known = single.pop() if len(single) == 1 else None
    if known is None or known.name != "bfloat16":
        return inputs, wide.outputs
    return inputs, [known if tape.types[output].dtype == np.float32 else None for output in tape.outputs]


def _layout(tape: Tape, forms: Sequence[Form] | None, stored: Mapping[int, np.dtype[Any]]) -> Layout:
    given = forms if forms is not None else [Form(bool(tape.types[item.variable].shape)) for item in tape.inputs]
    pairs = [(item.variable, form) for item, form in zip(tape.inputs, given, strict=True)]
    values = {variable for variable, form in pairs if not form.on_device} | set(tape.constants)
    pointers = frozenset(v for v, type in tape.types.items() if not type.shape and v not in values)
    strides = {variable: form.strides for variable, form in pairs if form.strides is not None}
    return Layout(pointers, strides, stored=stored)
