"""Calls that go straight to compiled functions, and only while what those were compiled for still holds."""

from __future__ import annotations

import collections
import contextvars
import gc
import math
import pickle
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import sympy

import yota
from tests.emit.compiled import needs_compiler
from yota.ir.callables import Derived
from yota.marks import MISSING
from yota.run.machine.c_dispatch import _CHECKS, _RESULT_PARTS, MOST_FORMS, Form, offer, prepare, quick
from yota.tracing.captured.checks import same

SCALE = 1.0
X = np.array([2.0, 9.0])


def scaled(x: Any) -> Any:
    return SCALE * x[0] * np.sqrt(x[1])


@needs_compiler
def test_global_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    both: Any = yota.value_and_grad(scaled, target="c")
    for value in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        for _ in range(3):
            assert both(X)[0] == 6.0 * value
        assert len(both.forms) == 1


@needs_compiler
def test_variables_of_enclosing_functions() -> None:
    def made() -> tuple[Callable[..., Any], Callable[[int], None]]:
        power = 2

        def function(x: Any) -> Any:
            return x[0] ** power

        def change(value: int) -> None:
            nonlocal power
            power = value

        return function, change

    function, change = made()
    both: Any = yota.value_and_grad(function, target="c")
    for power in (2, 3):
        change(power)
        for _ in range(3):
            assert both(X)[0] == 2.0**power
        assert both.forms


@needs_compiler
def test_several_gradients_come_as_a_tuple() -> None:
    both: Any = yota.value_and_grad(lambda x, a, b: a * b * x[0], ("x", "a", "b"), target="c")
    for _ in range(4):
        value, (by_x, by_a, by_b) = both(X, 3.0, 5.0)
        assert value == 30.0 and list(by_x) == [15.0, 0.0] and by_a == 10.0 and by_b == 6.0
    assert both.forms


@needs_compiler
@pytest.mark.parametrize("names", [["x"], ["x", "y"], ["x*y", "x", "sin(y)"], ["x*y", ["x", "y"]]], ids=str)
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_lists_come_as_lists_of_their_own(names: list[Any], target: str) -> None:
    expressions = sympy.sympify(names)
    function: Any = yota.lambdify(sympy.symbols("x y"), expressions, target=target)
    values = {"x": 3.0, "y": 5.0, "x*y": 15.0, "sin(y)": float(np.sin(5.0))}
    wanted = [values[name] if isinstance(name, str) else [values[each] for each in name] for name in names]
    found = [function(3.0, 5.0) for _ in range(4)]
    assert found == [wanted] * 4
    assert len({*map(id, found)}) == 4 and all(type(each) is list for each in found)
    assert function.forms


@needs_compiler
def test_forms_are_told_apart_by_dtype_and_shape() -> None:
    both: Any = yota.value_and_grad(lambda x: np.sum(x * x), target="c")
    arrays = [np.full(count, 2.0, dtype) for count in range(1, 8) for dtype in (np.float32, np.float64)]
    for _ in range(4):
        for x in arrays:
            value, gradient = both(x)
            assert value == 4.0 * x.size and gradient.dtype == x.dtype and gradient.shape == x.shape
            assert len(both.forms) <= MOST_FORMS


@needs_compiler
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_derivatives_of_what_is_behind_a_dispatcher_go_straight_to_c(target: str) -> None:
    function: Any = yota.lambdify("x", "x**3", target=target)
    slope: Any = yota.value_and_grad(function, target="c")
    for _ in range(4):
        assert slope(2.0) == (8.0, 12.0)
    assert isinstance(function, Derived) and slope.direct_calls


@needs_compiler
def test_derivatives_behind_a_dispatcher_are_derivatives_still() -> None:
    factor = np.array([2.0, 3.0])
    cube: Any = yota.value_and_grad(lambda x: np.sum(factor * x**3), target="c")
    outer: Any = yota.jacobian(lambda x: cube(x)[1], target="c")
    x = np.array([1.0, 2.0])
    for _ in range(4):
        assert cube(x)[0] == 26.0 and cube(x)[1].tolist() == [6.0, 36.0]
        assert outer(x).tolist() == [[12.0, 0.0], [0.0, 36.0]]
    assert isinstance(cube, Derived) and same([cube], [yota.value_and_grad(cube.__wrapped__, target="c")])
    assert not same([cube], [yota.value_and_grad(cube.__wrapped__, target="c", has_aux=True)])
    assert not same([cube], [outer])
    assert cube.direct_calls and outer.direct_calls
    factor[0] = 1.0
    for _ in range(4):
        assert cube(x)[1].tolist() == [3.0, 36.0] and outer(x).tolist() == [[6.0, 0.0], [0.0, 36.0]]


@needs_compiler
@pytest.mark.parametrize("target", ["c", "numpy"])
def test_items_of_tuples_and_lists_and_integers_go_straight_to_compiled_code(target: str) -> None:
    quick(len, build=True)
    a, b, c = sympy.symbols("a b c")
    function: Any = yota.lambdify((a, (b, (c,))), a + 10 * b + 100 * c, target=target)
    for given in ((1.0, (2.0, (3.0,))), (1.0, [2.0, (3.0,)]), (1, (2, [3])), (1, (2.0, (3,)))):
        before = function.direct_calls
        assert [function(*given) for _ in range(4)] == [321.0] * 4
        assert function.direct_calls > before
        # What has another structure or type, or too few items, is no such call.
        for other in ((1.0, (2.0, np.array([3.0]))), (1.0, (2.0, (np.float64(3.0),)))):
            assert function(*other) == 321.0
        for wrong in ((1.0, (2.0, ())), (1.0, (2.0,)), (1.0, 2.0, 3.0)):
            with pytest.raises((ValueError, TypeError)):
                function(*wrong)
    with pytest.raises(OverflowError):
        function(10**400, (2, [3]))
    assert len(function.forms) <= MOST_FORMS


class Bag:
    """An object of attributes."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)


@needs_compiler
@pytest.mark.parametrize("target", ["c", "numpy"])
def test_dicts_and_objects_go_straight_to_compiled_code(target: str) -> None:
    quick(len, build=True)

    def function(bag: Any) -> Any:
        total = bag.a["x"] * 2 + sum(bag.a["ys"])
        return total * 10 if "z" in bag.a or hasattr(bag, "b") or True in bag.a else total

    both: Any = yota.value_and_grad(function, target=target)
    known = Bag(a={"x": 1.0, "ys": [2.0, 3.0]})
    first = both(known)
    assert first == (7.0, {("a", "x"): 2.0, ("a", "ys", 0): 1.0, ("a", "ys", 1): 1.0})
    before = both.direct_calls
    assert [both(known) for _ in range(4)] == [first] * 4 and both.direct_calls >= before + 2
    found = both(known)[1]
    found.clear()
    assert both(known) == first
    equal = "yss"[:2]  # not the object that is the other key
    for other, value in (
        (Bag(a={"ys": [2.0, 3.0], "x": 1.0}), 7.0),
        (Bag(a={"x": 1.0, equal: [2.0, 3.0]}), 7.0),
        (Bag(a={"x": 1.0, "ys": [2.0]}), 4.0),
        (Bag(a={"x": 1.0, "ys": [2.0, 3.0], "z": 0}), 70.0),
        (Bag(a={"x": 1.0, "ys": [2.0, 3.0]}, b=0), 70.0),
        (Bag(a={"x": 1.0, "ys": [2.0, 3.0], 1: 0}), 70.0),
        (Bag(a={"x": 1.0, "ys": [2.0, 3.0], 2: 0}), 7.0),
    ):
        assert [both(other)[0], both(known)[0], both(other)[0], both(other)[0]] == [value, 7.0, value, value]
    assert len(both.forms) <= MOST_FORMS


@needs_compiler
@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.complex64])
def test_numbers_of_numpy_go_straight_to_compiled_code(target: str, kind: Any) -> None:
    quick(len, build=True)
    function: Any = yota.value_and_grad(lambda x, y: abs(x * x * y), wrt=(0, 1), target=target)
    first = function(kind(3.0), 2.0)
    before = function.direct_calls
    later = [function(kind(3.0), 2.0) for _ in range(4)][-1]
    assert function.direct_calls > before
    assert later == first == (18.0, (12.0, 9.0))
    assert [*map(type, later[1])] == [*map(type, first[1])] == [kind, float]


@needs_compiler
def test_a_function_that_is_one_of_scipys_is_called_itself() -> None:
    a, b = sympy.symbols("a b")
    beta: Any = yota.lambdify((a, b), sympy.beta(a, b), target="c")
    turned: Any = yota.lambdify((b, a), sympy.besselj(a, b), target="c")
    for _ in range(4):
        assert beta(2.0, 3.0) == scipy.special.beta(2.0, 3.0)
        assert turned(2.0, 3.0) == scipy.special.jv(3.0, 2.0)
    assert beta.forms[0][0] is scipy.special.beta and turned.forms[0][0] is not scipy.special.jv


@needs_compiler
def test_numpy_code_has_errors_ignored_during_a_call_alone() -> None:
    square: Any = yota.lambdify(sympy.Symbol("x"), sympy.Symbol("x") ** 2, target="numpy")
    with np.errstate(over="raise"):
        for _ in range(4):
            assert np.all(square(np.full(100, 1e200)) == np.inf)
        assert square.direct_calls and np.geterr()["over"] == "raise"


@needs_compiler
def test_a_context_variable_is_set_during_a_call_alone() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    def plain(x: float) -> int:
        if x < 0:
            raise KeyError(variable.get())
        return variable.get()

    def function(x: float) -> int:
        raise AssertionError

    function.within = plain, variable, 5  # type: ignore[attr-defined]
    dispatcher = quick(len, build=True)
    offer(dispatcher, "one", Form(function, ((float,),), (), None, ()))
    assert (dispatcher(1.0), variable.get()) == (5, 0)
    with pytest.raises(KeyError, match="5"):
        dispatcher(-1.0)
    assert variable.get() == 0


class Kind:
    pass


class Other(Kind):
    pass


def changes() -> dict[str, tuple[tuple[Any, ...], Callable[[], Any]]]:
    """For each kind of check what it is about while it holds, and a change after which it does not."""
    kind = type("Made", (Kind,), {"a": 1})
    instance, empty, held = kind(), kind(), object()
    instance.own = held
    names: dict[str, Any] = {"a": held}
    odd = collections.OrderedDict(names)
    items, entries = [held, 1], {"a": held, "b": 1}
    array, other = np.arange(3.0), np.arange(3.0)
    cell, unfilled = types.CellType(held), types.CellType()
    f: Any = lambda x=1, *, y=2: x

    def fill() -> None:
        unfilled.cell_contents = 1

    def empty_cell() -> None:
        del cell.cell_contents

    def function(name: str, value: Any) -> tuple[tuple[Any, ...], Callable[[], Any]]:
        made = types.FunctionType(f.__code__, {}, "made", f.__defaults__, None)
        made.__kwdefaults__ = f.__kwdefaults__
        return (made, f.__code__, f.__defaults__, f.__kwdefaults__), lambda: setattr(made, name, value)

    return {
        "cell": ((cell, held), empty_cell),
        "cell unfilled": ((unfilled,), fill),
        "entry": ((names, "a", held), lambda: names.update(a=object())),
        "entry absent": ((names, "b"), lambda: names.update(b=1)),
        "entry removed": ((names, "a", held), lambda: names.pop("a")),
        "entry cleared": ((names, "a", held), lambda: names.clear()),
        "entry of a class": ((gc.get_referents(vars(kind))[0], "a", 1), lambda: setattr(kind, "a", 2)),
        "entry of an object": ((vars(instance), "own", held), lambda: setattr(instance, "own", 2)),
        "item": ((odd, "a", held), lambda: odd.update(a=object())),
        "function": function("__code__", (lambda x: x).__code__),
        "function defaults": function("__defaults__", None),
        "function keywords": function("__kwdefaults__", {"y": 2}),
        "class": ((empty, kind), lambda: setattr(empty, "__class__", Other)),
        "bases": ((kind, kind.__mro__), lambda: setattr(kind, "__bases__", (Other,))),
        "attributes": ((instance, instance.__dict__), lambda: setattr(instance, "__dict__", {})),
        "attribute": ((kind, "a", 1), lambda: setattr(kind, "a", 2)),
        "attribute absent": ((f, "b"), lambda: setattr(f, "b", 2)),
        "size": ((vars(kind), len(vars(kind))), lambda: setattr(kind, "c", 2)),
        "list": ((items, list(items)), lambda: items.append(2)),
        "list of the same size": ((items, list(items)), lambda: items.__setitem__(1, object())),
        "dict": ((entries, list(entries), list(entries.values())), lambda: entries.update(a=entries.pop("a"))),
        "dict of an object": ((vars(instance), ["own"], [held]), lambda: setattr(instance, "own", 2)),
        "form": ((array, (3,), array.dtype), lambda: array.resize(2, refcheck=False)),
        "bytes": ((other, (3,), other.dtype, other.tobytes()), lambda: other.__setitem__(1, -0.0)),
        "changed": ((lambda: array.size == 2,), lambda: array.resize(2, refcheck=False)),
    }


@needs_compiler
@pytest.mark.parametrize("case", changes())
def test_each_check(case: str) -> None:
    assert {each.split(maxsplit=1)[0] for each in changes()} == {*_CHECKS}
    values, change = changes()[case]
    dispatcher = quick(lambda *_: "otherwise", build=True)
    check = case.split(maxsplit=1)[0], *values
    offer(dispatcher, 1, Form(lambda x, y: (x, y), ((float,),), ("captured",), None, (check,)))
    for _ in range(2):
        assert dispatcher(1.0) == (1.0, "captured")
    change()
    for _ in range(2):
        assert dispatcher(1.0) == "otherwise"


@needs_compiler
def test_what_else_a_dict_comes_to_hold() -> None:
    names: dict[str, Any] = {"a": 1}
    dispatcher = quick(lambda *_: "otherwise", build=True)
    offer(dispatcher, 1, Form(lambda: "form", (), (), None, (("entry", names, "a", 1), ("entry", names, "b"))))
    for number in range(100):
        names[f"other {number}"] = number
        assert dispatcher() == "form"
    for name, held in (("a", 1), ("b", ...)):
        names[name] = "changed"
        assert dispatcher() == dispatcher() == "otherwise"
        names.pop(name)
        names.update({name: held} if held == 1 else {})
        assert dispatcher() == dispatcher() == "form"


@needs_compiler
def test_what_none_stands_for() -> None:
    """A function without default values has nothing where they are, and says None."""
    f: Any = lambda x: x
    checks = ("function", f, f.__code__, f.__defaults__, f.__kwdefaults__)
    dispatcher = quick(lambda *_: "otherwise", build=True)
    offer(dispatcher, 1, Form(lambda *args: args, (), tuple(range(100)), None, (checks,)))
    assert dispatcher() == tuple(range(100))
    f.__defaults__ = (1,)
    assert dispatcher() == "otherwise"


@needs_compiler
def test_results_are_put_together_of_outputs_arguments_and_objects() -> None:
    dispatcher = quick(lambda *_: "otherwise", build=True)
    kept = object()
    both = ("tuple", (("output", 1), ("list", ())))
    parts = ("list", (("argument", 1), both, ("object", kept), ("output", 0), ("object", 7)))
    kinds = ((list, 2), (float,), (float,))
    offer(dispatcher, 1, Form(lambda x, y: (x + y, x * y), kinds, (), parts, ()))
    y = 5.0
    found = dispatcher([3.0, y])
    assert found == [5.0, (15.0, []), kept, 8.0, 7]
    assert found[0] is y and found[2] is kept
    assert dispatcher([3.0, y]) is not found
    offer(dispatcher, 2, Form(None, ((float,), (float,)), (), ("tuple", (("argument", 1), ("argument", 0))), ()))
    assert dispatcher(1.0, y)[0] is y
    offer(dispatcher, 3, Form(lambda x: 1 / x, ((int,),), (), ("list", (("output", 0),)), ()))
    assert dispatcher(2) == [0.5]
    with pytest.raises(ZeroDivisionError):
        dispatcher(0)
    offer(dispatcher, 3, Form(lambda x: 1 / x, ((int,),), (), None, (), (LookupError, ZeroDivisionError)))
    assert (dispatcher(2), dispatcher(0)) == (0.5, "otherwise")
    named = ("dict", (("output", 1), ("argument", 0)), ("b", ("a", 0)))
    offer(dispatcher, 4, Form(lambda x: (x, -x), ((str,),), (), named, ()))
    with pytest.raises(TypeError, match="bad operand"):
        dispatcher("c")
    offer(dispatcher, 4, Form(lambda x: (x, x * 2), ((str,),), (), named, ()))
    assert dispatcher("c") == {"b": "cc", ("a", 0): "c"}
    unhashable = ("dict", (("output", 0),), ([],))
    offer(dispatcher, 4, Form(lambda x: (x,), ((str,),), (), unhashable, ()))
    with pytest.raises(TypeError, match="unhashable"):
        dispatcher("c")
    with pytest.raises(TypeError, match="no part of a result"):
        offer(dispatcher, 4, Form(lambda x: (x,), ((str,),), (), ("dict", (("output", 0),), ("a", "b")), ()))


@needs_compiler
def test_a_form_may_miss() -> None:
    dispatcher = quick(lambda *_: "otherwise", build=True)
    offer(dispatcher, 1, Form(lambda x: MISSING if x else "found", ((int,),), (), None, ()))
    assert (dispatcher(0), dispatcher(1), dispatcher.direct_calls) == ("found", "otherwise", 1)


@needs_compiler
def test_what_cannot_be_looked_up_has_changed() -> None:
    def fail() -> bool:
        raise ValueError

    class Strange:
        def __getattr__(self, name: str) -> Any:
            raise ValueError(name)

        def __len__(self) -> int:
            raise ValueError

    strange = Strange()
    for check in (
        ("entry", {}, [], 1),
        ("item", types.MappingProxyType({}), "a", 1),
        ("attribute", strange, "a", 1),
        ("size", strange, 1),
        ("changed", fail),
    ):
        dispatcher = quick(lambda *_: "otherwise", build=True)
        offer(dispatcher, 1, Form(lambda *_: 1, (), (), None, (check,)))
        assert dispatcher() == "otherwise"


@needs_compiler
def test_forms_are_looked_at() -> None:
    dispatcher = quick(len, build=True)
    right = (len, (), (), None, (), (), MISSING)
    dispatcher.set_forms((right,))
    number = _CHECKS.index
    wrong_checks: list[Any] = [1, (), (0,), (0, 1, 2), (100, 1), (-1, 1), (0.5, 1, 2)]
    wrong_checks += [(number("entry"), {}), (number("entry"), X, "a")]
    wrong_checks += [(number("list"), (), []), (number("dict"), {}, [1], []), (number("size"), {}, "a")]
    wrong_checks += [(number("bytes"), X, b"", X.dtype, "a"), (number("form"), X, (2,), X.dtype)]
    wrong_checks += [(number("function"), len, 1, 2, 3), (number("bases"), X, ())]
    wrong = [(len, (), (), None, (check,), (), MISSING) for check in wrong_checks]
    wrong += [(len, kinds, *right[2:]) for kinds in ((1,), ((1, 2),), ((int, 2, 3),))] + [(len,), right[:6]]
    output, of, items = map(_RESULT_PARTS.index, ("output", "object", "list"))
    for part in (1, (), (output,), (output, -1), (output, None), (items, [(of, 1)]), (items, ((of, 1), 2)), (100, 1)):
        wrong.append((*right[:3], part, *right[4:]))
    for forms in (*((form,) for form in wrong), [], (1,)):
        with pytest.raises((TypeError, SystemError)):
            dispatcher.set_forms(forms)
    assert dispatcher.forms == (right,)


@needs_compiler
@pytest.mark.parametrize("structure", [False, True])
def test_numpy_code_has_its_arrays_looked_at_by_compiled_code(structure: bool) -> None:
    around = [np.array([1.0, 2.0, 3.0, 4.0]) for _ in range(5)]
    a, b, c, d, e = around
    known = np.array([1.0, 2.0])

    def function(p: Any) -> Any:
        x = p["x"] if structure else p
        return np.sum(x * a + x * b + x * c + x * d + x * e) * float(known[1])

    both = yota.value_and_grad(function)

    def right() -> None:
        slope = np.sum(a + b + c + d + e) * known[1]
        value, found = both({"x": 3.0} if structure else 3.0)
        assert value == 3.0 * slope and (found[("x",)] if structure else found) == slope

    def settled() -> Any:
        for _ in range(3):
            right()
        cells = dict(zip(both.latest.__code__.co_freevars, both.latest.__closure__, strict=True))
        assert type(cells["call"].cell_contents).__name__ == "Dispatcher"
        return both.latest

    first = settled()
    a[1] = 7.0
    right()
    known[1] = 5.0
    second = settled()
    assert second is not first
    a.shape = (4, 1)
    third = settled()
    for array in around:
        array.shape = (2, 2)
    assert settled() is not third
    c = np.full((2, 2), 9.0)
    last = settled()
    for array in around[:2]:
        array.dtype = pickle.loads(pickle.dumps(array.dtype))
    right()
    assert both.latest is last


@needs_compiler
def test_code_for_single_values_is_dispatched_in_c() -> None:
    function: Any = yota.value_and_grad(lambda x, powers, name: np.sum(x ** powers[0]) * len(name), target="c")
    x = np.array([1.0, 2.0])
    cases = [((k,), name) for k in (2, 3) for name in ("a", "bc")]
    for _ in range(3):
        for (power,), name in cases:
            np.testing.assert_allclose(function(x, (power,), name)[1], len(name) * power * x ** (power - 1))
    assert function.direct_calls >= 4
    before = function.direct_calls
    for power, name in ((2, "bc"), (3, "bc")):
        np.testing.assert_allclose(function(x, (power,), name)[1], len(name) * power * x ** (power - 1))
    assert function.direct_calls == before + 2
    np.testing.assert_allclose(function(x, (2.0,), "bc")[1], 4 * x)


@needs_compiler
def test_an_index_of_lambdify_is_an_integer_among_floats() -> None:
    array, index, factor = sympy.IndexedBase("a"), sympy.Symbol("i", integer=True), sympy.Symbol("c")
    function: Any = yota.lambdify((array, index, factor), array[index] * factor, target="c")
    values = np.arange(1.0, 4.0)
    for _ in range(3):
        for place in range(3):
            for times in (2, 2.5):
                assert function(values, place, times) == (place + 1) * times
    assert function.direct_calls >= 9
    with pytest.raises(TypeError):
        function(values, 1, 2.0, 3)


@needs_compiler
def test_numpy_code_is_called_by_the_dispatcher_once_it_is_compiled() -> None:
    prepare()
    quick(len, build=True)
    factor = 2.0

    def function(x: float, y: float) -> tuple[float, float]:
        return (math.exp(x) * y if x > 1 else factor * x - y), y

    both: Any = yota.value_and_grad(function, wrt=(0, 1), has_aux=True)
    slope: Any = yota.gradient(function, has_aux=True)
    for x in (2.0, 2.0, 2.0, 0.5, 0.5, 2.0, 0.5):
        value, by = (math.exp(x) * 3.0, (math.exp(x) * 3.0, math.exp(x))) if x > 1 else (2 * x - 3.0, (2.0, -1.0))
        assert both(x, 3.0) == ((value, 3.0), by)
        assert slope(x, 3.0) == (by[0], 3.0)
    assert both.direct_calls and slope.direct_calls
    before = both.direct_calls
    factor = 5.0
    assert both(0.5, y=3.0)[1] == both(0.5, 3.0)[1] == (5.0, -1.0)
    assert both.direct_calls == before
    with pytest.raises(TypeError):
        both(0.5)
