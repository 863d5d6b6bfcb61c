"""The outcome of each request, as its answer states it, and what that means for the report."""

import json
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime

import pytest

from ldp_client import Direct
from ldp_client.device import outbox
from ldp_client.device.requests import delete_report, put_report
from ldp_client.documents.errors import InputError, RefusedError, StudyError, TransferError
from schemas import Study
from schemas.signing import sign_study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import STUDY, YES, consenting, fetch_study, problem, signing_pair


@pytest.mark.parametrize(
    ("request_once", "status", "state"),
    [
        *[(put_report, status, "sent") for status in (200, 201)],
        *[(put_report, status, "kept") for status in (404, 409, 422)],
        *[(put_report, status, "waiting") for status in (408, 425, 429, 500, 503)],
        *[(delete_report, status, "kept") for status in (204, 404, 410, 403)],
        (delete_report, 200, "sent"),
        (delete_report, 503, "waiting"),
    ],
)
def test_each_status_gives_its_outcome(server, request_once, status, state):
    server.statuses = [status]
    assert request_once(Direct(), f"{server.url}/x", "ab" * 16).state == state


def test_report_waits_without_a_valid_answer(raw_server):
    assert put_report(Direct(), "http://127.0.0.1:9/x", "{}").state == "waiting"
    url = raw_server(lambda connection: connection.sendall(b"garbage\r\n\r\n"))
    assert put_report(Direct(), f"{url}/x", "{}").state == "waiting"


@pytest.mark.attack(12)
def test_requests_contain_no_identifying_headers(device, server):
    """A collector tells devices apart by what their requests say about the program."""
    device.flush()
    ((_, _, _, headers),) = server.requests
    known = {"Accept-Encoding", "Content-Length", "Content-Type", "Host", "User-Agent", "Connection"}
    assert set(headers) <= known
    assert headers["User-Agent"] == "ldpkit"


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    ("status", "media_type", "text"),
    [
        *[(status, "text/html", "<html>Log in</html>") for status in (200, 204, 302, 404, 410, 422)],
        *[(200, "application/json", text) for text in ("", "[1]", '{"id":"ID"}', "[" * 100_000)],
        (200, "application/json", '{"id":"' + "0" * 32 + '","result":"stored"}'),
        (200, "application/json", '{"id":"ID","result":"deleted"}'),
    ],
)
def test_only_a_reports_own_receipt_settles_it(device, server, status, media_type, text):
    """A captive portal or a proxy answers in the collector's place, or a server with another receipt."""
    (queued,) = device.ledger.queued()
    answer = {status: (media_type, text.replace("ID", queued.report_id))}
    server.refusals, server.statuses = answer, [status]
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting, flushed.refused) == (0, 1, [])
    server.refusals = {}
    assert device.flush(attempts=1).sent == 1
    device.withdraw(STUDY.id)
    server.refusals, server.statuses = answer, [status]
    assert device.flush(attempts=1).undeleted == 1


def test_server_message_is_shortened_and_escaped(device, server):
    document = {"type": "urn:ldpkit:problem:x\x1b[2J", "detail": "\x1b]0;owned\x07\r\n" + "x" * 10_000}
    text = json.dumps(document)
    server.refusals, server.statuses = {400: ("application/problem+json", text)}, [400]
    reason = device.flush(attempts=1).reason
    assert reason.isprintable()
    assert reason.isascii()
    assert len(reason) < 300


def test_refusal_of_another_groups_ticket_explains_itself(device, server):
    """Advice to give an unused code would make the person ask for another one of the same group."""
    media_type, text = problem("ticket-needed")
    document = {**json.loads(text), "field": "public.region", "detail": "is another value"}
    server.statuses, server.refusals = [403], {403: (media_type, json.dumps(document))}
    flushed = device.flush(attempts=1)
    assert "public.region: HTTP status 403, ticket-needed: is another value" in flushed.reason
    assert "a ticket that carries the report's value" in flushed.reason
    assert flushed.waiting == 1


def test_each_failed_fetch_has_its_error(server):
    assert fetch_study(f"{server.url}/v1/studies/survey") == (STUDY, server.url)
    with raises(TransferError, "device.unreachable"):
        fetch_study("http://127.0.0.1:9/v1/studies/survey")
    for status in (401, 404):
        server.statuses = [status]
        with raises(InputError, "device.http_absent", str(status)):
            fetch_study(f"{server.url}/v1/studies/survey")
    server.statuses, server.refusals = [410], {410: problem("study-deleted")}
    with raises(RefusedError, "device.deleted"):
        fetch_study(f"{server.url}/v1/studies/survey")
    server.content = b"{}"
    with raises(StudyError, "study.invalid", field="format"):
        fetch_study(f"{server.url}/v1/studies/survey")
    document = studies.document(studies.YES_NO)
    document["questions"][0]["mechanism"]["name"] = "quantum"
    server.content = json.dumps(document).encode()
    with raises(RefusedError, "device.cannot_be_answered", "quantum"):
        fetch_study(f"{server.url}/v1/studies/survey")


@pytest.mark.attack(16)
def test_fetch_rejects_another_study_than_requested(server):
    """A collector answers a request for one study with another, which the device would charge for."""
    with raises(TransferError, "device.another_study", "survey"):
        fetch_study(f"{server.url}/v1/studies/other")


def test_pinned_key_fetches_the_signed_form(tmp_path, server):
    private, public = signing_pair()
    (tmp_path / "public.pem").write_text(public)
    server.content = sign_study(STUDY, private.encode()).to_json().encode()
    device = consenting(tmp_path / "d", "4", server.url, signing_keys=[tmp_path / "public.pem"])
    device.answer(device.fetch("survey"), YES)
    assert server.asked("GET") == ["/v1/studies/survey/signed"]
    server.content = STUDY.canonical()
    with pytest.raises(StudyError):
        device.fetch("survey")


def test_closed_study_is_not_fetched_and_its_report_waits(tmp_path, server):
    """The study may have been closed by mistake."""
    device = consenting(tmp_path, "4", server.url)
    device.answer(device.fetch("survey"), YES)
    server.headers = {"LDPKit-Study": "closed"}
    with raises(RefusedError, "device.closed_early"):
        device.fetch("survey")
    server.statuses, server.refusals = [410], {410: problem("study-closed", STUDY.digest)}
    flushed = device.flush(attempts=1)
    assert (flushed.refused, flushed.waiting) == ([], 1)


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    "name", ["report-invalid", "report-conflict", "report-withdrawn", "study-closed", "study-unknown"]
)
@pytest.mark.parametrize("digest", ["", "ab" * 32])
def test_refusal_of_another_study_drops_no_report(device, server, name, digest):
    """A collector refuses a report in the name of another study, or of none."""
    server.refusals, server.statuses = {410: problem(name, digest)}, [410]
    flushed = device.flush(attempts=1)
    assert (flushed.waiting, flushed.refused) == (1, [])
    assert name in flushed.reason
    assert device.flush(attempts=1).sent == 1


def test_refusal_drops_the_report_and_stays_charged(device, server):
    (queued,) = device.ledger.queued()
    server.refusals, server.statuses = {410: problem("report-withdrawn", STUDY.digest)}, [410]
    (refused,) = device.flush(attempts=3).refused
    assert queued.report_id in refused
    assert "report-withdrawn" in refused
    assert (device.ledger.queued(), device.epsilon_left) == ([], 3)
    assert len(server.asked("PUT")) == 1


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    ("shift", "collectors_shift", "is_final"),
    [(30, None, False), (31, None, True), (31, 30, False), (30, 900, False), (31, 31, True)],
)
def test_report_of_closed_study_is_dropped_after_30_days_by_both_clocks(
    tmp_path, server, monkeypatch, shift, collectors_shift, is_final
):
    """A collector closes a study by mistake, or a clock is wrong, so that reports would be dropped."""
    last = date(2026, 6, 15)
    study = Study(studies.document(studies.YES_NO, closes=last.isoformat()))
    monkeypatch.setattr(outbox, "today", lambda: last)
    device = consenting(tmp_path, "4", server.url)
    device.answer(study, YES)
    monkeypatch.setattr(outbox, "today", lambda: last + timedelta(shift))
    header = "never"
    if collectors_shift is not None:
        header = format_datetime(datetime(2026, 6, 15, 12, tzinfo=UTC) + timedelta(collectors_shift), True)
    monkeypatch.setattr("http.server.BaseHTTPRequestHandler.date_time_string", lambda _: header)
    server.refusals, server.statuses = {410: problem("study-closed", study.digest)}, [410]
    flushed = device.flush(attempts=1)
    assert (len(flushed.refused), flushed.waiting) == (int(is_final), int(not is_final))
    if not is_final:
        assert (last + timedelta(30)).isoformat() in flushed.reason
