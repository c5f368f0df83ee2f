"""The benchmarks run with small arguments, agree on every gradient, and write what they measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bars import judge
from benchmarks.peers import Peer, all_peers
from benchmarks.runner import Settings, WrongGradientError, run_workload
from benchmarks.timing import Call, interleave
from benchmarks.workloads import WORKLOADS

ROOT = Path(__file__).parent.parent
QUICK = Settings(repeats=1, shortest=1e-5, fresh=1, quick=True)


def peers(*names: str) -> list[Peer]:
    return [peer for peer in all_peers(["numpy"]) if peer.name in names]


@pytest.mark.parametrize("name", WORKLOADS)
def test_gradients_agree(name: str) -> None:
    result = run_workload(WORKLOADS[name], peers("plain", "yota", "autograd", "hand"), QUICK)
    assert {"plain", "yota", "autograd"} <= set(result["contenders"])


def test_a_wrong_gradient_is_noticed() -> None:
    wrong = Peer("wrong", lambda _: lambda x: (float(np.sum(x)), 2 * np.ones_like(x)))
    right = Peer("right", lambda _: lambda x: (float(np.sum(x)), np.ones_like(x)))
    with pytest.raises(WrongGradientError, match="gradient of wrong differs by 1"):
        run_workload(WORKLOADS["chain"], [right, wrong], QUICK)


def test_a_missing_library_is_named() -> None:
    absent = Peer("absent", lambda _: None, package="a_library_that_nobody_has")
    result = run_workload(WORKLOADS["linear_form"], [*peers("plain", "yota"), absent], QUICK)
    assert result["skipped"] == {"absent": "a_library_that_nobody_has is not installed"}


def test_timing_takes_turns() -> None:
    order: list[str] = []
    calls = {name: Call(order.append, (name,)) for name in "ab"}
    timings = interleave(calls, repeats=2, shortest=0.0)
    # Two calls each to calibrate, then two rounds, the second in the other order.
    assert order == ["a", "a", "b", "b", "a", "b", "b", "a"]
    assert [timing.loops for timing in timings.values()] == [1, 1]


def test_promises_are_judged() -> None:
    contenders = {"plain": {"median": 1.0}, "yota": {"median": 3.0, "first": 1.0}}
    (judged,) = judge({"workloads": {"chain": {"single": False, "contenders": contenders}}})
    assert judged == {
        "bar": "chain: yota / plain",
        "measured": 3.0,
        "bound": 2.5,
        "at_least": False,
        "kept": False,
    }


def test_command_line_writes_json(tmp_path: Path) -> None:
    written = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "linear_form", "--quick", "--peers", "hand", "--json", str(written)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(written.read_text())
    assert set(results["workloads"]["linear_form"]["contenders"]) == {"plain", "yota", "hand"}
    assert results["machine"]["threads"] == 1
