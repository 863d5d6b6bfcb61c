"""The secrets of this project, generated freshly at each call, for tests of promises."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

from collector.keys import KEY_BYTES, new_word
from collector.nodes.keys import NodeKeys
from collector.oblivious import GatewayKeys
from collector.tickets.codes import Spending
from ldp_client import Device, mechanism_for
from ldp_client.core import randomness
from ldp_client.core.tokens import draw
from ldp_client.mechanisms.memoized import Remembering
from ldp_client.secure_sum import split
from schemas import Study
from tests import studies
from tests.ldp_client.issuers import study_of

ASKED = {asked["id"]: asked for asked in (*studies.ALL, *studies.NEWER)}
STUDY = Study(studies.document(*ASKED.values()))
ANSWERS = studies.ANSWERS | studies.NEWER_ANSWERS
MECHANISMS = {question.id: mechanism_for(question) for question in STUDY.questions}
FOLDERS = itertools.count()


def noise(name: str) -> bytes:
    """Many payloads, as one of a yes or no hardly differs from the next."""
    return b"".join(MECHANISMS[name].perturb(ANSWERS[name]) for _ in range(64))


def permanent(name: str) -> bytes:
    """Permanent answers of many people."""
    people = [Remembering(MECHANISMS[name], None) for _ in range(64)]
    for person in people:
        person.perturb(ANSWERS[name])
    return b"".join(bytes(person.answer or b"") for person in people)


def token() -> bytes:
    """The nonce, the salt and the blinding factor of a token."""
    channel = study_of("https://issuer.example").channel
    nonce, salt, factor = draw(channel.tickets.keys[0], randomness.urandom)
    return nonce + salt + factor.to_bytes(256, "big")


def report(folder: Path) -> bytes:
    """What a device queues: an id and all noise, permanent answers among it."""
    device = Device(folder / str(next(FOLDERS)), "99", require_consent=False, max_delta="0.1")
    device.answer(STUDY, ANSWERS)
    return b"".join(bytes(queued.body, "utf-8") for queued in device.ledger.queued())


SECRETS: dict[str, Callable[[Path], bytes]] = {
    "report of a device": report,
    **{f"noise of {name}": lambda _, name=name: noise(name) for name in MECHANISMS},
    **{f"permanent answer of {name}": lambda _, name=name: permanent(name) for name in ("habit", "brand")},
    "token": lambda _: token(),
    "shares": lambda _: b"".join(split(bytes(16), 2, "chacha20")),
    "key of an operator": lambda _: new_word(KEY_BYTES).encode(),
    "nonce of tickets": lambda _: Spending.of(b"secret").nonce,
}
# These come from OpenSSL, which reads the system's generator itself.
KEYS: dict[str, Callable[[Path], bytes]] = {
    "gateway's key": lambda _: GatewayKeys.generate().keys[0].private.private_bytes_raw(),
    "node's key": lambda _: NodeKeys.generate().sealing.private_bytes_raw(),
}


def secrets_of_a_copy(folder: Path) -> str:
    """All of them as JSON, from a process that begins as a copy of this one."""
    reading, writing = os.pipe()
    if not (process := os.fork()):
        try:
            made = {name: make(folder).hex() for name, make in {**SECRETS, **KEYS}.items()}
            with os.fdopen(writing, "w") as file:
                json.dump(made, file)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(process, 0)
    return text
