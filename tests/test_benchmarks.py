"""The benchmarks run with small arguments, agree on every gradient, and write what they measured."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from benchmarks.bars import judge
from benchmarks.first import show_first
from benchmarks.formulas import FORMULAS, Formula
from benchmarks.hand import terms
from benchmarks.launches import measure_launches
from benchmarks.machine import describe_gpu
from benchmarks.markdown import markdown
from benchmarks.peers import Peer, all_peers
from benchmarks.roofline import estimate
from benchmarks.runner import Settings, WrongGradientError, prepare, run_workload
from benchmarks.solvers import CASES, Case, measure_solvers, show_solvers
from benchmarks.timing import Call, interleave
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.gpu import GPU_WORKLOADS
from tests.cuda.device import device
from tests.cuda.hosted import needs_compiler
from tests.cuda.nvrtc import compiled, needs_nvrtc
from yota.run.machine.cupy import cupy

__all__ = ["device"]

ROOT = Path(__file__).parent.parent
QUICK = Settings(repeats=1, shortest=1e-5, fresh=0, quick=True)


def peers(*names: str) -> list[Peer]:
    return [peer for peer in all_peers(["numpy"]) if peer.name in names]


@pytest.mark.parametrize("name", WORKLOADS)
def test_gradients_agree(name: str) -> None:
    result = run_workload(WORKLOADS[name], peers("plain", "yota", "autograd", "hand"), QUICK)
    assert {"plain", "yota", "autograd"} <= set(result["contenders"])


@pytest.mark.parametrize("name", ["gpu_harmonics", "gpu_lennard_jones", "gpu_mixture", "gpu_autoencoder"])
def test_what_a_gpu_is_for_is_right(name: str) -> None:
    found = run_workload(GPU_WORKLOADS[name], peers("plain", "yota"), QUICK)
    assert set(found["contenders"]) == {"plain", "yota"}


@pytest.fixture
def same_precision() -> Iterator[None]:
    """Cases with JAX set its precision for the process; other tests need it as it was."""
    if importlib.util.find_spec("jax") is None:
        yield
        return
    import jax

    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.usefixtures("same_precision")
@needs_compiler
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_functions_that_call_solvers(case: Case, capsys: Any) -> None:
    # Diffrax compiles for ten seconds; the other peers hold yota against as much.
    cheap = replace(
        case, make=lambda quick: {name: call for name, call in case.make(quick).items() if name != "diffrax"}
    )
    found = measure_solvers((cheap,), quick=True)
    assert found[case.name]["seconds"]["yota"] > 0
    assert all(apart < 1e-4 for apart in found[case.name]["apart"].values())
    show_solvers(found)
    assert case.name in capsys.readouterr().out


@needs_compiler
@pytest.mark.parametrize("name", ["gpu_terms", "gpu_lennard_jones"])
def test_who_has_a_gpu_takes_part(device: Any, name: str) -> None:
    others = [peer for peer in all_peers(["cuda"]) if peer.package == "cupy"]
    # The stand-in is no package that could be found.
    found = run_workload(GPU_WORKLOADS[name], [replace(peer, package="numpy") for peer in others], QUICK)
    hand = {"hand cuda"} if name == "gpu_terms" else set()
    assert set(found["contenders"]) == {"yota cuda"} | hand
    full = Settings(repeats=1, shortest=1e-5, fresh=1)
    slow = prepare(Peer("slow", lambda _: None), replace(GPU_WORKLOADS[name], arguments=lambda _: ()), (), full)
    assert slow == "has no GPU to do this on"


@needs_compiler
def test_launches_are_measured(device: Any) -> None:
    found = measure_launches(QUICK)
    assert set(found) == {f"{way}{end}" for way in ("call", "graph", "kernels") for end in ("", ", waited for")}


def test_results_from_a_gpu_have_its_name(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = describe_gpu()
    assert found is not None
    assert found["name"] == "the host" and found["architecture"] == "9.0" and found["gigabytes"] == 3.0
    monkeypatch.setattr(device.cuda.runtime, "getDeviceCount", lambda: 0)
    cupy.cache_clear()
    assert describe_gpu() is None


@needs_nvrtc
def test_the_kernel_by_hand_compiles() -> None:
    found = compiled(terms.source(), "compute_90")
    assert found.succeeded and not found.log, found.log[:2000]


def test_the_roofline_grows_with_the_points() -> None:
    one, two = (estimate(GPU_WORKLOADS["gpu_chain"], points) for points in (10**8, 2 * 10**8))
    # The numbers are read, and the gradient written.
    assert one.bytes == pytest.approx(16e8, rel=1e-3) and two.bytes == pytest.approx(32e8, rel=1e-3)
    assert estimate(GPU_WORKLOADS["gpu_autoencoder"], 100).operations > 2 * 3 * 100 * 784 * 400


def test_a_wrong_gradient_is_noticed() -> None:
    wrong = Peer("wrong", lambda _: lambda x: (float(np.sum(x)), 2 * np.ones_like(x)))
    right = Peer("right", lambda _: lambda x: (float(np.sum(x)), np.ones_like(x)))
    with pytest.raises(WrongGradientError, match="gradient of wrong differs by 1"):
        run_workload(WORKLOADS["chain"], [right, wrong], QUICK)


def test_a_missing_library_is_named() -> None:
    absent = Peer("absent", lambda _: None, package="a_library_that_nobody_has")
    result = run_workload(WORKLOADS["linear_form"], [*peers("plain", "yota"), absent], replace(QUICK, fresh=1))
    assert result["skipped"] == {"absent": "a_library_that_nobody_has is not installed"}
    assert result["contenders"]["plain"]["first"] is None and result["contenders"]["yota"]["first"] > 0


def test_timing_takes_turns() -> None:
    order: list[str] = []
    calls = {name: Call(order.append, (name,)) for name in "ab"}
    timings = interleave(calls, repeats=2, shortest=0.0)
    # Four calls each to calibrate, then two rounds, the second in the other order.
    assert "".join(order) == "aaaa" + "bbbb" + "ab" + "ba"
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


@pytest.mark.parametrize("name", ["numpy", "c"])
def test_the_tables_of_the_readme_are_those_of_the_results(name: str) -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / f"{name}-intel-xeon.json").read_text(encoding="utf-8"))
    table, machine = markdown(results).split("\n\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert table in readme and machine.partition(";")[0] in readme


def test_command_line_writes_json(tmp_path: Path) -> None:
    written = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "linear_form", "--quick", "--peers", "hand", "--json", str(written)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(written.read_text())
    assert set(results["workloads"]["linear_form"]["contenders"]) == {"plain", "yota", "hand"}
    assert results["machine"]["threads"] == 1


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.name)
def test_formulas_have_a_gradient_at_their_points(formula: Formula) -> None:
    point = formula.point()
    value, gradient = yota.value_and_grad(lambda x: formula.function(np, x))(point)
    moves = 1e-7 * np.eye(len(point))
    steps = [formula.function(np, point + move) - formula.function(np, point - move) for move in moves]
    np.testing.assert_allclose(value, formula.function(np, point), rtol=1e-12)
    np.testing.assert_allclose(gradient, np.array(steps) / 2e-7, rtol=1e-5, atol=1e-5 * np.max(np.abs(gradient)))


def test_the_distribution_of_first_gradients_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_first({"slow": {"yota": 3.0, "jax": 1.0}, "fast": {"yota": 1.0, "jax": 4.0}})
    shown = capsys.readouterr().out
    assert "median 1.62" in shown
    assert "slower than JAX 50 %" in shown
    assert shown.index("slow: 3000 ms") < shown.index("fast: 1000 ms")
