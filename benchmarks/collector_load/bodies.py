"""Requests as a device would send them: one OUE question with 1024 choices."""

import os
from collections.abc import Iterable, Iterator

from ldp_client import mechanism_for
from schemas import Report, Study

CHOICES = 1024
# Of every benchmark.
STUDY = Study(
    {
        "format": "ldpkit.study/1",
        "id": "load",
        "version": 1,
        "title": "Load",
        "questions": [
            {
                "id": "q",
                "ask": "choice",
                "choices": [f"choice {number}" for number in range(CHOICES)],
                "mechanism": {"name": "oue", "epsilon": "1"},
                "model": {"name": "multinomial"},
            }
        ],
    }
)


def fresh_reports(count: int) -> Iterator[Report]:
    """Reports with fair bits: possible under the mechanism, and quicker to make than true ones."""
    size = mechanism_for(STUDY.questions[0]).payload_size
    for _ in range(count):
        report_id, payloads = os.urandom(16).hex(), {"q": os.urandom(size)}
        yield Report(report_id, STUDY.id, STUDY.version, STUDY.digest, payloads)


def put_request(report: Report) -> bytes:
    """One report as an HTTP request."""
    return _request(f"PUT /v1/studies/{report.study}/reports/{report.id}", report.to_json().encode())


def batch_request(reports: Iterable[Report]) -> bytes:
    """Many reports as one HTTP request."""
    members = ",".join(report.to_json() for report in reports)
    return _request(f"POST /v1/studies/{STUDY.id}/reports", f'{{"reports":[{members}]}}'.encode())


def _request(line: str, body: bytes) -> bytes:
    head = (
        f"{line} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
