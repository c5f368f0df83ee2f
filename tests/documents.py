"""Documents whose code runs: their blocks, what these print, and the text with its outputs replaced."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yota.tools.cli import main

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
CAPTION = re.compile(r":caption: (\S+)\n\n?")


@dataclass(frozen=True)
class Block:
    """A block: ``python``, ``text`` (what the block before it prints), ``console``, or ``file`` with its name."""

    kind: str
    line: int
    text: str
    name: str = ""


def blocks(document: str) -> list[Block]:
    """The blocks of a document; those of other languages are left out."""
    found = []
    for match in FENCE.finditer(document):
        line = document.count("\n", 0, match.start()) + 2
        caption = CAPTION.match(match[2])
        if match[1].startswith("{code-block}") and caption:
            found.append(Block("file", line, match[2][caption.end() :], caption[1]))
        elif match[1] in ("python", "text", "console"):
            found.append(Block(match[1], line, match[2]))
    return found


def printed(path: Path, scope: dict[str, Any]) -> list[tuple[Block, str]]:
    """What each block that has an output prints: ``text`` with the Python ahead of it, and ``console``."""
    found: list[tuple[Block, str]] = []
    last = ""
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.kind == "file":
            Path(block.name).parent.mkdir(parents=True, exist_ok=True)
            Path(block.name).write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            last = run(path.name, block, scope)
            assert not last or followed(path, block), f"{path.name}:{block.line}: the output is not shown:\n{last}"
        elif block.kind == "text" and last:
            found.append((block, last))
            last = ""
        elif block.kind == "console":
            found.append((block, "".join(session(block.text))))
    return found


def settled(text: str) -> str:
    """What is the same on every machine: where results are worst rounded, and by how much, is not."""
    text = re.sub(r"\d\.\d ulp|, x = -?\d\S*", "", text)
    return re.sub(r" +", " ", text)


def followed(path: Path, block: Block) -> bool:
    """Whether the next block is the output of this one."""
    later = [each for each in blocks(path.read_text(encoding="utf-8")) if each.line > block.line]
    return bool(later) and later[0].kind == "text"


def run(document: str, block: Block, scope: dict[str, Any]) -> str:
    """What a block prints; its lines are known to `linecache`, as those of a file are."""
    name = f"<{document}:{block.line}>"
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(block.text, name, "exec"), scope)
    return stream.getvalue()


def session(text: str) -> Iterator[str]:
    """The commands of a console block, each with what it prints now."""
    lines = text.replace("\\\n", "\\\n\0").splitlines(keepends=True)
    command = ""
    for line in lines:
        if line.startswith("$ ") or (command.endswith("\\\n") and line.startswith("\0")):
            command = line if line.startswith("$ ") else command + line
            if not command.endswith("\\\n"):
                yield command.replace("\0", "")
                yield answer(shlex.split(command[2:].replace("\\\n\0", "")))


def answer(words: list[str]) -> str:
    """What a command prints, to either stream."""
    stream = io.StringIO()
    if words[0] == "yota":
        path = list(sys.path)
        # A console script does not find modules in the current folder by itself.
        sys.path[:] = [folder for folder in path if folder and Path(folder) != Path.cwd()]
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            main(words[1:])
        sys.path[:] = path
        for name in [name for name, module in list(sys.modules.items()) if _is_here(module)]:
            del sys.modules[name]
        return stream.getvalue()
    if words[0] == "python":
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, *words[1:]]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, timeout=60)
        return done.stdout + done.stderr
    if words[0] == "head":
        return "".join(Path(words[3]).read_text(encoding="utf-8").splitlines(keepends=True)[: int(words[2])])
    raise AssertionError(f"no document may run {words[0]}")


def _is_here(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(Path.cwd())


def updated(document: str, outputs: list[tuple[Block, str]]) -> str:
    """The document with the outputs of its blocks replaced."""
    new = {block.line: text for block, text in outputs}

    def replace(match: re.Match[str]) -> str:
        line = document.count("\n", 0, match.start()) + 2
        return f"```{match[1]}\n{new[line]}```\n" if line in new else match[0]

    return FENCE.sub(replace, document)
