"""Secrets come from the system's generator, use exactly the bytes they read, and refuse unfit sources.

A secret must repeat when the system's generator repeats its bytes, and change when any of its bytes does. Two
processes that begin alike must never have the same secret.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collector.keys import new_word
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core import randomness
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.core.tokens import draw
from ldp_client.documents.errors import RandomnessError
from ldp_client.documents.report import report_id_of
from ldp_client.secure_sum import split
from schemas import Study
from tests import studies
from tests.ldp_client.issuers import study_of
from tests.promises.secrets_made import (
    ANSWERS,
    FOLDERS,
    KEYS,
    MECHANISMS,
    SECRETS,
    report,
    secrets_of_a_copy,
    token,
)
from tests.statistics import seeded

Source = Callable[[int], bytes]
YES_NO = Study(studies.document(studies.YES_NO))


def give(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    """Have the system's generator, which random.SystemRandom reads too, give these bytes."""
    monkeypatch.setattr(os, "urandom", source)
    monkeypatch.setattr("random._urandom", source)


def origin_problems(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """A secret must be made of the system's bytes, and of nothing else."""
    made = []
    for seed in ("a", "a", "b"):
        give(monkeypatch, seeded(name, seed).source)
        made.append(SECRETS[name](folder))
    problems = ["the same bytes give another secret"] * (made[0] != made[1])
    return problems + ["other bytes give the same secret"] * (made[0] == made[2])


@pytest.mark.parametrize("name", SECRETS)
def test_the_origin_of_a_secret_holds(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert origin_problems(name, monkeypatch, tmp_path) == []


def constant(size: int) -> bytes:
    return hashlib.shake_128(b"seed").digest(size)


@pytest.mark.parametrize("name", ["report of a device", "token"])
def test_a_planted_fixed_seed_is_found(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(randomness, "os", SimpleNamespace(urandom=constant))
    try:
        problems = origin_problems(name, monkeypatch, tmp_path)
    except RandomnessError:
        problems = ["the same bytes again"]
    assert problems


EXACT: dict[str, tuple[int, Callable[[], Any]]] = {
    "report id": (16, lambda: perturb_answers(YES_NO, mechanisms_of(YES_NO), {"ever": "yes"}).id),
    "token": (32 + 48 + 256 + 16, token),
    "key of an operator": (32, partial(new_word, 32)),
    "seed of a share": (32, lambda: split(bytes(16), 2, "chacha20")),
}


def unused_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which of the bytes that a secret reads last may change without the secret."""
    size, make = EXACT[name]

    def made(changed: int) -> tuple[Any, int]:
        source, taken = seeded(name).source, []

        def flipping(count: int) -> bytes:
            fresh = bytearray(source(count))
            if 0 <= changed - len(taken) < count:
                fresh[changed - len(taken)] ^= 1
            taken.extend(fresh)
            return bytes(fresh)

        give(monkeypatch, flipping)
        return make(), len(taken)

    whole, total = made(-1)
    assert total >= size
    return [place for place in range(total - size, total) if made(place)[0] == whole]


@pytest.mark.parametrize("name", EXACT)
def test_each_random_byte_changes_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unused_bytes(name, monkeypatch) == []


def test_a_planted_secret_of_15_of_16_bytes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report_id_of
    monkeypatch.setattr("ldp_client.answering.report_id_of", lambda secret: whole(secret[:15] + b"0"))
    assert len(unused_bytes("report id", monkeypatch)) == 1


def periodic(period: int) -> Source:
    stream = itertools.cycle(seeded(period)(period))
    return lambda size: bytes(itertools.islice(stream, size))


SHORT = seeded("short").source
UNFIT: dict[str, Callable[[], Source]] = {
    "short": lambda: NotForRealAnswers(lambda size: SHORT(size)[:-1]),
    "stuck": lambda: bytes,
    "periodic": lambda: periodic(64),
    "random.Random": lambda: random.Random(3).randbytes,
    "NumPy's generator": lambda: np.random.default_rng(1).bytes,
}


def accepting(source: Source) -> list[str]:
    """What is made with an unfit source, or fails for another reason than its being unfit."""
    ways = {name: partial(m.perturb, ANSWERS[name], source) for name, m in MECHANISMS.items()}
    ways["report"] = partial(perturb_answers, YES_NO, mechanisms_of(YES_NO), {"ever": "yes"}, source)
    ways["shares"] = partial(split, bytes(16), 2, "chacha20", source)
    ways["token"] = partial(draw, study_of("https://issuer.example").channel.tickets.keys[0], source)
    accepted = []
    for way, make in ways.items():
        try:
            make()
            accepted.append(way)
        except RandomnessError:
            pass
        except (ValueError, LookupError, ArithmeticError, struct.error) as error:
            accepted.append(f"{way}: {error}")
    return accepted


@pytest.mark.parametrize("name", UNFIT)
def test_the_refusal_of_an_unfit_source_holds(name: str) -> None:
    assert accepting(UNFIT[name]()) == []


def test_the_refusal_of_a_short_system_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    give(monkeypatch, lambda size: SHORT(size)[:-1])
    with pytest.raises(RandomnessError):
        report(tmp_path)


@pytest.mark.parametrize("period", [1, 2, 3, 8, 60, 64, 100])
def test_periodic_system_is_refused(period: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A period of 1 is a stuck generator."""
    give(monkeypatch, periodic(period))
    numbers = (MECHANISMS["hours"].perturb(3, randomness.urandom) for _ in range(100))
    with pytest.raises(RandomnessError):
        list(numbers)


@pytest.mark.parametrize("name", UNFIT)
def test_planted_missing_refusal_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths are not looked at, or every source is taken for a test's."""
    if name == "short":
        monkeypatch.setattr("ldp_client.core.strips.read", lambda source, size: source(size))
    else:
        monkeypatch.setattr(randomness, "NotForRealAnswers", object)
    assert accepting(UNFIT[name]())


def twins(folder: Path) -> set[str]:
    """The secrets that two processes share which begin as copies of this one."""
    first, second = (json.loads(secrets_of_a_copy(folder / str(next(FOLDERS)))) for _ in range(2))
    assert first.keys() == second.keys() == SECRETS.keys() | KEYS.keys()
    return {name for name in first if first[name] == second[name]}


@pytest.mark.slow
@pytest.mark.entropy
def test_secrets_differ_between_processes(tmp_path: Path) -> None:
    token()
    assert twins(tmp_path) == set()
