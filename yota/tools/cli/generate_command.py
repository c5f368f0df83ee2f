"""``yota generate``: writes standalone code, or checks that a file is current."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from yota.tools.cli import user_function
from yota.tools.cli.terminal import code, output, remark, text, working
from yota.tools.cli.user_function import UsageError, function_at, given, load_rule_files, shown_reference


class Target(str, Enum):
    """Target of the generated code."""

    numpy = "numpy"
    c = "c"
    cuda = "cuda"
    fortran = "fortran"
    javascript = "javascript"


class Effort(str, Enum):
    """Effort of the search for fewer operations."""

    quick = "quick"
    high = "high"


class Content(str, Enum):
    """A function of a module."""

    value = "value"
    gradient = "gradient"
    jacobian = "jacobian"
    hessian = "hessian"
    hvp = "hvp"


_ENDINGS = {
    "c": (".c", "its header gets the same name with .h"),
    "cuda": (".cu", "the Python file that launches it gets the same name with .py"),
    "fortran": (".f90", "the source is in free form"),
    "javascript": (".mjs", "the file is an ES module"),
}
"""Suffixes of the first file, with a remark."""

_LEXERS = {"numpy": "python", "fortran": "fortran", "javascript": "javascript"}
_USUAL = [Content.value, Content.gradient]

Function = Annotated[
    str,
    typer.Argument(help="pkg.mod:f or path/to/file.py:f", show_default=False, autocompletion=user_function.functions),
]
Arguments = Annotated[list[str], typer.Option("--arg", "-a", help='Spec of one argument, as in "x=float64[4,3]".')]
Wrt = Annotated[list[str], typer.Option("--wrt", help="Argument to differentiate by, by name; may be repeated.")]
Strict = Annotated[bool, typer.Option("--strict", help="Make the value equal NumPy's bit for bit.")]
Rules = Annotated[list[Path], typer.Option("--rules", help="Rule file to load first; may be repeated.")]
Contents = Annotated[
    list[Content], typer.Option("--with", help="value, gradient, jacobian, hessian or hvp; may be repeated.")
]
Output = Annotated[str, typer.Option("--output", "-o", help="File to write; - for standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that yota did not write.")]


def generate(
    function: Function,
    arg: Arguments = [],  # noqa: B006  (typer reads it, nobody writes it)
    out: Output = "-",
    target: Annotated[Target, typer.Option("--target", help="Target of the code.")] = Target.numpy,
    name: Annotated[str, typer.Option("--name", help="Name of the function in the module.")] = "",
    wrt: Wrt = [],  # noqa: B006
    with_: Contents = _USUAL,
    license: Annotated[str, typer.Option("--license", help="License text for the top of the file.")] = "",
    self_test: Annotated[bool, typer.Option("--self-test", help="Let `python FILE` check the derivatives.")] = False,
    extension: Annotated[
        bool, typer.Option("--extension", help="With C: also a Python extension and its build files.")
    ] = False,
    strict: Strict = False,
    effort: Annotated[Effort, typer.Option("--effort", help="Search effort for fewer operations.")] = Effort.high,
    sample: Annotated[
        str, typer.Option("--sample", help="Function that returns sample arguments for named sizes.")
    ] = "",
    rules: Rules = [],  # noqa: B006
    check: Annotated[bool, typer.Option("--check", help="Write nothing; compare with the file on disk.")] = False,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> int:
    """Write a module with a function and its derivatives that needs only NumPy, or code in another language.

    The file does not need yota at run time.

        yota generate pkg.energy:potential --arg "x=float64[4,3]" --arg "eps=float" -o pkg/_potential_grad.py

    The module has `potential`, `potential_gradient` and `potential_value_and_gradient`. Commit it, and let CI check
    that it is current (otherwise: a diff and exit code 1):

        yota generate pkg.energy:potential --arg "x=float64[4,3]" --arg "eps=float" -o pkg/_potential_grad.py --check

    Write a C99 file and its header, for programs in C and C++:

        yota generate pkg.energy:potential --arg "x=float64[N,3]" --arg "eps=float" --target c -o src/potential.c

    `--extension` also writes a Python extension module, and a `meson.build` and `pyproject.toml` that build it.

    Write a CUDA file with kernels and launch functions, and a Python file that launches the kernels with CuPy:

        yota generate pkg.energy:potential --arg "x=float64[N,3]" --target cuda -o src/potential.cu

    Write a Fortran module whose functions C calls too, or an ES module for Node.js and browsers:

        yota generate pkg.energy:potential --arg "x=float64[N,3]" --target fortran -o src/potential.f90
        yota generate pkg.energy:potential --arg "x=float64[N,3]" --target javascript -o src/potential.mjs

    Specs: `float64[4,3]` an array, `float64` a NumPy number, `float` a Python number, `3`, `True` or `'mean'` a fixed
    value, and structures of them: `[float, float64[2]]`, `{'w': float64[3]}`, `Params(w=float64[3], b=float64)`, where
    the function's module knows the class `Params`. You may omit arguments with defaults. Sizes may have names:
    `float64[N,3]` supports all sizes, on every target. `float64[B,...]` supports any number of further axes: in NumPy
    modules, and in C files if only the number of elements matters. Functions in C and CUDA take named sizes as first
    arguments; the head of the file gives their smallest values.

    yota traces the function, and tests code for named sizes, on generated arguments: floating-point numbers between 1/4
    and 3/4, and integers that are valid indices of every axis. If the function has no value there, name a function that
    returns other arguments by name, as in `def sample(N): return {"x": ...}`: `--sample pkg.energy:sample`.

    Instead of a module you can name a file of sympy expressions, one `name = expression` on each line, whose name ends
    in `.sympy` or `.txt`. yota parses the file and never executes it:

        yota generate potential.sympy:energy --arg "x=float" --arg "eps=float" --target c -o src/potential.c
    """
    from yota.export import generate as make
    from yota.package.request import command_of
    from yota.package.subject import relative

    if check and out == "-":
        raise UsageError("--check needs -o FILE, the file to compare with")
    if extension and target is not Target.c:
        raise UsageError("--extension goes with --target c")
    ending = _ENDINGS.get(target.value)
    if ending and out != "-" and Path(out).suffix != ending[0]:
        raise UsageError(f"-o {out}: the file's name must end in {ending[0]}; {ending[1]}")
    load_rule_files(rules)
    contents = tuple(each.value for each in with_)
    command = command_of(
        shown_reference(function), arg=arg, rules=[relative(path) for path in rules], target=target.value, name=name,
        wrt=wrt, with_=contents, license=license, effort=effort.value,
        sample=shown_reference(sample) if sample else "", self_test=self_test, extension=extension, strict=strict,
    )  # fmt: skip
    command += ("-o", relative(out)) if out != "-" else ()
    f = function_at(function)
    with working("tracing and generating"):
        module = make(
            f,
            given(arg),
            target.value,
            name or None,
            wrt=tuple(wrt) if len(wrt) > 1 else wrt[0] if wrt else None,
            with_=contents,
            license=license or None,
            self_test=self_test,
            strict=strict,
            effort=effort.value,
            extension=extension,
            command=command,
            stem=Path(out).stem if ending and out != "-" else None,
            sample=function_at(sample) if sample else None,
        )
    for note in module.notes:
        remark(f"note: {note}")
    if check:
        return _compare(module, out, as_json)
    if out == "-":
        if as_json:
            output({"files": dict(module.files), "notes": list(module.notes)})
        else:
            code("\n".join(module.files.values()), _LEXERS.get(target.value, "c"))
        return 0
    module.write(out, force=force)
    written = {str(place): text for place, text in module.places(out).items()}
    if as_json:
        output({"written": list(written), "notes": list(module.notes)})
    for place, content in written.items() if not as_json else ():
        remark(f"{place}: {len(content.splitlines())} lines")
    return 0


def _compare(module: Any, out: str, as_json: bool) -> int:
    difference = module.difference(out)
    if as_json:
        output({"file": out, "current": not difference, "difference": difference})
    elif difference and sys.stdout.isatty():
        code(difference, "diff")
    elif difference:
        text(difference)
    if difference:
        remark(f"{out} is stale: run the command without --check")
    return 1 if difference else 0
