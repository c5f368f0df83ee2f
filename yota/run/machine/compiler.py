"""Finds and runs the C compiler, without a shell, and tells the features of this processor."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from yota.errors import CodegenError, CompilerError
from yota.run.machine.background import communicated
from yota.run.machine.store import Store, digest_of

_FLAGS: tuple[str, ...] = (
    "-O3", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
    "-fwrapv", "-fPIC", "-shared",
    "-std=gnu11", "-Wno-unknown-pragmas", "-fno-predictive-commoning",
)  # fmt: skip
"""Flags of every compilation.

By default compilers use half of the widest vectors, and libm's functions of these take twice the time for each element.
The predictive commoning of GCC reads ahead what a loop writes in several rows, and writes it back later. It loses what
another thread wrote next to these places.
"""
_VECTOR_LOOP = "#pragma omp simd"
_VECTOR_FLAGS = ("-fno-thread-jumps", "-fno-tree-pre", "-fno-tree-sink")
"""Flags of GCC for a source with vector loops.

Without these GCC moves function calls into the branches of a choice, and does not vectorise a loop with such branches.
"""
if sys.platform == "darwin":
    _FLAGS = (*_FLAGS, "-undefined", "dynamic_lookup")
_QUICK = 200_000
"""Source length above which optimisation is reduced, so that it compiles in seconds."""
_CURE = 'Install one (Debian: apt install gcc python3-dev; macOS: xcode-select --install), or use target="numpy".'

_WHOLE_NUMPY = (
    "Install NumPy with them (pip install --force-reinstall numpy; Debian: apt install python3-numpy-dev), or use "
    'target="numpy".'
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A working C compiler."""

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    vector_flags: tuple[str, ...]

    def arguments(self, code: str) -> tuple[str, ...]:
        """Flags for a source text."""
        flags = (*self.flags, *self.vector_flags) if _VECTOR_LOOP in code else self.flags
        return (*flags, "-O1") if len(code) > _QUICK else flags

    def compile(self, source: Path, output: Path, header: Path | None = None) -> None:
        """Compile a C file to a shared object."""
        flags = self.arguments(source.read_text(encoding="utf-8"))
        first = ("-include", str(header)) if header is not None else ()
        done = self._run(*flags, *first, str(source), "-o", str(output), "-lm")
        if done.returncode and first:
            done = self._run(*flags, str(source), "-o", str(output), "-lm")
        if done.returncode:
            raise CodegenError(f"{' '.join(self.command)} failed on generated code:\n{done.stderr[-4000:]}")

    def parse(self, header: Path, output: Path) -> None:
        """Precompile a header."""
        flags = [flag for flag in self.flags if flag != "-shared"]
        done = self._run(*flags, "-x", "c-header", str(header), "-o", str(output))
        if done.returncode:
            raise CodegenError(f"{' '.join(self.command)} keeps no parsed headers:\n{done.stderr[-4000:]}")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return _run([*self.command, *arguments])


def _run(command: Sequence[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """The result of a command; a command that cannot be started counts as failed."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return communicated(list(command), text, environment)
    except OSError as error:
        return subprocess.CompletedProcess(list(command), 127, "", str(error))


def find(kept: Store | None = None) -> Compiler:
    """The compiler: ``$CC``, or ``cc``, or ``gcc``, or ``clang``."""
    return _found(os.environ.get("CC", ""), os.environ.get("PATH", ""), kept)


@functools.lru_cache(maxsize=16)
def _found(wanted: str, _path: str, kept: Store | None) -> Compiler:
    command = _command(wanted)
    include = Path(sysconfig.get_paths()["include"])
    _need("Python", include / "Python.h", _CURE)
    _need("NumPy", Path(np.get_include(), "numpy", "arrayobject.h"), _WHOLE_NUMPY)
    if kept is None:
        return _tried(command, include)
    # Testing a compiler takes longer than loading compiled code.
    text = kept.note(_identity(command, include), lambda: json.dumps(dataclasses.astuple(_tried(command, include))))
    try:
        # The stored result for a compiler.
        command, version, flags, vector_flags = json.loads(text)
        if not command or not all(type(each) is str for each in (*command, version, *flags, *vector_flags)):
            raise TypeError(text)
        return Compiler(tuple(command), version, tuple(flags), tuple(vector_flags))
    except (ValueError, TypeError, LookupError):
        # The stored text was not written by this code.
        return _tried(command, include)


def _need(whose: str, header: Path, cure: str) -> None:
    if not header.is_file():
        raise CompilerError(f'target="c" needs the headers of {whose}, and {header} is missing. {cure}')


def _identity(command: tuple[str, ...], include: Path) -> str:
    """A digest that identifies a compiler without running it."""
    program = Path(shutil.which(command[0]) or command[0]).resolve()
    state = program.stat()
    parts = [*command, program, state.st_mtime_ns, state.st_size, include, np.get_include(), *_FLAGS, *_VECTOR_FLAGS]
    return f"compiler-{digest_of(map(str, parts))}"


def _tried(command: tuple[str, ...], include: Path) -> Compiler:
    """The compiler with its supported flags."""
    includes = ("-I" + str(include), "-I" + np.get_include())
    version = _run([*command, "--version"]).stdout.strip().partition("\n")[0]
    for extra in (("-fopenmp",), ("-fopenmp-simd",), ()):
        # Some processors have no such vectors, and some compilers do not know the processor.
        for start in ("none", "-mprefer", "-m"):
            flags = tuple(flag for flag in _FLAGS if not flag.startswith(start))
            if _works(command, (*flags, *extra)):
                known = _VECTOR_FLAGS if _works(command, (*flags, *extra, *_VECTOR_FLAGS)) else ()
                return Compiler(command, version, (*flags, *extra, *includes), known)
    done = _run([*command, "-xc", "-", "-o", os.devnull], "int main(void) { return 0; }\n")
    said = done.stderr.strip()[-2000:] or f"it ends with status {done.returncode}"
    raise CompilerError(f"the C compiler {' '.join(command)} does not work: {said}\n{_CURE}")


def _command(wanted: str) -> tuple[str, ...]:
    if wanted.strip():
        try:
            command = tuple(shlex.split(wanted))
        except ValueError as error:
            raise CompilerError(f"CC={wanted!r} is no command: {error}. {_CURE}") from None
        if shutil.which(command[0]) is None:
            raise CompilerError(f'target="c" needs a C compiler, and CC={wanted!r} is not on the PATH. {_CURE}')
        return command
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name) is not None:
            return (name,)
    raise CompilerError(f'target="c" needs a C compiler, and there is no cc, gcc or clang on the PATH. {_CURE}')


def _works(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    # Some compilers accept the OpenMP flag but have neither its header nor its library.
    text = "int one(void) { return 1; }\n"
    if "-fopenmp" in flags:
        text = "#include <omp.h>\nint threads(void) { return omp_get_max_threads(); }\n"
    return not _run([*command, *flags, "-xc", "-", "-o", os.devnull], text).returncode
