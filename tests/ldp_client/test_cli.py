"""The command line: exit codes, one clear line for bad input, help without the extras."""

import json
import re
import shlex
from pathlib import Path

import pytest

from ldp_client.documents import errors
from ldp_client.documents.errors import InputError
from ldp_client.explain import describe
from ldpkit import cli
from ldpkit.cli.answering import split_settings
from schemas import Study
from tests import studies
from tests.kit.commands import check, exit_code, leaves, parsed
from tests.kit.operators import never_pause
from tests.ldp_client.issuers import channel_of

ROOT = Path(__file__).parents[2]


def test_study_check_states_true_epsilon_owner_and_missing_fields(tmp_path, capsys):
    assert check(tmp_path, studies.document(owner="One clinic")) == 0
    shown, notes = capsys.readouterr()
    for question in studies.ALL:
        assert f"{question['id']}:" in shown
    assert "true epsilon 0.9999999992" in shown
    assert "epsilon 7, delta 2e-06 (their sum)" in shown
    assert "2.72 times" in shown
    assert "at most 73.2 % sure" in shown
    assert "asked by: One clinic" in shown
    assert "does not state contact, ethics, retention," in notes


def test_study_check_prints_the_priors_that_devices_ignore(capsys):
    path = ROOT / "tests" / "golden" / "studies" / "with-priors.json"
    assert cli.main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    for line in (
        "p ~ dirichlet(concentration [3 numbers])",
        "mean ~ student_t(degrees_of_freedom 4, loc 30, scale 5)",
        "feature_sd[age] ~ gamma(shape 2, rate 0.5)",
    ):
        assert re.search(rf"^prior of [a-z0-9_-]+: {re.escape(line)}$", shown, re.MULTILINE)
    assert "prior" not in "\n".join(describe(Study.from_json(path.read_bytes())))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["check", "none.json"], 3, "cannot read none.json"),
        (["export", "x", "--out", "y", "--collector", "http://127.0.0.1:1"], 5, "127.0.0.1:1"),
        (["plan", "s.json", "--out", "p", "--n", "1e3"], 2, "'--n': must be whole numbers, as in"),
        # A beginning is not the option: `--missing` would have made refusals of blanks.
        (["perturb", "s", "a", "--out", "r", "--missing"], 2, "No such option '--missing'"),
        (["new", "--out=s", "--title=A", "--bounds=0,1", "--choices=a,b"], 2, "exclude each other"),
    ],
)
def test_wrong_call_prints_one_line_and_sets_the_exit_code(
    tmp_path, monkeypatch, capsys, arguments, code, says
):
    monkeypatch.chdir(tmp_path)
    never_pause(monkeypatch)
    monkeypatch.setenv("LDPKIT_TOKEN", "key")
    assert exit_code(arguments) == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert error.startswith("ldpkit: ")
    assert list(tmp_path.iterdir()) == []


def test_perturb_rejects_a_study_that_needs_tokens(tmp_path, capsys):
    channel = channel_of("https://issuer.example")
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO, channel=channel)))
    (tmp_path / "answers.csv").write_text("ever\nyes\n")
    files = [str(tmp_path / name) for name in ("study.json", "answers.csv", "reports.ndjson")]
    before = sorted(tmp_path.iterdir())
    assert cli.main(["perturb", *files[:2], "--out", files[2]]) == 3
    assert "no collector accepts reports from a file. No noise was drawn" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"bounds"', '"bound"', "questions[0].bound: unknown field; known are ask, bounds,"),
        ('"0",', '"0"', "not well-formed JSON in UTF-8: line 12, column 1: Expecting ',' delimiter"),
    ],
)
def test_a_bad_study_names_file_place_and_problem(tmp_path, capsys, old, new, says):
    path = tmp_path / "my.json"
    path.write_text(json.dumps(studies.document(studies.NUMBER), indent=0).replace(old, new))
    assert cli.main(["check", str(path)]) == 3
    assert capsys.readouterr().err.startswith(f"ldpkit: {path}: study: {says}")


@pytest.mark.attack(13)
def test_a_mistyped_setting_is_not_repeated():
    """A person mistypes an option, and an answer ends up in the error."""
    for setting in ("ever:yes", "yes", "yes=ever"):
        with pytest.raises(InputError) as caught:
            split_settings(Study(studies.document(studies.YES_NO)), [setting])
        assert "yes" not in str(caught.value)


def test_documented_exit_codes_match_the_error_classes(capsys):
    table = re.findall(r"^\| ([0-9, ]+) \|", (ROOT / "docs" / "commands.md").read_text(), flags=re.M)
    named = {int(code) for row in table for code in row.split(",")}
    assert named == {0, *(code for name, code in vars(errors).items() if name.startswith("EXIT_"))}
    assert cli.main(["--help"]) == 0
    (line,) = re.findall(r"Exit codes:[^.]*", " ".join(capsys.readouterr().out.split()))
    assert {int(code) for code in re.findall(r"[0-9]+", line)} == named


LEAVES = dict(leaves())


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_has_a_description_and_an_example(words):
    command = LEAVES[words]
    assert command.help
    call = shlex.split(command.example)
    assert tuple(call[: len(words)]) == words
    parsed(call)


@pytest.mark.attack(13)
def test_an_answer_that_lost_its_quotes_is_not_repeated(capsys):
    """A shell splits an answer into words, and the error of one ends up in a log."""
    exit_code(["answer", "http://127.0.0.1:1/v1/studies/s", "--set", "fruit=red", "apple", "--colour=green"])
    told = capsys.readouterr().err
    assert "No such option '--colour'" in told
    assert "apple" not in told
    assert "green" not in told
