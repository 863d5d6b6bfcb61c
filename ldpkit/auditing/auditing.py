"""The audit of a question: its mechanism, the hardest pairs of answers, exact laws, and events."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import permutations
from math import inf
from typing import Any

from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Mechanism, mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.memoized import Memoized
from ldp_client.words.text import rounded_up
from ldpkit.auditing import exact
from ldpkit.auditing.answers import answers_for, pairs_of, random_answers
from ldpkit.auditing.events import Sample, evidence_of, support_view

# The probability that a sound mechanism fails any of the sampled bounds of one question.
FALSE_ALARM = 1e-6
SAMPLES = 20_000
MOST_FAMILIES = 8


@dataclass
class Audit:
    """All checks of one question. bound: the largest lower bound on ε found, in nats (∞ is possible)."""

    question: str
    mechanism: str
    epsilon: float
    delta: float
    bound: float = 0.0
    checks: list[exact.Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all([check.passed for check in self.checks])

    def to_dict(self) -> dict[str, Any]:
        """Return the audit for JSON, with decimals as strings, as in all documents."""
        return {
            "question": self.question,
            "mechanism": self.mechanism,
            "epsilon": repr(self.epsilon),
            "delta": repr(self.delta),
            "lower_bound": "infinite" if self.bound == inf else repr(self.bound),
            "passed": self.passed,
            "checks": [asdict(check) for check in self.checks],
        }

    def lines(self) -> list[str]:
        """Return the audit for people: a line for the question, then one for each check."""
        delta = f", delta {rounded_up(self.delta)}" if self.delta else ""
        stated = f"epsilon {rounded_up(self.epsilon)}{delta}"
        verdict = "passed" if self.passed else "FAILED"
        return [
            f"{self.question}: {verdict}: {self.mechanism}, {stated}, found at least {self.bound:.4g}",
            *(f"    {'ok  ' if each.passed else 'FAIL'} {each.name}: {each.detail}" for each in self.checks),
        ]


def audit(study: Study, questions: Sequence[Question], samples: int = SAMPLES) -> Iterator[Audit]:
    """Audit these questions one by one.

    Args:
        study: the study.
        questions: the study's questions to audit.
        samples: noisy reports to draw for each answer that is tried; more find smaller faults.

    Returns:
        An iterator over the findings for each question, in this order. Each question is audited lazily.
    """
    mechanisms = mechanisms_of(study)
    for question in questions:
        yield audit_mechanism(mechanisms[question.id], question, samples)


def audit_mechanism(mechanism: Mechanism, question: Question, samples: int = SAMPLES) -> Audit:
    """Run all checks of one mechanism that answers this question."""
    privacy, stated = mechanism.privacy, question.mechanism
    audit = Audit(question.id, mechanism.name, float(privacy.epsilon), float(privacy.delta))
    stages: list[tuple[str, Any, Any]] = [("", mechanism, stated.epsilon)]
    if isinstance(mechanism, Memoized):
        # It promises one ε for the permanent answer, hence for all reports together, and a smaller ε for a
        # single report.
        alone = copy(mechanism)
        alone.privacy = mechanism.report_privacy
        stages = [
            ("permanent answer", mechanism.first, stated.epsilon),
            ("one report", alone, stated.instantaneous_epsilon),
        ]
    for name, stage, epsilon in stages:
        checks, bound = _audit_stage(stage, epsilon, question, samples, FALSE_ALARM / len(stages))
        for check in checks:
            check.name = f"{name}: {check.name}" if name else check.name
        audit.checks += checks
        audit.bound = max(audit.bound, bound)
    return audit


def _audit_stage(
    mechanism: Any, epsilon: Fraction, question: Question, samples: int, false_alarm: float
) -> tuple[list[exact.Check], float]:
    """Return all checks of one stage, and its lower bound on ε."""
    # 1. Answers, without those that the mechanism rejects.
    answers = answers_for(question)
    for name, answer in list(answers.items()):
        try:
            mechanism.quantise(answer)
        except AnswerError:
            del answers[name]
    pairs = pairs_of(mechanism, answers)
    # 2. Exact laws.
    checks = [exact.stated_check(mechanism, epsilon, question)]
    if exact.is_numeric(mechanism):
        checks.append(exact.distance_check(mechanism, [*answers.values(), *random_answers(question)]))
    elif isinstance(mechanism, ChoiceMechanism):
        checks += _worst([exact.law_checks(mechanism, (answers[a], answers[b])) for a, b in pairs])
    else:
        checks.append(exact.odds_check(mechanism))
    # 3. Events among reports, in both directions: of each family, the one that refutes, or shows most.
    names = sorted({name for pair in pairs for name in pair})
    reports = {name: Sample.halves(mechanism, answers[name], samples) for name in names}
    share = false_alarm / (2 * len(pairs) * MOST_FAMILIES)
    evidence, supports = [], []
    for pair in [order for each in pairs for order in permutations(each)]:
        both = {name: answers[name] for name in pair}
        evidence += evidence_of(mechanism, both, reports, share)
        if isinstance(mechanism, ChoiceMechanism):
            supports.append([_support_check(mechanism, list(both.values()), reports[pair[0]][1], share)])
    strongest = {each.family: each for each in sorted(evidence, key=lambda e: (e.refutes, e.epsilon))}
    bounds = [exact.Check(f"bound from {name}", not e.refutes, e.detail) for name, e in strongest.items()]
    return [*checks, *_worst(supports), *bounds], max([each.epsilon for each in evidence])


def _support_check(mechanism: Any, answers: list[Any], sample: Sample, false_alarm: float) -> exact.Check:
    """Check how often reports support the true choice, the other, both or neither, against the exact law."""
    p, q, both = exact.support_law(mechanism, answers)
    law = {3: both, 2: p - both, 1: q - both, 0: 1 - p - q + both}
    labels = support_view(mechanism, answers).labels(sample).tolist()
    rate = false_alarm / (2 * len(law))
    passed, shown = True, []
    for label, chance in law.items():
        seen = labels.count(label)
        low, high = exact.lower_share(seen, sample.count, rate), exact.upper_share(seen, sample.count, rate)
        passed = passed and low <= float(chance) <= high
        shown.append(f"{seen} of {float(chance) * sample.count:.0f}")
    return exact.Check("supported choices follow the stated law", passed, ", ".join(shown))


def _worst(runs: Iterable[Iterable[exact.Check]]) -> list[exact.Check]:
    """Return one result for each check that several runs share: the first failure, if there is one."""
    kept: dict[str, exact.Check] = {}
    for run in runs:
        for check in run:
            kept[check.name] = min(kept.get(check.name, check), check, key=lambda each: each.passed)
    return list(kept.values())
