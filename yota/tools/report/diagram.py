"""A layered diagram of a tape: the function on the left from top to bottom, its derivative on the right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from yota.ir.printing import show_op
from yota.ir.tape import Tape
from yota.tools.report.source_pieces import Box, Diagram, Edge

_WIDTH, _HEIGHT = 150, 24
_ACROSS, _DOWN = 22, 30
_GAP = 90
_MARGIN = 20
_ABREAST = 6
"""Largest number of boxes side by side in one layer."""
_SWEEPS = 4
_LETTERS = 20
"""Number of characters that fit into a box."""

Place = tuple[int, int]


def drawn(tape: Tape, primal: Mapping[int, int]) -> Diagram:
    """The diagram; ``primal`` maps each op of the derivative to its op of the function."""
    layers = _layers(tape, primal)
    places = _places(tape, layers, primal)
    left = min((x for x, _ in places.values()), default=0)
    places = {variable: (x - left + _MARGIN, y + _MARGIN) for variable, (x, y) in places.items()}
    return Diagram(
        width=max((x for x, _ in places.values()), default=0) + _WIDTH + _MARGIN,
        height=max((y for _, y in places.values()), default=0) + _HEIGHT + _MARGIN,
        box_width=_WIDTH,
        box_height=_HEIGHT,
        boxes=_boxes(tape, primal, places),
        edges=_edges(tape, primal, places),
    )


def _layers(tape: Tape, primal: Mapping[int, int]) -> dict[int, int]:
    """Layers of the function's ops, as low as their readers allow; ops of the derivative are in the same layers."""
    found = {entry.variable: 0 for entry in tape.inputs}
    ops = [op for op in tape.ops if op.result not in primal]
    for op in ops:
        found[op.result] = 1 + max((found[operand] for operand in op.operands if operand in found), default=0)
    lowest: dict[int, int] = {}
    for op in reversed(ops):
        found[op.result] = max(found[op.result], lowest.get(op.result, 0) - 1)
        for operand in op.operands:
            lowest[operand] = min(lowest.get(operand, found[op.result]), found[op.result])
    found.update({op: found[of] for op, of in primal.items()})
    return found


def _places(tape: Tape, layers: Mapping[int, int], primal: Mapping[int, int]) -> dict[int, Place]:
    """The position of each box; the function is left of zero, its derivative right of it."""
    forward: dict[int, list[int]] = defaultdict(list)
    backward: dict[int, list[int]] = defaultdict(list)
    for variable, layer in layers.items():
        (backward if variable in primal else forward)[layer].append(variable)
    _untangle(tape, forward)
    places: dict[int, Place] = {}
    y = 0
    for layer in sorted({*forward, *backward}):
        rows = 1
        for side, members in ((-1, forward[layer]), (1, backward[layer])):
            for number, variable in enumerate(members):
                row, column = divmod(number, _ABREAST)
                width = min(len(members) - row * _ABREAST, _ABREAST)
                step = (column - width) if side < 0 else column
                x = step * (_WIDTH + _ACROSS) + (_GAP // 2 if side > 0 else -_GAP // 2 + _ACROSS)
                places[variable] = (x, y + row * (_HEIGHT + 12))
                rows = max(rows, row + 1)
        y += (rows - 1) * (_HEIGHT + 12) + _HEIGHT + _DOWN
    return places


def _untangle(tape: Tape, layers: dict[int, list[int]]) -> None:
    """Order each layer by the mean position of neighbours, down and up in turn (Sugiyama, Tagawa and Toda 1981)."""
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    known = {variable for members in layers.values() for variable in members}
    for op in tape.ops:
        for operand in op.operands:
            if op.result in known and operand in known:
                above[op.result].append(operand)
                below[operand].append(op.result)
    position = {variable: place for members in layers.values() for place, variable in enumerate(members)}
    for sweep in range(_SWEEPS):
        neighbours = below if sweep % 2 else above
        for layer in sorted(layers, reverse=bool(sweep % 2)):
            members = layers[layer]
            members.sort(key=lambda variable: _mean(neighbours[variable], position, position[variable]))
            position.update({variable: place for place, variable in enumerate(members)})


def _mean(neighbours: Sequence[int], position: Mapping[int, int], own: int) -> float:
    return sum(position[each] for each in neighbours) / len(neighbours) if neighbours else float(own)


def _boxes(tape: Tape, primal: Mapping[int, int], places: Mapping[int, Place]) -> tuple[Box, ...]:
    found = []
    for entry in tape.inputs:
        x, y = places[entry.variable]
        text = f"{entry.name}{''.join(f'.{key}' for key in entry.path)}"
        note = f"input {text}: {tape.types[entry.variable]}"
        found.append(Box("input", x, y, _short(text), note, str(entry.variable)))
    outputs = set(tape.outputs)
    for op in tape.ops:
        x, y = places[op.result]
        kind = "adjoint" if op.result in primal else "primal"
        kind += " output" if op.result in outputs else ""
        text = _short(f"{op.name} {_extents(tape, op.result)}")
        found.append(Box(kind, x, y, text, show_op(tape, op), str(op.result)))
    return tuple(found)


def _extents(tape: Tape, variable: int) -> str:
    shape = tape.types[variable].shape
    return f"[{','.join(map(str, shape))}]" if shape else ""


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"


def _edges(tape: Tape, primal: Mapping[int, int], places: Mapping[int, Place]) -> tuple[Edge, ...]:
    found = []
    for op in tape.ops:
        for operand in dict.fromkeys(op.operands):
            if operand in places:
                kind = "flow" if op.result not in primal else "back" if operand in primal else "cross"
                path = _path(places[operand], places[op.result])
                found.append(Edge(kind, path, f"{operand} {op.result}"))
    return tuple(found)


def _path(start: Place, end: Place) -> str:
    """A curve from one box to another."""
    (x0, y0), (x1, y1) = start, end
    if y0 == y1:
        if x0 < x1:
            x0 += _WIDTH
        else:
            x1 += _WIDTH
        y = y0 + _HEIGHT // 2
        bend = (x1 - x0) // 2
        sag = y if abs(x1 - x0) <= _GAP else y + _HEIGHT
        return f"M{x0} {y}C{x0 + bend} {sag} {x1 - bend} {sag} {x1} {y}"
    x0, x1 = x0 + _WIDTH // 2, x1 + _WIDTH // 2
    if y0 < y1:
        y0 += _HEIGHT
    else:
        y1 += _HEIGHT
    middle = (y0 + y1) // 2
    return f"M{x0} {y0}C{x0} {middle} {x1} {middle} {x1} {y1}"
