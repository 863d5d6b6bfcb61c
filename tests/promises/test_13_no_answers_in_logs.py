"""No answer, payload, code or report id in any log, error, metric, header or traceback.

Canaries go to every address of the collector, in good and in wrong requests, and through the commands.
What a sender names itself, such as a study or a media type, is no canary.
"""

import base64
import json
import logging
import re

import pytest
from flask import request
from sqlalchemy.exc import DataError

from collector import store
from ldp_client.documents.errors import AnswerError
from ldp_client.mechanisms.choice import ChoiceMechanism
from tests import studies
from tests.kit.collectors import LONG_CHOICE, QUESTIONS, TICKET_KEY, build_report, build_study
from tests.kit.commands import exit_code

LIMIT = 20_000
PEOPLE = studies.document(studies.NUMBER, studies.CHOICE, studies.YES_NO)
CODE = "code-of-the-canary-0123456789"
JSON = {"Content-Type": "application/json"}
REPORTS = "/reports"
# Tables and answers for the commands, with canaries that are good and such that are wrong.
TABLES = (
    "hours,occupation,ever\n2.7182818284,worker,yes\nnumber-canary,worker,yes\n",
    "hours,occupation,ever\n2.7182818284,choice-canary,yes\n",
    "hours,occupation,ever\n2.7182818284,worker,ever-canary\n",
    "hours,occupation,ever\n2.7182818284,,yes\n",
    "hours,occupation,ever\n98765.4321,worker,yes\n",
    "hours,occupation\n2.7182818284,worker\n",
)
ANSWERS = (
    ("hours=number-canary", "occupation=worker", "ever=yes"),
    ("hours=2.7182818284", "occupation=choice-canary", "ever=yes"),
    ("hours=98765.4321", "occupation=worker", "ever=ever-canary"),
    ("hours=2.7182818284", "occupation=worker"),
    ("hours=2.7182818284", "occupation=worker", "ever=yes"),
)
TRUE = ("2.7182818284", "98765.4321", "-canary")


def spellings(secret):
    """How bytes may stand in a text."""
    plain, url = base64.b64encode(secret).decode(), base64.urlsafe_b64encode(secret).decode()
    return [secret.hex(), secret.hex().upper(), plain.rstrip("="), url.rstrip("="), repr(secret)[2:-1]]


def within(text, report):
    """Which secrets of a report, or of who sends it, a text has."""
    secrets = {
        "an id": spellings(bytes.fromhex(report.id)),
        "a secret": spellings(report.secret),
        "a payload": spellings(report.payloads["fruit"]),
        "a code": [CODE, *spellings(CODE.encode())],
    }
    return [name for name, words in secrets.items() if any(word in text for word in words)]


def bodies(report):
    """Bodies of one report: good, wrong in one field, no JSON, too large, and badly compressed."""
    document = report.to_document()
    payloads, fruit = document["payloads"], document["payloads"]["fruit"]
    changes = [
        {},
        {"digest": "0" * 64},
        {"version": 7},
        {"id": document["id"] + "00"},
        {"payloads": {**payloads, "fruit": fruit[:-4]}},
        {"payloads": {**payloads, "fruit": f"!{fruit}"}},
        {"payloads": {"fruit": fruit}},
        {"payloads": {**payloads, "fruit": {"value": fruit}}},
        {"more": fruit},
    ]
    for change in changes:
        yield json.dumps({**document, **change}).encode(), JSON
    text = json.dumps(document).encode()
    yield json.dumps({"reports": document}).encode(), JSON
    for body in (text[:-5], text + text, text + b" " * LIMIT):
        yield body, JSON
    yield text, {"Content-Type": "text/plain"}
    yield text, {**JSON, "Content-Encoding": "gzip"}


def requests_of(harness, report):
    """Every address with every method, with the canaries where a device or an operator puts them."""
    word, secret = report.payloads["fruit"].hex(), report.secret.hex()
    rights = {"LDPKit-Ticket": CODE, "LDPKit-Withdrawal": secret}
    key = {"Authorization": f"Bearer {CODE}", "Cookie": f"ldpkit-session={CODE}"}
    query = f"?version={word}&after={report.id}0&format={CODE}&limit={word}&since={word}"
    first, *others = bodies(report)
    form = f"key={CODE}&token={report.id}".encode(), {"Content-Type": "application/x-www-form-urlencoded"}
    for rule in [*(rule.rule for rule in harness.app.url_map.iter_rules()), "/v1/<report_id>"]:
        names = {"study_id": "habits", "report_id": report.id}
        path = re.sub(r"<(?:path:)?(\w+)>", lambda match, names=names: names.get(match[1], "absent"), rule)
        for method in ("GET", "POST", "PUT", "DELETE"):
            for body, headers in (first, form):
                yield method, path, body, headers | key
                yield method, path, body, headers | rights
            yield method, f"{path}{query}", b"", (harness.operator if method == "GET" else key) | rights
        if REPORTS in path:
            for body, headers in others:
                yield "PUT" if report.id in path else "POST", path, body, headers | rights
        yield "GET", f"{path}/{report.id}/", b"", key


@pytest.fixture(autouse=True)
def all_is_logged(caplog):
    caplog.set_level(logging.DEBUG)


def check_requests(harness, log, only=""):
    """No canary comes out of any address. only: what the addresses have that are asked; all without it."""
    study = build_study(questions=[LONG_CHOICE, QUESTIONS[0]])
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


def test_no_canary_leaves_the_collector(make_harness, caplog):
    check_requests(make_harness(body_limit=LIMIT, ticket_key=TICKET_KEY), caplog)


def test_no_canary_is_in_a_traceback(make_harness, caplog, monkeypatch):
    """The database refuses a statement, in words that quote the report."""
    genuine = store.insert_reports

    def insert(session, number, day, rows):
        for row in rows:
            raise DataError(f"INSERT {row.id.hex()}", {"id": row.id}, ValueError(row.id.hex()))
        return genuine(session, number, day, rows)

    monkeypatch.setattr(store, "insert_reports", insert)
    check_requests(make_harness(body_limit=LIMIT), caplog, REPORTS)
    assert "DataError" in caplog.text


def test_a_planted_log_line_is_found(make_harness, caplog):
    harness = make_harness(body_limit=LIMIT)
    harness.app.before_request(lambda: logging.getLogger("collector").debug("%s", request.path))
    with pytest.raises(AssertionError):
        check_requests(harness, caplog, REPORTS)


def check_commands(folder, server, captured, log):
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


def test_no_command_prints_canary(tmp_path, server, capsys, caplog):
    check_commands(tmp_path, server, capsys, caplog)


def test_a_command_that_quotes_an_answer_is_found(tmp_path, server, capsys, caplog, monkeypatch):
    """A planted fault: the error of a choice names what was answered."""
    genuine = ChoiceMechanism.quantise

    def quoting(mechanism, answer):
        try:
            return genuine(mechanism, answer)
        except AnswerError as error:
            raise AnswerError(error.field, f"{answer} is none of its choices") from None

    monkeypatch.setattr(ChoiceMechanism, "quantise", quoting)
    with pytest.raises(AssertionError, match="-canary"):
        check_commands(tmp_path, server, capsys, caplog)
