"""docs/two-thousand-people.md and docs/comparison.md: commands and other tools print what the pages show."""

import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from math import exp, log, sqrt
from pathlib import Path

import pytest

from ldpkit.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PLANS = (DOCS / "two-thousand-people.md").read_text("utf-8")
COMPARISON = (DOCS / "comparison.md").read_text("utf-8")
PEERS, _, _ = COMPARISON.partition("## The others, run")
RUN = {"opendp": "### OpenDP", "pure-ldp": "### pure-LDP"}


def section(title):
    return COMPARISON.partition(title)[2].partition("\n### ")[0]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def sessions(text):
    """(command, what it prints) of a page's consoles."""
    parts = [part for one in blocks(text, "console") for part in re.split(r"^\$ ldpkit ", one, flags=re.M)]
    return [part.split("\n", 1) for part in parts if part]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.json").write_text(*blocks(PLANS, "json"))
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


@pytest.mark.slow
@pytest.mark.needs("opendp", "pure_ldp")
@pytest.mark.parametrize("tool", RUN)
def test_tool_prints_what_the_page_shows(tool):
    (code,), (printed,) = (blocks(section(RUN[tool]), language) for language in ("python", "console"))
    assert f"{tool}=={version(tool)}" in COMPARISON
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


@pytest.mark.slow
def test_warner_estimate_matches_dice_packages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = section("### RRreg and rr")
    (code,), (session,) = blocks(text, "python"), blocks(text, "console")
    exec(code, {})
    command, end = session.split("\n", 1)
    assert main(shlex.split(command.removeprefix("$ ldpkit "))) == int(end.removeprefix("exit "))
    capsys.readouterr()
    entry = json.loads(Path("dice", "posterior.json").read_text())["questions"]["used"]
    found = entry["mode"]["parameters"]["Intercept"]
    yes, p, n = 0.58, 0.3, 1000
    share = (yes + p - 1) / (2 * p - 1)
    error = sqrt(yes * (1 - yes) / n) / abs(2 * p - 1)
    assert found["value"] == pytest.approx(log(share / (1 - share)), abs=1e-4)
    assert found["sd"] == pytest.approx(error / (share * (1 - share)), rel=1e-3)
    assert share == pytest.approx(1 / (1 + exp(-found["value"])), abs=1e-4)
    for figure in (f"{share:.3f}", f"{error:.4f}", f"−{-found['value']:.3f}", f"{found['sd']:.3f}"):
        assert figure in text, figure
