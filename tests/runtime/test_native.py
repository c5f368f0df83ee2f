"""The private cache of compiled code, and what is said when nothing can be compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen.compiled import needs_compiler
from yota.errors import CodegenError
from yota.runtime import compiler, headers, native, store
from yota.runtime.dispatch import offer, quick

ROOT = Path(__file__).parents[2]
CODE = """
#include <Python.h>
static PyObject *answer(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    (void)m; (void)args; (void)n; return PyLong_FromLong(@);
}
static PyMethodDef methods[] = {{"answer", (PyCFunction)(void (*)(void))answer, METH_FASTCALL, NULL}, {0}};
static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "yota_native", .m_methods = methods};
PyMODINIT_FUNC PyInit_yota_native(void) { return PyModuleDef_Init(&definition); }
"""


def code(number: int) -> str:
    return CODE.replace("@", str(number))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@needs_compiler
def test_compiled_once_and_found_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.build(code(1)).answer() == 1
    assert native.build(code(2)).answer() == 2
    assert len(list(cache.glob("*.so"))) == 2
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(compiler.Compiler, "compile", lambda *_: pytest.fail("compiled again"))
    assert native.build(code(1)).answer() == 1


@needs_compiler
@pytest.mark.parametrize("harm", ["changed", "cut", "no digest", "others may write", "a link"])
def test_what_is_not_whole_is_made_again(cache: Path, harm: str, tmp_path: Path) -> None:
    native.build(code(3))
    (file,) = cache.glob("*.so")
    content = file.read_bytes()
    if harm == "changed":
        # A new file, since the old one is mapped into this process.
        file.unlink()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif harm == "cut":
        file.unlink()
        file.write_bytes(content[:100])
    elif harm == "no digest":
        file.with_suffix(".sha256").unlink()
    elif harm == "others may write":
        file.chmod(0o722)
    else:
        (tmp_path / "elsewhere.so").write_bytes(content)
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere.so")
    assert native.build(code(3)).answer() == 3
    (file,) = cache.glob("*.so")
    assert not file.is_symlink() and not file.stat().st_mode & 0o022
    assert file.with_suffix(".sha256").read_text() == store._digest(file)


@needs_compiler
def test_folder_that_others_may_write_to_is_refused(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    cache.chmod(0o777)
    with pytest.raises(CodegenError, match=r"others may write there; run: chmod 700 .*YOTA_CACHE_DIR"):
        native.build(code(4))


@needs_compiler
def test_cached_functions_load_quickly(cache: Path) -> None:
    native.build(code(6))
    script = (
        "import numpy, sys, time; from yota.runtime import native; start = time.perf_counter(); "
        "native.build(sys.stdin.read()); print(time.perf_counter() - start)"
    )
    seconds = min(
        float(
            subprocess.run(
                [sys.executable, "-c", script], input=code(6), capture_output=True, text=True, cwd=ROOT, check=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            ).stdout
        )
        for _ in range(3)
    )  # fmt: skip
    # A tenth of this where nothing else runs.
    assert seconds < 0.1


def test_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("YOTA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.folder() == tmp_path / "yota"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert store.folder() == Path.home() / ".cache" / "yota"


def test_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_FILES", 3)
    kept = store.Store(tmp_path / "cache")
    for number in range(6):
        place = kept.get(f"k{number}", lambda path: path.write_bytes(b"x") and None)
        os.utime(place, (number, number))
    kept.get("k6", lambda path: path.write_bytes(b"x") and None)
    assert {place.stem for place in (tmp_path / "cache").glob("*.so")} == {"k4", "k5", "k6"}
    assert len(list((tmp_path / "cache").iterdir())) == 6


@needs_compiler
def test_eight_processes_at_once(cache: Path) -> None:
    script = "import sys; from yota.runtime import native; print(native.build(sys.stdin.read()).answer())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for _ in range(8)
    ]  # fmt: skip
    answers = []
    for process in running:
        assert process.stdin is not None
        process.stdin.write(code(5))
        process.stdin.close()
    for process in running:
        assert process.stdout is not None
        answers.append(process.stdout.read().strip())
        process.stdout.close()
        assert process.wait(60) == 0
    assert answers == ["5"] * 8
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".sha256", ".so"]


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(CodegenError, match=r'needs a C compiler.*Install one.*use target="numpy"'):
        compiler.find()
    monkeypatch.setenv("CC", "no-such-compiler --flag")
    with pytest.raises(CodegenError, match=r"CC='no-such-compiler --flag' is not on the PATH"):
        compiler.find()


def test_compiler_that_does_not_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken-cc"
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(CodegenError, match=r'does not work: out of order\n.*target="numpy"'):
        compiler.find()


def test_no_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler._found.cache_clear()
    monkeypatch.setattr(compiler.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    monkeypatch.setenv("CC", sys.executable)
    with pytest.raises(CodegenError, match=r"Python.h is missing.*python3-dev"):
        compiler.find()
    compiler._found.cache_clear()


@needs_compiler
def test_faults_of_the_compiler_are_shown(cache: Path) -> None:
    with pytest.raises(CodegenError, match="failed on generated code"):
        native.build("this is not C")
    assert not list(cache.glob("*.so"))
    assert not [path for path in cache.iterdir() if path.is_dir()]


@needs_compiler
def test_nothing_reaches_a_shell(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    monkeypatch.setenv("CC", f"cc; touch {marker}")
    with pytest.raises(CodegenError):
        compiler.find()
    assert not marker.exists()


@needs_compiler
def test_dispatch_tries_known_forms_first() -> None:
    calls = []

    def otherwise(*args: object, **keywords: object) -> object:
        calls.append(args)
        return keywords

    dispatcher = quick(otherwise)
    assert dispatcher(1.0, a=2) == {"a": 2}
    form = native.build(code(7)).answer
    assert offer(dispatcher, form, (1.0,))
    assert not offer(dispatcher, form, (1.0,))
    assert not offer(dispatcher, otherwise, (1.0,))
    assert dispatcher(2.0) == 7
    assert dispatcher(2) == {} and dispatcher(2.0, 3.0) == {} and dispatcher(2.0, a=1) == {"a": 1}
    assert len(calls) == 4

    class Holder:
        method = dispatcher

    holder = Holder()
    holder.method()
    assert calls[-1] == (holder,)


@needs_compiler
def test_headers_are_parsed_once_there_is_more_to_compile(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    included = []
    compile = compiler.Compiler.compile

    def noted(self: compiler.Compiler, source: Path, output: Path, header: Path | None = None) -> None:
        included.append(header)
        compile(self, source, output, header)

    monkeypatch.setattr(compiler.Compiler, "compile", noted)
    for number in range(4):
        assert native.build(code(number)).answer() == number
    (parsed,) = cache.glob("headers-*.gch")
    assert included == [None, None, parsed.with_suffix(""), parsed.with_suffix("")]
    # What is not there any more, or is no header, is done without.
    parsed.write_bytes(b"no header")
    assert native.build(code(4)).answer() == 4
    parsed.with_suffix("").write_text("#error broken")
    assert native.build(code(5)).answer() == 5
    parsed.with_suffix("").unlink()
    assert native.build(code(6)).answer() == 6
    assert included[-1] is None


@needs_compiler
def test_compilers_that_keep_no_headers_do_without(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CodegenError("no")

    monkeypatch.setattr(compiler.Compiler, "parse", refuse)
    for number in range(3):
        assert native.build(code(number)).answer() == number
    assert headers.ready(store.Store(cache), compiler.find()) is None


@needs_compiler
@pytest.mark.parametrize("obstacle", ["a file in the way", "nothing may be written"])
def test_folder_that_cannot_be_written_to(obstacle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cache"
    if obstacle == "a file in the way":
        place.write_text("")
    else:
        monkeypatch.setenv("YOTA_CACHE_DIR", str(place))
        assert native.build(code(20)).answer() == 20
        # Whoever is root may write in any case.
        monkeypatch.setattr(store.os, "access", lambda path, _: path != place)
    monkeypatch.setenv("YOTA_CACHE_DIR", str(place))
    store._spare.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"cannot be kept in .*cache, .*a folder of your own in YOTA_CACHE_DIR"):
        assert native.build(code(21)).answer() == 21
    monkeypatch.setattr(compiler.Compiler, "compile", lambda *_: pytest.fail("compiled again"))
    assert native.build(code(21)).answer() == 21
    if obstacle == "nothing may be written":
        assert native.build(code(20)).answer() == 20


def test_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("YOTA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert store.folder().name.startswith("yota-")


@needs_compiler
@pytest.mark.parametrize("text", ["", "[]", "{", '[["cc"], 1, []]', '{"a": 1}', '[[], "cc", []]'])
def test_notes_that_are_not_whole_are_made_again(cache: Path, text: str) -> None:
    native.build(code(22))
    (note,) = cache.glob("compiler-*.json")
    note.write_text(text)
    compiler._found.cache_clear()
    assert native.build(code(23)).answer() == 23
    compiler._found.cache_clear()


@needs_compiler
def test_compilers_with_arguments_and_without_openmp(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that takes the flag for OpenMP but has no header of it is used without threads."""
    wrapper = tmp_path / "other cc"
    wrapper.write_text(
        '#!/bin/sh\nfor each in "$@"; do [ "$each" = -xc ] && grep -q omp.h /dev/stdin && exit 1; done\nexec cc "$@"\n'
    )
    wrapper.chmod(0o700)
    monkeypatch.setenv("CC", f"'{wrapper}' -DEXTRA=1")
    found = compiler.find()
    assert found.command == (str(wrapper), "-DEXTRA=1")
    assert "-fopenmp" not in found.flags
    assert native.build(code(24).replace("(24)", "(24 + EXTRA)")).answer() == 25
