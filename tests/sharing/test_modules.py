"""Exported rules: read by ruff, imported by the real libraries, and their gradients compared with yota's own."""

import ast
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.special  # noqa: F401  (its functions are looked up among loaded modules)

import yota
from yota.errors import ArgumentError, RuleError
from yota.rules.registry import registry
from yota.tools.cli import main
from yota.tools.sharing.rule_functions import export

FILE = Path(__file__).parent / "shared.rules"
LIBRARIES = ("jax", "torch", "autograd")
COMMAND = ("yota", "rules", "export")
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 2))
X, K = RNG.standard_normal((4, 3)) + 0.05, np.array([0.5, 1.5, 2.5])
N, W = np.array([1, 2, 3]), np.array([0.5, -1.0, 2.0])
Z = X[0] + 1j * X[1]
CASES = [
    ("softsign", (X, K), {}),
    ("softsign", (X,), {}),
    ("bump", (X,), {}),
    ("swish", (X[:, :1], K), {}),
    ("waves", (X[0],), {}),
    ("waves", (Z,), {}),
    ("stairs", (N, K, W), {}),
    ("energy", (X,), {}),
    ("energy", (X,), {"axis": -1, "keepdims": True}),
    ("energy", (Z,), {}),
    ("quadratic", (A, B), {}),
    ("quadratic", (A + 1j * A.T, B + 0.5j * B), {}),
    ("joined", (X, X[:2] ** 2), {}),
    ("joined", (Z, X[2], K), {"axis": -1}),
    ("piled", (X[:, None], X, np.sin(X)), {"axis": -2}),
    ("piled", (K, Z, X[3]), {}),
    ("contracted", (A, B, K), {"subscripts": "ij,jk,j->ki"}),
    ("contracted", (B + 1j, B - 2j), {"subscripts": "ij,kj"}),
    ("turned", (K, X), {}),
    ("turned", (K, Z), {}),
    ("moments", (X, X * X), {}),
    ("moments", (Z, K), {}),
    ("leaned", (K,), {}),
    ("chord", (K / 3,), {}),
    ("chord", (Z,), {}),
]
IDS = [f"{name}-{operands[0].dtype}-{len(operands)}-{len(keywords)}" for name, operands, keywords in CASES]
DYADIC = np.array([1.0, -0.5, 2.0])


@functools.cache
def loaded(library):
    path = Path(tempfile.mkdtemp()) / f"shared_{library}.py"
    path.write_text(export(FILE, library, COMMAND).text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def known():
    made = registry().copy()
    made.load(FILE)
    return made


def moving(operands):
    return [position for position, each in enumerate(operands) if each.dtype.kind in "fc"]


def several(value):
    """Results as a list: one array is one, and autograd's tuples are no tuples."""
    return [value] if hasattr(value, "dtype") else list(value)


def primal(known, name):
    """The function by yota, which traces it."""
    return known.primitive(name).function


def weighted(lib, seeds, value):
    return sum(lib.sum(lib.real(lib.conj(each) * one)) for each, one in zip(seeds, several(value), strict=True))


def expected(known, name, operands, keywords):
    """Values, seeds and adjoints by yota."""
    function = primal(known, name)
    values = [np.asarray(each) for each in several(function(*operands, **keywords))]
    seeds = [
        np.resize(DYADIC, each.shape) * (1 + 0.5j if each.dtype.kind == "c" else 1) * (1 + place)
        for place, each in enumerate(values)
    ]
    where = moving(operands)

    def loss(*inner):
        given = list(operands)
        for position, each in zip(where, inner, strict=True):
            given[position] = each
        return weighted(np, seeds, function(*given, **keywords))

    return values, seeds, list(yota.grad(loss, *(operands[position] for position in where))[1])


def jax_results(module, name, operands, keywords, seeds):
    import jax
    import jax.numpy as jnp

    where = moving(operands)
    function = getattr(module, name)

    def loss(*inner):
        given = list(operands)
        for position, value in zip(where, inner, strict=True):
            given[position] = value
        return weighted(jnp, seeds, function(*given, **keywords))

    inner = [jnp.asarray(operands[position]) for position in where]
    places = tuple(range(len(inner)))

    def steep(*inner):
        return sum(jnp.sum(jnp.real(jnp.conj(each) * each)) for each in jax.grad(loss, places)(*inner))

    # At once: JAX compiles each operation by itself otherwise.
    values, slopes, again = jax.jit(
        lambda *each: (
            several(function(*operands, **keywords)),
            jax.grad(loss, places)(*each),
            jax.grad(steep, places)(*each),
        )
    )(*inner)
    # JAX gives the conjugate of the direction of steepest ascent.
    return values, [np.conj(each) for each in slopes], [np.conj(each) for each in again]


def torch_results(module, name, operands, keywords, seeds):
    import torch

    where = moving(operands)
    given = [torch.tensor(each, requires_grad=position in where) for position, each in enumerate(operands)]
    values = several(getattr(module, name)(*given, **keywords))
    loss = weighted(torch, map(torch.tensor, seeds), values)
    inner = [given[position] for position in where]
    slopes = torch.autograd.grad(loss, inner, create_graph=True, allow_unused=True)
    steep = sum(torch.sum(torch.abs(each) ** 2) for each in slopes if each is not None)
    linear = not steep.requires_grad
    again = [None] * len(inner) if linear else torch.autograd.grad(steep, inner, allow_unused=True)

    def plain(each, like):
        return np.zeros(like.shape) if each is None else each.detach().resolve_conj().numpy()

    return (
        [each.detach().resolve_conj().numpy() for each in values],
        [plain(each, like) for each, like in zip(slopes, inner, strict=True)],
        [plain(each, like) for each, like in zip(again, inner, strict=True)],
    )


def autograd_results(module, name, operands, keywords, seeds):
    import autograd
    import autograd.numpy as anp

    where = moving(operands)
    function = getattr(module, name)

    def loss(inner):
        given = list(operands)
        for position, value in zip(where, inner, strict=True):
            given[position] = value
        return weighted(anp, seeds, function(*given, **keywords))

    inner = tuple(operands[position] for position in where)
    slope = autograd.grad(loss)

    def steep(inner):
        return sum(anp.sum(anp.real(anp.conj(each) * each)) for each in slope(inner))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slopes, again = slope(inner), autograd.grad(steep)(inner)
    values = several(function(*operands, **keywords))
    return values, [np.conj(each) for each in slopes], [np.conj(each) for each in again]


RESULTS = {"jax": jax_results, "torch": torch_results, "autograd": autograd_results}


def library_or_skip(library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(library)
    if library == "jax":
        module.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("name", "operands", "keywords"), CASES, ids=IDS)
def test_gradients(library, name, operands, keywords, known):
    library_or_skip(library)
    module = loaded(library)
    values, seeds, slopes = expected(known, name, operands, keywords)
    found, first, again = RESULTS[library](module, name, operands, keywords, seeds)
    assert len(found) == len(values)
    for one, other in zip(found, values, strict=True):
        assert np.shape(one) == other.shape
        assert np.allclose(one, other, rtol=1e-12)
    assert len(first) == len(slopes)
    for one, other in zip(first, slopes, strict=True):
        assert np.asarray(one).dtype == other.dtype
        assert np.allclose(one, other, rtol=1e-10, atol=1e-12)
    # Second order: the gradient of the squared gradient, against differences of yota's first one.
    where = moving(operands)
    direction = [np.resize(np.array([0.3, -0.7, 0.2]), operands[p].shape) for p in where]
    step = 1e-6

    def steep(shift):
        moved = list(operands)
        for position, each in zip(where, direction, strict=True):
            moved[position] = operands[position] + shift * each
        return sum(float(np.sum(np.abs(each) ** 2)) for each in expected(known, name, moved, keywords)[2])

    slope = (steep(step) - steep(-step)) / (2 * step)
    total = sum(float(np.sum(np.real(np.conj(each) * move))) for each, move in zip(again, direction, strict=True))
    assert total == pytest.approx(slope, rel=1e-6, abs=1e-6)


def float32(operands):
    return [each.astype("c8" if each.dtype.kind == "c" else "f4") for each in operands if each.dtype.kind in "fc"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("name", "operands", "keywords"), CASES[4:7] + CASES[11:], ids=IDS[4:7] + IDS[11:])
def test_float32_stays(library, name, operands, keywords):
    if name == "stairs":
        return
    library_or_skip(library)
    operands = float32(operands)
    function = getattr(loaded(library), name)
    if library == "torch":
        import torch

        operands = [torch.tensor(each) for each in operands]
    for each in several(function(*operands, **keywords)):
        assert str(each.dtype).rpartition(".")[2] in ("float32", "complex64")


TRANSFORMED = [
    each for each in CASES if each[0] not in ("stairs", "quadratic") and all(one.dtype == float for one in each[1])
]


@pytest.mark.parametrize(("name", "operands", "keywords"), TRANSFORMED, ids=[each[0] for each in TRANSFORMED])
def test_jax_batches(name, operands, keywords):
    library_or_skip("jax")
    import jax

    function = getattr(loaded("jax"), name)

    def loss(*inner):
        return sum(jax.numpy.sum(jax.numpy.real(each) ** 2) for each in several(function(*inner, **keywords)))

    slope = jax.jit(jax.grad(loss, tuple(range(len(operands)))))
    found = jax.jit(jax.vmap(slope))(*(np.stack([each, 2 * each]) for each in operands))
    for one, other in zip(found, slope(*(2 * each for each in operands)), strict=True):
        assert np.allclose(one[1], other, rtol=1e-12)


@pytest.mark.parametrize(("name", "operands", "keywords"), TRANSFORMED, ids=[each[0] for each in TRANSFORMED])
def test_torch_transforms(name, operands, keywords):
    library_or_skip("torch")
    import torch

    function = getattr(loaded("torch"), name)
    given = [torch.tensor(each, requires_grad=True) for each in operands]

    def called(*inner):
        return function(*inner, **keywords)

    assert torch.autograd.gradcheck(called, given)
    assert torch.autograd.gradgradcheck(called, given)

    def loss(*inner):
        return sum(torch.sum(each**2) for each in several(called(*inner)))

    slope = torch.func.grad(loss, tuple(range(len(given))))
    found = torch.func.vmap(slope)(*(torch.tensor(np.stack([each, 2 * each])) for each in operands))
    for one, other in zip(found, slope(*(torch.tensor(2 * each) for each in operands)), strict=True):
        assert torch.allclose(one[1], other, rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_ruff_leaves_it_as_it_is(library, tmp_path):
    (tmp_path / "shared.py").write_text(export(FILE, library, COMMAND).text)
    ruff = shutil.which("ruff") or str(Path(sys.executable).parent / "ruff")
    for command in (["format", "--check"], ["check", "--select", "E,F,I,W", "--ignore", "E501"]):
        subprocess.run([ruff, *command, "--isolated", "shared.py"], cwd=tmp_path, check=True, capture_output=True)


def test_the_same_bytes_each_time():
    assert export(FILE, "jax", COMMAND) == export(FILE, "jax", COMMAND)


@pytest.mark.parametrize("library", LIBRARIES)
def test_text_of_a_rule_stays_text(library, tmp_path):
    path = tmp_path / ("x\n__import__('os').abort()\n#.rules" if os.name == "posix" else "x.rules")
    doc = "Ends \\'\\'\\' here \\\"\\\"\\\" import os; os.abort()\n    os.abort()\n    "
    path.write_text(
        f'# yota rules 1\n@elementwise\ndef lambda_(jax: Real, self: Real) -> ctx:\n    """{doc}"""\n'
        "    ctx = jax * self * self\n"
    )
    text = export(path, library, COMMAND).text
    compile(text, "shared.py", "exec")
    assert "os.abort" not in [line.strip() for line in text.splitlines()]
    assert text.isascii()


@pytest.mark.parametrize(
    ("library", "body", "message"),
    [
        ("torch", "y = cbrt(x)", "cannot be exported to torch: `cbrt(x)` uses cbrt, for which torch has no"),
        ("autograd", "y = hypot(x, 2)", "cannot be exported to autograd: `hypot(x, 2)` uses hypot"),
        ("jax", 'y = sin(x)\n    d[y, x] = "is not written at all"', "no derivative by x (is not written at all)"),
    ],
)
def test_what_a_library_lacks_is_refused(library, body, message, tmp_path):
    path = tmp_path / "f.rules"
    path.write_text(f"# yota rules 1\n@elementwise\ndef f(x: Real) -> y:\n    {body}\n")
    with pytest.raises(RuleError) as caught:
        export(path, library, COMMAND)
    assert message in str(caught.value)
    assert f"{path}:3: " in str(caught.value)


def test_a_file_without_primals_is_refused(tmp_path):
    path = tmp_path / "f.rules"
    path.write_text('# yota rules 1\n@elementwise("numpy.sin")\ndef sin(x: Real) -> y:\n    d[y, x] = cos(x)\n')
    with pytest.raises(ArgumentError, match="no rule with a primal"):
        export(path, "jax", COMMAND)
    with pytest.raises(ArgumentError, match="jax, torch, autograd"):
        export(FILE, "tensorflow", COMMAND)


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(FILE, "my.rules")
    call = ["rules", "export", "--to", "autograd", "my.rules", "-o", "my_rules.py"]
    assert main(call) == 0
    text = Path("my_rules.py").read_text()
    assert text.startswith(f"# Generated by yota {yota.__version__} from my.rules. Do not edit")
    assert "#     yota rules export --to autograd my.rules -o my_rules.py" in text
    assert main(call) == 0  # over its own file
    Path("mine.py").write_text("mine = 1\n")
    assert main([*call[:-1], "mine.py"]) == 2
    assert "was not written by yota" in capsys.readouterr().err
    assert Path("mine.py").read_text() == "mine = 1\n"
    assert main([*call[:-1], "mine.py", "--force"]) == 0
    assert main(["rules", "export", "--to", "jax", "my.rules"]) == 0
    assert "@jax.custom_jvp" in capsys.readouterr().out
    assert main(["rules", "export", "my.rules"]) == 2
    assert "--to jax, torch or autograd" in capsys.readouterr().err


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_that_meet_are_kept_apart(library, tmp_path):
    """A function and one of yota's own, names that make one class, and parameters that become each other's names."""
    path = tmp_path / "f.rules"
    path.write_text(
        "# yota rules 1\n@elementwise\ndef sech(x: Real) -> sech:\n    sech = tanh(x) * tanh(tanh(x))\n"
        "@elementwise\ndef a_b(g: Real, g_: Real) -> y:\n    y = g * g_ * g_\n"
        "@elementwise\ndef aB(sech: Real) -> y:\n    y = sech * tanh(sech)\n"
    )
    text = export(path, library, COMMAND).text
    top = [each.name for each in ast.parse(text).body if isinstance(each, (ast.FunctionDef, ast.ClassDef))]
    assert len(set(top)) == len(top)
    library_or_skip(library)
    space = {}
    exec(compile(text, "f.py", "exec"), space)
    assert float(space["a_b"](2.0, 3.0)) == 18
    assert float(space["sech"](0.5)) == pytest.approx(np.tanh(0.5) * np.tanh(np.tanh(0.5)))
    assert float(space["aB"](0.5)) == pytest.approx(0.5 * np.tanh(0.5))
