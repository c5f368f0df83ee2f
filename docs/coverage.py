"""Writes docs/coverage.md: what becomes of each function of NumPy, found by tracing and differentiating a call of it.

Run as ``python docs/coverage.py``; ``python docs/coverage.py --check`` only says whether the page is current.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import yota
from yota.errors import YotaError
from yota.rules.registry import registry

PAGE = Path(__file__).with_name("coverage.md")

# How functions are called, where it is not `f(x)`, or `f(x, y)` for a ufunc of two. `x` and `y` are matrices of
# positive numbers, `v` and `w` vectors, `s` is a well conditioned square matrix, `t` a table of three axes, `k` holds
# integers.
CALLS = {
    "f(v)": "trim_zeros sort_complex poly polyder polyint roots unwrap meshgrid ix_ vander",
    "f(x, y)": """
        inner vdot kron array_equiv append setdiff1d setxor1d intersect1d union1d isin may_share_memory
        shares_memory result_type
    """,
    "f(v, w)": "convolve correlate polyadd polysub polymul polydiv",
    "f((x, y))": "concatenate concat stack vstack row_stack hstack dstack column_stack",
    "f(s)": "inv det slogdet eig eigvals triu_indices_from tril_indices_from",
    "f(s, v)": "solve",
    "f(x, 1)": "pad array_split roll tile repeat delete expand_dims",
    "f(x, 0.3)": "quantile nanquantile",
    "f(x, 30.0)": "percentile nanpercentile",
}
SPECIAL = {
    "acosh": "f(x + 1)",
    "allclose": "f(x, x)",
    "apply_along_axis": "f(np.sum, 0, x)",
    "apply_over_axes": "f(np.sum, x, 1)",
    "arange": "f(v[0], 5.0)",
    "argpartition": "f(x, 1)",
    "arccosh": "f(x + 1)",
    "array_equal": "f(x, x)",
    "astype": "f(x, complex)",
    "bincount": "f(k, weights=v)",
    "broadcast_to": "f(v, (2, 3))",
    "cholesky": "f(s + s.T)",
    "choose": "f(k % 2, [v, w])",
    "clip": "f(x, 0.5, 0.8)",
    "compress": "f([True, False], x, axis=0)",
    "copyto": "f(x.copy(), y)",
    "cross": "f(v, w)",
    "cumulative_prod": "f(v)",
    "cumulative_sum": "f(v)",
    "digitize": "f(v, np.sort(w))",
    "diag_indices_from": "f(s)",
    "dot": "f(x, y.T)",
    "dsplit": "f(t, 2)",
    "eigh": "f(s + s.T)",
    "eigvalsh": "f(s + s.T)",
    "einsum": "f('ij,kj->ik', x, y)",
    "einsum_path": "f('ij,kj->ik', x, y)",
    "extract": "f(x > 0.6, x)",
    "fill_diagonal": "f(s.copy(), v[0])",
    "fromiter": "f(iter(v), float)",
    "full": "f((2, 2), v[0])",
    "full_like": "f(x, v[0])",
    "geomspace": "f(v[0], v[1], 4)",
    "histogram": "f(v)",
    "histogram2d": "f(v, w)",
    "histogramdd": "f(x)",
    "hsplit": "f(x, 3)",
    "insert": "f(v, 1, w[0])",
    "interp": "f(v, np.array([0.0, 1.0, 5.0]), w)",
    "isclose": "f(x, y)",
    "ldexp": "f(v, k)",
    "lexsort": "f((v, w))",
    "linspace": "f(v[0], v[1], 4)",
    "logspace": "f(v[0], v[1], 4)",
    "lstsq": "f(s[:, :2], v)",
    "matmul": "f(x, y.T)",
    "matrix_power": "f(s, 3)",
    "matvec": "f(x, v)",
    "moveaxis": "f(x, 0, 1)",
    "multi_dot": "f((x, y.T))",
    "outer": "f(v, w)",
    "partition": "f(x, 1)",
    "permute_dims": "f(x, (1, 0))",
    "piecewise": "f(x, [x > 0.6], [np.sin, np.cos])",
    "place": "f(x.copy(), x > 0.6, v)",
    "polyfit": "f(v, w, 1)",
    "polyval": "f(v, x)",
    "put": "f(x.copy(), [0], v[0])",
    "put_along_axis": "f(x.copy(), np.array([[0, 2], [1, 0]]), y[:, :2], 1)",
    "putmask": "f(x.copy(), x > 0.6, y)",
    "ravel_multi_index": "f((k % 2, k % 2), (3, 3))",
    "reshape": "f(x, (3, 2))",
    "resize": "f(x, (3, 3))",
    "rollaxis": "f(x, 1)",
    "searchsorted": "f(np.sort(v), w)",
    "select": "f([x > 0.6], [x], y)",
    "split": "f(v, 3)",
    "svd": "f(x, full_matrices=False)",
    "swapaxes": "f(x, 0, 1)",
    "take": "f(v, [0, 0])",
    "take_along_axis": "f(x, np.array([[0, 2], [1, 0]]), 1)",
    "tensordot": "f(x, y.T, axes=1)",
    "tensorinv": "f(s, 1)",
    "tensorsolve": "f(s, v)",
    "unravel_index": "f(k, (3, 3))",
    "vecdot": "f(x, y)",
    "vecmat": "f(v, s)",
    "vsplit": "f(x, 2)",
    "where": "f(x > 0.6, x, y)",
}
APART = {
    "reads, writes or prints": """
        array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific
        load save savez savez_compressed savetxt loadtxt genfromtxt fromfile fromregex fromstring frombuffer
        from_dlpack info show_config show_runtime test get_include typename
    """,
    "settings of NumPy": """
        geterr seterr geterrcall seterrcall getbufsize setbufsize get_printoptions set_printoptions printoptions
    """,
    "dtypes, shapes and other objects": """
        can_cast promote_types min_scalar_type mintypecode issubdtype isdtype isscalar iterable isfortran
        broadcast_shapes require nested_iters bmat asmatrix frompyfunc fromfunction
    """,
    "dates and bits": """
        isnat packbits busday_count busday_offset is_busday datetime_as_string datetime_data unpackbits
    """,
    "makes arrays of constants": """
        zeros ones empty empty_like eye identity tri indices diag_indices tril_indices triu_indices mask_indices
        bartlett blackman hamming hanning kaiser fftfreq rfftfreq
    """,
}


@dataclass(frozen=True)
class Finding:
    """What becomes of one function."""

    name: str
    how: str
    remark: str


def values() -> dict[str, Any]:
    """The arguments of the calls."""
    draw = np.random.default_rng(7).uniform
    return {
        "x": draw(0.3, 0.95, (2, 3)),
        "y": draw(0.3, 0.95, (2, 3)),
        "v": draw(0.3, 0.95, 3),
        "w": draw(0.3, 0.95, 3),
        "s": draw(0.2, 1.0, (3, 3)) + 2 * np.eye(3),
        "t": draw(0.3, 0.95, (2, 2, 2)),
        "k": np.array([3, 1, 2]),
    }


def call_of(name: str, function: Any) -> str:
    """The call that stands for a function."""
    if name in SPECIAL:
        return SPECIAL[name]
    if isinstance(function, np.ufunc):
        return f"f({', '.join(('x', 'y')[: function.nin])})"
    return next((text for text, names in CALLS.items() if name in names.split()), "f(x)")


def probe(space: Any, name: str) -> Finding:
    """What becomes of the function ``name`` when it is called as it should be."""
    function = getattr(space, name)
    call = call_of(name, function)
    given = values()
    if isinstance(function, np.ufunc) and all("d" not in each and "e" not in each for each in function.types):
        call = call.replace("x", "k").replace("y", "k")
    names = [each for each in given if re.search(rf"\b{each}\b", call)]
    changed = call.startswith(("f(x.copy()", "f(s.copy()"))

    def run(*arguments: Any) -> Any:
        # By name: while a function is traced, some names stand for what records.
        scope = dict(zip(names, arguments, strict=True)) | {"f": getattr(space, name), "np": np}
        if changed:
            target = call[2]
            scope["target"] = scope[target].copy()
            eval(call.replace(f"{target}.copy()", "target", 1), scope)
            return scope["target"]
        return eval(call, scope)

    arguments = [given[each] for each in names]
    try:
        plain = run(*arguments)
    except Exception as fault:
        raise AssertionError(f"{name}: {call} is no call that NumPy takes: {fault}") from fault
    if not any(_floating(each) for each in _parts(plain)):
        return _without_derivative(name, run, arguments)
    try:
        _, tape = yota.trace(lambda *inner: _flat(run(*inner)), *arguments)
        yota.gradcheck(lambda *inner: _weighted(run(*inner)), *arguments, rtol=1e-5, atol=1e-6)
    except YotaError as fault:
        return Finding(name, "refused", _reason(str(fault)))
    except AssertionError as fault:
        raise AssertionError(f"{name}: {call}: {fault}") from fault
    known = registry().find(function)
    if known is not None and registry().rules(known.name)[0].kind != "nodiff":
        return Finding(name, "rule", f"`{registry().rules(known.name)[0].file}`")
    if known is not None:
        return Finding(name, "nodiff", "no derivative")
    used = sorted({op.name for op in tape.ops})
    return Finding(name, "traced through", ", ".join(used) if used else "no op")


def _without_derivative(name: str, run: Callable[..., Any], arguments: list[Any]) -> Finding:
    try:
        yota.trace(lambda *inner: _flat(run(*inner)), *arguments)
    except YotaError as fault:
        return Finding(name, "refused", _reason(str(fault)))
    return Finding(name, "nodiff", "truth values, positions, counts or plain objects")


def _parts(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for each in result:
            yield from _parts(each)
    elif result is not None:
        yield result


def _floating(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "f" if isinstance(value, (float, complex)) else "") in (
        "f",
        "c",
    )


def _flat(result: Any) -> Any:
    kept = tuple(each for each in _parts(result) if hasattr(each, "dtype") and not isinstance(each, type))
    return kept or 0.0


def _weighted(result: Any) -> Any:
    total = 0.0
    for number, each in enumerate(_parts(result)):
        if _floating(each):
            weights = np.cos(np.arange(np.size(each)).reshape(np.shape(each)) + number)
            total = total + np.sum(weights * (np.real(each) + 0.5 * np.imag(each)))
    return total


def _reason(message: str) -> str:
    text = re.sub(r"^\S+:\d+(?: in \S+)?: (`.*?`: )?", "", message.partition("\n")[0])
    return re.sub(r" Give it one with yota\.diffrule.*", "; give it one", text).strip()


def section(space: Any, names: list[str]) -> list[Finding]:
    """What becomes of the functions of one namespace."""
    findings: list[Finding] = []
    apart = {name: why for why, text in APART.items() for name in text.split()}
    for name in sorted(names):
        function = getattr(space, name)
        own = getattr(function, "__name__", name)
        if own != name and getattr(space, own, None) is function:
            findings.append(Finding(name, "as", f"`{own}`"))
        elif name in apart:
            findings.append(Finding(name, "no derivative asked", apart[name]))
        else:
            findings.append(probe(space, name))
    return findings


def page() -> str:
    """The text of docs/coverage.md."""
    plain = [
        name
        for name in np.__all__
        if callable(getattr(np, name)) and not isinstance(getattr(np, name), (type, np.ufunc))
    ]
    ufuncs = [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]
    algebra = [name for name in np.linalg.__all__ if not isinstance(getattr(np.linalg, name), type)]
    spaces = [
        ("numpy: ufuncs", np, ufuncs),
        ("numpy: functions", np, plain),
        ("numpy.linalg", np.linalg, algebra),
        ("numpy.fft", np.fft, list(np.fft.__all__)),
    ]
    lines = [
        "# Coverage",
        "",
        f"Written by `python docs/coverage.py` with NumPy {version()}: each function is called, traced, and its",
        "gradient is held against central differences.",
        "",
        "rule",
        ": a primitive with a rule, in the file named.",
        "",
        "traced through",
        ": recorded as the primitives named, by yota or by NumPy's own source.",
        "",
        "nodiff",
        ": traced, without derivative.",
        "",
        "refused",
        ": an error that says why.",
        "",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, space, names in spaces:
            lines += [f"## {title}", "", "| function | how | |", "| --- | --- | --- |"]
            lines += [f"| `{each.name}` | {each.how} | {each.remark} |" for each in section(space, names)]
            lines.append("")
    return "\n".join(lines)


def version() -> str:
    """NumPy's version without its last part, by which its functions do not change."""
    return ".".join(np.__version__.split(".")[:2])


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == text else "docs/coverage.md is not current")
    PAGE.write_text(text, encoding="utf-8")
