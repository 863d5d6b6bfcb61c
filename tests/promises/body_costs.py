"""Bodies that cost a collector much, and what it spends on them."""

from __future__ import annotations

import gzip
import io
import json
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

from tests.kit.collectors import Harness, build_report, build_study
from tests.kit.work import counted

LIMIT = 100_000
# What is read at most beyond the limit, as a stream is read in parts, and how long a stream here is.
PART, LENGTH = 1 << 16, 1 << 22
# An honest batch of LIMIT bytes takes ten times as many calls.
MOST_CALLS, MOST_MEMORY, MOST_ANSWER = 10_000, 20 << 20, 40_000
REPORTS = "/v1/studies/habits/reports"
JSON = "application/json"
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
}
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

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), LENGTH - self.taken)
        buffer[:size] = b" " * size
        self.taken += size
        return size


def bytes_read(harness: Harness) -> list[str]:
    """Where an address reads much more than its limit of a long body, or takes it."""
    wrong = []
    for rule in harness.app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) & {"PUT", "POST", "DELETE"}):
            path = re.sub(r"<(?:path:)?\w+>", "0" * 32, rule.rule.replace("<study_id>", "habits"))
            for length in ({"CONTENT_LENGTH": str(LENGTH)}, {"wsgi.input_terminated": True}):
                body = Counted()
                options = {"content_type": JSON, "environ_overrides": {"wsgi.input": body, **length}}
                client = harness.app.test_client()
                status = client.open(path, method=method, headers=harness.operator, **options).status_code
                if body.taken > LIMIT + PART or (body.taken and status != 413):
                    wrong.append(f"{method} {rule.rule}: {status} after {body.taken} bytes")
    return wrong


def costs(harness: Harness, only: str = "") -> list[str]:
    """Which bodies cost more memory or calls than is allowed, or make a server fail. only: of this name."""
    post(harness, b'{"reports":[1]}', "gzip")
    wrong = []
    for encoding, compress in COMPRESSIONS.items():
        for name, body in BODIES.items():
            sent = compress(body) if only in name else bytes(2 * LIMIT)
            if len(sent) >= 2 * LIMIT:
                continue
            (status, length), memory = post(harness, sent, encoding), 0
            tracemalloc.start()
            try:
                post(harness, sent, encoding)
                memory = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            with counted() as calls:
                post(harness, sent, encoding)
            wrong += [f"{memory} bytes for {name}, {encoding}"] if memory > MOST_MEMORY else []
            wrong += [f"{calls.made} calls for {name}, {encoding}"] if calls.made > MOST_CALLS else []
            wrong += [f"{status} for {name}, {encoding}"] if status not in (200, 400, 413, 422) else []
            wrong += [f"an answer of {length} bytes to {name}, {encoding}"] if length > MOST_ANSWER else []
    return wrong


def post(harness: Harness, body: bytes, encoding: str) -> tuple[int, int]:
    """The status of a batch of reports, and the length of its answer."""
    headers = {"Content-Encoding": encoding} if encoding != "identity" else {}
    client = harness.app.test_client()
    answer = client.post(REPORTS, data=body, content_type=JSON, headers=headers)
    return answer.status_code, len(answer.data)
