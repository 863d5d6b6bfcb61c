"""What reports show whatever people answer: honest ones seldom fail a test, and each test finds its fault."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from inference.analyses.study_formula import table_of_reports
from inference.false_reports.conformance import conformance, deviations
from inference.false_reports.details import Detail, Details, has_details
from inference.results.verdict import FIT, NOTE
from ldp_client import mechanism_for, mechanisms_of
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Report, Study
from summaries import QuestionSummary
from summaries.reducing import reduce_reports
from tests import studies
from tests.studies import choice_of as choice

GROUPS, EACH = 150, 400


# With the answers that leave least room: all at a bound, or all of one choice.
HONEST = {
    "laplace": (studies.AGE, 45.0),
    "laplace inside": (studies.with_epsilon(studies.AGE, "4"), 30.0),
    "gaussian": (studies.NORMAL, 15.0),
    "randomized_response": (choice("randomized_response", 5), 1),
    "oue": (choice("oue", 6), 2),
    "oue of many": (choice("oue", 40), 2),
    "olh": (choice("olh", 40, "2"), 3),
    "products": (studies.PRODUCTS, {"age": 42, "married": True, "rate": 5}),
}


def sent(template, answer, n, seed):
    (question,) = Study(studies.document(template)).questions
    mechanism = mechanism_for(question)
    source = NotForRealAnswers(np.random.default_rng(seed).bytes)
    return mechanism, np.asarray(perturb_many(mechanism, [answer] * n, source), np.uint8)


def p_values(mechanism, payloads):
    part, detail = QuestionSummary.of(mechanism, payloads), Detail(mechanism)
    if has_details(mechanism):
        detail.add(payloads)
    return {one.words: one.p for one in deviations(mechanism, part, detail if detail.n else None)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "oue", "olh", "products"])
def test_honest_reports_fail_at_most_at_stated_rate(name):
    mechanism, payloads = sent(*HONEST[name], GROUPS * EACH, seed=1)
    found = [p_values(mechanism, part) for part in np.split(payloads, GROUPS)]
    for words in found[0]:
        ps = np.asarray([one[words] for one in found])
        for level in (0.1, 0.01):
            assert stats.binom.sf(np.sum(ps < level) - 1, GROUPS, level) > 1e-4, words
    assert min(p_values(mechanism, payloads).values(), default=1) > 1e-5


def test_false_alarm_rate_covers_all_tests_together():
    """A p-value that alone would be an alarm is none among many tests."""
    mechanism, payloads = sent(*HONEST["oue"], 2000, seed=2)
    payloads[:8] = 0b111111
    part = QuestionSummary.of(mechanism, payloads)
    worst = min(one.p for one in deviations(mechanism, part, None))
    assert 1e-5 < worst < 1e-4
    names = [f"q{place}" for place in range(62)]
    assert conformance({"a": mechanism}, {"a": part}, {})["a"]
    assert not any(conformance(dict.fromkeys(names, mechanism), dict.fromkeys(names, part), {}).values())


def to(payload):
    def change(payloads):
        payloads[:] = np.frombuffer(payload, np.uint8)

    return change


FAULTS = {
    "as if all held a choice": ("randomized_response", 0.9, to(b"\x01"), "some choice is reported"),
    "no ones": ("oue of many", 0.02, to(bytes(5)), "that support many"),
    "one seed": ("olh", 0.01, to(bytes(12) + b"\x01"), "hash seed came more often"),
    "small seeds": ("olh", 0.05, lambda payloads: payloads[:, :2].fill(0), "hash seeds are not uniform"),
    "whole bytes": ("laplace", 0.05, lambda payloads: payloads[:, 3].fill(0), "last bits of the numbers"),
    "one number": ("gaussian", 0.01, to((1 << 20).to_bytes(4, "big")), "number came more often"),
    "a spike": ("laplace inside", 0.05, to((1 << 21).to_bytes(4, "big")), "more reports are at one place"),
    "one product": ("products", 0.03, to(b"\x01"), "some product was sent more"),
    "one sign": ("products", 0.7, lambda payloads: payloads.__ior__(1), "fewer reports of one sign"),
    "far out": ("gaussian", 0.02, to((12 << 20).to_bytes(4, "big")), "are beyond a bound"),
    "always out": ("laplace", 0.2, to((6 << 20).to_bytes(4, "big")), "are beyond a bound"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_test_finds_its_fault(fault):
    name, share, change, words = FAULTS[fault]
    mechanism, payloads = sent(*HONEST[name], 20_000, seed=3)
    change(payloads[: round(share * 20_000)])
    found = p_values(mechanism, payloads)
    assert [p < 1e-6 for said, p in found.items() if words in said] == [True]


PEOPLE, FALSE = 20_000, 200
NAIVE = {
    "olh": (choice("olh", 64), 3, lambda m, i: bytes(range(1, 13)) + bytes([i % m.hashes])),
    "laplace": (studies.AGE, 30.0, lambda m, i: (i % 31 * m.levels // 30).to_bytes(4, "big")),
}


@pytest.mark.attack(18)
@pytest.mark.parametrize("name", NAIVE)
def test_false_reports_are_detected_while_reading_reports(name):
    """Send 1 % of reports that take no pains to look like a device's: one seed, round numbers."""
    template, answer, fake = NAIVE[name]
    (question,) = (study := Study(studies.document(template))).questions
    mechanism, honest = sent(template, answer, PEOPLE, seed=7)
    payloads = [fake(mechanism, i) if i < FALSE else bytes(one) for i, one in enumerate(honest)]
    head = (study.id, study.version, study.digest)
    reports = [Report(f"{i:032x}", *head, {question.id: one}) for i, one in enumerate(payloads)]
    for some, found in ((reports, True), (reports[FALSE:], False)):
        details = Details(study)
        summary = reduce_reports(study, details.watch(some))
        wrong = conformance(mechanisms_of(study), summary.questions, details.by_question())
        assert bool(wrong[question.id]) == found
        # A formula doubts such a question too.
        assert name == "laplace" or bool(table_of_reports(study, some, [question.id]).doubts) == found


def outermost(template):
    """The record at the bounds, so that all that an answer can add to a report is added."""
    most = {"age": 42, "years": 23, "rate": 5, "affair": True}
    return {field["id"]: most[field["id"]] for field in (*template["features"], template["response"])}


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("template", [studies.LINEAR, studies.YES_NO_RECORD], ids=lambda one: one["id"])
def test_few_false_reports_at_extreme_values_are_flagged(template):
    """Send 20 records in 20,000 with every entry as far out as a device could be, to turn a slope."""
    mechanism, payloads = sent(template, outermost(template), 20_000, seed=2)
    entries = mechanism.payload_size // 4
    payloads[:20, : 4 * entries] = np.full(entries, 15 << 20).astype(">i4").view(np.uint8)
    for payload in payloads[:20]:
        mechanism.check(payload.tobytes())
    part = QuestionSummary.of(mechanism, payloads)
    (finding,) = conformance({"a": mechanism}, {"a": part}, {})["a"]
    assert finding.part == FIT
    assert "farther out than the noise can explain" in finding.text
    assert not conformance({"a": mechanism}, {"a": QuestionSummary.of(mechanism, payloads[20:])}, {})["a"]


def test_summary_without_tails_is_read_with_a_note():
    mechanism, payloads = sent(studies.LINEAR, outermost(studies.LINEAR), 3000, seed=3)
    part = replace(QuestionSummary.of(mechanism, payloads), tails=None)
    (finding,) = conformance({"a": mechanism}, {"a": part}, {})["a"]
    assert finding.part == NOTE
    assert "few false reports would be hidden" in finding.text
