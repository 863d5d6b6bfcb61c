"""The audit of a question: its mechanism, the hardest pairs of answers, exact laws, and events."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any

from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Question
from ldp_client.documents.rational import Rational
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldpkit.auditing.answers import answers_for, pairs_of, random_answers
from ldpkit.auditing.events import bound_checks, evidence_of, support_check
from ldpkit.auditing.exact import distance_check, law_checks, odds_check, stated_check
from ldpkit.auditing.findings import Audit, Check
from ldpkit.auditing.views import Batch, is_numeric

# The probability that a sound mechanism fails any of the sampled bounds of one question.
FALSE_ALARM = 1e-6
SAMPLES = 20_000
MOST_FAMILIES = 8


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
    privacy = mechanism.privacy
    audit = Audit(question.id, mechanism.name, float(privacy.epsilon), float(privacy.delta))
    stages = _stages_of(mechanism, question)
    for name, stage, epsilon in stages:
        checks, bound = _audit_stage(stage, epsilon, question, samples, FALSE_ALARM / len(stages))
        for check in checks:
            check.name = f"{name}: {check.name}" if name else check.name
        audit.checks += checks
        audit.bound = max(audit.bound, bound)
    return audit


def _stages_of(mechanism: Any, question: Question) -> list[tuple[str, Any, Any]]:
    """Return the mechanism, or each promise of a memoized one, with a name and the study's ε for it.

    A memoized mechanism promises one ε for the permanent answer, hence for all reports together, and a
    smaller ε for a single report.
    """
    stated = question.mechanism
    if not hasattr(mechanism, "permanent"):
        return [("", mechanism, stated.epsilon)]
    alone = copy(mechanism)
    alone.privacy = mechanism.report_privacy
    return [
        ("permanent answer", mechanism.first, stated.epsilon),
        ("one report", alone, stated.instantaneous_epsilon),
    ]


def _audit_stage(
    mechanism: Any, epsilon: Rational, question: Question, samples: int, false_alarm: float
) -> tuple[list[Check], float]:
    """Return all checks of one stage, and its lower bound on ε."""
    # 1. Answers, without those that the mechanism rejects.
    answers = {name: answer for name, answer in answers_for(question).items() if _takes(mechanism, answer)}
    pairs = pairs_of(mechanism, answers)
    # 2. Exact laws.
    checks = [stated_check(mechanism, epsilon, question)]
    if is_numeric(mechanism):
        checks.append(distance_check(mechanism, [*answers.values(), *random_answers(question)]))
    elif isinstance(mechanism, ChoiceMechanism):
        checks += _worst([law_checks(mechanism, (answers[a], answers[b])) for a, b in pairs])
    else:
        checks.append(odds_check(mechanism))
    # 3. Events among reports, in both directions.
    batches = {name: Batch.draw(mechanism, answers[name], samples) for pair in pairs for name in pair}
    share = false_alarm / (2 * len(pairs) * MOST_FAMILIES)
    evidence, supports = [], []
    for one, other in [*pairs, *[(b, a) for a, b in pairs]]:
        both = (answers[one], answers[other])
        evidence += evidence_of((one, other), both, batches[one], batches[other], share)
        if isinstance(mechanism, ChoiceMechanism):
            supports.append([support_check(both, batches[one], share)])
    checks += [*_worst(supports), *bound_checks(evidence)]
    return checks, max([each.epsilon for each in evidence])


def _takes(mechanism: Mechanism, answer: Any) -> bool:
    try:
        mechanism.quantise(answer)
    except AnswerError:
        return False
    return True


def _worst(runs: Iterable[Iterable[Check]]) -> list[Check]:
    """Return one result for each check that several runs share: the first failure, if there is one."""
    kept: dict[str, Check] = {}
    for run in runs:
        for check in run:
            kept[check.name] = min(kept.get(check.name, check), check, key=lambda each: each.passed)
    return list(kept.values())
