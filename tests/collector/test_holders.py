"""A study for data holders: published, explained on its page, answered, exported, shown to the operator."""

from __future__ import annotations

import base64

import pytest

from ldp_client import mechanism_for
from schemas import Report, Study
from summaries import summarize
from tests import studies
from tests.collector.answered import Pair

PLANTS = Study(studies.document(*studies.TABLES, **studies.HOLDER, opens="2026-01-01"))


def holder_report(number: int) -> Report:
    payloads = {question.id: mechanism_for(question).perturb(studies.ROWS) for question in PLANTS.questions}
    return Report(f"{number:032x}", PLANTS.id, PLANTS.version, PLANTS.digest, payloads)


@pytest.fixture
def plants(empty):
    assert empty.publish(PLANTS).status_code == 201
    return empty


def test_reports_of_holders_are_stored_once_and_exported(plants):
    reports = [holder_report(number) for number in range(3)]
    assert [plants.put(report).status_code for report in (*reports, reports[0])] == [201, 201, 201, 200]
    export = plants.client.get("/v1/studies/plants/export", headers=plants.operator)
    *lines, _end = export.text.splitlines()
    exported = [Report.from_json(line) for line in lines]
    assert sorted(report.id for report in exported) == [report.id for report in reports]
    kept = summarize(PLANTS, exported).questions["power"].reports
    assert sorted(map(bytes, kept)) == sorted(report.payloads["power"] for report in reports)


def test_fast_layer_and_views_answer_alike(make_harness):
    pair = Pair(make_harness("fast.sqlite3"), make_harness("plain.sqlite3"))
    pair.publish(PLANTS)
    report = holder_report(7)
    # The first upload finds the study; the next are taken by the fast layer.
    answers = [pair.put(one, "plants") for one in (report, report, holder_report(8))]
    assert [answer[:3] for answer in answers] == ["201", "200", "201"]
    assert pair.taken >= 2
    wrong = holder_report(9)
    wrong.payloads["power"] = b"\xff" * 80
    assert pair.put(wrong, "plants").startswith("4")


def test_summary_of_data_holder_study_is_409(plants):
    plants.put(holder_report(1))
    refused = plants.summary("plants")
    assert refused.status_code == 409
    assert "fit the reports themselves" in refused.json["detail"]


def test_the_page_of_the_study_says_how_a_holder_answers(plants):
    page = plants.client.get("/s/plants").text
    assert "This study is for data holders" in page
    assert "ldpkit answer http://localhost/v1/studies/plants --table table.csv" in page
    assert "<code>power.pe</code>" in page
    assert "Whatever one record of the table holds" in page
    assert "<form" not in page
    assert "<script" not in page
    plants.close("plants")
    assert "takes no more reports" in plants.client.get("/s/plants").text


def test_page_shows_an_address_that_devices_accept(plants):
    """TLS ends at the proxy, and the library talks http to its own machine alone."""
    page = plants.client.get("/s/plants", base_url="http://collector.example.org").text
    assert "ldpkit answer https://collector.example.org/v1/studies/plants --table" in page


def test_the_operators_page_shows_holders(plants, token):
    plants.put(holder_report(1))
    login = base64.b64encode(f"me:{token}".encode()).decode()
    page = plants.client.get("/", headers={"Authorization": f"Basic {login}"}).text
    assert "For each record of a holder&#39;s table" in page
    assert "A table of many records." in page
    assert "estimates could be moved at will" in page
