"""``yota doctor``: reports the installation and the machine, and tests each target."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yota.errors import CodegenError, CompilerError, DeviceError
from yota.settings import configure, settings

_NEEDED = ("numpy", "sympy", "jinja2", "optree")
_OPTIONAL = ("scipy", "mpmath", "typer", "rich", "pygments", "cloudpickle", "threadpoolctl")
_NAMED = ("jax", "torch", "dask", "distributed", "joblib", "scikit-learn")
"""Packages that take long to import; only their versions are reported."""
_VARIABLES = re.compile(r"YOTA_.*|CC|OMP_.*|OPENBLAS_.*|MKL_.*|BLIS_.*|CUDA_(PATH|VISIBLE_DEVICES)|XDG_CACHE_HOME")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report: an item, and whether it is present and does not work."""

    name: str
    found: str
    broken: bool = False


def report() -> tuple[str, int]:
    """The text of the report, with the home folder as ``~``, and the exit code: 1 if anything is broken."""
    lines = list(examined())
    width = max(len(line.name) for line in lines)
    text = [f"{line.name:{width}}  {'BROKEN: ' if line.broken else ''}{line.found}" for line in lines]
    return _without_home("\n".join(text)), int(any(line.broken for line in lines))


def examined() -> Iterator[Line]:
    """All lines of the report."""
    yield from _python()
    yield from _tried("code for NumPy", lambda: _right("numpy"))
    yield from _tried("C compiler", _compiler)
    yield from _blas()
    yield from _tried("CUDA", _cuda)
    yield from _tried("cache", _cache)
    yield Line("settings", repr(settings))
    named = (f"{name}={os.environ[name]}" for name in sorted(os.environ) if _VARIABLES.fullmatch(name))
    yield Line("environment", "; ".join(named) or "none of the variables that count is set")


def _tried(name: str, look: Callable[[], Iterator[Line]]) -> Iterator[Line]:
    """The lines of one check; an exception becomes a line that is marked as broken."""
    try:
        yield from look()
    except Exception as fault:  # noqa: BLE001  (any fault is what the report is for)
        yield Line(name, f"{type(fault).__name__}: {fault}", broken=True)


def _python() -> Iterator[Line]:
    yield Line("yota", f"{importlib.import_module('yota').__version__} in {Path(__file__).parent.parent}")
    yield Line("Python", f"{platform.python_implementation()} {sys.version.split()[0]}, {sys.executable}")
    yield Line("machine", f"{platform.platform()}, {os.cpu_count()} processors")
    for name in (*_NEEDED, *_OPTIONAL):
        yield _package(name)
    known = [(name, _version(name)) for name in _NAMED]
    yield Line("others", ", ".join(f"{name} {version}" for name, version in known if version) or "none")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _package(name: str) -> Line:
    version = _version(name)
    try:
        importlib.import_module(name)
    except Exception as fault:  # noqa: BLE001  (whatever a broken package raises)
        if version is None:
            return Line(name, "not installed", broken=name in _NEEDED)
        return Line(name, f"{version} cannot be imported: {type(fault).__name__}: {fault}", broken=True)
    return Line(name, version or "of no known version")


def _right(target: str) -> Iterator[Line]:
    """Compile a small function for a target and compare it with NumPy."""
    import numpy as np

    import yota

    x = np.linspace(0.0, 1.0, 1000)
    start = time.perf_counter()
    _, tape = yota.trace(lambda x: np.sum(np.exp(x) * x), x)
    call = yota.compile(tape, target)  # type: ignore[arg-type]
    took = time.perf_counter() - start
    value = float(call(x))
    wanted = float(np.sum(np.exp(x) * x))
    wrong = not abs(value - wanted) <= 1e-12 * wanted
    said = f"gives {value!r} for {wanted!r}" if wrong else "runs and is right"
    yield Line(f"code for {'NumPy' if target == 'numpy' else target}", f"{said}; made in {took:.2f} s", broken=wrong)


def _compiler() -> Iterator[Line]:
    from yota.run.machine import native

    try:
        with tempfile.TemporaryDirectory() as empty, configure(cache=empty), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = native.find()
            yield Line("C compiler", f"{' '.join(found.command)}: {found.version}")
            yield Line("flags", " ".join(flag for flag in found.flags if not flag.startswith("-I")))
            yield from _right("c")
            made = b"".join(path.read_bytes() for path in Path(empty).glob("*.so"))
    except CompilerError as fault:
        yield Line("C compiler", str(fault), broken="there is no cc, gcc or clang" not in str(fault))
        return
    vector = "used, several exponentials at once" if b"libmvec" in made else "not used: one exponential at a time"
    yield Line("libmvec", vector)
    threads = f"{settings.threads or 'as many as OpenMP says'}" if "-fopenmp" in found.flags else "one: no OpenMP"
    yield Line("threads in C", threads)


def _blas() -> Iterator[Line]:
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    built = config.get("Build Dependencies", {}).get("blas", {}) if config else {}
    yield Line("BLAS of NumPy", f"{built.get('name', 'unknown')} {built.get('version', '')}".strip())
    try:
        pools = importlib.import_module("threadpoolctl").threadpool_info()
    except ImportError:
        yield Line("threads of BLAS", "not known; pip install threadpoolctl")
        return
    known = (f"{pool['internal_api']} {pool.get('version')}: {pool['num_threads']}" for pool in pools)
    yield Line("threads of BLAS", ", ".join(known) or "none")


def _cuda() -> Iterator[Line]:
    from yota.run.machine import cupy as cuda

    version = next(filter(None, map(_version, ("cupy", "cupy-cuda12x", "cupy-cuda13x"))), None)
    yield Line("CuPy", version or "not installed")
    try:
        library = cuda.cupy()
    except DeviceError as fault:
        # Without a GPU, CUDA cannot be tested, which is no fault.
        missing = version is None or not re.search("cannot be imported|too old", str(fault))
        yield Line("CUDA", str(fault).partition(";")[0], broken=not missing)
        return
    runtime = library.cuda.runtime
    device = runtime.getDeviceProperties(runtime.getDevice())
    yield Line("GPU", f"{device['name'].decode()}, driver for CUDA {runtime.driverGetVersion()}")
    yield Line("NVRTC", ".".join(map(str, library.cuda.nvrtc.getVersion())))
    import numpy as np

    import yota

    x = np.linspace(0.0, 1.0, 1000)
    slope = yota.to_cpu(yota.gradient(lambda x: np.sum(x**3))(yota.to_cuda(x)))
    wrong = not np.allclose(slope, 3 * x**2)
    yield Line("code for cuda", "gives a wrong gradient" if wrong else "runs and is right", broken=wrong)


def _cache() -> Iterator[Line]:
    from yota.run.machine.store import Store

    folder = settings.folder
    try:
        writable = Store(folder).writable
    except CodegenError as fault:
        yield Line("cache", str(fault), broken=True)
        return
    sizes = [entry.stat().st_size for entry in folder.rglob("*") if entry.is_file()] if folder.is_dir() else []
    mode = stat.filemode(folder.stat().st_mode) if folder.is_dir() else "missing"
    said = f"{folder}, {mode}, {len(sizes)} files of {sum(sizes) / 2**20:.1f} MiB"
    yield Line("cache", said if writable else f"{said}: nothing can be kept there", broken=not writable)


def _without_home(text: str) -> str:
    """``text`` with ~ for the user's home folder."""
    homes = {os.path.expanduser("~"), os.path.realpath(os.path.expanduser("~"))} - {"~", "/"}
    for home in sorted(homes, key=len, reverse=True):
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    return text


def doctor() -> int:
    """Report versions, the C compiler, vector functions, threads, BLAS, CUDA, the cache and settings, and test them.
    yota compiles and runs a small function for each available target.

        yota doctor

    Include the output in bug reports; it shows the home folder as ~. The exit code is 1 if an installed part does not
    work. The command does not need the packages of the extra `cli`.
    """
    text, code = report()
    sys.stdout.write(f"{text}\n")
    return code
