"""A few extreme reports change a regression's slope, and only the collector's own summary is fitted.

Defence: The analyst's fit, by counts that are valid for any answers; false reports that honest noise
could also produce stay possible, with at most the effect that `ldpkit summarize` states for 1 %.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from inference.false_reports.far_out import false_report_notes, false_report_reasons
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.report import report_id_of
from schemas import Report, Study
from summaries import Summary, summarize
from tests import studies

STUDY = Study({**studies.document(studies.LINEAR, studies.YES_NO), "id": "habits"})
(RATING, EVER) = STUDY.questions
MECHANISM = mechanism_for(RATING)
FALSE = 3


def reports(honest, random):
    """So many honest reports, and FALSE with every entry as far out as a device could ever be."""
    source = NotForRealAnswers(random.bytes)
    answer = {"age": 42, "years": 23, "rate": 5}
    found = [bytes(payload) for payload in perturb_many(MECHANISM, [answer] * honest, source)]
    entries = MECHANISM.payload_size // 4
    found += [np.full(entries, 15 << 20).astype(">i4").tobytes()] * FALSE
    return [_report(payload) for payload in found]


def _report(payload):
    secret = os.urandom(16)
    payloads = {"rating": payload, "ever": mechanism_for(EVER).perturb("yes")}
    head = (STUDY.id, STUDY.version, STUDY.digest)
    return Report(report_id_of(secret), *head, payloads, secret)


@pytest.fixture
def attacked(make_harness, database_url):
    harness = make_harness(database=database_url, lock_timeout=10)
    assert harness.publish(STUDY).status_code == 201
    sent = reports(2000, np.random.default_rng(1))
    answer = harness.post([report.to_document() for report in sent])
    assert answer.get_json()["stored"] == len(sent)
    return harness, sent


def test_running_summary_detects_false_records_until_deleted(attacked):
    harness, sent = attacked
    text = harness.summary().text
    assert text == summarize(STUDY, sent).to_json()
    part = Summary.from_json(text, STUDY).questions["rating"]
    assert false_report_reasons(MECHANISM, part)
    assert not false_report_notes(MECHANISM, part)
    for report in sent[-FALSE:]:
        harness.withdraw(report.id)
    assert harness.summary().text == summarize(STUDY, sent[:-FALSE]).to_json()
    part = Summary.from_json(harness.summary().text, STUDY).questions["rating"]
    assert not false_report_reasons(MECHANISM, part)
