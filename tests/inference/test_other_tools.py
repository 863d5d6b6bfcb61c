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

from collector.storage.node_keys import NodeKeys
from ldp_client import mechanism_for
from ldpkit.cli import main
from schemas import Study
from tests import studies

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


@pytest.mark.needs("opendp", "pure_ldp")
@pytest.mark.parametrize("tool", RUN)
def test_tool_prints_what_the_page_shows(tool):
    (code,), (printed,) = (blocks(section(RUN[tool]), language) for language in ("python", "console"))
    assert f"{tool}=={version(tool)}" in PAGE
    assert printed_by(code) == printed


@pytest.mark.needs("opendp", "pure_ldp")
def test_changed_output_of_tool_is_detected():
    """Another answer, or twice the noise scale, prints another line."""
    (code,), (printed,) = (blocks(section(RUN["pure-ldp"]), language) for language in ("python", "console"))
    assert printed_by(code.replace("privatise(7)", "privatise(2)")) != printed
    (code,), (printed,) = (blocks(section(RUN["opendp"]), language) for language in ("python", "console"))
    assert printed_by(code.replace("scale=40.0", "scale=80.0")) != printed


def test_check_of_secure_sum_prints_lines_quoted_on_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = section("### Divvi Up")
    (document,), (quoted,) = blocks(text, "json"), blocks(text, "console")
    for name in ("NODE-A", "NODE-B"):
        document = document.replace(name, NodeKeys.generate().fragment)
    Path("summed.json").write_text(document)
    assert main(["check", "summed.json"]) == 0
    printed = capsys.readouterr().out
    for line in quoted.splitlines():
        assert line in printed, line
    protocol = Study.from_json(document).protocol
    summed = mechanism_for(Study.from_json(document).questions[0])
    local = mechanism_for(Study(studies.document(studies.YES_NO)).questions[0])
    p = local.threshold / 2**32
    ours, theirs = (sqrt(protocol.devices) * sd for sd in (summed.noise_sd, sqrt(p * (1 - p)) / (2 * p - 1)))
    assert (round(ours, 1), round(theirs)) == (4.3, 43)
    assert "sd of 4.3 people" in text
    assert "one of about 43" in text


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


def test_every_row_of_the_first_table_says_how_it_was_checked():
    rows = re.findall(r"^\| (.*) \|$", PAGE.partition("\nIf you have the true answers")[0], re.MULTILINE)
    for row in rows[1:]:
        name, *_, checked = row.split(" | ")
        run = re.search(r"\[[^]]+\]\(#([^)]+)\)", checked)
        assert run, name
        assert run[1] in anchors(), run[1]
        assert "by its own paper" not in checked or "https://doi.org/" in name, name
    assert len(rows) == 1 + 6


def anchors() -> set[str]:
    headings = re.findall(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
