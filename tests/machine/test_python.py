"""Loading generated source: its lines live as long as the function does."""

from __future__ import annotations

import gc
import inspect
import linecache
from dataclasses import replace

import numpy as np
import pytest

from yota.emit.targets.generated import Source
from yota.run.machine.python import load, text
from yota.run.machine.signals import StaleTape

SOURCE = Source("def double(x):\n    return factor * x\n", "double", {"factor": 2})


def test_the_function_sees_its_constants_and_its_own_lines() -> None:
    function = load(SOURCE)
    assert function(4) == 8
    assert text(function) == SOURCE.text
    assert inspect.getsource(function) == SOURCE.text


def test_each_function_has_a_namespace_of_its_own() -> None:
    one, two = load(SOURCE), load(SOURCE)
    one.__globals__["factor"] = 5
    assert (one(1), two(1)) == (5, 2)
    assert one.__code__.co_filename != two.__code__.co_filename


def test_lines_go_with_the_function() -> None:
    function = load(SOURCE)
    filename = function.__code__.co_filename
    linecache.checkcache(filename)
    assert filename in linecache.cache
    del function
    gc.collect()
    # The collector may run inside of linecache, so the next load drops them.
    load(SOURCE)
    assert filename not in linecache.cache


def test_a_failed_guard_carries_its_number_and_value() -> None:
    function = load(Source("def f(x):\n    raise StaleTape(3, x)\n", "f", guards=1))
    with pytest.raises(StaleTape) as caught:
        function("seen")
    assert (caught.value.index, caught.value.value) == (3, "seen")


def test_faulty_source_is_an_error_at_once() -> None:
    with pytest.raises(SyntaxError):
        load(Source("def f(:", "f"))


def test_a_call_leaves_the_state_of_floating_point_errors_as_it_was() -> None:
    text = '@np.errstate(all="ignore")\ndef f(x, *, raises=False):\n    y = 1.0 / x\n'
    text += '    if raises:\n        raise KeyError\n    return y, np.geterr()["divide"]\n'
    function = load(replace(SOURCE, text=f"import numpy as np\n\n\n{text}", entry="f"))
    with np.errstate(divide="raise"):
        value, state = function(np.zeros(3))
        assert state == "ignore"
        assert np.isinf(value).all()
        with pytest.raises(KeyError):
            function(np.zeros(3), raises=True)
        assert np.geterr()["divide"] == "raise"
