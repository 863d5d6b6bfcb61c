"""Writing a first study and trying it: made-up answers fit any study, and one run leaves no process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from ldp_client import mechanism_for
from ldp_client.answering import public_values, quantise_answers
from ldp_client.documents.errors import UsageError
from ldpkit import ask
from ldpkit.cli import cli
from ldpkit.cli.trying import answer_lines, simulated_answers, trial_of
from schemas import Study
from schemas.study import load_study
from tests.kit.commands import exit_code, run


@pytest.mark.parametrize(
    ("words", "ask", "mechanism", "margin"),
    [
        # 1.6449 · √(p(1 − p)/n) / (2p − 1) for a share of one half, with p = e/(e + 1).
        ([], "yes_no", "randomized_response", "10,000 people  ± 1.8 points"),
        ([], "yes_no", "randomized_response", "at most 73.2 % sure of the answer"),
        (["--choices", "a, b,c"], "choice", "randomized_response", "500 people  ± 9.5 points"),
        (["--bounds", "0,24"], "number", "laplace", "500 people  ± 2.5"),
    ],
)
def test_options_give_a_study_and_its_margin_of_error(words, ask, mechanism, margin, tmp_path, capsys):
    out = tmp_path / "study.json"
    assert exit_code(["new", "--title", "Étude, du café!", *words, "--out", str(out)]) == 0
    study = load_study(str(out))
    (question,) = study.questions
    assert (study.id, question.ask, question.text) == ("etude-du-cafe", ask, "Étude, du café!")
    assert question.mechanism.name == mechanism
    assert margin in capsys.readouterr().out


def test_a_terminal_is_asked_for_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("ldpkit.cli.making._is_terminal", lambda: True)
    out = tmp_path / "study.json"
    typed = "Hours of sleep\n\nnumber\n0, 24\n0.5\nThe clinic\nclinic@example.org\n"
    done = CliRunner().invoke(cli, ["new", "--out", str(out)], input=typed)
    assert done.exit_code == 0, done.output
    assert "62.3 % sure with epsilon 0.5" in done.output
    document = json.loads(out.read_text())
    assert document["owner"] == "The clinic"
    assert document["questions"][0]["bounds"] == ["0", "24"]
    assert document["questions"][0]["mechanism"] == {"name": "laplace", "epsilon": "0.5"}


GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "studies").glob("*.json"))
GOLDEN = [path for path in GOLDEN if path.stem != "digests"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_made_up_answers_fit_each_golden_study(path):
    study = Study.from_json(path.read_bytes())
    try:
        trial = trial_of(study)
    except UsageError:
        assert study.protocol is not None or study.respondent == "holder"
        return
    assert trial.channel is None
    assert trial.opens is trial.closes is None
    mechanisms = {question.id: mechanism_for(question) for question in trial.questions}
    people = simulated_answers(trial, 3, seed=1)
    for answers in people:
        assert quantise_answers(trial, mechanisms, answers)
        assert set(public_values(trial, answers, invited=False)) == {field.id for field in trial.public}
    assert people == simulated_answers(trial, 3, seed=1)


def test_made_up_answers_have_the_stated_shares():
    asked = [
        ask.yes_no("ever", epsilon=1),
        ask.choice("job", ["worker", "clerk", "none"], epsilon=1),
        ask.number("hours", 0, 24, epsilon=1),
    ]
    kinds = ask.study("kinds", "Kinds", asked)
    lines = answer_lines(kinds, simulated_answers(kinds, 4000, seed=1))
    assert lines[0].startswith(("ever: 29.", "ever: 30."))
    assert "answered worker" in lines[1]
    # The mean of a triangular law on 0..24 with its peak at 8.
    assert float(lines[2].rpartition(" ")[2]) == pytest.approx((0 + 24 + 8) / 3, abs=0.3)


@pytest.mark.slow
def test_try_ends_with_a_report_and_no_collector(tmp_path):
    study = tmp_path / "study.json"
    run("new", "--title", "Reuse", "--out", str(study))
    command = [sys.executable, "-m", "ldpkit", "try", str(study)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    (out,) = tmp_path.glob("ldpkit-try-*")
    assert done.returncode in (0, 4), done.stderr
    assert "the page for participants: http://127.0.0.1:" in done.stdout
    assert "of the answers were yes" in done.stdout
    (entry,) = json.loads((out / "posterior.json").read_text())["questions"].values()
    assert entry["n"] == 200
    assert (out / "report.html").exists()
    (address,) = [line.split()[-1] for line in done.stdout.splitlines() if "participants" in line]
    with pytest.raises(URLError):
        urlopen(address, timeout=5)


def test_answers_of_a_file_are_in_no_line(tmp_path, monkeypatch):
    study, answers = tmp_path / "study.json", tmp_path / "a.csv"
    run("new", "--title", "Reuse", "--out", str(study))
    answers.write_text("reuse\nyes\nno\nyes\n")
    monkeypatch.setattr("inference.demo.run.try_study", lambda *_: {})
    shown = []
    monkeypatch.setattr("ldpkit.cli.trying.show_posteriors", lambda *given: shown.extend(given[3]) or 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert exit_code(["try", str(study), "--answers", str(answers)]) == 0
    assert shown == []
