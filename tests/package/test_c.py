"""Generated C files: that they compile without a word, agree with yota, stand alone, and refuse what C cannot say."""

from __future__ import annotations

import ast
import ctypes
import functools
import importlib.util
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from tests.emit.compiled import needs_compiler
from yota import errors
from yota.run.machine import compiler

pytestmark = needs_compiler
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or ["cc"]
STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
GOLDEN = Path(__file__).parent.parent / "golden" / "c"
NUMBERS = {"float64": ctypes.c_double, "float32": ctypes.c_float, "int64": ctypes.c_int64, "bool": ctypes.c_uint8}
random = np.random.default_rng(4)
TABLE = random.normal(size=(7, 5))


def chain(x):
    return np.sum(np.log(1 + np.exp(-x * x)) * np.sin(x) + np.tanh(x) ** 3)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def network(W1, b1, W2, x, y):
    return np.mean((np.tanh(x @ W1 + b1) @ W2 - y) ** 2)


def pairs(x):
    d = x[:, None, :] - x[None, :, :]
    return np.sum(1 / (np.sum(d * d, axis=-1) + 0.1) ** 3)


def softmax(W, x):
    s = x @ W
    s = s - np.max(s, axis=1, keepdims=True)
    return -np.sum(s[:, 0] - np.log(np.sum(np.exp(s), axis=1)))


def contracted(A, B, c):
    return np.sum(np.einsum("bij,bjk,k->bi", A, B, c) ** 2)


def reshaped(x):
    return np.sum((np.sin(x).reshape(8, 3) ** 2).T.reshape(4, 6) @ np.ones((6, 2)))


def tabled(x, k):
    return np.sum(np.exp(TABLE @ x) * k) + np.max(x)


def chosen(x, n, flag):
    return np.sum(np.where(flag, x * n, -x) ** 2)


def unused(x, y):
    return np.sum(x) * 3.0


def first(x):
    return x[0]


def many(x):
    whole = np.maximum(x, 0.1) * np.hypot(x, 2.0) + np.arctan2(x, 3.0) + np.cbrt(x) + np.deg2rad(x)
    return np.sum(whole + np.logaddexp(x, 0.5) + np.remainder(x, 0.7) + np.sign(x) * np.abs(x) ** 1.5) + np.prod(x[:3])


def single(x, w):
    return np.sum(np.tanh(x * w))


def branch(x, eps):
    if eps > 0:
        return eps * np.sum(x**2)
    return np.sum(x)


def complicated(z, w):
    return np.sum(np.abs(z * w) ** 2) + np.real(np.sum(np.exp(z) / w))


def normal(*shape: int, dtype: str = "float64") -> Any:
    values = random.normal(size=shape)
    return (values + 1j * random.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def delayed(x):
    """A loop with an array that another one takes over, and one that trips compute but do not read."""
    (now, before, last), _ = yota.scan(
        lambda c, _: ((np.sin(c[0]) * x + c[1], c[0], np.cos(c[0])), None), (x * 2, x, x), length=6
    )
    return np.sum(now * before * last)


FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (chain, (normal(1000),)),
    (rosenbrock, (normal(300),)),
    (network, (normal(20, 32), normal(32), normal(32, 3), normal(50, 20), normal(50, 3))),
    (pairs, (normal(40, 3),)),
    (softmax, (normal(20, 10), normal(30, 20))),
    (contracted, (normal(4, 20, 18), normal(4, 18, 30), normal(30))),
    (reshaped, (normal(6, 4),)),
    (tabled, (normal(5), 2.0)),
    (chosen, (normal(6), np.arange(6), np.array([True, False] * 3))),
    (unused, (normal(6), normal(3))),
    (first, (normal(6),)),
    (many, (normal(20),)),
    (single, (normal(100, dtype="float32"), normal(100, dtype="float32"))),
    (branch, (normal(5), 0.5)),
    (delayed, (normal(20),)),
    (complicated, (normal(5, dtype="complex128"), normal(5, dtype="complex64"))),
]


def arguments(f: Callable[..., Any], args: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(f.__code__.co_varnames, args, strict=False))


def built(module: yota.export.Module, folder: Path, compiler: str = COMPILERS[0]) -> ctypes.CDLL:
    """The shared library of a module."""
    for name, text in module.files.items():
        (folder / name).write_text(text)
    (source,) = (folder / name for name in module.files if name.endswith(".c"))
    library = folder / f"{source.stem}.{compiler}.so"
    words = [compiler, *STRICT, "-ffp-contract=off", "-fPIC", "-shared", str(source), "-o", str(library), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + str(module)
    return ctypes.CDLL(str(library))


def called(library: ctypes.CDLL, name: str, args: Sequence[Any], results: Sequence[Any]) -> int:
    given = [
        each.ctypes.data_as(ctypes.c_void_p) if np.ndim(each) else NUMBERS[np.asarray(each).dtype.name](each)
        for each in args
    ]
    return int(getattr(library, name)(*given, *(each.ctypes.data_as(ctypes.c_void_p) for each in results)))


@functools.cache
def generated(f: Callable[..., Any]) -> yota.export.Module:
    """The file of one of `FUNCTIONS`, which checks itself."""
    return yota.generate(f, arguments(f, dict(FUNCTIONS)[f]), target="c", self_test=True)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("f", "args"), FUNCTIONS, ids=lambda case: getattr(case, "__name__", ""))
def test_agrees_with_yota(f: Callable[..., Any], args: tuple[Any, ...], compiler: str, tmp_path: Path) -> None:
    library = built(generated(f), tmp_path, compiler)
    expected, gradients = yota.grad(f, *args)
    wanted = [np.asarray(each) for each in gradients if each is not None]
    value = np.zeros((), np.asarray(expected).dtype)
    found = [np.full_like(each, 7) for each in wanted]
    assert called(library, f"{f.__name__}_value_and_gradient", args, [value, *found]) == 0
    epsilon = np.finfo(value.dtype).eps
    assert abs(value - expected) <= 8 * epsilon * abs(expected)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=64 * epsilon, atol=64 * epsilon * np.max(np.abs(other)))
    again = [np.full_like(each, 7) for each in wanted]
    assert called(library, f"{f.__name__}_gradient", args, again) == 0
    assert all(one.tobytes() == other.tobytes() for one, other in zip(found, again, strict=True))
    alone = np.zeros_like(value)
    assert called(library, f.__name__, args, [alone]) == 0
    assert abs(alone - expected) <= 8 * epsilon * abs(expected)


@pytest.mark.parametrize("f", dict(FUNCTIONS))
def test_checks_itself_under_sanitizers(f: Callable[..., Any], tmp_path: Path) -> None:
    for name, text in generated(f).files.items():
        (tmp_path / name).write_text(text)
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover", f"-D{f.__name__.upper()}_SELF_TEST"]
    words = [COMPILERS[0], *STRICT, *flags, f"{f.__name__}.c", "-o", "check", "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    if "libasan" in done.stderr or "sanitize" in done.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([str(tmp_path / "check")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "gradients agree" in ran.stdout


def test_a_wrong_gradient_is_found_by_the_self_test(tmp_path: Path) -> None:
    module = generated(first)
    (tmp_path / "first.h").write_text(module.files["first.h"])
    wrong = module.files["first.c"].replace("    1.0, 0.0", "    1.001, 0.0")
    assert wrong != module.files["first.c"]
    (tmp_path / "first.c").write_text(wrong)
    subprocess.run([COMPILERS[0], "-DFIRST_SELF_TEST", "first.c", "-o", "check", "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run([str(tmp_path / "check")], capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("size", [5, 40, 300])
def test_hessians_are_whole_or_row_by_row(size: int, tmp_path: Path) -> None:
    module = yota.generate(rosenbrock, {"x": f"float64[{size}]"}, target="c", with_=("hessian", "hvp"))
    library = built(module, tmp_path)
    x, v = normal(size), normal(size)
    expected = yota.hessian(rosenbrock)(x)
    found, product = np.zeros((size, size)), np.zeros(size)
    assert called(library, "rosenbrock_hessian", [x], [found]) == 0
    assert called(library, "rosenbrock_hvp", [x, v], [product]) == 0
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(product, expected @ v, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("size", [4, 30])
def test_jacobians(size: int, tmp_path: Path) -> None:
    def field(x, row):
        return np.sin(x) * np.sum(x) * row

    module = yota.generate(field, {"x": f"float64[{size}]", "row": "float"}, target="c", wrt="x", with_="jacobian")
    library, x, found = built(module, tmp_path), normal(size), np.zeros((size, size))
    assert called(library, "field_jacobian", [x, 2.0], [found]) == 0
    np.testing.assert_allclose(found, yota.jacobian(lambda x: field(x, 2.0))(x), rtol=1e-13)


def test_entries_of_a_straight_line_jacobian_are_written_at_their_places(tmp_path: Path) -> None:
    def plane(x):
        return np.array([x[0] * x[1], x[1] ** 3, x[0] - 2.0 * x[1]])

    module = yota.generate(plane, {"x": "float64[2]"}, target="c", with_="jacobian")
    assert "for (" not in module.files["plane.c"]
    library, found = built(module, tmp_path), np.zeros((3, 2))
    assert called(library, "plane_jacobian", [np.array([2.0, 3.0])], [found]) == 0
    np.testing.assert_array_equal(found, [[3.0, 2.0], [0.0, 27.0], [1.0, -2.0]])


def test_another_branch_is_told_by_its_number(tmp_path: Path) -> None:
    module = yota.generate(branch, {"x": "float64[5]", "eps": "float"}, target="c")
    library, value = built(module, tmp_path), np.zeros(())
    assert called(library, "branch", [normal(5), -0.5], [value]) == 1
    assert re.search(r"1  if eps > 0:  was True", module.files["branch.h"])


def test_results_may_be_arguments_and_constants(tmp_path: Path) -> None:
    def several(x):
        return x, np.array([1.0, 2.0]), x[1], x + 1.0

    module = yota.generate(several, {"x": "float64[3]"}, target="c", with_="value")
    results = [np.zeros(3), np.zeros(2), np.zeros(()), np.zeros(3)]
    assert called(built(module, tmp_path), "several", [np.arange(3.0)], results) == 0
    assert [each.tolist() for each in results] == [[0, 1, 2], [1, 2], 1, [1, 2, 3]]


@dataclass
class Layer:
    W: Any
    b: Any


def test_structures_become_parameters() -> None:
    def dense(layer, x):
        return np.sum(np.tanh(layer.W @ x + layer.b))

    layer = Layer(normal(3, 4), 0.5)
    header = yota.generate(dense, {"layer": layer, "x": "float64[4]"}, target="c").files["dense.h"]
    assert "double *DENSE_RESTRICT gradient_layer_W" in header
    assert re.search(r"layer_W +in  double \[3, 4\]; layer.W\n", header)


def test_names_are_fit_for_c_and_linkers(tmp_path: Path) -> None:
    def clash(read, for_, value, status, I, row, done, template, NULL):  # noqa: E741
        return read * for_ * value * status * I * row * done * template * NULL

    module = yota.generate(clash, ["float"] * 9, target="c", name="main", self_test=True)
    built(module, tmp_path)
    assert list(module.files) == ["main_1.c", "main_1.h"]
    assert "'main' is called main_1 in the file" in module.notes
    assert "status is called status_1 in the file" in module.notes


def test_long_names_are_kept_whole(tmp_path: Path) -> None:
    def energy_of_a_chain_of_springs_between_walls(x):
        return np.sum(np.sin(x[1:] - x[:-1]))

    title = "energy_of_a_chain_of_springs_bet"
    contents = ("value", "gradient", "hessian", "hvp")
    module = yota.generate(
        energy_of_a_chain_of_springs_between_walls, {"x": "float64[40]"}, target="c", with_=contents, self_test=True
    )
    library, results = built(module, tmp_path), [np.zeros(()), np.zeros(40)]
    assert called(library, f"{title}_value_and_gradient", [np.arange(40.0)], results) == 0
    assert called(library, f"{title}_hessian", [np.arange(40.0)], [np.zeros((40, 40))]) == 0
    assert any("between_walls' is called" in note for note in module.notes)


def test_cplusplus_reads_the_header(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no compiler of C++")
    module = yota.generate(chain, {"x": "float64[8]"}, target="c")
    (tmp_path / "chain.h").write_text(module.files["chain.h"])
    (tmp_path / "use.cpp").write_text('#include "chain.h"\nint use(double *x, double *y) { return chain(x, y); }\n')
    subprocess.run([compiler, "-Wall", "-Werror", "-c", "use.cpp"], cwd=tmp_path, check=True)


def test_what_c_cannot_say_is_refused() -> None:
    def power(x):
        return np.sum(np.abs(np.fft.fft(x)) ** 2)

    with pytest.raises(errors.CodegenError, match=r"(?s)numpy.fft.fft of float64\[40\].*np.fft.fft\(x\).*numpy"):
        yota.generate(power, {"x": "float64[40]"}, target="c")
    with pytest.raises(errors.CodegenError, match=r"(?s)numpy.cumsum of float64\[40\].*np.cumsum\(x\).*numpy"):
        yota.generate(lambda x: np.sum(np.cumsum(x)), {"x": "float64[40]"}, target="c", strict=True)
    with pytest.raises(errors.CodegenError, match="float16"):
        yota.generate(chain, {"x": "float16[4]"}, target="c")
    with pytest.raises(errors.CodegenError, match="no elements"):
        yota.generate(chain, {"x": "float64[0]"}, target="c")
    with pytest.raises(errors.ArgumentError, match="cannot be called"):
        yota.generate(chain, {"x": "float64[4]"}, target="c", stem='x"\n#include "y')


def built_extension(folder: Path, module: str) -> Any:
    """The extension module whose files are in ``folder``."""
    flags = [flag for flag in compiler.find().flags if flag.startswith(("-I", "-f", "-shared", "-undefined"))]
    sources = [str(folder / f"{module}.c"), str(folder / f"{module}module.c")]
    place = folder / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
    words = [*compiler.find().command, "-std=gnu11", "-Wall", "-Werror", *flags, *sources, "-o", str(place), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = importlib.util.spec_from_file_location(module, place)
    assert found is not None and found.loader is not None
    loaded = importlib.util.module_from_spec(found)
    found.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize(
    ("f", "args"),
    [case for case in FUNCTIONS if case[0] in (chain, chosen, branch, complicated)],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_extensions(f: Callable[..., Any], args: tuple[Any, ...], tmp_path: Path) -> None:
    written = yota.generate(f, arguments(f, args), target="c", extension=True)
    written.write(tmp_path / f"{f.__name__}.c")
    module = built_extension(tmp_path, f.__name__)
    expected, gradients = yota.grad(f, *args)
    value, *found = getattr(module, f"{f.__name__}_value_and_gradient")(*args)
    assert type(value) is type(expected)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for one, other in zip(found, (each for each in gradients if each is not None), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
    assert f"{f.__name__} and its gradient" in getattr(module, f"{f.__name__}_value_and_gradient").__doc__
    with pytest.raises(TypeError):
        getattr(module, f.__name__)(*args, 1.0)
    with pytest.raises(TypeError):
        getattr(module, f.__name__)("x", *args[1:])
    if f is branch:
        with pytest.raises(ValueError, match="if eps > 0:  was True"):
            module.branch(args[0], -1.0)


def test_extensions_say_what_they_take(tmp_path: Path) -> None:
    yota.generate(complicated, arguments(complicated, dict(FUNCTIONS)[complicated]), target="c", extension=True).write(
        tmp_path / "complicated.c"
    )
    module = built_extension(tmp_path, "complicated")
    documentation = module.complicated_value_and_gradient.__doc__.rstrip().splitlines()
    # Counts of operations, of which there are several lines, are left out as a whole.
    assert "Operations" in (tmp_path / "complicated.h").read_text()
    assert re.search(r"  out  ", documentation[-1])
    yota.generate(chain, {"x": "float64[8]"}, target="c", extension=True).write(tmp_path / "chain.c")
    module = built_extension(tmp_path, "chain")
    wanted = r"^x must be an array of dtype float64 and shape \(8,\); found "
    for wrong, found in (
        (np.zeros(7), r"dtype float64 and shape \(7,\)$"),
        (np.zeros((8, 1), np.float32), r"dtype float32 and shape \(8, 1\)$"),
        ([0.0] * 8, "an object of type list$"),
    ):
        with pytest.raises(TypeError, match=wanted + found):
            module.chain(wrong)
    stub = ast.parse((tmp_path / "chain.pyi").read_text())
    functions = {each.name: ast.unparse(each) for each in stub.body if isinstance(each, ast.FunctionDef)}
    assert functions["chain"] == "def chain(x: npt.NDArray[np.float64], /) -> np.float64:\n    ..."
    assert functions["chain_value_and_gradient"].endswith("-> tuple[np.float64, npt.NDArray[np.float64]]:\n    ...")
    assert all(hasattr(module, name) for name in functions)


@pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="Meson is not installed")
def test_meson_builds_an_extension_as_it_stands(tmp_path: Path) -> None:
    yota.generate(chain, {"x": "float64[8]"}, target="c", extension=True).write(tmp_path / "chain.c")
    subprocess.run(["meson", "setup", "build"], cwd=tmp_path, check=True)
    subprocess.run(["meson", "compile", "-C", "build"], cwd=tmp_path, check=True)
    assert list((tmp_path / "build").glob("chain.*.so"))


def test_extensions_go_with_c_alone() -> None:
    with pytest.raises(errors.ArgumentError, match='extension=True goes with target="c"'):
        yota.generate(chain, {"x": "float64[8]"}, extension=True)
    with pytest.raises(errors.ArgumentError, match="Python module"):
        yota.generate(chain, {"x": "float64[8]"}, target="c", extension=True, stem="a-b")


def bare(module: yota.export.Module) -> str:
    """The code without comments and blanks."""
    return "".join("".join(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).split()) for text in module.files.values())


HARMLESS = None


@settings(max_examples=25)
@given(st.text() | st.sampled_from(["*/ int x; /*", "??/\n", "\\\n", "/*", "*\\\n/ int y;", "#include <x>"]))
def test_foreign_text_stays_in_comments(text: str) -> None:
    global HARMLESS
    HARMLESS = HARMLESS or bare(yota.generate(first, {"x": "float64[2]"}, target="c"))
    words = ("yota", "generate", f"{text}:first", "--arg", text)
    module = yota.generate(first, {"x": "float64[2]"}, target="c", license=text or None, command=words)
    assert bare(module) == HARMLESS
    assert all(each.isascii() and "??" not in each for each in module.files.values())


@pytest.mark.parametrize("f", [first, pairs, tabled, branch], ids=lambda f: f.__name__)
def test_source_is_as_reviewed(f: Callable[..., Any], pytestconfig: pytest.Config) -> None:
    specs = {first: ["float64[2]"], pairs: ["float64[40,3]"], tabled: ["float64[5]", "float"]}
    module = yota.generate(f, specs.get(f, ["float32[20]", "float"]), target="c", self_test=f is branch)
    for name, text in module.files.items():
        place = GOLDEN / name
        if pytestconfig.getoption("--update-golden"):
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        assert text == place.read_text()
