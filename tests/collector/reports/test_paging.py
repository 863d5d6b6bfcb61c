"""An export is whole, in order and resumable in every format, or says that it is not whole."""

import csv
import io
import json
import traceback
from base64 import b64decode
from datetime import timedelta

import pyarrow as pa
import pytest
from pyarrow import parquet

from collector import store
from collector.problems import ProblemError
from collector.reports import paging
from collector.reports.paging import CutOffError, open_export
from ldp_client.documents.errors import TransferError
from ldpkit.cli.client import PassingError
from ldpkit.cli.exporting import whole_export
from ldpkit.cli.report_files import DatedReport
from schemas import Report
from summaries.reading import evidence_of
from tests.kit.answers import AwayError, problem
from tests.kit.collectors import AGE, REGION, build_report, build_study, device_report
from tests.kit.deleting import delete_reports, delete_study
from tests.kit.errors import raises
from tests.kit.tables import write_columns

PAGE = 10
A_DAY = timedelta(1)


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", PAGE)


def test_export_is_complete_and_ordered_by_id(filled, monkeypatch):
    response = filled.export()
    assert (response.status_code, response.content_type) == (200, "application/x-ndjson")
    *lines, end = response.text.splitlines()
    assert json.loads(end) == {"format": "ldpkit.export-end/1", "reports": 40}
    assert [json.loads(line)["id"] for line in lines] == [report.id for report in filled.sent]
    assert filled.exported() == filled.sent
    for start in (0, 9, 10, 39):
        assert filled.exported(after=filled.sent[start].id) == filled.sent[start + 1 :]
    monkeypatch.setattr(paging, "PAGE_BYTES", 1)
    assert len(filled.exported()) == 40


def test_reports_and_versions_that_come_during_an_export_are_harmless(filled, study, make_report, make_study):
    parts = open_export(filled.collector, "habits").stream()
    text = next(parts)
    late = [make_report(study, id="0" * 32), make_report(study, id="f" * 32)]
    filled.post([report.to_document() for report in late])
    later = make_study(version=2, title="Later")
    filled.publish(later)
    filled.put(make_report(later, id="e" * 32))
    *lines, end = (text + b"".join(parts)).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [*(one.id for one in filled.sent), "f" * 32]
    assert json.loads(end)["reports"] == 41


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"format": "xlsx"}, "format"),
        ({"after": "xyz"}, "after"),
        ({"after": "0" * 32, "deletions": "²"}, "deletions"),
    ],
)
def test_a_wrong_parameter_is_named(habits, query, field):
    response = habits.export(**query)
    assert problem(response) == (422, "parameter-invalid")
    assert response.get_json(force=True)["field"] == field


@pytest.mark.attack(19)
@pytest.mark.parametrize("is_closed", [False, True])
def test_expiry_during_an_export_aborts_the_export(either, study, make_report, is_closed):
    """Reports expire while an export runs: the rest must not pass for the whole."""
    either.post([make_report(study).to_document() for _ in range(3 * PAGE)])
    if is_closed:
        # Then PostgreSQL drops the table at once.
        either.close()
    pages = open_export(either.collector, "habits").pages
    assert len(next(pages)) == PAGE
    assert delete_reports(either.collector.database, "habits", either.day + A_DAY)
    with raises(ProblemError, "reports-deleted"):
        list(pages)
    # The next export has the remaining reports.
    assert list(open_export(either.collector, "habits").pages) == []


def test_withdrawal_and_expiry_elsewhere_do_not_abort_an_export(filled, make_study, make_report):
    other = make_study(id="another")
    filled.publish(other)
    assert filled.put(make_report(other)).status_code == 201
    pages = open_export(filled.collector, "habits").pages
    count = len(next(pages))
    assert delete_reports(filled.collector.database, "another", filled.day + A_DAY) == 1
    assert filled.withdraw(filled.sent[-1].id).status_code == 200
    assert count + sum(map(len, pages)) == len(filled.sent) - 1


@pytest.mark.attack(19)
def test_resumed_export_must_state_the_initial_deletion_count(filled):
    """Reports expire between two parts of an export: the second part must be refused."""

    def ask(deletions):
        return filled.export(after=filled.sent[0].id, deletions=deletions)

    first = filled.export().headers["LDPKit-Deletions"]
    assert ask(first).status_code == 200
    assert delete_reports(filled.collector.database, "habits", filled.day + A_DAY)
    assert problem(ask(first)) == (410, "reports-deleted")
    assert filled.export().headers["LDPKit-Deletions"] != first


@pytest.mark.attack(19)
def test_deleted_study_cannot_be_exported(filled):
    """Export a study that is deleted, also meanwhile: no part may pass for the whole."""
    pages = open_export(filled.collector, "habits").pages
    assert len(next(pages)) == PAGE
    delete_study(filled.collector.database, "habits")
    with pytest.raises(ProblemError) as refused:
        list(pages)
    assert refused.value.kind.name == "study-deleted"
    for answer in (filled.export(), filled.export(format="dated"), filled.summary()):
        assert problem(answer) == (410, "study-deleted")


@pytest.mark.attack(15)
def test_export_slots_are_limited_and_released(habits):
    """Begin many exports and read none: their number is limited, and one that ends gives its place back."""
    path = "/v1/studies/habits/export"
    held = [habits.client.get(path, headers=habits.operator, buffered=False) for _ in range(8)]
    refused = habits.client.get(path, headers=habits.operator)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    for response in held:
        response.close()
    # Read to their end, or asked for their head alone; nobody closes them.
    for _ in range(9):
        assert habits.export().data
        assert habits.client.head(path, headers=habits.operator).status_code == 200


READ = {
    "ndjson": lambda data: list(whole_export(io.BytesIO(data), Report.from_json)),
    "dated": lambda data: list(whole_export(io.BytesIO(data), DatedReport.from_line)),
}


@pytest.fixture
def versions(empty):
    """A collector with public values: two versions, the second with one field and one question a device."""
    empty.sent = []
    for study in (
        build_study(public=[REGION, AGE]),
        build_study(2, public=[REGION], sample_one_question=True),
    ):
        assert empty.publish(study).status_code == 201
        values = [{"region": region, "age": 42.5} for region in REGION["choices"] * 4]
        fields = {field.id for field in study.public}
        for one in values:
            public = {name: value for name, value in one.items() if name in fields}
            empty.sent.append(device_report(study, **public))
    assert empty.post([report.to_document() for report in empty.sent]).get_json()["stored"] == 24
    return empty


def rows_of(data, form):
    """Each row's id, version, payloads and public values, without those that it lacks."""
    if form != "csv":
        table = parquet.read_table(pa.BufferReader(data)).to_pylist()
        return [
            (row["report_id"], row["version"], *({k: v for k, v in row[part].items() if v is not None}
             for part in ("payloads", "public")))
            for row in table
        ]  # fmt: skip
    found = []
    for row in csv.DictReader(io.StringIO(data.decode())):
        payloads = {k[9:]: b64decode(v) for k, v in row.items() if k.startswith("payloads.") and v}
        public = {k[7:]: v for k, v in row.items() if k.startswith("public.") and v}
        found.append((row["report_id"], int(row["version"]), payloads, public))
    return found


@pytest.mark.parametrize("name", ["reports.csv", "reports.parquet"])
def test_written_files_have_the_same_reports(versions, tmp_path, name):
    file = tmp_path / name
    assert write_columns(versions.exported(), file) == 24
    sent = sorted(versions.sent, key=lambda one: one.id)
    rows = rows_of(file.read_bytes(), name.split(".")[1])
    assert rows == [(one.id, one.version, one.payloads, one.public) for one in sent]
    if name.endswith("parquet"):
        study = build_study(public=[REGION, AGE])
        read = {one.id: one.public for one in evidence_of(study, [str(file)])}
        assert read == {one.id: one.public for one in versions.sent if one.version == 1}


@pytest.mark.attack(19)
@pytest.mark.parametrize("form", READ)
def test_export_that_fails_midway_is_incomplete(filled, monkeypatch, form):
    """The database goes away during an export: what came must not pass for the whole."""
    READ[form](filled.export(format=form).data)
    read, left = store.report_page, iter([True] * 3)

    def read_or_fail(*arguments):
        if not next(left, False):
            raise AwayError
        return read(*arguments)

    monkeypatch.setattr(store, "report_page", read_or_fail)
    sent = []
    with pytest.raises(CutOffError, match="unavailable"):
        sent.extend(filled.export(format=form).response)
    assert len(sent) > 2
    with pytest.raises((TransferError, PassingError)):
        READ[form](b"".join(sent))
    # Before the first report it is a status.
    assert filled.export(format=form).status_code == 503


@pytest.mark.attack(13)
def test_failed_export_leaves_no_report_in_the_log(habits, study, monkeypatch, caplog):
    """An export fails while it holds a report: the error that leaves the stream, and the log, quote none."""
    report = build_report(study)
    assert habits.put(report).status_code == 201

    def failing(export):
        yield b"{}\n"
        raise KeyError(report.id, export)

    monkeypatch.setattr(paging.Export, "_lines", failing)
    with pytest.raises(CutOffError) as left:
        assert habits.export().data
    written = "".join(traceback.format_exception(left.value)) + caplog.text
    assert "an export was cut off: internal" in written
    assert report.id not in written
