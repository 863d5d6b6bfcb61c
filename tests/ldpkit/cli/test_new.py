"""The command `new`: a study from options or from answers on a terminal, and its margin of error."""

import json

import pytest
from click.testing import CliRunner

from ldpkit.cli import cli
from schemas.study import load_study
from tests.kit.commands import exit_code


def written(tmp_path, *words):
    out = tmp_path / "study.json"
    assert exit_code(["new", "--title", "Étude, du café!", *words, "--out", str(out)]) == 0
    return load_study(str(out))


@pytest.mark.parametrize(
    ("words", "ask", "mechanism", "margin"),
    [
        (["--epsilon", "2"], "yes_no", "randomized_response", "500 people  ± 4.8 points"),
        (["--choices", "a, b,c"], "choice", "randomized_response", "500 people  ± 9.5 points"),
        (["--bounds", "0,24"], "number", "laplace", "500 people  ± 2.5"),
    ],
)
def test_options_give_a_study_and_its_margin_of_error(words, ask, mechanism, margin, tmp_path, capsys):
    study = written(tmp_path, *words)
    (question,) = study.questions
    assert (study.id, question.ask, question.text) == ("etude-du-cafe", ask, "Étude, du café!")
    assert question.mechanism.name == mechanism
    assert margin in capsys.readouterr().out


def test_margin_matches_the_unbiased_estimate(tmp_path, capsys):
    """1.6449 · √(p(1 − p)/n) / (2p − 1) for a share of one half, with p = e/(e + 1)."""
    written(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "after a report, someone who guessed 50:50 can be at most 73.2 % sure of the answer"
    assert [line.split("± ")[1] for line in lines[3:6]] == ["8 points", "4 points", "1.8 points"]


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
