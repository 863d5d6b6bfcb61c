"""Issuer and collector pool everything they store and every request they saw: who sent which report?

The device blinds what the issuer signs, and sends the report in the next window, at a uniformly random
moment. Known limit: a device that is woken at an hour of its own each day asks and sends at that hour.
"""

import random
from types import SimpleNamespace

import pytest

from collector.db import Database
from collector.issuer import issue
from collector.issuer.issue import Person
from collector.migrations import make
from ldp_client import Direct
from ldp_client.device import outbox, sending
from ldp_client.device.http import Answer
from schemas import Study
from tests import studies
from tests.kit.collectors import Harness
from tests.kit.issuing import BY, block_of, invited, issuer_at
from tests.ldp_client.devices import consenting
from tests.statistics import share_is

DAY = 86_400
START = 21_000 * DAY
PEOPLE = 16
COLLECTOR, ISSUER = "https://collector.example", "https://issuer.example"


class World:
    """Both servers in this process, a clock, and everything that reaches either of them."""

    def __init__(self, folder, monkeypatch):
        self.now, self.sender = float(START), None
        self.asked, self.sent = [], []
        monkeypatch.setattr(outbox, "now", lambda: self.now)
        url = f"sqlite:///{folder / 'issuer.sqlite3'}"
        self.database = Database(url, 5)
        make(self.database)
        self.issuer = issuer_at(url)
        self.collector = Harness(f"sqlite:///{folder / 'collector.sqlite3'}")
        self.study, self.codes = self.publish("survey", [Person("", {})] * PEOPLE)
        monkeypatch.setattr(Direct, "exchange", lambda _transport, request, _most=0: self.exchange(request))

    def publish(self, study_id, people):
        """Publish a study, and invite people."""
        with self.database.write() as session:
            issue.add_key(session, study_id, {}, BY)
            codes = invited(session, study_id, people)
            tokens = block_of(session, study_id, ISSUER)
        channel = {"batches": {"hours": 24}, "tickets": tokens}
        study = Study(studies.document(studies.YES_NO, id=study_id, channel=channel))
        assert self.collector.publish(study).status_code == 201
        return study, codes

    def exchange(self, request):
        """The way to both servers, on which they note all that there is to note."""
        is_issuer = request.full_url.startswith(ISSUER)
        app, seen = (self.issuer, self.asked) if is_issuer else (self.collector.app, self.sent)
        path, headers = request.full_url.split("example", 1)[1], dict(request.header_items())
        if request.data:
            # The adversary sees all but who sent it, which it wants to know.
            seen.append(
                SimpleNamespace(moment=self.now, body=request.data, headers=headers, truth=self.sender)
            )
        answer = app.test_client().open(path, method=request.get_method(), data=request.data, headers=headers)
        return Answer(answer.status_code, answer.headers, answer.data)


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path, monkeypatch)
    yield made
    made.collector.collector.close()
    made.issuer.extensions["ldpkit"].close()
    made.database.engine.dispose()


def by_order(asked, sent):
    """Who asked first sends first."""
    return [(one.truth, other.truth) for one, other in zip(asked, sent)]


def by_time_of_day(asked, sent):
    """Who asked at a time of day sends at about that time, on whichever day: each takes the nearest left."""
    left, order, pairs = list(sent), random.Random(7), []
    for one in asked:
        # Of equals the adversary takes any.
        order.shuffle(left)
        apart = {id(other): abs(one.moment % DAY - other.moment % DAY) for other in left}
        nearest = min(left, key=lambda other: min(apart[id(other)], DAY - apart[id(other)]))
        left.remove(nearest)
        pairs.append((one.truth, nearest.truth))
    return pairs


def linked(pairs):
    assert len(pairs) == PEOPLE
    return sum(one == other for one, other in pairs)


def everybody_answers(world, folder):
    """Everybody answers at some moment of the day, and their device wakes up every hour from then on."""
    devices = []
    for number in range(PEOPLE):
        world.now, world.sender = START + number * DAY / PEOPLE, number
        device = consenting(folder / str(number), "8", COLLECTOR)
        device.answer(world.study, {"ever": bool(number % 2)}, world.codes[number])
        device.flush()
        devices.append((device.ledger.queued()[0].due, number, device))
    for due, number, device in sorted(devices, key=lambda each: each[:2]):
        world.now, world.sender = float(due), number
        assert device.flush().sent == 1


@pytest.mark.slow
@pytest.mark.attack(12)
def test_issuer_and_collector_together_only_guess(world, tmp_path, monkeypatch):
    """Both match requests by order, time of day, sizes and headers."""
    everybody_answers(world, tmp_path / "waiting")
    for adversary in (by_order, by_time_of_day):
        pairs = adversary(world.asked, world.sent)
        assert share_is(linked(pairs), PEOPLE, 1 / PEOPLE), adversary.__name__
    for seen in (world.asked, world.sent):
        assert len({len(one.body) for one in seen}) == 1
        assert len({frozenset(name.lower() for name in one.headers) for one in seen}) == 1
    assert max(one.moment for one in world.asked) < min(one.moment for one in world.sent)
    # Devices that do not wait are linked.
    monkeypatch.setattr("ldp_client.device.outbox.in_next_window", lambda _hours: int(world.now) + 60)
    world.study, world.codes = world.publish("another", [Person("", {})] * PEOPLE)
    world.asked.clear()
    world.sent.clear()
    everybody_answers(world, tmp_path / "hasty")
    assert linked(by_order(world.asked, world.sent)) == PEOPLE


@pytest.mark.slow
@pytest.mark.attack(12)
def test_device_woken_with_advised_delay_is_not_linked(world, tmp_path):
    """Devices are woken daily at an hour of their own, up to a day later, as docs/tickets.md advises."""
    hours, wakes = random.Random(5), []
    for number in range(PEOPLE):
        device = consenting(tmp_path / str(number), "8", COLLECTOR)
        device.answer(world.study, {"ever": True}, world.codes[number])
        hour = hours.uniform(0, DAY)
        wakes += [(START + day * DAY + hour + hours.uniform(0, DAY), number, device) for day in range(6)]
    for world.now, world.sender, device in sorted(wakes, key=lambda each: each[:2]):
        if device.ledger.queued():
            device.flush()
    assert share_is(linked(by_time_of_day(world.asked, world.sent)), PEOPLE, 1 / PEOPLE)


@pytest.mark.attack(12)
def test_report_leaves_with_no_token_request_and_waits_for_no_refused_code(world, tmp_path, monkeypatch):
    """One report has its token, and another one's code is refused at each flush."""
    monkeypatch.setattr(sending, "backoff", lambda _attempt: 0)
    other, _ = world.publish("second", [Person("Ada", {})])
    device = consenting(tmp_path / "device", "8", COLLECTOR)
    device.answer(world.study, {"ever": True}, world.codes[0])
    device.flush()
    device.answer(other, {"ever": True}, "mistyped-code-that-nobody-takes")
    world.asked.clear()
    for _ in range(40):
        world.now += DAY
        before = len(world.asked)
        if device.flush().sent:
            break
    assert (len(world.sent), len(world.asked)) == (1, before)
    assert before
