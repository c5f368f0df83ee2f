"""The laws of the rule language, in the order in which a rule is held against them."""

from __future__ import annotations

from collections.abc import Sequence

from yota.errors import RuleError
from yota.rules.language.model import Rule
from yota.rules.language.rule_text import Source
from yota.rules.laws import linearity, vocabulary
from yota.rules.laws import outline as form
from yota.rules.laws.inspection import Inspection, Law, Registered

LAWS: tuple[Law, ...] = (
    form.plain_names,
    form.ownership,
    form.definition,
    form.non_empty_domain,
    form.form,
    form.reachable,
    form.refusals,
    vocabulary.scope,
    vocabulary.vocabulary,
    vocabulary.closure,
    vocabulary.one_value,
    vocabulary.one_element,
    vocabulary.keywords,
    vocabulary.operands,
    linearity.bounds,
    vocabulary.grounded,
    form.coverage,
    form.several_results,
    linearity.linearity,
)
"""Laws that every rule is held against when it is loaded."""


def check(source: Source, rules: Sequence[Rule], registry: Registered, before: Registered | None = None) -> None:
    """Hold ``rules``, which ``registry`` has already, against `LAWS`; ``before`` is the registry that users extend."""
    _hold(LAWS, source, rules, registry, before)


def prove(source: Source, rules: Sequence[Rule], registry: Registered, before: Registered | None = None) -> None:
    """Hold ``rules`` against the laws that need symbolic mathematics."""
    from yota.rules.laws import agreement

    _hold(agreement.LAWS, source, rules, registry, before)


def _hold(
    laws: Sequence[Law], source: Source, rules: Sequence[Rule], registry: Registered, before: Registered | None
) -> None:
    for rule in rules:
        case = Inspection(source, rule, tuple(rules), registry, before)
        for law in laws:
            law(case)


def faults(
    source: Source, rules: Sequence[Rule], registry: Registered, before: Registered | None = None
) -> tuple[RuleError, ...]:
    """All faults of ``rules``, in their order; of one right-hand side the first, for others may follow from it."""
    from yota.rules.laws import agreement

    found: dict[str, RuleError] = {}
    for rule in rules:
        cases = list(Inspection(source, rule, tuple(rules), registry, before).apart())
        fallen = _fallen(LAWS, cases, found)
        # Nothing can be held against a function that is wrong itself.
        if not any(case.only is side for case in fallen for side in rule.primal.values()):
            _fallen(agreement.LAWS, cases, found)
    return tuple(found.values())


def _fallen(laws: Sequence[Law], cases: list[Inspection], found: dict[str, RuleError]) -> list[Inspection]:
    """Those of ``cases`` that break a law, taken out of the list; their faults by their texts."""
    fallen = []
    for law in laws:
        for case in list(cases):
            try:
                law(case)
            except RuleError as fault:
                found.setdefault(str(fault), fault)
                cases.remove(case)
                fallen.append(case)
    return fallen
