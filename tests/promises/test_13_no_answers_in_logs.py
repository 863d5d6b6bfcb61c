"""No answer, payload, code or report id in any log, error, metric, header or traceback.

Canaries go to every address of the collector, in good and in wrong requests, and through the commands.
What a sender names itself, such as a study or a media type, is no canary.
"""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from flask import request
from sqlalchemy.exc import DataError

from collector import store
from ldp_client.documents.errors import AnswerError
from ldp_client.mechanisms.choice import ChoiceMechanism
from tests import studies
from tests.kit.collectors import QUESTIONS, TICKET_KEY, Harness, build_report, build_study
from tests.kit.commands import exit_code
from tests.ldp_client.devices import Server
from tests.promises.canaries import ANSWERS, CHOICES, CODE, REPORTS, TABLES, TRUE, requests_of, within

Patch, Log, Captured = pytest.MonkeyPatch, pytest.LogCaptureFixture, pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("one_of_200")
LIMIT = 20_000
PEOPLE = studies.document(studies.NUMBER, studies.CHOICE, studies.YES_NO)


@pytest.fixture(autouse=True)
def all_is_logged(caplog: Log) -> None:
    """Each line of every logger."""
    caplog.set_level(logging.DEBUG)


def check_requests(harness: Harness, log: Log, only: str = "") -> None:
    """No canary comes out of any address. only: what the addresses have that are asked; all without it."""
    study = build_study(questions=[CHOICES, QUESTIONS[0]])
    assert harness.publish(study).status_code == 201
    report = build_report(study)
    harness.app.testing = False
    statuses = set()
    for method, path, body, headers in requests_of(harness, report):
        if only in path:
            response = harness.app.test_client().open(path, method=method, data=body, headers=headers)
            statuses.add(response.status_code)
            assert within(str(response.headers), report) == [], (method, path)
            if response.status_code > 399:
                assert within(response.text, report) == [], (method, path)
    assert len(statuses) > 5
    assert within(harness.metrics(), report) == []
    assert within(log.text + "".join(str(vars(record)) for record in log.records), report) == []


def test_no_canary_leaves_the_collector(make_harness: Any, caplog: Log) -> None:
    check_requests(make_harness(body_limit=LIMIT, ticket_key=TICKET_KEY), caplog)


def test_no_canary_is_in_a_traceback(make_harness: Any, caplog: Log, monkeypatch: Patch) -> None:
    """The database refuses a statement, in words that quote the report."""
    genuine = store.insert_reports

    def insert(session: Any, number: int, day: Any, rows: Any) -> Any:
        for row in rows:
            raise DataError(f"INSERT {row.id.hex()}", {"id": row.id}, ValueError(row.id.hex()))
        return genuine(session, number, day, rows)

    monkeypatch.setattr(store, "insert_reports", insert)
    check_requests(make_harness(body_limit=LIMIT), caplog, REPORTS)
    assert "DataError" in caplog.text


def test_a_planted_log_line_is_found(make_harness: Any, caplog: Log) -> None:
    harness = make_harness(body_limit=LIMIT)
    harness.app.before_request(lambda: logging.getLogger("collector").debug("%s", request.path))
    with pytest.raises(AssertionError):
        check_requests(harness, caplog, REPORTS)


def check_commands(folder: Path, server: Server, captured: Captured, log: Log) -> None:
    """No command says a true answer, a code, or what a report holds, whatever becomes of it."""
    study, people, server.content = folder / "study.json", folder / "dev", json.dumps(PEOPLE).encode()
    study.write_bytes(server.content)
    for table in TABLES:
        (folder / "answers.csv").write_text(table)
        exit_code(["perturb", str(study), str(folder / "answers.csv"), "--out", str(folder / "out.ndjson")])
    url = f"{server.url}/v1/studies/survey"
    for answers in ANSWERS:
        given = [part for answer in answers for part in ("--set", answer)]
        options = ["--folder", str(people), "--yes", "--max-epsilon", "9", *given]
        exit_code(["answer", f"{url}#ticket={CODE}", *options])
    report = json.loads(next(body for method, _, body, _ in server.requests if method == "PUT"))
    exit_code(["budget", "--folder", str(people)])
    server.refusals = {422: ("application/problem+json", "{}")}
    server.statuses = [422] * 9
    exit_code(["withdraw", url, "--folder", str(people), "--now"])
    damaged = {**report, "payloads": {**report["payloads"], "ever": report["payloads"]["hours"]}}
    line = json.dumps(report)
    codes = []
    for place, text in enumerate((f"{line}\n{line}", line[:-9], json.dumps(damaged))):
        (folder / "reports.ndjson").write_text(text)
        command = ["summarize", str(study), str(folder / "reports.ndjson")]
        codes.append(exit_code([*command, "--out", str(folder / f"summary-{place}")]))
    assert codes == [0, 3, 3]
    out, err = captured.readouterr()
    # A person is given the id of the report that was just made.
    said = (out + err + log.text).replace(f"report {report['id']};", "", 1)
    for secret in (CODE, *TRUE, report["id"], *report["payloads"].values()):
        assert secret not in said


def test_no_command_prints_canary(tmp_path: Path, server: Server, capsys: Captured, caplog: Log) -> None:
    check_commands(tmp_path, server, capsys, caplog)


def test_a_command_that_quotes_an_answer_is_found(
    tmp_path: Path, server: Server, capsys: Captured, caplog: Log, monkeypatch: Patch
) -> None:
    """A planted fault: the error of a choice names what was answered."""
    genuine = ChoiceMechanism.quantise

    def quoting(mechanism: ChoiceMechanism, answer: Any) -> int:
        try:
            return genuine(mechanism, answer)
        except AnswerError as error:
            raise AnswerError(error.field, f"{answer} is none of its choices") from None

    monkeypatch.setattr(ChoiceMechanism, "quantise", quoting)
    with pytest.raises(AssertionError, match="-canary"):
        check_commands(tmp_path, server, capsys, caplog)
