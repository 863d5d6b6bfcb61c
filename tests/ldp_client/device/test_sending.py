"""One flush: which requests it makes, how many, in which order, and what it counts."""

import time

import pytest

from ldp_client.device import http, sending, verdicts
from ldp_client.device.ledger import locked
from ldp_client.device.requests import Outcome
from ldp_client.device.sending import MOST_DELETIONS, MOST_REQUESTS, PERIOD_SECONDS, allows
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises
from tests.kit.stalling import STALLS, stalling_server
from tests.ldp_client.devices import STUDY, YES, cheap_study, consenting
from tests.statistics import seed_the_system


@pytest.fixture
def unpaused(monkeypatch):
    monkeypatch.setattr(sending, "sleep", lambda _seconds: None)


def test_retries_send_the_same_bytes_after_random_pauses_of_growing_length(tmp_path, server, monkeypatch):
    pauses, bounds = [], []

    def uniform(low, high):
        bounds.append((low, high))
        return high / 4

    monkeypatch.setattr(sending, "sleep", pauses.append)
    monkeypatch.setattr(http.CHANCE, "uniform", uniform, raising=False)
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    body = device.ledger.queued()[0].body.encode()
    server.statuses = [503, 500, 503]
    assert device.flush().sent == 1
    assert [sent for _, _, sent, _ in server.requests] == [body] * 4
    assert bounds == [(0, 1), (0, 2), (0, 4)]
    assert pauses == [0.25, 0.5, 1]
    http.backoff(30)
    assert bounds[-1] == (0, 60)


@pytest.mark.attack(9)
def test_report_is_sent_and_deleted_only_at_its_own_collector(tmp_path, server, other):
    """An app is configured for another collector while a report or a deletion waits."""
    device = consenting(tmp_path, "4", server.url, send_window=86_400)
    device.answer(STUDY, YES)
    elsewhere = consenting(tmp_path, "4", other.url)
    flushed = elsewhere.flush()
    assert (flushed.scheduled, flushed.waiting) == (1, 0)
    flushed = elsewhere.flush(now=True)
    assert (flushed.sent, flushed.waiting) == (0, 1)
    assert server.url in flushed.reason
    assert device.flush(now=True).sent == 1
    device.withdraw(STUDY.id)
    flushed = elsewhere.flush()
    assert (flushed.deleted, flushed.undeleted, other.requests) == (0, 1, [])
    assert server.url in flushed.reason
    assert device.flush().deleted == 1


def test_requests_are_paced_across_devices_of_one_folder(tmp_path, server):
    """A report that waits for its turn is withdrawn without a request."""
    for number in range(MOST_REQUESTS + 2):
        consenting(tmp_path, "4", server.url).answer(cheap_study(f"s{number}"), YES)
    flushed = consenting(tmp_path, "4", server.url).flush()
    assert (flushed.sent, flushed.waiting) == (MOST_REQUESTS, 2)
    device = consenting(tmp_path, "4", server.url)
    assert device.flush().waiting == 2
    assert len(server.requests) == MOST_REQUESTS
    assert device.withdraw(device.ledger.queued()[0].study) == 0
    assert len(device.ledger.queued()) == 1


@pytest.mark.usefixtures("unpaused")
def test_failed_attempts_count_towards_the_pace(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    for number in range(4):
        device.answer(cheap_study(f"s{number}"), YES)
    server.stuck = "PUT"
    assert device.flush(attempts=5).waiting == 4
    assert len(server.requests) == MOST_REQUESTS


def test_the_pace_allows_a_full_number_in_every_period(tmp_path):
    def allowed(now):
        with consenting(tmp_path, "4").ledger.writing() as connection:
            return [allows(connection, now) for _ in range(MOST_REQUESTS + 1)]

    assert (MOST_REQUESTS, MOST_DELETIONS, PERIOD_SECONDS) == (15, 10, 60)
    full = [True] * MOST_REQUESTS + [False]
    none = [False] * (MOST_REQUESTS + 1)
    start = 1_000_000_000.0
    moments = (0, PERIOD_SECONDS - 0.1, PERIOD_SECONDS, PERIOD_SECONDS - 30, -86_400, -86_400 + 1)
    # A clock that is moved far back forgets the moments that lie ahead of it then.
    assert [allowed(start + moment) for moment in moments] == [full, none, full, none, full, none]


@pytest.mark.attack(12)
def test_reports_are_sent_in_random_order(tmp_path, server, monkeypatch):
    """A collector joins a person's answers by the order in which their reports come."""
    seed_the_system(monkeypatch, "order")
    device = consenting(tmp_path, "4", server.url)
    ids = [device.answer(cheap_study(f"s{number}"), YES) for number in range(12)]
    device.flush()
    left = [path.rsplit("/", 1)[1] for path in server.asked("PUT")]
    assert sorted(left) == sorted(ids)
    assert left not in (ids, sorted(ids))


def test_withdrawal_during_an_upload_deletes_the_report_after(tmp_path, server, monkeypatch):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    put = verdicts.put_report

    def put_and_withdraw(transport, url, body, *_):
        other = consenting(tmp_path, "4", server.url)
        assert other.withdraw(STUDY.id) == 1
        # Another process must not send the deletion before the report has arrived.
        assert (other.flush().undeleted, server.requests) == (1, [])
        return put(transport, url, body)

    monkeypatch.setattr(verdicts, "put_report", put_and_withdraw)
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

    monkeypatch.setattr(verdicts, "put_report", put_and_withdraw)
    assert device.flush().sent == 1
    assert server.asked("DELETE") == []


def test_flush_waits_while_another_process_sends(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    with locked(str(tmp_path), 0):
        flushed = device.flush()
    assert (flushed.waiting, server.requests) == (1, [])
    assert device.flush().sent == 1


@pytest.mark.attack(15)
def test_failing_report_blocks_no_other_and_no_deletion(tmp_path, server, monkeypatch):
    """A report that no request can be made of makes each flush fail."""
    put = verdicts.put_report

    def failing(transport, url, *what):
        if "/survey/" in url:
            raise ValueError("an odd one")
        return put(transport, url, *what)

    monkeypatch.setattr(verdicts, "put_report", failing)
    device = consenting(tmp_path, "4", server.url)
    device.answer(cheap_study("third"), YES)
    assert device.flush(attempts=1).sent == 1
    device.withdraw("third")
    for name in ("survey", "other"):
        device.answer(cheap_study(name), YES)
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting, flushed.deleted) == (1, 1, 1)
    assert "odd one" not in flushed.reason
    assert [method for method, *_ in server.requests] == ["PUT", "DELETE", "PUT"]


@pytest.mark.attack(15)
def test_flush_ends_despite_many_stalled_reports(tmp_path, monkeypatch, waits):
    """A server answers none of many reports, to hold a device up for minutes each."""
    monkeypatch.setattr(http, "DEADLINE_SECONDS", 20)
    # Time goes on only while an exchange is waited for, and none ends.
    waits.wait = lambda _thread, _seconds: None
    monkeypatch.setattr(sending, "monotonic", lambda: 10 * sum(waits.seconds))
    with stalling_server(*STALLS["silent"]) as url:
        device = consenting(tmp_path, "4", url)
        for number in range(6):
            device.answer(cheap_study(f"s{number}"), YES)
        assert device.flush(attempts=1).waiting == 6
    assert waits.seconds == [20, 20]


class Life:
    """A device whose clock and pauses take no time, with fewer requests a minute than real ones."""

    def __init__(self, folder, server, monkeypatch):
        self.now = 1_000_000_000.0
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(sending, "sleep", lambda _seconds: None)
        monkeypatch.setattr(sending, "MOST_REQUESTS", 6)
        monkeypatch.setattr(sending, "MOST_DELETIONS", 4)
        self.device = consenting(folder, "4", server.url)

    def answer(self, *names):
        for name in names:
            self.device.answer(cheap_study(name), YES)

    def flush(self, later=PERIOD_SECONDS):
        self.now += later
        return self.device.flush(attempts=2)

    def withdraw(self, *names):
        """Send reports and withdraw them."""
        self.answer(*names)
        while self.flush().waiting:
            pass
        assert sum(self.device.withdraw(name) for name in names) == len(names)


@pytest.fixture
def life(tmp_path, server, monkeypatch):
    return Life(tmp_path, server, monkeypatch)


@pytest.mark.attack(15)
def test_unacknowledged_deletions_do_not_block_uploads(life, server):
    """A collector never settles a device's deletions, so that its reports would never have their turn."""
    life.withdraw(*[f"old{number}" for number in range(7)])
    life.answer("new")
    server.stuck = "DELETE"
    server.requests.clear()
    flushed = life.flush()
    assert (flushed.sent, flushed.undeleted) == (1, 7)
    assert server.requests[0][0] == "DELETE"
    assert len(server.asked("DELETE")) == 4
    # A minute's requests become free one by one, and a deletion always asks first.
    sent = 0
    for number in range(8):
        life.answer(f"later{number}")
        sent += life.flush(later=PERIOD_SECONDS / 6).sent
    assert sent >= 2


@pytest.mark.attack(15)
def test_unaccepted_reports_do_not_block_deletions_or_other_studies(life, server, monkeypatch):
    """A collector never accepts one study's reports, to hold up deletions and the other studies."""
    seed_the_system(monkeypatch, "others")
    life.withdraw("old")
    life.answer(*[f"new{number}" for number in range(7)])
    server.stuck = "PUT /v1/studies/new"
    assert life.flush().deleted == 1
    life.answer("other")
    # Chance decides which reports have their turn.
    assert any(life.flush().sent for _ in range(20))


def test_flush_needs_a_collector_and_attempts(tmp_path):
    with raises(InputError, "device.no_collector"):
        consenting(tmp_path, "4").flush()
    for attempts in (0, "2"):
        with raises(InputError, "device.attempts"):
            consenting(tmp_path, "4", "https://a.example").flush(attempts)
