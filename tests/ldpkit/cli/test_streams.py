"""Streams in the places of files, and names of formats that a command does not read or write."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ldpkit.cli import main
from ldpkit.perturbing import perturb_file
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
    ("words", "said"),
    [
        ("perturb study.json answers.csv --out OUT.XLSX", "Use .csv"),
        ("summarize study.json book.xlsx --out out.json", "Use .csv"),
        ("export survey --out out.ndjson.gz", "does not write this format"),
        ("perturb study.json answers.csv --out out.parquet", "not a table"),
        ("backup --out b.sqlite3.gz", "does not write this format"),
    ],
)
def test_other_format_is_rejected_before_anything_is_read_or_written(words, said, capsys, monkeypatch):
    """Plain text was written under a name that a decompressor or a spreadsheet opens."""
    monkeypatch.setenv("LDPKIT_TOKEN", "key")
    Path("book.xlsx").write_bytes(b"PK\x03\x04")
    before = sorted(Path().iterdir())
    assert main(words.split()) == 3
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") <= 1 + told.count("note")
    assert sorted(Path().iterdir()) == before


def test_reports_and_studies_are_read_from_standard_input(monkeypatch, capsys):
    whole = main(["summarize", "study.json", "reports.ndjson", "--out", "summary.json"])
    given(monkeypatch, Path("reports.ndjson").read_bytes())
    assert main(["summarize", "study.json", "-", "--out", "streamed.json"]) == whole == 0
    assert Path("streamed.json").read_bytes() == Path("summary.json").read_bytes()
    given(monkeypatch, Path("study.json").read_bytes())
    capsys.readouterr()
    assert main(["check", "-", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    (question,) = found["questions"]
    assert (found["digest"], question["mechanism"]) == (STUDY.digest, "randomized_response")
    assert question["epsilon"] == pytest.approx(1, abs=1e-6)
    given(monkeypatch, b"nonsense\n")
    assert main(["summarize", "study.json", "-", "--out", "other.json"]) == 3
    assert "standard input, line 1" in capsys.readouterr().err
    assert main(["summarize", "-", "-", "--out", "out.json"]) == 2
    assert "can be read only once" in capsys.readouterr().err


def test_standard_output_gets_only_the_whole_result(capsys):
    assert main(["perturb", "study.json", "answers.csv", "--out", "-"]) == 0
    out, err = capsys.readouterr()
    assert len([Report.from_json(line) for line in out.splitlines()]) == 40
    assert "40 reports in -" in err
    Path("answers.csv").write_text("ever\nyes\nperhaps\n")
    assert main(["perturb", "study.json", "answers.csv", "--out", "-"]) == 3
    assert capsys.readouterr().out == ""
    assert not Path("-").exists()


def test_full_disk_on_standard_output_prints_one_line(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", open("/dev/full", "w"))  # noqa: SIM115
        assert main(["check", "study.json", "--json"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "ldpkit: cannot write the output: No space left on device"


@pytest.mark.attack(4)
def test_answers_cannot_be_streams(monkeypatch, capsys):
    """Give answers by a pipe and run again: each run draws new noise. True answers are copied nowhere."""
    given(monkeypatch, b"ever\nyes\n")
    assert main(["perturb", "study.json", "-", "--out", "more.ndjson"]) == 2
    assert "each run draws new noise" in capsys.readouterr().err
    os.mkfifo("63")
    Path("holder.json").write_text(Study(studies.document(studies.TABLE, **studies.HOLDER)).to_json())
    for study in ("study.json", "holder.json"):
        assert main(["perturb", study, "63", "--out", "more.ndjson"]) == 2
        assert "each run draws new noise" in capsys.readouterr().err
    assert not Path("more.ndjson").exists()


HANGS_UP = """
import os, signal, sys, time
from ldpkit import cli
from ldpkit import perturbing

report_of = perturbing.report_of

def hung_up(*given, **named):
    signal.raise_signal(signal.SIGHUP)
    time.sleep(300 if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else 0)
    return report_of(*given, **named)

perturbing.report_of = hung_up
sys.exit(cli.main(["perturb", "study.json", "answers.csv", "--out", "reports"]))
"""


@pytest.mark.slow
@pytest.mark.attack(4)
@pytest.mark.parametrize(("prefix", "code"), [([], 129), (["nohup"], 0)])
def test_closing_the_terminal_leaves_no_partial_reports(folder, prefix, code):
    """Close the terminal while noise is drawn: parts of two runs together would tell more."""
    # The tests themselves may run under nohup.
    command = ["env", "--default-signal=HUP", *prefix, sys.executable, "-c", HANGS_UP]
    before = {*folder.iterdir()}
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == code, ended.stderr
    left = {path.name for path in {*folder.iterdir()} - before} - {"nohup.out"}
    assert left == ({"reports"} if prefix else set())


@pytest.mark.slow
def test_output_that_lacks_letters_keeps_those_of_reports(folder):
    labels = ["睡眠", "Żywiec", "é"]
    public = [{"id": "region", "choices": labels}]
    Path("study.json").write_text(json.dumps(studies.document(studies.YES_NO, public=public)))
    Path("labels.csv").write_text(
        studies.answers_csv([{"ever": True, "region": label} for label in labels]), encoding="utf-8"
    )
    call = [sys.executable, "-m", "ldpkit", "perturb", "study.json", "labels.csv", "--out", "-"]
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, check=True)
    reports = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
    assert [report["public"]["region"] for report in reports] == labels
