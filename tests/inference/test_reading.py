import json
from pathlib import Path

import pytest

from collector.exports.formats import CSV_CUT_OFF
from collector.remote.writing import write_reports
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError, SummaryError
from schemas import Report, Study
from summaries import summarize
from summaries.reading import load_summary, summarize_files
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO, studies.NUMBER))
MECHANISMS = {question.id: mechanism_for(question) for question in STUDY.questions}
REPORTS = [perturb_answers(STUDY, MECHANISMS, {"ever": True, "hours": 2}) for _ in range(20)]
WHOLE = summarize(STUDY, REPORTS).to_json()


def write(path, reports, extra=""):
    path.write_text("".join(report.to_json() + "\n" for report in reports) + extra)
    return str(path)


def test_all_formats_give_one_summary(tmp_path):
    ndjson = write(tmp_path / "r.ndjson", REPORTS)
    exported = write(tmp_path / "e.ndjson", REPORTS, '{"format":"ldpkit.export-end/1","reports":20}\n')
    parquet = tmp_path / "r.parquet"
    write_reports(REPORTS, parquet)
    table = tmp_path / "r.csv"
    write_reports(REPORTS, table)
    again = tmp_path / "saved by a spreadsheet"
    again.write_text(table.read_text().replace("report_id", '"report_id"').replace("\n", "\r\n"), "utf-8-sig")
    summary = tmp_path / "s.json"
    summary.write_text(WHOLE + "\n")
    for path in (ndjson, exported, parquet, table, again, summary):
        assert load_summary(STUDY, str(path)).to_json() == WHOLE


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text.replace(",", ";"), "reports.column_missing"),
        (lambda text: text[:-4], ("reports.many_refused", "payloads.hours: must be base64")),
        (lambda text: text + "0123,survey", ("reports.row_cut_off", "line 22: 2 cells under 6 columns")),
        (lambda text: text + CSV_CUT_OFF.decode(), ("reports.not_csv", "unexpected end")),
        (lambda text: text.replace("payloads.ever", "payloads.hours"), "reports.duplicate_column"),
        (lambda text: text.replace("payloads.", ""), ("reports.column_missing", "payloads.QUESTION")),
        (lambda text: text.replace("\n", ",é\n").encode("latin-1"), "reports.not_csv"),
        (lambda text: text.replace("survey,1,", "survey,one,"), ("reports.many_refused", "20")),
    ],
)
def test_damaged_csv_is_rejected_in_one_line(tmp_path, damage, says):
    path = tmp_path / "r.csv"
    write_reports(REPORTS, path)
    damaged = damage(path.read_text())
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    with raises(InputError, says) as caught:
        load_summary(STUDY, str(path))
    assert "\n" not in str(caught.value)


def test_repeated_reports_across_files_count_once(tmp_path, capsys):
    first, second = write(tmp_path / "a", REPORTS[:12]), write(tmp_path / "b", REPORTS[8:])
    assert summarize_files(STUDY, [first, second]).to_json() == WHOLE
    assert "4 reports were repeated" in capsys.readouterr().err


def test_one_id_with_two_contents_is_refused(tmp_path):
    other = Report(REPORTS[0].id, "survey", 1, STUDY.digest, {**REPORTS[0].payloads, "hours": bytes(4)})
    path = write(tmp_path / "a", [*REPORTS, other])
    with raises(InputError, "reports.many_refused", "21", "different", "content"):
        summarize_files(STUDY, [path])


@pytest.mark.parametrize("damage", [b"\xff" * 30, b"a"], ids=["thirty bytes", "one byte"])
def test_damaged_parquet_is_rejected_or_gives_same_summary(tmp_path, damage):
    """Pages have checksums, so no changed byte gives another report; parts of the footer are unused."""
    path = tmp_path / "r.parquet"
    write_reports(REPORTS, path)
    whole, errors = path.read_bytes(), []
    same = summarize_files(STUDY, [str(path)]).to_json()
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + damage + whole[place + len(damage) :])
        try:
            assert summarize_files(STUDY, [str(path)]).to_json() == same
        except InputError as error:
            errors.append(str(error))
    assert not [error for error in errors if "\n" in error]
    assert len([error for error in errors if "damaged, or is not a Parquet file" in error]) > len(whole) / 111


def test_impossible_reports_are_counted_and_shown(tmp_path):
    bad = [
        Report(f"{i:032x}", "survey", 1, STUDY.digest, {"ever": b"\x09", "hours": bytes(4)}) for i in range(7)
    ]
    path = write(tmp_path / "a", [*REPORTS, *bad], "nonsense\n")
    with raises(InputError, "reports.many_refused", "28") as caught:
        summarize_files(STUDY, [path])
    assert "line 21" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reports_on_other_versions_are_left_out_and_reported(tmp_path, capsys):
    newer = Study(studies.document(studies.YES_NO, studies.NUMBER, version=2))
    late = perturb_answers(newer, MECHANISMS, {"ever": True, "hours": 2})
    path = write(tmp_path / "a", [*REPORTS, late])
    assert summarize_files(STUDY, [path]).to_json() == WHOLE
    assert "1 report answers other versions of the study (version 2)" in capsys.readouterr().err


def test_unreadable_files_are_rejected(tmp_path):
    with raises(InputError, "files.not_readable"):
        load_summary(STUDY, str(tmp_path / "none"))
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_bytes(b"PAR1 not really" if name[0] == "a" else b"")
        with raises(InputError, "files.not_parquet"):
            load_summary(STUDY, str(tmp_path / name))


def test_parquet_without_report_columns_is_rejected(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with raises(InputError, "reports.many_refused", "lacks a column"):
        summarize_files(STUDY, [str(tmp_path / "x.parquet")])


def test_a_summary_of_another_study_is_refused(tmp_path):
    path = Path(tmp_path / "s.json")
    path.write_text(json.dumps({**json.loads(WHOLE), "digest": "0" * 64}))
    with raises(SummaryError, "summary.of_other_study"):
        load_summary(STUDY, str(path))
