"""The command line: exit codes, one clear line for bad input, help without the extras."""

import json
import re
import shlex
import subprocess
import sys
from math import exp
from pathlib import Path

import click
import pytest

from ldp_client.documents import errors
from ldp_client.documents.errors import InputError
from ldp_client.explain import describe, odds
from ldpkit import cli
from ldpkit.cli.answering import split_settings
from ldpkit.cli.commands import WIDTH
from schemas import Study
from tests import studies
from tests.kit.commands import check, exit_code, leaves, parsed
from tests.kit.operators import never_pause
from tests.ldp_client.issuers import channel_of

ROOT = Path(__file__).parents[2]


def test_study_check_states_the_true_epsilon_of_every_question(tmp_path, capsys):
    assert check(tmp_path, studies.document()) == 0
    shown = capsys.readouterr().out
    for question in studies.ALL:
        assert f"{question['id']}:" in shown
    assert "true epsilon 0.9999999992" in shown
    assert "epsilon 7, delta 2e-06 (their sum)" in shown
    assert "2.72 times" in shown
    assert "at most 73.2 % sure" in shown


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


def test_study_check_prints_the_owner_and_missing_fields(tmp_path, capsys):
    document = studies.document(studies.YES_NO, **{**studies.ASKER, "closes": "2999-01-31"})
    assert check(tmp_path, document) == 0
    shown = capsys.readouterr()
    for line in ("asked by: One clinic", "contact: study@example.org", "deleted 365 days after 2999-01-31"):
        assert line in shown.out
    assert "does not state" not in shown.err
    assert check(tmp_path, studies.document(studies.YES_NO, owner="One clinic")) == 0
    assert "does not state contact, ethics, retention," in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["check", "none.json"], 3, "cannot read none.json"),
        (["perturb", "none.json", "a", "--out", "b"], 3, "cannot read none.json"),
        (["answer", "nonsense"], 2, "give the study's link"),
        (["answer", "http://127.0.0.1:1/v1/studies/a/b", "--yes"], 2, "give the study's link"),
        (["export", "x", "--out", "y", "--collector", "ftp://h"], 2, "http"),
        (["export", "x", "--out", "y", "--collector", "http://127.0.0.1:1"], 5, "127.0.0.1:1"),
        (["serve", "--workers", "two"], 2, "'--workers': 'two' is not a valid integer"),
        (["serve", "--workers", "0"], 2, "'--workers': 0 is not in the range x>=1"),
        (["plan", "s.json", "--out", "p", "--n", "1e3"], 2, "'--n': must be whole numbers, as in"),
        (["anser"], 2, "No such command 'anser'. (Did you mean one of: 'answer'"),
        (["xyz"], 2, "No such command 'xyz'"),
        (["perturb", "s", "a", "--out=r", "--missing-as-refuzal"], 2, "mean '--missing-as-refusal'?"),
        # A beginning is not the option: `--missing` would have made refusals of blanks.
        (["perturb", "s", "a", "--out", "r", "--missing"], 2, "No such option '--missing'"),
        (["new", "--out", "study.json"], 2, "--title"),
        (["new", "--out=s", "--title=A", "--bounds=0,1", "--choices=a,b"], 2, "exclude each other"),
        (["new", "--out", "s", "--title", "A", "--bounds", "5"], 2, "two numbers"),
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


GOOD = json.dumps(studies.document(studies.NUMBER), indent=0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            GOOD.replace('"epsilon": "1"', '"epsilon": "0"'),
            "questions[0].mechanism.epsilon: 0 is out",
        ),
        (
            GOOD.replace('"bounds"', '"bound"'),
            "questions[0].bound: unknown field; known are ask, bounds,",
        ),
        (GOOD.replace('"0",', '"0"'), "line 12, column 1: Expecting ',' delimiter"),
    ],
)
def test_a_bad_study_names_file_place_and_problem(tmp_path, capsys, text, says):
    path = tmp_path / "my.json"
    path.write_text(text)
    assert cli.main(["check", str(path)]) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"ldpkit: {path}: study: ")
    assert says in error


def test_perturb_rejects_a_study_that_needs_tokens(tmp_path, capsys):
    channel = channel_of("https://issuer.example")
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO, channel=channel)))
    (tmp_path / "answers.csv").write_text("ever\nyes\n")
    files = [str(tmp_path / name) for name in ("study.json", "answers.csv", "reports.ndjson")]
    before = sorted(tmp_path.iterdir())
    assert cli.main(["perturb", *files[:2], "--out", files[2]]) == 3
    assert "no collector accepts reports from a file. No noise was drawn" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.attack(13)
def test_a_mistyped_setting_is_not_repeated():
    """A person mistypes an option, and an answer ends up in the error."""
    for setting in ("ever:yes", "yes", "yes=ever"):
        with pytest.raises(InputError) as caught:
            split_settings(Study(studies.document(studies.YES_NO)), [setting])
        assert "yes" not in str(caught.value)


def test_the_sentence_about_odds_mentions_delta():
    assert "added probability of 1 in 1,000,000." in odds(1.0, 1e-6)
    assert "added probability of 1 in 1e+30." in odds(1.0, 1e-30)
    assert "added" not in odds(1.0)


def test_upper_bounds_in_odds_sentence_are_not_rounded_down():
    """The sentence is true for every epsilon and delta, and at most a percent too high."""
    for step in range(1, 640, 7):
        epsilon, delta = step / 10, 10 ** (-step / 30)
        factor = exp(epsilon)
        times, sure, exception = re.findall(
            r"[0-9.,]+(?:e[+-]?[0-9]+)?(?= times| %|\.$)", odds(epsilon, delta)
        )
        assert factor <= float(times.replace(",", "")) <= 1.1 * factor
        assert 1 - 1e-9 <= float(sure) * (1 + factor) / (100 * factor) <= 1.01
        assert delta * (1 - 1e-9) <= 1 / float(exception.replace(",", "")) <= 2 * delta


def test_documented_exit_codes_match_the_error_classes(capsys):
    table = re.findall(r"^\| ([0-9, ]+) \|", (ROOT / "docs" / "commands.md").read_text(), flags=re.M)
    named = {int(code) for row in table for code in row.split(",")}
    assert named == {0, *(code for name, code in vars(errors).items() if name.startswith("EXIT_"))}
    assert cli.main(["--help"]) == 0
    (line,) = re.findall(r"Exit codes:[^.]*", " ".join(capsys.readouterr().out.split()))
    assert {int(code) for code in re.findall(r"[0-9]+", line)} == named


WITHOUT_MODULES = """
import json, os, sys
from ldpkit.cli import main

class Block:
    def __init__(self, names):
        self.names = names
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for place, (blocked, arguments) in enumerate(json.loads(sys.argv[1])):
    if not os.fork():
        os.dup2(os.open(f"{place}.err", os.O_CREAT | os.O_WRONLY), 2)
        sys.meta_path.insert(0, Block(blocked))
        code = main(arguments)
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.slow
def test_a_missing_extra_is_named(tmp_path):
    """Each command runs in a fork of one process, which has imported none of the extras."""
    study = str(tmp_path / "study.json")
    (tmp_path / "study.json").write_text(json.dumps(studies.document()))
    cases = [
        (["jax", "numpy", "numpyro"], ["fit", study, "r", "--out", "d"], "ldpkit[inference]"),
        (["pyarrow"], ["summarize", study, "r.parquet", "--out", "d"], "ldpkit[tables]"),
        (["s3fs"], ["summarize", study, "s3://a/b", "--out", "d"], "ldpkit[s3]"),
        (["flask", "sqlalchemy", "granian"], ["serve"], "ldpkit[collector]"),
        (["cryptography"], ["keygen", "--out", "key.pem"], "ldpkit[signing]"),
    ]
    command = [sys.executable, "-c", WITHOUT_MODULES, json.dumps([case[:2] for case in cases])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["1"] * len(cases)
    for place, (_, _, extra) in enumerate(cases):
        told = (tmp_path / f"{place}.err").read_text()
        assert extra in told
        assert told.count("\n") == 1


LEAVES = dict(leaves())


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_has_a_description_and_an_example(words):
    command = LEAVES[words]
    assert command.help
    call = shlex.split(command.example)
    assert tuple(call[: len(words)]) == words
    parsed(call)


def test_every_help_fits_a_screen():
    long = {}
    for words, command in LEAVES.items():
        ctx = click.Context(command, info_name=" ".join(words), terminal_width=WIDTH)
        count = len(command.get_help(ctx).splitlines())
        if count > 40:
            long[words] = count
    assert long == {}


@pytest.mark.attack(13)
def test_an_answer_that_lost_its_quotes_is_not_repeated(capsys):
    """A shell splits an answer into words, and the error of one ends up in a log."""
    exit_code(["answer", "http://127.0.0.1:1/v1/studies/s", "--set", "fruit=red", "apple", "--colour=green"])
    told = capsys.readouterr().err
    assert "No such option '--colour'" in told
    assert "apple" not in told
    assert "green" not in told
