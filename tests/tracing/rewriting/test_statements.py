"""Every kind of statement and expression, as Python does it."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import traceback

import numpy as np
import pytest

import yota
from tests.tracing.rewriting.agreement import assert_interpreted
from yota import errors
from yota.tracing.bytecode import MATCHES_ARRAYS

X = np.array([0.5, 1.5, -2.5, 4.0])


def loops(x):
    total, count = 0.0, 0
    for i, value in enumerate(x):
        if i == 1:
            continue
        if i == 3:
            break
        total += value * i
    else:
        total = total * 100
    for _ in range(2):
        count += 1
    else:
        total = total + count
    while count < 5:
        count += 1
        total *= 1.5
        if count == 4:
            break
    else:
        total = 0.0
    return total


def choices(x):
    y = x[0] if x[1] > 1 else x[2]
    if x[0] > 1:
        y = y * 2
    elif (x[1] > 1 and not x[2] > 0) or x[3] < 0:
        y = y * 3
    else:
        y = y * 4
    return y + (0.0 < x[0] < 1.0) * x[3] + (5.0 if 3 < x[0] < 4 else 0.1)


def targets(x):
    (a, b), *rest, c = (x[0], x[1]), x[2], x[3], x[0]
    [d, e] = rest
    same, *none = [a]
    p = q = same * 2
    p += b
    values = [1.0, 2.0, 3.0]
    values[0], values[-1] = c, d
    values[1] += e
    z = np.zeros(3)
    z[0], z[1:] = a, x[1:3]
    z[1] **= 2
    z *= 2
    note: float = b * 3
    unset: float  # noqa: F842
    table = {"a": a}
    table["a"] -= 1.0
    return p * q + np.sum(z) + sum(values) + note + table["a"] + len(none)


def comprehensions(x):
    squares = [v * v for v in x if v > 0]
    pairs = [a * b for a in x for b in x[:2] if a is not b]
    named = {i: v for i, v in enumerate(x)}  # noqa: C416
    odd = {i for i in range(4) if i % 2}
    lazy = (v + last for v in x if (last := v) > 0)
    nested = [[i * v for v in x[:2]] for i in range(2)]
    total = sum(lazy)
    return sum(squares) + sum(pairs) + named[2] + sum(named[i] for i in odd) + total + nested[1][1] + last


def functions(x, /, scale=2.0, *rest, factor=3.0, **others):
    count = 0

    def inner(a, b=scale, *args, c=factor, **more):
        nonlocal count
        count += 1
        return a * b + c + sum(args) + sum(more.values())

    double = lambda v, k=2: v * k

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **keywords):
            return function(*args, **keywords) + 1.0

        return wrapper

    @decorate
    def third(v):
        """A docstring."""
        return v / 3

    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert third.__name__ == "third" and third.__doc__ == "A docstring."
    made = [lambda v, i=i: v * i for i in range(3)]
    late = [lambda v: v * i for i in range(3)]  # noqa: B023
    total = inner(x[0]) + inner(x[1], 4.0) + inner(*[x[0], x[1]], x[2], c=1.0, e=2.0, d=x[3]) + double(x[2])
    return total + count + third(x[3]) + factorial(5) + made[1](x[0]) + late[1](x[0])


def protected(x):
    order = []
    try:
        try:
            raise ValueError("one")
        except (KeyError, ValueError) as fault:
            order.append(str(fault))
            raise
        finally:
            order.append("finally")
    except ValueError:
        order.append("again")
    else:
        order.append("never")
    try:
        value = x[0]
    except IndexError:
        value = x[1]
    else:
        value = value * 2
    try:
        x[17]
    except IndexError as fault:
        order.append(type(fault).__name__)
    try:
        try:
            raise KeyError("a")
        except KeyError as fault:
            raise RuntimeError("b") from fault
    except RuntimeError as fault:
        assert isinstance(fault.__cause__, KeyError)  # noqa: PT017
    assert order == ["one", "finally", "again", "IndexError"], order
    return value * len(order) + _early(x) + _swallowed(x)


def _early(x):
    for value in x:
        try:
            return value
        finally:
            value = value * 2
    return x[3]


def _swallowed(x):
    for _ in range(3):
        try:
            raise ValueError
        finally:
            break  # noqa: B012
    with contextlib.suppress(ZeroDivisionError):
        x[0] * (1 // 0)
    with np.errstate(all="raise"), contextlib.nullcontext(x[1]) as value:
        y = value * 2
    return y + 0.0


class Collected:
    def __init__(self, start):
        self.total = start
        self.closed = False

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self.closed = True
        return fault[0] is not None and issubclass(fault[0], LookupError)


def managed(x):
    with Collected(x[0]) as first, Collected(x[1]) as second:
        first.total = first.total * second.total
        raise KeyError
    with _scaled(x) as y:
        z = np.zeros(4)
        z[:] = y
    assert first.closed and second.closed
    return first.total + np.sum(z)


@contextlib.contextmanager
def _scaled(x):
    y = np.zeros(4)
    y[1:] = x[1:] * 3
    yield y
    y[0] = 1.0


def generators(x):
    def powers(value, count):
        power = 1.0
        for _ in range(count):
            given = yield power
            power = power * (value if given is None else given)
        return power

    def both(value):
        last = yield from powers(value, 3)
        yield last

    stream = powers(x[0], 3)
    next(stream)
    sent = stream.send(x[1])
    stream.close()
    return sum(both(x[0])) + sent + sum(_outside(x))


def _outside(x):
    made = np.zeros(2)
    made[0] = x[0]
    yield made[0]
    yield made[1] + x[1]


def matched(x):
    def area(shape):
        match shape:
            case {"kind": "circle", "r": r, **rest}:
                return 3 * r * r + len(rest)
            case ("square" | "box", a):
                return a * a
            case [first, *_, last] if len(shape) > 2:
                return first * last
            case complex(real=r):
                return r
            case float(v):
                return v * 7
            case None:
                return 1.0
            case _:
                return 0.0

    return (
        area({"kind": "circle", "r": x[0], "more": 1})
        + area(("box", x[1]))
        + area([x[0], 2.0, x[3]])
        + area(2j)
        + area(x[2].item())
        + area(None)
        + area("none")
        + (0.0 if MATCHES_ARRAYS else area(x))
    )


@pytest.mark.skipif(not MATCHES_ARRAYS, reason="NumPy's arrays are no sequences to `match`")
@pytest.mark.parametrize("form", [lambda f: f, yota.interpreted])
def test_arrays_that_are_matched_as_sequences_are_refused(form):
    def first(x):
        match x:
            case [head, *_]:
                return head
        return 2.0 * x[0]

    with pytest.raises(errors.TracingError, match="a traced array is matched as a sequence"):
        yota.gradient(form(first))(X)


def texts(x):
    name = f"{x.shape[0]:>3}|{'a'!r}|{1.5:.{2}f}"
    assert name == "  4|'a'|1.50", name
    print(f"{x[0]:.2f}", f"value: {x[1]!r}", x[2])
    return x[len(name)] if len(name) < 3 else x[0]


def slices(x):
    a = np.reshape(x, (2, 2))
    b = a[::-1, 1:][..., None]
    a = a.copy()
    a[:, 0] += x[:2]
    del x
    c = [1.0, 2.0, 3.0]
    del c[0]
    return np.sum(b * 2) + np.sum(a[1:]) + c[0] + a[(0, 1)] + a[-1][-1]


class Point:
    __scale = 2.0
    made = 0

    def __init__(self, x, y=0.0):
        self.x, self.y = x, y
        type(self).made += 1

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    def __mul__(self, factor):
        if isinstance(factor, Point):
            return NotImplemented
        return Point(np.array([self.x, self.y])[0] * factor, self.y * factor)

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1.0

    def __getitem__(self, index):
        return (self.x, self.y)[index]

    def __iter__(self):
        yield self.x
        yield self.y

    def __len__(self):
        return 2

    def __call__(self, factor):
        return self.x * factor

    def __lt__(self, other):
        return self.norm < other.norm

    def __contains__(self, value):
        return value is self.x

    @property
    def norm(self):
        return math.sqrt(self.x**2 + self.y**2)

    @norm.setter
    def norm(self, value):
        factor = value / self.norm
        self.x, self.y = self.x * factor, self.y * factor

    @classmethod
    def unit(cls):
        return cls(1.0)

    @staticmethod
    def scaled(v):
        return v * Point.__scale

    def __private(self, *, __by=1.5):
        return self.x * self.__scale * __by

    def public(self):
        return self.__private()


class Weighted(Point):
    def __init__(self, x, w):
        super().__init__(x, x * 2)
        self.w = w

    def __radd__(self, other):
        return NotImplemented if isinstance(other, Point) else self.w + other


def classes(x):
    p, q = Point(x[0], x[1]), Weighted(x[2], x[3])
    r = 2.0 * (p + q) + -p
    p.norm = x[3]
    assert len(p) == 2 and p.x in p and sorted([q, p])[1] is not None
    a, b = r
    return a * b + r[0] + p(3.0) + q.norm + Point.scaled(x[0]) + q.public() + (1.0 + q) + Point.unit().x + p.x


def exhausted(x):
    """Iterators that end inside of statements, and generators that return something."""
    values, total = iter(x), 0.0
    while True:
        try:
            total = total + next(values) ** 2
        except StopIteration:
            break
    values = iter(x)
    with contextlib.suppress(StopIteration):
        for k in range(9):
            if k >= 0:
                total = total + k * next(values)

    def doubled():
        sent = yield x[0]
        return 2 * sent

    steps = doubled()
    first = next(steps)
    try:
        steps.send(x[1])
    except StopIteration as fault:
        total = total + first * fault.value

    def broken():
        yield next(iter(()))

    try:
        return next(broken())
    except RuntimeError as fault:
        total = total * (2 if isinstance(fault.__cause__, StopIteration) else 3)
    try:
        try:
            raise StopIteration(x[2])
        finally:
            total = total * 2
    except StopIteration as fault:
        return total * fault.value


def shifted(x):
    i = np.asarray(9 * x, dtype=np.int64)
    i <<= 1
    j = (1 << (i % 3)) | (i >> 2)
    j >>= 1
    return np.sum(x[j % 3]) * (int(x[0] * 9) << 2)


def imports(x):
    import math as mathematics
    from math import cos, pi
    from os import path

    import numpy.linalg

    return mathematics.sin(x[0]) + cos(x[1] * pi) + numpy.linalg.norm(x) + len(path.sep)


PROGRAMS = [
    loops,
    choices,
    targets,
    comprehensions,
    functions,
    protected,
    managed,
    generators,
    matched,
    texts,
    slices,
    classes,
    exhausted,
    shifted,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_statements_do_what_they_do_in_python(program, capsys):
    assert_interpreted(program, X)


def test_imported_functions_are_recorded():
    tape = assert_interpreted(imports, X, differs=True)
    assert [op.name for op in tape.ops if op.name in ("sin", "cos")] == ["sin", "cos"]


def test_recursion_is_as_deep_as_in_python():
    def down(v, n):
        return v if n == 0 else down(v * 1.0, n - 1)

    def f(x):
        return down(x[0], 400)

    _, tape = yota.itrace(f, X)
    assert len(tape.ops) == 401


class Problem(Exception):
    pass


def test_exceptions_of_the_users_come_through_and_say_where():
    def f(x):
        y = x * 2
        raise Problem(f"no {y.shape}")

    with pytest.raises(Problem, match=r"no \(4,\)") as caught:
        yota.itrace(f, X)
    if sys.version_info >= (3, 11):
        assert "raise Problem" in traceback.extract_tb(caught.value.__traceback__)[-1].line
