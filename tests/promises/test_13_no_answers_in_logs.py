"""No answer, payload, code or report id in any log, error, metric, header or traceback.

Canaries go to every address of the collector, in good and in wrong requests, and through the commands.
What a sender names itself, such as a study or a media type, is no canary.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
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
from tests.promises.watched_ledger import Arrivals

Patch, Log, Captured = pytest.MonkeyPatch, pytest.LogCaptureFixture, pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("one_of_200")
LIMIT = 20_000
PEOPLE = studies.document(studies.NUMBER, studies.CHOICE, studies.YES_NO)


@pytest.fixture(autouse=True)
def all_is_logged(caplog: Log) -> None:
    """Each line of every logger."""
    caplog.set_level(logging.DEBUG)


def problems(harness: Harness, log: Log, only: str = "") -> list[str]:
    """Where a canary came out. only: what the addresses have that are asked; all without it."""
    study = build_study(questions=[CHOICES, QUESTIONS[0]])
    assert harness.publish(study).status_code == 201
    report = build_report(study)
    harness.app.testing = False
    answers = []
    for method, path, body, headers in requests_of(harness, report):
        if only in path:
            client = harness.app.test_client()
            response = client.open(path, method=method, data=body, headers=headers)
            answers.append((f"{method} {path.split('?')[0]}: {response.status_code}", response))
    texts = [(f"headers of {name}", str(response.headers)) for name, response in answers]
    texts += [(name, response.text) for name, response in answers if response.status_code > 399]
    assert len({response.status_code for _, response in answers}) > 5
    texts.append(("metrics", harness.client.get("/metrics", headers=harness.operator).text))
    texts.append(("log", log.text + "".join(str(vars(record)) for record in log.records)))
    return [f"{name} has {secret}" for name, text in texts for secret in within(text, report)]


def fail_inside(monkeypatch: Patch) -> None:
    """Have the database refuse a statement, in words that quote the report."""
    genuine = store.insert_reports

    def insert(session: Any, number: int, day: Any, rows: Any) -> Any:
        for row in rows:
            raise DataError(f"INSERT {row.id.hex()}", {"id": row.id}, ValueError(row.id.hex()))
        return genuine(session, number, day, rows)

    monkeypatch.setattr(store, "insert_reports", insert)


def test_no_canary_leaves_the_collector(make_harness: Any, caplog: Log) -> None:
    harness = make_harness(body_limit=LIMIT, ticket_key=TICKET_KEY)
    assert problems(harness, caplog) == []


def test_no_canary_is_in_a_traceback(make_harness: Any, caplog: Log, monkeypatch: Patch) -> None:
    fail_inside(monkeypatch)
    assert problems(make_harness(body_limit=LIMIT), caplog, REPORTS) == []
    assert "DataError" in caplog.text


def test_a_planted_log_line_is_found(make_harness: Any, caplog: Log) -> None:
    harness = make_harness(body_limit=LIMIT)
    harness.app.before_request(lambda: logging.getLogger("collector").debug("%s", request.path))
    assert "log has an id" in problems(harness, caplog, REPORTS)


def run(captured: Captured, arguments: Sequence[object]) -> str:
    """All that a command says, whatever becomes of it."""
    code = exit_code(list(map(str, arguments)))
    out, err = captured.readouterr()
    return f"{code}: {out}{err}"


def commands_say(folder: Path, server: Server, captured: Captured, log: Log) -> list[str]:
    """Where a command or its log says a true answer, a code, or what a report holds."""
    study, people = folder / "study.json", folder / "dev"
    study.write_text(json.dumps(PEOPLE))
    texts = {}
    for name, table in TABLES.items():
        (folder / "answers.csv").write_text(table)
        command = ("perturb", study, folder / "answers.csv", "--out", folder / "out.ndjson")
        texts[f"perturb, {name}"] = run(captured, command)
    server.content, server.requests = study.read_bytes(), Arrivals()
    server.statuses, server.refusals = [], {}
    url = f"{server.url}/v1/studies/survey"
    for answers in ANSWERS:
        options = ("--folder", people, "--yes", "--max-epsilon", "9")
        given = [part for answer in answers for part in ("--set", answer)]
        texts[f"answer {answers}"] = run(captured, ("answer", f"{url}#ticket={CODE}", *options, *given))
    body = next(body for method, _, body, _ in server.requests if method == "PUT")
    texts["budget"] = run(captured, ("budget", "--folder", people))
    server.refusals = {422: ("application/problem+json", "{}")}
    server.statuses = [422] * 9
    texts["withdraw"] = run(captured, ("withdraw", url, "--folder", people, "--now"))
    for command in (("publish", study), ("export", "survey", "--out", folder / "export.ndjson")):
        server.statuses = [422] * 9
        with Patch.context() as patch:
            patch.setenv("LDPKIT_TOKEN", CODE)
            texts[f"{command[0]}"] = run(captured, (*command, "--collector", server.url))
    report = json.loads(body)
    texts |= reading(folder, captured, study, report) | {"log": log.text}
    # A person is given the id of the report that was just made.
    texts[f"answer {ANSWERS[-1]}"] = texts[f"answer {ANSWERS[-1]}"].replace(f"report {report['id']};", "")
    wanted = [CODE, *TRUE, report["id"], *report["payloads"].values()]
    return [f"{name} has {word}" for name, text in texts.items() for word in wanted if word in text]


def reading(folder: Path, captured: Captured, study: Path, report: dict[str, Any]) -> dict[str, str]:
    """What `summarize` says to files in which the report stands twice, cut, and with a damaged payload."""
    payloads = report["payloads"]
    damaged = {**report, "payloads": {**payloads, "ever": payloads["occupation"] + payloads["hours"]}}
    line, texts = json.dumps(report), {}
    for name, lines in {"twice": [line, line], "cut": [line[:-9]], "damaged": [json.dumps(damaged)]}.items():
        (folder / "reports.ndjson").write_text("\n".join(lines))
        command = ("summarize", study, folder / "reports.ndjson", "--out", folder / "summary.json")
        texts[f"summarize, {name}"] = run(captured, command)
    return texts


def test_no_command_prints_canary(tmp_path: Path, server: Server, capsys: Captured, caplog: Log) -> None:
    assert commands_say(tmp_path, server, capsys, caplog) == []


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
    assert any("-canary" in problem for problem in commands_say(tmp_path, server, capsys, caplog))
