"""The command line: exit codes, one clear line for bad input, names that no result takes, links, output."""

import io
import json
import os
import re
import shlex

import click
import pytest

from ldp_client.documents import errors
from ldp_client.documents.errors import InputError
from ldp_client.explain import describe
from ldpkit import cli
from ldpkit.cli.answering import read_link, split_settings
from ldpkit.cli.commands import NewPath, command
from ldpkit.cli.output import Progress, progress
from schemas import Study
from summaries import summarize_dataset
from summaries.progress import Step
from tests import studies
from tests.kit import operators
from tests.kit.collectors import REPOSITORY
from tests.kit.commands import check, exit_code, leaves, parsed
from tests.kit.errors import raises
from tests.summaries.engines_data import STUDY as DATASET

LEAVES = dict(leaves())
STUDY = Study(studies.document(studies.YES_NO))
never_pause = operators.never_pause


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
    path = REPOSITORY / "tests" / "golden" / "studies" / "with-priors.json"
    assert cli.main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    for line in (
        "p ~ dirichlet(concentration [3 numbers])",
        "mean ~ student_t(degrees_of_freedom 4, loc 30, scale 5)",
        "feature_sd[age] ~ gamma(shape 2, rate 0.5)",
    ):
        assert re.search(rf"^prior of [a-z0-9_-]+: {re.escape(line)}$", shown, re.MULTILINE)
    assert "prior" not in "\n".join(describe(Study.from_json(path.read_bytes())))


@pytest.mark.usefixtures("never_pause")
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["check", "none.json"], 3, "cannot read none.json"),
        (["export", "x", "--out", "y", "--collector", "http://127.0.0.1:1"], 5, "127.0.0.1:1"),
        (["plan", "s.json", "--out", "p", "--n", "1e3"], 2, "'--n': must be whole numbers, as in"),
        (["plan", "s.json", "--out", "p", "--margin", "nan"], 2, "--margin nan must be a number above 0"),
        # A beginning is not the option: `--missing` would have made refusals of blanks.
        (["perturb", "s", "a", "--out", "r", "--missing"], 2, "No such option '--missing'"),
        (["new", "--out=s", "--title=A", "--bounds=0,1", "--choices=a,b"], 2, "exclude each other"),
    ],
)
def test_wrong_call_prints_one_line_and_sets_the_exit_code(
    tmp_path, monkeypatch, capsys, arguments, code, says
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDPKIT_TOKEN", "key")
    assert exit_code(arguments) == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert error.startswith("ldpkit: ")
    assert list(tmp_path.iterdir()) == []


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
            split_settings(STUDY, [setting])
        assert "yes" not in str(caught.value)


def test_documented_exit_codes_match_the_error_classes(capsys):
    table = re.findall(r"^\| ([0-9, ]+) \|", (REPOSITORY / "docs" / "commands.md").read_text(), flags=re.M)
    named = {int(code) for row in table for code in row.split(",")}
    assert named == {0, *(code for name, code in vars(errors).items() if name.startswith("EXIT_"))}
    assert cli.main(["--help"]) == 0
    (line,) = re.findall(r"Exit codes:[^.]*", " ".join(capsys.readouterr().out.split()))
    assert {int(code) for code in re.findall(r"[0-9]+", line)} == named


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


def test_every_command_writes_a_new_file():
    kinds = {
        words: option.type
        for words, command in LEAVES.items()
        for option in command.params
        if "--out" in option.opts
    }
    assert len(kinds) > 15
    # These refuse later, each with its own line, or write beside other files.
    others = {words for words, kind in kinds.items() if not isinstance(kind, NewPath)}
    assert others == {("perturb",), ("compile",)}


def test_result_takes_a_free_name(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    os.link(tmp_path / "file", tmp_path / "linked")
    (tmp_path / "symbolic").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("file", "linked", "symbolic", "dangling", "full"):
        with raises(InputError, "files.exists", name):
            NewPath().convert(name, None, None)
    for name in ("new", "empty", "-"):
        assert NewPath().convert(name, None, None) == name


@pytest.mark.parametrize(
    "line",
    [
        "export |",
        "export habits --out |",
        "fit study.json | --out posterior",
        "fit study.json reports.ndjson | --out posterior",
        "keys ann --role read --study |",
        "node close |",
    ],
)
def test_empty_value_is_rejected_before_reading(capsys, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    for value in ("", "  "):
        assert exit_code([value if word == "|" else word for word in line.split()]) == 2
        assert "give a value" in capsys.readouterr().err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_empty_address_in_python_is_rejected():
    with raises(InputError, "merge.address_empty"):
        summarize_dataset(DATASET, " ")


@pytest.mark.attack(14)
@pytest.mark.parametrize(
    "line",
    [
        "keys ann --role read --role operate",
        "keys ann --role read --collector http://127.0.0.1:1 --collector http://127.0.0.1:2",
        "fit s.json r.ndjson --out posterior --level 0.8 --level 0.9",
    ],
)
def test_second_value_of_an_option_is_rejected(capsys, line):
    """Append a second key of another role to a command: it took the place of the first."""
    assert exit_code(line.split()) == 2
    assert "it has two values: give one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("link", "parts"),
    [
        ("https://ask.example/s/habits", ("https://ask.example", "habits", "")),
        ("https://ask.example/s/habits#ticket=aB3_x-", ("https://ask.example", "habits", "aB3_x-")),
        ("http://127.0.0.1:8000/v1/studies/habits", ("http://127.0.0.1:8000", "habits", "")),
        # A proxy serves a collector below /s/.
        ("https://ask.example/s/panel/s/habits/", ("https://ask.example/s/panel", "habits", "")),
    ],
)
def test_link_names_collector_study_and_ticket(link, parts):
    assert read_link(None, None, link) == parts
    for wrong in ("nonsense", "ftp://a/s/b", "https://a/survey", "https://a/s/b/c", "https://a/s/B ad"):
        with pytest.raises(click.BadParameter, match="as `ldpkit publish` prints it"):
            read_link(None, None, wrong)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_drawn_on_a_terminal_alone():
    terminal, file = Terminal(), io.StringIO()
    for drawing in (Progress(terminal), Progress(file)):
        for share in (0, 0.25, 0.5, 1, 0.1):
            drawing(Step(f"done {share:.0%}", share, 1))
    assert terminal.getvalue().count("\n") == 1
    for line in ("done 25%   25%", "done 100%  100%", "done 10%   10%"):
        assert line in terminal.getvalue()
    assert file.getvalue() == ""


@pytest.mark.parametrize(("words", "is_drawn"), [([], True), (["-q"], False)])
def test_quiet_command_draws_no_progress(monkeypatch, words, is_drawn):
    """Cron jobs and scripts pass -q to any command."""

    @command("work")
    def work():
        progress()(Step("half", 1, 2))

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    work.main(words, standalone_mode=False)
    assert bool(terminal.getvalue()) == is_drawn
