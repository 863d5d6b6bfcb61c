"""Hostile input costs a bounded amount, and one client or study cannot stop the others.

Cost is counted: bytes that are read, calls that are made, and the most memory that is held at once.
"""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from collector import store
from collector.reports import uploads
from ldp_client.documents.errors import InputError
from ldp_client.documents.report import MAX_BYTES
from schemas import Study
from summaries import reading
from summaries.reading import summarize
from tests import studies
from tests.kit.collectors import Harness, WatchedQueue, build_report, build_study
from tests.promises.body_costs import LIMIT, bytes_read, costs

Patch = pytest.MonkeyPatch


@pytest.fixture
def harness(make_harness: Any) -> Harness:
    """A collector of short bodies, with a study."""
    made: Harness = make_harness(body_limit=LIMIT)
    assert made.publish(build_study()).status_code == 201
    return made


def test_no_address_reads_too_long_body(harness: Harness) -> None:
    assert bytes_read(harness) == []


def test_a_costly_body_is_refused_at_a_bounded_cost(harness: Harness) -> None:
    assert costs(harness) == []


def inflate_all(body: bytes, encoding: str, _limit: int) -> bytes:
    return gzip.decompress(body) if encoding == "gzip" else body


def test_a_planted_body_without_limit_is_found(harness: Harness, monkeypatch: Patch) -> None:
    monkeypatch.setattr(uploads, "inflate", inflate_all)
    assert any("bytes for nothing but blanks, gzip" in problem for problem in costs(harness, "blanks"))


def others_stopped(make: Callable[..., Harness]) -> list[str]:
    """What one study, or one member of a batch, does to others."""
    harness = make("others.sqlite3", upload_rate=0.5)
    study, other = build_study(), build_study(id="other")
    assert [harness.publish(version).status_code for version in (study, other)] == [201, 201]
    flood = [harness.put(build_report(study)).status_code for _ in range(12)]
    wrong = [f"a flood of one study is answered {flood}"] if set(flood) != {201, 429} else []
    status = harness.put(build_report(other)).status_code
    wrong += [f"the other study is answered {status}"] if status != 201 else []
    calm = make("calm.sqlite3")
    assert calm.publish(study).status_code == 201
    good = [build_report(study).to_document() for _ in range(4)]
    faulty = [{**good[0], "id": "x" * 900}, {**good[0], "digest": "0" * 64}, 7, [], {"payloads": None}]
    for number, member in enumerate(faulty):
        report = build_report(study).to_document()
        answer = calm.post([member, report, member]).get_json(force=True)
        if (answer.get("stored"), len(answer.get("failed", []))) != (1, 2):
            wrong.append(f"a batch with faulty member {number} is answered {answer.get('stored')}")
    return wrong


def test_faulty_study_or_member_does_not_stop_others(make_harness: Any) -> None:
    assert others_stopped(make_harness) == []


def test_a_planted_batch_that_fails_as_a_whole_is_found(make_harness: Any, monkeypatch: Patch) -> None:
    monkeypatch.setattr(uploads, "MOST_WRONG", 0)
    assert any("a batch with faulty member" in problem for problem in others_stopped(make_harness))


def test_full_queue_of_one_study_does_not_block_others(make_harness: Any, monkeypatch: Patch) -> None:
    monkeypatch.setattr("collector.app.MOST_QUEUED", 4)
    harness, opened, entered, queue = make_harness(), Event(), Event(), WatchedQueue()
    harness.collector.writer._queue = queue
    study, other = build_study(), build_study(id="other")
    assert [harness.publish(version).status_code for version in (study, other)] == [201, 201]
    insert = store.insert_reports

    def held(*arguments: Any) -> Any:
        entered.set()
        assert opened.wait(60)
        return insert(*arguments)

    monkeypatch.setattr(store, "insert_reports", held)
    before = queue.count
    with ThreadPoolExecutor(2) as pool:
        full = pool.submit(harness.post, [build_report(study).to_document() for _ in range(4)])
        assert entered.wait(60)
        waiting = pool.submit(harness.put, build_report(other))
        # A report that is refused does not reach the queue.
        queue.wait_until(before + 2)
        opened.set()
        assert (full.result().status_code, waiting.result().status_code) == (200, 201)


def memory_of(path: Path) -> int:
    """The most memory that reading a file of reports holds."""
    study = Study(studies.document(studies.YES_NO))
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            summarize(study, [str(path)])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("planted", [False, True], ids=["as it is", "planted: lines that are read whole"])
def test_an_endless_line_of_a_file_is_not_read_whole(
    tmp_path: Path, monkeypatch: Patch, planted: bool
) -> None:
    path = tmp_path / "reports.ndjson"
    path.write_bytes(b"x" * (8 * MAX_BYTES) + b"\n{}\n")
    if planted:
        monkeypatch.setattr(reading, "MAX_BYTES", 1 << 40)
    assert (memory_of(path) > 6 * MAX_BYTES) == planted
