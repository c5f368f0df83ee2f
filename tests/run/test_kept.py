"""Code that is kept for other processes: found where everything is as it was, and never where anything is not."""

from __future__ import annotations

import base64
import importlib
import json
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import yota
from yota.errors import StaleTapeError
from yota.run.machine import native
from yota.tracing.trace import Trace

X = np.array([0.5, 1.25, 2.0])


class Lab:
    """Runs a module as one process after the other would."""

    def __init__(self, folder: Path, cache: Path, traces: list[None]) -> None:
        self.folder, self.cache, self._traces = folder, cache, traces

    def write(self, text: str, name: str = "model") -> None:
        place = self.folder / f"{name}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("import numpy as np\n" + text)

    def module(self, name="model"):
        """The module as a new process has it."""
        for each in [key for key in sys.modules if key.split(".")[0] in ("model", "helper", "installed")]:
            del sys.modules[each]
        importlib.invalidate_caches()
        return importlib.import_module(name)

    def run(self, make=yota.value_and_grad, args=(X,), name="model"):
        """What a new process gets, and whether it traced."""
        self._traces.clear()
        module = self.module(name)
        result = make(module.f)(*args)
        traced = bool(self._traces)
        check(module.f, result, args)
        return result, traced

    def entries(self) -> list[Path]:
        return sorted((self.cache / "functions").glob("*.json"))


def check(f, result, args):
    """Hold value and gradient against the function and its complex differences."""
    value, gradient = result
    assert np.isclose(value, f(*args), rtol=1e-12)
    x = np.asarray(args[0], complex)
    steps = np.eye(x.size).reshape(x.size, *x.shape) * 1e-20j
    wanted = [np.imag(f(x + step, *args[1:])) / 1e-20 for step in steps]
    np.testing.assert_allclose(np.ravel(gradient), wanted, rtol=1e-10)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    traces = []
    begin = Trace.__init__

    def counted(self, *args, **kwargs):
        traces.append(None)
        begin(self, *args, **kwargs)

    monkeypatch.setattr(Trace, "__init__", counted)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("YOTA_CACHE", "on")
    modules = tmp_path / "modules"
    for place in (modules, modules / "site-packages"):
        monkeypatch.syspath_prepend(str(place))
    modules.mkdir()
    yield Lab(modules, tmp_path / "cache", traces)
    for each in ("model", "helper", "installed"):
        sys.modules.pop(each, None)


def changes() -> dict[str, tuple[str, str, str]]:
    """The programs of ``changes.txt``, each with what is replaced in it, and by what."""
    found = {}
    for part in Path(__file__).with_name("changes.txt").read_text().split("\n## ")[1:]:
        head, _, text = part.partition("\n")
        name, old, new = head.split(" | ")
        found[name] = text, old, new
    return found


CHANGES = changes()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_traced_anew(lab, name):
    text, old, new = CHANGES[name]
    assert text.replace(old, new) != text
    lab.write(text)
    assert lab.run()[1]
    assert not lab.run()[1], "nothing was kept"
    lab.write(text.replace(old, new))
    assert lab.run()[1], "stale"
    lab.write(text)
    assert not lab.run()[1]


@pytest.mark.parametrize("home", ["helper", "site-packages/installed"])
def test_another_module(lab, home):
    name = home.rpartition("/")[2]
    lab.write(f"from {name} import g\nimport {name}\ndef f(x):\n    return np.sum(g(x)) + {name}.C * {name}.h()")
    helper = "C = 2.0\ndef g(x):\n    return k(x)**2\ndef k(x):\n    return 3 * x\ndef h():\n    return 4.0"
    lab.write(helper, home)
    assert [lab.run()[1], lab.run()[1]] == [True, False]
    for old, new in (("C = 2.0", "C = 3.0"), ("**2", "**3"), ("3 * x", "5 * x"), ("4.0", "6.0")):
        lab.write(helper.replace(old, new), home)
        assert [lab.run()[1], lab.run()[1]] == [True, False]


def test_code_for_all_sizes(lab):
    def make(f):
        return yota.value_and_grad(f, args={"x": "float64[N]"})

    lab.write("A = np.ones(3)\ndef f(x):\n    return A[0] * np.sum(x**2)")
    assert [lab.run(make)[1], lab.run(make)[1], lab.run(make, (X[:2],))[1], lab.run()[1]] == [True, False, False, True]
    lab.write("A = 2 * np.ones(3)\ndef f(x):\n    return A[0] * np.sum(x**2)")
    assert [lab.run(make)[1], lab.run(make)[1]] == [True, False]


BESIDE = """
import collections, dataclasses, enum
class Kind(enum.Enum):
    GOOD, BAD = 1, 2
Pair = collections.namedtuple("Pair", "left right")
@dataclasses.dataclass
class Found:
    norm: float
    rest: object
    kind: Kind = Kind.GOOD
def f(x):
    return np.sum(x**2), Found(np.sqrt(x @ x), [Pair(x[0], {"n": 3, 5: ()}), (None, x)])
"""


def test_what_is_beside_the_value(lab):
    def run():
        lab._traces.clear()
        module = lab.module()
        (_, aux), slope = yota.value_and_grad(module.f, has_aux=True)(X)
        assert np.array_equal(slope, 2 * X)
        assert isinstance(aux, module.Found)
        assert str(aux) == str(module.f(X)[1])
        assert aux.kind is getattr(module.f(X)[1], "kind", None)
        return bool(lab._traces)

    lab.write(BESIDE)
    assert [run(), run()] == [True, False]
    for old, new in (("GOOD\n", "BAD\n"), ('"left right"', '"one other"'), ('"n"', '"m"')):
        assert old in BESIDE
        lab.write(BESIDE.replace(old, new))
        assert [run(), run()] == [True, False]


def test_places_that_an_argument_decides(lab, monkeypatch):
    def run(places):
        lab._traces.clear()
        found = yota.jacobian(lab.module().f, sparse=True)(X, places)
        assert np.array_equal(found.toarray(), np.eye(3)[places] * 2 * X)
        return bool(lab._traces)

    # Arrays as a whole, so that there is a pattern and no code for each entry.
    lab.write("def f(x, places):\n    return np.take(np.square(x), places)")
    first, other = np.array([0, 1, 1]), np.array([2, 0, 1])
    assert [run(places) for places in (first, first, other, other)] == [True, False, True, False]
    monkeypatch.setattr("yota.run.persistent._MOST_BYTES", 0)
    assert [run(places) for places in (first, first)] == [True, True]


def test_the_same_name_in_another_file(lab, monkeypatch):
    lab.write("def f(x):\n    return np.sum(x**2)")
    assert lab.run()[1]
    lab.write("def f(x):\n    return np.sum(x**2)", "other/model")
    monkeypatch.syspath_prepend(str(lab.folder / "other"))
    assert lab.run()[1]


def test_kinds_of_arguments(lab):
    lab.write("def f(x, n=2, *, scale=1.0):\n    return scale * np.sum(x**n)")
    calls = [(X,), (X[:2],), (X[None],), (X, 3), (X, 2), (X, True), (X, 2.0)]
    assert [lab.run(args=args)[1] for args in calls] == [True] * len(calls)
    assert [lab.run(args=args)[1] for args in calls] == [False] * len(calls)
    for other in (X.astype("f4"), X.astype(">f8")):
        for _ in range(2):
            gradient = yota.gradient(lab.module().f)(other)
            assert gradient.dtype == other.dtype.newbyteorder("=")
            assert np.array_equal(gradient, 2 * other)


def test_structures(lab):
    lab.write(
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    w: np.ndarray\n    n: int = 2\n"
        "def f(p, x):\n    return np.sum(p.w * x**p.n)"
    )

    def gradient(n):
        module = lab.module()
        lab._traces.clear()
        value, g = yota.value_and_grad(module.f)(module.P(2 * X, n), X)
        assert np.isclose(value, np.sum(2 * X * X**n))
        assert np.allclose(g[("w",)], X**n)
        return bool(lab._traces)

    assert [gradient(2), gradient(2), gradient(3), gradient(2), gradient(3)] == [True, False, True, False, False]


OPTIONS = {
    "wrt": lambda f: yota.value_and_grad(f, "x"),
    "strict": lambda f: yota.value_and_grad(f, strict=True),
    "dynamic": lambda f: yota.value_and_grad(f, dynamic=True),
    "grad": lambda f: lambda x: (yota.grad(f, x)[0], yota.grad(f, x)[1][0]),
    "simplegrad": lambda f: lambda x: yota.simplegrad(f, x)(x),
    "interpreted": lambda f: yota.value_and_grad(yota.interpreted(f)),
    "jacobian": lambda f: yota.jacobian(f, with_value=True),
    "hessian": lambda f: lambda x: yota.hessian(f, with_value=True)(x)[:2],
}


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_targets(lab, target):
    if target == "c" and not native.is_available():
        pytest.skip("no C compiler")
    lab.write("A = np.linspace(0, 1, 60).reshape(20, 3)\ndef f(x):\n    return np.sum(np.tanh(A * x)) + x[0] ** 3")
    made = [lab.run(lambda f: yota.value_and_grad(f, target=target)) for _ in range(2)]
    assert [traced for _, traced in made] == [True, False]
    assert np.array_equal(made[0][0][1], made[1][0][1])


@pytest.mark.parametrize("name", OPTIONS)
def test_options(lab, name):
    lab.write("def f(x):\n    return np.sum(np.sin(x) ** 2) + x[0] ** 3")
    lab.run()
    assert [lab.run(OPTIONS[name])[1] for _ in range(2)] == [
        name in ("strict", "interpreted", "grad", "simplegrad", "jacobian", "hessian", "wrt"),
        False,
    ]


def test_products(lab):
    lab.write("def f(x):\n    return np.sum(np.sin(x) ** 2) + x[0] ** 3")
    found = []
    for _ in range(2):
        module = lab.module()
        lab._traces.clear()
        found.append(yota.hvp(module.f)(X, np.ones(3)))
        traced = bool(lab._traces)
    assert not traced
    np.testing.assert_allclose(found, [2 * np.cos(2 * X) + [6 * X[0], 0, 0]] * 2)


BRANCHES = "def f(x):\n    return np.sum(x**2) if x[0].real > 0 else np.sum(x**3)"


@pytest.mark.parametrize("dynamic", [True, False])
def test_branches(lab, dynamic):
    lab.write(BRANCHES)

    def make(f):
        return yota.value_and_grad(f, dynamic=dynamic)

    assert [lab.run(make)[1], lab.run(make)[1]] == [True, False]
    assert lab.run(make, (-X,))[1], "the other way is traced"
    fg = make(lab.module().f)
    check(lab.module().f, fg(X), (X,))
    if dynamic:
        check(lab.module().f, fg(-X), (-X,))
    else:
        with pytest.raises(StaleTapeError, match=r"model\.py:3"):
            fg(-X)


def test_changes_after_code_was_read(lab):
    lab.write(
        "C, SINE = 2.0, np.sin\nclass A:\n    n = 2.0\ndef g(x):\n    return x**A.n\n"
        "def f(x):\n    return C * np.sum(g(x)) + SINE(x[0])"
    )
    lab.run()
    module = lab.module()
    fg = yota.value_and_grad(module.f)
    lab._traces.clear()
    check(module.f, fg(X), (X,))
    assert not lab._traces
    assert fg.info().compilations[-1].why.startswith("kept in the private cache")
    module.C = 3.0
    check(module.f, fg(X), (X,))
    module.A.n = 3.0
    check(module.f, fg(X), (X,))
    module.g = lambda x: np.cos(x)
    check(module.f, fg(X), (X,))
    module.SINE = np.cos
    check(module.f, fg(X), (X,))


@pytest.mark.parametrize("size", [3, 60])
def test_arrays_from_outside_are_read_at_each_call(lab, size):
    lab.write(f"A = np.linspace(1, 2, {size})\ndef f(x):\n    return np.sum(A * x[0] ** 2) + np.sum(x)")
    assert [lab.run()[1], lab.run()[1]] == [True, False]
    module = lab.module()
    fg = yota.value_and_grad(module.f)
    fg(X)
    module.A[:] = 5.0
    check(module.f, fg(X), (X,))
    module.A = np.full(size, 7.0)
    check(module.f, fg(X), (X,))
    module.np = __import__("numpy")
    check(module.f, fg(X), (X,))


def test_views_of_arrays_from_outside(lab):
    lab.write(
        "A = np.linspace(1, 2, 60)\ndef f(x):\n    b = A[2:5]\n    return np.sum(A) * np.sum(x) + b[0] * np.sum(x**2)"
    )
    for _ in range(2):
        module = lab.module()
        fg = yota.value_and_grad(module.f)
        fg(X)
        module.A[2] = 9.0
        check(module.f, fg(X), (X,))


NOT_KEPT = {
    "a file": "np.loadtxt({place!r})",
    "an opened file": "opened({place!r})",
    "a path": "float(pathlib.Path({place!r}).read_text())",
    "a sound": "(wavfile.read if x.size > 99 else float)(2.0)",
    "what is built in": "(builtins.open if x.size > 99 else float)(2.0)",
    "today": "(np.datetime64 if x.size > 99 else float)(2.0)",
    "a generator": "(draws.normal if x.size > 99 else float)(2.0)",
    "the environment": "float(os.environ['YOTA_TEST_NUMBER'])",
    "the environment by a function": "float(os.getenv('YOTA_TEST_NUMBER'))",
    "the clock": "time.time() * 0 + 2.0",
    "a computed name": "getattr(helper, NAME[::-1])()",
    "names of a module": "vars(helper)['g' + 'h']()",
    "an import": "__import__('helper').gh()",
    "importlib": "importlib.import_module('helper').gh()",
    "eval": "eval('helper.gh()')",
    "an attribute getter": "operator.attrgetter('helper.gh')(sys.modules['model'])()",
    "a module's own attributes": "lazy.number",
    "random numbers": "np.random.default_rng(0).normal()",
    "what it prints": "print('seen') or 2.0",
    "a counter": "count()",
    "an iterator": "next(ITERATOR)",
    "an object of a library": "float(SPLINE(0.5))",
    "a function replaced": "np.log(7.0)",
    "a pattern": "matched(POINT)",
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_cannot_be_told_is_not_kept(lab, name, tmp_path, monkeypatch):
    if name == "a pattern" and sys.version_info < (3, 10):
        pytest.skip("no patterns")
    place = tmp_path / "number"
    place.write_text("2.0")
    monkeypatch.setenv("YOTA_TEST_NUMBER", "2.0")
    lab.write("def gh():\n    return 2.0", "helper")
    lab.write("def __getattr__(name):\n    return 2.0", "lazy")
    if name == "a function replaced":
        monkeypatch.setattr(np, "log", lambda _: 2.0)
    lab.write(
        "import builtins, helper, importlib, itertools, lazy, operator, os, pathlib, sys, time\n"
        "from scipy.interpolate import CubicSpline\nfrom scipy.io import wavfile\nfrom numpy import random as draws\n"
        "NAME = 'hg'\n"
        "SPLINE = CubicSpline([0.0, 1.0, 2.0], [1.0, 2.0, 5.0])\nITERATOR = itertools.repeat(2.0)\nCOUNT = [0]\n"
        "class Point:\n    __match_args__ = ('x',)\n    x = 2.0\nPOINT = Point()\n"
        "def matched(point):\n    match point:\n        case Point(x):\n            return x\n"
        "def opened(place):\n    with open(place) as file:\n        return float(file.read())\n"
        "def count():\n    COUNT[0] += 1\n    return 2.0\n"
        f"def f(x):\n    return {NOT_KEPT[name].format(place=str(place))} * np.sum(x**2)"
    )
    module = lab.module()
    for _ in range(2):
        lab._traces.clear()
        yota.value_and_grad(lab.module().f)(X)
        assert lab._traces
    assert not lab.entries()
    del module


def test_versions_and_rules(lab, monkeypatch):
    lab.write("def f(x):\n    return np.sum(x**2)")
    assert [lab.run()[1], lab.run()[1]] == [True, False]
    monkeypatch.setattr(np, "__version__", "99.0")
    assert [lab.run()[1], lab.run()[1]] == [True, False]
    yota.diffrule("@elementwise\ndef kept_test(x: Real) -> y:\n    y = x * x\n")
    assert [lab.run()[1], lab.run()[1]] == [True, False]
    monkeypatch.setattr("yota.run.persistent._state_on_disk", lambda: "other")
    assert lab.run()[1]


def test_a_rule_file_that_is_edited(lab, tmp_path):
    from yota.rules import registry as known

    rules = "# yota rules 1\n@elementwise\ndef kept_power(x: Real) -> y:\n    y = x * x\n"
    lab.write(
        "from yota.tracing.intercept import recorded\nfrom yota.rules.registry import registry\n"
        "g = recorded(registry().primitive('kept_power'))\ndef f(x):\n    return np.sum(g(x))"
    )
    file = tmp_path / "mine.rules"
    for text, wanted in ((rules, 2 * X), (rules.replace("x * x", "x * x * x"), 3 * X**2)):
        file.write_text(text)
        yota.load_rules(file)
        for _ in range(2):
            assert np.allclose(yota.value_and_grad(lab.module().f)(X)[1], wanted)
    assert known.registry().knows("kept_power")


def test_results_are_whole(lab):
    lab.write(
        "A = np.linspace(1, 2, 60)\ndef f(x):\n    y = np.exp(x[1:] * 1.5)\n"
        "    return np.sum(A * x[0] ** 2) + np.sum(y)"
    )
    (_, one), (_, other) = (yota.grad(lab.module().f, X) for _ in range(2))
    assert (str(one.tape), one.source, one.operations) == (str(other.tape), other.source, other.operations)
    assert one.tape.ops == other.tape.ops
    assert np.array_equal(other.tape.play(X)[1], one[0])
    again = pickle.loads(pickle.dumps(other))
    assert type(again.tape) is yota.Tape
    assert str(again.tape) == str(one.tape)


def test_the_cache_can_be_switched_off(lab, monkeypatch):
    lab.write("def f(x):\n    return np.sum(x**2)")
    monkeypatch.setenv("YOTA_CACHE", "off")
    assert [lab.run()[1], lab.run()[1], lab.entries()] == [True, True, []]


def rewritten(place: Path, change) -> None:
    """Change an entry, as somebody would who may write there and knows its form."""
    from yota.run.machine.store import digest_of

    text = "\n".join(change(place.read_text().split("\n")[1:]))
    place.write_text(f"{digest_of([place.stem, text])}\n{text}")


def _without_code(head: str) -> str:
    """The head of an entry whose compiled code ends early."""
    found = json.loads(head)
    (code,) = (value for key, value in found[1:] if key == "compiled")
    code[3] = code[3][:40]
    code[1] = [30]
    return json.dumps(found)


DAMAGE = {
    "nothing": lambda place: place.write_text(""),
    "half of it": lambda place: place.write_text(place.read_text()[: place.stat().st_size // 2]),
    "a letter": lambda place: place.write_text(place.read_text().replace("multiply", "subtract", 1)),
    "noise": lambda place: place.write_bytes(os.urandom(200)),
    "no JSON": lambda place: rewritten(place, lambda lines: ["x" + lines[0], *lines[1:]]),
    "another tag": lambda place: rewritten(place, lambda lines: [lines[0].replace('["d"', '["?"', 1), *lines[1:]]),
    "another form": lambda place: rewritten(place, lambda lines: ["[1,2]", *lines[1:]]),
    "fields missing": lambda place: rewritten(place, lambda lines: ['["d"]', *lines[1:]]),
    "no code": lambda place: rewritten(place, lambda lines: [_without_code(lines[0]), *lines[1:]]),
    "others may write": lambda place: place.chmod(0o666),
    "a link": lambda place: (place.rename(place.with_suffix(".old")), place.symlink_to(place.with_suffix(".old"))),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_mended(lab, name):
    lab.write("def f(x):\n    return np.sum(2.5 * x**2)")
    lab.run()
    (place,) = lab.entries()
    DAMAGE[name](place)
    assert lab.run()[1]
    assert not lab.run()[1]
    assert stat.S_IMODE(place.lstat().st_mode) == 0o600


def test_a_folder_of_others_is_left_alone(lab):
    lab.write("def f(x):\n    return np.sum(2.5 * x**2)")
    (lab.cache / "functions").mkdir(parents=True)
    (lab.cache / "functions").chmod(0o777)
    assert [lab.run()[1], lab.run()[1], lab.entries()] == [True, True, []]


def test_text_holds_data_alone():
    from yota.ir import serialised as written

    for value in (print, np.array([object()]), np.dtype("O"), X.sum, type("A", (), {}), np.array(["a"])):
        with pytest.raises(written.Unwritable):
            written.text([value], str)
    for tag in (["?"], ["o", 99], ["k", "object"], ["y", "O"], ["a", [1], "O", base64.b64encode(bytes(8)).decode()]):
        with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
            written.read(json.dumps(tag), lambda _: None)


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        -0.0,
        float("nan"),
        2**70,
        1j,
        np.float32(0.1),
        np.arange(6.0).reshape(2, 3).T,
        np.zeros((0, 3)),
        np.longdouble(1) / 3,
        (),
        [None, True],
        "\n\ud800",
        {(1, 2): "a"},
        np.dtype("f4"),
        Ellipsis,
    ],
)
def test_text_is_exact(value):
    from yota.ir import serialised as written

    if value is Ellipsis:
        with pytest.raises(written.Unwritable):
            written.text(value, str)
        return
    found = written.read(written.text(value, str), lambda _: None)
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    if isinstance(value, np.generic | np.ndarray):
        assert found.dtype == value.dtype
        assert found.tobytes() == value.tobytes()


PROGRAM = """
import json, sys, time
sys.path.insert(0, {folder!r})
import numpy as np, yota, model
from yota.tracing.trace import Trace
traces, begin = [], Trace.__init__
def counted(self, *args, **kwargs):
    traces.append(self)
    begin(self, *args, **kwargs)
Trace.__init__ = counted
value, g = yota.value_and_grad(model.f, target={target!r})(np.array([0.5, 1.25, 2.0]))
fg = yota.value_and_grad(model.f, target={target!r})
for _ in range(4):
    fg(np.array([0.5, 1.25, 2.0]))
slow = {{"sympy", "jinja2", "importlib.metadata"}}
print(json.dumps([float(value), list(g), len(traces), sorted(slow & set(sys.modules))]))
"""


def processes(lab, target="numpy", count=1, **settings):
    environment = {**os.environ, "PYTHONPATH": str(Path(yota.__file__).parent.parent), **settings}
    command = [sys.executable, "-c", PROGRAM.format(folder=str(lab.folder), target=target)]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [json.loads(each.communicate()[0]) for each in running]


FIT = """
T = np.linspace(0.0, 1.0, 5)
class Model:
    orders = {'a', 'b', 'c'}
    def rate(self, s, p):
        return -p[0] * s / (p[1] + s)
model = Model()
def f(p):
    s = p[2]
    for i in range(4):
        k = model.rate(s, p)
        s = s + (T[i + 1] - T[i]) * model.rate(s + 0.5 * k, p)
    return s**2 + len(model.orders)
"""


@pytest.mark.parametrize(
    "target", ["numpy", pytest.param("c", marks=pytest.mark.skipif(not native.is_available(), reason="no C compiler"))]
)
def test_another_process_neither_traces_nor_imports_what_generates(lab, target, monkeypatch):
    lab.write(FIT)
    ((*first, traces, _),) = processes(lab, target, PYTHONHASHSEED="1")
    assert traces
    for seed in "23":  # now from the bytecode that is cached
        ((*again, traces, heavy),) = processes(lab, target, PYTHONHASHSEED=seed)
        assert again == first
        assert (traces, heavy) == (0, [])


LOADED = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, yota, model
x = np.array([0.5, 1.25, 2.0])
print(yota.value_and_grad(model.f)(x))
print(yota.hessian(model.f)(x), yota.jacobian(model.f)(x), yota.hvp(model.f)(x, x))
heavy = ["yota.tracing.loops", "yota.optimize.rewrite", "yota.transform.reverse.backward", "yota.rules.language.syntax"]
heavy += ["yota.emit.python.lower", "yota.tracing.record", "yota.tracing.trace", "yota.run.machine.compiler"]
heavy += ["yota.optimize.pipeline", "yota.run.derivatives.straight_line", "yota.api.batch"]
heavy += ["optree", "subprocess", "tempfile"]
print([name for name in heavy if name in sys.modules])
"""


def test_another_process_loads_only_what_runs(lab):
    lab.write(FIT)

    def run() -> list[str]:
        environment = {**os.environ, "PYTHONPATH": str(Path(yota.__file__).parent.parent)}
        command = [sys.executable, "-c", LOADED.format(folder=str(lab.folder))]
        found = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        return found.rstrip().rsplit("\n", 1)

    (result, heavy), again = run(), run()
    assert "yota.tracing.trace" in heavy
    assert again == [result, "[]"]


def test_many_processes_at_once(lab):
    lab.write(FIT)
    found = processes(lab, count=4)
    assert len({json.dumps(each[:2]) for each in found}) == 1
    assert len(lab.entries()) == 1
    assert not list((lab.cache / "functions").glob("making-*"))
    assert processes(lab)[0][2] == 0
