"""A retry sends identical bytes, also after the library is updated.

The folder `frozen` has a ledger that an older copy of the library wrote, and the bytes that it has to send.
`python -m tests.promises.test_06_identical_retry` freezes another; a new layout is no reason to.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldp_client import Device
from ldp_client.device import sending
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms import MECHANISMS, mechanisms_of
from schemas import Report, Study
from tests import studies
from tests.ldp_client.devices import Memoized, Server
from tests.promises.watched_ledger import BUDGET, ROUNDS, Arrivals, Patch, bodies_of

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
Sent = tuple[str, bytes, str]


def thaw(folder: Path) -> None:
    """The older library's ledger in a folder; its lock was lost on the way."""
    with closing(sqlite3.connect(folder / "ledger.sqlite3")) as connection:
        connection.executescript((FROZEN / "ledger.sql").read_text(encoding="utf-8"))


def frozen_reports() -> dict[str, bytes]:
    """The path of each frozen report and the bytes that have to leave."""
    kept = json.loads((FROZEN / "requests.json").read_text(encoding="utf-8"))
    return {path: body.encode() for path, body in kept.items()}


def sent_in_flushes(folder: Path, server: Server) -> list[Sent]:
    """What leaves for each report: in vain at least twice, by a device each, and then with success.

    An overloaded server gets one request of a flush.
    """
    server.requests = Arrivals()
    for _ in range(100):
        server.statuses = [503] * 4
        Device(folder, BUDGET, server.url).flush(attempts=1)
        tried = Counter(path for method, path, _, _ in server.requests if method == "PUT")
        if len(tried) == len(ANSWERED) and min(tried.values()) >= 2:
            break
    server.statuses = []
    assert Device(folder, BUDGET, server.url).flush(attempts=1).sent == len(ANSWERED)
    return [
        (path, body, headers["Content-Type"])
        for method, path, body, headers in server.requests
        if method == "PUT"
    ]


def problems(folder: Path, server: Server, expected: dict[str, bytes]) -> list[str]:
    """Which reports left in other bytes than these, or fewer than three times."""
    sent = sent_in_flushes(folder, server)
    wrong = [] if {path for path, _, _ in sent} == set(expected) else ["other reports left"]
    for path, body in expected.items():
        bodies = [other for address, other, _ in sent if address == path]
        kinds = {kind for address, _, kind in sent if address == path}
        is_same = len(bodies) >= 3 and set(bodies) == {body}
        wrong += [] if is_same else [f"{path} left in {len(set(bodies) | {body})} forms"]
        wrong += [] if kinds == {"application/json"} else [f"{path} left as {sorted(kinds)}"]
    return wrong


def fresh_reports(folder: Path) -> dict[str, bytes]:
    """The same of reports that a device makes now."""
    device = Device(folder, BUDGET)
    for study, answers, public in ANSWERED:
        device.consent(study)
        device.answer(study, answers, public=public)
    return {
        f"/v1/studies/{queued.study}/reports/{queued.report_id}": queued.body.encode()
        for queued in device.ledger.queued()
    }


def test_a_retry_by_the_library_of_today_is_identical(tmp_path: Path, server: Server) -> None:
    assert not problems(tmp_path, server, fresh_reports(tmp_path))


def test_a_retry_after_an_update_is_identical(tmp_path: Path, server: Server) -> None:
    thaw(tmp_path)
    expected = frozen_reports()
    assert len(expected) == 2
    assert any(body.endswith(b" ") for body in expected.values())
    assert not problems(tmp_path, server, expected)


def test_updated_library_remembers_earlier_answers(tmp_path: Path, server: Server) -> None:
    """The library answers no study twice, and repeats the permanent answer in the next round."""
    thaw(tmp_path)
    device = Device(tmp_path, BUDGET, server.url)
    assert device.epsilon_left == 5
    for study, answers, public in ANSWERED:
        with pytest.raises(AlreadyAnsweredError):
            device.answer(study, answers, public=public)
    device.consent(ROUNDS[1])
    device.answer(ROUNDS[1], {"ever": False})
    assert device.epsilon_left == 5
    server.requests = Arrivals()
    device.flush(attempts=1)
    reports = {
        report.version: report for report in map(Report.from_json, bodies_of(server)) if is_round(report)
    }
    first, second = (reports[version].payloads["ever"] for version in (1, 2))
    assert first[:9] == second[:9]


def is_round(report: Report) -> bool:
    """Whether the report is of the study that asks again."""
    return report.study == "rounds"


def drawn_anew(body: str) -> str:
    """The same report with fresh noise on the answer."""
    report = Report.from_json(body)
    study = next(study for study, _, _ in ANSWERED if study.id == report.study)
    for name in report.payloads:
        mechanism = mechanisms_of(study)[name]
        if not isinstance(mechanism, Memoized):
            report.payloads[name] = mechanism.perturb(0 if name == "hours" else "student")
    return report.to_json() + " " * (len(body) - len(body.rstrip()))


@pytest.mark.parametrize("is_older", [False, True], ids=["written today", "written before an update"])
def test_planted_fresh_noise_in_a_retry_is_found(
    tmp_path: Path, server: Server, monkeypatch: Patch, is_older: bool
) -> None:
    put, tried = sending.put_report, set()

    def changed(transport: Any, url: str, body: str, *more: Any) -> Any:
        again = url in tried
        tried.add(url)
        return put(transport, url, drawn_anew(body) if again else body, *more)

    if is_older:
        thaw(tmp_path)
    expected = frozen_reports() if is_older else fresh_reports(tmp_path)
    monkeypatch.setattr(sending, "put_report", changed)
    assert problems(tmp_path, server, expected)


def freeze() -> None:
    """Write the ledger and the requests of a device of today."""
    with tempfile.TemporaryDirectory() as folder:
        requests = {path: body.decode() for path, body in fresh_reports(Path(folder)).items()}
        with closing(sqlite3.connect(Path(folder) / "ledger.sqlite3")) as connection:
            layout = connection.execute("PRAGMA user_version").fetchone()[0]
            lines = [*connection.iterdump(), f"PRAGMA user_version = {layout};"]
    (FROZEN / "ledger.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (FROZEN / "requests.json").write_text(json.dumps(requests, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    MECHANISMS["randomized_response"] = Memoized
    freeze()
