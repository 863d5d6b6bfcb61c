"""The audit of a question: its mechanism, the hardest pairs of answers, all checks; and of a whole study."""

from functools import partial

from ldp_client.audit.answers import SILENT, answers_for, inside_answers, pairs_of, random_answers, words_of
from ldp_client.audit.events import bound_checks, evidence_of, support_check
from ldp_client.audit.exact import coin_of, distance_check, law_checks, stated_check, threshold_check
from ldp_client.audit.findings import Audit, Check, power_of
from ldp_client.audit.javascript import javascript_checks
from ldp_client.audit.noise import choice_checks, noise_checks, response_checks
from ldp_client.audit.products import power_by_level, product_checks, step_check
from ldp_client.audit.replay import every_choice_checks, order_checks, replay_checks
from ldp_client.audit.reports import assembly_checks, bulk_checks, every_choice, possible_answers
from ldp_client.audit.stages import Signs, stages_of
from ldp_client.audit.timing import time_checks
from ldp_client.audit.views import Batch, Pair
from ldp_client.audit.whole import path_checks
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import AnswerError
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.sampled_products import SampledProducts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ldp_client.audit.events import Found
    from ldp_client.audit.stages import Stage
    from ldp_client.audit.timing import Clock
    from ldp_client.documents.study import Question, Study

# The probability that a sound mechanism fails any of the sampled bounds of one question.
FALSE_ALARM = 1e-6
SAMPLES = 20_000
MOST_FAMILIES = 8


def audit_mechanism(
    mechanism: "Mechanism", question: "Question", samples: int = SAMPLES, clock: "Clock | None" = None
) -> Audit:
    """All checks of one mechanism that answers this question; those of time only with a clock."""
    privacy = mechanism.privacy
    audit = Audit(question.id, mechanism.name, float(privacy.epsilon), float(privacy.delta))
    stages = stages_of(mechanism, question)
    for stage in stages:
        checks, bound = _audit_stage(stage, question, samples, clock, FALSE_ALARM / len(stages))
        for check in checks:
            check.name = f"{stage.name}: {check.name}" if stage.name else check.name
        audit.checks += checks
        audit.bound = max(audit.bound, bound)
    if question.ask != "table" and not hasattr(mechanism, "permanent"):
        audit.checks += bulk_checks(mechanism, question, samples, sample_checks)
    signs = isinstance(stages[0].mechanism, Signs)
    audit.could_refute, audit.could_not = power_of(stages[0].mechanism if signs else mechanism, samples)
    if signs:
        refuted, not_refuted = power_by_level(mechanism, samples)
        audit.could_refute += refuted
        audit.could_not = not_refuted + audit.could_not
    return audit


def audit_study(
    study: "Study", questions: "Sequence[Question]", samples: int = SAMPLES, clock: "Clock | None" = None
) -> "Iterator[Audit]":
    """Audit these questions one by one, JavaScript's port of each too; then, if they are all, whole reports.

    Args:
        study: the study.
        questions: those of its questions to audit. Whole reports are audited where they are all of them and
            people answer.
        samples: noisy reports drawn of each answer that is tried; more find smaller faults.
        clock: gives the time in nanoseconds, such as time.process_time_ns; without one, no check is of time.

    Returns:
        An iterator over what was found of each question, in this order, each audited when its turn comes;
        what was found of whole reports comes last, as "(whole reports)".
    """
    mechanisms = mechanisms_of(study)
    for question in questions:
        mechanism = mechanisms[question.id]
        audit = audit_mechanism(mechanism, question, samples, clock)
        if question.ask != "table":
            possible = possible_answers(mechanism, question)
            answers = possible[:5] + [answer for answer in possible[5:] if answer is None]
            if isinstance(mechanism, SampledProducts):
                answers += inside_answers(question).values()
            audit.checks += javascript_checks(
                study, question.id, mechanism, answers, samples // 8, sample_checks
            )
        yield audit
    if study.unit == "person" and len(questions) == len(study.questions):
        whole = Audit("(whole reports)", "", float(study.epsilon), float(study.delta))
        taken = {name: possible_answers(mechanisms[name], study.question(name)) for name in mechanisms}
        whole.checks = [*assembly_checks(study, mechanisms)]
        whole.checks += path_checks(study, mechanisms, taken, sample_checks)
        yield whole


def _audit_stage(
    stage: "Stage", question: "Question", samples: int, clock: "Clock | None", false_alarm: float
) -> "tuple[list[Check], float]":
    """All checks of one stage, and its lower bound on ε."""
    mechanism = stage.mechanism
    answers = _taken_by(mechanism, stage.answers or answers_for(question))
    names = pairs_of(mechanism, answers)
    pairs = [Pair(mechanism, answers[one], answers[other]) for one, other in names]
    checks = [*order_checks(mechanism, list(answers.values())), stated_check(stage, question)]
    checks += _exact_checks(stage, pairs, answers, question)
    checks += _worst([replay_checks(pair) for pair in pairs])
    batches = {name: draw(mechanism, answers[name], samples) for pair in names for name in pair}
    # Of products each record has a law of its own; of others the rest is told from the first one's.
    drawn = list(batches) if pairs[0].products else [names[0][0]]
    checks += _worst([sample_checks(mechanism, answers[name], batches[name]) for name in drawn])
    if pairs[0].products:
        records = [mechanism.quantise(answer) for answer in random_answers(question, samples)]
        payloads = [mechanism.randomise(record, urandom) for record in records]
        checks = _worst([checks, product_checks(mechanism, records, payloads)])
    if pairs[0].lawful:
        every = every_choice(mechanism)
        coin = partial(coin_of, stage.coin)
        checks += every_choice_checks(mechanism, every, 5 * samples, coin)
    share = false_alarm / (2 * len(names) * MOST_FAMILIES)
    found: "list[Found]" = []
    for one, other in [*names, *[pair[::-1] for pair in names]]:
        pair = Pair(mechanism, answers[one], answers[other])
        found += evidence_of(pair, f"{one} against {other}", batches[one], batches[other], share)
    if pairs[0].lawful:
        supports = [support_check(pair, batches[one], share) for pair, (one, _) in zip(pairs, names)]
        checks += _worst([[check] for check in supports])
    if clock is not None and (pairs[0].numeric or pairs[0].lawful):
        checks += time_checks(pairs[0], answers, false_alarm, clock)
    return checks + bound_checks(found), max([evidence.epsilon for evidence in found])


def _taken_by(mechanism: "Any", answers: "dict[str, Any]") -> "dict[str, Any]":
    """Those of the answers that the mechanism takes at all."""
    taken = {}
    for name in answers:
        try:
            mechanism.quantise(answers[name])
        except AnswerError:
            continue
        taken[name] = answers[name]
    return taken


def sample_checks(mechanism: "Any", answer: "Any", batch: Batch) -> "list[Check]":
    """What reports of one answer must be like, however drawn; fails where nothing is known of that."""
    pair = Pair(mechanism, answer, answer)
    if pair.numeric:
        law = "normal" if mechanism.privacy.delta.numerator else "laplace"
        checks = list(noise_checks(batch, law, words_of(mechanism, answer, SILENT)))
        return [*checks, *response_checks(batch, mechanism, answer)]
    if pair.lawful:
        return list(choice_checks(batch, mechanism, mechanism.quantise(answer)))
    if pair.products:
        return list(product_checks(mechanism, [mechanism.quantise(answer)] * batch.n, batch.payloads))
    if pair.composed:
        return []
    told = f"the audit has no check of what a report by {mechanism.name} must be like"
    return [Check("reports follow a law that is known", False, told)]


def draw(mechanism: "Mechanism", answer: "Any", samples: int) -> Batch:
    """`samples` independent reports of one answer, by its mechanism's own `perturb` if it has one."""
    if type(mechanism).perturb is not Mechanism.perturb:
        return Batch([mechanism.perturb(answer) for _ in range(samples)], mechanism.words)
    quantised = mechanism.quantise(answer)
    return Batch([mechanism.randomise(quantised, urandom) for _ in range(samples)], mechanism.words)


def _exact_checks(
    stage: "Stage", pairs: "list[Pair]", answers: "dict[str, Any]", question: "Question"
) -> "list[Check]":
    """What needs no samples: of numbers the largest distance, of products the steps, of choices the coin."""
    if pairs[0].numeric:
        return [distance_check(stage.mechanism, [*answers.values(), *random_answers(question)])]
    if pairs[0].products:
        return [step_check(stage.mechanism, [*answers.values(), *random_answers(question)])]
    if not pairs[0].lawful:
        return []
    return [*_worst([law_checks(pair) for pair in pairs]), threshold_check(stage.coin, pairs[0])]


def _worst(runs: "Iterable[Iterable[Check]]") -> "list[Check]":
    """Of each check that was made for several pairs, the first that failed, or else the last."""
    kept: "dict[str, Check]" = {}
    for run in runs:
        for check in run:
            if check.name not in kept or kept[check.name].passed:
                kept[check.name] = check
    return list(kept.values())
