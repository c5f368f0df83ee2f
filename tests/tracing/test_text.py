"""Text of traced values: printing costs nothing, deciding by it is a guard."""

# ruff: noqa: G004, UP031, UP032  (users make text in all of these ways)
from __future__ import annotations

import contextlib
import io
import logging
import logging.handlers
import pprint
import sys
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
import tqdm
from rich.console import Console

import yota
from yota import errors

X = np.array([1.2, 2.5])
Y = np.array([3.7, -1.0])
log = logging.getLogger("yota.test")


class Bar:
    def set_postfix(self, **values):
        self.values = values


def _drops(x):
    str(x)
    f"{x}"


def _raises(x):
    if False:
        raise ValueError(f"{x[0]} is bad")
    try:
        raise KeyError("at " + str(x[0]))
    except KeyError:
        return np.sum(x)


WRITTEN = {
    "print": lambda x: print(x),
    "print of parts": lambda x: print("x", x[0], *x, sep=" "),
    "f-string": lambda x: print(f"x = {x[0]:.3f} and {x[1]!r}: {x}"),
    "f-string with width": lambda x: print(f"{x[0]:{6}.2f}"),
    "percent": lambda x: print("%.3f and %s and %d" % (x[0], x[1], x[0])),
    "format method": lambda x: print("{:.2f} {!r}".format(x[0], x)),
    "format function": lambda x: print(format(x[0], ".2f"), repr(x)),
    "concatenation": lambda x: print("x" + str(x[0]) + "y"),
    "join": lambda x: print(", ".join([str(x[0]), f"{x[1]:.1f}"])),
    "numbers": lambda x: print(float(x[0]), int(x[1]), round(float(x[0]), 2)),
    "conditional": lambda x: print(f"{x[0]:.1f}" if X.size else "none"),
    "array2string": lambda x: print(np.array2string(x, precision=2)),
    "logging": lambda x: log.info("x %s %.2f", x, x[0]),
    "logging of text": lambda x: log.warning(f"x {x}"),
    "progress bar": lambda x: Bar().set_postfix(loss=f"{x[0]:.3f}"),
    "pprint": lambda x: pprint.pprint([float(x[0]), f"{x[1]}"]),
    "dropped": lambda x: _drops(x),
    "exception": _raises,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_out_is_free(name, capsys):
    f = WRITTEN[name]
    fg = yota.value_and_grad(lambda x: (f(x), np.sum(x * x))[1])
    for x in (X, Y):
        np.testing.assert_allclose(fg(x)[1], 2 * x)


def test_what_is_printed_is_what_it_would_be_without_tracing(capsys):
    def f(x):
        print(x, x[0], f"{x[0]:.1f} {x[1]!r}", "%d" % x[1], float(x[0]), repr(x))
        return np.sum(x)

    f(X)
    plain = capsys.readouterr().out
    yota.grad(f, X)
    assert capsys.readouterr().out == plain


USED = {
    "comparison": lambda x: x[0] * (2 if f"{x[0]:.0f}" == "1" else 3),
    "name": lambda x: _kept(f"{x[0]:.0f}", x),
    "key": lambda x: {"1": 2.0, "4": 3.0}[f"{x[0]:.0f}"] * x[0],
    "membership": lambda x: x[0] if str(x[0]) in ("1.2", "one") else x[1],
    "parsed": lambda x: float(f"{x[0]:.0f}") * x[0],
    "length": lambda x: len(str(x[1])) * x[0],
    "split": lambda x: x[int("{:.1f}".format(x[0]).split(".")[0]) - 1] if x[1] > 0 else x[0],
    "of an array": lambda x: x[0] * (2 if str(x) == str(X) else 3),
    "array2string": lambda x: x[0] * len(np.array2string(x)),
    "repr": lambda x: x[0] * len(repr(x[1])),
    "percent": lambda x: x[0] * len("%s" % x[1]),
    "print too": lambda x: _printed(f"{x[0]:.0f}", x),
}


def _kept(text, x):
    name = text
    return x[0] * 2 if name == "1" else x[0] * 3


def _printed(text, x):
    print(text)
    return x[0] * len(text)


@pytest.mark.parametrize("name", USED)
def test_what_may_be_used_is_a_guard(name):
    f = USED[name]
    fg = yota.value_and_grad(f, dynamic=False)
    for _ in range(2):
        fg(X)
    with pytest.raises(errors.StaleTapeError, match=r"test_text\.py"):
        fg(Y)
    if name != "repr":
        fg = yota.value_and_grad(f, dynamic=True)
        for x in (X, Y, X):
            np.testing.assert_allclose(fg(x)[0], f(x))


def test_the_text_of_many_numbers_is_refused():
    with pytest.raises(errors.TracingError, match="65 traced numbers"):
        yota.grad(lambda x: x[0] * len(str(x)), np.ones(65))


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_signed_zeros_in_a_text(target):
    def f(x):
        return x[0] * len(str(x[1])) * len(str(x))

    fg = yota.value_and_grad(f, dynamic=True, target=target)
    for zero in (0.0, -0.0, 0.0, 1.0, -0.0):
        x = np.array([1.0, zero])
        assert fg(x)[0] == f(x)


def test_nan_in_a_text():
    fg = yota.value_and_grad(lambda x: x[0] * len(str(x)))
    x = np.array([1.0, np.nan])
    assert fg(x)[0] == fg(x)[0]


def _warned(x, action):
    with warnings.catch_warnings(record=action == "always") as caught:
        warnings.simplefilter(action)
        try:
            warnings.warn(f"{x[0]}", stacklevel=2)
        except UserWarning as raised:
            return float(str(raised)) * x[1]
    return float(str(caught[0].message)) * x[1]


def _printed_to(x, **named):
    stream = io.StringIO()
    if named:
        pprint.pprint(float(x[0]), stream=stream)
    else:
        pprint.pprint(float(x[0]), stream)
    return float(stream.getvalue()) * x[1]


def _redirected(x):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        pprint.pprint(float(x[0]))
    return float(stream.getvalue()) * x[1]


def _pieces(x):
    whole, rest = str(x[0]).split(".")
    return (int(whole) + int(rest) / 10 ** len(rest)) * x[1]


def _exported(x):
    console = Console(record=True, file=io.StringIO())
    console.print(x[0])
    return float(console.export_text()) * x[1]


def _described(x, read):
    with tqdm.tqdm(total=1) as bar:
        bar.set_description_str(f"{x[0]}")
        return float(read(bar)) * x[1]


def _through_a_file(x, read):
    with open(STORE, "w") as file:
        file.write(str(x[0]))
    return float(read(STORE)) * x[1]


STORE = Path()
READ = {
    "the record of a console": _exported,
    "the text of a bar": lambda x: _described(x, lambda bar: bar.desc),
    "a bar as a text": lambda x: _described(x, lambda bar: str(bar).split(":")[0]),
    "a file": lambda x: _through_a_file(x, lambda path: path.read_text()),
    "a file that NumPy reads": lambda x: _through_a_file(x, np.loadtxt),
    "eval": lambda x: eval(f"{x[0]} * b", {"b": x[1]}),
    "digits": _pieces,
    "a collected warning": lambda x: _warned(x, "always"),
    "a raised warning": lambda x: _warned(x, "error"),
    "a named stream": lambda x: _printed_to(x, named=True),
    "a given stream": lambda x: _printed_to(x),
    "a stream of the function's own": _redirected,
}


@pytest.mark.parametrize("name", READ)
def test_a_number_that_comes_back_out_of_a_text_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "STORE", tmp_path / "text")
    assert READ[name](X) == pytest.approx(X[0] * X[1])
    with pytest.raises(errors.TracingError, match=r"would lose its derivative|is not done again"):
        yota.grad(READ[name], X)


STREAM = io.StringIO()
RECORDS: list[warnings.WarningMessage] = []
MEMORY = logging.handlers.MemoryHandler(100)
memory_log = logging.getLogger("yota.test.memory")


class Reader:
    def __init__(self, stream):
        self.stream = stream

    def last(self):
        return float(self.stream.getvalue().split()[-1])


READER = Reader(STREAM)
WEAK = weakref.ref(STREAM)


def _then(written, read):
    """A function that writes the text of a value, and reads it where ``read`` is given."""

    def f(x):
        written(x[0])
        return x[0] * x[1] if read is None else read() * x[1]

    return f


def _last():
    return float(STREAM.getvalue().split()[-1])


BEFORE = {
    "a global variable": (print, _last),
    "an attribute": (print, lambda: READER.last()),
    "a computed name": (print, lambda: float(eval("STREAM").getvalue().split()[-1])),
    "a weak reference": (print, lambda: float(WEAK().getvalue().split()[-1])),
    "an attribute by name": (print, lambda: float(getattr(sys, "stdout").getvalue().split()[-1])),  # noqa: B009
    "a default": (print, lambda stream=STREAM: float(stream.getvalue().split()[-1])),
    "by its name": (lambda v: sys.stdout.write(f"{v} "), lambda: float(sys.stdout.getvalue().split()[-1])),
    "collected warnings": (lambda v: warnings.warn(f"{v}", stacklevel=1), lambda: float(str(RECORDS[-1].message))),
    "records of a handler": (lambda v: memory_log.info(f"{v}"), lambda: float(MEMORY.buffer[-1].msg)),
    "the logger's handlers": (
        lambda v: memory_log.info(f"{v}"),
        lambda: float(logging.getLogger("yota.test.memory").handlers[0].buffer[-1].msg),
    ),
}


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("form", [lambda f: f, yota.interpreted], ids=["plain", "interpreted"])
def test_what_was_there_before_is_free_unless_it_is_read(name, form, monkeypatch):
    written, read = BEFORE[name]
    monkeypatch.setattr(memory_log, "handlers", [MEMORY])
    monkeypatch.setattr(memory_log, "propagate", False)
    memory_log.setLevel(1)
    with contextlib.redirect_stdout(STREAM), warnings.catch_warnings():
        warnings.resetwarnings()
        monkeypatch.setattr(warnings, "_showwarnmsg_impl", RECORDS.append)
        fg = yota.value_and_grad(form(_then(written, None)), dynamic=False)
        for x in (X, Y):
            np.testing.assert_allclose(fg(x)[1], x[::-1])
        assert _then(written, read)(X) == pytest.approx(X[0] * X[1])
        with pytest.raises(errors.TracingError):
            yota.grad(form(_then(written, read)), X)


class Shown(io.StringIO):
    """As a notebook's stream: it leads to all variables, and many names lie behind it."""

    def __init__(self, names):
        super().__init__()
        self.session = Reader(Reader(Reader(names)))


def test_what_a_stream_leads_to_is_not_what_it_keeps():
    def f(x):
        print(x[0])
        return np.sum(np.stack([x, READER.stream.tell() + x]))

    with contextlib.redirect_stdout(Shown(globals())):
        fg = yota.value_and_grad(f, dynamic=False)
        for x in (X, Y):
            np.testing.assert_allclose(fg(x)[1], [2, 2])


def test_a_bar_shows_and_a_file_grows_once(tmp_path):
    path, bar = tmp_path / "text", tqdm.tqdm(total=1)

    def f(x):
        bar.set_postfix(loss=x[0])
        for value in x:
            with open(path, "a") as file:
                file.write(f"{value}\n")
        return x[0] * x[1]

    np.testing.assert_allclose(yota.gradient(f)(X), X[::-1])
    assert path.read_text().split() == [*map(str, X)]
    assert "loss=1.2" in str(bar)
    bar.close()


def test_the_length_of_a_repr_is_that_of_plain_values():
    f = yota.value_and_grad(lambda x: len(repr(x[0])) * x[1], dynamic=True)
    for x in (X, X / 3):
        assert f(x)[0] == len(repr(x[0])) * x[1]
