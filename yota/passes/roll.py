"""Pass `roll`: ops that repeat, alike but for constants and positions, become a ``loop``."""

from __future__ import annotations

from contextlib import suppress

from yota.ir.tape import Tape
from yota.passes import dce, forwarding
from yota.passes.bodies import Looping
from yota.passes.iterations import Planner, Refused
from yota.passes.periods import Columns, is_worth, runs
from yota.passes.rolling import Rolling

__all__ = ["run"]


def run(tape: Tape) -> Tape:
    """``tape`` with loops in the place of ops that repeat; everything is computed in the same order."""
    if not is_worth(1, len(tape)):
        return tape
    tape = dce.run(tape)
    direct = dce.run(forwarding.run(tape))
    found = [_rolled(each) for each in ((tape,) if direct is tape else (direct, tape))]
    return min((each for each in found if any(op.regions for op in each.ops)), key=len, default=tape)


def _rolled(tape: Tape) -> Tape:
    columns = Columns(tape)
    found = runs(columns)
    if not found:
        return tape
    rolling = Rolling(columns)
    planner, done = Planner(columns, rolling.rows), 0
    for each in found:
        plan = planner.plan(each, done)
        if plan is None:
            continue
        rolling.copied(done, plan.run.start)
        done = plan.run.start
        with suppress(Refused):
            Looping(rolling, plan, run).emit()
            done = plan.run.stop
    rolling.copied(done, len(tape.ops))
    return dce.run(rolling.finish())
