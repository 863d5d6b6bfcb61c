"""Keys do what they say: a read key cannot delete, and wrong keys cost a bounded amount.

One table has every address of the collector, and what it answers to each kind of key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from collector import keys, limiter
from collector.keys import Role, add_key
from collector.limiter import TokenBucket
from tests.kit.collectors import TICKET_KEY, Harness, build_report, build_study
from tests.kit.statements import before_each
from tests.promises.key_table import ALIKE, ANSWERS, KINDS, STUDY, WRONG, requests_of, status_of, words_of

Patch, Log = pytest.MonkeyPatch, pytest.LogCaptureFixture
REQUESTS = 200
# Fifty wrong keys at once are looked up one by one.
MOST_STATEMENTS = 2 * 50 + REQUESTS // 5
MOST_HASHES = 3 * REQUESTS
MOST_LINES = 3


@pytest.fixture(autouse=True)
def clocks(monkeypatch: Patch) -> None:
    """Clocks that tick when they are read, and one that stands still."""
    monkeypatch.setattr(keys, "TokenBucket", partial(TokenBucket, clock=lambda: 0.0))
    ticks = count(1)
    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))


@pytest.fixture
def harness(make_harness: Any) -> Harness:
    """Two studies at a collector that makes tickets."""
    made: Harness = make_harness(ticket_key=TICKET_KEY)
    for study in (build_study(), build_study(id="other")):
        assert made.publish(study).status_code == 201
    return made


def problems(harness: Harness, requests: Sequence[str]) -> list[str]:
    """The requests that another key opens than the table says, or that the table lacks."""
    words, wrong = words_of(harness), []
    for request in requests:
        seen = [status_of(harness, request, kind, words[kind]) for kind in KINDS]
        if ANSWERS.get(request) != " ".join(map(str, seen)):
            wrong.append(f"{request}: {dict(zip(KINDS, seen, strict=True))}")
    return wrong + withdrawals(harness)


def withdrawals(harness: Harness) -> list[str]:
    """What is wrong where a device withdraws: only the secret of a report is the key to it."""
    study = build_study(id="other")
    kept, other = build_report(study), build_report(study)
    assert [harness.put(report).status_code for report in (kept, other)] == [201, 201]
    seen = [
        harness.withdraw(kept.id, "other", secret=secret).status_code
        for secret in (other.secret, bytes(16), bytes.fromhex(kept.id), kept.secret)
    ]
    return [] if seen == [403, 403, 403, 200] else [f"withdrawals with secrets: {seen}"]


def test_each_key_opens_only_its_listed_addresses(harness: Harness) -> None:
    assert problems(harness, requests_of(harness)) == []


def test_the_page_may_do_what_the_key_of_its_user_may(harness: Harness) -> None:
    words, wrong = words_of(harness), []
    alike = {request for requests in ALIKE.values() for request in requests}
    for request in (one for one in requests_of(harness) if " /v1" in one and one not in alike):
        for kind, expected in zip(KINDS, ANSWERS[request].split(), strict=True):
            # Only a key that may read signs in.
            if kind in ("read", "operate", "reader", "token"):
                status = status_of(harness, request, kind, words[kind], in_page=True)
                wrong += [f"{request} with {kind}: {status}"] * (str(status) != expected)
    assert wrong == []


def test_a_planted_read_key_that_deletes_is_found(harness: Harness, monkeypatch: Patch) -> None:
    allows = Role.allows
    monkeypatch.setattr(Role, "allows", lambda role, needed: role is Role.READ or allows(role, needed))
    request = f"DELETE {STUDY}/reports/<report_id>"
    assert any(re.match(f"{request}.*'read': 200", problem) for problem in problems(harness, [request]))


def costs(harness: Harness, monkeypatch: Patch, log: Log) -> list[str]:
    """What a flood of wrong keys costs above its bound."""
    with harness.collector.database.write() as session:
        words = [add_key(session, f"key-{number}", Role.READ) for number in range(40)]
    made: Counter[str] = Counter()
    engine = harness.collector.database.engine
    before_each(engine, lambda: made.update(["statements"]))
    hashed = keys.hash_key
    monkeypatch.setattr(keys, "hash_key", lambda key: (made.update(["hashes"]), hashed(key))[1])
    log.clear()
    for number in range(REQUESTS):
        headers = {"Authorization": f"Bearer {WRONG}-{number}"}
        assert harness.client.get("/v1/studies", headers=headers).status_code in (401, 429)
    most = {"statements": MOST_STATEMENTS, "hashes": MOST_HASHES}
    wrong = [f"{made[name]} {name}" for name, limit in most.items() if made[name] > limit]
    lines = len(log.records)
    wrong += [f"{lines} lines in the log"] if lines > MOST_LINES else []
    right = harness.client.get("/v1/studies", headers={"Authorization": f"Bearer {words[-1]}"}).status_code
    return wrong + ([f"a right key is answered {right}"] if right != 200 else [])


def test_wrong_keys_cost_a_bounded_amount(harness: Harness, monkeypatch: Patch, caplog: Log) -> None:
    assert costs(harness, monkeypatch, caplog) == []


def test_planted_wrong_keys_that_are_all_looked_up_are_found(
    make_harness: Any, monkeypatch: Patch, caplog: Log
) -> None:
    monkeypatch.setattr(keys, "TokenBucket", lambda _rate: TokenBucket(1e6))
    assert any("statements" in problem for problem in costs(make_harness(), monkeypatch, caplog))
