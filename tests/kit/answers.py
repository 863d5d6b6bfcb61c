"""How tests read a collector's answers, fill it and empty it."""

from sqlalchemy.exc import OperationalError

from collector import retention
from collector.audit_log import BY_TOKEN
from collector.reports.rules import RuleBook
from tests.kit.collectors import TOKEN, build_report

PROBLEM = "urn:ldpkit:problem:"


def problem(response):
    """The status, and the kind of problem."""
    return response.status_code, response.get_json(force=True)["type"].removeprefix(PROBLEM)


class AwayError(OperationalError):
    """The database went away."""

    def __init__(self):
        super().__init__("", None, Exception("away"))


def client_of(harness, key=TOKEN):
    """A browser that signed in with this key, or as the operator."""
    client = harness.app.test_client()
    client.post("/sign-in", data={"key": key})
    return client


def refusal(response):
    """The kind of problem, and the field that it names; all that a refusal must say is there."""
    assert response.content_type == "application/problem+json"
    document = response.get_json(force=True)
    assert document["status"] == response.status_code
    assert document["title"]
    assert document["detail"]
    assert document["advice"]
    return document["type"].removeprefix(PROBLEM), document.get("field")


def send_reports(harness, study_id, count=1):
    """Upload new reports to version 1 of a study."""
    study = harness.collector.rules.find(study_id, 1).study
    for _ in range(count):
        assert harness.put(build_report(study)).status_code == 201


def delete_reports(database, study_id, before=None):
    """Delete a study's reports that came before a day, or all, straight on a database; how many."""
    find = RuleBook(database).find
    return retention.delete_reports(database.act, find, study_id, before, BY_TOKEN)


def delete_study(database, study_id):
    """Close a study permanently and delete its reports, straight on a database; how many."""
    return retention.delete_study(database.act, RuleBook(database).find, study_id, BY_TOKEN)
