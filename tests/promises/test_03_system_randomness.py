"""Secrets come from the system's generator, use exactly the bytes they read, and refuse unfit sources.

A secret must repeat when the system's generator repeats its bytes, and change when any of its bytes does. Two
processes that begin alike must never have the same secret.
"""

import hashlib
import itertools
import json
import os
import random
import struct
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from collector.keys import KEY_BYTES, new_word
from collector.nodes.keys import NodeKeys
from collector.oblivious import GatewayKeys
from collector.tickets.codes import Spending
from ldp_client import Device, mechanism_for, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.core import randomness
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.core.tokens import draw
from ldp_client.documents.errors import RandomnessError
from ldp_client.documents.report import report_id_of
from ldp_client.mechanisms.memoized import Remembering
from ldp_client.secure_sum import split
from schemas import Study
from tests import studies
from tests.ldp_client.issuers import study_of
from tests.statistics import replace_system_bytes, seeded

YES_NO = Study(studies.document(studies.YES_NO))
WHOLE = Study(studies.document(*studies.ALL, *studies.NEWER))
ANSWERS = studies.ANSWERS | studies.NEWER_ANSWERS
MECHANISMS = {question.id: mechanism_for(question) for question in WHOLE.questions}
FOLDERS = itertools.count()


def noise(name):
    """Many payloads, as one of a yes or no hardly differs from the next."""
    return b"".join(MECHANISMS[name].perturb(ANSWERS[name]) for _ in range(64))


def permanent(name):
    people = [Remembering(MECHANISMS[name], None) for _ in range(64)]
    for person in people:
        person.perturb(ANSWERS[name])
    return b"".join(bytes(person.answer or b"") for person in people)


def token(source=None):
    """The nonce, the salt and the blinding factor of a token."""
    channel = study_of("https://issuer.example").channel
    nonce, salt, factor = draw(channel.tickets.keys[0], source or randomness.urandom)
    return nonce + salt + factor.to_bytes(256, "big")


def report(folder):
    """What a device queues: an id and all noise, permanent answers among it."""
    device = Device(folder / str(next(FOLDERS)), "99", require_consent=False, max_delta="0.1")
    device.answer(WHOLE, ANSWERS)
    return b"".join(bytes(queued.body, "utf-8") for queued in device.ledger.queued())


SECRETS = {
    "report of a device": report,
    **{f"noise of {name}": lambda _, name=name: noise(name) for name in MECHANISMS},
    **{f"permanent answer of {name}": lambda _, name=name: permanent(name) for name in ("habit", "brand")},
    "token": lambda _: token(),
    "shares": lambda _: b"".join(split(bytes(16), 2, "chacha20")),
    "key of an operator": lambda _: new_word(KEY_BYTES).encode(),
    "nonce of tickets": lambda _: Spending.of(b"secret").nonce,
}
# These come from OpenSSL, which reads the system's generator itself.
KEYS = {
    "gateway's key": lambda _: GatewayKeys.generate().keys[0].private.private_bytes_raw(),
    "node's key": lambda _: NodeKeys.generate().sealing.private_bytes_raw(),
}


def check_origin(name, monkeypatch, folder):
    """A secret must be made of the system's bytes, and of nothing else."""
    made = []
    for seed in ("a", "a", "b"):
        replace_system_bytes(monkeypatch, seeded(name, seed).source)
        made.append(SECRETS[name](folder))
    assert made[0] == made[1], "the same bytes give another secret"
    assert made[0] != made[2], "other bytes give the same secret"


@pytest.mark.parametrize("name", SECRETS)
def test_the_origin_of_a_secret_holds(name, monkeypatch, tmp_path):
    check_origin(name, monkeypatch, tmp_path)


@pytest.mark.parametrize("name", ["report of a device", "token"])
def test_a_planted_fixed_seed_is_found(name, monkeypatch, tmp_path):
    def constant(size):
        return hashlib.shake_128(b"seed").digest(size)

    monkeypatch.setattr(randomness, "os", SimpleNamespace(urandom=constant))
    with pytest.raises((AssertionError, RandomnessError)):
        check_origin(name, monkeypatch, tmp_path)


EXACT = {
    "report id": (16, lambda: perturb_answers(YES_NO, mechanisms_of(YES_NO), {"ever": "yes"}).id),
    "token": (32 + 48 + 256 + 16, token),
    "key of an operator": (32, partial(new_word, 32)),
    "seed of a share": (32, lambda: split(bytes(16), 2, "chacha20")),
}


def unused_bytes(name, monkeypatch):
    """Which of the bytes that a secret reads last may change without the secret."""
    size, make = EXACT[name]

    def made(changed):
        source, taken = seeded(name).source, bytearray()

        def flipping(count):
            start = len(taken)
            taken.extend(source(count))
            if start <= changed < len(taken):
                taken[changed] ^= 1
            return bytes(taken[start:])

        replace_system_bytes(monkeypatch, flipping)
        return make(), len(taken)

    whole, total = made(-1)
    assert total >= size
    return [place for place in range(total - size, total) if made(place)[0] == whole]


@pytest.mark.parametrize("name", EXACT)
def test_each_random_byte_changes_secret(name, monkeypatch):
    assert unused_bytes(name, monkeypatch) == []


def test_a_planted_secret_of_15_of_16_bytes_is_found(monkeypatch):
    whole = report_id_of
    monkeypatch.setattr("ldp_client.answering.report_id_of", lambda secret: whole(secret[:15] + b"0"))
    assert len(unused_bytes("report id", monkeypatch)) == 1


def periodic(period):
    stream = itertools.cycle(seeded(period)(period))
    return lambda size: bytes(itertools.islice(stream, size))


SHORT = seeded("short").source
TEXT = "x".__mul__
UNFIT = {
    "short": lambda: NotForRealAnswers(lambda size: SHORT(size)[:-1]),
    "long": lambda: NotForRealAnswers(lambda size: SHORT(size + 1)),
    "text": lambda: NotForRealAnswers(TEXT),
    "stuck": lambda: bytes,
    "periodic": lambda: periodic(64),
    "random.Random": lambda: random.Random(3).randbytes,
    "NumPy's generator": lambda: np.random.default_rng(1).bytes,
}


def check_refusals(source):
    """Nothing is made with an unfit source, which is the reason for each refusal."""
    ways = {name: partial(m.perturb, ANSWERS[name], source) for name, m in MECHANISMS.items()}
    ways["many answers"] = partial(perturb_many, MECHANISMS["hours"], [3] * 3, source)
    ways["report"] = partial(perturb_answers, YES_NO, mechanisms_of(YES_NO), {"ever": "yes"}, source)
    ways["shares"] = partial(split, bytes(16), 2, "chacha20", source)
    ways["token"] = partial(token, source)
    for make in ways.values():
        with pytest.raises(RandomnessError):
            make()


@pytest.mark.parametrize("name", UNFIT)
def test_the_refusal_of_an_unfit_source_holds(name):
    check_refusals(UNFIT[name]())


@pytest.mark.parametrize(
    ("fault", "name"), [("core.strips.read", "short"), ("core.randomness.NotForRealAnswers", "stuck")]
)
def test_planted_missing_refusal_is_found(fault, name, monkeypatch):
    """Lengths are not looked at, or every source is taken for a test's."""
    unchecked = object if name == "stuck" else lambda source, size: source(size)
    monkeypatch.setattr(f"ldp_client.{fault}", unchecked)
    with pytest.raises((pytest.fail.Exception, struct.error)):
        check_refusals(UNFIT[name]())


@pytest.mark.parametrize("period", [1, 8, 60, 100])
def test_periodic_system_is_refused(period, monkeypatch):
    """A period of 1 is a stuck generator."""
    replace_system_bytes(monkeypatch, periodic(period))
    numbers = (MECHANISMS["hours"].perturb(3, randomness.urandom) for _ in range(100))
    with pytest.raises(RandomnessError):
        list(numbers)


def secrets_of_a_copy(folder):
    """All of them, from a process that begins as a copy of this one."""
    file = folder / f"{next(FOLDERS)}.json"
    if not (process := os.fork()):
        try:
            file.write_text(
                json.dumps({name: make(folder).hex() for name, make in {**SECRETS, **KEYS}.items()})
            )
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    return json.loads(file.read_text())


@pytest.mark.slow
@pytest.mark.entropy
def test_secrets_differ_between_processes(tmp_path):
    token()
    first, second = (secrets_of_a_copy(tmp_path) for _ in range(2))
    assert first.keys() == second.keys() == SECRETS.keys() | KEYS.keys()
    assert [name for name in first if first[name] == second[name]] == []


STUCK = """
import os, threading
os.urandom = lambda size: bytes(range(64))[:size]
from ldp_client.bulk import perturb_many
from ldp_client.core import randomness
from ldp_client.documents.errors import RandomnessError
started, accepted = threading.Barrier(8), []
def read():
    started.wait()
    try:
        accepted.append(randomness.read(randomness.urandom, 32))
    except RandomnessError:
        pass
threads = [threading.Thread(target=read) for _ in range(8)]
for each in (threading.Thread.start, threading.Thread.join):
    list(map(each, threads))
assert len(accepted) == 1, len(accepted)
"""


@pytest.mark.slow
@pytest.mark.attack(3)
def test_threads_that_read_first_share_what_was_read():
    """Repeat one read in eight threads, before the process has loaded its hash function."""
    for _ in range(5):
        subprocess.run([sys.executable, "-c", STUCK], check=True)
