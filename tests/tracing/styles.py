"""The ways by which code has functions of math and numpy, as text of modules: each ``by_...`` takes two numbers."""

HELPER = """
from math import log


def helper(t):
    return log(t)


def lazy(t):
    return log(t)
"""

STYLES = """
import cmath
import collections
import math
import math as m
import operator
import statistics
import types
from functools import cached_property, lru_cache, partial, reduce, singledispatch, wraps
from math import exp, log, sqrt as root
from typing import NamedTuple

import numpy as np
from numpy import array, asarray, zeros

from HOME import helper as home
from HOME.helper import helper as helps


def by_name(a, b):
    return a * log(b)


def by_module(a, b):
    return a * math.log(b)


def by_alias(a, b):
    return a * m.log(b) + root(a)


def by_default(a, b, log=math.log):
    return a * log(b)


def by_keyword_default(a, b, *, f=math.log):
    return a * f(b)


class Attributes:
    log = math.log
    static = staticmethod(math.log)
    table = {"log": math.log}

    def value(self, a, b):
        return a * self.log(b) + b * self.static(a) + self.table["log"](a)

    @classmethod
    def of_class(cls, a, b):
        return a * cls.log(b)

    @staticmethod
    def of_none(a, b):
        return a * log(b)

    @property
    def unit(self):
        return log(self.b)


def by_class(a, b):
    return Attributes().value(a, b)


def by_classmethod(a, b):
    return Attributes.of_class(a, b)


def by_staticmethod(a, b):
    return Attributes.of_none(a, b)


def by_class_attribute(a, b):
    return a * Attributes.log(b)


def by_property(a, b):
    made = Attributes()
    made.b = b
    return a * made.unit


class Object:
    def __init__(self):
        self.f = math.log


thing = Object()


def by_object(a, b):
    return a * thing.f(b)


def by_new_object(a, b):
    return a * Object().f(b)


cached = lru_cache(None)(math.log)


@lru_cache(maxsize=None)
def cached_here(b):
    return log(b)


class Cached:
    @lru_cache(maxsize=None)
    def f(self, b):
        return log(b)

    @cached_property
    def unit(self):
        return log(self.b)


holder = Cached()


def by_cached(a, b):
    return a * cached(b)


def by_cached_function(a, b):
    return a * cached_here(b)


def by_cached_method(a, b):
    return a * holder.f(b)


def by_cached_property(a, b):
    made = Cached()
    made.b = b
    return a * made.unit


of_none, of_two = partial(math.log), partial(math.pow, 2.0)


def by_partial(a, b):
    return a * of_none(b) + of_two(b)


class Named(NamedTuple):
    f: object


TABLE, LIST, TUPLE = {"log": math.log, 1: math.exp}, [math.log, math.exp], (math.log, math.exp)
NAMED, SPACE = Named(math.log), types.SimpleNamespace(f=math.log)
ORDERED, NESTED = collections.OrderedDict(f=math.log), {"a": [(math.log,)]}


def by_dict(a, b):
    return a * TABLE["log"](b) + TABLE[1](a)


def by_list(a, b):
    return a * LIST[0](b)


def by_tuple(a, b):
    return a * TUPLE[0](b)


def by_named_tuple(a, b):
    return a * NAMED.f(b)


def by_namespace(a, b):
    return a * SPACE.f(b)


def by_ordered_dict(a, b):
    return a * ORDERED["f"](b)


def by_nested(a, b):
    return a * NESTED["a"][0][0](b)


def make(f):
    def inner(a, b):
        return a * f(b)

    return inner


by_closure = make(math.log)


def decorate(f):
    @wraps(f)
    def call(*args, **keywords):
        return f(*args, **keywords)

    return call


@decorate
def by_decorated(a, b, log=math.log):
    return a * log(b)


def by_lambda(a, b):
    return (lambda t: log(t))(b) * a


def by_comprehension(a, b):
    return sum(log(t) for t in (a, b)) + sum([log(t) for t in (a, b)])


def by_map(a, b):
    return sum(map(log, (a, b)))


def by_reduce(a, b):
    return reduce(lambda s, t: s + log(t), (a, b), 0.0) + reduce(operator.mul, (a, b))


def by_getattr(a, b):
    return a * getattr(math, "log")(b)


def by_globals(a, b):
    return a * globals()["log"](b)


def by_import(a, b):
    from math import log as inside

    return a * inside(b)


def by_operator(a, b):
    return operator.add(operator.pow(a, b), operator.truediv(a, b))


def by_builtins(a, b):
    parts = sum([a, b]) + min(a, b) * max(a, 3 * b) + pow(a, b) + abs(-b) + divmod(b, a)[1]
    return parts + sorted([b, a])[1] + round(a) * b


def by_statistics(a, b):
    return statistics.mean([a, b]) + statistics.fmean((a, b)) + statistics.stdev([a, 2 * b])


def by_normal(a, b):
    return statistics.NormalDist(0.0, 1.0).pdf(a) * b


def by_complex(a, b):
    return (a * cmath.log(b + 0j)).real


def by_zeros(a, b):
    made = zeros(2)
    made[0], made[1] = log(a), b
    return (made * asarray([a, b])).sum() + array([a, b])[1]


class Makers:
    make = zeros

    def value(self, a, b):
        made = self.make(2)
        made[0], made[1] = a, b * a
        return made.sum()


def by_maker_of_class(a, b):
    return Makers().value(a, b)


makers, two = [zeros], partial(zeros, 2)


def by_maker_of_list(a, b):
    made = makers[0](2)
    made[0], made[1] = a, b * a
    return made.sum()


def by_maker_of_partial(a, b):
    made = two()
    made[0], made[1] = a, b * a
    return made.sum()


@np.vectorize
def bent(t):
    return log(t) if t > 2 else exp(t)


def by_vectorized(a, b):
    return bent(asarray([a, b])).sum()


@singledispatch
def dispatched(t):
    return log(t)


def by_single_dispatch(a, b):
    return a * dispatched(b)


class Callable:
    def __call__(self, b):
        return log(b)

    def __add__(self, other):
        return log(other)


called = Callable()


def by_call(a, b):
    return a * called(b)


def by_operators(a, b):
    return (called + a) * b


class Meta(type):
    def f(cls, b):
        return log(b)


class WithMeta(metaclass=Meta):
    pass


def by_metaclass(a, b):
    return a * WithMeta.f(b)


def by_generator(a, b):
    def each():
        yield log(b)

    return a * next(each())


def by_other_module(a, b):
    return a * home.helper(b) + helps(a)


def by_import_of_another(a, b):
    from HOME.helper import lazy

    return a * lazy(b)


registry = {}


def register(f):
    registry[f.__name__] = f
    return f


@register
def registered(b):
    return log(b)


def by_registry(a, b):
    return a * registry["registered"](b)
"""
