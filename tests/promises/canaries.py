"""Requests that carry canaries where devices and operators put secrets, and a search of texts for them."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from schemas import Report
from tests.kit.collectors import QUESTIONS, Harness

# Payloads of 25 bytes, which no other bytes are like.
CHOICES = {**QUESTIONS[1], "choices": {"count": 200}, "mechanism": {"name": "sue", "epsilon": "1"}}
CODE = "code-of-the-canary-0123456789"
LIMIT = 20_000
METHODS = ("GET", "POST", "PUT", "DELETE")
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
Request = tuple[str, str, bytes, dict[str, str]]


def spellings(secret: bytes) -> list[str]:
    """How bytes may stand in a text."""
    plain, url = base64.b64encode(secret).decode(), base64.urlsafe_b64encode(secret).decode()
    return [secret.hex(), secret.hex().upper(), plain.rstrip("="), url.rstrip("="), repr(secret)[2:-1]]


def within(text: str, report: Report) -> list[str]:
    """Which secrets of a report, or of who sends it, a text has."""
    secrets = {
        "an id": spellings(bytes.fromhex(report.id)),
        "a secret": spellings(report.secret),
        "a payload": spellings(report.payloads["fruit"]),
        "a code": [CODE, *spellings(CODE.encode())],
    }
    return [name for name, words in secrets.items() if any(word in text for word in words)]


def bodies(report: Report) -> Iterator[tuple[bytes, dict[str, str]]]:
    """Bodies of one report: good, wrong in one field, no JSON, too large, and badly compressed."""
    document = report.to_document()
    payloads, fruit = document["payloads"], document["payloads"]["fruit"]
    changes: list[dict[str, Any]] = [
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


def requests_of(harness: Harness, report: Report) -> Iterator[Request]:
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
        for method in METHODS:
            for body, headers in (first, form):
                yield method, path, body, headers | key
                yield method, path, body, headers | rights
            yield method, f"{path}{query}", b"", (harness.operator if method == "GET" else key) | rights
        if REPORTS in path:
            for body, headers in others:
                yield "PUT" if report.id in path else "POST", path, body, headers | rights
        yield "GET", f"{path}/{report.id}/", b"", key
