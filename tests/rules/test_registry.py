"""The registry: primitives by name and by function, overriding, files, threads, and how quickly it is there."""

import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import scipy.special

from tests.proof.test_shipped import KNOWN
from yota._resources import folder
from yota.errors import MissingRuleError, RuleError
from yota.ir.catalog import primitive
from yota.rules.language.rule_text import show
from yota.rules.language.statics import STATIC_FUNCTIONS
from yota.rules.language.syntax import parse
from yota.rules.laws import agreement
from yota.rules.laws import all_laws as laws
from yota.rules.laws.inspection import Inspection
from yota.rules.macros import MACROS
from yota.rules.registry import Registry, registry


@pytest.fixture
def known():
    return registry().copy()


def test_built_in_primitives_are_those_of_the_catalog(known):
    for name in ("exp", "matmul", "getitem", "astype", "where", "sum", "einsum", "less"):
        assert known.primitive(name) is primitive(name)


def test_elementwise_rules_belong_to_elementwise_primitives(known):
    for name in known.names():
        for rule in known.rules(name):
            if rule.kind == "elementwise" and name != "round":
                made = known.primitive(name)
                assert made.elementwise or made.several == "elementwise", name


@pytest.mark.parametrize(
    "function", [np.exp, np.matmul, np.linalg.solve, np.where, np.absolute, np.conj, np.max, np.amax]
)
def test_find(known, function):
    found = known.find(function)
    assert found is None if function is np.amax and np.amax is not np.max else found.function is not None


def test_find_knows_nothing_of_other_functions(known):
    assert known.find(len) is None
    assert known.find(np.sort) is None
    assert known.find(object()) is None


def test_targets_are_not_imported():
    code = (
        "import sys; from yota.rules.registry import registry\n"
        "r = registry().copy()\n"
        "r.define('@elementwise(\"statistics.mean\")\\ndef mean(x: Real) -> y:\\n    d[y, x] = 1')\n"
        "assert 'statistics' not in sys.modules and 'scipy' not in sys.modules\n"
        "assert r.user_targets() == ()\n"
        "before = r.primitive('erf')\n"
        "assert not before.semantics.ufunc and 'scipy' not in sys.modules\n"
        "import statistics\n"
        "assert r.find(statistics.mean).function is statistics.mean\n"
        "assert [each.name for each in r.user_targets()] == ['mean']\n"
        "import scipy.special\n"
        "assert r.find(scipy.special.erf) is before and before.name == 'erf'\n"
        "assert before.semantics.ufunc and before.semantics.quiet and before.semantics.owns\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_parsing_all_shipped_rules_needs_no_sympy():
    code = (
        "import sys; import yota.rules.registry as R; known = R.Registry.shipped()\n"
        "assert all(known.rules(name) for name in known.names())\n"
        "assert 'sympy' not in sys.modules and 'mpmath' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_shipped_rules_obey_all_laws():
    known, measured = registry(), {(rule.file, rule.line) for rule in KNOWN}
    for path in sorted(folder("rules").rglob("*.rules")):
        source, rules = parse(path.read_text(), path.name, header=True)
        laws.check(source, rules, known)
        for rule in rules:
            # Partials are measured once: most of them in tests/proof/test_shipped.py, the others here.
            for law in agreement.LAWS:
                if law is not agreement.agreement or (rule.file, rule.line) not in measured:
                    law(Inspection(source, rule, rules, known, None))


def test_missing_rule_has_one_to_paste(known):
    with pytest.raises(MissingRuleError) as caught:
        known.rule("nextafter", (1, 1))
    text = str(caught.value).partition("\n\n")[2]
    assert text.startswith('@elementwise("numpy.nextafter")\ndef nextafter(x0: Real, x1: Real) -> y:\n')
    filled = text.replace("...", "0")
    assert known.define(filled).name == "nextafter"


def test_patterns_choose_the_rule(known):
    assert [
        len(known.rule("matmul", counts).operands[1].domain.dimensions) for counts in [(1, 1), (2, 2), (3, 2), (1, 3)]
    ] == [1, 2, 2, 4]
    with pytest.raises(MissingRuleError, match="no rule for matmul with operands of 0, 1 axes"):
        known.rule("matmul", (0, 1))


def test_user_overrides_shipped(known):
    before = known.revision, known.digest()
    known.define('@elementwise("numpy.sin")\ndef sin(x: Real) -> y:\n    d[y, x] = 1 * cos(x)')
    assert show(known.partial(known.rules("sin")[0], "x")) == "1 * cos(x)"
    assert known.primitive("sin") is primitive("sin")
    assert known.revision == before[0] + 1
    assert known.digest() != before[1]
    assert show(registry().partial(registry().rules("sin")[0], "x")) == "cos(x)"


def test_user_overrides_one_pattern(known):
    known.define(
        '@tensor("numpy.matmul")\ndef matmul(a: Array[k], b: Array[k]) -> y:\n    d[a] = b * d[y]\n    d[b] = a * d[y]'
    )
    assert len(known.rules("matmul")) == len(registry().rules("matmul"))
    assert show(known.rule("matmul", (1, 1)).adjoints["a"]) == "b * d[y]"
    assert known.rule("matmul", (2, 2)) is registry().rule("matmul", (2, 2))


def test_a_rule_of_the_user_can_be_written_again(known):
    for factor in (2, 3):
        made = known.define(f"@elementwise\ndef f(x: Real) -> y:\n    y = {factor} * x")
        assert made.function(2.0) == 2.0 * factor


def test_function_by_its_primal(known):
    made = known.define(
        "@elementwise\ndef ramp(x: Real, *, slope: Static = 0.1) -> y:\n    y = where(x > 0, x, slope * x)"
    )
    x = np.array([-1.0, 2.0], np.float32)
    assert made.target is None
    assert made.elementwise
    assert made.function(x).tolist() == [np.float32(-0.1), 2.0]
    assert made.function(x, slope=0.5).tolist() == [-0.5, 2.0]
    assert made.function(x).dtype == np.float32
    with pytest.raises(RuleError, match="no keyword"):
        made.function(x, slant=1)


def test_several_at_once(known):
    first, second = known.define(
        "@elementwise\ndef f(x: Real) -> y:\n    y = g(x) + 1\n\n@elementwise\ndef g(x: Real) -> y:\n    y = x * x"
    )
    assert (first.name, second.name) == ("f", "g")
    assert first.function(3.0) == 10.0


def test_functions_of_the_user_are_intercepted(known):
    module = types.ModuleType("some_physics")
    module.energy = lambda x: x * x
    sys.modules["some_physics"] = module
    try:
        before = known.user_targets()
        known.define('@elementwise("some_physics.energy")\ndef energy(x: Real) -> y:\n    d[y, x] = 2 * x')
        (added,) = (each for each in known.user_targets() if each not in before)
        assert added.name == "energy" and added.function is module.energy
        assert known.find(module.energy) is known.primitive("energy")
    finally:
        del sys.modules["some_physics"]


def test_a_function_defined_again_keeps_its_rule(known):
    module = types.ModuleType("notebook")
    sys.modules["notebook"] = module
    try:
        for _ in range(2):
            exec("def f(x): return x * x", vars(module))
            known.define('@elementwise("notebook.f")\ndef f(x: Real) -> y:\n    d[y, x] = 2 * x')
        exec("def f(x): return x ** 2", vars(module))
        assert known.find(module.f).name == "f"
        inner = types.FunctionType(module.f.__code__, {}, "f")
        inner.__module__, inner.__qualname__ = "notebook", "f"
        assert known.find(inner) is None
    finally:
        del sys.modules["notebook"]


def test_the_example_of_the_design(known):
    text = """
        @elementwise("scipy.special.expit")
        def logistic(x: Complex) -> y:
            y = 1 / (1 + exp(-x))                 # primal
            d[y, x] = y * logistic(-x)            # partial of one element

        @elementwise("numpy.power")
        def power(x: Real(0, oo), p: Real) -> y:
            d[y, x] = p * power(x, p - 1)
            d[y, p] = y * log(x)

        @tensor("numpy.matmul")
        def matmul(a: Array[..., m, k], b: Array[..., k, n]) -> y:
            d[a] = unbroadcast(matmul(d[y], adjoint(b)), shape(a))
            d[b] = unbroadcast(matmul(adjoint(a), d[y]), shape(b))

        @nodiff("numpy.argmax")
        def argmax(x: Array, *, axis: Static = None, keepdims: Static = False) -> y: ...
    """
    logistic, *_ = known.define(text)
    assert logistic.name == "logistic"
    assert len(known.rules("matmul")) == 6  # five shipped patterns have a vector in them

    assert known.find(scipy.special.expit) is logistic
    assert logistic.function is scipy.special.expit


def test_load_file_and_folder(known, tmp_path):
    (tmp_path / "one.rules").write_text(
        '# yota rules 1\n"""One."""\n\n@elementwise\ndef one(x: Real) -> y:\n    y = x\n'
    )
    (tmp_path / "two.rules").write_text(
        "# yota rules 1\n@elementwise\ndef two(x: Real) -> y:\n    y = one(x) * 2\n", newline="\r\n"
    )
    rules = known.load(tmp_path)
    assert [rule.name for rule in rules] == ["one", "two"]
    assert rules[0].file.endswith("one.rules")
    assert rules[0].source.startswith("@elementwise")
    assert known.primitive("two").function(2.0) == 4.0


def test_nothing_is_taken_in_from_a_text_with_a_fault(known):
    with pytest.raises(RuleError):
        known.define(
            "@elementwise\ndef f(x: Real) -> y:\n    y = x\n\n@elementwise\ndef g(x: Real) -> y:\n    y = h(x)"
        )
    assert not known.knows("f")


def test_an_indented_text(known):
    assert (
        known.define("\n        @elementwise\n        def f(x: Real) -> y:\n            y = x * 2\n    ").function(2.0)
        == 4.0
    )


def test_many_threads(known):
    faults = []

    def work(number):
        try:
            made = known.define(f"@elementwise\ndef f{number}(x: Real) -> y:\n    y = {number + 2} * x * sin(x)")
            known.partial(known.rules(made.name)[0], "x")
            assert known.find(np.exp) is primitive("exp")
        except BaseException as fault:  # noqa: BLE001  (a thread's fault is shown by the test)
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert all(known.knows(f"f{number}") for number in range(8))


def test_an_empty_registry_knows_nothing():
    assert Registry().names() == ()


def test_the_rules_of_the_readme(known):
    text = (folder("rules") / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    names = [each.name for each in known.define(text)]
    implicit, others = ["kepler", "equilibrium", "diffusion"], ["matmul", "qr", "concatenate", "solver_vjp", "argmax"]
    assert names == ["exp", "softsign", *implicit, *others]
    assert show(known.partial(known.rules("softsign")[0], "x")).startswith("1 / (absolute(x) + 1)")


def test_the_readme_names_all_that_a_body_may_call():
    text = (folder("rules") / "README.md").read_text()
    assert [name for name in (*MACROS, *STATIC_FUNCTIONS) if f"`{name}(" not in text and f"`{name}`" not in text] == []


def test_derived_partials_follow_what_is_overridden(monkeypatch):
    monkeypatch.setattr(np, "my_slope", lambda x: 3 * x, raising=False)
    known = registry().copy()
    rule = '@elementwise("numpy.my_slope")\ndef my_slope(x: Real) -> y:\n    d[y, x] = {}'
    known.define(rule.format(1))
    known.define("@elementwise\ndef with_slope(x: Real) -> y:\n    y = my_slope(x) * x")
    twice = known.rules("with_slope")[0]
    assert show(known.partial(twice, "x")) == "x + my_slope(x)"
    before = known.copy()
    known.define(rule.format(3))
    assert show(known.partial(twice, "x")) == "3 * x + my_slope(x)"
    assert show(before.partial(twice, "x")) == "x + my_slope(x)"
