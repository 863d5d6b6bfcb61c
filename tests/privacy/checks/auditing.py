"""The audit of a question with the repository's own checks, in addition to those in `ldpkit audit`."""

from functools import partial

from ldp_client.audit import auditing
from ldp_client.audit.answers import SILENT, inside_answers, pairs_of, random_answers, words_of
from ldp_client.audit.auditing import FALSE_ALARM, SAMPLES, answers_of, draw, worst
from ldp_client.audit.exact import coin_of
from ldp_client.audit.findings import Audit, Check
from ldp_client.audit.stages import stages_of
from ldp_client.audit.views import Pair
from ldp_client.core.randomness import urandom
from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.sampled_products import SampledProducts
from tests.privacy.checks.javascript import javascript_checks
from tests.privacy.checks.noise import choice_checks, noise_checks, response_checks
from tests.privacy.checks.products import product_checks, step_check
from tests.privacy.checks.replay import every_choice_checks, order_checks, replay_checks
from tests.privacy.checks.reports import assembly_checks, bulk_checks, every_choice, possible_answers
from tests.privacy.checks.timing import time_checks
from tests.privacy.checks.whole import path_checks


def audit_mechanism(mechanism, question, samples=SAMPLES, clock=None):
    """All checks of one mechanism that answers this question; those of time only with a clock."""
    own: list[Check] = []
    stages = stages_of(mechanism, question)
    # Before all else: what a mechanism does later shows beside a fresh one.
    for stage in stages:
        checks = _stage_checks(stage, question, samples, clock, FALSE_ALARM / len(stages))
        for check in checks:
            check.name = stage.name_of(check)
        own += checks
    audit = auditing.audit_mechanism(mechanism, question, samples)
    audit.checks += own
    if question.ask != "table" and not hasattr(mechanism, "permanent"):
        audit.checks += bulk_checks(mechanism, question, samples, sample_checks)
    return audit


def audit_study(study, questions, samples=SAMPLES, clock=None):
    """Audit these questions, JavaScript's port of each too; then, if they are all, whole reports."""
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
    if study.respondent == "person" and len(questions) == len(study.questions):
        whole = Audit("(whole reports)", "", float(study.epsilon), float(study.delta))
        taken = {name: possible_answers(mechanisms[name], study.question(name)) for name in mechanisms}
        whole.checks = [*assembly_checks(study, mechanisms)]
        whole.checks += path_checks(study, mechanisms, taken, sample_checks)
        yield whole


def _stage_checks(stage, question, samples, clock, false_alarm):
    """Replays, the law of reports of single answers, every choice, and time with a clock."""
    mechanism = stage.mechanism
    answers = answers_of(stage, question)
    names = pairs_of(mechanism, answers)
    pairs = [Pair(mechanism, answers[one], answers[other]) for one, other in names]
    checks = list(order_checks(mechanism, list(answers.values())))
    if pairs[0].products:
        checks.append(step_check(mechanism, [*answers.values(), *random_answers(question)]))
    checks += worst([replay_checks(pair) for pair in pairs])
    # Of products each record has a law of its own; of others the rest is told from the first one's.
    drawn = dict.fromkeys([name for pair in names for name in pair] if pairs[0].products else [names[0][0]])
    batches = {name: draw(mechanism, answers[name], samples) for name in drawn}
    checks += worst([sample_checks(mechanism, answers[name], batches[name]) for name in drawn])
    if pairs[0].products:
        records = [mechanism.quantise(answer) for answer in random_answers(question, samples)]
        payloads = [mechanism.randomise(record, urandom) for record in records]
        checks = worst([checks, product_checks(mechanism, records, payloads)])
    if pairs[0].lawful:
        coin = partial(coin_of, stage.coin)
        checks += every_choice_checks(mechanism, every_choice(mechanism), 5 * samples, coin)
    if clock is not None and (pairs[0].numeric or pairs[0].lawful):
        checks += time_checks(pairs[0], answers, false_alarm, clock)
    return checks


def sample_checks(mechanism, answer, batch):
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
