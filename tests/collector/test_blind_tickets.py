"""Issuer and collector pool everything they store and every request they saw: who sent which report?

The device blinds what the issuer signs, and sends the report in the next window, at a uniformly random
moment. Known limit: a device that is woken at an hour of its own each day asks and sends at that hour.
"""

from __future__ import annotations

import hashlib
import random

import pytest

from collector.issuer import issue
from collector.issuer.issue import Person
from ldp_client.core.tokens import token_in
from ldp_client.device import sending
from schemas import Study
from tests import studies
from tests.collector.blind_world import COLLECTOR, DAY, PEOPLE, START, World, seed_all
from tests.kit.issuing import BY, block_of, invited
from tests.ldp_client.devices import consenting
from tests.statistics import share_is

YES = {"ever": True}


def by_order(asked, sent):
    """Who asked first sends first."""
    return [(one.truth, other.truth) for one, other in zip(asked, sent)]


def by_last_order(asked, sent):
    """Who asked last sends first."""
    return by_order(asked[::-1], sent)


def by_time_of_day(asked, sent):
    """Who asked at an hour sends at that hour of the next window."""
    hours = [sorted(group, key=lambda one: one.moment % DAY) for group in (asked, sent)]
    return by_order(*hours)


def by_bytes(asked, sent):
    """The blinded number looks like the token, or like the report."""

    def likeness(one, other):
        token = token_in(other.headers["Authorization"])
        both = zip(one.body[3:], token[98:] + other.body)
        return sum((a ^ b).bit_count() for a, b in both)

    return greedy(asked, sent, likeness)


def by_order_of_numbers(asked, sent):
    """Small blinded numbers go with small ids, or nonces: as a counter behind both would have it."""
    one = sorted(asked, key=lambda each: each.body)
    return by_order(one, sorted(sent, key=lambda each: each.path))


def by_database_order(asked, sent):
    """What both databases keep of them, in the order in which they keep it."""
    one = sorted(asked, key=lambda each: hashlib.sha256(each.body).digest())
    return by_order(one, sorted(sent, key=lambda each: token_in(each.headers["Authorization"])[2:34]))


def by_headers(asked, sent):
    """Who has the same headers, in what they have in common, and the same sizes."""

    def likeness(one, other):
        shared = set(one.headers.items()) & set(other.headers.items())
        return -len(shared), abs(len(one.body) - len(other.body))

    return greedy(asked, sent, likeness)


def greedy(asked, sent, likeness):
    """Each takes the most alike that is left; of equals the adversary takes any."""
    left = list(sent)
    order = random.Random(7)
    pairs = []
    for one in asked:
        order.shuffle(left)
        best = min(left, key=lambda other: likeness(one, other))
        left.remove(best)
        pairs.append((one.truth, best.truth))
    return pairs


ADVERSARIES = [
    by_order,
    by_last_order,
    by_time_of_day,
    by_bytes,
    by_order_of_numbers,
    by_database_order,
    by_headers,
]


def seen_of(world, folder, monkeypatch, hurried=False):
    """What both servers saw. hurried: of devices that send as soon as they have their token."""
    if hurried:
        monkeypatch.setattr("ldp_client.device.outbox.in_next_window", lambda _hours: int(world.now) + 60)
    devices = []
    # Everybody answers at some moment of the day, and their device wakes up every hour from then on.
    for number in range(PEOPLE):
        world.now, world.sender = START + number * DAY / PEOPLE, number
        device = consenting(folder / str(number), "8", COLLECTOR)
        device.answer(world.study, {"ever": bool(number % 2)}, world.codes[number])
        device.flush()
        devices.append((device.ledger.queued()[0].due, number, device))
    for due, number, device in sorted(devices, key=lambda each: each[:2]):
        world.now, world.sender = float(due), number
        assert device.flush().sent == 1
    assert len(world.asked) == len(world.sent) == PEOPLE
    return world.asked, world.sent


def linked(pairs):
    assert len(pairs) == PEOPLE
    return sum(one == other for one, other in pairs)


@pytest.fixture
def world(tmp_path, monkeypatch):
    seed_all(monkeypatch, 20)
    made = World(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.attack(12)
def test_issuer_and_collector_together_only_guess(world, tmp_path, monkeypatch):
    """Both match requests by order, time of day, bytes, numbers, rows and headers."""
    asked, sent = seen_of(world, tmp_path, monkeypatch)
    for adversary in ADVERSARIES:
        assert share_is(linked(adversary(asked, sent)), PEOPLE, 1 / PEOPLE), adversary.__name__
    assert len({len(one.body) for one in asked}) == len({len(one.body) for one in sent}) == 1
    for seen in (asked, sent):
        names = [{name.lower() for name in one.headers} for one in seen]
        assert all(each == names[0] for each in names)
    assert max(one.moment for one in asked) < min(one.moment for one in sent)


@pytest.mark.slow
def test_adversary_links_devices_that_do_not_wait(world, tmp_path, monkeypatch):
    """So the test above would notice if devices did not wait."""
    asked, sent = seen_of(world, tmp_path, monkeypatch, hurried=True)
    assert linked(by_order(asked, sent)) == PEOPLE


def by_habit(asked, sent):
    """Who asked at a time of day sends at about that time, on whichever day."""

    def distance(one, other):
        apart = abs(one.moment % DAY - other.moment % DAY)
        return min(apart, DAY - apart)

    return greedy(asked, sent, distance)


@pytest.mark.slow
@pytest.mark.attack(12)
def test_device_woken_with_advised_delay_is_not_linked(world, tmp_path):
    """Devices are woken daily at an hour of their own, up to a day later, as docs/tickets.md advises."""
    hours, devices = random.Random(5), []
    for number in range(PEOPLE):
        device = consenting(tmp_path / str(number), "8", COLLECTOR)
        device.answer(world.study, YES, world.codes[number])
        devices.append((hours.uniform(0, DAY), number, device))
    wakes = sorted(
        (START + day * DAY + hour + hours.uniform(0, DAY), number, device)
        for day in range(6)
        for hour, number, device in devices
    )
    for world.now, world.sender, device in wakes:
        if device.ledger.queued():
            device.flush()
    assert share_is(linked(by_habit(world.asked, world.sent)), PEOPLE, 1 / PEOPLE)


@pytest.fixture
def patient(tmp_path, monkeypatch):
    """Refused requests are tried again at every flush."""
    made = World(tmp_path, monkeypatch)
    monkeypatch.setattr(sending, "backoff", lambda _attempt: 0)
    yield made
    made.close()


def another(world, study_id, strata, people, **changes):
    """A further study of that issuer and collector, and people's codes."""
    with world.issuer.extensions["ldpkit"].database.write() as session:
        for stratum in strata:
            issue.add_key(session, study_id, stratum, BY)
        codes = invited(session, study_id, people)
        tokens = block_of(session, study_id)
    channel = {"batches": {"hours": 24}, "tickets": tokens}
    study = Study({**studies.document(studies.YES_NO, channel=channel, **changes), "id": study_id})
    operator = {"Authorization": "Bearer operators-token-for-tests"}
    client = world.collector.test_client()
    assert client.post("/v1/studies", json=study.document, headers=operator).status_code == 201
    return study, codes


@pytest.mark.attack(12)
def test_report_is_not_sent_with_another_reports_token_request(patient, tmp_path):
    """A report leaves together with a token request: the issuer knows who made it."""
    other, codes = another(patient, "second", [{}], [Person("Ada", {})])
    device = consenting(tmp_path / "device", "8", COLLECTOR)
    device.answer(patient.study, YES, patient.codes[0])
    device.flush()
    patient.now = START + 3 * DAY + 1234
    device.answer(other, YES, codes[0])
    patient.asked.clear()
    flushed = device.flush()
    assert (len(patient.asked), len(patient.sent), flushed.scheduled) == (1, 0, 2)
    for _ in range(2):
        patient.now = min(queued.due for queued in device.ledger.queued())
        assert device.flush().sent == 1


@pytest.mark.attack(12)
def test_correcting_a_fast_clock_does_not_send_report_at_once(patient, tmp_path):
    """A phone's clock was 40 days fast and is corrected: the report would leave beside its token request."""
    device = consenting(tmp_path / "device", "8", COLLECTOR)
    patient.now = START + 40 * DAY
    device.answer(patient.study, YES, patient.codes[0])
    device.flush()
    patient.now = START + 10
    assert device.flush().sent == 0
    (queued,) = device.ledger.queued()
    assert START + DAY <= queued.due < START + 2 * DAY


def with_a_refused_code(world, folder):
    """A device with one waiting report and one whose code is refused, and the codes that are accepted."""
    other, codes = another(world, "second", [{}], [Person("Ada", {})])
    device = consenting(folder / "device", "8", COLLECTOR)
    device.answer(world.study, YES, world.codes[0])
    device.flush()
    device.answer(other, YES, "mistyped-code-that-nobody-takes")
    return device, codes


@pytest.mark.attack(15)
def test_refused_code_does_not_block_other_reports(patient, tmp_path):
    """A code that its issuer never accepts keeps other studies' reports on the device."""
    device, _ = with_a_refused_code(patient, tmp_path)
    for _ in range(40):
        patient.now += DAY
        flushed = device.flush()
        if flushed.sent:
            break
    assert len(patient.sent) == 1
