"""Hostile names, docstrings, keys, source lines and texts never reach generated code as code."""

from __future__ import annotations

import ast
import linecache
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import yota
from tests.generated import imported, loaded

PIECES = [
    *('"""', "'''", '"', "'", "\\", "\n", "\r", "\x0c", "\x00", "\u2028", "#", "{", "}", "{{", "%}", "{%", "*/", "??/"),
    *("__import__('os').system('x')", "lambda", "import os", "raise SystemExit", ")", "]", "\t", "\ud800", "\u202e"),
    "x" * 90,
]
HOSTILE = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=6).map("".join)
KEPT = {"__future__", "collections", "math", "typing", "numpy"}


def harmless(text: str) -> None:
    """The text is ASCII, imports nothing more, runs nothing but definitions, and names nothing foreign."""
    assert text.isascii()
    assert imported(text) <= KEPT
    for statement in ast.parse(text).body:
        assert isinstance(
            statement, (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef)
        )
        assert not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Constant)
    called = {
        call.func.id
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    assert not called & {"__import__", "exec", "eval", "open", "system", "SystemExit"}
    loaded(text)


def total(x: Any) -> Any:
    return np.sum(x * 2.0)


def of_table(table: Any) -> Any:
    return sum(np.sum(value) for value in table.values() if not isinstance(value, str))


@settings(max_examples=25)
@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
@example('"""\nimport os\n"""', "\\", "\n\nimport os", "x\\")
def test_texts(name: str, documentation: str, license: str, qualified: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(x * 2.0)

    f.__name__ = name
    f.__doc__ = documentation
    f.__qualname__ = qualified
    f.__module__ = f"module{qualified}"
    harmless(str(yota.generate(f, {"x": "float64[3]"}, license=license, effort="quick")))


@settings(max_examples=20)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_keys_and_fixed_strings(key: str, fixed: str, name: str) -> None:
    table = {key: np.ones(2), "other": 1.0, "fixed": fixed}
    harmless(str(yota.generate(of_table, (table,), name=name or None, effort="quick")))


@settings(max_examples=20)
@given(HOSTILE, HOSTILE)
def test_source_lines_and_file_names(line: str, filename: str) -> None:
    filename = f"<hostile {filename}>"
    body = "    if x[0] > 0:\n        return np.sum(np.exp(x) * 2.0)\n    return np.sum(x)\n"
    source = f"import numpy as np\ndef f(x):\n{body}"
    names: dict[str, Any] = {"__name__": "hostile"}
    exec(compile(source, filename.replace("\x00", ""), "exec"), names)
    shown = [f"{line}\n"] * 5
    linecache.cache[filename.replace("\x00", "")] = (len(source), None, shown, filename)
    harmless(str(yota.generate(names["f"], {"x": "float64[40]"}, effort="quick")))


@settings(max_examples=100)
@given(
    st.lists(st.one_of(st.sampled_from([*PIECES, "float64", "[", "]", "3", "N", ",", "(", "=", ":"])), max_size=12).map(
        "".join
    )
)
def test_specs_give_a_spec_or_an_error_that_points(text: str) -> None:
    from yota.errors import ArgumentError
    from yota.ir.specs import parse

    try:
        parse(text)
    except ArgumentError as fault:
        pointed = str(fault).rstrip().endswith("^") or "characters" in str(fault)
    else:
        pointed = True
    assert pointed


def test_command_lines_survive_a_shell() -> None:
    import subprocess

    from yota.ir.plain_text import shell

    words = ["a b", "it's", "$HOME", "`x`", "n\nl", "\u00e9", "\\"]
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {shell(words)}"], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words
