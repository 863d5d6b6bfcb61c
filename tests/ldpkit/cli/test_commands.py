"""What commands have in common: values that no option takes, names that no result takes, links, output."""

import io
import json
import os

import click
import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli.answering import Link
from ldpkit.cli.commands import NewPath, command
from ldpkit.cli.output import Progress, progress
from schemas import Study
from summaries import summarize_dataset
from summaries.progress import Step
from tests import studies
from tests.kit.commands import check, exit_code, leaves
from tests.kit.errors import raises
from tests.summaries.engines_data import STUDY as DATASET


def test_every_command_writes_a_new_file():
    kinds = {
        words: option.type
        for words, command in leaves()
        for option in command.params
        if "--out" in option.opts
    }
    assert len(kinds) > 15
    # These refuse later, each with its own line, or write beside other files.
    others = {words for words, kind in kinds.items() if not isinstance(kind, NewPath)}
    assert others == {("perturb",), ("compile",)}


@pytest.fixture
def taken(tmp_path):
    (tmp_path / "file").write_text("mine")
    os.link(tmp_path / "file", tmp_path / "linked")
    (tmp_path / "symbolic").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["file", "linked", "symbolic", "dangling", "full"])
def test_taken_name_is_refused(taken, name):
    with raises(InputError, "files.exists", name):
        NewPath().convert(str(taken / name), None, None)


@pytest.mark.parametrize("name", ["new", "empty", "-"])
def test_free_name_is_taken(taken, monkeypatch, name):
    monkeypatch.chdir(taken)
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
@pytest.mark.parametrize("value", ["", "  "])
def test_empty_value_is_rejected_before_reading(capsys, tmp_path, monkeypatch, line, value):
    monkeypatch.chdir(tmp_path)
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
    assert Link().convert(link, None, None) == parts


@pytest.mark.parametrize(
    "link",
    ["nonsense", "ftp://a/s/b", "https://a/survey", "https://a/s/b/c", "https://a/s/B ad"],
)
def test_other_address_is_rejected(link):
    with pytest.raises(click.BadParameter, match="as `ldpkit publish` prints it"):
        Link().convert(link, None, None)


STUDY = Study(studies.document(studies.YES_NO))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drawn_on(file, shares):
    drawing = Progress(file)
    for share in shares:
        drawing(Step(f"done {share:.0%}", share, 1))
    return file.getvalue()


def test_progress_is_drawn_on_a_terminal_alone():
    drawn = drawn_on(Terminal(), [0, 0.25, 0.5, 1, 0.1])
    assert drawn.count("\n") == 1
    for line in ("done 25%   25%", "done 100%  100%", "done 10%   10%"):
        assert line in drawn
    assert drawn_on(io.StringIO(), [0, 0.5, 1]) == ""


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


def test_json_output_is_the_only_standard_output(tmp_path, capsys):
    assert check(tmp_path, STUDY, "--json") == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found["digest"] == STUDY.digest
    assert found["questions"][0]["mechanism"] == "randomized_response"
    assert found["questions"][0]["epsilon"] == pytest.approx(1, abs=1e-6)
