"""The audit of a question: its mechanism, the hardest pairs of answers, exact laws, and events."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ldp_client.audit.answers import answers_for, pairs_of, random_answers
from ldp_client.audit.events import Found, bound_checks, evidence_of, support_check
from ldp_client.audit.exact import distance_check, law_checks, stated_check, threshold_check
from ldp_client.audit.findings import Audit, Check
from ldp_client.audit.stages import Stage, stages_of
from ldp_client.audit.views import Batch, Pair
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.base import Mechanism

# The probability that a sound mechanism fails any of the sampled bounds of one question.
FALSE_ALARM = 1e-6
SAMPLES = 20_000
MOST_FAMILIES = 8


def audit_mechanism(mechanism: Mechanism, question: Question, samples: int = SAMPLES) -> Audit:
    """Run all checks of one mechanism that answers this question."""
    privacy = mechanism.privacy
    audit = Audit(question.id, mechanism.name, float(privacy.epsilon), float(privacy.delta))
    stages = stages_of(mechanism, question)
    for stage in stages:
        checks, bound = _audit_stage(stage, question, samples, FALSE_ALARM / len(stages))
        for check in checks:
            check.name = stage.name_of(check)
        audit.checks += checks
        audit.bound = max(audit.bound, bound)
    return audit


def audit_study(study: Study, questions: Sequence[Question], samples: int = SAMPLES) -> Iterator[Audit]:
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


def _audit_stage(
    stage: Stage, question: Question, samples: int, false_alarm: float
) -> tuple[list[Check], float]:
    """Return all checks of one stage, and its lower bound on ε."""
    mechanism = stage.mechanism
    answers = answers_of(stage, question)
    names = pairs_of(mechanism, answers)
    pairs = [Pair(mechanism, answers[one], answers[other]) for one, other in names]
    checks = [stated_check(stage, question), *_exact_checks(stage, pairs, answers, question)]
    compared = dict.fromkeys([name for pair in names for name in pair])
    batches = {name: draw(mechanism, answers[name], samples) for name in compared}
    share = false_alarm / (2 * len(names) * MOST_FAMILIES)
    found: list[Found] = []
    supports: list[list[Check]] = []
    for one, other in [*names, *[pair[::-1] for pair in names]]:
        pair = Pair(mechanism, answers[one], answers[other])
        found += evidence_of(pair, f"{one} against {other}", batches[one], batches[other], share)
        if pair.lawful:
            supports.append([support_check(pair, batches[one], share)])
    checks += worst(supports)
    return checks + bound_checks(found), max([evidence.epsilon for evidence in found])


def answers_of(stage: Stage, question: Question) -> dict[str, Any]:
    """Return the answers to try on a stage, by name, without answers that its mechanism rejects."""
    answers = stage.answers or answers_for(question)
    taken = {}
    for name in answers:
        try:
            stage.mechanism.quantise(answers[name])
        except AnswerError:
            continue
        taken[name] = answers[name]
    return taken


def draw(mechanism: Mechanism, answer: Any, samples: int) -> Batch:
    """Draw `samples` independent reports of one answer, by its mechanism's own `perturb` if it has one."""
    if type(mechanism).perturb is not Mechanism.perturb:
        return Batch([mechanism.perturb(answer) for _ in range(samples)], mechanism.words)
    quantised = mechanism.quantise(answer)
    return Batch([mechanism.randomise(quantised, urandom) for _ in range(samples)], mechanism.words)


def _exact_checks(
    stage: Stage, pairs: list[Pair], answers: dict[str, Any], question: Question
) -> list[Check]:
    """Return the checks that need no samples: the largest distance of numbers, or a choice's law and coin."""
    if pairs[0].numeric:
        return [distance_check(stage.mechanism, [*answers.values(), *random_answers(question)])]
    if not pairs[0].lawful:
        return []
    coins = [[threshold_check(stage.coin, stage.mechanism.quantise(answer))] for answer in answers.values()]
    return [*worst([law_checks(pair) for pair in pairs]), *worst(coins)]


def worst(runs: Iterable[Iterable[Check]]) -> list[Check]:
    """Return one result for each check that several runs share: the first failure, or a check not made."""
    kept: dict[str, Check] = {}
    for run in runs:
        for check in run:
            kept[check.name] = min(kept.get(check.name, check), check, key=lambda c: (c.passed, c.made))
    return list(kept.values())
