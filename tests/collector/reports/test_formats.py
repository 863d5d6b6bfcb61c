"""Every format of an export has the same reports, and one that breaks off is not whole."""

import csv
import io
import traceback
from base64 import b64decode
from itertools import count

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy.exc import OperationalError

from collector import store
from collector.reports import paging
from collector.reports.formats import CutOffError, Format
from ldp_client.documents.errors import TransferError
from ldpkit.cli.client import PassingError
from ldpkit.cli.exporting import whole_export
from ldpkit.cli.report_files import DatedReport
from schemas import Report
from summaries.reading import evidence_of
from tests.kit.collectors import build_report, build_study, device_report
from tests.kit.tables import write_columns

REGION = {"id": "region", "choices": ["north", 'the "south", {"digest":"', "west"]}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "0.5"}
READ = {
    "ndjson": lambda data: list(whole_export(io.BytesIO(data), Report.from_json)),
    "dated": lambda data: list(whole_export(io.BytesIO(data), DatedReport.from_line)),
}


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", 10)


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
@pytest.mark.usefixtures("short_pages")
def test_export_that_fails_midway_is_incomplete(filled, monkeypatch, form):
    """The database goes away during an export: what came must not pass for the whole."""
    READ[form](filled.export(format=form).data)
    read, calls = store.report_page, count()

    def read_or_fail(*arguments):
        if next(calls) == 3:
            raise OperationalError("SELECT", {}, Exception("the database is away"))
        return read(*arguments)

    monkeypatch.setattr(store, "report_page", read_or_fail)
    sent = []
    with pytest.raises(CutOffError, match="unavailable"):
        sent.extend(filled.export(format=form).response)
    assert len(sent) > 2
    with pytest.raises((TransferError, PassingError)):
        READ[form](b"".join(sent))


def test_a_failure_before_the_first_report_is_a_status(filled, monkeypatch):
    def fail(*_arguments):
        raise OperationalError("SELECT", {}, Exception("the database is away"))

    monkeypatch.setattr(store, "report_page", fail)
    assert filled.export().status_code == 503


@pytest.mark.attack(13)
def test_failed_export_leaves_no_report_in_the_log(habits, study, monkeypatch, caplog):
    """An export fails while it holds a report: the error that leaves the stream, and the log, quote none."""
    report = build_report(study)
    assert habits.put(report).status_code == 201

    def failing(_form, export):
        yield b"{}\n"
        raise KeyError(report.id, export)

    monkeypatch.setattr(Format, "_lines", failing)
    with pytest.raises(CutOffError) as left:
        assert habits.export().data
    written = "".join(traceback.format_exception(left.value)) + caplog.text
    assert "an export was cut off: internal" in written
    assert report.id not in written
