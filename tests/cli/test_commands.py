"""The command line: results, errors in one paragraph, exit codes, JSON."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.generated import loaded
from yota.tools.cli import application, main, terminal

ROOT = Path(__file__).parent.parent.parent
MODEL = '''
"""A model."""
import numpy as np
from dataclasses import dataclass

@dataclass
class Params:
    w: object
    b: object

def energy(x, eps=2.0):
    """Energy."""
    return eps * np.sum(x**2)

def dense(p, x):
    return np.sum(np.tanh(p.w * x + p.b))

def failing(x):
    return np.sum(x) + {}["missing"]

number = 3
'''
RULES = '''# yota rules 1
"""Rules for a test."""

@elementwise
def cube(x: Real) -> y:
    y = x * x * x
'''
WRONG = RULES + "    d[y, x] = 2 * x * x\n"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("model", None)


def test_generate_prints_a_module(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "model.py:energy", "--arg", "x=float64[3]"]) == 0
    printed = capsys.readouterr().out
    assert loaded(printed).energy_gradient([1.0, 2.0, 3.0]).tolist() == [4.0, 8.0, 12.0]
    assert "#     yota generate model.py:energy --arg 'x=float64[3]'" in printed
    assert str(model) not in printed


def test_generate_writes_and_checks(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["generate", "model:energy", "-a", "x=float64[3]", "-a", "eps=float", "-o", "energy_grad.py"]
    assert main([*call, "--check"]) == 1
    assert main(call) == 0
    assert main([*call, "--check"]) == 0
    capsys.readouterr()
    (model / "energy_grad.py").write_text((model / "energy_grad.py").read_text().replace("float64", "float32"))
    assert main([*call, "--check"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("--- energy_grad.py (on disk)")
    assert "stale" in captured.err
    assert main([*call, "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["current"] is False


def test_generate_overwrites_nothing_of_others(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["generate", "model:energy", "-a", "x=float64[3]", "-o", "model.py"]
    assert main(call) == 2
    assert "was not written by yota" in capsys.readouterr().err
    assert (model / "model.py").read_text() == MODEL


def test_structures_are_found_in_the_module(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["generate", "model:dense", "--arg", "p=Params(w=float64[3], b=float)", "--arg", "x=float64[3]"]
    assert main(call) == 0
    assert "p_w: npt.NDArray[np.float64]" in capsys.readouterr().out


def test_names_that_had_to_change_are_reported(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "model:energy", "--arg", "x=float64[3]", "--name", "lambda"]) == 0
    captured = capsys.readouterr()
    assert "'lambda' is called lambda_ in the module" in captured.err
    assert "def lambda_(" in captured.out


@pytest.mark.parametrize("stage", ["trace", "reverse", "passes", "plan", "source"])
def test_show(stage: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "model:energy", "--arg", "x=float64[3]", "--stage", stage]) == 0
    wanted = {"plan": "Plan(", "source": "def energy(x"}.get(stage, "Tape of energy")
    assert wanted in capsys.readouterr().out
    assert main(["show", "model:energy", "--arg", "x=float64[3]", "--stage", stage, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operations"]


def test_show_at_some_size(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "model:energy", "--arg", "x=float64[N,3]", "--stage", "trace"]) == 0
    captured = capsys.readouterr()
    assert "inp %1::float64[4,3]" in captured.out
    assert captured.err == "shown at N = 4\n"


def test_rules(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--search", "arctan2"]) == 0
    assert "numpy.arctan2" in capsys.readouterr().out
    assert main(["rules", "exp"]) == 0
    printed = capsys.readouterr().out
    assert "d[y, x] = y" in printed
    assert "np.exp(x0)" in printed
    assert "float64 code, 50 digits" in printed
    assert "on the c target" in printed
    assert "on the cuda target" in printed
    (model / "cube.rules").write_text(RULES.replace("cube", "exp").replace("@elementwise", '@elementwise("numpy.exp")'))
    assert main(["rules", "--rules", "cube.rules", "--json", "--search", "numpy.exp"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["origin"] == "overrides yota's"
    (model / "cube.rules").write_text(RULES)
    capsys.readouterr()
    assert main(["rules", "--rules", "cube.rules", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["origin"] for each in found if each["name"] == "cube"] == ["user"]
    assert not yota.rules.registry.registry().knows("cube")


def test_check(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / "good.rules").write_text(RULES)
    (model / "wrong.rules").write_text(WRONG)
    assert main(["check", "good.rules"]) == 0
    assert "formula exact" in " ".join(capsys.readouterr().out.split())
    assert main(["check", "good.rules", "wrong.rules"]) == 1
    captured = capsys.readouterr()
    assert "wrong.rules:7:" in captured.err
    assert "^" in captured.err
    assert main(["check", "wrong.rules", "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert len(report["faults"]) == 1
    (model / "several.rules").write_text(
        WRONG.replace("cube", "first") + WRONG[WRONG.index("@") :].replace("x * x\n", "lenght(x)\n")
    )
    assert main(["check", "several.rules", "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert [name for name in ("first", "lenght") if any(name in each for each in report["faults"])] == [
        "first",
        "lenght",
    ]
    (model / "written.rules").write_text(RULES + "    d[y, x] = 3 * x * x\n")
    assert main(["check", "written.rules", "--mutants", "--json"]) == 0
    (survey,) = json.loads(capsys.readouterr().out)
    assert survey["found"] == survey["planted"] >= 3
    assert main(["check", str(ROOT / "rules" / "complex.rules")]) == 0


def test_bench(model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    assert main(["bench", "model:energy", "--arg", "x=float64[3]", "--seconds", "0.01", "--json"]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["the function, NumPy"]["ratio"] == 1
    ours = rows["value and gradient, yota"]
    assert ours["ratio"] == pytest.approx(ours["seconds"] / rows["the function, NumPy"]["seconds"])
    assert rows["value and gradient, autograd"]["seconds"] > 0
    peers = importlib.import_module("yota.tools.cli.bench_command")
    monkeypatch.setattr(peers, "PEERS", peers.PEERS[:1])
    assert main(["bench", "model:energy", "--arg", "x=float64[3]", "--seconds", "0.01"]) == 0
    printed = capsys.readouterr().out
    assert "ratio" in printed
    assert "autograd" in printed
    assert main(["bench", "model:energy", "--arg", "x=float64[N]"]) == 2
    assert "give the extent N as a number" in capsys.readouterr().err


def test_bench_times_no_peer_that_disagrees(model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    peers = importlib.import_module("yota.tools.cli.bench_command")

    def refuses(*_: Any) -> Any:
        raise TypeError("not this one")

    wrong = (
        peers.Peer("autograd", lambda f, positions, args: lambda: (0.0, (np.zeros(3),))),
        peers.Peer("autograd", refuses),
    )
    monkeypatch.setattr(importlib.import_module("yota.tools.cli.bench_command"), "PEERS", wrong)
    assert main(["bench", "model:energy", "--arg", "x=float64[3]", "--seconds", "0.01"]) == 0
    captured = capsys.readouterr()
    assert "autograd" not in captured.out
    assert "its gradient differs, so it is not timed" in captured.err
    assert "cannot run it (TypeError: not this one)" in captured.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_code_on_a_terminal_is_coloured_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    content = f"def f(x):\n    return {' + '.join(['x'] * 40)}\n"
    terminal.code(content)
    printed = sys.stdout.getvalue()
    assert "\x1b[" in printed
    assert re.sub("\x1b.*?m", "", printed) == content
    # What has no colour of its own has that of the terminal's text, dark or light.
    assert re.search("\x1b\\[49m[^\x1b]*x [+] x", printed)


def test_progress_is_shown_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(terminal.steps([1, 2, 3], "counting")) == [1, 2, 3]
        with terminal.working("thinking"):
            pass
        assert ("counting" in stream.getvalue()) is shown
        assert ("thinking" in stream.getvalue()) is shown


def test_completion(model: Path) -> None:
    completion = importlib.import_module("yota.tools.cli.user_function")
    assert completion.functions("mod") == ["model.py:"]
    assert completion.functions("model.py:e") == ["model.py:energy"]
    assert completion.functions("none.py:e") == []
    (model / "broken.py").write_text("raise SystemExit(")
    assert completion.functions("broken.py:") == []
    assert "arctan2" in completion.primitives("arct")
    answers = run(env={"_YOTA_COMPLETE": "complete_bash", "COMP_WORDS": "yota show --st", "COMP_CWORD": "2"}, cwd=model)
    assert answers.stdout.split() == ["--stage", "--strict"]
    answers = run(
        env={"_YOTA_COMPLETE": "complete_bash", "COMP_WORDS": "yota generate --target c", "COMP_CWORD": "3"}, cwd=model
    )
    assert answers.stdout.split() == ["c", "cuda"]
    assert "_YOTA_COMPLETE" in run("--show-completion", "bash").stdout


def test_without_arguments_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "Usage: yota" in captured.out
    assert captured.err == ""


def test_names_do_not_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "\x1b[31mred\x07.py:f"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_report(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["report", "model:energy", "--arg", "x=float64[3]"]
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("<!doctype html>")
    assert main([*call, "-o", "energy.html"]) == 0
    assert (model / "energy.html").read_text() == printed
    assert main([*call, "-o", "energy.html", "--json"]) == 0
    capsys.readouterr()
    assert main([*call, "-o", "model.py"]) == 2
    assert "was not written by yota" in capsys.readouterr().err
    assert (model / "model.py").read_text() == MODEL


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["show", "model:nothing"], 2, "model has no function 'nothing'; it has Params, energy, dense, failing"),
        (["show", "model:enregy"], 2, "did you mean 'energy'?"),
        (["show", "modle:energy"], 2, "there is no module 'modle' here"),
        (["show", "none.py:energy"], 2, "there is no file none.py"),
        (["show", "energy"], 2, "write pkg.mod:f or path/to/file.py:f"),
        (["show", "model:number"], 2, "model:number is a int, not a function"),
        (["show", "model:energy"], 2, "misses a spec of its argument 'x'"),
        (["show", "model:energy", "-a", "x"], 2, "not of the form name=spec"),
        (["show", "model:energy", "-a", "x=float", "-a", "x=float"], 2, "gives 'x' twice"),
        (["show", "model:energy", "-a", "x=float46[3]"], 2, "'float46' is not a dtype"),
        (["show", "model:energy", "-a", "x=float64[3]", "--stage", "middle"], 2, "--stage"),
        (["show", "model:failing", "-a", "x=float64[3]"], 1, "KeyError: 'missing'\n    model.py:19: return np.sum"),
        (["generate", "model:energy", "-a", "x=float64[3]", "--check"], 2, "--check needs -o FILE"),
        (["generate", "model:energy", "-a", "x=float64[3]", "--target", "x"], 2, "'--target': 'x' is not one of"),
        (["generate", "model:energy", "-a", "x=float64[3]", "--with", "x"], 2, "'--with': 'x' is not one of 'value', "),
        (["generate", "model:energy", "-a", "x=float64[3]", "--extension"], 2, "--extension goes with --target c"),
        (
            ["show", "model:energy", "-a", "x=float64[3]", "--rules", "none.rules"],
            2,
            "none.rules: there is no such file",
        ),
        (["rules", "pwer"], 2, "near it are power"),
        (["check", "none.rules"], 2, "there is no file none.rules"),
        (["nonsense"], 2, "No such command 'nonsense'"),
    ],
)
def test_errors_are_one_paragraph(
    words: list[str], code: int, message: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("error: ")
    assert "Traceback" not in captured.err and "Value error" not in captured.err
    assert captured.out == ""


def test_the_caret_is_under_the_fault(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "model:energy", "--arg", "x=[float64[3], flot]"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[1][lines[2].index("^") :].startswith("flot")


def test_traceback_on_request(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "model:failing", "-a", "x=float64[3]", "--traceback"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_modules_that_do_not_import(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / "broken.py").write_text("import numpy\nnumpy.nothing_of_the_kind\n")
    assert main(["show", "broken:f"]) == 1
    assert "importing broken raised AttributeError" in capsys.readouterr().err
    assert main(["show", "broken.py:f"]) == 1
    assert "broken.py:2" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["generate"], ["show"], ["report"], ["rules"], ["check"], ["bench"]])
def test_help_teaches_by_example(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*command, "--help"]) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    text = inspect.getdoc(getattr(application, command[0])) if command else application._HELP
    assert text is not None
    examples = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    assert any(each.startswith(f"yota {' '.join(command)}".strip()) for each in examples)
    # None of them runs on into the next.
    assert all(each in shown for each in examples), [each for each in examples if each not in shown]


def run(*words: str, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "", **(env or {})}
    words = (sys.executable, "-m", "yota", *words)
    return subprocess.run(words, capture_output=True, text=True, env=environment, check=False, timeout=60, **options)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The console script, as an installer writes it: its folder is on the path, the current one is not."""
    place = tmp_path / "bin" / "yota-script"
    place.parent.mkdir()
    (entry,) = re.findall(r'^yota = "(.*):(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    place.write_text(f"import sys\nfrom {entry[0]} import {entry[1]}\nsys.exit({entry[1]}())\n")
    return place


def scripted(script: Path, *words: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT}" if path else str(ROOT)}
    call = [sys.executable, str(script), *words]
    return subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=60, cwd=cwd)


def test_the_console_script_finds_modules_in_the_current_folder(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "bumps.py").write_text("def bump(x):\n    return 1 / (1 + x * x)\n")
    head = '# yota rules 1\n"""Bumps."""\n\n@elementwise("bumps.bump")\n'
    (here / "bumps.rules").write_text(f"{head}def bump(x: Real) -> y:\n    y = 1 / (1 + x * x)\n")
    done = scripted(script, "check", "bumps.rules", "--import", "bumps", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "0 faults of the language, 0 of mathematics" in done.stdout
    # The same in this process, in which each command takes a fraction of the time.
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["rules", "bump", "--rules", "bumps.rules"]) == 0
    shown = capsys.readouterr().out
    assert "not measured" in shown and "held" not in shown
    assert main(["rules", "bump", "--rules", "bumps.rules", "--import", "bumps"]) == 0
    shown = capsys.readouterr().out
    assert "formula" in shown and "held" in shown
    assert main(["check", "bumps.rules", "--import", "bmups"]) == 2
    assert "there is no module 'bmups' here" in capsys.readouterr().err
    assert main(["show", "bumps:bump", "--arg", "x=float64[3]", "-s", "trace"]) == 0
    del sys.modules["bumps"]


def test_without_its_packages_the_command_says_what_to_install(script: Path, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')\n")
    done = scripted(script, "--version", cwd=tmp_path, path=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == "error: the command line needs typer; install it: pip install 'yota-ad[cli]'\n"


def test_python_m_yota_is_the_same(model: Path) -> None:
    done = run("generate", "model:energy", "--arg", "x=float64[3]", cwd=model)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert run("show", "model:nothing", cwd=model).returncode == 2
    assert run("--version").stdout == f"yota {yota.__version__}\n"


def test_import_stays_light() -> None:
    code = "import sys, yota; print(sorted({'typer', 'rich', 'jinja2', 'sympy', 'numpy'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[]\n"
