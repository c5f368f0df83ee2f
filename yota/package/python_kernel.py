"""A kernel: the generated function of a tape, renamed to stand among others in one file, and its own check."""

from __future__ import annotations

import ast
import inspect
import keyword
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.numpy_literals import dtype_text, tuple_text
from yota.emit.targets.generated import Opening, Source
from yota.emit.targets.numpy import generate
from yota.errors import CodegenError, YotaError
from yota.ir import choices, factors, incomplete, integrals, orders
from yota.ir.callables import name_of
from yota.ir.inputs import Leaf
from yota.ir.plain_text import visible
from yota.ir.solved import REGULAR, SOLVED
from yota.ir.tape import Tape
from yota.optimize.pipeline import run
from yota.package.examples import Integers
from yota.package.signature import Parameter
from yota.package.size_recordings import Sized
from yota.package.subject import Subject
from yota.package.varying import Constants, Varying
from yota.rules.registry import registry
from yota.run.derivatives.inside import record

OWN_PREFIX = "_own__"
"""Ahead of the names of yota's own functions that a module has written out; no name of a user's has two underscores."""
OWN_MODULES = (choices, factors, incomplete, integrals, orders)
"""Where these functions are, which need nothing but `np`."""


def with_own_names(text: str) -> str:
    """Generated code that calls yota's own functions by the names that they have in a module.

    >>> with_own_names("w, v = yota.ir.factors.eig(a)")
    'w, v = _own__eig(a)'
    """
    for module in OWN_MODULES:
        text = text.replace(f"import {module.__name__}\n", "").replace(f"{module.__name__}.", OWN_PREFIX)
    return text


def is_own(function: object) -> bool:
    """Whether ``function`` is one of yota's own."""
    return getattr(function, "__module__", "") in [module.__name__ for module in OWN_MODULES]


def borrowed(text: str) -> list[str]:
    """The definitions of yota's own functions that ``text`` calls, and of those that these call."""
    own = {name: each for module in OWN_MODULES for name, each in sorted(vars(module).items()) if is_own(each)}
    found: dict[str, str] = {}
    pending = [text]
    while pending:
        calling = pending.pop()
        for name in [each for each in own if each not in found and f"{OWN_PREFIX}{each}(" in calling]:
            found[name] = inspect.getsource(own[name]).strip()
            for other in own:
                found[name] = found[name].replace(f" {other}(", f" {OWN_PREFIX}{other}(")
            pending.append(found[name])
    return [found[name] for name in own if name in found]


PRECONDITION = "_precondition"
"""What makes the error of a guard that fails."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Functions of a module that compute the outputs of one tape.

    blocks: texts of its functions and of what they need beside constants.
    """

    name: str
    blocks: tuple[str, ...]
    imports: tuple[str, ...]
    operations: str
    sizes: tuple[str, ...] = ()


def kernel_of(tape: Tape, name: str, constants: Constants, *, strict: bool = False) -> Kernel:
    """The kernel of ``tape``; its constants go to ``constants``."""
    _refuse_solvers(tape)
    return cut(generate(run(tape, strict=strict), strict=strict), name, constants)


def cut(source: Source, name: str, constants: Constants, sizes: Sequence[str] = ()) -> Kernel:
    """The kernel that ``source`` holds, under the name ``name``; of ``sizes`` it takes those that it needs."""
    given = with_own_names(source.text)
    tree = ast.parse(given)
    renamed, imports = {"StaleTape": PRECONDITION}, []
    for found, value in source.constants.items():
        if isinstance(value, (np.ndarray, np.generic)):
            renamed[found] = constants.array(found, np.asarray(value)) + ("" if np.ndim(value) else "[()]")
        elif is_own(value):
            renamed[found] = f"{OWN_PREFIX}{value.__name__}"
        else:
            module, renamed[found] = _importable(value)
            imports.append(f"import {module}")
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            own = statement.name.startswith(source.entry)
            rest = statement.name.removeprefix(source.entry) if own else f"_{statement.name.lstrip('_')}"
            renamed[statement.name] = name + rest
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            target = statement.targets[0].id
            value = ast.unparse(statement.value)
            renamed[target] = name + target if target.startswith("_") else constants.display(target, value)
    text = _renamed(given, renamed)
    blocks = []
    words = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    idle = [size for size in sizes if size not in words]
    for statement, lines in _statements(text):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            imports.append(_admitted(statement))
        elif isinstance(statement, ast.FunctionDef):
            blocks.append(_annotated(statement, lines, idle))
        elif isinstance(statement, ast.Assign) and ast.unparse(statement.value).startswith("deque("):
            before = [line for line in lines if line.startswith("#")]
            assigned = f"{ast.unparse(statement.targets[0])}: deque[Any] = {ast.unparse(statement.value)}"
            blocks.append("\n".join([*before, assigned]))
    operations = source.operations.removesuffix("; 0 blocked loops")
    return Kernel(name, tuple(blocks), tuple(imports), operations, tuple(size for size in sizes if size not in idle))


def _refuse_solvers(tape: Tape) -> None:
    """Raise CodegenError for solutions that functions of this process give or check."""
    for op in tape.ops:
        if op.primitive in (SOLVED, REGULAR):
            name = op.keyword("host").name if op.primitive is SOLVED else op.keyword("what")
            raise CodegenError(
                f"the equations of {name} are solved by functions of this process, which a module without yota cannot "
                "have; generate a module of the rest, and call it from code with yota"
            )


def _importable(value: Any) -> tuple[str, str]:
    """The module of a function of the user's, and the name by which code that imports that module calls it."""
    module, name = str(getattr(value, "__module__", "")), str(getattr(value, "__qualname__", ""))
    plain = all(map(str.isidentifier, [*module.split("."), name])) and module.isascii() and name.isascii()
    apart = module.partition(".")[0] not in ("__main__", "yota")
    if plain and apart and getattr(sys.modules.get(module), name, None) is value:
        return module, f"{module}.{name}"
    what = visible(name or name_of(value))
    raise CodegenError(
        f"the function calls {what}, which a module cannot import; define it at the top level of a module, or give it "
        "a rule with a primal, so that its code is generated"
    )


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """``text`` with names of variables and functions replaced."""
    lines = [line.encode() for line in text.split("\n")]
    found: list[tuple[int, int, str]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            found.append((node.lineno - 1, node.col_offset, node.id))
        elif isinstance(node, ast.FunctionDef):
            found.append((node.lineno - 1, node.col_offset + len("def "), node.name))
    for number, start, name in sorted(found, reverse=True):
        line = lines[number]
        lines[number] = line[:start] + names.get(name, name).encode() + line[start + len(name.encode()) :]
    return "\n".join(line.decode() for line in lines)


def _statements(text: str) -> Iterator[tuple[ast.stmt, list[str]]]:
    """Each statement at the top level with its lines, those of comments right above it included."""
    lines = text.split("\n")
    for statement in ast.parse(text).body:
        first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", []))])
        while first > 1 and lines[first - 2].startswith("#"):
            first -= 1
        yield statement, lines[first - 1 : statement.end_lineno]


def _annotated(function: ast.FunctionDef, lines: list[str], idle: Sequence[str]) -> str:
    """A function's text with hints in its signature, without the ``idle`` parameters."""
    parameters = ", ".join(f"{each.arg}: Any" for each in function.args.args if each.arg not in idle)
    header = f"def {function.name}({parameters}) -> Any:"
    shown = (line if line.isascii() else visible(line) for line in lines)
    return "\n".join(header if line.startswith("def ") else line for line in shown)


def _admitted(statement: ast.Import | ast.ImportFrom) -> str:
    """The import statement, if a module may have it."""
    names = [each.name for each in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
    for name in names:
        if name.partition(".")[0] == "yota" or any(map(keyword.iskeyword, name.split("."))):
            raise CodegenError(f"the function calls {name}, which a module without yota cannot have")
    return ast.unparse(statement)


def sized_kernel(sized: Sized, tape: Tape, varying: Sequence[Varying], name: str, constants: Constants) -> Kernel:
    """The kernel of a tape for all sizes, whose last inputs are ``varying``."""
    _refuse_solvers(tape)
    tape = run(tape, strict=sized.strict)
    sized.decided()
    checks: tuple[str, ...] = ()
    # Sizes for which the function has no value are refused.
    if failed := sized.conditions.failed("or", 2):
        checks = (f"if {failed}:", f'    raise ValueError("sizes must be {sized.conditions.described(2)}")')
    made, values = [each.text for each in varying], [each.values for each in varying]
    opening = Opening(sized.samples.names, checks, tuple(made), tuple(values))
    return cut(generate(tape, strict=sized.strict, opening=opening), name, constants, opening.sizes)


_ANALYTIC = frozenset(
    "add subtract multiply divide power negative positive square sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan"
    " sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh reciprocal sum prod cumsum matmul einsum getitem"
    " setitem scatter reshape transpose broadcast_to concatenate stack astype".split()
)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Texts for the template.

    places: positions of the arguments that it differentiates by.
    lines: statements that compute ``expected`` from ``steps``.
    """

    method: str
    function: str
    places: str
    points: tuple[str, ...]
    lines: tuple[str, ...]
    tolerance: str


def self_test_of(
    subject: Subject, name: str, parameters: Sequence[Parameter], sizes: Sequence[str], kernel: Kernel | None
) -> SelfTest:
    """The check of the function ``name``; ``kernel`` is that for complex arguments, if there is one."""
    shapes = [_shape(each, sizes) for each in parameters]
    integers = Integers.beside((each.type.dtype, shape) for each, shape in zip(parameters, shapes, strict=True))
    points = tuple(f"{_point(each, shape, integers)}," for each, shape in zip(parameters, shapes, strict=True))
    places, function = tuple_text(subject.layout.wanted), f"{name}_value_and_gradient"
    if kernel is not None:
        line = f"expected = np.imag({kernel.name}(*_moved(point, steps, 1e-30j))) / 1e-30"
        return SelfTest("complex steps", function, places, points, (line,), "1e-9")
    lines = (
        f"ahead = float({function}(*_moved(point, steps, 1e-6))[0])",
        f"back = float({function}(*_moved(point, steps, -1e-6))[0])",
        "expected = (ahead - back) / 2e-6",
    )
    return SelfTest("central differences", function, places, points, lines, "1e-5")


def _shape(parameter: Parameter, sizes: Sequence[str]) -> tuple[int, ...]:
    return tuple(4 + sizes.index(extent) if isinstance(extent, str) else extent for extent in parameter.shape)


def _point(parameter: Parameter, extents: tuple[int, ...], integers: Integers) -> str:
    shape, dtype = tuple_text(extents), parameter.type.dtype
    if dtype.kind in "fc":
        return f"_point({shape})" + ("" if dtype == np.float64 else f".astype({dtype_text(dtype)})")
    if dtype.kind == "b":
        return f"np.ones({shape}, {dtype_text(dtype)})"
    return f"_integers({shape}, {integers.start()}, {integers.bound}).astype({dtype_text(dtype)})"


def complex_kernel(subject: Subject, name: str, constants: Constants) -> Kernel | None:
    """The function on complex arguments, if it is analytic throughout."""
    leaves = list(subject.arguments.leaves)
    for leaf in subject.layout.wanted:
        known = leaves[leaf]
        if np.asarray(known.value).dtype != np.float64:
            return None
        value = complex(known.value) if isinstance(known.value, float) else np.asarray(known.value, np.complex128)
        leaves[leaf] = Leaf(value if np.ndim(value) else np.complex128(value), known.argument, known.name, known.path)
    try:
        tape: Tape = record(subject.function, leaves, subject.arguments.rebuild, registry=registry()).tape
        if not all(op.name in _ANALYTIC for op in tape.ops) or tape.guards:
            return None
        return kernel_of(tape, name, constants)
    except (YotaError, TypeError, ValueError, ArithmeticError):
        return None
