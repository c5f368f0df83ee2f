"""The README's code runs and prints what the README says it prints."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[int, str, str]]:
    """``(line, code, expected output)`` of each Python block; what follows it as text is its output."""
    text = README.read_text(encoding="utf-8")
    found: list[tuple[int, str, str]] = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        if match[1] == "python":
            found.append((line, match[2], ""))
        elif match[1] == "text" and found:
            found[-1] = (*found[-1][:2], match[2])
    return found


def run(line: int, code: str, scope: dict[str, Any]) -> str:
    """What a block prints; its lines are known to `linecache`, as those of a file are."""
    name = f"<README.md:{line}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), scope)
    return printed.getvalue()


def with_outputs(printed: list[str]) -> str:
    """The README with each block's output replaced by what was printed."""
    outputs = iter(printed)
    current = ""

    def replace(match: re.Match[str]) -> str:
        nonlocal current
        if match[1] == "python":
            current = next(outputs)
        elif match[1] == "text" and current:
            printed_here, current = current, ""
            return f"```text\n{printed_here}```\n"
        return match[0]

    return BLOCK.sub(replace, README.read_text(encoding="utf-8"))


def test_code_prints_what_the_readme_says(request: pytest.FixtureRequest) -> None:
    scope: dict[str, Any] = {"__name__": "readme"}
    found = blocks()
    printed = [run(line, code, scope) for line, code, _ in found]
    if request.config.getoption("--update-golden", default=False):
        README.write_text(with_outputs(printed), encoding="utf-8")
        return
    for (line, _, expected), output in zip(found, printed, strict=True):
        assert output == expected, f"README.md:{line}"


def test_there_is_code_to_run() -> None:
    assert len(blocks()) >= 5
