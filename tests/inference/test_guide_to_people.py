"""docs/two-thousand-people.md and docs/comparison.md: their commands print and end as they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ldpkit.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PLANS, PEERS = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("two-thousand-people", "comparison"))
PEERS, _, OTHERS = PEERS.partition("## The others, run")
(STUDY,) = re.findall(r"^```json\n(.*?)^```", PLANS, re.MULTILINE | re.DOTALL)


def sessions(text):
    """(command, what it prints) of a page's consoles."""
    consoles = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [
        part.split("\n", 1) for one in consoles for part in re.split(r"^\$ ldpkit ", one, flags=re.M) if part
    ]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.json").write_text(STUDY)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("command", "printed"), sessions(PLANS))
def test_plan_commands_print_as_the_page_shows(capsys, command, printed):
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out.startswith(printed.rstrip("\n"))


@pytest.mark.slow
def test_commands_in_comparison_end_as_the_page_states(place, capsys):
    (place / "answers.csv").write_text("ever,hours\nyes,20\n")
    (place / "wrong.csv").write_text("ever,hours\nmaybe,20\n")
    ends = []
    for command, printed in sessions(PEERS):
        code = main(shlex.split(command))
        said = capsys.readouterr().out
        ends.append(code)
        if printed.startswith("exit "):
            assert code == int(printed.removeprefix("exit ")), (command, said)
        else:
            assert (code, said) == (0, printed)
    assert ends == [0, 3, 0, 4]
    assert not list(place.glob("wrong.nd*"))
