"""Commands print one JSON object with --json, progress with the time left, or nothing with --quiet."""

import io
import json

import pytest

from ldpkit import cli
from ldpkit.cli.output import Progress
from schemas import Study
from summaries.progress import Step
from tests import studies
from tests.ldp_client.devices import Server

STUDY = Study(studies.document(studies.YES_NO))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def told(file, shares, seconds_each, is_quiet=False):
    """Return the output of a job of equal steps."""
    now = [0.0]
    progress = Progress(is_quiet, file, lambda: now[0])
    for share in shares:
        progress(Step(f"done {share:.0%}", share, 1))
        now[0] += seconds_each
    return file.getvalue()


def test_progress_prints_a_line_every_ten_seconds_without_terminal():
    lines = told(io.StringIO(), [place / 60 for place in range(61)], 1).splitlines()
    assert lines[:2] == ["done 0%", "done 17%; about 50 s left"]
    assert len(lines) == 7
    assert lines[-1] == "done 100%"
    assert told(io.StringIO(), [0.01, 0.02], 3700).splitlines()[-1] == "done 2%; about 50 h left"


def test_progress_redraws_one_line_on_a_terminal():
    drawn = told(Terminal(), [0, 0.25, 0.5, 1], 60)
    assert drawn.count("\n") == 1
    assert drawn.endswith("\r\x1b[Kdone 100%\n")
    assert "done 25%; about 3 min left" in drawn
    assert told(Terminal(), [0, 0.5, 1], 60, is_quiet=True) == ""


def test_message_between_steps_starts_a_new_line():
    file = Terminal()
    progress = Progress(file=file)
    progress.part(1, 4)(Step("half of the second", 1, 2))
    progress("a warning")
    assert file.getvalue() == "\r\x1b[Khalf of the second\na warning\n"


def command(capsys, *words):
    """A command's exit code, its one object, and standard error."""
    code = cli.main([*words, "--json"])
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    return code, json.loads(out), err


def test_json_output_is_the_only_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.json").write_text(STUDY.to_json())
    (tmp_path / "answers.csv").write_text("ever\n" + "yes\nno\n" * 50)
    code, found, _ = command(capsys, "check", "study.json")
    assert (code, found["digest"]) == (0, STUDY.digest)
    assert found["questions"][0]["mechanism"] == "randomized_response"
    assert found["questions"][0]["epsilon"] == pytest.approx(1, abs=1e-6)
    arguments = ("perturb", "study.json", "answers.csv", "--out", "reports.ndjson")
    assert command(capsys, *arguments)[:2] == (
        0,
        {"study": "survey", "reports": 100, "file": "reports.ndjson"},
    )
    _, found, _ = command(capsys, "summarize", "study.json", "reports.ndjson", "--out", "summary.json")
    assert found["reports"] == {"ever": 100}
    code, found, said = command(capsys, "audit", "study.json", "--samples", "1000", "--quiet")
    assert (code, found["passed"], said) == (0, True, "")
    assert {audit["question"] for audit in found["audits"]} == {"ever"}


def test_answer_and_withdraw_print_counts_as_json(tmp_path, capsys):
    with Server(STUDY.canonical()) as server:
        url, folder = f"{server.url}/v1/studies/survey", str(tmp_path / "device")
        answer = ("answer", "--max-epsilon", "8", url, "--folder", folder, "--set", "ever=yes")
        assert cli.main([*answer, "--json"]) == 2
        assert "pass --yes" in capsys.readouterr().err
        code, found, _ = command(capsys, *answer, "--yes")
        assert (code, found["sent"], found["waiting"], found["epsilon_left"]) == (0, 1, 0, 7.0)
        code, found, _ = command(capsys, "withdraw", url, "--folder", folder)
        assert (code, found["withdrawn"], found["deleted"]) == (0, 1, 1)


def test_two_results_on_standard_output_are_rejected(capsys):
    arguments = ["perturb", "study.json", "answers.csv", "--out", "-", "--json"]
    assert cli.main(arguments) == 2
    assert "omit one" in capsys.readouterr().err
