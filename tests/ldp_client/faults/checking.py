"""What must hold of a device's ledger and of what its collector received, whatever happened."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from ldp_client.device.ledger import Ledger
from ldp_client.documents.errors import LedgerError
from schemas import Report
from tests.ldp_client.faults.life import ALL, ONCE, WAVES, WITHDRAWN


class Received:
    """What the collector got. log: one JSON line [method, path, body] for each request, in order."""

    def __init__(self, log: Path) -> None:
        self.bodies: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.payloads: dict[tuple[str, str], set[bytes]] = defaultdict(set)
        self.after_deletion: list[str] = []
        self.deleted: set[str] = set()
        for line in log.read_text().splitlines():
            self._add(*json.loads(line))

    def _add(self, method: str, path: str, body: str) -> None:
        report_id = path.rsplit("/", 1)[1]
        if method == "DELETE":
            self.deleted.add(report_id)
            return
        report = Report.from_json(body)
        self.bodies[report.study, report.version].add(body)
        for question, payload in report.payloads.items():
            self.payloads[report.study, question].add(payload)
        if report_id in self.deleted:
            self.after_deletion.append(report_id)


def problems_after_fault(folder: str, log: Path) -> list[str]:
    """What is wrong, in words; empty where the device kept its promises."""
    try:
        rows = _rows(folder)
    except LedgerError as error:
        return [f"the ledger cannot be used: {error}"]
    received = Received(log)
    problems = [f"two reports of {key}" for key, bodies in received.bodies.items() if len(bodies) > 1]
    problems += [f"{report_id} was sent after its deletion" for report_id in received.after_deletion]
    problems += _spends_and_reports(rows, received)
    if len({payload[:9] for payload in received.payloads["waves", "ever"]}) > 1:
        problems.append("two permanent answers")
    return problems


def problems_at_end(folder: str, log: Path) -> list[str]:
    """What is wrong after a life that nothing cut short."""
    rows, received = _rows(folder), Received(log)
    problems = problems_after_fault(folder, log)
    for study in (ONCE, *WAVES):
        if len(received.bodies[study.id, study.version]) != 1:
            problems.append(f"{study} did not arrive")
    states = {(row[0], row[1]) for row in rows["reports"]}
    if states != {("once", "sent"), ("waves", "sent")}:
        problems.append(f"the reports are {sorted(states)}")
    left = {Report.from_json(body).id for body in received.bodies[WITHDRAWN.id, 1]} - received.deleted
    problems += [f"{report_id} was withdrawn but not deleted" for report_id in left]
    return problems


def _rows(folder: str) -> dict[str, list[Any]]:
    queries = {
        "spent": "SELECT study, question, version FROM spent",
        "reports": "SELECT study, state, body FROM reports",
        "consents": "SELECT study FROM consents",
        "permanent": "SELECT study FROM permanent",
    }
    with Ledger(folder).reading() as connection:
        return {name: connection.execute(query).fetchall() for name, query in queries.items()}


def _spends_and_reports(rows: dict[str, list[Any]], received: Received) -> list[str]:
    problems = []
    for study in {study.id: study for study in ALL}.values():
        spent = [row for row in rows["spent"] if row[0] == study.id]
        reports = [row for row in rows["reports"] if row[0] == study.id]
        if spent and len(spent) != len(study.questions):
            problems.append(f"{study.id}: only some of its questions are spent")
        expected = (max(row[2] for row in spent) if study.id == "waves" else 1) if spent else 0
        withdrawn = study is WITHDRAWN and (study.id,) not in rows["consents"]
        if len(reports) != expected and not (withdrawn and len(reports) < expected):
            problems.append(f"{study.id}: {len(reports)} reports for {expected} spends")
        if not spent and any(received.bodies[study.id, version] for version in (1, 2)):
            problems.append(f"{study.id}: a report without a spend")
    if len(rows["permanent"]) != any(row[0] == "waves" for row in rows["spent"]):
        problems.append("a permanent answer without a spend, or a spend without one")
    return problems
