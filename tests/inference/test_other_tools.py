"""docs/comparison.md: its examples of other tools are run, in their own versions."""

from __future__ import annotations

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

PAGE = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text("utf-8")
RUN = {"opendp": "### OpenDP", "pure-ldp": "### pure-LDP"}


def section(title: str) -> str:
    return PAGE.partition(title)[2].partition("\n### ")[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def printed_by(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.needs("opendp", "pure_ldp")
@pytest.mark.parametrize("tool", RUN)
def test_tool_prints_what_the_page_shows(tool):
    (code,), (printed,) = (blocks(section(RUN[tool]), language) for language in ("python", "console"))
    assert f"{tool}=={version(tool)}" in PAGE
    assert printed_by(code) == printed


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
