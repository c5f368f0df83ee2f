"""What a function reads besides its arguments: a change of it is never overlooked."""

from __future__ import annotations

import array
import functools
import gc
import importlib
import math
import sys
import types

import numpy as np
import pytest

import yota
from yota import errors
from yota.run.derivatives.differentiated import Differentiated
from yota.run.specialise import Target

X = np.arange(1.0, 41.0)


def _module(**names):
    module = types.ModuleType("settings_of_a_user")
    vars(module).update(names)
    return module


class Settings:
    scale = 2.0
    weights = np.full(40, 2.0)


class Special(Settings):
    pass


class Model:
    power = 2.0

    def __init__(self):
        self.settings = Settings()
        self.activation = lambda x: x * FACTOR

    def forward(self, x):
        return x * self.power

    def reads_global(self, x):
        return x * FACTOR

    def __mul__(self, x):
        return x * FACTOR

    @property
    def rate(self):
        return FACTOR

    @functools.cached_property
    def once(self):
        return 1.0

    @classmethod
    def of_class(cls, x):
        return x * cls.power

    @staticmethod
    def of_none(x):
        return x * FACTOR


FACTOR = 2.0
settings = _module(scale=2.0, helper=lambda x: x * FACTOR, inner=_module(scale=2.0))
model = Model()
table = {"helper": lambda x: x * FACTOR}


@functools.wraps(np.sum)
def wrapped(x):
    return x * FACTOR


@functools.lru_cache
def remembered(n):
    return n * 1.0


def deep(x):
    return deeper(x)


def deeper(x):
    return x * Settings.scale


def generated(x):
    for each in x:
        yield each * FACTOR


def local_alias(x):
    chosen = settings
    return x * chosen.scale


def local_import(x):
    from settings_of_a_user import scale

    return x * scale


READS = {
    "attribute of a module": (lambda x: x * settings.scale, settings, "scale"),
    "attribute of a module in a module": (lambda x: x * settings.inner.scale, settings.inner, "scale"),
    "module under another name": (local_alias, settings, "scale"),
    "imported inside": (local_import, settings, "scale"),
    "attribute by getattr": (lambda x: x * getattr(settings, "scale"), settings, "scale"),  # noqa: B009
    "function of a module": (lambda x: settings.helper(x), None, "FACTOR"),
    "attribute of a class": (lambda x: x * Settings.scale, Settings, "scale"),
    "attribute of a base class": (lambda x: x * Special.scale, Settings, "scale"),
    "attribute that hides one of a base class": (lambda x: x * Special.scale, Special, "scale"),
    "attribute of an object's class": (lambda x: x * model.settings.scale, Settings, "scale"),
    "array of a class": (lambda x: x * Settings.weights, Settings, "weights"),
    "method": (lambda x: model.forward(x), Model, "power"),
    "class method": (lambda x: Model.of_class(x), Model, "power"),
    "static method": (lambda x: Model.of_none(x), None, "FACTOR"),
    "operator": (lambda x: Model.__mul__(model, x) + (model * x), None, "FACTOR"),
    "property": (lambda x: x * model.rate, None, "FACTOR"),
    "function in an attribute": (lambda x: model.activation(x), None, "FACTOR"),
    "global of a method": (lambda x: model.reads_global(x), None, "FACTOR"),
    "function in a dict": (lambda x: table["helper"](x), None, "FACTOR"),
    "decorated function": (lambda x: wrapped(x), None, "FACTOR"),
    "function of a function": (deep, Settings, "scale"),
    "generator": (lambda x: np.stack(list(generated(x))), None, "FACTOR"),
    "partial": (functools.partial(lambda k, x: k * x * FACTOR, 1.0), None, "FACTOR"),
    "default": (lambda x, helper=deeper: helper(x), Settings, "scale"),
    "built-in": (lambda x: x * max(1.0, 2.0), None, "max"),
    "class made inside": (lambda x: type("Made", (Settings,), {})().scale * x, Settings, "scale"),
}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setitem(sys.modules, "settings_of_a_user", settings)


@pytest.mark.parametrize("name", READS)
def test_changes_are_noticed(name, monkeypatch):
    f, owner, attribute = READS[name]
    total = lambda x: np.sum(f(x) ** 2)
    fg = yota.value_and_grad(total)
    for _ in range(2):
        assert np.isclose(fg(X)[0], total(X)) and np.isclose(yota.grad(total, X)[0], total(X))
    before = total(X)
    for value in (3.0, 2.5):
        value = np.full(40, value) if attribute == "weights" else value
        value = (lambda *_, value=value: value) if attribute == "max" else value
        if owner is None:
            monkeypatch.setitem(globals(), attribute, value)
        else:
            monkeypatch.setattr(owner, attribute, value, raising=False)
        assert total(X) != before
        for _ in range(2):
            assert np.isclose(fg(X)[0], total(X)) and np.isclose(yota.grad(total, X)[0], total(X))


def test_what_an_argument_brings_along(monkeypatch):
    def f(model, x, function):
        return np.sum(model.forward(x) * function(x))

    fg = yota.value_and_grad(f, wrt="x")
    for scale in (2.0, 3.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", scale)
        monkeypatch.setattr(Model, "power", scale)
        np.testing.assert_allclose(fg(model, X, wrapped)[1], 2 * scale**2 * X)
        np.testing.assert_allclose(yota.grad(f, model, X, wrapped)[1][1], 2 * scale**2 * X)


def test_two_functions_of_one_code():
    def make(start):
        count = start

        def scaled(x):
            return x * count

        def become(value):
            nonlocal count
            count = value

        return scaled, become

    (one, change_one), (other, change_other) = make(2.0), make(3.0)
    fg = yota.value_and_grad(lambda x: np.sum(one(x) + other(x)))
    assert fg(X)[1][0] == 5.0
    change_other(7.0)
    assert fg(X)[1][0] == 9.0
    change_one(1.0)
    assert fg(X)[1][0] == 8.0


class Scaled:
    def __init__(self):
        self.scale = 2.0

    def times(self, x, power=2.0):
        return np.sum(x**power) * self.scale


METHODS = {
    "variable": lambda method: lambda x: method(x),
    "default": lambda method: lambda x, method=method: method(x),
    "element": lambda method: lambda x, methods=(method,): methods[0](x),
    "attribute": lambda method: types.SimpleNamespace(call=method).call,
    "partial": lambda method: functools.partial(method, power=2.0),
    "argument of a partial": lambda method: functools.partial(lambda method, x: method(x), method),
    "keyword of a partial": lambda method: functools.partial(lambda x, method: method(x), method=method),
}


@pytest.mark.parametrize("name", METHODS)
def test_objects_that_methods_belong_to(name):
    """Of a method that was taken off its object the object shows nowhere else."""
    scaled = Scaled()
    f = METHODS[name](scaled.times)
    fg = yota.value_and_grad(f)
    for scaled.scale in (2.0, 3.0, 5.0):
        assert np.isclose(fg(X)[0], f(X))
        assert np.isclose(yota.grad(f, X)[0], f(X))


def test_objects_that_built_in_methods_belong_to():
    table, data = {"scale": 2.0}, np.ones(3)
    get, total = table.get, data.sum
    fg = yota.value_and_grad(lambda x: np.sum(x) * get("scale") * total())
    for table["scale"], data[0] in ((2.0, 1.0), (3.0, 1.0), (3.0, 7.0)):
        assert np.isclose(fg(X)[0], np.sum(X) * table["scale"] * np.sum(data))


def test_names_that_are_not_read_cause_nothing():
    runs = []
    names = {"np": np, "runs": runs, "x": 0}
    exec("def f(p):\n    runs.append(1)\n    return np.sum(p.x ** 2)", names)
    for step in range(3):
        names["x"] = step
        yota.grad(names["f"], types.SimpleNamespace(x=X + step))
    assert len(runs) == 1


@pytest.mark.parametrize("n", [3, 40, 4000])
@pytest.mark.parametrize("kind", ["name", "object", "dict", "class", "module"])
def test_arrays_that_a_function_computes_with_by_itself(kind, n):
    data = np.arange(1.0, n + 1)
    data[1] = np.nan
    holder = {"object": types.SimpleNamespace(data=data), "dict": {"data": data}}
    holder["class"], holder["module"] = type("Holder", (), {"data": data}), _module(data=data)
    f = {
        "name": lambda x: np.sum(x * np.nan_to_num(data)) * np.nansum(data),
        "object": lambda x: np.sum(x * holder["object"].data[2]) * np.nansum(holder["object"].data),
        "dict": lambda x: np.sum(x * holder["dict"]["data"][2]) * np.nansum(holder["dict"]["data"]),
        "class": lambda x: np.sum(x * holder["class"].data[2]) * np.nansum(holder["class"].data),
        "module": lambda x: np.sum(x * holder["module"].data[2]) * np.nansum(holder["module"].data),
    }[kind]
    fg = yota.value_and_grad(f)
    x = np.ones(n)
    for value in (1.0, 5.0, 9.0):
        data[2] = value
        assert np.isclose(fg(x)[0], f(x))
        assert np.isclose(fg(x)[0], f(x))


def test_arrays_that_a_function_makes_are_not_compared():
    """Nobody else has them: rows of constants, arrays that an untraced function gave, arrays of indices."""
    kept = {}

    def links(x):
        t = np.array([[np.cos(x[0]), -np.sin(x[0]), 0.5], [np.sin(x[0]), np.cos(x[0]), 0.0], [0.0, 0.0, 1.0]])
        return t @ np.diag([1.0, 2.0, 3.0])

    def shared(x):
        return np.sum(x[:3] * kept.setdefault("weights", np.diag([1.0, 2.0, 3.0])))

    def contents(f):
        form = Differentiated(f, 0, Target(), dynamic=False)
        prepared, *_ = form.prepare((X,), {})
        # Cycles of a recording may hold arrays until the collector runs.
        gc.collect()
        return [content for get, content in prepared.root.gradient.contents.pairs if get() is not None]

    assert contents(lambda x: np.sum(links(x) @ x[:3]) * x[[0, 1, 1]][2]) == []
    assert len(contents(shared)) == 1
    fg = yota.value_and_grad(shared)
    for value in (2.0, 7.0):
        kept["weights"][0, 0] = value
        assert fg(X)[0] == shared(X)


def test_read_only_arrays_are_trusted():
    data = np.arange(1.0, 41.0)
    data.flags.writeable = False
    fg = yota.value_and_grad(lambda x: np.sum(x[:20] * data[::2]) * np.sum(data))
    np.testing.assert_allclose(fg(X)[1][:20], data[::2] * np.sum(data))


def test_batched_functions_notice_too(monkeypatch):
    data = np.ones(40)
    many = yota.batch(lambda x: np.sum(x * data * FACTOR))
    points = np.stack([X, 2 * X])
    for change in (1.0, 3.0):
        data[:] = change
        monkeypatch.setitem(globals(), "FACTOR", change)
        np.testing.assert_allclose(many(points), np.sum(points, axis=1) * change**2)


def test_a_pure_gradient_refuses_after_a_change(monkeypatch):
    dloss = yota.simplegrad(lambda x: np.sum(x * FACTOR), X)
    assert dloss(X)[1][0] == 2.0
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    for _ in range(2):
        with pytest.raises(errors.StaleTapeError, match="simplegrad again"):
            dloss(X)


def test_compiled_code_that_reads_nothing_is_called_at_once():
    def outer(x):
        return np.sum(inner(x))

    fg = yota.value_and_grad(lambda x: np.sum(x * x), target="c")
    for _ in range(3):
        np.testing.assert_array_equal(fg(X)[1], 2 * X)
    inner = np.sin
    fg = yota.value_and_grad(outer, target="c")
    for inner in (np.sin, np.cos):  # noqa: B007
        assert np.isclose(fg(X)[0], outer(X))


def _counting(x):
    return np.sum(x) * _counting.factor


_counting.factor = 2.0


def _with_default(x, options={"factor": 2.0}):  # noqa: B006
    return np.sum(x) * options["factor"]


def test_what_can_be_written_without_being_a_structure(monkeypatch):
    chosen, text, numbers = {1, 2}, bytearray(b"ab"), array.array("d", [2.0])
    options, keyword = {"factor": 2.0}, {"factor": 2.0}
    by_position = functools.partial(lambda options, x: np.sum(x) * options["factor"], options)
    by_name = functools.partial(lambda x, options: np.sum(x) * options["factor"], options=keyword)
    for f, change in (
        (lambda x: np.sum(x) * len(chosen), lambda: chosen.add(7)),
        (lambda x: np.sum(x) * len(text), lambda: text.extend(b"c")),
        (lambda x: np.sum(x) * numbers[0], lambda: numbers.__setitem__(0, 3.0)),
        (lambda x: np.sum(x) * len({"a": chosen}["a"]), lambda: chosen.add(8)),
        (by_position, lambda: options.update(factor=3.0)),
        (by_name, lambda: keyword.update(factor=3.0)),
        (_counting, lambda: monkeypatch.setattr(_counting, "factor", 3.0)),
        (_with_default, lambda: _with_default.__defaults__[0].update(factor=3.0)),
    ):
        fg = yota.value_and_grad(f)
        before = f(X)
        for _ in range(2):
            assert fg(X)[0] == before and yota.grad(f, X)[0] == before
        change()
        assert f(X) != before
        for _ in range(2):
            assert fg(X)[0] == f(X) and yota.grad(f, X)[0] == f(X)


def test_sets_among_the_arguments():
    def f(x, chosen):
        return np.sum(x) * len(chosen)

    chosen = {1, 2}
    for number in (3, 4):
        assert yota.grad(f, X, chosen)[0] == f(X, chosen)
        chosen.add(number)
        assert yota.grad(f, X, {"inside": chosen})[0] == np.sum(X)


def test_a_variable_that_is_deleted():
    def make():
        factor = 2.0

        def forget():
            nonlocal factor
            del factor

        return (lambda x: np.sum(x * factor)), forget

    f, forget = make()
    fg = yota.value_and_grad(f)
    assert fg(X)[0] == f(X)
    forget()
    for function in (f, fg):
        with pytest.raises(NameError):
            function(X)


@pytest.mark.parametrize("strict", [False, True])
def test_tapes_keep_what_they_read_from_outside(strict):
    data, other = np.arange(40.0), np.ones(40)
    f = lambda x: np.sum(data * x**2 + other)
    tape = yota.grad(f, X, strict=strict)[1].tape
    dloss = yota.simplegrad(f, X, strict=strict)
    compiled = tape.compile()
    for _ in range(2):
        for x in (X, 2 * X + 1):
            for value, slope in (tape.play(x), compiled(x), dloss(x)):
                np.testing.assert_allclose(value, f(x))
                np.testing.assert_allclose(slope, 2 * data * x)
        data += 3.0
    with pytest.raises(errors.ArgumentError, match="misses argument 1, x"):
        tape.play()


def test_the_sign_of_zero_in_a_part_of_a_large_array():
    wide = np.zeros((400, 8))
    part = wide[:, ::2]

    def f(x):
        return np.sum(x) * math.copysign(1.0, part[3, 1])

    fg = yota.value_and_grad(f)
    assert fg(X)[0] == f(X)
    part[3, 1] = -0.0
    assert fg(X)[0] == f(X) == -np.sum(X)


def test_the_sign_of_zero_changes_between_two_uses():
    data = np.zeros(2)

    def f(x):
        data[:] = 0.0
        first = np.sum(np.copysign(x, data))
        data[:] = -0.0
        return first + 2.0 * np.sum(np.copysign(x, data))

    ones = np.ones(2)
    assert yota.grad(f, ones)[0] == f(ones) == -2.0


@pytest.mark.parametrize("folder", ["scipy", "numpy", "yota"])
def test_a_folder_named_like_a_library_holds_code_of_the_user(folder, tmp_path, monkeypatch):
    home = tmp_path / folder / "app"
    home.mkdir(parents=True)
    name = f"scaled_in_{folder}"
    (home / f"{name}.py").write_text("import numpy as np\nSCALE = 2.0\ndef f(x): return np.sum(SCALE * x)\n")
    monkeypatch.syspath_prepend(str(home))
    module = importlib.import_module(name)
    found = yota.gradient(module.f)
    np.testing.assert_array_equal(found(np.ones(2)), [2.0, 2.0])
    module.SCALE = 5.0
    np.testing.assert_array_equal(found(np.ones(2)), [5.0, 5.0])
