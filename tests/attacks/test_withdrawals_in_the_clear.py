"""Hear relays alone once every study has one: who answered an earlier version without cannot withdraw."""

from __future__ import annotations

import pytest

from ldp_client.documents.report import report_id_of
from schemas import Study
from tests import studies
from tests.oblivious.conftest import Gateway, keys, relayed_study  # noqa: F401

RELAY = "https://relay.example/ldpkit"
NEEDED = (403, "urn:ldpkit:problem:oblivious-needed")


@pytest.fixture
def only_relays(make_harness, make_report, tmp_path, keys):  # noqa: F811
    """Of `mixed` the first version had no relay, of `relayed` every one has; each was answered once."""
    keys.save(tmp_path / "ohttp.keys")
    before = make_harness(ohttp_keys=str(tmp_path / "ohttp.keys"))
    first = Study(studies.document(studies.YES_NO, id="mixed"))
    relayed = relayed_study(RELAY, keys, id="relayed")
    for study in (first, relayed_study(RELAY, keys, id="mixed", version=2), relayed):
        assert before.publish(study).status_code == 201
    reports = [make_report(study) for study in (first, relayed)]
    assert [before.put(report).status_code for report in reports] == [201, 201]
    harness = make_harness(ohttp_keys=str(tmp_path / "ohttp.keys"), require_ohttp=True)
    return harness, *reports


def said(answer):
    return answer.status_code, answer.json.get("type", answer.json.get("result"))


def test_report_sent_without_relay_is_withdrawn_without_relay(only_relays):
    harness, report, _ = only_relays
    assert said(harness.withdraw(report.id, "mixed", secret=report.secret)) == (200, "withdrawn")
    # And so again, where the receipt was lost.
    assert said(harness.withdraw(report.id, "mixed", secret=report.secret)) == (200, "withdrawn")
    listed = harness.client.get("/v1/studies", headers=harness.operator).json["studies"]
    assert {one["id"]: one["reports"] for one in listed} == {"mixed": 0, "relayed": 1}


def test_relayed_study_rejects_direct_deletion(only_relays, keys):  # noqa: F811
    harness, _, report = only_relays
    assert said(harness.withdraw(report.id, "relayed", secret=report.secret)) == NEEDED
    assert Gateway(harness, keys).delete(report).status == 200
    # Nor does one that there is not.
    assert said(harness.withdraw(report.id, "unheard-of", secret=report.secret)) == NEEDED


@pytest.mark.parametrize(("study", "expected"), [("mixed", (200, "withdrawn")), ("relayed", NEEDED)])
def test_deletion_answer_does_not_reveal_stored_reports(only_relays, study, expected):
    harness, *reports = only_relays
    stored = next(report for report in reports if report.study == study)
    secret = bytes(16)
    assert said(harness.withdraw(report_id_of(secret), study, secret=secret)) == expected
    assert said(harness.withdraw(stored.id, study, secret=stored.secret)) == expected


def test_reports_are_accepted_only_through_relays(only_relays):
    harness, report, _ = only_relays
    assert said(harness.put(report)) == NEEDED
    assert said(harness.post([report.to_document()], "mixed")) == NEEDED
