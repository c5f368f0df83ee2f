"""`docs/kinks.md` has every rule with a kink, and every end of a domain at which a partial is not finite."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import yota
from yota.rules.registry import registry

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "kinks.md"


def test_every_rule_with_a_kink_is_listed():
    page = PAGE.read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", page))))
    known = registry()
    left = [
        f"{rule.file}:{rule.line} {name}"
        for name in known.names()
        for rule in known.rules(name)
        if rule.kinks
        and not name.startswith("_")
        and not known.is_user(name)
        and not {name, (rule.target or "").rpartition(".")[2]} & words
    ]
    assert left == []


def test_the_table_of_ends_is_what_the_rules_say(request):
    module = runpy.run_path(str(ROOT / "docs" / "kinks.py"))
    page = PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        PAGE.write_text(module["written"](page), encoding="utf-8")
    elif f"SciPy {module['version']()} " not in page:
        pytest.skip("the page was written with another SciPy, whose functions may have other ends")
    else:
        assert module["written"](page) == page, "run `python docs/kinks.py`"


@pytest.mark.parametrize(
    ("function", "point", "slopes"),
    [
        (np.abs, (0.0,), (0.0,)),
        (np.copysign, (0.0, 1.0), (0.0, 0.0)),
        (np.floor_divide, (2.0, 1.0), (0.0, 0.0)),
        (lambda x: np.frexp(x)[0], (0.5,), (1.0,)),
        (np.maximum, (1.0, 1.0), (0.5, 0.5)),
        (np.hypot, (0.0, 0.0), (0.0, 0.0)),
        (np.sqrt, (0.0,), (np.inf,)),
        (np.cbrt, (0.0,), (np.inf,)),
        (np.log, (0.0,), (np.inf,)),
        (np.reciprocal, (0.0,), (-np.inf,)),
        (np.arcsin, (1.0,), (np.inf,)),
        (np.arctan2, (0.0, -1.0), (-1.0, 0.0)),
        (np.power, (-2.0, 3.0), (12.0, np.nan)),
        (np.power, (0.0, 0.0), (0.0, -np.inf)),
        (np.power, (0.0, 2.0), (0.0, 0.0)),
        (np.heaviside, (0.0, 0.5), (0.0, 1.0)),
        (np.sinc, (0.0,), (0.0,)),
        (lambda x: np.max(np.array([x, 1.0])), (1.0,), (0.5,)),
        (lambda x: np.clip(x, 0.0, 1.0), (1.0,), (0.5,)),
        (lambda x: np.linalg.norm(np.array([x, 2 * x])), (0.0,), (0.0,)),
        (lambda x: np.std(np.array([x, 1.0])), (1.0,), (0.0,)),
    ],
)
def test_values_at_kinks(function, point, slopes):
    point = tuple(map(np.float64, point))
    _, g = yota.grad(function, *point)
    assert [float(each) for each in g] == pytest.approx(list(slopes), nan_ok=True)
