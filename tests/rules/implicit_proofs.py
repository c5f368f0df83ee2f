"""The proof of an implicit rule of arrays, and the faults that it finds."""

from pathlib import Path

from yota.rules.language.model import Rule
from yota.rules.proof.checker import prove_file
from yota.rules.proof.mutants import detected, mutants
from yota.rules.registry import registry


def proved(folder: Path, text: str, name: str, planted: int) -> Rule:
    """The rule of this name in ``text``, which holds; the proof finds each of so many ``planted`` faults."""
    path = folder / "my.rules"
    path.write_text(f"# yota rules 1\n{text}")
    found = prove_file(path)
    assert found.held, (found.faults, [each for each in found.findings if not each.held])
    laws = [each.law for each in found.findings]
    assert laws.count("adjoint, random directions") == 3 and {"root of the equation", "second order"} <= set(laws)
    known = registry().with_rules(())
    known.define(text)
    (rule,) = known.rules(name)
    faults = [each for each in mutants(rule, known) if "b - (" not in each.change]
    assert len(faults) == planted and all(detected(each, known, 6) for each in faults)
    return rule
