"""Proxies, captive portals and other collectors answer an upload or a withdrawal in the collector's place.

Defence: The device: drops a report only on a receipt that names the report, or on a refusal of four types
that names the study's digest and comes from the collector that published it; a deletion is settled only
by a collector that serves the study; a closed study ends 30 days after its last day, by both clocks.
Known limit: a server with the collector's certificate can answer anything, and so can the server that the
device met first, such as one on another database with the very same study, if the study was not fetched
and the first upload's answer was lost; only its operator can delete a copy that another collector at that
address accepted.
"""

from __future__ import annotations

import json
from datetime import UTC, date, timedelta
from email.utils import format_datetime

import pytest

from ldp_client.device import verdicts
from schemas import Study
from tests import studies
from tests.ldp_client.devices import IDENTITY, Server, consenting, problem

STUDY = Study(studies.document(studies.YES_NO))
HTML = ("text/html", "<html>\x1b[31mLog in</html>")
STATUSES = [
    200,
    201,
    204,
    302,
    400,
    401,
    403,
    404,
    405,
    407,
    409,
    410,
    411,
    413,
    415,
    418,
    422,
    426,
    431,
    451,
]


@pytest.fixture
def server():
    with Server(STUDY.canonical()) as server:
        yield server


def answered(folder, server, study=STUDY):
    device = consenting(folder, "4", server.url)
    server.content = study.canonical()
    device.fetch(study.id)
    report_id = device.answer(study, {"ever": True})
    return device, report_id


@pytest.mark.parametrize("status", STATUSES)
def test_html_page_settles_no_upload_and_no_withdrawal(tmp_path, server, status):
    device, _ = answered(tmp_path, server)
    server.refusals = {status: HTML}
    server.statuses = [status]
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting, flushed.refused) == (0, 1, [])
    assert str(status) in flushed.reason
    assert "\x1b" not in flushed.reason
    assert len(device.ledger.queued()) == 1
    server.refusals = {}
    assert device.flush(attempts=1).sent == 1
    device.withdraw(STUDY.id)
    server.refusals = {status: HTML}
    server.statuses = [status]
    flushed = device.flush(attempts=1)
    assert (flushed.deleted, flushed.undeleted) == (0, 1)
    server.refusals = {}
    assert device.flush(attempts=1).deleted == 1


@pytest.mark.parametrize(
    "receipt",
    [
        "",
        "{}",
        "[1]",
        '{"id":"' + "0" * 32 + '","result":"stored"}',
        '{"id":"ID","result":"withdrawn"}',
        '{"id":"ID"}',
        "[" * 100_000,
    ],
)
def test_json_that_is_not_a_receipt_settles_no_upload(tmp_path, server, receipt):
    device, report_id = answered(tmp_path, server)
    server.refusals = {200: ("application/json", receipt.replace("ID", report_id))}
    assert device.flush(attempts=1).waiting == 1
    server.refusals = {}
    assert device.flush(attempts=1).sent == 1


REFUSALS = ["report-invalid", "report-conflict", "report-withdrawn", "study-closed", "study-unknown"]


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("digest", ["", "ab" * 32])
def test_refusal_of_another_study_drops_no_report(tmp_path, server, name, digest):
    device, _ = answered(tmp_path, server)
    server.refusals = {410: problem(name, digest)}
    server.statuses = [410]
    flushed = device.flush(attempts=1)
    assert (flushed.waiting, flushed.refused) == (1, [])
    assert name in flushed.reason
    assert device.flush(attempts=1).sent == 1


@pytest.mark.parametrize("answer", ["refusal", "receipt"])
def test_another_collector_at_same_address_settles_nothing(tmp_path, server, answer):
    """As when an operator starts it on the wrong database, in which that study was published too."""
    device, _ = answered(tmp_path, server)
    server.identity = "f" * 32
    if answer == "refusal":
        server.refusals, server.statuses = {410: problem("report-withdrawn", STUDY.digest)}, [410]
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting, flushed.refused) == (0, 1, [])
    assert "not from the collector that published" in flushed.reason
    server.identity = IDENTITY
    assert device.flush(attempts=1).sent == 1
    device.withdraw(STUDY.id)
    server.identity = "f" * 32
    assert device.flush(attempts=1).undeleted == 1
    device.fetch(STUDY.id)
    assert device.flush(attempts=1).undeleted == 1
    server.identity = IDENTITY
    assert device.flush(attempts=1).deleted == 1


@pytest.mark.parametrize("lost", ["upload", "refusal"])
def test_second_collector_cannot_become_publisher_after_an_upload(tmp_path, server, lost):
    """The answer to its upload was lost, or it was refused after that; then the study is fetched again."""
    device, _ = answered(tmp_path, server)
    server.statuses = [502]
    assert device.flush(attempts=1).waiting == 1
    if lost == "refusal":
        server.refusals, server.statuses = {410: problem("report-withdrawn", STUDY.digest)}, [410]
        assert len(device.flush(attempts=1).refused) == 1
    server.identity = "f" * 32
    device.fetch(STUDY.id)
    assert device.flush(attempts=1).sent == 0
    assert device.withdraw(STUDY.id) == 1
    assert device.flush(attempts=1).undeleted == 1
    server.identity = IDENTITY
    assert device.flush(attempts=1).deleted == 1


def test_refusal_by_the_publishing_collector_drops_the_report(tmp_path, server):
    device, report_id = answered(tmp_path, server)
    server.refusals, server.statuses = {410: problem("report-withdrawn", STUDY.digest)}, [410]
    (refused,) = device.flush(attempts=1).refused
    assert report_id in refused
    assert "report-withdrawn" in refused


def test_device_asks_collector_whether_it_published_an_unfetched_study(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, {"ever": True})
    refusal = {410: problem("report-withdrawn", STUDY.digest)}
    server.refusals, server.statuses, server.content = refusal, [410], b"{}"
    assert device.flush(attempts=1).waiting == 1
    server.statuses, server.content = [410], STUDY.canonical()
    assert len(device.flush(attempts=1).refused) == 1
    assert server.asked("GET") == ["/v1/studies/survey?version=1"] * 2


def test_collector_without_the_study_settles_no_deletion(tmp_path, server):
    """The study was not fetched and the upload's answer was lost: the report's collector is unknown."""
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, {"ever": True})
    server.statuses = [502]
    assert device.flush(attempts=1).waiting == 1
    assert device.withdraw(STUDY.id) == 1
    server.identity, server.content = "f" * 32, b"{}"
    flushed = device.flush(attempts=1)
    assert (flushed.deleted, flushed.undeleted) == (0, 1)
    assert "not from the collector that published" in flushed.reason
    server.identity, server.content = IDENTITY, STUDY.canonical()
    assert device.flush(attempts=1).deleted == 1


def test_collector_of_other_study_with_same_id_drops_no_report(tmp_path, server):
    device, _ = answered(tmp_path, server)
    other = Study(studies.document(studies.YES_NO, title="Another"))
    server.identity, server.content = "e" * 32, other.canonical()
    server.refusals, server.statuses = {422: problem("report-invalid", other.digest)}, [422]
    assert device.flush(attempts=1).waiting == 1


@pytest.mark.parametrize(
    ("shift", "collectors_shift", "final"),
    [
        (-1, None, False),
        (29, None, False),
        (31, None, True),
        (31, -11, False),
        (20, 900, False),
        (31, 31, True),
    ],
)
def test_report_of_closed_study_is_dropped_after_30_days_by_both_clocks(
    tmp_path, server, monkeypatch, shift, collectors_shift, final
):
    last = date.today()
    study = Study(studies.document(studies.YES_NO, closes=last.isoformat()))
    device, _ = answered(tmp_path, server, study)

    class Today(date):
        @classmethod
        def today(cls):
            return last + timedelta(shift)

    monkeypatch.setattr(verdicts, "date", Today)
    if collectors_shift is not None:
        from datetime import datetime

        moment = datetime(last.year, last.month, last.day, 12, tzinfo=UTC)
        monkeypatch.setattr(
            "http.server.BaseHTTPRequestHandler.date_time_string",
            lambda *_: format_datetime(moment + timedelta(collectors_shift), usegmt=True),
        )
    else:
        monkeypatch.setattr("http.server.BaseHTTPRequestHandler.date_time_string", lambda *_: "never")
    server.refusals, server.statuses = {410: problem("study-closed", study.digest)}, [410]
    flushed = device.flush(attempts=1)
    assert (len(flushed.refused), flushed.waiting) == (int(final), int(not final))
    if not final:
        assert (last + timedelta(30)).isoformat() in flushed.reason
        assert device.withdraw(study.id) == 1


def test_report_of_closed_study_without_last_day_is_kept(tmp_path, server):
    device, _ = answered(tmp_path, server)
    server.refusals, server.statuses = {410: problem("study-closed", STUDY.digest)}, [410]
    flushed = device.flush(attempts=1)
    assert (flushed.refused, flushed.waiting) == ([], 1)
    assert "until the study takes it or the person withdraws" in flushed.reason


def test_server_message_is_shortened_and_escaped(tmp_path, server):
    device, _ = answered(tmp_path, server)
    said = json.dumps(
        {"type": "urn:ldpkit:problem:x\x1b[2J", "detail": "\x1b]0;owned\x07\r\n" + "x" * 10_000}
    )
    server.refusals, server.statuses = {400: ("application/problem+json", said)}, [400]
    reason = device.flush(attempts=1).reason
    assert reason.isprintable()
    assert reason.isascii()
    assert len(reason) < 300
