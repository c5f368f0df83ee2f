"""Numbers that come from sizes, and elements of arrays that do, spelled in C: the Python text as expressions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from yota.errors import CodegenError
from yota.generation.evaluation import parsed
from yota.ir.extents import ATOM, PRODUCT, SUM, UNARY, Spelled

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Div: "/", ast.Mod: "%"}
_ANGLE = "3.141592653589793 * (double)(2 * {at} + 1 - {size}) / (double)({size} - 1)"
_BELOW = "(double)(2 * {at} + 1 - {size}) / (double)({size} - 1)"
_WINDOWS = {
    "np.hanning": f"{{size}} == 1 ? 1.0 : 0.5 + 0.5 * cos({_ANGLE})",
    "np.hamming": f"{{size}} == 1 ? 1.0 : 0.54 + 0.46 * cos({_ANGLE})",
    "np.blackman": "{size} == 1 ? 1.0 : "
    f"0.42 + 0.5 * cos({_ANGLE}) + 0.08 * cos({_ANGLE.replace('3.141592653589793', '6.283185307179586')})",
    "np.bartlett": f"{{size}} == 1 ? 1.0 : 1.0 - fabs({_BELOW})",
    "np.fft.fftfreq": "(double)(2 * {at} < {size} ? {at} : {at} - {size}) * (1.0 / (double){size})",
    "np.fft.rfftfreq": "(double){at} * (1.0 / (double){size})",
}
"""C texts of the element number ``at``."""


def whole(text: str, names: Mapping[str, str]) -> Spelled:
    """An int of sizes, which have ``names`` in C.

    >>> whole("(N*(N - 1)) // 2", {"N": "N"}), whole("3*N**2 + 1", {"N": "n"})
    ('N * (N - 1) / 2', '3 * n * n + 1')
    """
    return _whole(parsed(text), names)


def real(text: str, names: Mapping[str, str]) -> Spelled:
    """A float of sizes.

    >>> real("float(np.divide(1, N))", {"N": "N"}), real("-math.sqrt(float(2*N))", {"N": "N"})
    ('1.0 / (double)N', '-sqrt((double)(2 * N))')
    """
    return _element(parsed(text), (), names, "double")


def element(text: str, at: Sequence[str], names: Mapping[str, str], kind: str) -> Spelled:
    """An element of the array that ``text`` makes, of C type ``kind``, at counters with the names ``at``."""
    return _element(parsed(text), at, names, kind)


def _whole(tree: ast.expr, names: Mapping[str, str]) -> Spelled:
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return Spelled(str(tree.value))
    if isinstance(tree, ast.Name) and tree.id in names:
        return Spelled(names[tree.id])
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return Spelled(f"-{_whole(tree.operand, names).within(UNARY + 1)}", UNARY)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
        count = tree.right.value
        if type(count) is int and 0 < count < 9:
            return Spelled(" * ".join([_whole(tree.left, names).within(ATOM)] * count), PRODUCT if count > 1 else ATOM)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS and not isinstance(tree.op, ast.Div):
        return _joined(_whole(tree.left, names), type(tree.op), _whole(tree.right, names))
    raise _unknown(tree)


def _joined(left: Spelled, sign: type[ast.operator], right: Spelled) -> Spelled:
    level = SUM if sign in (ast.Add, ast.Sub) else PRODUCT
    # Quotients are exact as they stand: nothing may be divided sooner.
    inner = level if sign in (ast.Add, ast.Mult) and "/" not in right else level + 1
    return Spelled(f"{left.within(level)} {_SIGNS[sign]} {right.within(inner)}", level)


def _element(tree: ast.expr, at: Sequence[str], names: Mapping[str, str], kind: str) -> Spelled:
    """An element of what ``tree`` makes, at the counters ``at``."""
    if isinstance(tree, ast.Call):
        return _called(tree, at, names, kind)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, bool):
        return Spelled(str(int(tree.value)))
    if isinstance(tree, ast.Constant) and isinstance(tree.value, float):
        return Spelled(repr(tree.value)) if tree.value == tree.value else Spelled("NAN")
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return Spelled(f"-{_element(tree.operand, at, names, kind).within(ATOM)}", UNARY)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div):
        return _divided(tree.left, tree.right, at, names, kind)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS and (at or not _is_whole(tree)):
        return _joined(_element(tree.left, at, names, kind), type(tree.op), _element(tree.right, at, names, kind))
    if isinstance(tree, ast.Subscript) and isinstance(tree.slice, (ast.Tuple, ast.Slice, ast.Constant)):
        return _element(tree.value, _kept(tree.slice, at), names, kind)
    return _whole(tree, names)


def _is_whole(tree: ast.expr) -> bool:
    return not any(
        isinstance(part, (ast.Call, ast.Div)) or (isinstance(part, ast.Constant) and isinstance(part.value, float))
        for part in ast.walk(tree)
    )


def _kept(index: ast.expr, at: Sequence[str]) -> tuple[str, ...]:
    """Counters of the axes that ``index`` does not put in."""
    entries = index.elts if isinstance(index, ast.Tuple) else [index]
    fresh = [isinstance(entry, ast.Constant) and entry.value is None for entry in entries]
    return tuple(counter for place, counter in enumerate(at) if place >= len(fresh) or not fresh[place])


def _called(tree: ast.Call, at: Sequence[str], names: Mapping[str, str], kind: str) -> Spelled:
    name = ast.unparse(tree.func)
    if isinstance(tree.func, ast.Attribute) and tree.func.attr == "astype":
        return _element(tree.func.value, at, names, kind)
    if isinstance(tree.func, ast.Attribute) and tree.func.attr == "reshape":
        return _element(tree.func.value, [_counted_through(at, tree.args, names)], names, kind)
    given = tree.args
    if name == "np.divide":
        return _divided(given[0], given[1], at, names, kind)
    if name == "float" or name.startswith("np.float"):
        return _cast(given[0], "float" if name == "np.float32" else "double", at, names, kind)
    if name.startswith(("np.int", "np.uint")):
        return _whole(given[0], names)
    if name == "np.log":
        return Spelled(f"log({_cast(given[0], 'double', at, names, kind)})")
    if name == "math.sqrt":
        return Spelled(f"sqrt({_element(given[0], at, names, kind)})")
    return _one_of(tree, name, at, names, kind)


def _one_of(tree: ast.Call, name: str, at: Sequence[str], names: Mapping[str, str], kind: str) -> Spelled:
    """An element of the array that a call makes."""
    given = tree.args
    if name in ("np.full", "np.broadcast_to"):
        return _element(given[1 if name == "np.full" else 0], at, names, kind)
    if name == "np.arange":
        return _counted(given, at[0], names, kind)
    if name == "np.linspace":
        return _spaced(given, at[0], names)
    if name in _WINDOWS:
        return Spelled(_window(name, at[0], _whole(given[0], names)), SUM - 1)
    if name in ("np.eye", "np.tri"):
        return _masked(tree, at)
    if name == "np.where":
        choice = _condition(given[0], at, names, kind)
        one, other = (_element(each, at, names, kind) for each in given[1:])
        return Spelled(f"{choice} ? {one} : {other}", SUM - 1)
    raise _unknown(tree)


def _window(name: str, at: str, size: str) -> str:
    """An element of what NumPy's function ``name`` makes of the name of a size."""
    return _WINDOWS[name].format(at=at, size=size)


def _condition(tree: ast.expr, at: Sequence[str], names: Mapping[str, str], kind: str) -> str:
    """What a choice goes by: a mask of ones and zeros, or whether a whole number of the position is some number."""
    if not isinstance(tree, ast.Compare):
        return _element(tree, at, names, kind).removesuffix(" ? 1.0 : 0.0")
    text = _element(tree.left, at, names, "int64_t")
    mask = text.removesuffix(" ? 1.0 : 0.0")
    return mask if mask != text else f"{text.within(SUM)} == {_whole(tree.comparators[0], names)}"


def _divided(above: ast.expr, below: ast.expr, at: Sequence[str], names: Mapping[str, str], kind: str) -> Spelled:
    """A quotient of floats, of whole numbers too."""
    parts = []
    for each in (above, below):
        text = _element(each, at, names, kind)
        real = f"{text}.0" if text.isdigit() else f"(double){text.within(ATOM)}"
        parts.append(Spelled(real, UNARY) if _is_whole(each) else text)
    return _joined(parts[0], ast.Div, parts[1])


def _cast(tree: ast.expr, cast: str, at: Sequence[str], names: Mapping[str, str], kind: str) -> Spelled:
    if _is_whole(tree):
        return Spelled(f"({cast}){_whole(tree, names).within(ATOM)}", UNARY)
    inner = _element(tree, at, names, kind)
    return inner if cast == "double" else Spelled(f"(float){inner.within(ATOM)}", UNARY)


def _counted_through(at: Sequence[str], shape: Sequence[ast.expr], names: Mapping[str, str]) -> Spelled:
    """The number of an element, in the order of memory."""
    found = Spelled(at[0])
    for counter, extent in zip(at[1:], shape[1:], strict=True):
        found = _joined(_joined(found, ast.Mult, _whole(extent, names)), ast.Add, Spelled(counter))
    return found


def _counted(given: Sequence[ast.expr], counter: str, names: Mapping[str, str], kind: str) -> Spelled:
    number = counter if isinstance(counter, Spelled) else Spelled(counter)
    if kind in ("float", "double"):
        number = Spelled(f"({kind}){number.within(ATOM)}", UNARY)
    if len(given) < 2:
        return number
    return _joined(_element(given[0], (), names, kind), ast.Add, number)


def _spaced(given: Sequence[ast.expr], counter: str, names: Mapping[str, str]) -> Spelled:
    """As NumPy computes it: the last one is exact."""
    start, stop = (_element(each, (), names, "double") for each in given[:2])
    count = _whole(given[2], names)
    step = f"({stop.within(SUM)} - {start.within(PRODUCT)}) / (double)({count} - 1)"
    inner = f"(double){counter} * ({step})" + ("" if start == "0.0" else f" + {start.within(PRODUCT)}")
    last = f"{counter} == {count} - 1 ? {stop} : {inner}"
    return Spelled(f"{counter} == 0 ? {start} : {last}", SUM - 1)


def _masked(tree: ast.Call, at: Sequence[str]) -> Spelled:
    offset = next((constant(each.value) for each in tree.keywords if each.arg == "k"), 0)
    sign = "==" if ast.unparse(tree.func) == "np.eye" else "<="
    return Spelled(f"{at[1]} {sign} {shifted(at[0], offset)} ? 1.0 : 0.0", SUM - 1)


def shifted(counter: str, offset: int) -> str:
    """``counter + offset``."""
    return counter if not offset else f"{counter} {'+' if offset > 0 else '-'} {abs(offset)}"


def constant(tree: ast.expr) -> int:
    """The int that is written out."""
    return int(ast.literal_eval(tree))


def _unknown(tree: ast.expr) -> CodegenError:
    return CodegenError(
        f"{ast.unparse(tree)} cannot be said in C; pass it as an argument, fix the sizes, or generate for NumPy "
        '(target="numpy")'
    )
