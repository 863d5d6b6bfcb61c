"""Exports over the test client: whole, in order, resumable."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from collector import exporting


@pytest.fixture
def filled(habits, study, make_report):
    habits.sent = [make_report(study) for _ in range(57)]
    habits.post([report.to_document() for report in habits.sent])
    return habits


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(exporting, "PAGE_REPORTS", 10)


@pytest.mark.usefixtures("short_pages")
def test_an_export_is_whole_and_ordered_by_id(filled):
    response = filled.export()
    assert response.status_code == 200
    assert response.content_type == "application/x-ndjson"
    *lines, end = response.text.splitlines()
    assert json.loads(end) == {"format": "ldpkit.export-end/1", "reports": 57}
    assert [json.loads(line)["id"] for line in lines] == sorted(report.id for report in filled.sent)
    assert filled.exported() == sorted(filled.sent, key=lambda report: report.id)


def test_an_empty_export_has_its_end(habits):
    assert json.loads(habits.export().text) == {"format": "ldpkit.export-end/1", "reports": 0}


@pytest.mark.usefixtures("short_pages")
def test_an_export_resumes_behind_any_report(filled):
    everything = filled.exported()
    for start in (0, 9, 10, 56):
        assert filled.exported(after=everything[start].id) == everything[start + 1 :]


def test_pages_of_large_reports_hold_fewer(filled, monkeypatch):
    monkeypatch.setattr(exporting, "PAGE_BYTES", 1)
    assert len(filled.exported()) == 57


@pytest.mark.usefixtures("short_pages")
def test_a_report_that_arrives_meanwhile_does_no_harm(filled, study, make_report):
    pages = exporting.export_pages(filled.app.extensions["ldpkit"], "habits")
    text = next(pages)
    late = [make_report(study, id="0" * 32), make_report(study, id="f" * 32)]
    filled.post([report.to_document() for report in late])
    *lines, end = (text + "".join(pages)).splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert ids == sorted(ids)
    assert set(ids) == {report.id for report in filled.sent} | {"f" * 32}
    assert json.loads(end)["reports"] == 58


def test_an_export_through_a_past_day_is_fixed(filled, study, make_report):
    filled.day += timedelta(1)
    filled.put(make_report(study))
    assert len(filled.exported()) == 58
    assert len(filled.exported(through="2026-06-15")) == 57


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"after": "xyz"}, "after"),
        ({"after": "00"}, "after"),
        ({"through": "June"}, "through"),
        ({"through": "2026-06-15"}, "through"),
    ],
)
def test_a_wrong_parameter_is_named(habits, query, field):
    response = habits.export(**query)
    assert response.status_code == 422
    document = response.get_json(force=True)
    assert (document["type"], document["field"]) == ("urn:ldpkit:problem:parameter-invalid", field)


def test_exporting_needs_the_token(habits):
    assert habits.client.get("/v1/studies/habits/export").status_code == 401
