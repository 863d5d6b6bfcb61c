"""A study that asks each device one question, drawn before anything depends on an answer."""

from collections import Counter

import pytest

from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import AnswerError, ReportError
from ldp_client.explain import describe
from schemas import Rational, Study
from summaries import check_report, summarize
from tests import studies
from tests.kit.errors import raises

PARTS = [studies.NUMBER, studies.with_epsilon(studies.YES_NO, "2"), studies.CHOICE, studies.LINEAR]
STUDY = Study(studies.document(*PARTS, sample_one_question=True))
MECHANISMS = {question.id: mechanism_for(question) for question in STUDY.questions}
ANSWERS = {question.id: studies.ANSWERS[question.id] for question in STUDY.questions}


def report_of(answers, random=None):
    return perturb_answers(STUDY, MECHANISMS, answers, *([random] if random else []))


def test_study_costs_its_largest_epsilon_and_delta():
    assert (STUDY.epsilon, STUDY.delta) == (Rational(2), Rational.parse("1e-6"))
    every = Study(studies.document(*PARTS, sample_one_question=False))
    assert (every.epsilon, every.delta) == (Rational(5), Rational.parse("1e-6"))
    assert "one of the 4 questions" in describe(STUDY)[-1]
    assert "epsilon 2, delta 1e-06 (the largest" in describe(STUDY)[-1]


REPEATED = [
    studies.MEMOIZED,
    {**studies.MEMOIZED, "id": "other"},
    studies.with_epsilon(studies.YES_NO, "0.5"),
    studies.with_epsilon(studies.NUMBER, "0.25"),
]


def test_memoized_questions_cost_their_summed_epsilon():
    """A device answers at most one of the questions that are asked once."""
    whole = studies.MEMOIZED["mechanism"]["epsilon"]
    pair = Study(studies.document(*REPEATED[:2], sample_one_question=True))
    assert pair.epsilon == Rational.parse(whole) * Rational(2)
    assert "(the sum over the memoized questions: over" in describe(pair)[-1]
    mixed = Study(studies.document(*REPEATED, sample_one_question=True))
    assert mixed.epsilon == pair.epsilon + Rational.parse("0.5")
    assert "(the sum over the memoized questions and the largest of the others: over" in describe(mixed)[-1]
    once = Study(studies.document(*REPEATED[2:], REPEATED[0], sample_one_question=False))
    assert once.epsilon == Rational.parse(whole) + Rational.parse("0.75")


@pytest.mark.parametrize("wrong", [{"ever": "maybe"}, {"hours": "x"}, {"occupation": "judge"}])
def test_every_answer_is_checked_before_anything_is_drawn(wrong):
    def nothing(_size):
        raise AssertionError("something was drawn")

    with pytest.raises(AnswerError):
        report_of({**ANSWERS, **wrong}, nothing)
    with raises(AnswerError, "core.no_answer"):
        report_of({name: ANSWERS[name] for name in list(ANSWERS)[1:]}, nothing)


def test_each_question_is_summarized_from_its_own_reports():
    reports = [report_of(ANSWERS) for _ in range(100)]
    summary = summarize(STUDY, reports)
    seen = Counter(name for report in reports for name in report.payloads)
    assert {name: part.n for name, part in summary.questions.items()} == dict(seen)
    assert summary.questions["ever"].values.sum() == seen["ever"]


def test_reports_with_more_or_other_payloads_are_refused():
    report = report_of(ANSWERS)
    payloads = {name: m.perturb(ANSWERS[name]) for name, m in MECHANISMS.items()}
    for bad in (payloads, {"else": b"\x00"}, {"ever": payloads["ever"], "hours": payloads["hours"]}):
        report.payloads = bad
        with raises(ReportError, "report.payload_invalid", "payloads"):
            check_report(STUDY, MECHANISMS, report)
    for name, payload in payloads.items():
        report.payloads = {name: payload}
        check_report(STUDY, MECHANISMS, report)
        report.payloads = {name: payload + b"\x00"}
        with raises(ReportError, "report.payload_impossible", field=f"payloads.{name}"):
            check_report(STUDY, MECHANISMS, report)
