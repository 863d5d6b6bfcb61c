"""Exports over the test client: whole, in order, resumable."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from itertools import count

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy.exc import OperationalError

from collector.exports.dated import DatedReport
from collector.exports.formats import FORMATS, CutOffError, ndjson
from collector.remote.download import _whole_export
from collector.reports import paging as exporting
from collector.storage import queries
from ldp_client.documents.errors import TransferError
from schemas import Report
from summaries.reading import load_summary


@pytest.fixture
def filled(habits, study, make_report):
    habits.sent = [make_report(study) for _ in range(57)]
    habits.post([report.to_document() for report in habits.sent])
    return habits


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(exporting, "PAGE_REPORTS", 10)


@pytest.mark.usefixtures("short_pages")
def test_export_is_complete_and_ordered_by_id(filled):
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
def test_export_resumes_after_any_report(filled):
    everything = filled.exported()
    for start in (0, 9, 10, 56):
        assert filled.exported(after=everything[start].id) == everything[start + 1 :]


def test_pages_of_large_reports_hold_fewer(filled, monkeypatch):
    monkeypatch.setattr(exporting, "PAGE_BYTES", 1)
    assert len(filled.exported()) == 57


@pytest.mark.usefixtures("short_pages")
def test_report_arriving_during_an_export_is_harmless(filled, study, make_report):
    parts = ndjson(exporting.open_export(filled.collector, "habits"))
    text = next(parts)
    late = [make_report(study, id="0" * 32), make_report(study, id="f" * 32)]
    filled.post([report.to_document() for report in late])
    *lines, end = (text + b"".join(parts)).splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert ids == sorted(ids)
    assert set(ids) == {report.id for report in filled.sent} | {"f" * 32}
    assert json.loads(end)["reports"] == 58


def test_line_formats_stream_one_part_per_page(filled):
    """One part per report cost the reader of a dated export a thread each, and a fifth of its time."""
    for name in ("ndjson", "dated"):
        form = FORMATS[name]
        whole = list(form.stream(exporting.open_export(filled.collector, "habits", dated=form.dated)))
        assert [part.count(b"\n") for part in whole] == [len(filled.sent), 1]


def test_an_export_through_a_past_day_is_fixed(filled, study, make_report):
    filled.day += timedelta(1)
    filled.put(make_report(study))
    assert len(filled.exported()) == 58
    assert len(filled.exported(through="2026-06-15")) == 57


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"format": "xlsx"}, "format"),
        ({"after": "xyz"}, "after"),
        ({"after": "00"}, "after"),
        ({"through": "June"}, "through"),
        ({"through": "20260614"}, "through"),
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


@pytest.fixture
def versions(filled, make_study, make_report):
    """`filled`, and a report on a second version that asks the first question only."""
    later = make_study(
        version=2, questions=[filled.client.get("/v1/studies/habits").get_json()["questions"][0]]
    )
    filled.publish(later)
    filled.newest = make_report(later)
    filled.put(filled.newest)
    filled.expected = sorted([*filled.sent, filled.newest], key=lambda report: report.id)
    return filled


def as_report(row):
    payloads = {question: payload for question, payload in row["payloads"].items() if payload is not None}
    return Report(row["report_id"], row["study"], row["version"], row["digest"], payloads)


@pytest.mark.usefixtures("short_pages")
def test_an_arrow_export_has_the_same_reports(versions):
    response = versions.export(format="arrow")
    assert response.content_type == "application/vnd.apache.arrow.stream"
    rows = pa.ipc.open_stream(response.data).read_all().to_pylist()
    assert [as_report(row) for row in rows] == versions.expected


@pytest.mark.usefixtures("short_pages")
def test_a_parquet_export_has_the_same_reports(versions):
    response = versions.export(format="parquet")
    assert response.content_type == "application/vnd.apache.parquet"
    table = parquet.read_table(pa.BufferReader(response.data))
    assert [as_report(row) for row in table.to_pylist()] == versions.expected


@pytest.mark.usefixtures("short_pages")
def test_a_csv_export_has_the_same_reports(versions):
    response = versions.export(format="csv")
    assert response.content_type == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(response.text.splitlines()))
    assert list(rows[0])[:4] == ["report_id", "study", "version", "digest"]
    for row, report in zip(rows, versions.expected, strict=True):
        assert row["report_id"] == report.id
        payloads = {question: row[f"payloads.{question}"] for question in ("hours", "fruit", "ever")}
        documented = report.to_document()["payloads"]
        assert payloads == {question: documented.get(question, "") for question in payloads}


@pytest.mark.parametrize("form", ["ndjson", "dated", "csv", "arrow", "parquet"])
def test_every_format_can_be_empty_and_resumed(versions, form):
    last = versions.expected[-1].id
    assert versions.export(format=form, after=last).status_code == 200
    assert len(versions.export(format=form, after=last).data) < len(versions.export(format=form).data)


READ = {
    "ndjson": lambda data: list(_whole_export(io.BytesIO(data), Report.from_json)),
    "dated": lambda data: list(_whole_export(io.BytesIO(data), DatedReport.from_line)),
    "csv": lambda data: list(csv.reader(io.StringIO(data.decode()), strict=True)),
    "arrow": lambda data: pa.ipc.open_stream(data).read_all(),
    "parquet": lambda data: parquet.read_table(pa.BufferReader(data)),
}


@pytest.mark.parametrize("form", READ)
@pytest.mark.usefixtures("short_pages")
def test_export_that_fails_midway_is_incomplete(filled, monkeypatch, form):
    """Granian ends a response that raised an error like a complete response."""
    READ[form](filled.export(format=form).data)
    read, calls = queries.report_page, count()

    def read_or_fail(*arguments):
        if next(calls) == 3:
            raise OperationalError("SELECT", {}, Exception("the database is away"))
        return read(*arguments)

    monkeypatch.setattr(queries, "report_page", read_or_fail)
    sent = []
    with pytest.raises(CutOffError, match="unavailable"):
        sent.extend(filled.export(format=form).response)
    assert len(sent) > 2
    with pytest.raises((TransferError, csv.Error, OSError, pa.ArrowInvalid)):
        READ[form](b"".join(sent))


def test_a_failure_before_the_first_report_is_a_status(filled, monkeypatch):
    def fail(*_arguments):
        raise OperationalError("SELECT", {}, Exception("the database is away"))

    monkeypatch.setattr(queries, "report_page", fail)
    assert filled.export().status_code == 503


def test_a_parquet_export_can_be_summarised(filled, study, tmp_path):
    file = tmp_path / "reports.parquet"
    file.write_bytes(filled.export(format="parquet").data)
    assert {part.n for part in load_summary(study, str(file)).questions.values()} == {57}


def test_version_published_during_an_export_is_harmless(filled, make_study, make_report):
    export = exporting.open_export(filled.collector, "habits")
    later = make_study(version=2, title="Later")
    filled.publish(later)
    filled.put(make_report(later))
    assert sum(len(page) for page in export.pages) == 57
