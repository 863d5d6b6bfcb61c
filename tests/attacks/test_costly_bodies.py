"""A short request makes a collector work or answer much, and blocks others.

Defence: The collector: serves published documents without parsing them.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from collector import limiter
from collector.limiter import Limiter
from collector.problems import ProblemError
from collector.views.batches import MOST_WRONG
from collector.views.bodies import MOST_GROWTH, SMALL_BYTES, inflate
from ldp_client.files.signing import new_key, sign_study
from schemas import Study
from tests.collector.conftest import Harness, build_report, build_study
from tests.kit.errors import raises

JSON = "application/json"
MANY = 100_000
# Each costs a collector without limits a second of its time, or hundreds of megabytes.
BODIES = {
    "empty objects": b'{"reports":[' + b"{}," * (MANY - 1) + b"{}]}",
    "nested lists": b'{"reports":[' + (b"[" * 30 + b"]" * 30 + b",") * (MANY // 30) + b"{}]}",
    "one huge string": b'{"reports":["' + b"x" * 900_000 + b'"]}',
    "huge ids": json.dumps({"reports": [{"id": "x" * 9_000}] * 100}).encode(),
    "huge names": json.dumps({"reports": [{"x" * 9_000: 1}] * 100}).encode(),
    "huge numbers": b'{"reports":[' + b"1" * 900_000 + b"]}",
    "many keys": json.dumps({"reports": [{str(n): n for n in range(60_000)}]}).encode(),
}
COMPRESSIONS = {None: bytes, "gzip": gzip.compress}


@pytest.fixture
def habits(tmp_path):
    harness = Harness(f"sqlite:///{tmp_path / 'x.sqlite3'}", upload_rate=1000)
    harness.publish(build_study())
    yield harness
    harness.collector.close()


def post(harness, body, encoding=None):
    headers = {"Content-Encoding": encoding} if encoding else {}
    path = "/v1/studies/habits/reports"
    return harness.app.test_client().post(path, data=body, content_type=JSON, headers=headers)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("encoding", COMPRESSIONS)
def test_costly_body_is_refused_with_short_answer_and_little_memory(habits, name, encoding):
    sent = COMPRESSIONS[encoding](BODIES[name])
    post(habits, b'{"reports":[1]}')
    tracemalloc.start()
    try:
        response = post(habits, sent, encoding)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert response.status_code in (200, 400, 413, 422)
    assert len(response.data) < 40_000
    # Twenty-five times the largest body; the same bodies took a hundred times theirs.
    assert peak < 25 << 20


def test_batch_is_rejected_after_a_hundred_invalid_reports(habits):
    good = build_report(build_study()).to_document()
    wrong = {**good, "digest": "0" * 64}
    some = post(habits, json.dumps({"reports": [wrong] * MOST_WRONG + [good]}).encode())
    assert some.get_json()["stored"] == 1
    assert len(some.get_json()["failed"]) == MOST_WRONG
    good = build_report(build_study()).to_document()
    response = post(habits, json.dumps({"reports": [good] + [wrong] * 2 * MOST_WRONG}).encode())
    problem = response.get_json(force=True)
    assert (response.status_code, problem["type"]) == (422, "urn:ldpkit:problem:batch-wrong")
    assert "nothing was stored" in problem["detail"]
    assert [entry["field"] for entry in problem["failed"]] == [
        f"reports[{number}].digest" for number in range(1, MOST_WRONG + 1)
    ]
    assert good["id"] not in [report.id for report in habits.exported()]


def test_decompressed_size_is_limited_by_growth_factor():
    encoding, compress = "gzip", gzip.compress
    small, large = compress(b" " * SMALL_BYTES), compress(b" " * (SMALL_BYTES + 1))
    assert len(inflate(small, encoding, 1 << 20)) == SMALL_BYTES
    with raises(ProblemError, "body-too-large"):
        inflate(large, encoding, 1 << 20)
    # Of one archive in another, only the outer one is undone.
    assert inflate(compress(large), encoding, 1 << 20) == large


def test_real_reports_stay_far_below_the_growth_limit():
    reports = [build_report(build_study()).to_document() for _ in range(500)]
    body = json.dumps({"reports": reports}).encode()
    assert len(body) < MOST_GROWTH / 4 * len(gzip.compress(body, 9))


def test_bodies_wait_for_memory_and_are_refused_after_timeout():
    room = Limiter(100, 0.05, lambda: OSError("full"))
    with room.hold(1000), pytest.raises(OSError, match="full"):
        room.take(1)
    room = Limiter(100, 60.0, lambda: OSError("full"))
    with ThreadPoolExecutor(1) as pool:
        room.take(60)
        second = pool.submit(room.take, 60)
        time.sleep(0.05)
        assert not second.done()
        room.give_back(60)
        second.result(60)


def test_full_room_without_progress_refuses_at_once(monkeypatch):
    now, waits = [0.0], []
    room = Limiter(1, 2, lambda: OSError("full"))

    def wait(seconds):
        waits.append(seconds)
        now[0] += seconds

    # Time goes on only while the room waits.
    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(room._changed, "wait", wait)
    room.take()
    now[0] = 0.5
    with pytest.raises(OSError, match="full"):
        room.take()
    assert waits == [1.5]
    with pytest.raises(OSError, match="full"):
        room.take()
    assert waits == [1.5]


@pytest.mark.slow
def test_repeated_report_does_not_block_other_uploads(habits):
    """A small body with one report thousands of times, again and again."""
    report = build_report(build_study()).to_document()
    body = json.dumps({"reports": [report] * 2_000}).encode()
    for _ in range(15):
        assert post(habits, body).status_code == 200
        assert habits.put(build_report(build_study())).status_code == 201


@pytest.mark.slow
def test_flood_of_reports_blocks_uploads_for_seconds_only(habits):
    one = build_report(build_study()).to_document()
    for _ in range(12):
        reports = [{**one, "id": os.urandom(16).hex()} for _ in range(2_000)]
        post(habits, json.dumps({"reports": reports}).encode())
    response = habits.put(build_report(build_study()))
    assert response.status_code in (201, 429)
    assert int(response.headers.get("Retry-After", 0)) <= 11


def test_signed_study_is_served_without_parsing(empty, study, monkeypatch):
    """Anyone may request the longest document repeatedly."""
    signed = sign_study(study, new_key()[0].encode())
    path = "/v1/studies/habits/signed"
    headers = {"Content-Type": "application/json", **empty.operator}
    assert empty.client.post("/v1/studies", data=signed.to_json(), headers=headers).status_code == 201

    def costly(*_arguments):
        raise AssertionError("a published document is parsed again")

    monkeypatch.setattr(Study, "from_json", costly)
    assert empty.client.get(path).data == signed.to_json().encode()
