"""How another look at an array is spelled: indices, reshapes, transposes, broadcasts."""

from __future__ import annotations

from yota.codegen.literals import brackets, is_whole, shape_text
from yota.codegen.targets.call import Call, owner
from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap

__all__ = ["view"]


def view(call: Call) -> str:
    """Another look at the first operand."""
    op, source, type = call.op, call.operands[0], call.types[0]
    if op.access == AccessMap.READ:
        if type.weak:
            source = f"np.asarray({source})"
        if _takes_rows(call):
            return f"np.take({source}, {call.operands[1]}, axis=0)"
        return owner(source) + brackets(op.keyword("index"), type.shape, call.operands[1:])
    if op.access == AccessMap.TRANSPOSE:
        axes = op.keyword("axes")
        if axes == (1, 0):
            return f"{owner(source)}.T"
        return f"{owner(source)}.transpose({', '.join(map(str, axes))})"
    if op.access == AccessMap.BROADCAST:
        return f"np.broadcast_to({source}, {shape_text(call.shape)})"
    if op.semantics.component:
        return f"{owner(source)}.{op.semantics.component}"
    return _reshape(call)


def _takes_rows(call: Call) -> bool:
    """Whether whole rows are gathered, which ``np.take`` does several times faster than brackets (measured)."""
    index, shape = call.op.keyword("index"), call.types[0].shape
    whole = all(is_whole(entry, extent) for entry, extent in zip(index[1:], shape[1:], strict=False))
    return len(shape) > 1 and len(index) == len(shape) and index[0] is GATHER and whole and not call.exact


def _reshape(call: Call) -> str:
    source, old, shape = call.operands[0], call.types[0], call.type.shape
    if not old.shape:
        return f"np.reshape({source}, {shape_text(shape)})" if shape else source
    marks = _unit_axes(old.shape, shape)
    if marks is not None:
        while marks and marks[-1] == ":":
            marks.pop()
        return f"{owner(source)}[{', '.join(marks)}]" if marks else source
    return f"{owner(source)}.reshape({', '.join(map(str, call.shape))})"


def _unit_axes(old: tuple[int, ...], shape: tuple[int, ...]) -> list[str] | None:
    """Index entries that only put in, or only take out, axes of extent 1."""
    longer, shorter, mark = (shape, old, "None") if len(shape) >= len(old) else (old, shape, "0")
    marks, position = [], 0
    for extent in longer:
        if position < len(shorter) and extent == shorter[position]:
            marks.append(":")
            position += 1
        elif extent == 1:
            marks.append(mark)
        else:
            return None
    return marks if position == len(shorter) else None
