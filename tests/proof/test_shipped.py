"""Every shipped rule is proved, as `yota check rules` does it; `YOTA_PROOF=full` measures at more points."""

import os
import warnings
import zlib

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special  # noqa: F401  (its functions are looked up among loaded modules)

from yota.rules.laws.trials import direction_error
from yota.rules.laws.vocabulary import callees
from yota.rules.proof import adjoints, conventions, mutants, partials
from yota.rules.proof.adjoints import layouts, second_order
from yota.rules.proof.mutants import without_effect
from yota.rules.registry import registry

REGISTRY = registry()
FULL = os.environ.get("YOTA_PROOF") == "full"
RULES = [
    rule
    for name in REGISTRY.names()
    for rule in REGISTRY.rules(name)
    if rule.kind != "nodiff" and not REGISTRY.is_user(name)
]
ELEMENTWISE = [rule for rule in RULES if rule.kind == "elementwise"]
# What mpmath lacks is held against differences in tests/rules/test_special_waves.py.
LACKING = ("several", "waves", "distributions", "inverses", "kelvin", "shapes")
KNOWN = [
    rule
    for rule in ELEMENTWISE
    if not rule.file.startswith(tuple(f"special_{name}" for name in LACKING))
    and not any(callees(each) & {"_gamma_slope", "_beta_slope"} for each in rule.partials.values())
]
# Those of other libraries' functions are held against these libraries in tests/interop, of solvers in tests/solvers.
OTHERS = ("item", "linalg_eigh", "hosted", "hosted_vjp", "regular")
# What nothing determines has no adjoint.
FULL_FACTORS = ("full_svd", "full_qr")
TENSOR = [rule for rule in RULES if rule.kind == "tensor" and rule.name not in (*OTHERS, *FULL_FACTORS)]


def label(rule):
    return f"{rule.name}-{rule.line}"


def is_special(rule):
    return rule.file.startswith("special_")


def chosen(rule, one_of):
    """A part of the special functions, which are many; the same at each run."""
    return FULL or not is_special(rule) or zlib.crc32(rule.name.encode()) % one_of == 0


def hold(findings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(findings)
    assert [each for each in found if not each.held] == []
    return found


@pytest.mark.parametrize("rule", KNOWN, ids=label)
def test_formulas(rule):
    hold(partials.formulas(rule, REGISTRY, 12 if FULL else 2 if is_special(rule) else 5))
    hold(conventions.kinks(rule, REGISTRY))
    if chosen(rule, 10):
        hold(conventions.ends(rule, REGISTRY))
    hold(adjoints.complex_directions(rule, REGISTRY))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rule", [rule for rule in KNOWN if chosen(rule, 4)], ids=label)
def test_generated_code_keeps_its_digits(rule, dtype):
    hold(partials.generated(rule, REGISTRY, 24 if FULL else 3 if is_special(rule) else 8, dtype))


@pytest.mark.parametrize("rule", [rule for rule in KNOWN if chosen(rule, 20)], ids=label)
def test_layouts_and_second_order(rule):
    hold(layouts(rule, REGISTRY))
    hold(second_order(rule, REGISTRY))


@pytest.mark.parametrize("rule", TENSOR, ids=label)
def test_adjoints(rule):
    found = hold(adjoints.directions(rule, REGISTRY))
    assert found
    assert not any(each.note for each in found)
    hold(adjoints.types(rule, REGISTRY))


@pytest.mark.parametrize("rule", TENSOR if FULL else TENSOR[::8], ids=label)
def test_generated_adjoints(rule):
    hold(adjoints.code(rule, REGISTRY))
    hold(second_order(rule, REGISTRY))


@pytest.mark.parametrize("rule", [rule for rule in (*KNOWN, *TENSOR) if chosen(rule, 3)], ids=label)
def test_the_tests(rule):
    """Of the faults planted in a rule each is found that has an effect; one of them, or all if asked for."""
    planted = list(mutants.mutants(rule, REGISTRY))
    kept = planted if FULL else [planted[zlib.crc32(str(rule.line).encode()) % len(planted)]] if planted else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mutant in kept:
            assert mutants.detected(mutant, REGISTRY) or without_effect(mutant, rule, REGISTRY), str(mutant)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_whatever_the_direction(seed):
    rule = REGISTRY.rule("matmul", (2, 2))
    operands = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for position in range(2):
        assert direction_error(rule, position, operands, {}, REGISTRY, seed) < 1e-8
