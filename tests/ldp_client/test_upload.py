"""The device's side of an upload, against a small server that misbehaves on demand."""

import socket
import threading

import pytest

from ldp_client import Direct
from ldp_client.device import sending
from ldp_client.device.requests import delete_report, put_report
from ldp_client.documents.errors import InputError, StudyError, TransferError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting, fetch_study, problem

STUDY = Study(studies.document(studies.YES_NO))


@pytest.fixture
def server():
    with Server(STUDY.canonical()) as server:
        yield server


@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "sent"), (201, "sent"), (404, "kept"), (409, "kept"), (422, "kept")]
    + [(status, "waiting") for status in (408, 425, 429, 500, 503, 507)],
)
def test_each_upload_status_gives_its_outcome(server, status, state):
    server.statuses = [status]
    assert put_report(Direct(), f"{server.url}/x", "{}").state == state


@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "sent"), (204, "kept"), (404, "kept"), (410, "kept"), (403, "kept"), (503, "waiting")],
)
def test_each_deletion_status_gives_its_outcome(server, status, state):
    server.statuses = [status]
    assert delete_report(Direct(), f"{server.url}/x", "ab" * 16).state == state


def test_report_waits_for_an_unreachable_collector():
    outcome = put_report(Direct(), "http://127.0.0.1:9/x", "{}")
    assert outcome.state == "waiting"
    assert outcome.reason.startswith("cannot reach 127.0.0.1:")


def test_retries_send_the_same_bytes_with_growing_random_delays(tmp_path, server, monkeypatch):
    delays = []
    monkeypatch.setattr(sending, "sleep", delays.append)
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, {"ever": True})
    server.statuses = [503, 500, 503]
    assert device.flush().sent == 1
    assert len({body for _, _, body, _ in server.requests}) == 1
    assert len(delays) == 3
    assert all(0 <= delay <= 0.5 * 2 ** (i + 1) for i, delay in enumerate(delays))


def test_retries_stop_at_a_final_refusal(tmp_path, server, monkeypatch):
    monkeypatch.setattr(sending, "sleep", lambda _seconds: None)
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, {"ever": True})
    server.statuses, server.refusals = [503, 422], {422: problem("report-invalid", STUDY.digest)}
    assert len(device.flush().refused) == 1
    assert server.asked("PUT") == server.asked("PUT")[:1] * 2


def test_flush_keeps_unsent_reports_and_deletes_sent_ones(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    report_id = device.answer(STUDY, {"ever": True})
    body = device.ledger.queued()[0].body
    server.statuses = [503]
    assert device.flush(attempts=1).waiting == 1
    assert device.ledger.queued()[0].body == body
    assert device.flush(attempts=1).sent == 1
    assert device.ledger.queued() == []
    assert [sent.decode() for _, _, sent, _ in server.requests] == [body, body]
    assert server.requests[0][1] == f"/v1/studies/survey/reports/{report_id}"


def test_rejected_report_is_dropped_and_stays_charged(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, {"ever": True})
    server.statuses, server.refusals = [422], {422: problem("report-invalid", STUDY.digest)}
    flushed = device.flush(attempts=3)
    assert "422" in flushed.refused[0]
    assert device.ledger.queued() == []
    assert device.epsilon_left == 3


def test_report_is_sent_only_to_its_own_collector(tmp_path, server):
    first = consenting(tmp_path, "4", "http://127.0.0.1:9")
    first.answer(STUDY, {"ever": True})
    flushed = consenting(tmp_path, "4", server.url).flush()
    assert (flushed.sent, flushed.waiting, server.requests) == (0, 1, [])
    assert "belongs to the collector http://127.0.0.1:9:" in flushed.reason
    assert len(first.ledger.queued()) == 1


def test_report_of_another_collector_counts_as_later_until_due(tmp_path, server):
    first = consenting(tmp_path, "4", "http://127.0.0.1:9", send_window=86_400)
    first.answer(STUDY, {"ever": True})
    flushed = consenting(tmp_path, "4", server.url).flush()
    assert (flushed.scheduled, flushed.waiting) == (1, 0)


def test_report_is_deleted_only_at_the_collector_that_got_it(tmp_path, server):
    """Another collector would only answer that it does not have the report."""
    consenting(tmp_path, "4").answer(STUDY, {"ever": True})
    with Server() as other:
        device = consenting(tmp_path, "4", server.url)
        assert device.flush().sent == 1
        device.withdraw(STUDY.id)
        flushed = consenting(tmp_path, "4", other.url).flush()
        assert (flushed.deleted, flushed.undeleted) == (0, 1)
        assert server.url in flushed.reason
        assert other.requests == []
    assert device.flush().deleted == 1
    assert [len(server.asked(method)) for method in ("PUT", "DELETE")] == [1, 1]


def test_report_waits_after_an_invalid_server_answer():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answerer = threading.Thread(target=answer_nonsense, args=(listener,))
        answerer.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        assert put_report(Direct(), url, "{}").state == "waiting"
        answerer.join()


def answer_nonsense(listener):
    connection, _ = listener.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(b"garbage\r\n\r\n")


def test_requests_contain_no_identifying_headers(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, {"ever": True})
    device.flush()
    _, _, _, headers = server.requests[0]
    assert set(headers) <= {
        "Accept-Encoding",
        "Content-Length",
        "Content-Type",
        "Host",
        "User-Agent",
        "Connection",
    }
    assert headers["User-Agent"] == "ldpkit"


def test_bodies_of_one_study_have_one_size(tmp_path):
    sizes = set()
    for number, answer in enumerate([True, False] * 5):
        device = consenting(tmp_path / str(number), "4")
        device.answer(STUDY, {"ever": answer})
        sizes.add(len(device.ledger.queued()[0].body))
    assert len(sizes) == 1


def test_fetching_a_study(server):
    study, base = fetch_study(f"{server.url}/v1/studies/survey")
    assert (study, base) == (STUDY, server.url)


def test_fetch_errors_are_clear(server):
    with raises(InputError, "device.study_url"):
        fetch_study("ftp://host/v1/studies/a")
    with raises(InputError, "device.study_url"):
        fetch_study(f"{server.url}/survey")
    with raises(TransferError, "device.unreachable"):
        fetch_study("http://127.0.0.1:9/v1/studies/survey")
    with raises(TransferError, "device.another_study"):
        fetch_study(f"{server.url}/v1/studies/other")
    server.statuses = [404]
    with raises(InputError, "device.http_absent", "404"):
        fetch_study(f"{server.url}/v1/studies/survey")
    server.content = b"{}"
    with pytest.raises(StudyError):
        fetch_study(f"{server.url}/v1/studies/survey")
