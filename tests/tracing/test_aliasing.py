"""Which of NumPy's functions copy and which give views: the table, and the tracer, against NumPy.

Every function of the table is called on arrays that lie in memory in all ways. What it gives is written, then what it
was given, and then what it gives in another shape: each write shows where NumPy's does.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import YotaError
from yota.tracing.aliasing import ALIASING

COPIES = """
    amax amin angle append apply_along_axis arange argmax argmin argpartition argsort argwhere around average bartlett
    bincount blackman block busday_count busday_offset choose clip column_stack compress concat concatenate convolve
    copy corrcoef correlate count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum delete diag_indices
    diag_indices_from diagflat digitize dot dstack ediff1d empty empty_like extract eye fft.fft fft.fft2 fft.fftfreq
    fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.irfft fft.irfft2
    fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn fix flatnonzero fromfile fromfunction fromiter fromregex
    fromstring full full_like genfromtxt geomspace gradient hamming hanning hstack i0 identity
    in1d indices inner insert interp intersect1d isclose iscomplex isin isneginf isposinf isreal is_busday kaiser kron
    lexsort linspace load loadtxt logspace mask_indices max mean median min nanargmax nanargmin nancumprod nancumsum
    nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar nonzero ones ones_like
    outer packbits pad partition percentile piecewise poly polyadd polydiv polyfit polymul polysub polyval prod ptp
    quantile ravel_multi_index repeat resize roll roots round row_stack searchsorted select setdiff1d setxor1d sinc
    sort sort_complex stack std sum take take_along_axis tensordot tile trace trapezoid trapz tri tril tril_indices
    tril_indices_from triu triu_indices triu_indices_from union1d unique unique_all unique_counts unique_inverse
    unique_values unpackbits unravel_index unwrap vander var vdot vstack where zeros zeros_like all any
    linalg.cholesky linalg.cond linalg.cross linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh
    linalg.inv linalg.lstsq linalg.matmul linalg.matrix_norm linalg.matrix_rank linalg.multi_dot linalg.norm
    linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot
    linalg.tensorinv linalg.tensorsolve linalg.trace linalg.vecdot linalg.vector_norm
"""
"""Functions that the table leaves out, because they give copies."""
TABLE = {**ALIASING, **dict.fromkeys(COPIES.split(), "copy")}
METHODS = {
    **dict.fromkeys("T mT diagonal flat real squeeze swapaxes to_device transpose view".split(), "view"),
    **dict.fromkeys("astype conj conjugate imag ravel reshape".split(), "depends"),
    **dict.fromkeys(
        "all any argmax argmin argpartition argsort choose clip compress copy cumprod cumsum dot flatten max mean min "
        "nonzero prod repeat round searchsorted std sum take trace var".split(),
        "copy",
    ),
    **dict.fromkeys("fill partition put resize sort".split(), "write"),
}
"""What the methods and attributes of an array give."""

FORMS = """
    np.{0}(y); np.{0}(y, 1); np.{0}(y, axis=0); np.{0}(y, y); np.{0}((y, y)); np.{0}([y, y]); np.{0}(y, (0, 1));
    np.{0}(y, 0, 1); np.{0}((3, 4), y); np.{0}(y > 2, y); np.{0}(y, y, y); np.{0}(3, y); np.{0}(y, 2);
    np.{0}(y, y.shape)
"""
METHOD_FORMS = """
    y.{0}(); y.{0}(0); y.{0}(0, 1); y.{0}(y > 2); y.{0}(y); y.{0}(y.shape); y.{0}(2.0); y.{0}("cpu"); y.{0}
"""
FURTHER = """
    np.take(y, -1, axis=-1); np.take(y, np.array(0), axis=0); np.take(y, [0], axis=0); y.take(0, axis=0);
    np.reshape(y, -1); np.reshape(y, -1, copy=True); y.reshape(-1, copy=True); y.reshape(y.shape[::-1]);
    np.reshape(y, -1, order="F"); np.reshape(y, -1, order="A"); y.reshape((1, *y.shape, 1)); y.reshape(-1, order="F");
    y.ravel(); np.ravel(y, order="F"); y.ravel("A"); y.ravel("K"); y.flatten("F"); y.flatten("K"); np.copy(y).ravel();
    np.copy(y.T).ravel(); np.copy(y.T, order="C").ravel(); y.T.copy().ravel(); y.T.copy("K").ravel();
    np.meshgrid(y, y); np.meshgrid(y, y, copy=False); np.meshgrid(y, y, sparse=True, copy=False);
    np.meshgrid(y, y, sparse=True); np.meshgrid(y, copy=False); np.meshgrid(y, y, indexing="ij"); np.repeat(y[:1], 5);
    np.repeat(y, 1, axis=0); np.repeat(y, 1); np.repeat(y, [2] * y.shape[0], axis=0); np.array(y);
    np.array(y, copy=None); np.array(y, copy=False); np.array(y, copy=None, ndmin=3); np.array(y, ndmin=3);
    np.array(y, dtype=np.float32); np.array(y, copy=None, dtype=np.float32); np.array(y, order="F");
    np.array(y, order="F", copy=None); np.asarray(y, order="C"); np.asarray(y, copy=True); np.asarray(y, np.float32);
    np.ascontiguousarray(y); np.asfortranarray(y); np.require(y, requirements="C"); np.require(y, requirements="F");
    np.require(y.T, requirements="O"); np.require(y.T, requirements=["C", "O"]); np.require(y[:1], requirements=["W"]);
    np.require(np.broadcast_to(y, (2, *y.shape)), requirements="W");
    y.astype(float); y.astype(float, copy=False); y.astype(float, order="C", copy=False);
    y.astype(np.float32, copy=False); y.astype(float, order="F", copy=False); np.astype(y, float, copy=False);
    np.nan_to_num(y); np.nan_to_num(y, copy=False); np.clip(y, None, None); np.clip(y, 1, 2); np.clip(y, None, 100);
    np.pad(y, 0); np.block(y); np.block([[y]]); np.tile(y, 1); np.tile(y, (1, 1)); np.tile(y, 2); np.roll(y, 0);
    np.resize(y, y.shape); np.rot90(y, 4); np.rot90(y, 2); np.diag(y, 1); np.diff(y, 0); np.diff(y, 0, axis=0);
    np.einsum("ij->ij", y); np.einsum("ij->ji", y); np.einsum("ii->i", y); np.einsum("ij->i", y);
    np.einsum("ij,ij->ij", y, y); np.einsum("ij->ji", y, optimize=True); np.einsum("ij,kj->ki", y, y);
    np.einsum("ij,kj->ik", y, y, optimize=True); np.einsum("ij->", y); np.einsum("i", y);
    np.linalg.matrix_power(y, 1); np.linalg.matrix_power(y, 2); np.linalg.matrix_power(y, 0);
    np.apply_over_axes(np.sum, y, []); np.apply_over_axes(np.sum, y, [0]); np.apply_along_axis(np.sort, 0, y);
    np.polyder(y, 0); np.polyint(y, 0); np.polyder(y); np.histogram(y, y); np.ix_(y > 2); np.sum(y, axis=());
    np.trim_zeros(y); np.delete(y, []); np.delete(y, [], axis=0); np.insert(y, [0], 5.0, axis=0); np.append(y, []);
    np.real_if_close(y + 0j); np.real(y + 0j); np.imag(y + 0j); (y + 0j).real; (y + 0j).conj(); np.conj(y);
    np.broadcast_to(y, (2, *y.shape)); np.broadcast_arrays(y, y); np.broadcast_arrays(y, np.ones((2, *y.shape)));
    np.select([y > 2], [y]); np.choose(np.zeros(y.shape, int), [y]); np.where(y > 0, y, y);
    np.compress([True], y, axis=0); np.extract(y > 0, y); np.piecewise(y, [y > 2], [lambda each: each, 0.0]);
    np.split(y, 1); np.concatenate([y]); np.sort(y, axis=0); np.sort(y.T); np.sort(y, axis=None);
    np.partition(y, 0, axis=0); np.stack([y]); np.stack([y, y], -1); np.flip(y, 0); np.moveaxis(y, 0, -1);
    np.expand_dims(y, 1); np.squeeze(y[None]); np.rollaxis(y, 1); np.unstack(y);
    np.lib.stride_tricks.sliding_window_view(y, 1, axis=0); np.cross(y[:, :3], y[:, :3]); np.tensordot(y, y, (0, 0));
    np.polyfit(y, y, 1); np.dsplit(y, 2); np.ravel_multi_index((y > 2).astype(int), (4,) * len(y));
     np.linalg.multi_dot([y.T, y]); np.linalg.multi_dot([y.T, y, y.T]);
    np.matmul(y.T, y); y @ y.T; np.dot(y.T, y); np.kron(y, y); np.outer(y, y); np.cumsum(y, axis=0); np.cumsum(y);
    np.unique(y, axis=0); np.gradient(y); np.average(y, axis=0, returned=True); np.percentile(y, 30, axis=0);
    np.full_like(y, 2.0); np.full((2, 3), y[0, 0]); np.select([y > 2, y > 1], [y, -y], 0.0);
    np.take_along_axis(y, np.argsort(y, 0), 0); np.interp(y, [0, 9.0], [1.0, 2]); np.fft.fftshift(y);
    np.fft.rfft(y, axis=0); np.linalg.diagonal(y); np.linalg.matrix_transpose(y); np.tril(y); np.unwrap(y, axis=0);
    np.triu(y.T); np.ediff1d(y); np.correlate(y, y); np.convolve(y, y); np.searchsorted(y, 2.0);
    np.digitize(y, [1.0, 2.0]); np.bincount(np.arange(3), y); np.frombuffer(y); y.view(); y.view(np.ndarray); y[()];
    y[...]; y[0]; y[0, ...]; y[None]; y[:, None]; y[1:]; y[::-1]; y[::2]; y[-2::-1]; y[np.array(0)]; y[np.int64(0)];
    y[True]; y[np.array(0), ...]; y[[0]]; y[np.array(0), :1]; y[..., 0]; y[:, 0]; y[y > 2]; y[:0]; y[[0], :];
    y[:, [0]]; y[..., None]; y.flat; y.flat[1:3]; y.flat[:]; y.T; y.T.T; y.T[0]; y[::2].T; y.T.reshape(-1);
    y[:, ::2].ravel(); y[:, :1].ravel(); y[:1].ravel("F"); y[:, :1].reshape(-1); y[::-1].ravel();
    y[::2].reshape(1, -1); y[::2].ravel(); y.swapaxes(0, 1); y.squeeze(); y[:1].squeeze(0); y.diagonal(); y.trace();
    y.conj(); y.real; y.imag; y.round(); y.copy("F"); y.to_device("cpu"); +y; abs(y); y * 1; np.positive(y);
    np.add(y, y, order="F"); np.add.reduce(y, axis=()); np.add.reduce(y); np.hypot.reduce(y, axis=());
    np.subtract.reduce(y, axis=()); np.add.accumulate(y); np.subtract.accumulate(y, axis=0);
    np.hypot.accumulate(y[:1]); np.add.reduceat(y, [0]); np.hypot.reduceat(y[:1], [0]); np.add.outer(y, y);
    np.divmod(y, 2); np.modf(y); np.frexp(y); np.ldexp(y, 1); np.matvec(y, y[0]); np.vecdot(y, y); np.sign(y);
    np.c_[y, y]; np.r_[y]; np.r_[y, y]; np.fix(y, y); np.isposinf(y, y); np.isneginf(y, out=y);
    np.from_dlpack(y, copy=True); np.histogram_bin_edges(y, y[0]); np.arange(y[0, 0])
"""
UNSPECIFIED = {*(f"np.{name}(y, (0, 1))" for name in ("partition", "argpartition")), "y.take(2.0)"}
OUT = {"fix", "isneginf", "isposinf"}
"""Functions whose second argument is ``out``."""
LAYOUTS: dict[str, Any] = {
    "C": lambda x: x.copy(),
    "F": np.asfortranarray,
    "step": lambda x: np.kron(x, np.ones((2,) * x.ndim))[(slice(None, None, 2),) * x.ndim],
    "wide rows": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
}
Place = tuple[tuple[int, ...], str]
"""A shape, and how an array of it lies in memory."""
NUMBERS = {(3, 4): 2.5, (3, 3): 0.7, (4,): 1.3, (1, 4): 0.3, (4, 1): 0.9, (1,): 3.0, (0, 4): 0.0, (1, 1): 2.0}
REASONS = {
    "array2string array_repr array_str base_repr binary_repr datetime_as_string format_float_positional "
    "format_float_scientific typename mintypecode": "gives text",
    "get_include get_printoptions getbufsize geterr geterrcall printoptions set_printoptions setbufsize seterr "
    "seterrcall show_config show_runtime info test linalg.test fft.test": "is about NumPy itself",
    "promote_types issubdtype isdtype datetime_data": "is about dtypes",
    "save savetxt savez savez_compressed": "writes a file",
    "frompyfunc": "gives a function",
    "nested_iters": "gives iterators, which are refused",
}
NOT_CALLED = {
    "busday_count busday_offset is_busday fromfile fromregex fromstring genfromtxt load loadtxt": "takes no numbers",
    "from_dlpack frombuffer packbits unpackbits asmatrix bmat": "is refused",
    "arange bartlett blackman hamming hanning kaiser eye identity tri zeros ones empty indices fromfunction fromiter "
    "diag_indices tril_indices triu_indices mask_indices fft.fftfreq fft.rfftfreq full": "makes an array of sizes",
    "linalg.tensorsolve linalg.tensorinv histogram2d histogramdd in1d trapz row_stack": "is covered by others",
    "lib.stride_tricks.as_strided": "is refused",
    "unravel_index": "gives columns of one array of whole numbers",
}


def array(shape: tuple[int, ...], layout: str) -> Any:
    """Positive numbers, those of a square in a matrix with an inverse, that lie in memory by ``layout``."""
    x = np.cos(np.arange(np.prod(shape, dtype=int)) ** 2 * NUMBERS.get(shape, 1.0)).reshape(shape) + 1.5
    return LAYOUTS[layout](np.asarray(x))


def drawn(kind: str) -> list[Place]:
    """Shapes and layouts: all where results may be views, fewer where they always or never are."""
    some = [((3, 4), "F"), ((4,), "C"), ((3, 3), "F"), ((1, 1), "C")]
    if kind == "copy":
        return some
    if kind == "view":  # whatever the layout
        return [
            *some,
            *(((3, 4), each) for each in ("step", "wide rows")),
            ((4,), "backwards"),
            ((), "C"),
            ((0, 4), "C"),
        ]
    every = [((1, 4), "C"), *(((3, 4), each) for each in LAYOUTS), *(((4,), each) for each in ("step", "backwards"))]
    return [*dict.fromkeys([*some, *every, ((4, 1), "F"), ((), "C"), ((0, 4), "C")])]


def may_share(form: str) -> bool:
    """Whether what a call gives lies where its operand does, for any shape and layout."""
    for shape, layout in drawn(""):
        y = array(shape, layout)
        for each in plain(form, y) or []:
            # Of no elements, none lies anywhere.
            if isinstance(each, np.ndarray) and (np.may_share_memory(each, y) or (y.size and not each.size)):
                return True
            if not isinstance(each, np.ndarray | np.generic):
                return True
    return False


def drawn_for(forms: list[str]) -> list[Place]:
    """Shapes and layouts for calls that no table tells about: those of copies where NumPy always copies."""
    few = drawn("copy")
    called = any(plain(form, array(*each)) for form in forms for each in few)
    return few if called and not any(map(may_share, forms)) else drawn("")


def calls(text: str) -> list[str]:
    return [each for each in (" ".join(part.split()) for part in text.split(";")) if each]


def evaluated(call: str, y: Any) -> list[Any]:
    """The results of a call that have elements of their own."""
    found = eval(call, {"np": np, "y": y})
    return list(found) if isinstance(found, (tuple, list)) else [found]


def plain(call: str, y: Any) -> list[Any] | None:
    """What NumPy gives; None where it gives an error."""
    try:
        with np.errstate(all="ignore"):
            return evaluated(call, y)
    except Exception:  # noqa: BLE001  (a form of the call that the function does not have)
        return None


def probes(call: str, writeable: list[bool]) -> list[Any]:
    """Functions of an array whose results tell which writes show where; the first does what the others do."""

    def overwrite(found: list[Any]) -> None:
        for each, may in zip(found, writeable, strict=True):
            if may:
                each[...] = 7

    def reshape_and_write(found: list[Any]) -> None:
        for each, may in zip(found, writeable, strict=True):
            if may and each.ndim > 1 and each.size:
                each.reshape(-1)[...] = 3
                each.T.reshape(-1)[...] += 2
                each[0] += 1
                each[:, ::-1].ravel()[:1] = 11

    def result_written(y: Any) -> Any:
        found = evaluated(call, y)
        overwrite(found)
        return (y * 1, *(each * 1 for each in found))

    def reshaped_written(y: Any) -> Any:
        found = evaluated(call, y)
        reshape_and_write(found)
        return (y * 1, *(each * 1 for each in found))

    def operand_written(y: Any) -> Any:
        found = evaluated(call, y)
        y[...] = 5
        return tuple(each * 1 for each in found)

    def all_written(y: Any) -> Any:
        found = evaluated(call, y)
        overwrite(found)
        shown = [y * 1, *(each * 1 for each in found)]
        reshape_and_write(found)
        shown += [y * 1, *(each * 1 for each in found)]
        y[...] = 5
        return (*shown, *(each * 1 for each in found))

    # A probe that writes nothing would say no more than the others; an empty array has no values to read.
    parts = [] if "empty_like" in call else [operand_written]
    return [all_written, result_written, reshaped_written, *parts] if any(writeable) else parts


def agrees(probe: Any, *places: Place) -> bool | None:
    """Whether the traced writes of a probe show where NumPy's do; None if one of the two refuses it."""
    try:
        wanted = probe(*itertools.starmap(array, places))
    except (ValueError, TypeError, IndexError):
        return None
    try:
        found = yota.trace(probe, *itertools.starmap(array, places))[0]
    except (YotaError, ValueError):
        return None
    except Exception:  # noqa: BLE001  (no refusal says so)
        return False
    return all(np.allclose(one, other, 1e-12, 1e-12, equal_nan=True) for one, other in zip(found, wanted, strict=True))


def faults_of(call: str, results: dict[Place, list[Any]]) -> list[str]:
    """Where a traced write shows, and NumPy's does not, or the other way round."""
    tried = {}
    for place, found in results.items():
        writeable = [
            isinstance(each, np.ndarray) and each.flags.writeable and each.dtype.kind in "fciu" for each in found
        ]
        tried[place] = probes(call, writeable) or [lambda y: ()]

    def together(*arrays: Any) -> Any:
        return tuple(each for probe, y in zip(tried.values(), arrays, strict=True) for each in probe[0](y))

    # Most calls are right for all arrays, which one trace tells.
    if agrees(together, *tried):
        return []
    found = []
    for place, (first, *parts) in tried.items():
        agreed = agrees(first, place)
        wrong = (
            [first] if agreed is False else [] if agreed else [each for each in parts if agrees(each, place) is False]
        )
        found += [f"{call} of {place[1]}{place[0]}: {each.__name__}" for each in wrong[:1]]
    return found


def cases() -> Iterator[tuple[str, str, list[str]]]:
    """Name, kind and calls of each function and method, and of further expressions."""
    for name, kind in TABLE.items():
        if kind in ("view", "depends", "copy"):
            yield name, kind, calls(FORMS.format(name))
    for name, kind in METHODS.items():
        if kind != "write":
            yield f"ndarray.{name}", kind, calls(METHOD_FORMS.format(name))
    for call in calls(FURTHER):
        yield call, "", [call]


CASES = list(cases())


def faults(part: int) -> list[str]:
    """What is wrong with a sixteenth of the calls."""
    found = []
    for name, kind, forms in CASES[part::16]:
        called = f"np.{name}(" in FURTHER or name in " ".join(NOT_CALLED).split()
        forms = [each for each in forms if each not in UNSPECIFIED]
        if kind == "copy":
            forms = [each for each in forms if any(plain(each, array(*one)) for one in drawn(kind))][:1]
        places = drawn(kind) if kind else drawn_for(forms)
        for form in forms:
            checked = {}
            for place in places:
                y = array(*place)
                results = plain(form, y)
                if (
                    results is None
                    or (name in OUT and "3" in form)
                    or (kind != "view" and any(each is y for each in results) and form.count("y") > 1)
                ):
                    continue  # an error, or what is given for ``out``
                called = True
                arrays = [each for each in results if isinstance(each, np.ndarray) and each.size and y.size]
                shares = [np.shares_memory(each, y) for each in arrays]
                alone = "(y" in form and form.count("y") == 1
                if (kind == "copy" and any(shares)) or (kind == "view" and alone and arrays and not any(shares)):
                    found.append(f"{name} is no {kind}: {form} of {place[1]}{place[0]}")
                checked[place] = results
            found += faults_of(form, checked)
        if kind and not called:
            found.append(f"{name} was never called")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(16))
def test_writes_show_where_numpys_do(part: int) -> None:
    assert faults(part) == []


def test_every_public_function_is_in_the_table() -> None:
    known = {*TABLE, *" ".join(REASONS).split()}
    for module, prefix in (
        (np, ""),
        (np.linalg, "linalg."),
        (np.fft, "fft."),
        (np.lib.stride_tricks, "lib.stride_tricks."),
    ):
        for name, value in vars(module).items():
            public = callable(value) and not name.startswith("_") and not isinstance(value, (type, np.ufunc))
            if public and not isinstance(value, types.ModuleType):
                assert prefix + name in known, f"np.{prefix}{name} is not in the table of copies and views"


def test_every_method_is_in_the_table() -> None:
    refused = "base byteswap ctypes data dump dumps getfield setfield setflags strides tobytes tofile".split()
    scalars = "device dtype flags item itemsize nbytes ndim shape size tolist".split()
    public = {name for name in dir(np.ndarray) if not name.startswith("_")}
    assert public == {*METHODS, *refused, *scalars}
