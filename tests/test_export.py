"""Generated modules: what is in them, that they agree with yota, and that they refuse what does not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import yota
from tests.generated import imported, lint, loaded, same
from yota import errors
from yota.api.jacobians import hessian, jacobian

ROOT = Path(__file__).parent.parent
Pair = namedtuple("Pair", "a b")


def polynomial(c, x):
    """Value by Horner's scheme."""
    return c[0] + x * (c[1] + x * (c[2] + x * c[3]))


def blocked(x, w):
    z = np.exp(x) * w
    return np.sum(np.log(1 + z) / np.sqrt(z + 2))


def branching(x, eps):
    if eps > 0:
        return eps * np.sum(x**2)
    return np.sum(x)


def special(x):
    return np.sum(scipy.special.gammaln(x + 1.0))


def single(x, w):
    return np.sum(np.tanh(x * w))


def steepest(z):
    return np.sum(np.abs(z) ** 2) + np.real(z[0] * z[1])


@dataclass
class Layer:
    W: Any
    b: Any
    act: str = "tanh"


def dense(layer, x):
    y = layer.W @ x + layer.b
    return np.sum(np.tanh(y) if layer.act == "tanh" else y)


def nested(data):
    return np.sum(data["pair"].a * data["list"][1]) + data["list"][0]


def partly(layer):
    return np.sum(layer.W)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def vector(x, a):
    return a * np.tanh(x) * np.sum(x)


TABLE = np.linspace(0.0, 1.0, 300).reshape(100, 3) ** 2


def with_table(x):
    return np.sum(TABLE @ x) + np.sum(np.eye(3) @ x)


RANDOM = np.random.default_rng(0)
CASES = [
    (polynomial, {"c": "float64[4]", "x": "float"}, (RANDOM.normal(size=4), 0.3)),
    (polynomial, {"c": "float32[4]", "x": "float32"}, (RANDOM.normal(size=4).astype("f"), np.float32(0.3))),
    (blocked, {"x": "float64[40000]", "w": "float64[40000]"}, tuple(RANDOM.uniform(size=(2, 40000)))),
    (
        blocked,
        {"x": "float32[40,20]", "w": "float32[20]"},
        (RANDOM.uniform(size=(40, 20)).astype("f"),) * 1 + (RANDOM.uniform(size=20).astype("f"),),
    ),
    (branching, {"x": "float64[3]", "eps": "float"}, (RANDOM.normal(size=3), 2.0)),
    (special, {"x": "float64[5]"}, (RANDOM.uniform(size=5),)),
    (single, {"x": "float64", "w": "float64"}, (np.float64(0.2), np.float64(0.7))),
    (steepest, {"z": "complex128[3]"}, (RANDOM.normal(size=3) + 1j * RANDOM.normal(size=3),)),
    (rosenbrock, {"x": "float64[6]"}, (RANDOM.normal(size=6),)),
    (with_table, {"x": "float64[3]"}, (RANDOM.normal(size=3),)),
]


@cache
def generated(number: int) -> yota.export.Module:
    """The module of one of `CASES`."""
    return yota.generate(*CASES[number][:2])


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number][0].__name__)
def test_modules_agree_with_yota_to_the_bit(number: int) -> None:
    f, _, arguments = CASES[number]
    text = str(generated(number))
    module = loaded(text)
    value, gradient = getattr(module, f"{f.__name__}_value_and_gradient")(*arguments)
    expected, g = yota.grad(f, *arguments)
    assert same(value, expected)
    parts = gradient if isinstance(gradient, tuple) else (gradient,)
    assert all(same(found, wanted) for found, wanted in zip(parts, g, strict=True))
    alone = getattr(module, f"{f.__name__}_gradient")(*arguments)
    assert all(map(same, alone if isinstance(alone, tuple) else (alone,), parts))
    assert same(getattr(module, f.__name__)(*arguments), yota.compile(yota.trace(f, *arguments)[1])(*arguments))
    assert imported(text) <= {"__future__", "collections", "math", "typing", "numpy", "scipy"}
    assert ("scipy" in imported(text)) == (f is special)
    assert text.isascii()
    assert str(ROOT) not in text


def test_examples_of_values_do_as_well_as_specs() -> None:
    x = np.ones(3)
    assert str(yota.generate(branching, (x, 1.0))) == str(yota.generate(branching, {"x": "float64[3]", "eps": "float"}))


def test_a_dataclass_becomes_fields() -> None:
    module = loaded(str(yota.generate(dense, {"layer": "Layer(W=float64[3,2], b=float64[3])", "x": "float64[2]"})))
    layer, x = Layer(RANDOM.normal(size=(3, 2)), RANDOM.normal(size=3)), RANDOM.normal(size=2)
    value, gradient = module.dense_value_and_gradient(layer.W, layer.b, x)
    expected, g = yota.grad(dense, layer, x)
    assert same(value, expected)
    assert gradient._fields == ("layer_W", "layer_b", "x")
    assert same(gradient.layer_W, g[0]["W",]) and same(gradient.layer_b, g[0]["b",]) and same(gradient.x, g[1])


def test_nested_structures() -> None:
    data = {"pair": Pair(np.ones(3), 2.0), "list": [0.5, np.arange(3.0)]}
    module = yota.generate(nested, (data,), wrt="data")
    found = loaded(str(module)).nested_gradient(data["pair"].a, 2.0, 0.5, data["list"][1])
    assert found._fields == ("data_pair_a", "data_pair_b", "data_list_0", "data_list_1")
    assert same(found.data_pair_a, data["list"][1])
    assert found.data_pair_b == 0.0
    assert found.data_list_0 == 1.0


def test_fields_on_which_nothing_depends_get_zeros() -> None:
    module = loaded(str(yota.generate(partly, {"layer": "Layer(W=float64[2], b=float32[3])"})))
    gradient = module.partly_gradient(np.ones(2), np.ones(3, "f"))
    assert same(gradient.layer_b, np.zeros(3, "f"))


def test_guards_are_preconditions() -> None:
    text = str(yota.generate(branching, {"x": "float64[3]", "eps": "float"}))
    with pytest.raises(ValueError, match="if eps > 0"):
        loaded(text).branching(np.ones(3), -1.0)
    assert "StaleTape" not in text


@pytest.mark.parametrize(
    "arguments, kind, message",
    [
        ((np.ones(5), 1.0), ValueError, r"c has shape \(5,\), not \(4,\)"),
        ((np.ones(4, complex), 1.0), TypeError, "c has dtype complex128, not float64"),
        ((np.ones(4), "1"), TypeError, "x must be a real number, not '1'"),
        ((np.ones(4), [1.0]), TypeError, "x must be a real number"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, kind: Any, message: str) -> None:
    module = loaded(str(yota.generate(polynomial, {"c": "float64[4]", "x": "float"})))
    with pytest.raises(kind, match=message):
        module.polynomial(*arguments)


def test_what_can_be_cast_safely_is() -> None:
    module = loaded(str(yota.generate(polynomial, {"c": "float64[4]", "x": "float"})))
    assert module.polynomial([1, 2, 3, 4], np.float32(2)) == polynomial([1.0, 2.0, 3.0, 4.0], 2.0)


# Straight-line code that is factored in two ways, and code for arrays.
@pytest.mark.parametrize("size", [5, 12, 40])
def test_matrices(size: int) -> None:
    x, v = RANDOM.normal(size=size), RANDOM.normal(size=size)
    contents = ("value", "gradient", "hessian", "hvp")
    module = loaded(str(yota.generate(rosenbrock, {"x": f"float64[{size}]"}, with_=contents)))
    expected = hessian(rosenbrock)(x)
    np.testing.assert_allclose(module.rosenbrock_hessian(x), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(module.rosenbrock_hvp(x, v), expected @ v, rtol=1e-9)
    module = loaded(str(yota.generate(vector, {"x": f"float64[{size}]", "a": "float"}, with_=("jacobian",), wrt="x")))
    np.testing.assert_allclose(module.vector_jacobian(x, 0.5), jacobian(lambda x: vector(x, 0.5))(x), rtol=1e-12)


def many(value, results, v, matrix, product, unit, units, rows, seed, deque, scipy, sizes, index, count):
    others = matrix + product + unit + units + rows + seed + deque + scipy + sizes + index + count
    return np.sum(v**3 * value) + others * results


WORDS = many.__code__.co_varnames[:14]
MANY = {name: "float64[19]" if name == "v" else "float" for name in WORDS}
MATRICES = ("value", "gradient", "hvp", "hessian")


def test_parameters_keep_their_names() -> None:
    point = {name: np.arange(1.0, 20.0) if name == "v" else 0.5 * at for at, name in enumerate(WORDS)}
    module = yota.generate(many, MANY, with_=MATRICES, wrt="v")
    assert not module.notes
    made = loaded(str(module))
    assert same(made.many(**point), many(**point))
    np.testing.assert_allclose(made.many_gradient(**point), 3 * point["v"] ** 2 * point["value"])
    np.testing.assert_allclose(np.diag(made.many_hessian(**point)), 6 * point["v"] * point["value"])
    np.testing.assert_allclose(made.many_hvp(**point, v_1=np.ones(19)), 6 * point["v"] * point["value"])
    # These would hide methods of the named tuple of gradients.
    record = loaded(str(yota.generate(many, MANY, wrt=("v", "index", "count")))).ManyGradient
    assert record._fields == ("v", "index_1", "count_1")


def test_strict_modules_have_the_bits_of_numpy() -> None:
    x = RANDOM.normal(size=6)
    assert same(loaded(str(yota.generate(rosenbrock, (x,), strict=True))).rosenbrock(x), rosenbrock(x))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"args": {"y": "float64[3]"}}, "rosenbrock has no argument 'y'; it has x"),
        ({"args": {}}, "misses a spec of its argument 'x'"),
        ({"args": "float64[3]"}, "args must be a sequence or a dict"),
        ({"args": {"x": "float64[3"}}, r"argument x: this is not a spec"),
        ({"args": {"y": "float64[3"}}, r"argument y: this is not a spec(?s:.*)\^"),
        ({"args": {"x": "float64[ ]"}}, r"between these brackets extents are missing, as in float64\[4,N\]"),
        ({"args": {"x": "float64[3]"}, "target": "cobol"}, "target='cobol' is not known"),
        ({"args": {"x": "float64[3]"}, "with_": ("slope",)}, "'slope' is not known; a module can have 'value'"),
        ({"args": {"x": "int64[3]"}}, "carries no derivative"),
        ({"args": {"x": "float64[3]"}, "wrt": "y"}, "wrt='y' is no argument"),
        ({"args": {"x": "complex128[3]"}, "with_": ("hvp",)}, "needs a real argument"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        yota.generate(rosenbrock, **options)


def test_functions_with_rules_are_imported_or_refused() -> None:
    yota.diffrule(
        '@elementwise("tests.test_export._local_square")\ndef local_square(x: Real) -> y:\n    d[y, x] = 2 * x'
    )
    text = str(yota.generate(calls_local_square, {"x": "float64[3]"}))
    assert "import tests.test_export" in text
    assert same(loaded(text).calls_local_square_gradient(np.ones(3)), np.full(3, 2.0))


def _local_square(x):
    return x * x


def calls_local_square(x):
    return np.sum(_local_square(x))


def test_writing_is_careful(tmp_path: Path) -> None:
    module = yota.generate(rosenbrock, {"x": "float64[3]"})
    path = tmp_path / "rosenbrock_grad.py"
    module.write(path)
    assert path.read_text() == str(module)
    assert module.difference(path) == ""
    module.write(path)
    path.write_text("print('mine')\n")
    with pytest.raises(errors.ArgumentError, match="was not written by yota"):
        module.write(path)
    assert "-print('mine')" in module.difference(path)
    module.write(path, force=True)
    assert path.read_text() == str(module)
    with pytest.raises(errors.ArgumentError, match="does not exist"):
        module.write(tmp_path / "none" / "x.py")
    with pytest.raises(errors.ArgumentError, match="is a folder"):
        module.write(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["rosenbrock_grad.py"]


DETERMINISM = """
import sys
sys.path.insert(0, sys.argv[1])
import yota
from tests.test_export import blocked, dense, with_table
for f, specs in ((blocked, {"x": "float64[40000]", "w": "float64[40000]"}), (with_table, {"x": "float64[3]"}),
                 (dense, {"layer": "Layer(W=float64[3,2], b=float64[3])", "x": "float64[2]"})):
    sys.stdout.write(str(yota.generate(f, specs, with_=("value", "gradient"))))
"""


def test_modules_are_the_same_in_every_process() -> None:
    texts = set()
    for seed in ("0", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        words = [sys.executable, "-c", DETERMINISM, str(ROOT)]
        texts.add(subprocess.run(words, capture_output=True, env=environment, check=True, cwd=ROOT).stdout)
    assert len(texts) == 1


def test_linters_have_nothing_to_say(tmp_path: Path) -> None:
    for number in range(len(CASES)):
        generated(number).write(tmp_path / f"case{number}.py")
    contents = ("value", "gradient", "hessian", "hvp", "jacobian")
    yota.generate(rosenbrock, {"x": "float64[12]"}, with_=contents, license="Copyright\n\nNobody").write(
        tmp_path / "all.py"
    )
    yota.generate(many, MANY, with_=MATRICES[:3], wrt="v").write(tmp_path / "many.py")
    yota.generate(many, MANY).write(tmp_path / "record.py")
    yota.generate(nested, ({"pair": Pair(np.ones(3), 2.0), "list": [0.5, np.ones(3)]},)).write(tmp_path / "nested.py")
    lint(tmp_path)
