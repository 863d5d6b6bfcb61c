"""Issuer and collector pool everything they store and every request they saw: who sent which report?

Defence: The device: blinds what the issuer signs, and sends the report in the next window, at a uniformly
random moment, a board never on a waking in which it requests another study's token
(`test_tokens_beside_reports_of_boards.py`); the issuer stores no time, and its files lose the order of
requests daily and when it starts and stops, the collector's the hash of a nonce. Known limit: that order
until then (with PostgreSQL, as far back as its write-ahead log); addresses, if the same one requests and
sends; a window with hardly any devices; **a device that is woken at an hour of its own each day**, whose
token request and report come at that hour (when devices are woken).
"""

import json
import random
from itertools import count
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from collector.app import create_app
from collector.issuer import signing, store
from collector.issuer.app import create_issuer
from collector.issuer.models import ISSUER, IssuerRow
from collector.issuer.store import Person
from collector.storage.database import Database
from collector.storage.migrating import make
from ldp_client import Direct
from ldp_client.core.tokens import token_in
from ldp_client.device import outbox
from ldp_client.device.http import Answer
from schemas import Study
from tests import studies
from tests.ldp_client.devices import consenting
from tests.statistics import seed_the_system, share_is

HOUR, DAY = 3600, 86_400
START = 21_000 * DAY
PEOPLE = 24
BATCHES = 2
COLLECTOR, ISSUER_URL = "https://collector.example", "https://issuer.example"
RFC = Path(__file__).parents[1] / "golden" / "rfc" / "rfc9578_public.json"
KEY = load_pem_private_key(bytes.fromhex(json.loads(RFC.read_text())[0]["skS"]), None)


class Seen:
    """One request as a server sees it: when, what it was sent, by what name if it knows one."""

    def __init__(self, moment, body, headers, path):
        self.moment, self.body, self.headers, self.path = moment, body, headers, path
        # Who sent it: what the adversary wants to know.
        self.truth = None


def seed_all(monkeypatch, seed):
    """All that chance decides here follows from a seed, so that a good device never fails by bad luck."""
    seed_the_system(monkeypatch, seed)
    # OpenSSL has a generator of its own.
    monkeypatch.setattr(signing.rsa, "generate_private_key", lambda *_: KEY)


class World:
    """Both servers in this process, a clock, and everything that reaches either of them."""

    def __init__(self, folder, monkeypatch, **settings):
        self.now, self.sender = float(START), None
        self.asked, self.sent = [], []
        monkeypatch.setattr(outbox, "now", lambda: self.now)
        url = f"sqlite:///{folder / 'issuer.sqlite3'}"
        database = Database(url, 5)
        make(database, ISSUER)
        with database.write() as session:
            session.add(IssuerRow(address=ISSUER_URL))
            store.add_key(session, "survey", {})
            self.codes = store.add_codes(session, "survey", [Person("", {})] * (PEOPLE * BATCHES))
            tokens = store.tokens_block(session, "survey")
        database.engine.dispose()
        channel = {"batches": {"hours": 24}, "tokens": tokens}
        self.study = Study(studies.document(studies.YES_NO, channel=channel))
        self.issuer = create_issuer(url)
        file = f"sqlite:///{folder / 'collector.sqlite3'}"
        database = Database(file, 5)
        make(database)
        database.engine.dispose()
        self.collector = create_app({"database": file, "token": "operators-token-for-tests", **settings})
        operator = {"Authorization": "Bearer operators-token-for-tests"}
        published = self.collector.test_client().post(
            "/v1/studies", json=self.study.document, headers=operator
        )
        assert published.status_code == 201
        monkeypatch.setattr(Direct, "exchange", lambda _transport, request, _most=0: self.exchange(request))

    def exchange(self, request):
        """The way to both servers, on which they note all that there is to note."""
        is_issuer = request.full_url.startswith(ISSUER_URL)
        app, seen = (self.issuer, self.asked) if is_issuer else (self.collector, self.sent)
        path = request.full_url.split("example", 1)[1]
        headers = dict(request.header_items())
        one = Seen(self.now, request.data, headers, path)
        one.truth = self.sender
        if request.data:
            seen.append(one)
        found = app.test_client().open(path, method=request.get_method(), data=request.data, headers=headers)
        return Answer(found.status_code, found.headers, found.data)

    def close(self):
        self.collector.extensions["ldpkit"].close()
        self.issuer.extensions["issuer"].engine.dispose()


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
    one = sorted(asked, key=lambda each: store.digest_of(each.body))
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


def batches_of(world, folder, monkeypatch, hurried=False):
    """What was seen of each batch. hurried: of devices that send as soon as they have their token."""
    numbers = count()
    if hurried:
        monkeypatch.setattr("ldp_client.device.outbox.in_next_window", lambda _hours: int(world.now) + 60)
    found = []
    for batch in range(BATCHES):
        world.asked.clear()
        world.sent.clear()
        start, devices = START + 3 * batch * DAY, []
        # Everybody answers at some moment of the day, and their device wakes up every hour from then on.
        for place in range(PEOPLE):
            world.now = start + place * DAY / PEOPLE
            number = next(numbers)
            device = consenting(folder / f"{hurried}-{number}", "8", COLLECTOR)
            device.answer(world.study, {"ever": bool(number % 2)}, world.codes[number])
            world.sender = number
            device.flush()
            devices.append((number, device))
        wakes = sorted((device.ledger.queued()[0].due, number, device) for number, device in devices)
        for due, number, device in wakes:
            world.now, world.sender = float(due), number
            assert device.flush().sent == 1
        found.append((list(world.asked), list(world.sent)))
    return found


def linked(adversary, batches):
    pairs = [pair for asked, sent in batches for pair in adversary(asked, sent)]
    assert len(pairs) == PEOPLE * BATCHES
    return sum(one == other for one, other in pairs)


@pytest.fixture
def world(tmp_path, monkeypatch):
    seed_all(monkeypatch, 20)
    made = World(tmp_path, monkeypatch)
    yield made
    made.close()


def test_issuer_and_collector_together_only_guess(world, tmp_path, monkeypatch):
    batches = batches_of(world, tmp_path, monkeypatch)
    for adversary in ADVERSARIES:
        assert share_is(linked(adversary, batches), PEOPLE * BATCHES, 1 / PEOPLE), adversary.__name__
    for asked, sent in batches:
        assert len({len(one.body) for one in asked}) == len({len(one.body) for one in sent}) == 1
        names = [{name.lower() for name in one.headers} for one in (*asked, *sent)]
        assert all(each == names[0] for each in names[:PEOPLE])
        assert all(each == names[-1] for each in names[PEOPLE:])
        assert max(one.moment for one in asked) < min(one.moment for one in sent)


def test_adversary_links_devices_that_do_not_wait(world, tmp_path, monkeypatch):
    batches = batches_of(world, tmp_path, monkeypatch, hurried=True)
    assert linked(by_order, batches) == PEOPLE * BATCHES
    assert not share_is(linked(by_time_of_day, batches), PEOPLE * BATCHES, 1 / PEOPLE)


def by_habit(asked, sent):
    """Who asked at a time of day sends at about that time, on whichever day."""

    def distance(one, other):
        apart = abs(one.moment % DAY - other.moment % DAY)
        return min(apart, DAY - apart)

    return greedy(asked, sent, distance)


def woken(world, folder, delay):
    """What was seen of devices that are woken daily at an hour of their own, up to `delay` seconds later."""
    hours, devices = random.Random(5), []
    world.asked.clear()
    for place in range(PEOPLE):
        hour = hours.uniform(0, DAY)
        device = consenting(folder / f"{delay}-{place}", "8", COLLECTOR)
        device.answer(world.study, {"ever": bool(place % 2)}, world.codes.pop())
        devices.append((hour, place, device))
    wakes = sorted(
        (START + day * DAY + hour + hours.uniform(0, delay), place, device)
        for day in range(6)
        for hour, place, device in devices
    )
    for moment, place, device in wakes:
        world.now, world.sender = moment, place
        if device.ledger.queued():
            device.flush()
    assert len(world.asked) == len(world.sent) == PEOPLE
    return [(list(world.asked), list(world.sent))]


def count_joined(batches):
    return sum(one == other for asked, sent in batches for one, other in by_habit(asked, sent))


def test_open_device_woken_at_its_own_hour_is_linked_by_it(world, tmp_path):
    """No device can hide that; docs/tokens.md says how devices should be woken."""
    assert count_joined(woken(world, tmp_path, 120)) > PEOPLE / 2


def test_device_woken_with_advised_delay_is_not_linked(world, tmp_path):
    assert share_is(count_joined(woken(world, tmp_path, DAY)), PEOPLE, 1 / PEOPLE)
