"""The private cache of compiled code, and what is said when nothing can be compiled."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from yota.emit import render as render_module
from yota.errors import CodegenError, CompilerError
from yota.run.machine import compiler, native, signals, store
from yota.run.machine.c_dispatch import Form, offer, quick

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
        "import numpy, sys, time; from yota.run.machine import compiler, native; start = time.perf_counter(); "
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
    cache = tmp_path / "cache"
    kept = store.Store(cache)
    for name in ("mine.so", "mine.json", "mine.h"):
        (cache / name).write_text("others' files stay")
        os.utime(cache / name, (0, 0))
    (cache / "making-long-ago").mkdir()
    os.utime(cache / "making-long-ago", (0, 0))
    keys = [store.digest_of([str(number)]) for number in range(8)]
    for number, key in enumerate(keys[:6]):
        place = kept.get(key, lambda path: path.write_bytes(b"x") and None)
        os.utime(place, (number, number))
    kept.get(keys[3], lambda _: pytest.fail("it is there"))
    kept.note(f"compiler-{keys[7]}", lambda: "{}")
    kept.get(keys[6], lambda path: path.write_bytes(b"x") and None)
    left = {place.name for place in cache.iterdir() if not place.name.startswith("mine")}
    names = {f"{keys[number]}{suffix}" for number in (3, 6) for suffix in (".so", ".sha256")}
    assert left == {*names, f"compiler-{keys[7]}.json"}
    assert len(list(cache.glob("mine.*"))) == 3
    monkeypatch.setattr(store, "MOST_BYTES", 99)
    kept.get(keys[0], lambda path: path.write_bytes(b"x" * 99) and None)
    assert [place.stem for place in cache.glob("*.so") if place.stem != "mine"] == [keys[0]]


@needs_compiler
def test_four_processes_at_once(cache: Path) -> None:
    script = "import sys; from yota.run.machine import native; print(native.build(sys.stdin.read()).answer())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for _ in range(4)
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
    assert answers == ["5"] * 4
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
    with pytest.raises(CompilerError, match=r"headers of Python, and .*Python.h is missing.*python3-dev"):
        compiler.find()
    monkeypatch.undo()
    monkeypatch.setattr(compiler.np, "get_include", lambda: str(tmp_path))
    with pytest.raises(CompilerError, match=r"headers of NumPy, and .*arrayobject.h is missing.*pip install"):
        compiler.find()
    compiler._found.cache_clear()


@pytest.mark.parametrize("wanted", ["no-such-compiler", "'unclosed", "''", "false", "{broken}"])
def test_numpy_code_where_nothing_compiles(wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning, at the user's line, and the right results."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF of no machine")
    broken.chmod(0o700)
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", wanted.format(broken=broken))
    signals._said.clear()
    quick = yota.value_and_grad(lambda x: np.sum(x**3), target="c")
    quick.clear()
    with pytest.warns(RuntimeWarning, match=r'target="numpy"\. Until then NumPy code runs in its place') as caught:
        value, gradient = quick(np.arange(3.0))
    assert value == 9 and gradient.tolist() == [0, 3, 12]
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick(np.arange(4.0))[0] == 36
        assert "generated by yota for NumPy" in yota.grad(lambda x: x * x, 2.0, target="c", strict=True)[1].source
    signals._said.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(RuntimeWarning):
                yota.grad(lambda x: x * x, 2.0, target="c")


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

    dispatcher = quick(otherwise, build=True)
    assert dispatcher(1.0, a=2) == {"a": 2}
    form = native.build(code(7)).answer
    offer(dispatcher, "one", Form(form, ((float,),), (), None, ()))
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
    assert native.ready_headers(store.Store(cache), compiler.find()) is None


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
    with pytest.warns(
        RuntimeWarning, match=r"cannot be kept in .*cache \(nothing may be .*of your own in YOTA_CACHE_DIR"
    ):
        assert native.build(code(21)).answer() == 21
    monkeypatch.setattr(compiler.Compiler, "compile", lambda *_: pytest.fail("compiled again"))
    assert native.build(code(21)).answer() == 21
    if obstacle == "nothing may be written":
        assert native.build(code(20)).answer() == 20


@needs_compiler
def test_full_disk(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be kept is compiled for this process alone, and that is said once."""
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(shutil, "copyfile", raises(full, shutil.copyfile, cache))
    with pytest.warns(RuntimeWarning, match=r"\(No space left on device\).*; make room there"):
        assert native.build(code(30)).answer() == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native.build(code(31)).answer() == 31
    assert not list(cache.glob("*.so")) and not list(cache.glob("making-*"))
    monkeypatch.setattr(compiler.Compiler, "compile", lambda *_: pytest.fail("compiled again"))
    assert native.build(code(30)).answer() == 30
    # Notes are done without.
    monkeypatch.setattr(tempfile, "TemporaryDirectory", raises(full, tempfile.TemporaryDirectory, cache))
    assert store.Store(cache).note("compiler-" + "0" * 40, lambda: "text") == "text"


@needs_compiler
def test_no_room_for_temporary_files_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CodegenError, match=r"No space left on device. Name a folder with room in TMPDIR"):
        native.build(code(2) + f"/* {os.urandom(8).hex()} */")


def raises(error: OSError, function: Any, where: Path) -> Any:
    """``function``, but not for what lies in the folder ``where``."""

    def call(*args: Any, **keywords: Any) -> Any:
        if any(str(where) in str(each) for each in (*args, *keywords.values())):
            raise error
        return function(*args, **keywords)

    return call


@needs_compiler
def test_folders_that_cannot_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cache"
    monkeypatch.setenv("YOTA_CACHE_DIR", str(place))
    assert native.build(code(32)).answer() == 32
    (kept,) = place.glob("*.so")
    monkeypatch.setattr(store, "_is_foreign", lambda path: path == place)
    with pytest.warns(RuntimeWarning, match=r"cannot be kept in .*cache \(it belongs to another user\)"):
        assert native.build(code(32)).answer() == 32
    assert list(place.glob("*.so")) == [kept] and not store.Store(place).noted(next(place.glob("*.json")).stem)
    monkeypatch.undo()
    link = tmp_path / "link"
    link.symlink_to(place)
    monkeypatch.setenv("YOTA_CACHE_DIR", str(link))
    with pytest.raises(CodegenError, match=r"it is a symbolic link.*YOTA_CACHE_DIR=.*cache$"):
        native.build(code(32))


@needs_compiler
def test_what_goes_while_it_is_loaded_is_made_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get, removed = store.Store.get, []

    def robbed(self: store.Store, *args: Any) -> Path:
        place = get(self, *args)
        if not removed:
            removed.append(place)
            place.unlink()
        return place

    monkeypatch.setattr(store.Store, "get", robbed)
    assert native.build(code(33)).answer() == 33
    assert removed


@needs_compiler
def test_files_that_cannot_be_loaded_are_explained(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_MODULE", "another_name")
    with pytest.raises(CodegenError, match=r"cannot be loaded from .*\.so: .*noexec.*another one in YOTA_CACHE_DIR"):
        native.build(code(34))


def test_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("YOTA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert store.folder().name.startswith("yota-")


def test_templates_are_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    whole = jinja2.Environment.compile

    def compile(self: jinja2.Environment, source: str, *rest: Any) -> Any:
        compiled.append(source)
        return whole(self, source, *rest)

    monkeypatch.setattr(jinja2.Environment, "compile", compile)
    texts = []
    for harm in (False, False, True):
        for file in (cache / "templates").glob("*") if harm else ():
            file.write_text(file.read_text()[:-5])
        render_module._environment.cache_clear()
        texts.append(render_module.render("c/keeper.c.jinja"))
    render_module._environment.cache_clear()
    assert len(set(texts)) == 1
    assert len(compiled) == 2


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
