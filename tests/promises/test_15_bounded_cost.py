"""Hostile input costs a bounded amount, and one client or study cannot stop the others.

Cost is counted: bytes that are read, calls that are made, and the most memory that is held at once.
"""

import gzip
import io
import json
import re
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from collector import store
from collector.reports import uploads
from tests.kit.collectors import WatchedQueue, build_report, build_study
from tests.kit.work import counted

LIMIT = 100_000
# What is read at most beyond the limit, as a stream is read in parts, and how long a stream here is.
PART, LENGTH = 1 << 16, 1 << 22
# An honest batch of LIMIT bytes takes ten times as many calls.
MOST_CALLS, MOST_MEMORY, MOST_ANSWER = 10_000, 20 << 20, 40_000
REPORTS = "/v1/studies/habits/reports"
JSON = "application/json"
COMPRESS = {"identity": bytes, "gzip": gzip.compress}
INFLATE = {"identity": bytes, "gzip": gzip.decompress}
HONEST = build_report(build_study()).to_json().encode()
BODIES = {
    "nothing but blanks": b" " * 24_000_000,
    "lists in lists": b'{"reports":' + b"[" * 45_000 + b"]" * 45_000 + b"}",
    "objects in objects": b'{"aaaaaaaaaaaa":' * 5_000 + b"1" + b"}" * 5_000,
    "empty members": b'{"reports":[' + b"{}," * 33_000 + b"{}]}",
    "many keys": json.dumps({"reports": [{str(number): 1 for number in range(9_000)}]}).encode(),
    "a long number": b'{"reports":[' + b"1" * 95_000 + b"]}",
    "wrong members": b'{"reports":[' + (b'{"id":"0123456789"}' + b" " * 40 + b",") * 1_600 + HONEST + b"]}",
    "a long id": json.dumps({"reports": [{"id": "x" * 95_000}]}).encode(),
}


class Counted(io.RawIOBase):
    """A long body that counts what is read of it."""

    taken = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        size = min(len(buffer), LENGTH - self.taken)
        buffer[:size] = b" " * size
        self.taken += size
        return size


def check_costs(harness, only=""):
    """No body costs more memory or calls than is allowed, or makes a server fail. only: of this name."""
    post(harness, b'{"reports":[1]}', "gzip")
    for encoding, compress in COMPRESS.items():
        for name, body in BODIES.items():
            sent = compress(body)
            if only not in name or len(sent) >= 2 * LIMIT:
                continue
            status, length = post(harness, sent, encoding)
            assert status in (200, 400, 413, 422), (name, encoding)
            assert length <= MOST_ANSWER, (name, encoding)
            tracemalloc.start()
            try:
                post(harness, sent, encoding)
                assert tracemalloc.get_traced_memory()[1] <= MOST_MEMORY, (name, encoding)
            finally:
                tracemalloc.stop()
            with counted() as calls:
                post(harness, sent, encoding)
            assert calls() <= MOST_CALLS, (name, encoding)


def post(harness, body, encoding):
    """The status of a batch of reports, and the length of its answer."""
    headers = {"Content-Encoding": encoding} if encoding != "identity" else {}
    client = harness.app.test_client()
    answer = client.post(REPORTS, data=body, content_type=JSON, headers=headers)
    return answer.status_code, len(answer.data)


@pytest.fixture
def harness(make_harness):
    """A collector of short bodies, with a study."""
    return make_harness(body_limit=LIMIT, published=[build_study()])


def test_no_address_reads_too_long_body(harness):
    for rule in harness.app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) & {"PUT", "POST", "DELETE"}):
            path = re.sub(r"<(?:path:)?\w+>", "0" * 32, rule.rule.replace("<study_id>", "habits"))
            for length in ({"CONTENT_LENGTH": str(LENGTH)}, {"wsgi.input_terminated": True}):
                body = Counted()
                options = {"content_type": JSON, "environ_overrides": {"wsgi.input": body, **length}}
                client = harness.app.test_client()
                status = client.open(path, method=method, headers=harness.operator, **options).status_code
                assert body.taken <= LIMIT + PART, (method, path)
                assert status == 413 or not body.taken, (method, path)


def test_a_costly_body_is_refused_at_a_bounded_cost(harness):
    check_costs(harness)


def test_a_planted_body_without_limit_is_found(harness, monkeypatch):
    monkeypatch.setattr(uploads, "inflate", lambda body, encoding, _limit: INFLATE[encoding](body))
    with pytest.raises(AssertionError, match="nothing but blanks"):
        check_costs(harness, "blanks")


def test_full_queue_of_one_study_does_not_block_others(make_harness, monkeypatch):
    monkeypatch.setattr("collector.context.MOST_QUEUED", 4)
    harness, opened, entered, queue = make_harness(), Event(), Event(), WatchedQueue()
    harness.collector.writer._queue = queue
    study, other = build_study(), build_study(id="other")
    assert [harness.publish(version).status_code for version in (study, other)] == [201, 201]
    insert = store.insert_reports

    def held(*arguments):
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
