"""A relay's operator pools what it saw, and when, with the issuer or with the collector: who sent what?

Defence: Relay and issuer: know who took part, but can read no report; issuer and collector: know only a
batch's people behind the relay. Known limit: relay and collector link by time alone, and so do issuer and
collector if relay and issuer are one party, which `check` and `publish` note.
"""

import json
import random
from base64 import b64decode, b64encode
from email.message import Message
from functools import partial
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pyhpke import KEMKey, KEMKeyPair

from collector.oblivious import gateway
from collector.oblivious.keys import GatewayKey, GatewayKeys
from ldp_client.device import outbox, relayed
from ldp_client.device.exchange import Answer
from ldp_client.device.trust import note_identity
from ldp_client.oblivious.encapsulation import encapsulate
from tests.attacks.test_joining_people_and_reports import (
    ADVERSARIES,
    BATCHES,
    COLLECTOR,
    DAY,
    PEOPLE,
    START,
    Seen,
    World,
    batches_of,
    by_order,
    linked,
    seed_all,
)
from tests.collector.conftest import REPOSITORY
from tests.ldp_client.devices import consenting
from tests.statistics import share_is

RELAY = "https://relay.example/ldpkit"
ALL = PEOPLE * BATCHES


def encapsulate_by(source, key_id, public_key, request):
    """A request whose key for one use is of that source, and not of OpenSSL's generator."""
    private = X25519PrivateKey.from_private_bytes(source(32))
    pair = [KEMKey.from_pyca_cryptography_key(one) for one in (private, private.public_key())]
    return encapsulate(key_id, public_key, request, KEMKeyPair(*pair))


class RelayedWorld(World):
    """The same with a relay before the collector. passed: all that the relay saw."""

    def __init__(self, folder, monkeypatch):
        self.passed = []
        keys = GatewayKeys((GatewayKey(7, X25519PrivateKey.from_private_bytes(bytes(range(32)))),))
        keys.save(folder / "ohttp.keys")
        stated = {"relay": RELAY, "keys": b64encode(keys.keys[0].configuration).decode()}
        super().__init__(
            folder,
            monkeypatch,
            {"oblivious": stated},
            ohttp_keys=str(folder / "ohttp.keys"),
            require_ohttp=True,
        )
        plain = gateway._asked

        def asked(target, environ):
            """What the collector sees inside, with the relay's address or none."""
            body = environ["wsgi.input"].getvalue()
            headers = {"Authorization": environ.get("HTTP_AUTHORIZATION", "")}
            if environ["REQUEST_METHOD"] == "PUT":
                self.note(self.sent, body, headers, environ["PATH_INFO"])
            return plain(target, environ)

        monkeypatch.setattr(gateway, "_asked", asked)

    def note(self, seen, body, headers, path):
        seen.append(Seen(self.now, body, headers, path))
        seen[-1].truth = self.sender

    def exchange(self, request, *more):
        if request.full_url != RELAY:
            return super().exchange(request, *more)
        # Who serves the study is asked a moment before, in the same size: that is of the same person.
        if self.passed and (self.passed[-1].truth, self.passed[-1].moment) == (self.sender, self.now):
            self.passed.pop()
        self.note(self.passed, request.data, dict(request.header_items()), RELAY)
        kind = {"Content-Type": "message/ohttp-req"}
        found = self.collector.test_client().post("/ohttp", data=request.data, headers=kind)
        headers = Message()
        headers["Content-Type"] = found.headers["Content-Type"]
        return Answer(found.status_code, headers, found.data)


@pytest.fixture
def world(tmp_path, monkeypatch):
    seed_all(monkeypatch, 21)
    monkeypatch.setattr(relayed, "encapsulate", partial(encapsulate_by, random.Random(21).randbytes))
    made = RelayedWorld(tmp_path, monkeypatch)
    yield made
    made.close()


def by_reading(passed, _asked):
    """The report is in the message unencrypted."""
    return b'"AQ=="' in passed.body


def by_length(passed, _asked):
    """A yes is longer than a no."""
    return len(passed.body) % 512 > 55


def by_bits(passed, _asked):
    """A yes has more bits."""
    return sum(byte.bit_count() for byte in passed.body) > 4 * len(passed.body)


def by_last_byte(passed, _asked):
    """The ciphertext's last byte goes with the plaintext's."""
    return passed.body[-1] % 2 == 1


def by_moment(passed, _asked):
    """Who sends in the second half of the window says yes."""
    return passed.moment % DAY > DAY / 2


def by_request(_passed, asked):
    """The issuer saw it in what it signed for the same person."""
    return asked.body[-1] % 2 == 1


def by_both(passed, asked):
    """What issuer and relay saw of one person goes together."""
    return (passed.body[-1] ^ asked.body[-1]) % 2 == 1


def by_wait(passed, asked):
    """How long it took from the token to the report: the issuer's clock and the relay's."""
    return passed.moment - asked.moment > DAY


READERS = [by_reading, by_length, by_bits, by_last_byte, by_moment, by_request, by_both, by_wait]


def said(report):
    """Whether a report, as the collector has it, says yes."""
    return b64decode(json.loads(report.body)["payloads"]["ever"]) == b"\1"


def told(reader, passed, asked, sent):
    """How many reports' words the adversary tells rightly: it knows the people on both of its sides."""
    requests = {one.truth: one for one in asked}
    words = {one.truth: said(one) for one in sent}
    return sum(reader(one, requests[one.truth]) == words[one.truth] for one in passed)


def test_issuer_and_collector_only_guess_behind_a_relay(world, tmp_path, monkeypatch):
    batches = batches_of(world, tmp_path, monkeypatch)
    for adversary in ADVERSARIES:
        assert share_is(linked(adversary, batches), ALL, 1 / PEOPLE), adversary.__name__


def test_relay_and_issuer_see_participants_but_no_answers(world, tmp_path, monkeypatch):
    batches = batches_of(world, tmp_path, monkeypatch)
    asked, sent = [[one for batch in batches for one in batch[place]] for place in (0, 1)]
    assert len(world.passed) == ALL
    assert {one.truth for one in world.passed} == {one.truth for one in asked}
    for reader in READERS:
        assert share_is(told(reader, world.passed, asked, sent), ALL, 1 / 2), reader.__name__


def test_relay_and_issuer_read_unencrypted_reports(world, tmp_path, monkeypatch):
    """Shows that the adversary works when reports are not encrypted."""
    monkeypatch.setattr(relayed, "encapsulate", lambda _id, _key, content: SimpleNamespace(message=content))
    reports = []
    for number in range(PEOPLE):
        device = consenting(tmp_path / str(number), "8", COLLECTOR)
        device.answer(world.study, {"ever": bool(number % 2)}, world.codes[number])
        world.now, world.sender = float(START), number
        device.flush(1)
        (queued,) = device.ledger.queued()
        with device.ledger.writing() as connection:
            # As if it had been asked who serves the study: of that nothing comes back here.
            note_identity(connection, world.study.digest, COLLECTOR, "a" * 32)
        world.now = float(queued.due)
        device.flush(1)
        reports.append(Seen(0.0, queued.body.encode(), {}, ""))
        reports[-1].truth = number
    assert told(by_reading, world.passed, world.asked, reports) == PEOPLE
    assert not share_is(PEOPLE, PEOPLE, 1 / 2)


def test_relay_and_collector_link_by_time_as_documented(world, tmp_path, monkeypatch):
    """Batches do not help against these two, as the guide says."""
    batches = batches_of(world, tmp_path, monkeypatch)
    of_batch = [[], []]
    for one in world.passed:
        of_batch[int(one.moment - START) // (3 * DAY)].append(one)
    both = [(passed, sent) for passed, (_, sent) in zip(of_batch, batches)]
    assert linked(by_order, both) == ALL
    guide = (REPOSITORY / "docs" / "oblivious.md").read_text(encoding="utf-8")
    assert "they can join both by the time alone" in guide


def test_relay_cannot_tell_deletion_from_report_by_size_or_time(world, tmp_path):
    """A deletion sent at once would follow the withdrawal directly and be in no batch."""
    world.now, world.sender = START + DAY / 2, 0
    device = consenting(tmp_path / "device", "8", COLLECTOR)
    device.answer(world.study, {"ever": True}, world.codes[0])
    device.flush()
    world.now = float(device.ledger.queued()[0].due)
    assert device.flush().sent == 1
    device.withdraw(world.study.id)
    device.flush()
    assert len(world.passed) == 1
    with device.ledger.reading() as connection:
        (deletion,) = outbox.withdrawn(connection)
    assert deletion.due // DAY == world.now // DAY + 1
    world.now = float(deletion.due)
    device.flush()
    assert len(world.passed) > 1
    assert len({len(one.body) for one in world.passed}) == 1
    assert len({tuple(sorted(one.headers)) for one in world.passed}) == 1
