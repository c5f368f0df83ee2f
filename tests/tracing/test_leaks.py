"""Numbers and texts that leave the tape: right, or refused; never a derivative that is lost without a word."""

# ruff: noqa: G004, UP031, UP032  (users do all of these)
from __future__ import annotations

import array
import ast
import collections.abc
import contextlib
import decimal
import functools
import io
import json
import logging
import marshal
import math
import pickle
import re
import struct
import sys
import threading
import types
import warnings

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import yota
from tests.tracing.checking import without_source
from yota import errors
from yota.tracing.conversions import shifted

X = np.array([1.25, 0.5, 2.0])
STEP = 1e-6


def slopes(f, x):
    """Central differences of the plain function."""
    steps = STEP * np.eye(x.size)
    return np.array([(f(x + step) - f(x - step)) / (2 * STEP) for step in steps])


def assert_right(f, x=X):
    expected = slopes(f, x)
    value, gradient = yota.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


# -- functions of the user's that bear the names of others ------------------------------------------------


def log(v):
    return math.log(v)


def write(v):
    return math.exp(v)


display = error = info = warning = pprint = debug = log
secho = echo = set_postfix = writelines = write


class Sum:
    """Writes nothing: it computes."""

    def __init__(self):
        self.total = 0.0

    def write(self, v):
        self.total = self.total + float(v)

    info = print = log = set_description = write


class Counting(logging.Logger):
    def info(self, message, *args, **keywords):
        self.last = math.log(args[0])


class Watching(logging.Logger):
    def _log(self, level, message, args, **keywords):
        self.last = float(args[0])


class Keeping(logging.Handler):
    def emit(self, record):
        self.last = float(record.args[0])


def _by_object(x, method):
    kept = Sum()
    getattr(kept, method)(x[0] ** 2)
    return kept.total * x[1]


def _by_logger(x, kind):
    logger = kind("counting", logging.INFO)
    logger.info("%s", x[0])
    return logger.last * x[1]


def _by_handler(x):
    handler, logger = Keeping(), logging.Logger("kept", logging.INFO)
    logger.addHandler(handler)
    logger.info("%s", x[0])
    return handler.last * x[1]


def _rebound(x):
    print = math.sqrt
    return print(x[0]) * x[1]


def _shadowed(x):
    str = math.exp
    return str(x[0]) * x[1]


def _float_rebound(x):
    float = lambda v: v * v
    return float(x[0]) * x[1]


def _float_of_its_own(x, float=math.sin):
    return float(x[0]) * x[1]


COMPUTES = {
    "log": lambda x: log(x[0]) * x[1],
    "write": lambda x: write(x[0]) * x[1],
    "display": lambda x: display(x[0]) * x[1],
    "info in print": lambda x: (print(info(x[0])), info(x[0]) * x[1])[1],
    "method write": lambda x: _by_object(x, "write"),
    "method info": lambda x: _by_object(x, "info"),
    "written into the user's": lambda x: _into(Sum(), x),
    "a logger's own info": lambda x: _by_logger(x, Counting),
    "print rebound": _rebound,
    "str rebound": _shadowed,
    "float rebound": _float_rebound,
    "float as a default": _float_of_its_own,
    "names in a class": lambda x: types.SimpleNamespace(log=math.log).log(x[0]) * x[1],
}


def _into(target, x):
    target.write(math.log(x[0]))
    target.write(f"{x[2]:.0f}")
    return target.total * x[1]


@pytest.mark.parametrize("name", COMPUTES)
def test_names_decide_nothing(name, capsys):
    assert_right(COMPUTES[name])


WITHOUT_SOURCE = {
    "log": "lambda x: log(x[0]) * x[1]",
    "write": "lambda x: write(x[0]) * x[1]",
    "print": "lambda x: print(x[0]) * x[1]",
    "str": "lambda x: float(str(x[0])) * x[1]",
    "format": "lambda x: float(f'{x[0]}') * x[1]",
    "many digits": "lambda x: float(f'{x[0]:.9f}') * x[1]",
    "three digits": "lambda x: float('%.3f' % x[0]) * x[1]",
    "struct": "lambda x: struct.unpack('d', struct.pack('d', x[0]))[0] * x[1]",
    "half": "lambda x: float(np.float16(float(x[0]))) * x[1]",
    "far from zero": "lambda x: (1e10 + array.array('d', [x[0]])[0]) * x[1]",
    "small": "lambda x: math.exp(array.array('d', [x[0]])[0] * 1e-5) * x[1]",
    "array": "lambda x: array.array('d', [x[0]])[0] * x[1]",
    "kept": "lambda x: kept.__setitem__(0, float(x[0])) or kept[0] * 2.0 * x[1]",
}


@pytest.mark.parametrize("name", WITHOUT_SOURCE)
def test_without_a_source_it_is_right_or_refused(name):
    leaky = without_source("lambda v: array.array('d', [v])[0]", array=array)
    names = {"log": leaky, "write": leaky, "print": leaky} if name in ("log", "write", "print") else {}
    f = without_source(WITHOUT_SOURCE[name], struct=struct, array=array, math=math, kept={}, **names)
    f(X)
    with pytest.raises(errors.TracingError, match="lose its derivative"):
        yota.gradient(f)(X)


FREE = {
    "print": "lambda x: (print(x[0]), x[0] * x[1])[1]",
    "number": "lambda x: (print(float(x[0]), round(float(x[1]), 2)), x[0] * x[1])[1]",
    "float": "lambda x: float(x[0]) * x[1]",
    "branch": "lambda x: x[0] * x[1] if float(x[0]) > 0.0 else x[1]",
    "returned": "lambda x: float(x[0] * x[1])",
    "rounded": "lambda x: (float(f'{x[0]:.0f}') + x[0]) * x[1]",
}


@pytest.mark.parametrize("name", FREE)
def test_without_a_source_what_matters_not_is_accepted(name, capsys):
    assert_right(without_source(FREE[name]))


# -- numbers that are computed with, texts that are read back ----------------------------------------------

STATE = {}
ITEMS = [math.sin, np.zeros, scipy.stats.norm.logpdf]
logpdf = scipy.stats.norm.logpdf
three = functools.partial(np.zeros, 3)


class Made:
    new = staticmethod(np.zeros)


class Lower(collections.abc.Mapping):
    """A mapping that takes names in capitals too."""

    def __init__(self, **given):
        self.given = given

    def __getitem__(self, name):
        return self.given.get(name) or self[dict(zip(self.keys(), self.keys(), strict=True))[name.lower()]]

    def __iter__(self):
        yield from self.given

    def __len__(self):
        return len(self.given)


METHODS = Lower(sine=np.sin)


def _filled(a, x):
    a[0], a[1] = x[0] ** 2, x[1]
    return np.sum(a) * x[2]


def _default(x, new=np.zeros):
    return _filled(new(3), x)


def _kept(x):
    STATE["a"] = float(x[0]) ** 2
    later = dict(STATE)
    return later["a"] * x[1]


def _closed(x):
    inner = scipy.stats.norm.logpdf

    def total():
        return np.sum(inner(x))

    return total()


def _caught_bare(x):
    try:
        v = float(x[0])
    except:  # noqa: E722
        v = 3.0
    return v * x[1]


def _caught_as_error(x):
    try:
        v = np.float64(x[0])
    except TypeError:
        v = 3.0
    return v * x[1]


MENDED = {
    "bare except": _caught_bare,
    "caught": _caught_as_error,
    "zeros of a list": lambda x: _filled(ITEMS[1](3), x),
    "zeros of a default": _default,
    "zeros of a class": lambda x: _filled(Made.new(3), x),
    "zeros of a partial": lambda x: _filled(three(), x),
    "logpdf of a variable": lambda x: np.sum(logpdf(x)),
    "logpdf of a closure": _closed,
    "logpdf of a list": lambda x: np.sum(ITEMS[2](x)),
    "logpdf wrapped": lambda x: np.sum(functools.wraps(logpdf)(lambda *a: logpdf(*a))(x)),
    "sine of a list": lambda x: ITEMS[0](x[0]) * x[1],
    "float": lambda x: float(x[0]) ** 2 * x[1],
    "complex": lambda x: abs(complex(x[0], x[1]) ** 2) * x[2],
    "complex of one": lambda x: (complex(x[0]) * 1j).imag * x[1],
    "floats": lambda x: sum(float(v) ** 2 for v in x),
    "mapped": lambda x: sum(map(float, x)) * x[0],
    "item": lambda x: x[0].item() ** 2,
    "tolist": lambda x: sum(v * v for v in x.tolist()),
    "kept in a dict": _kept,
    "a function of SciPy's": lambda x: scipy.special.hyp1f1(1.5, 2.5, float(x[0])) * x[1],
    "eigenvalues of a triangle": lambda x: float(x[0]) * np.linalg.eigvalsh(np.outer(x, [1.0, 2.0, 3.0]))[0],
    "a mapping of the user's": lambda x: METHODS["SINE"](x[0]) * float(x[1]),
    "sorted by float": lambda x: sorted(x, key=float)[1] * x[0],
    "tuple": lambda x: functools.reduce(lambda a, b: a * float(b), x, 1.0),
}


@pytest.mark.parametrize("name", MENDED)
def test_what_interpreting_mends_needs_no_word(name):
    assert_right(MENDED[name])


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: yota.grad(f, X)[1][0],
        lambda f: yota.value_and_grad(f)(X)[1],
        lambda f: yota.gradient(f)(X),
        lambda f: yota.jacobian(lambda x: np.array([f(x), 2 * f(x)]))(X)[0],
        lambda f: yota.simplegrad(f, X)(X)[1],
        lambda f: yota.grad(functools.partial(lambda a, x: a * f(x), 1.0), X)[1][0],
    ],
    ids=["grad", "value_and_grad", "gradient", "jacobian", "simplegrad", "partial"],
)
def test_every_transform_goes_on_from_the_source(transform):
    def f(x):
        return float(x[0]) ** 2 * x[1]

    np.testing.assert_allclose(np.ravel(transform(f))[:3], [2 * X[0] * X[1], X[0] ** 2, 0.0])


def test_second_derivatives_and_batches_go_on_from_the_source():
    def f(x):
        return float(x[0]) ** 3 * x[1]

    a, b, _ = X
    np.testing.assert_allclose(yota.hessian(f)(X)[:2, :2], [[6 * a * b, 3 * a**2], [3 * a**2, 0]])
    np.testing.assert_allclose(yota.hvp(f)(X, np.array([1.0, 0, 0]))[:2], [6 * a * b, 3 * a**2])
    np.testing.assert_allclose(yota.batch(f)(np.array([X, 2 * X])), [a**3 * b, 16 * a**3 * b])
    np.testing.assert_allclose(yota.play(yota.trace(f, X)[1], 2 * X), 16 * a**3 * b)


@functools.cache
def remembered(v):
    return v * v


CACHES = {"c": remembered}
REMEMBERED = {
    "in a table": "lambda x: CACHES['c'](x[0]) * x[1]",
    "mapped": "lambda x: sum(map(remembered, x))",
    "by name": "lambda x: remembered(x[0]) * x[1]",
}


@pytest.mark.parametrize("name", REMEMBERED)
def test_caches_lose_nothing(name):
    for each in X:
        remembered(each)
    readable = {
        "in a table": lambda x: CACHES["c"](x[0]) * x[1],
        "mapped": lambda x: sum(map(remembered, x)),
        "by name": lambda x: remembered(x[0]) * x[1],
    }
    assert_right(readable[name])
    f = without_source(REMEMBERED[name], CACHES=CACHES, remembered=remembered)
    with contextlib.suppress(errors.TracingError):
        assert_right(f)


READ_BACK = {
    "f-string": lambda x: float(f"{x[0]}") * x[1],
    "kept": lambda x: _text_kept(x),
    "concatenated": lambda x: float("0" + str(x[0])) * x[1],
    "percent": lambda x: float("%.6f" % x[0]) * x[1],
    "format": lambda x: float("{:.6f}".format(x[0])) * x[1],
    "joined": lambda x: float("".join(["0", repr(float(x[0]))])) * x[1],
    "split": lambda x: float(f"{x[0]};{x[1]}".split(";")[1]) * x[0],
    "sliced": lambda x: float(f"  {x[0]}"[2:]) * x[1],
    "characters": lambda x: float("".join(c for c in f"{x[0]}")) * x[1],
    "json": lambda x: json.loads(str(x[0])) * x[1],
    "literal": lambda x: ast.literal_eval(str(x[0])) * x[1],
    "decimal": lambda x: float(decimal.Decimal(str(x[0]))) * x[1],
    "encoded": lambda x: float(str(x[0]).encode()) * x[1],
    "matched": lambda x: float(re.match(r"[\d.]+", str(x[0])).group()) * x[1],
    "numpy": lambda x: np.float64(str(x[0])) * x[1],
    "numpy array": lambda x: np.array([str(x[0])]).astype(float)[0] * x[1],
    "buffer": lambda x: _buffer(x),
    "redirected": lambda x: _redirected(x),
    "caught": lambda x: _caught(x),
    "of an array": lambda x: float(str(x)[1:].split()[0]) * x[1],
}


def _text_kept(x):
    STATE["text"] = str(x[0])
    return float(STATE["text"]) * x[1]


def _buffer(x):
    out = io.StringIO()
    print(x[0], file=out)
    return float(out.getvalue()) * x[1]


def _redirected(x):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print(x[0])
    return float(out.getvalue()) * x[1]


def _caught(x):
    try:
        raise ValueError(str(x[0]))
    except ValueError as fault:
        return float(str(fault)) * x[1]


@pytest.mark.parametrize("name", READ_BACK)
def test_what_is_read_back_is_refused(name):
    assert READ_BACK[name](X) is not None
    with pytest.raises(errors.TracingError, match="derivative"):
        yota.gradient(READ_BACK[name])(X)


LOOKED_AT = {
    "comparison": lambda x: x[0] ** 2 if f"{x[0]:.1f}" == "1.2" else x[1],
    "last digits": lambda x: x[0] ** 2 if str(x[0]) == "1.25" else x[1],
    "key": lambda x: {"1.25": x[1]}.get(str(x[0]), x[2]) * x[0],
    "membership": lambda x: x[0] * x[1] if "25" in str(x[0]) else x[1],
    "length": lambda x: x[0] * len(str(x[1])),
    "starts": lambda x: x[0] ** 2 if str(x[0]).startswith("1") else x[1],
    "sorted": lambda x: x[0] * (sorted([str(x[0]), "3"])[1] == "3"),
    "pattern": lambda x: x[0] * (2 if re.match(r"1", f"{x[0]:.0f}") else 3),
    "counter": lambda x: collections.Counter([f"{v:.0f}" for v in x])["2"] * x[0],
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_text_that_is_compared_is_a_guard(name):
    f = LOOKED_AT[name]
    fg = yota.value_and_grad(f, dynamic=False)
    value, gradient = fg(X)
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(
        gradient @ X, {"last digits": 2 * value, "comparison": 2 * value}.get(name, gradient @ X)
    )
    with pytest.raises(errors.StaleTapeError):
        fg(X + 1.0)


PRINTED = {
    "message": lambda x: _message(x),
    "into a stream": lambda x: print(f"{x[0]}", file=sys.stderr),
    "twice": lambda x: [print(line) for line in f"{x[0]:.3f}".replace(".", ",").split("\n\n")] and None,
}


def _message(x):
    text = f"x is {x[0]}"
    text = text + " and " + str(x[1])
    print(text)


@pytest.mark.parametrize("name", ["message", "into a stream"])
def test_a_text_that_is_kept_and_printed_is_free(name, capsys):
    def f(x):
        PRINTED[name](x)
        return np.sum(x * x)

    fg = yota.value_and_grad(f)
    for x in (X, X + 1.0):
        np.testing.assert_allclose(fg(x)[1], 2 * x)
    out = capsys.readouterr()
    assert (out.out + out.err).count("1.25") == 1


def test_texts_that_stay_are_texts():
    names = []

    def f(x):
        names.append(f"{x[0]:.3f}")
        return np.sum(x)

    yota.grad(f, X)
    assert names == ["1.250"] and isinstance(names[0], str) and pickle.loads(pickle.dumps(names)) == names
    assert {names[0]: 1}["1.250"] == 1 and type(pickle.loads(pickle.dumps(names))[0]) is str


# -- writers -------------------------------------------------------------------------------------------------

logger = logging.getLogger("yota.leaks")
WRITERS = {
    "print": lambda x: print(float(x[0]), f"{x[1]}"),
    "logger": lambda x: logger.info("%s %.2f", x[0], float(x[1])),
    "logging": lambda x: logging.getLogger("yota.leaks").debug(f"{x[0]}"),
    "adapter": lambda x: ADAPTER.info(f"{x[0]}"),
    "stdout": lambda x: sys.stdout.write(f"{x[0]}"),
    "warning": lambda x: _warned(x),
    "formatted": lambda x: print("%.3f %s" % (float(x[0]), x[1])),
}
ADAPTER = logging.LoggerAdapter(logger, {})


def _warned(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn(f"{x[0]}", stacklevel=2)


@pytest.mark.parametrize("name", WRITERS)
def test_writers_are_free(name, capsys):
    def f(x):
        WRITERS[name](x)
        return np.sum(x * x)

    fg = yota.value_and_grad(f)
    for x in (X, X + 1.0):
        np.testing.assert_allclose(fg(x)[1], 2 * x)


@pytest.mark.parametrize("f", [lambda x: _by_logger(x, Watching), _by_handler], ids=["logger", "handler"])
def test_loggers_that_compute_are_right_or_refused(f):
    for function in (f, yota.interpreted(f)):
        with contextlib.suppress(errors.TracingError):
            np.testing.assert_allclose(yota.gradient(function)(X), slopes(f, X), rtol=1e-6)


def test_a_patched_print_is_not_the_print(monkeypatch):
    found = []
    monkeypatch.setattr("builtins.print", lambda v: found.append(float(v)))

    def f(x):
        print(x[0])
        return found[-1] * x[1]

    np.testing.assert_allclose(yota.gradient(f)(X), [X[1], X[0], 0])


# -- what a function does outside of itself ------------------------------------------------------------------


def test_what_comes_after_happens_once(tmp_path):
    path, calls = tmp_path / "log", []

    def f(x):
        a = float(x[0])
        calls.append("f")
        with open(path, "a") as out:
            out.write("line\n")
        return a * x[1]

    np.testing.assert_allclose(yota.gradient(f)(X), [X[1], X[0], 0])
    assert calls == ["f"] and path.read_text() == "line\n"


def test_what_came_before_happens_once_and_the_error_says_what_to_do(tmp_path, capsys):
    path, calls = tmp_path / "log", []

    def file(x):
        with open(path, "a") as out:
            out.write("line\n")
        return float(x[0]) * x[1]

    def appended(x):
        y = x[0] * 2
        calls.append("f")
        return float(y) * x[1]

    class Counter:
        n = 0

    def counted(x):
        Counter.n += 1
        return float(x[0]) * x[1]

    def global_(x):
        global COUNT
        COUNT += 1
        return float(x[0]) * x[1]

    for f in (file, appended, counted, global_):
        with pytest.raises(errors.TracingError, match=rf"yota\.interpreted\({f.__name__}\)"):
            yota.gradient(f)(X)
    assert calls == ["f"] and path.read_text() == "line\n" and Counter.n == 1 and COUNT == 1
    np.testing.assert_allclose(yota.gradient(yota.interpreted(appended))(X), [2 * X[1], 2 * X[0], 0])


COUNT = 0


def test_what_was_printed_before_is_not_printed_again(capsys):
    def f(x):
        print("begins", x[0])
        for each in x:
            print("runs")
            total = float(each) * x[1]
        print("ends")
        return total

    np.testing.assert_allclose(yota.gradient(f)(X), [0, X[2], X[1]])
    assert capsys.readouterr().out == "begins 1.25\nruns\nruns\nruns\nends\n"


def test_structures_of_its_own_may_be_written():
    class Box:
        def __init__(self, v):
            self.v, self.all = v, []

    def f(x):
        found, table, box = [], {}, Box(1.0)
        box.all.append(x[0])
        box.w = x[1]
        for n in range(2):
            found.append(n)
            table[n] = [*found]
            table[n].append(3)
        found += [1]
        words = "a b".split()
        words.reverse()
        count = collections.Counter(words)
        count["a"] += 1
        plain = np.arange(3.0)
        plain[0] = 7.0
        return float(box.all[0]) * box.w * len(found) * plain[0]

    assert_right(f)


def test_a_function_is_remembered(monkeypatch):
    runs = []

    def f(x):
        runs.append(type(x))
        return np.sum(x)

    def g(x):
        return float(x[0]) ** 2 + helper(x)

    def helper(x):
        runs.append(1)
        return x[1]

    yota.gradient(g)(X)
    assert runs == [1]
    yota.gradient(g)(np.ones(2))
    assert runs == [1, 1]


def test_random_programs_that_leave_the_tape_are_right_or_refused():
    chance = np.random.default_rng(0)
    leaves = [
        "x[0]",
        "x[1]",
        "float(x[0])",
        "x[1].item()",
        "float(f'{x[0]}')",
        "float(str(a))",
        "float(f'{a:.0f}')",
        "a",
    ]
    ways = ["math.sin({})", "log({})", "({}) * 1.5", "abs({})", "float({})", "max({}, 0.1)", "kept({})"]

    def kept(v):
        STATE["v"] = v
        return STATE.pop("v")

    right = 0
    for _ in range(60):
        text = chance.choice(leaves)
        for _ in range(chance.integers(1, 4)):
            text = chance.choice(ways).format(text)
        source = f"lambda x: (lambda a: {text})(x[0] * x[1]) * x[2]"
        f = without_source(source, math=math, log=lambda v: math.log(abs(v) + 1), kept=kept)
        try:
            gradient = yota.gradient(f)(X)
        except errors.TracingError:
            continue
        right += 1
        np.testing.assert_allclose(gradient, slopes(f, X), rtol=1e-5, atol=1e-6, err_msg=source)
    assert right > 10


def test_equal_numbers_are_shifted_by_different_parts():
    # Else their quotient would stay one, as where a library writes them into a plain array and normalises it.
    trace = types.SimpleNamespace(shift=2.0**-17)
    assert len({shifted(trace, 1.0, variable) for variable in range(20)}) == 20


def test_large_numbers_that_were_rounded_have_no_derivative():
    f = without_source("lambda x: x[0] * int(np.ceil(x[1] * 3e16))", np=np)
    assert yota.gradient(f)(np.array([2.0, 1.0])).tolist() == [3e16, 0.0]


def test_integers_that_lose_no_digit_are_numbers_that_leave():
    def digits(x):
        part, power = math.frexp(x[0])
        return int(part * 2.0**53) * 2.0 ** (power - 53) * x[1]

    with pytest.raises(errors.TracingError, match=r"int\(\) takes a traced value off the tape"):
        yota.grad(digits, X)
    assert_right(lambda x: int(x[0] * 1000) * x[1], X + 3e-4)


# -- exceptions that the function catches -----------------------------------------------------------------


def _in_thread(x):
    found = []

    def work():
        with contextlib.suppress(Exception):
            found.append(x[0] ** 2)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0] if found else 5.0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "inner",
    [
        lambda x: float(decimal.Decimal(x[0])),
        lambda x: json.loads(json.dumps(x.tolist()))[0],
        lambda x: marshal.loads(marshal.dumps(x.tolist()))[0],
        lambda x: memoryview(x)[0],
        lambda x: np.histogram(x, 3)[0][0] * x[0],
        _in_thread,
    ],
    ids=["Decimal", "json", "marshal", "memoryview", "refusal", "thread"],
)
def test_exceptions_that_only_traced_values_raise_choose_no_branch(inner):
    def penalised(x):
        try:
            found = inner(x)
        except Exception:  # noqa: BLE001  (as users write it)
            return 1e10 * x[1]
        return found * x[1]

    def suppressed(x):
        found = 1e10
        with contextlib.suppress(Exception):
            found = inner(x)
        return found * x[1]

    for f in (penalised, suppressed):
        assert f(X) < 1e3
        with pytest.raises(errors.TracingError):
            yota.grad(f, X)


def _raising(a, b):
    with np.errstate(all="raise"):
        return np.sum(np.log(np.array([a, b])))


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize(
    ("inner", "fails", "works"),
    [
        (lambda a, b: a / b, (1.0, 0.0), (1.0, 2.0)),
        (lambda a, b: a // b + a % b, (1.0, 0.0), (1.5, 2.0)),
        (lambda a, b: 10.0**a * b, (1000.0, 2.0), (1.5, 2.0)),
        (lambda a, b: math.gamma(a) * b, (-1.0, 2.0), (1.5, 2.0)),
        (_raising, (0.0, 2.0), (1.5, 2.0)),
        (lambda a, b: np.sum(np.linalg.cholesky(np.diag([a, b]))), (-1.0, 2.0), (1.5, 2.0)),
        (lambda a, b: np.sum(np.linalg.inv(np.array([[a, b], [b, a]]))), (2.0, 2.0), (1.5, 2.0)),
    ],
    ids=["quotient", "rest", "power", "gamma", "errstate", "cholesky", "inverse"],
)
def test_what_catches_exceptions_is_recorded_for_values_that_raise_and_for_others(inner, fails, works, target):
    def caught(a, b):
        try:
            return inner(a, b)
        except (ArithmeticError, ValueError):
            return 7.0 * a

    def suppressed(a, b):
        with contextlib.suppress(ArithmeticError, ValueError):
            return inner(a, b)
        return 7.0 * a

    for f in (caught, suppressed):
        wanted = f(*works), (f(works[0] + STEP, works[1]) - f(works[0] - STEP, works[1])) / 2 / STEP
        derivative = yota.value_and_grad(f, target=target)
        assert derivative(*fails) == (7.0 * fails[0], 7.0)
        np.testing.assert_allclose(derivative(*works), wanted, 1e-6)
        derivative.clear()
        np.testing.assert_allclose(derivative(*works), wanted, 1e-6)
        try:
            assert derivative(*fails) == (7.0 * fails[0], 7.0)
        except np.linalg.LinAlgError:
            assert "linalg" in inner.__code__.co_names  # compiled code raises it, and does not go on


def test_handlers_of_warnings_are_refused_where_numpy_warns():
    def logarithm(x):
        try:
            return np.log(x)
        except RuntimeWarning:
            return 0.0 * x

    derivative = yota.value_and_grad(logarithm)
    assert derivative(0.5) == (np.log(0.5), 2.0)
    with pytest.raises(errors.TracingError, match="never entered"):
        derivative(0.0)
