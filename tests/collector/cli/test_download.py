"""`ldpkit export` against servers that behave, and some that do not: a new file, whole or not at all."""

import csv
import json

import pandas
import pyarrow.parquet
import pytest

from ldp_client.documents.errors import InputError, ReportError, TransferError
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports
from ldpkit.cli.report_files import DatedReport, write_table
from schemas import Report, Study
from schemas.export_end import end_line
from summaries import summarize
from summaries.decoding import Decoding
from tests import studies
from tests.kit.collectors import TOKEN, build_study
from tests.kit.errors import raises
from tests.kit.operators import run_export

pytestmark = pytest.mark.usefixtures("never_pause")


def cutting(app, sizes):
    """The app behind a network that lets only so many bytes of each answer through."""

    def cut(environ, start_response):
        body = b"".join(app(environ, start_response))
        return [body[: next(sizes, None)]]

    return cut


def test_ndjson_export_contains_every_report(filled, tmp_path, capsys, serve):
    out = tmp_path / "reports.ndjson"
    url = serve(filled.app)
    run_export(url, out)
    *lines, end = out.read_text().splitlines(keepends=True)
    assert ([Report.from_json(line) for line in lines], end) == (filled.sent, end_line(40))
    said = capsys.readouterr().out
    assert ("40 reports" in said, "withdrawn" in said) == (True, False)
    assert not list(tmp_path.glob(".*"))
    # Older copies may have them.
    for report in filled.sent[:2]:
        assert filled.withdraw(report.id).status_code == 200
    run_export(url, tmp_path / "two.ndjson")
    said = capsys.readouterr().out
    assert "38 reports in " in said
    assert "2 reports were withdrawn up to now: delete older copies" in said


def test_proxy_that_drops_the_query_causes_no_duplicates(filled, tmp_path, serve):
    """The export is cut, and what goes on with it begins at the first report again."""
    out = tmp_path / "reports.ndjson"
    cut = cutting(filled.app, iter([4000]))
    url = serve(lambda environ, start: cut({**environ, "QUERY_STRING": ""}, start))
    with raises(TransferError, "server.report_came_twice"):
        run_export(url, out)
    assert not out.exists()


def test_decoded_export_reads_back_as_the_same_summary(filled, study, tmp_path, serve):
    tables = []
    url = serve(filled.app)
    with pytest.raises(InputError):
        run_export(url, tmp_path / "r.xlsx")
    for name, read in (("reports.csv", pandas.read_csv), ("reports.parquet", pandas.read_parquet)):
        run_export(url, tmp_path / name)
        table = read(tmp_path / name).set_index("report_id").loc[[report.id for report in filled.sent]]
        yes = [report.payloads["ever"] == b"\x01" for report in filled.sent]
        assert list(table["noisy.ever"] == "yes") == yes
        assert list(table["unbiased.ever"] > 0) == yes
        assert set(table["day"]) == {filled.day.isoformat()}
        tables.append(table.filter(like="biased."))
    assert summarize(study, tmp_path / name).to_json() == summarize(study, filled.sent).to_json()
    fruit = [f"unbiased.fruit[{name}]" for name in ("apple", "pear", "plum")]
    assert list(tables[0]) == ["unbiased.hours", *fruit, "unbiased.ever"]
    pandas.testing.assert_frame_equal(*tables)


def test_reports_are_decoded_only_by_their_own_study(filled, tmp_path, serve):
    """A collector that gives another study under that version, or none, decodes nothing wrongly."""
    other = build_study(title="Other habits").canonical()

    def lying(environ, start_response):
        if "version=" not in environ.get("QUERY_STRING", ""):
            return filled.app(environ, start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [other if "version=1" in environ["QUERY_STRING"] else b"{}"]

    url = serve(lying)
    with raises(TransferError, "server.other_study"):
        run_export(url, tmp_path / "r.csv")
    assert not list(tmp_path.glob("r.csv"))


def test_decoded_export_requires_valid_days(filled, tmp_path, serve):
    """A proxy that drops the query gives reports without days; a day that is none may be a formula."""
    url = serve(lambda environ, start: filled.app({**environ, "QUERY_STRING": ""}, start))
    with raises(TransferError, "server.not_a_report", "in an object with day and report"):
        run_export(url, tmp_path / "r.csv")
    assert list(tmp_path.glob("r.*")) == []
    (report, *_) = filled.sent
    for day in ("=1+1", "2026-6-1", "2026-02-30", "", None, ["2026-06-01"]):
        line = json.dumps({"day": day, "report": report.to_document()})
        with raises(ReportError, "report.invalid", field="day"):
            DatedReport.from_line(line)


def test_interrupted_export_is_resumed(filled, serve):
    url = serve(cutting(filled.app, iter([2000, 0, 4000, 1500])))
    assert list(fetch_reports(Client(url, TOKEN), "habits")) == filled.sent


def test_export_without_end_marker_is_rejected(filled, tmp_path, serve):
    end = len(json.dumps({"format": "ldpkit.export-end/1", "reports": 40}, separators=(",", ":"))) + 1
    whole = len(filled.export().data)
    out = tmp_path / "reports.ndjson"
    for size in (whole - end, whole - 1):
        url = serve(cutting(filled.app, iter([size] + [0] * 10)))
        with raises(TransferError, "server.unavailable", "0 reports"):
            run_export(url, out)
    with pytest.raises(TransferError):
        run_export(serve(cutting(filled.app, iter([100] * 10))), tmp_path / "summary.json")
    assert list(tmp_path.glob("*json")) == []
    assert not list(tmp_path.glob(".*"))


def test_missing_report_is_detected(filled, serve):
    def losing(environ, start_response):
        lines = b"".join(filled.app(environ, start_response)).splitlines(keepends=True)
        return [b"".join(lines[:3] + lines[4:])]

    url = serve(losing)
    with raises(TransferError, "server.export_end_differs", "39"):
        list(fetch_reports(Client(url, TOKEN), "habits"))


def test_rejected_export_is_final_and_states_why(filled, tmp_path, serve):
    url = serve(filled.app)
    with pytest.raises(TransferError, match=r"401: this collector does not know the key"):
        run_export(url, tmp_path / "a.ndjson", "wrong")
    with raises(TransferError, "server.refused", "404", "'nosuch'"):
        list(fetch_reports(Client(url, TOKEN), "nosuch"))
    with raises(InputError, "keys.token_missing"):
        run_export(url, tmp_path / "a.ndjson", "")
    with raises(InputError, "files.cannot_write"):
        run_export(url, tmp_path / "nosuch" / "a.ndjson")


def test_negative_number_stays_number_in_mixed_column(tmp_path):
    """In a column of numbers and labels it gets no apostrophe, which escapes a formula."""
    number = Study(studies.document({**studies.NUMBER, "id": "hours"}))
    choice = Study(studies.document({**studies.ONE_OF, "id": "hours", "choices": ["=1+1", "x"]}, version=2))
    lowest = (-(1 << 20)).to_bytes(4, "big", signed=True)
    # Randomized response of two choices, of which it says the first.
    label = bytes(1)
    reports = [
        DatedReport("0" * 32, number.id, 1, number.digest, {"hours": lowest}),
        DatedReport("1" * 32, choice.id, 2, choice.digest, {"hours": label}),
    ]
    for report in reports:
        report.day = "2026-06-15"
    for name in ("table.csv", "table.parquet"):
        decoding = Decoding(lambda version, _: {1: number, 2: choice}[version])
        assert write_table(reports, tmp_path / name, decoding) == 2
    first, second = csv.DictReader((tmp_path / "table.csv").open())
    assert float(first["noisy.hours"]) == float(first["unbiased.hours"]) < 0
    assert second["noisy.hours"] == "'=1+1"
    table = pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pydict()
    assert table["noisy.hours"] == [first["noisy.hours"], "=1+1"]
