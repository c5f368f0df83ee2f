"""NumPy's functions of shape, order and selection, with their keywords, against central differences."""

import numpy as np
import pytest

import yota
from tests.tracing.checking import check, compound, real
from yota import errors

M = real(3, 4)
P = real(3, 4, low=0.3, high=2.0)
T = real(2, 3, 4)
V = real(6)
W = real(6, seed=3)
Z = compound(3, 4)
MASK = M > 0
FORTRAN = np.asfortranarray(real(3, 4))
STRIDED = real(6, 8)[::2, ::-2]

SHAPES = {
    "reshape": (lambda x: np.reshape(x, (2, -1)), M),
    "reshape F": (lambda x: np.reshape(x, (6, 2), order="F"), M),
    "reshape strided": (lambda x: np.reshape(x, -1), STRIDED),
    "reshape to 0-d": (lambda x: np.reshape(x, ()), np.array([1.5])),
    "ravel": (lambda x: np.ravel(x), M),
    "ravel F": (lambda x: np.ravel(x, order="F"), M),
    "ravel of Fortran": (lambda x: np.ravel(x), FORTRAN),
    "flatten": (lambda x: x.flatten("F"), M),
    "transpose": (lambda x: np.transpose(x, (2, 0, 1)), T),
    "permute_dims": (lambda x: np.permute_dims(x, (-1, 0, 1)), T),
    "swapaxes": (lambda x: np.swapaxes(x, 0, -1), T),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), T),
    "moveaxis many": (lambda x: np.moveaxis(x, [0, 1], [-1, -2]), T),
    "rollaxis": (lambda x: np.rollaxis(x, 2), T),
    "rollaxis start": (lambda x: np.rollaxis(x, 0, 3), T),
    "matrix_transpose": (lambda x: np.matrix_transpose(x), T),
    "expand_dims": (lambda x: np.expand_dims(x, (0, -1)), M),
    "squeeze": (lambda x: np.squeeze(x[:, None, :1]), M),
    "squeeze axis": (lambda x: np.squeeze(x[:, None], axis=1), M),
    "squeeze of a number": (lambda x: np.squeeze(np.sum(x), axis=-1) * x, M),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3, 4)), M),
    "broadcast_arrays": (lambda x, y: np.broadcast_arrays(x, y), M, real(4)),
    "atleast": (lambda x: (np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)), V),
    "atleast many": (lambda x, y: np.atleast_2d(x, y), V, M),
    "concatenate": (lambda x, y: np.concatenate((x, y), axis=1), M, P),
    "concatenate flat": (lambda x, y: np.concatenate((x, y), axis=None), M, V),
    "concatenate plain": (lambda x: np.concatenate((x, np.ones((2, 4)))), M),
    "concatenate dtype": (lambda x: np.concatenate((x, x), dtype=np.complex128), M),
    "concat": (lambda x: np.concat((x, x)), M),
    "stack": (lambda x, y: np.stack((x, y), axis=-1), M, P),
    "unstack": (lambda x: np.unstack(x, axis=1), M) if hasattr(np, "unstack") else (lambda x: x, M),
    "vstack": (lambda x, y: np.vstack((x, y)), V, W),
    "hstack": (lambda x, y: np.hstack((x, y)), M, P),
    "hstack 1-d": (lambda x, y: np.hstack((x, y, 3.0)), V, W),
    "dstack": (lambda x, y: np.dstack((x, y)), V, W),
    "column_stack": (lambda x, y: np.column_stack((x, y, np.ones((6, 2)))), V, W),
    "block": (lambda x, y: np.block([[x, np.ones((3, 1))], [y, y[:, :1]]]), M, real(2, 4)),
    "block flat": (lambda x, y: np.block([x, y, 1.0]), V, W),
    "block deep": (lambda x: np.block([[[x]], [[x]]]), M),
    "append": (lambda x, y: np.append(x, y), M, V),
    "append axis": (lambda x, y: np.append(x, y, axis=0), M, real(2, 4)),
    "split": (lambda x: np.split(x, 3), V),
    "split at": (lambda x: np.split(x, [1, 4], axis=0), V),
    "array_split": (lambda x: np.array_split(x, 4), V),
    "hsplit": (lambda x: np.hsplit(x, 2), M),
    "vsplit": (lambda x: np.vsplit(x, 3), M),
    "dsplit": (lambda x: np.dsplit(x, 2), T),
    "tile": (lambda x: np.tile(x, 3), M),
    "tile many": (lambda x: np.tile(x, (2, 1, 3)), M),
    "repeat": (lambda x: np.repeat(x, 3), M),
    "repeat axis": (lambda x: np.repeat(x, 2, axis=0), M),
    "repeat counts": (lambda x: np.repeat(x, [0, 2, 1, 3], axis=1), M),
    "roll": (lambda x: np.roll(x, 2), M),
    "roll axis": (lambda x: np.roll(x, -1, axis=1), M),
    "roll axes": (lambda x: np.roll(x, (1, 2), axis=(0, 1)), M),
    "rot90": (lambda x: np.rot90(x), M),
    "rot90 k": (lambda x: np.rot90(x, k=3, axes=(1, 2)), T),
    "rot90 twice": (lambda x: np.rot90(x, 2), M),
    "flip": (lambda x: np.flip(x), M),
    "flip axes": (lambda x: np.flip(x, axis=(0, -1)), T),
    "fliplr": (lambda x: np.fliplr(x), M),
    "flipud": (lambda x: np.flipud(x), M),
    "insert": (lambda x, v: np.insert(x, 2, v), V, 1.5),
    "insert many": (lambda x, v: np.insert(x, [1, 3, 3], v), V, real(3)),
    "insert axis": (lambda x, v: np.insert(x, 1, v, axis=1), M, real(3)),
    "insert rows": (lambda x, v: np.insert(x, [0, 2], v, axis=0), M, real(2, 4)),
    "insert slice": (lambda x, v: np.insert(x, slice(1, 4), v), V, real(3)),
    "insert negative": (lambda x: np.insert(x, -1, 5.0), V),
    "insert flat": (lambda x: np.insert(x, 3, [1.0]), M),
    "delete": (lambda x: np.delete(x, 2), V),
    "delete many": (lambda x: np.delete(x, [0, -1], axis=1), M),
    "delete slice": (lambda x: np.delete(x, slice(0, 4, 2), axis=1), M),
    "delete mask": (lambda x: np.delete(x, np.array([True, False, True]), axis=0), M),
    "delete flat": (lambda x: np.delete(x, 5), M),
    "resize": (lambda x: np.resize(x, (4, 5)), M),
    "resize smaller": (lambda x: np.resize(x, 5), M),
    "repeat by counts that are traced": (lambda x: np.repeat(x, np.sum(x > 0, axis=1), axis=0), M),
    "trim_zeros": (lambda x: np.trim_zeros(np.concatenate([np.zeros(2), x])), V),
    "tril": (lambda x: np.tril(x), M),
    "tril k": (lambda x: np.tril(x, k=-1), T),
    "triu": (lambda x: np.triu(x), M),
    "triu k": (lambda x: np.triu(x, k=1), T),
    "diag": (lambda x: np.diag(x), V),
    "diag k": (lambda x: np.diag(x, k=-2), V),
    "diag of matrix": (lambda x: np.diag(x, k=1), M),
    "diagonal": (lambda x: np.diagonal(x, offset=1, axis1=0, axis2=2), T),
    "diagflat": (lambda x: np.diagflat(x, 1), M),
    "fill_diagonal": (lambda x, v: _filled(x, v, False), M, 1.5),
    "fill_diagonal wrap": (lambda x: _filled(x, 2.0, True), real(6, 2)),
    "fill_diagonal array": (lambda x, v: _filled(x, v, False), M, real(3)),
    "vander": (lambda x: np.vander(x), real(4)),
    "vander N": (lambda x: np.vander(x, 3, increasing=True), real(4)),
    "meshgrid": (lambda x, y: np.meshgrid(x, y), V, real(3)),
    "meshgrid ij": (lambda x, y: np.meshgrid(x, y, indexing="ij"), V, real(3)),
    "meshgrid sparse": (lambda x, y: np.meshgrid(x, y, sparse=True), V, real(3)),
    "ix_": (lambda x: x[np.ix_([0, 2], [1, 3])], M),
    "ix_ traced": (lambda x, y: np.ix_(x, y), V, real(3)),
    "indices": (lambda x: x * np.indices((3, 4)).sum(0), M),
    "unravel_index": (lambda x: x[np.unravel_index(np.argmax(x), x.shape)], M),
    "tri": (lambda x: x * np.tri(3, 4), M),
    "tril_indices": (lambda x: x[np.tril_indices(3, 0, 4)], M),
    "triu_indices_from": (lambda x: x[np.triu_indices_from(x)], M),
    "diag_indices": (lambda x: x[np.diag_indices(3)], M),
    "copy": (lambda x: np.copy(x), M),
    "copyto": (lambda x: _copied(x), M),
    "full_like": (lambda x, s: np.full_like(x, s), M, 1.5),
    "full": (lambda s: np.full((2, 3), s), 1.5),
    "astype": (lambda x: np.astype(x, np.complex128), M) if hasattr(np, "astype") else (lambda x: x, M),
    "real": (lambda x: np.real(x), Z),
    "imag": (lambda x: np.imag(x), Z),
    "conj": (lambda x: np.conj(x), Z),
    "angle": (lambda x: np.angle(x), Z),
    "angle deg": (lambda x: np.angle(x, deg=True), Z),
    "real_if_close": (lambda x: np.real_if_close(x), M),
    "iscomplex": (lambda x: x * np.isreal(x), M),
    "array2string free": (lambda x: np.array([[x[0], 2.0], [x[1] * x[2], 1.0]]), V),
    "block_diag by zeros": (lambda x: _blocks(x), M),
    "sliding_window_view": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 3), V),
    "sliding_window_view 2-d": (lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)), M),
    "sliding_window_view axis": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1), M),
    "apply_over_axes": (lambda x: np.apply_over_axes(np.sum, x, [0, 2]), T),
    "apply_along_axis": (lambda x: np.apply_along_axis(lambda r: np.sum(r * r), 1, x), M),
    "apply_along_axis vector": (lambda x: np.apply_along_axis(lambda r: r[::2] * r[0], 0, x), T),
    "apply_along_axis matrix": (lambda x: np.apply_along_axis(np.diag, -1, x), M),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 1], [lambda t: -t, lambda t: t**2, 0.5]), M),
    "piecewise no default": (lambda x: np.piecewise(x, [x < 0], [lambda t: np.exp(t)]), V),
    "piecewise scalars": (lambda x: np.piecewise(x, [x < 0, x >= 0], [-1.0, lambda t, a: t * a], 3.0), V),
    "piecewise 0-d": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t * t]), np.array(0.7)),
}

PADDED = {
    "constant": {},
    "constant values": {"constant_values": ((1.0, 2.0), (3.0, 4.0))},
    "edge": {},
    "linear_ramp": {},
    "linear_ramp ends": {"end_values": ((1.0, 2.0), (3.0, 4.0))},
    "maximum": {},
    "maximum length": {"stat_length": 2},
    "mean": {},
    "mean length": {"stat_length": ((1, 2), (2, 3))},
    "median": {},
    "median length": {"stat_length": 3},
    "minimum": {},
    "minimum length": {"stat_length": 1},
    "reflect": {},
    "reflect odd": {"reflect_type": "odd"},
    "symmetric": {},
    "symmetric odd": {"reflect_type": "odd"},
    "wrap": {},
    "empty": {},
}
for _label, _keywords in PADDED.items():
    for _width in (1, (2, 1), ((1, 2), (3, 0)), ((7, 8), (5, 9))):
        _mode = _label.split()[0]

        def _padded(x, mode=_mode, width=_width, keywords=_keywords):
            return np.pad(x, width, mode=mode, **keywords)

        if _mode != "empty":
            SHAPES[f"pad {_label} {_width}"] = (_padded, M)
SHAPES |= {
    "pad traced value": (lambda x, c: np.pad(x, 2, constant_values=c), V, 1.5),
    "pad traced ramp": (lambda x, c: np.pad(x, 2, "linear_ramp", end_values=c), V, 1.5),
    "pad dict": (lambda x: np.pad(x, {-1: (1, 2)}) if np.lib.NumpyVersion(np.__version__) >= "2.2.0" else x, M),
    "pad function": (lambda x: np.pad(x, 2, _ends), V),
    "pad complex": (lambda x: np.pad(x, 1, "reflect"), Z),
    "pad single": (lambda x: np.pad(x, 3, "reflect"), np.array([1.5])),
    "pad single symmetric": (lambda x: np.pad(x, 3, "symmetric"), np.array([1.5])),
    "pad empty": (lambda x: np.pad(x[:0], 2, constant_values=1.0) + x[:4], V),
    "pad zero": (lambda x: np.pad(x, 0), V),
    "pad empty mode": (lambda x: np.pad(x, (1, 2), mode="empty")[1:-2], V),
}


def _ends(vector, width, axis, keywords):
    vector[: width[0]] = vector[width[0]] * 2
    vector[-width[1] :] = -vector[-width[1] - 1]


def _filled(x, value, wrap):
    y = x.copy()
    np.fill_diagonal(y, value, wrap)
    return y * x


def _copied(x):
    y = np.zeros((3, 4))
    np.copyto(y, x, where=MASK)
    return y * x


def _blocks(x):
    y = np.zeros((6, 8))
    y[:3, :4] = x
    y[3:, 4:] = x * x
    return y


COLUMNS = np.array([[3, 0], [1, 1], [2, 3]])
FLAGS = np.array([True, False, True])

SELECTIONS = {
    "where": (lambda x, y: np.where(x > 0, x, y), M, P),
    "where one": (lambda x: x[np.where(x > 0)], M),
    "nonzero": (lambda x: x[np.nonzero(x > 0)], M),
    "flatnonzero": (lambda x: np.ravel(x)[np.flatnonzero(x > 0)], M),
    "argwhere": (lambda x: x[tuple(np.argwhere(x > 0).T)], M),
    "take": (lambda x: np.take(x, [0, 2, 2]), M),
    "take axis": (lambda x: np.take(x, [[0, 2], [-1, 1]], axis=1), M),
    "take wrap": (lambda x: np.take(x, [0, 7, -9], mode="wrap"), V),
    "take clip": (lambda x: np.take(x, [0, 7, -9], mode="clip"), V),
    "take scalar": (lambda x: np.take(x, 2, axis=0), M),
    "take_along_axis": (lambda x: np.take_along_axis(x, COLUMNS, axis=1), M),
    "take_along_axis flat": (lambda x: np.take_along_axis(x, np.array([3, 3, 7]), axis=None), M),
    "take_along_axis broadcast": (lambda x: np.take_along_axis(x, np.array([[2, 0, 1, 1]]), axis=1), M),
    "take_along_axis rows": (lambda x: np.take_along_axis(x, np.array([[2, 0, 1, 1]]), axis=0), M),
    "put_along_axis": (lambda x, v: _put_along(x, v, 1, np.array([[3, 0], [1, 2], [2, 3]])), M, real(3, 2)),
    "put_along_axis broadcast": (lambda x, v: _put_along(x, v, 1, np.array([[3, 0], [1, 2], [2, 3]])), M, 1.5),
    "put_along_axis flat": (lambda x, v: _put_along(x, v, None, np.array([3, 0, 7])), M, real(3)),
    "put": (lambda x, v: _put(x, v, [0, 5, 2], "raise"), M, real(3)),
    "put cycles": (lambda x, v: _put(x, v, [0, 5, 2, 7], "raise"), M, real(2)),
    "put wrap": (lambda x, v: _put(x, v, [0, -5, 14], "wrap"), M, real(3)),
    "place": (lambda x, v: _place(x, v), M, real(2)),
    "putmask": (lambda x, v: _putmask(x, v), M, P),
    "putmask cycles": (lambda x, v: _putmask(x, v), M, real(5)),
    "choose": (lambda x, y: np.choose([0, 1, 1, 0, 1, 0], [x, y]), V, W),
    "choose broadcast": (lambda x, y: np.choose(np.array([[0], [1], [0]]), (x, y)), M, real(4)),
    "choose wrap": (lambda x, y: np.choose([0, 5, -1, 0, 1, 0], [x, y], mode="wrap"), V, W),
    "choose clip": (lambda x, y: np.choose([0, 5, -1, 0, 1, 0], [x, y], mode="clip"), V, W),
    "select": (lambda x, y: np.select([x > 0, x < -1], [x**2, y]), M, P),
    "select default": (lambda x, y: np.select([x > 1, x < -1], [x**2, 1.0], default=y), M, 2.5),
    "compress": (lambda x: np.compress(FLAGS, x, axis=0), M),
    "compress flat": (lambda x: np.compress([False, True, True, False, True], x), M),
    "compress traced": (lambda x: np.compress(x > 0, x), V),
    "extract": (lambda x: np.extract(MASK, x), M),
    "extract traced": (lambda x: np.extract(x > 0, x), M),
    "unique": (lambda x: np.unique(np.concatenate([x, x[:3]])), V),
    "unique index": (lambda x: np.unique(x, return_index=True)[0], M),
    "unique inverse": (lambda x: _inverted(x), V),
    "unique counts": (lambda x: _counted(x), V),
    "unique axis": (lambda x: np.unique(np.stack([x, x * 2, x]), axis=0), V),
    "unique_values": (lambda x: np.sort(np.unique_values(x)), V),
    "unique_all": (lambda x: np.unique_all(x).values, V),
    "unique_counts": (lambda x: np.unique_counts(x).values, V),
    "unique_inverse": (lambda x: np.unique_inverse(x).values, V),
    "union1d": (lambda x: np.union1d(x, np.array([0.1, 5.0])), V),
    "intersect1d": (lambda x: np.intersect1d(x, x[:3]), V),
    "setdiff1d": (lambda x: np.setdiff1d(x, x[:2]), V),
    "setxor1d": (lambda x: np.setxor1d(x, np.array([7.5])), V),
    "isin": (lambda x: x * np.isin(x, x[:2]), V),
    "mask": (lambda x: x[x > 0], M),
    "mask rows": (lambda x: x[FLAGS], M),
    "clip": (lambda x: np.clip(x, -1.0, 0.7), M),
    "clip one": (lambda x: np.clip(x, None, 0.7), M),
    "clip traced": (lambda x, a, b: np.clip(x, a, b), M, -0.5, real(4, low=0.5)),
    "clip names": (lambda x: np.clip(x, min=-0.5, max=1.0), M) if np.__version__ >= "2.1" else (lambda x: x, M),
    "nan_to_num": (lambda x: np.nan_to_num(np.where(MASK, x, np.nan)), M),
    "nan_to_num values": (lambda x: np.nan_to_num(np.where(MASK, x, np.inf), nan=1.0, posinf=3.0), M),
    "nan_to_num complex": (lambda x: np.nan_to_num(x), Z),
    "isclose": (lambda x: np.where(np.isclose(x, x[0]), x, 2 * x), M),
    "allclose": (lambda x: x * 2 if np.allclose(x, x) else x, M),
    "array_equal": (lambda x: x * 2 if np.array_equal(x, x) else x, M),
    "array_equiv": (lambda x: x * 2 if np.array_equiv(x, x) else x, M),
    "add.at": (lambda x, v: _at(np.add, x, v), V, real(3)),
    "subtract.at": (lambda x, v: _at(np.subtract, x, v), V, real(3)),
    "multiply.at": (lambda x, v: _at(np.multiply, x, v), V, real(3)),
    "divide.at": (lambda x, v: _at(np.divide, x, v), V, real(3, low=0.5)),
    "maximum.at": (lambda x, v: _at(np.maximum, x, v), V, real(3)),
    "minimum.at": (lambda x, v: _at(np.minimum, x, v), V, real(3)),
    "logaddexp.at": (lambda x, v: _at(np.logaddexp, x, v), V, real(3)),
    "negative.at": (lambda x: _at_unary(np.negative, x), V),
    "exp.at": (lambda x: _at_unary(np.exp, x), V),
    "add.at rows": (lambda x, v: _at_rows(x, v), M, real(2, 4)),
    "multiply.at rows": (lambda x, v: _at_rows(x, v, np.multiply), M, real(2, 4)),
}


def _put_along(x, v, axis, places):
    y = x * 2
    np.put_along_axis(y, places, v, axis)
    return y * x


def _put(x, v, places, mode):
    y = x * 2
    np.put(y, places, v, mode)
    return y * x


def _place(x, v):
    y = x * 2
    np.place(y, MASK, v)
    return y * x


def _putmask(x, v):
    y = x * 2
    np.putmask(y, MASK, v)
    return y * x


def _inverted(x):
    values, inverse = np.unique(np.concatenate([x, x]), return_inverse=True)
    return values[inverse] * np.concatenate([x, x])


def _counted(x):
    values, counts = np.unique(np.concatenate([x, x[:2]]), return_counts=True)
    return values * counts


def _at(ufunc, x, v):
    y = x * 1
    ufunc.at(y, [0, 2, 0], v)
    return y


def _at_unary(ufunc, x):
    y = x * 1
    ufunc.at(y, [0, 2, 5])
    return y


def _at_rows(x, v, ufunc=np.add):
    y = x * 1
    ufunc.at(y, ([0, 0],), v)
    return y


IN_MEMORY = {
    "ravel A": lambda x: np.ravel(x, order="A"),
    "ravel K": lambda x: x.ravel("K"),
    "flatten K of a view": lambda x: x[:, ::-1].T.flatten("K"),
    "reshape A": lambda x: np.sin(x.T).reshape(6, order="A"),
    "a fresh array": lambda x: (x.T * 2 + 1).ravel("K"),
    "a copy by columns": lambda x: np.array(x, order="F").ravel("K"),
    "another dtype by columns": lambda x: x.astype(complex, order="F").ravel("K"),
    "a result by columns": lambda x: np.exp(x, order="F").ravel("A"),
    "a product": lambda x: (x.T @ x).ravel("K"),
    "sorted rows": lambda x: np.sort(x, axis=1).ravel("K"),
    "joined": lambda x: np.hstack([x, x]).ravel("A"),
    "in pieces": lambda x: np.pad(x, 1).ravel("K"),
    "three axes": lambda x: np.swapaxes(x[:, None] * np.ones((2, 2, 3)), 0, 2).ravel("K"),
}


@pytest.mark.parametrize("lie", [np.ascontiguousarray, np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2]])
@pytest.mark.parametrize("name", IN_MEMORY)
def test_orders_in_memory_are_numpys(name, lie):
    function, x = IN_MEMORY[name], lie(real(2, 3))
    value, tape = yota.trace(function, x)
    assert np.array_equal(value, function(x))
    weights = np.cos(np.arange(value.size))
    found = yota.gradient(lambda x: np.sum(weights * np.real(function(x))))(x)
    step = [np.real(function(lie(x + 1e-6 * (np.arange(x.size).reshape(x.shape) == i)))) for i in range(x.size)]
    by_hand = [np.sum(weights * (each - np.real(function(x)))) / 1e-6 for each in step]
    np.testing.assert_allclose(np.ravel(found), by_hand, atol=1e-4)


def test_another_order_in_memory_is_another_tape():
    ravel = yota.compile(yota.trace(lambda x: x.ravel("K"), FORTRAN)[1])
    assert np.array_equal(ravel(FORTRAN), FORTRAN.ravel("K"))
    with pytest.raises(errors.StaleTapeError, match="depends on how the arguments lie in memory"):
        ravel(np.ascontiguousarray(FORTRAN))
    slope = yota.gradient(lambda x: np.sum(x.ravel("K")[:2]), dynamic=True)
    assert not np.array_equal(slope(FORTRAN), slope(np.ascontiguousarray(FORTRAN)))


def test_an_order_in_memory_that_is_not_known_is_refused():
    with pytest.raises(errors.TracingError, match="share a place in memory"):
        yota.grad(lambda x: np.sum(np.broadcast_to(x[0], (2, x.shape[1])).ravel("K")), FORTRAN)


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name):
    check(*SHAPES[name])


@pytest.mark.parametrize("name", SELECTIONS)
def test_selection(name):
    check(*SELECTIONS[name])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.reshape(x.T, 6, copy=False)[0],
        lambda x: x.reshape(6, order="F", copy=False)[0],
        lambda x: np.add(x, x, dtype=np.int64)[0, 0],
        lambda x: np.sin(x, dtype=np.int64)[0, 0],
        lambda x: x.reshape(4, -1),
        lambda x: np.pad(x, 1, mode="edge", constant_values=1),
        lambda x: np.block([[x], x]),
        lambda x: np.interp(x, x[0], x[0, :2]),
        lambda x: np.max(x, where=x > 1),
        lambda x: np.linalg.norm(x, 3),
    ],
    ids=["reshape", "in another order", "casting", "no loop", "size", "keyword", "depths", "points", "where", "norm"],
)
def test_what_numpy_refuses_is_refused(function):
    x = np.ones((2, 3))
    with pytest.raises((ValueError, TypeError)) as expected:
        function(x)
    with pytest.raises(expected.type) as found:
        yota.value_and_grad(function)(x)
    assert str(found.value) == str(expected.value)


def test_the_number_of_positions_is_a_guard():
    slope = yota.gradient(lambda x: np.mean(x[np.flatnonzero((x[:-1] > 0) & (x[1:] > 0))]), dynamic=True)
    for seed in range(4):
        x = real(12, seed=seed)
        chosen = np.flatnonzero((x[:-1] > 0) & (x[1:] > 0))
        np.testing.assert_array_equal(slope(x), np.isin(np.arange(12), chosen) / len(chosen))
