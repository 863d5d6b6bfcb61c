"""One flush: which requests it makes, how many, in which order, and what it counts."""

import pytest

from ldp_client.device import http, sending
from ldp_client.device.requests import Outcome
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises
from tests.kit.serving import STALLS
from tests.ldp_client.devices import STUDY, YES, cheap_study, consenting


@pytest.fixture
def unpaused(monkeypatch):
    monkeypatch.setattr(sending, "sleep", lambda _seconds: None)


def test_retries_send_the_same_bytes_after_random_pauses_of_growing_length(device, server, monkeypatch):
    pauses, bounds = [], []

    def uniform(low, high):
        bounds.append((low, high))
        return high / 4

    monkeypatch.setattr(sending, "sleep", pauses.append)
    monkeypatch.setattr(http.CHANCE, "uniform", uniform, raising=False)
    body = device.ledger.queued()[0].body.encode()
    server.statuses = [503, 500, 503]
    assert device.flush().sent == 1
    assert [sent for _, _, sent, _ in server.requests] == [body] * 4
    assert bounds == [(0, 1), (0, 2), (0, 4)]
    assert pauses == [0.25, 0.5, 1]
    http.backoff(30)
    assert bounds[-1] == (0, 60)


@pytest.mark.attack(9)
def test_report_is_sent_and_deleted_only_at_its_own_collector(device, tmp_path, server, other):
    """An app is configured for another collector while a report or a deletion waits."""
    elsewhere = consenting(tmp_path, "4", other.url)
    flushed = elsewhere.flush()
    assert (flushed.sent, flushed.waiting) == (0, 1)
    assert server.url in flushed.reason
    assert device.flush().sent == 1
    device.withdraw(STUDY.id)
    flushed = elsewhere.flush()
    assert (flushed.deleted, flushed.undeleted, other.requests) == (0, 1, [])
    assert server.url in flushed.reason
    assert device.flush().deleted == 1


@pytest.mark.attack(12)
def test_reports_are_sent_in_random_order(tmp_path, server):
    """A collector joins a person's answers by the order in which their reports come."""
    device = consenting(tmp_path, "4", server.url)
    ids = [device.answer(cheap_study(f"s{number}"), YES) for number in range(12)]
    device.flush()
    left = [path.rsplit("/", 1)[1] for path in server.asked("PUT")]
    assert sorted(left) == sorted(ids)
    assert left not in (ids, sorted(ids))


def test_withdrawal_during_an_upload_deletes_the_report_after(device, tmp_path, server, monkeypatch):
    put = sending.put_report

    def put_and_withdraw(transport, url, body, *_):
        other = consenting(tmp_path, "4", server.url)
        assert other.withdraw(STUDY.id) == 1
        # Another process sends nothing meanwhile, least of all the deletion before the report.
        assert (other.flush().undeleted, server.requests) == (1, [])
        return put(transport, url, body)

    monkeypatch.setattr(sending, "put_report", put_and_withdraw)
    flushed = device.flush()
    assert (flushed.sent, flushed.deleted) == (1, 1)
    assert [method for method, *_ in server.requests] == ["PUT", "DELETE"]


def test_report_withdrawn_during_a_flush_is_not_sent(tmp_path, server, monkeypatch):
    device = consenting(tmp_path, "4", server.url)
    for name in ("survey", "second"):
        device.answer(cheap_study(name), YES)

    def put_and_withdraw(_transport, url, *_):
        device.withdraw("second" if "/survey/" in url else "survey")
        return Outcome("sent")

    monkeypatch.setattr(sending, "put_report", put_and_withdraw)
    assert device.flush().sent == 1
    assert server.asked("DELETE") == []


@pytest.mark.attack(15)
def test_failing_report_blocks_no_other_and_no_deletion(tmp_path, server, monkeypatch):
    """A report that no request can be made of makes each flush fail."""
    put = sending.put_report

    def failing(transport, url, *what):
        if "/survey/" in url:
            raise ValueError("an odd one")
        return put(transport, url, *what)

    monkeypatch.setattr(sending, "put_report", failing)
    device = consenting(tmp_path, "4", server.url)
    device.answer(cheap_study("third"), YES)
    assert device.flush(attempts=1).sent == 1
    device.withdraw("third")
    for name in ("survey", "other"):
        device.answer(cheap_study(name), YES)
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting, flushed.deleted) == (1, 1, 1)
    assert "odd one" not in flushed.reason
    assert sorted([method for method, *_ in server.requests]) == ["DELETE", "PUT", "PUT"]


@pytest.mark.attack(15)
def test_flush_ends_despite_many_stalled_reports(tmp_path, monkeypatch, waits, stalling_server):
    """A server answers none of many reports, to hold a device up for minutes each."""
    monkeypatch.setattr(http, "DEADLINE_SECONDS", 20)
    monkeypatch.setattr(sending, "sleep", lambda _seconds: None)
    # Time goes on only while an exchange is waited for, and none ends.
    waits.wait = lambda _thread, _seconds: None
    monkeypatch.setattr(sending, "monotonic", lambda: 10 * sum(waits.seconds))
    url = stalling_server(*STALLS["silent"])
    device = consenting(tmp_path, "4", url)
    for number in range(6):
        device.answer(cheap_study(f"s{number}"), YES)
    assert device.flush(attempts=5).waiting == 6
    assert waits.seconds == [20, 20]


@pytest.mark.attack(15)
@pytest.mark.usefixtures("unpaused")
@pytest.mark.parametrize("status", [429, 503])
def test_overloaded_server_gets_one_request_per_attempt(tmp_path, server, status):
    """20 reports of a device wait for a collector that is overloaded."""
    device = consenting(tmp_path, "4", server.url)
    for number in range(20):
        device.answer(cheap_study(f"s{number}"), YES)
    server.statuses = [status] * 400
    flushed, asked = device.flush(attempts=5), server.asked("PUT")
    assert (flushed.sent, flushed.waiting, len(asked), len(set(asked))) == (0, 20, 5, 5)
    assert len(device.ledger.queued()) == 20


@pytest.mark.attack(15)
@pytest.mark.usefixtures("unpaused")
@pytest.mark.parametrize("stuck", ["DELETE", "PUT /v1/studies/new"])
def test_unsettled_requests_block_no_others(tmp_path, server, stuck):
    """A collector settles no deletion, or no report of one study, to hold up all else."""
    device = consenting(tmp_path, "40", server.url)
    for name in ("old0", "old1", "old2"):
        device.answer(cheap_study(name), YES)
    assert device.flush().sent == 3
    assert [device.withdraw(name) for name in ("old0", "old1", "old2")] == [1, 1, 1]
    for name in ("new0", "new1", "other"):
        device.answer(cheap_study(name), YES)
    server.stuck = stuck
    flushed = device.flush(attempts=4)
    settled = (flushed.sent, flushed.waiting, flushed.deleted, flushed.undeleted)
    assert settled == ((3, 0, 0, 3) if stuck == "DELETE" else (1, 2, 3, 0))


def test_flush_needs_a_collector(tmp_path):
    with raises(InputError, "device.no_collector"):
        consenting(tmp_path, "4").flush()
