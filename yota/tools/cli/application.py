"""The command line application: its commands, and the conversion of errors to one paragraph and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

import yota
from yota.errors import ArgumentError, YotaError
from yota.tools.cli.bench_command import bench
from yota.tools.cli.check_command import check
from yota.tools.cli.generate_command import generate
from yota.tools.cli.rules_command import rules
from yota.tools.cli.show_command import report, show
from yota.tools.cli.terminal import failure, text
from yota.tools.cli.user_function import Loaded, UsageError
from yota.tools.doctor import doctor

# typer may contain its own copy of click, with these base classes.
_UsageFault: Any = typer.BadParameter.__mro__[2]

_HELP = """
Gradients of plain NumPy functions, as generated code.

Name a function as `pkg.mod:f` or `path/to/file.py:f`, and describe each argument by a spec: `--arg "x=float64[4,3]"`.
yota imports the module and runs the function, and no other code of yours.

    yota show examples/polynomial.py:polynomial --arg "x=float64[8]"

    yota generate pkg.energy:potential --arg "x=float64[N,3]" -o energy_grad.py

    yota report pkg.energy:potential --arg "x=float64[4,3]" -o energy.html

    yota rules power

    yota --install-completion

Exit codes: 0 success, 1 a check or the differentiation failed, 2 wrong usage.
"""

application = typer.Typer(
    name="yota",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        text(f"yota {yota.__version__}")
        raise typer.Exit


@application.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the traceback of an error.")] = False,
) -> None:
    """See the help of the application."""


for each in (generate, show, report, rules, check, bench, doctor):
    application.command()(each)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # Commands show their own progress.
    os.environ.setdefault("YOTA_PROGRESS", "off")
    words = list(sys.argv[1:] if arguments is None else arguments)
    verbose = "--traceback" in words
    words = [word for word in words if word != "--traceback"]
    try:
        found = application(words, standalone_mode=False, prog_name="yota")
        return found if isinstance(found, int) else 0
    except typer.Exit as leaving:
        return leaving.exit_code
    except _UsageFault as fault:
        # Without arguments, typer has already shown the help.
        if fault.format_message():
            failure(_formatted(fault))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        failure("stopped")
        return 130
    except BrokenPipeError:
        # The reader of the pipe has closed it.
        sys.stderr.close()
        return 1
    except Exception as fault:  # noqa: BLE001  (the last resort, where every fault becomes a paragraph)
        if verbose:
            traceback.print_exc()
        failure(_paragraph(fault))
        return 2 if isinstance(fault, (UsageError, ArgumentError)) else 1


def _formatted(fault: Any) -> str:
    # Typer includes the exception name in messages about choices.
    text: str = fault.format_message().replace(": Value error, ", ": ")
    context = getattr(fault, "ctx", None)
    if context is None:
        return text
    return f"{text.rstrip('.')}. `{context.command_path} --help` shows how it is called."


def _paragraph(fault: Exception) -> str:
    if isinstance(fault, (UsageError, YotaError)):
        return str(fault)
    cause: BaseException = fault
    opening = ""
    if isinstance(fault, Loaded) and fault.__cause__ is not None:
        cause, opening = fault.__cause__, f"importing {fault} raised "
    return f"{opening}{type(cause).__name__}: {cause}{_line(cause)}"


def _line(fault: BaseException) -> str:
    """The line of the user's code that raised, for an exception that is not yota's."""
    package = str(Path(yota.__file__).parent)
    frames = [frame for frame in traceback.extract_tb(fault.__traceback__) if not frame.filename.startswith(package)]
    own = [frame for frame in frames if "importlib" not in frame.filename and "click" not in frame.filename]
    own = [frame for frame in own if f"{Path('site-packages')}" not in frame.filename]
    if not own:
        return "; --traceback shows the traceback"
    return f"\n    {Path(own[-1].filename).name}:{own[-1].lineno}: {own[-1].line}"
