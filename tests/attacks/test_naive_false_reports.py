"""Send 1 % of false reports that take no pains to look like a device's: all ones, one seed, round numbers.

Defence: The analyst's fit: the verdict on the fit names the question. Known limit: false answers that are
perturbed as a device would; of 1 % of them the result says what they could have done (analysis.md).
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from inference.analyses.reports import table_of_reports
from inference.false_reports.conformance import not_conforming
from inference.false_reports.details import Details
from inference.fitting import fit
from ldp_client import mechanisms_of
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.report import report_id_of
from schemas import Report, Study
from summaries import summarize
from summaries.reducing import reduce_reports
from tests import studies

PEOPLE, FALSE = 20_000, 200


def choice(name, count):
    return {**studies.CHOICE, "choices": {"count": count}, "mechanism": {"name": name, "epsilon": "1"}}


def all_ones(mechanism, _random):
    return ((1 << mechanism.choices) - 1).to_bytes(mechanism.payload_size, "little")


def one_seed(mechanism, random):
    """Honest otherwise: whatever is reported is a hash of a choice."""
    return bytes(range(1, 13)) + int(random.integers(mechanism.hashes)).to_bytes(1, "big")


def round_numbers(mechanism, random):
    """A whole year without noise."""
    return (int(random.integers(0, 31)) * mechanism.levels // 30).to_bytes(4, "big")


def one_product(mechanism, _random):
    """The product that turns a slope, and always the sign that turns it."""
    return bytes([2 * mechanism.coordinates.index((1, 3)) + 1])


PRODUCTS = (studies.PRODUCTS, studies.NEWER_ANSWERS["salary"], one_product)
NAIVE = {
    "oue": (choice("oue", 12), 3, all_ones),
    "oue of many": (choice("oue", 64), 3, all_ones),
    "sue": (choice("sue", 10), 3, all_ones),
    "olh": (choice("olh", 64), 3, one_seed),
    "laplace": (studies.AGE, 30.0, round_numbers),
    "gaussian": (studies.NORMAL, 30.0, round_numbers),
}


def attacked(name, false=FALSE):
    template, answer, fake = {**NAIVE, "sampled_products": PRODUCTS}[name]
    study = Study(studies.document(template))
    (question,) = study.questions
    mechanism = mechanisms_of(study)[question.id]
    random = np.random.default_rng(7)
    honest = perturb_many(mechanism, [answer] * PEOPLE, NotForRealAnswers(random.bytes))
    payloads = [bytes(one) for one in honest]
    payloads[:false] = [fake(mechanism, random) for _ in range(false)]
    secrets = [os.urandom(16) for _ in payloads]
    head = (study.id, study.version, study.digest)
    return study, [
        Report(report_id_of(secret), *head, {question.id: payload}, secret)
        for secret, payload in zip(secrets, payloads)
    ]


@pytest.mark.parametrize("name", NAIVE)
def test_false_reports_are_detected_while_reading_reports(name):
    study, reports = attacked(name)
    (question,) = study.questions
    for some, found in ((reports, True), (reports[FALSE:], False)):
        details = Details(study)
        summary = reduce_reports(study, details.watch(some))
        wrong = not_conforming(mechanisms_of(study), summary.questions, details.of)
        assert (question.id in wrong) == found


@pytest.mark.parametrize("name", ["oue", "olh"])
def test_formula_analysis_doubts_question_with_false_reports(name):
    study, reports = attacked(name)
    assert table_of_reports(study, reports, ["occupation"]).doubts[0].startswith("occupation: ")
    assert table_of_reports(study, reports[FALSE:], ["occupation"]).doubts == ()


@pytest.mark.parametrize("name", ["oue", "oue of many", "sue"])
def test_summary_alone_detects_all_ones_and_repeated_seeds(name):
    study, reports = attacked(name)
    parts = summarize(study, reports).questions
    assert not_conforming(mechanisms_of(study), parts, lambda _name: None)


def test_summary_alone_detects_product_that_came_too_often():
    """Of eight products 1 % of 20,000 reports may be one more by chance: here 2.5 % are false."""
    false = 5 * FALSE // 2
    study, reports = attacked("sampled_products", false)
    for some, found in ((reports, True), (reports[false:], False)):
        parts = summarize(study, some).questions
        assert ("salary" in not_conforming(mechanisms_of(study), parts, lambda _name: None)) == found


@pytest.mark.slow
def test_verdict_names_question_with_repeated_hash_seed():
    study, reports = attacked("olh")
    found = fit(study, reports, method="gaussian_approx")["occupation"]
    assert found.verdict.fit.state == "bad"
    assert any("occupation: the same hash seed came more often" in one for one in found.verdict.reasons)
