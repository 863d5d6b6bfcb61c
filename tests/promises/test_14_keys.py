"""Keys do what they say: a read key cannot delete, and wrong keys cost a bounded amount.

One table has every address of the collector, and what it answers to each kind of key.
"""

from __future__ import annotations

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
from tests.kit.collectors import TICKET_KEY, Harness, build_study
from tests.kit.statements import before_each
from tests.promises.key_table import ALIKE, ANSWERS, KINDS, STUDY, WRONG, requests_of, status_of, words_of

Patch, Log = pytest.MonkeyPatch, pytest.LogCaptureFixture
REQUESTS = 200
# Fifty wrong keys at once are looked up one by one.
MOST_STATEMENTS = 2 * 50 + REQUESTS // 5


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


def check_keys(harness: Harness, requests: Sequence[str]) -> None:
    """Each key opens what the table says, which lacks no request."""
    words = words_of(harness)
    seen = {
        request: " ".join(str(status_of(harness, request, words[kind])) for kind in KINDS)
        for request in requests
    }
    assert seen == {request: ANSWERS.get(request) for request in requests}


def test_each_key_opens_only_its_listed_addresses(harness: Harness) -> None:
    check_keys(harness, requests_of(harness))


def test_the_page_may_do_what_the_key_of_its_user_may(harness: Harness) -> None:
    words, alike = words_of(harness), {request for requests in ALIKE.values() for request in requests}
    for request in (one for one in requests_of(harness) if " /v1" in one and one not in alike):
        for kind, expected in zip(KINDS, ANSWERS[request].split(), strict=True):
            # Only a key that may read signs in.
            if kind in ("read", "operate", "reader", "token"):
                assert status_of(harness, request, words[kind], in_page=True) == int(expected), (
                    request,
                    kind,
                )


def test_a_planted_read_key_that_deletes_is_found(harness: Harness, monkeypatch: Patch) -> None:
    allows = Role.allows
    monkeypatch.setattr(Role, "allows", lambda role, needed: role is Role.READ or allows(role, needed))
    with pytest.raises(AssertionError):
        check_keys(harness, [f"DELETE {STUDY}/reports/<report_id>"])


def check_costs(harness: Harness, monkeypatch: Patch, log: Log) -> None:
    """A flood of wrong keys costs few statements, hashes and lines of the log, and stops no right key."""
    words = [harness.write(add_key, f"key-{number}", Role.READ) for number in range(40)]
    made: Counter[str] = Counter()
    before_each(harness.collector.database.engine, lambda: made.update(["statements"]))
    hashed = keys.hash_key
    monkeypatch.setattr(keys, "hash_key", lambda key: (made.update(["hashes"]), hashed(key))[1])
    log.clear()
    for number in range(REQUESTS):
        headers = {"Authorization": f"Bearer {WRONG}-{number}"}
        assert harness.client.get("/v1/studies", headers=headers).status_code in (401, 429)
    assert made["statements"] <= MOST_STATEMENTS
    assert made["hashes"] <= 3 * REQUESTS
    assert len(log.records) <= 3
    right = {"Authorization": f"Bearer {words[-1]}"}
    assert harness.client.get("/v1/studies", headers=right).status_code == 200


def test_wrong_keys_cost_a_bounded_amount(harness: Harness, monkeypatch: Patch, caplog: Log) -> None:
    check_costs(harness, monkeypatch, caplog)


def test_planted_wrong_keys_that_are_all_looked_up_are_found(
    make_harness: Any, monkeypatch: Patch, caplog: Log
) -> None:
    monkeypatch.setattr(keys, "TokenBucket", lambda _rate: TokenBucket(1e6))
    with pytest.raises(AssertionError):
        check_costs(make_harness(), monkeypatch, caplog)
