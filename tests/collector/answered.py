"""How tests fill a collector and read its answers, and compare its fast way with the plain one."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

from sqlalchemy.exc import OperationalError
from werkzeug.test import Client

PROBLEM = "urn:ldpkit:problem:"


def problem(response):
    """The status, and the kind of problem."""
    return response.status_code, response.get_json(force=True)["type"].removeprefix(PROBLEM)


class Pair:
    """Two collectors with the same studies, one of them without its fast layer."""

    def __init__(self, fast, plain):
        self.fast, self.plain = fast, plain
        self.taken = 0
        self.clients = [Client(self._counting(fast.app.wsgi_app)), Client(plain.app.wsgi_app.plain)]

    def _counting(self, layer):
        genuine = layer._store

        def store(*arguments):
            self.taken += 1
            return genuine(*arguments)

        layer._store = store
        return layer

    def publish(self, study):
        for harness in (self.fast, self.plain):
            assert harness.publish(study).status_code == 201

    def send(self, method, path, body, content_type="application/json", **options):
        """The answer, which must be the same from both."""
        answers = []
        for client in self.clients:
            response = client.open(path, method=method, data=body, content_type=content_type, **options)
            # Two databases, two identities.
            assert len(response.headers.pop("LDPKit-Collector")) == 32
            answers.append((response.status, sorted(response.headers.to_wsgi_list()), response.data))
        assert answers[0] == answers[1]
        return answers[0]

    def put(self, report, study_id="habits", report_id=None):
        path = f"/v1/studies/{study_id}/reports/{report_id or report.id}"
        return self.send("PUT", path, report.to_json())[0]

    def post(self, reports):
        members = ",".join(report.to_json() for report in reports)
        return json.loads(self.send("POST", "/v1/studies/habits/reports", f'{{"reports":[{members}]}}')[2])


class AwayError(OperationalError):
    """The database went away."""

    def __init__(self):
        super().__init__("", None, Exception("away"))


def basic(key):
    """The header of a browser that was given this key."""
    return {"Authorization": "Basic " + base64.b64encode(f"me:{key}".encode()).decode()}


def refusal(response):
    """The kind of problem, and the field that it names; all that a refusal must say is there."""
    assert response.content_type == "application/problem+json"
    document = response.get_json(force=True)
    assert document["status"] == response.status_code
    assert document["title"]
    assert document["detail"]
    assert document["advice"]
    return document["type"].removeprefix("urn:ldpkit:problem:"), document.get("field")


def publish_retained(harness, make_study, days):
    """Publish two studies: reports are kept so many days after the last day, and after each report's day."""
    closes = (harness.day + timedelta(2)).isoformat()
    harness.publish(make_study(id="closing", closes=closes, retention={"days": days}))
    harness.publish(make_study(id="rolling", retention={"days": days}))
    return harness


def send_reports(harness, make_report, study_id, count=1):
    """Upload new reports to version 1 of a study."""
    study = harness.collector.rules.find(study_id, 1).study
    for _ in range(count):
        assert harness.put(make_report(study)).status_code == 201


def reports_by_study(harness):
    """How many reports each study has, as an operator reads it."""
    harness.collector.studies.forget()
    harness.collector.arrivals.forget()
    found = harness.client.get("/v1/studies", headers=harness.operator).get_json()["studies"]
    return {one["id"]: one["reports"] for one in found}
