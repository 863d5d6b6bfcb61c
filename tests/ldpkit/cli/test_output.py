"""Commands print one JSON object with --json, and progress with the time left on a terminal."""

import io
import json

import pytest

from ldpkit import cli
from ldpkit.cli.commands import command
from ldpkit.cli.output import Progress, progress
from schemas import Study
from summaries.progress import Step
from tests import studies

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


def test_message_between_steps_starts_a_new_line():
    file = Terminal()
    drawing = Progress(file=file)
    drawing(Step("half", 1, 2))
    drawing("a warning")
    assert file.getvalue().endswith("\na warning\n")


def test_json_output_is_the_only_standard_output(tmp_path, capsys):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    assert cli.main(["check", str(tmp_path / "study.json"), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found["digest"] == STUDY.digest
    assert found["questions"][0]["mechanism"] == "randomized_response"
    assert found["questions"][0]["epsilon"] == pytest.approx(1, abs=1e-6)
