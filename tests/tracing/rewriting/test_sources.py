"""Python's own library, rewritten: all of its syntax compiles, and what it computes stays the same."""

from __future__ import annotations

import argparse
import ast
import asyncio
import colorsys
import contextlib
import difflib
import fractions
import heapq
import importlib
import inspect
import ipaddress
import json.decoder
import linecache
import statistics
import textwrap
import types
from types import FunctionType

import pytest

from yota.tracing.rewriting import interpreted  # noqa: F401  (it brings all rules)
from yota.tracing.rewriting.definition import Unreadable
from yota.tracing.rewriting.rewritten import from_source

MODULES = (
    "_pydecimal _strptime ast argparse asyncio.base_events asyncio.tasks codecs collections "
    "concurrent.futures.process configparser contextlib copy csv dataclasses datetime dis email.message enum functools "
    "http.client inspect ipaddress json.encoder logging mailbox numbers optparse pathlib pdb pickle pickletools "
    "platform plistlib pprint queue random shutil smtplib socketserver string subprocess tarfile "
    "tempfile threading tokenize traceback types typing unittest.mock urllib.request uuid weakref zipfile"
).split()


def functions_of(module):
    """The functions of a module and of its classes that Python code defines."""
    for value in list(vars(module).values()):
        owner = vars(value).values() if isinstance(value, type) and value.__module__ == module.__name__ else [value]
        for each in owner:
            each = getattr(each, "__func__", getattr(each, "fget", each))
            if type(each) is FunctionType and each.__module__ == module.__name__:
                yield each


@pytest.mark.parametrize("name", MODULES)
def test_every_function_compiles_with_the_same_parameters_and_variables(name):
    with contextlib.suppress(ImportError):
        for function in functions_of(importlib.import_module(name)):
            with contextlib.suppress(Unreadable):
                found = from_source(function).__code__
                known = function.__code__
                kinds = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
                assert found.co_flags & kinds == known.co_flags & kinds
                count = known.co_argcount + known.co_kwonlyargcount
                assert found.co_varnames[:count] == known.co_varnames[:count]
                own = [each for each in found.co_freevars if not each.startswith(".")]
                assert own == list(known.co_freevars), function


def rewritten(module):
    """A copy of a module whose functions and methods are rewritten."""
    copy = types.ModuleType(module.__name__)
    copy.__file__ = module.__file__
    text = "".join(linecache.getlines(module.__file__))
    exec(compile(text, module.__file__, "exec"), vars(copy))
    count = 0
    for name, value in list(vars(copy).items()):
        owners = [(copy, name, value)]
        if isinstance(value, type) and value.__module__ == module.__name__:
            owners = [(value, key, each) for key, each in list(vars(value).items())]
        for owner, key, each in owners:
            inner = each.__func__ if isinstance(each, (staticmethod, classmethod)) else each
            if type(inner) is FunctionType and inner.__module__ == module.__name__:
                with contextlib.suppress(Unreadable):
                    found = from_source(inner)
                    setattr(owner, key, found if inner is each else type(each)(found))
                    count += 1
    assert count > 3
    return copy


def of_fractions(module):
    one, other = module.Fraction("3.25"), module.Fraction(-7, 12)
    return [str(each) for each in (one + other, one * other, one**3, one / other, one % other, -one // 2, one > other)]


def of_statistics(module):
    data = [1.5, 2.5, 2.75, 3.25, 4.75, 2.5]
    names = ("mean", "median", "mode", "stdev", "pvariance", "harmonic_mean", "quantiles", "multimode")
    normal = module.NormalDist(1.0, 2.5) + module.NormalDist(0.5, 1.5) * 2
    line = module.linear_regression(data, data[::-1])
    return [*(getattr(module, name)(data) for name in names), normal.cdf(0.3), normal.inv_cdf(0.9), *line]


def of_texts(module):
    text = "What is long is broken into lines, and each of them is indented by as much as the first one. " * 3
    return module.wrap(text, 30), module.indent("a\n\nb", "- "), module.dedent("  a\n    b"), module.shorten(text, 40)


def of_addresses(module):
    network = module.ip_network("192.0.2.0/28")
    return [*map(str, network.subnets(2))], module.ip_address("2001:db8::1").exploded, str(network.supernet(4))


def of_differences(module):
    one, other = "one two three four five".split(), "one two tree four six five".split()
    return (
        [*module.unified_diff(one, other)],
        [*module.ndiff(one, other)],
        module.get_close_matches("appel", ["apple"]),
    )


def of_heaps(module):
    heap = [5, 2, 9, 1, 7]
    merged = [*module.merge([1, 4], [2, 3], key=lambda v: v)]
    return module.nlargest(3, heap, key=lambda v: -v), module.nsmallest(2, heap), merged


def of_arguments(module):
    parser = module.ArgumentParser("prog", exit_on_error=False)
    parser.add_argument("--count", type=int, default=3, help="how many of %(prog)s")
    parser.add_argument("files", nargs="*")
    parser.add_argument_group("more").add_argument("-v", action="count", default=0)
    return parser.format_help(), vars(parser.parse_args(["--count", "5", "-vv", "a", "b"]))


TREE = """
@d
class A(B, m=1):
    async def f(self, *a, k=1, **n):
        x: int = (yield) if a else [*a]
        return f'{x!r:>{k}}'
"""


def of_trees(module):
    tree = module.parse(TREE)
    return module.unparse(tree), module.dump(tree), module.literal_eval("{'a': [1, -2.5j]}")


WAYS = [
    (fractions, of_fractions),
    (statistics, of_statistics),
    (textwrap, of_texts),
    (ipaddress, of_addresses),
    (difflib, of_differences),
    (heapq, of_heaps),
    (argparse, of_arguments),
    (ast, of_trees),
    (colorsys, lambda module: [module.rgb_to_hls(0.2, 0.4, 0.7), module.hsv_to_rgb(0.3, 0.5, 0.9)]),
    (json.decoder, lambda module: module.JSONDecoder().decode('{"a": [1, 2.5, null, "\\u00e9"], "b": {"c": true}}')),
]


@pytest.mark.parametrize(("module", "compute"), WAYS, ids=[module.__name__ for module, _ in WAYS])
def test_what_is_computed_stays_the_same(module, compute):
    assert compute(rewritten(module)) == compute(module)


def test_coroutines_run_as_they_do():
    async def f(values, found):
        async def slow():
            for each in values:
                await asyncio.sleep(0)
                yield each

        async for found[0] in slow():
            found[0] **= 2
        return [each async for each in slow() if each > 1] + found

    assert asyncio.run(from_source(f)([1, 2, 3], [0])) == asyncio.run(f([1, 2, 3], [0])) == [2, 3, 9]


def test_an_expression_too_deep_to_rewrite_runs_as_it_is(tmp_path):
    path = tmp_path / "deep.py"
    path.write_text(f"def f(x):\n    return x{' + 1' * 700}\n")
    names: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    assert from_source(names["f"])(3) == 703
