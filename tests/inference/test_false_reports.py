"""Counts of extreme reports: honest ones, false ones, and summaries without such counts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from inference.false_reports.conformance import conformance
from inference.results.verdict import FIT, NOTE
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import SummaryError
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.kit.errors import raises

QUESTIONS = [studies.LINEAR, studies.YES_NO_RECORD]
# At the bounds, so that all that an answer can add to a report is added.
OUTERMOST = {"age": 42, "years": 23, "rate": 5, "affair": True}


def reports_of(template, n, random):
    (question,) = Study(studies.document(template)).questions
    mechanism = mechanism_for(question)
    fields = [field["id"] for field in (*template["features"], template["response"])]
    answers = [{name: OUTERMOST[name] for name in fields}] * n
    return mechanism, np.asarray(perturb_many(mechanism, answers, NotForRealAnswers(random.bytes)), np.uint8)


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("template", QUESTIONS, ids=lambda one: one["id"])
def test_few_false_reports_at_extreme_values_are_flagged(template):
    """Send 20 records in 20,000 with every entry as far out as a device could be, to turn a slope."""
    mechanism, payloads = reports_of(template, 20_000, np.random.default_rng(2))
    entries = mechanism.payload_size // 4
    payloads[:20, : 4 * entries] = np.full(entries, 15 << 20).astype(">i4").view(np.uint8)
    for payload in payloads[:20]:
        mechanism.check(payload.tobytes())
    part = QuestionSummary.of(mechanism, payloads)
    (finding,) = conformance({"a": mechanism}, {"a": part}, {})["a"]
    assert finding.part == FIT
    assert "farther out than the noise can explain" in finding.text
    assert not conformance({"a": mechanism}, {"a": QuestionSummary.of(mechanism, payloads[20:])}, {})["a"]


def test_counts_add_up_and_travel_with_the_summary():
    study = Study(studies.document(studies.LINEAR))
    mechanism, payloads = reports_of(studies.LINEAR, 3000, np.random.default_rng(3))
    whole = QuestionSummary.of(mechanism, payloads)
    halves = [QuestionSummary.of(mechanism, half) for half in np.split(payloads, 2)]
    assert np.array_equal(halves[0].merge(halves[1]).tails, whole.tails)
    text = Summary(study.id, study.version, study.digest, {"rating": whole}).to_json()
    assert np.array_equal(Summary.from_json(text, study).questions["rating"].tails, whole.tails)


def test_older_summary_without_tails_is_read_with_a_note():
    study = Study(studies.document(studies.LINEAR))
    mechanism, payloads = reports_of(studies.LINEAR, 300, np.random.default_rng(4))
    part = QuestionSummary.of(mechanism, payloads)
    document = json.loads(Summary(study.id, study.version, study.digest, {"rating": part}).to_json())
    del document["questions"]["rating"]["tails"]
    older = Summary.from_json(json.dumps(document), study).questions["rating"]
    assert older.tails is None
    assert older.merge(part).tails is None
    (finding,) = conformance({"a": mechanism}, {"a": older}, {})["a"]
    assert finding.part == NOTE
    assert "few false reports would be hidden" in finding.text
    assert conformance({"a": mechanism}, {"a": part}, {})["a"] == ()


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: [-1, *t[1:]], lambda t: [0, 5, *t[2:]]])
def test_impossible_tail_counts_are_rejected(change):
    study = Study(studies.document(studies.LINEAR))
    mechanism, payloads = reports_of(studies.LINEAR, 300, np.random.default_rng(5))
    part = QuestionSummary.of(mechanism, payloads)
    document = json.loads(Summary(study.id, study.version, study.digest, {"rating": part}).to_json())
    document["questions"]["rating"]["tails"] = change(document["questions"]["rating"]["tails"])
    with raises(SummaryError, "summary.tails_impossible", field="questions.rating.tails"):
        Summary.from_json(json.dumps(document), study)
