"""A retry sends identical bytes, also after the library is updated.

The folder `frozen` has a ledger that an older copy of the library wrote, and the bytes that it has to send.
`python -m tests.promises.test_06_identical_retry` freezes another; a new layout is no reason to.
"""

import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from ldp_client import Device
from ldp_client.device import sending
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms import MECHANISMS
from schemas import Report, Study
from tests import studies
from tests.ldp_client.devices import Memoized
from tests.promises.lives import BUDGET, ROUNDS, bodies_of

FROZEN = Path(__file__).parent / "frozen"
pytestmark = pytest.mark.usefixtures("memoized")
PUBLIC = [{"id": "region", "choices": ["north", "a longer name"]}]
# Of one question asked the report has spaces at its end.
PADDED = Study(
    studies.document(studies.NUMBER, studies.CHOICE, id="padded", sample_one_question=True, public=PUBLIC)
)
ANSWERED = [
    (ROUNDS[0], {"hours": 3, "ever": True}, {}),
    (PADDED, {"hours": 7, "occupation": "worker"}, {"region": "north"}),
]


def thaw(folder):
    """Put the older library's ledger into a folder, without its lock; the reports' paths and bodies."""
    with closing(sqlite3.connect(folder / "ledger.sqlite3")) as connection:
        connection.executescript((FROZEN / "ledger.sql").read_text(encoding="utf-8"))
    return json.loads((FROZEN / "requests.json").read_text(encoding="utf-8"))


def answer_all(folder):
    """The paths and bodies of reports that a device makes now."""
    device = Device(folder, BUDGET)
    for study, answers, public in ANSWERED:
        device.consent(study)
        device.answer(study, answers, public=public)
    queue = device.ledger.queued()
    return {f"/v1/studies/{queued.study}/reports/{queued.report_id}": queued.body for queued in queue}


def check_retries(folder, server, expected):
    """Each report leaves in the same bytes, in vain twice and then with success, by a device each."""
    for statuses in ([404] * 2, [404] * 2, []):
        server.statuses = statuses
        Device(folder, BUDGET, server.url).flush(attempts=1)
    sent = [(path, body, headers["Content-Type"]) for _, path, body, headers in server.requests]
    assert sorted(sent) == sorted(
        3 * [(path, body.encode(), "application/json") for path, body in expected.items()]
    )


@pytest.mark.parametrize("make", [answer_all, thaw], ids=["written today", "written before an update"])
def test_a_retry_is_identical(tmp_path, server, make):
    expected = make(tmp_path)
    assert any(body.endswith(" ") for body in expected.values())
    check_retries(tmp_path, server, expected)


def test_updated_library_remembers_earlier_answers(tmp_path, server):
    """The library answers no study twice, and repeats the permanent answer in the next round."""
    thaw(tmp_path)
    device = Device(tmp_path, BUDGET, server.url)
    for study, answers, public in ANSWERED:
        with pytest.raises(AlreadyAnsweredError):
            device.answer(study, answers, public=public)
    device.consent(ROUNDS[1])
    device.answer(ROUNDS[1], {"ever": False})
    assert device.epsilon_left == 5
    device.flush(attempts=1)
    reports = [Report.from_json(body) for body in bodies_of(server)]
    rounds = [report.payloads["ever"] for report in reports if report.study == "rounds"]
    assert len(rounds) == 2
    assert len({payload[:9] for payload in rounds}) == 1


def test_planted_other_bytes_in_a_retry_are_found(tmp_path, server, monkeypatch):
    put, tried = sending.put_report, set()

    def changed(transport, url, body, *more):
        body += " " * (url in tried)
        tried.add(url)
        return put(transport, url, body, *more)

    expected = thaw(tmp_path)
    monkeypatch.setattr(sending, "put_report", changed)
    with pytest.raises(AssertionError):
        check_retries(tmp_path, server, expected)


def freeze():
    """Write the ledger and the requests of a device of today."""
    with tempfile.TemporaryDirectory() as folder:
        requests = answer_all(Path(folder))
        with closing(sqlite3.connect(Path(folder) / "ledger.sqlite3")) as connection:
            layout = connection.execute("PRAGMA user_version").fetchone()[0]
            lines = [*connection.iterdump(), f"PRAGMA user_version = {layout};"]
    (FROZEN / "ledger.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (FROZEN / "requests.json").write_text(json.dumps(requests, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    MECHANISMS["randomized_response"] = Memoized
    freeze()
