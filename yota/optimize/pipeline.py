"""The passes in their order, as data."""

from __future__ import annotations

from collections.abc import Callable

from yota.ir.semantics import AccessMap
from yota.ir.tape import Rewrite, Tape
from yota.ir.verify import is_on
from yota.ir.verify import verify as checked
from yota.optimize import cse, dce, fold, inline, powers, scalarize, simplify
from yota.optimize import loop_bodies as loops


def passes(
    *, strict: bool = False, inlined: bool = True, compiled: bool = False, looped: bool = False, values: int | None = 1
) -> tuple[tuple[str, Rewrite], ...]:
    """Names and passes in order; what unrolling brings to light is simplified again."""
    algebra: tuple[tuple[str, Rewrite], ...] = (
        ("fold", fold.run),
        ("simplify", lambda tape: simplify.run(tape, strict=strict, values=values)),
        ("cse", cse.run),
        ("dce", dce.run),
    )
    # What the value and its derivative have in common stays common, before either is rewritten.
    shared: tuple[tuple[str, Rewrite], ...] = (("cse", cse.run),) if strict else ()
    return (
        *([("inline", lambda tape: inline.run(tape, strict=strict, compiled=compiled))] if inlined else []),
        *shared,
        *algebra,
        ("powers", lambda tape: powers.run(tape, strict=strict, values=values)),
        ("scalarize", lambda tape: scalarize.run(tape, strict=strict, compiled=compiled, looped=looped, values=values)),
        *algebra,
    )


def run(
    tape: Tape,
    *,
    strict: bool = False,
    inlined: bool = True,
    compiled: bool = False,
    looped: bool = False,
    once: bool = False,
    values: int | None = 1,
    until: str | None = None,
    verify: Callable[[Tape], object] | None = None,
) -> Tape:
    """``tape`` after all passes.

    strict: leave what the value is computed from as the user wrote it, to the bit.
    inlined: whether primitives with a primal of their own are replaced by it; before a tape is differentiated they must
        stay, because their rules count.
    compiled: whether the code will be compiled, so that scalar ops are cheap.
    looped: whether the tape is the body of a loop.
    once: whether scalar code, of which nothing is unrolled, is simplified once: a second time finds next to nothing.
    values: how many outputs, the first ones, are the value, and not derivatives; None for all.
    until: stop after the first pass of this name.
    verify: called with the tape after each pass that changes it; by default `yota.ir.verify.verify` where that is on.
    """
    if verify is None and is_on():
        verify = checked

    def improve(body: Tape, values: int | None) -> Tape:
        return run(body, strict=strict, inlined=inlined, compiled=compiled, looped=True, once=True, values=values)

    tape = loops.run(tape, improve, values=values, moves=not strict)
    verified: Tape | None = None
    for name, rewrite in passes(strict=strict, inlined=inlined, compiled=compiled, looped=looped, values=values):
        scalar = once and name == "scalarize" and scalarize.is_scalar(tape)
        if not scalar or any(op.access == AccessMap.SCATTER for op in tape.ops):
            tape = rewrite(tape)
        if verify is not None and tape is not verified:
            verify(tape)
            verified = tape
        if scalar or name == until:
            break
    return tape
