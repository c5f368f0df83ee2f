"""Differential equations by implicit methods: the derivative is that of collocation on the steps that were taken.

On each step, a method of Radau's of order five ties the states at three nodes to the state before. SciPy's own states
at these nodes solve those equations, exactly for ``Radau`` and within the tolerances for other methods. The derivative
is that of the implicit function: one linear system for each step, from the last to the first. E. Hairer, G. Wanner,
Solving Ordinary Differential Equations II (1996), section IV.5. The error of a step of this method is a thousandth of
the error of a step of ``BDF`` of the same order. Steps of ``BDF`` are merged therefore.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.rules.registry import Registry
from yota.solvers.implicit import played
from yota.solvers.inner import Slopes
from yota.solvers.integration_steps import Scheme, Steps, Track
from yota.transform.batching.op_batching import batched
from yota.transform.reverse.backward import reverse
from yota.transform.reverse.equation_systems import jacobian
from yota.transform.reverse.tape_parts import constant, emitted, taped

_ROOT = 6**0.5
_NODES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
_WEIGHTS = np.array(
    [
        [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
        [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
        [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
    ]
)
_STAGES = len(_NODES)
_MOST = 2**21
"""Elements of all systems that are small."""
_SUCCESS = ("Integration successful.", "Nothing was done; the integration time was 0.")
_TOLERANCE = 1.49012e-8
"""What odeint takes for tolerances that are not given."""


class Collocation(Scheme):
    """The states at all nodes of all steps, and what they solve.

    Steps end where SciPy's did, and at the times at which the result is wanted. Complex states are pairs of real ones.
    """

    def __init__(self, host: Any, builder: TapeBuilder, op: Op) -> None:
        super().__init__(host, builder, op)
        wanted = 0 if host.operands["t_eval"] is None else self.count
        self.complex = self.type.is_complex
        self.size *= 1 + self.complex
        self.real = TensorType(np.dtype(float), (self.size,))
        self.wanted, self.room = wanted, host.room + wanted
        self.steps, self.order, self.at, self.states = (self.kept(2 + number) for number in range(4))
        self.equation = self.begin = self.lengths = 0

    def run(self) -> tuple[int, int]:
        """See `Scheme.run`."""
        room, size, rates = self.room, self.size, self._rates()

        def run(ends: Any, order: Any, at: Any, states: Any, start: Any, *rest: Any) -> Any:
            ends = np.concatenate([ends, *rest[: bool(self.wanted)]])[order]
            begin, lengths = ends[:-1], ends[1:] - ends[:-1]
            times = np.ravel(begin[:, None] + lengths[:, None] * _NODES)
            many = batched(rates, [0, 0, *[None] * len(self.read)], room * _STAGES, [0])
            flat = np.reshape(states, (room * _STAGES, size))
            (slopes,) = played(many, [times, flat, *rest[bool(self.wanted) :]])
            whole = np.concatenate([self._pair(start)[None], states[:, _STAGES - 1]])
            moves = np.einsum("ij,rjn->rin", _WEIGHTS, np.reshape(slopes, states.shape))
            equation = states - whole[:room, None] - lengths[:, None, None] * moves
            return self._state(whole[at]), ends[at], equation, begin, lengths

        given = [self.ends(), self.order, self.at, self.states, self.start()]
        given += [*([self.times()] if self.wanted else []), *self.read]
        places, times, self.equation, self.begin, self.lengths = self.inlined(run, given)
        return places, times

    def reversed(
        self, tape: Tape, registry: Registry, seeds: dict[int, int], own: dict[int, int], wrt: list[int], reverse: Any
    ) -> list[tuple[int, int]]:
        """See `Scheme.reversed`."""
        slope, *found = reverse(tape, self.builder, seeds, [self.states, *wrt], registry)
        known = [each for each in (slope, own.get(self.first + 5)) if each is not None]
        if known:
            slope = known[0] if len(known) == 1 else self.inlined(np.add, known)[0]
            weight = self._solved(registry, slope)
            found += reverse(tape, self.builder, {self.equation: weight}, wrt, registry)
        return [(each, one) for each, one in zip([*wrt, *wrt], found, strict=False) if one is not None]

    def _solved(self, registry: Registry, slope: int) -> int:
        """The adjoint of the equations for this adjoint of the states, from the last step to the first.

        Each step has a linear system, whose solution is linear in what is carried. Small systems are solved at once
        for all that may be carried, large ones as the loop comes to them.
        """
        whole = [self.begin, self.lengths, self.states, slope]
        small = self.room * (_STAGES * self.size) ** 2 <= _MOST
        if small:
            axes = [0] * len(whole) + [None] * len(self.read)
            tape = batched(self._step(registry, small=True), axes, self.room, [0])
            whole = [emitted(self.builder, tape, [*whole, *self.read]).outputs[0]]
        whole_types, read = [self.builder.types[each] for each in whole], [] if small else self.read
        rows = [TensorType(each.dtype, each.shape[1:]) for each in whole_types]

        def trip(_: Any, after: Any, *given: Any) -> Any:
            if step is None:
                found = np.einsum("ij,j->i", given[0], np.concatenate([after, np.ones(1)]))
            else:
                (found,) = played(step, [after, *given])
            found = np.reshape(found, (_STAGES, self.size))
            return np.sum(found, axis=0), found

        step = None if small else self._step(registry, small=False)
        types = [type_of(0), self.real, *rows, *(self.builder.types[each] for each in read)]
        body = taped(trip, types, registry)
        region = Region(body, 1, len(whole), self.room, counted=True, backwards=True, seen=self.room)
        zeros = constant(self.builder, self.real, np.zeros(self.size))
        operands = (self.steps, zeros, *whole, *read)
        return item_of(self.builder, self.builder.emit(LOOP, operands, {"region": region}), 1)

    def _step(self, registry: Registry, *, small: bool) -> Tape:
        """The adjoint of the equations of one step: of what is carried, or in columns of each part of that."""
        matrices = batched(
            jacobian(self._rates(), registry, reverse, 1), [0, 0, *[None] * len(self.read)], _STAGES, [0]
        )
        size = _STAGES * self.size

        def step(*given: Any) -> Any:
            after, (t, h, states, slope, *read) = given[: not small], given[not small :]
            (found,) = played(matrices, [t + h * _NODES, states, *read])
            matrix = np.eye(size) - h * np.reshape(np.einsum("ij,jab->jbia", _WEIGHTS, found), (size, size))
            carried, flat = np.eye(size)[:, -self.size :], np.reshape(slope, (size,))
            if small:
                return np.linalg.solve(matrix, np.concatenate([carried, -flat[:, None]], axis=1))
            return np.linalg.solve(matrix, carried @ after[0] - flat)

        number, stages = TensorType(np.dtype(float)), TensorType(np.dtype(float), (_STAGES, self.size))
        types = [number, number, stages, stages, *(self.builder.types[each] for each in self.read)]
        return taped(step, [*([] if small else [self.real]), *types], registry)

    def _rates(self) -> Tape:
        """The right-hand side as a tape, of flat states."""
        types = [TensorType(np.dtype(float)), self.real, *(self.builder.types[each] for each in self.read)]
        rates = lambda t, y, *read: self._pair(self.rate(read)(t, self._state(y)))  # noqa: E731
        return taped(rates, types, self.host.registry)

    def _pair(self, state: Any) -> Any:
        """A state as real numbers."""
        return np.concatenate([np.real(state), np.imag(state)]) if self.complex else state

    def _state(self, pair: Any) -> Any:
        """What real numbers are as a state, or as one in each row."""
        half = self.size // 2
        return pair[..., :half] + 1j * pair[..., half:] if self.complex else pair


def _slopes(tape: Tape, registry: Registry) -> Tape:
    """The derivative of the right-hand side by the state, as a matrix; that of an analytic function if complex.

    It guides Newton's method only, and is zero where it is infinite or no number: SciPy refuses such matrices.
    """
    builder, state = tape.builder(), tape.types[tape.inputs[1].variable]
    # SciPy broadcasts one rate to all states.
    rate = builder.emit(primitive("broadcast_to"), tape.outputs, {"shape": state.shape})
    found = jacobian(builder.finish([rate]), registry, reverse, 1)
    builder = found.builder()
    matrix = builder.emit(primitive("conjugate"), found.outputs)
    finite = builder.emit(primitive("isfinite"), (matrix,))
    return builder.finish([builder.emit(primitive("where"), (finite, matrix, builder.constant(0.0)))])


class ImplicitSteps(Steps):
    """A call of a solver with an implicit method; see `Steps`."""

    scheme, dense = Collocation, True

    def give_slopes(self, registry: Registry) -> None:
        """Give SciPy the generated Jacobian."""
        Slopes(self._inner.functions[0], lambda tape: _slopes(tape, registry))

    def more(self, functions: Sequence[Callable[..., Any]]) -> dict[str, Any]:
        """See `Steps.more`."""
        if not self._inner.slopes:
            return {}
        slopes, vectorized = functions[-1], self.call.arguments["vectorized"]
        return {"jac": lambda t, y: slopes(t, y[:, None] if vectorized else y)}

    def kept(self, track: Track) -> list[Any]:
        """See `Steps.kept`: the number of steps, the order of their ends, where the result is, and states at nodes."""
        ends, wanted = np.array(track.ends), track.times[: len(track.times) if track.wanted else 0]
        sign = -1.0 if ends[-1] < ends[0] else 1.0
        both = np.concatenate([ends, wanted])
        # The ends that fill the room come last.
        order = np.argsort(sign * both, kind="stable")
        padding = self.room + 1 - len(ends)
        places = np.concatenate([np.arange(len(ends)), self.room + 1 + np.arange(len(wanted))])
        full = np.concatenate([places[order], len(ends) + np.arange(padding)])
        at = np.argsort(order)[len(ends) :] if len(wanted) else np.arange(len(track.times))
        times = both[order]
        nodes = times[:-1, None] + np.diff(times)[:, None] * _NODES
        dense = track.between[0]
        if ends[0] != ends[-1]:
            dense = importlib.import_module("scipy.integrate").OdeSolution(track.knots, track.between)
        states = dense(nodes.ravel()).T
        if np.iscomplexobj(states):
            states = np.concatenate([states.real, states.imag], axis=1)
        states = states.reshape(*nodes.shape, -1)
        filled = np.concatenate([states, np.broadcast_to(states[-1, -1], (padding, *states.shape[1:]))])
        return [len(times) - 1, full.astype(np.int64), at.astype(np.int64), filled]


MERGED = 3
"""Steps of ``BDF`` for one of collocation."""


class Odeint(ImplicitSteps):
    """A call of `scipy.integrate.odeint`, which does not tell its steps: LSODA takes them once more; see `Steps`."""

    rows = True

    def integrated(self, functions: Sequence[Callable[..., Any]], others: Sequence[Any]) -> Any:
        """See `Steps.integrated`."""
        call = self.call
        given = {name: call.value(name, functions, others) for name in call.arguments}
        rate, slopes = functions[0], functions[-1]
        own = {} if any(given[name] is not None for name in ("Dfun", "ml", "mu")) else {"Dfun": slopes, "col_deriv": 0}
        whole, info = call.run(functions, *others, full_output=True, **own)
        track = Track()
        track.times = np.asarray(given["t"], float)
        options = {"rtol": given["rtol"], "atol": given["atol"]}
        options = {name: _TOLERANCE if value is None else value for name, value in options.items()}
        options.update(min_step=given["hmin"], max_step=given["hmax"] or np.inf)
        ends, start = track.times[[0, -1]], np.ravel(given["y0"])
        solver = track.recording(self.method, dense=True)(rate, ends[0], start, ends[1], jac=slopes, **options)
        if ends[0] == ends[1]:
            rate(ends[0], start)  # Nothing else calls it.
        # Where odeint stopped, LSODA may take steps without end.
        while solver.status == "running" and info["message"] in _SUCCESS:
            solver.step()
        track.failure = "" if info["message"] in _SUCCESS and solver.status == "finished" else info["message"]
        track.finished = not track.failure
        return track, (whole, info) if given["full_output"] else whole
