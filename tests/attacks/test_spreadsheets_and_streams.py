"""A spreadsheet's own format taken for text, and streams in the places of files.

Defence: Each command: refuses both in one line, before anything is read or written; true answers are copied
nowhere.
"""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from ldp_client.files.batch import perturb_file
from ldpkit.cli import main
from schemas import Report, Study
from tests import studies

STUDY = Study(studies.document(studies.YES_NO))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.json").write_text(STUDY.to_json())
    Path("answers.csv").write_text("ever\n" + "yes\nno\n" * 20)
    perturb_file(STUDY, "answers.csv", "reports.ndjson")
    return tmp_path


def given(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    "words",
    [
        "perturb study.json book.xlsx --out out.ndjson",
        "perturb study.json answers.csv --out OUT.XLSX",
        "summarize study.json book.xlsx --out out.json",
        "summarize study.json reports.ndjson --out out.xlsx",
        "fit study.json book.ods --out out",
        "export survey --token t --out out.xlsx",
    ],
)
def test_workbook_is_rejected_in_one_line_with_remedy(words, capsys):
    Path("book.xlsx").write_bytes(b"PK\x03\x04")
    before = sorted(Path().iterdir())
    assert main(words.split()) == 3
    said = capsys.readouterr().err
    assert said.count("\n") <= 1 + said.count("note")
    assert "Use .csv" in said
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("export survey --token t --out p1.ndjson.gz", "does not write this format"),
        ("export survey --token t --summary --out s.zip", "does not write this format"),
        ("export survey --token t --summary --out s.csv", "not a table"),
        ("perturb study.json answers.csv --out out.NDJSON.ZST", "does not write this format"),
        ("perturb study.json answers.csv --out out.parquet", "not a table"),
        ("summarize study.json reports.ndjson --out s.tsv", "does not write this format"),
        ("summarize study.json reports.ndjson --out s.csv", "not a table"),
        ("keygen --out key.zip", "does not write this format"),
        ("audit study.json --out a.json.gz", "does not write this format"),
        ("backup --out b.sqlite3.gz", "does not write this format"),
    ],
)
def test_output_name_of_other_format_is_rejected_first(words, said, capsys):
    """Plain text used to be written under a name that a decompressor or a spreadsheet opens."""
    before = sorted(Path().iterdir())
    assert main(words.split()) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert "Use " in line
    assert sorted(Path().iterdir()) == before


def test_reports_and_studies_are_read_from_standard_input(monkeypatch, capsys):
    whole = main(["summarize", "study.json", "reports.ndjson", "--out", "summary.json"])
    given(monkeypatch, Path("reports.ndjson").read_bytes())
    assert main(["summarize", "study.json", "-", "--out", "streamed.json"]) == whole == 0
    assert Path("streamed.json").read_bytes() == Path("summary.json").read_bytes()
    given(monkeypatch, Path("study.json").read_bytes())
    capsys.readouterr()
    assert main(["check", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == STUDY.digest


def test_stream_error_names_line(monkeypatch, capsys):
    given(monkeypatch, b"nonsense\n")
    assert main(["summarize", "study.json", "-", "--out", "streamed.json"]) == 3
    assert "standard input, line 1" in capsys.readouterr().err


def test_standard_input_cannot_be_read_twice(monkeypatch, capsys):
    given(monkeypatch, Path("study.json").read_bytes())
    assert main(["summarize", "-", "-", "--out", "out.json"]) == 2
    assert "can be read only once" in capsys.readouterr().err


def test_standard_output_gets_only_the_whole_result(capsys):
    assert main(["perturb", "study.json", "answers.csv", "--out", "-"]) == 0
    out, err = capsys.readouterr()
    assert len([Report.from_json(line) for line in out.splitlines()]) == 40
    assert "40 reports in -" in err
    assert main(["summarize", "study.json", "reports.ndjson", "--out", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["format"].startswith("ldpkit.summary/")
    Path("answers.csv").write_text("ever\nyes\nperhaps\n")
    assert main(["perturb", "study.json", "answers.csv", "--out", "-"]) == 3
    assert capsys.readouterr().out == ""
    assert not Path("-").exists()


@pytest.mark.parametrize("command", [["check", "--json"], ["check"]])
def test_full_disk_on_standard_output_prints_one_line(monkeypatch, capsys, command):
    """It used to be a traceback, or Python's message after success was printed, with another exit code."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", open("/dev/full", "w"))  # noqa: SIM115
        assert main([command[0], "study.json", *command[1:]]) == 1
        assert sys.stdout.closed
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "ldpkit: cannot write standard output: No space left on device"


def test_answers_and_fit_folder_cannot_be_streams(monkeypatch, capsys):
    """Each run draws new noise; true answers are copied nowhere."""
    given(monkeypatch, b"ever\nyes\n")
    assert main(["perturb", "study.json", "-", "--out", "more.ndjson"]) == 2
    assert "each run draws new noise" in capsys.readouterr().err
    assert main(["fit", "study.json", "reports.ndjson", "--out", "-"]) == 2
    assert "writes a folder" in capsys.readouterr().err


def test_answers_from_named_pipe_are_rejected(capsys):
    """A shell's <(…) or /dev/stdin cannot be read twice, as a table is."""
    os.mkfifo("63")
    before = sorted(Path().iterdir())
    Path("holder.json").write_text(Study(studies.document(studies.TABLE, **studies.HOLDER)).to_json())
    for study in ("study.json", "holder.json"):
        assert main(["perturb", study, "63", "--out", "more.ndjson"]) == 3
        assert "each run draws new noise" in capsys.readouterr().err
    assert sorted([*before, Path("holder.json")]) == sorted(Path().iterdir())
