"""Every figure that a fit's page prints equals that in posterior.json, rounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inference.results.intervals import between
from ldpkit.cli import main

PAGE, DOCUMENT, TABLE = "report.html", "posterior.json", "tables.csv"
DESIGN = {"design": "forced", "yes": "1/6", "no": "1/6", "reports": ["no", "yes"]}
_NUMBERS = re.compile(r"−?\d[\d,]*(?:\.\d+)?(?:e[+−]\d+)?")

_CHANCES = re.compile(r"90 % interval|(above|below) 0 with probability [^;]*\d")


def text_of(page: str) -> str:
    return unescape(re.sub(r"<svg.*?</svg>|<style.*?</style>", "", page, flags=re.DOTALL))


def sentences(page: str) -> Iterator[str]:
    for part in re.findall(r"<ul>(<li>.*?)</ul>", page, re.DOTALL):
        yield from re.findall(r"<li>(.*?)</li>", part, re.DOTALL)


def quoted(name: str, one: dict[str, Any]) -> list[float]:
    """The numbers of a quantity's sentence, after its words."""
    times = 100.0 if name.removeprefix("design-based ").startswith("share") else 1.0
    return [one["q50"] * times, one["q05"] * times, one["q95"] * times]


def numbers(sentence: str) -> list[float]:
    """Those behind a sentence's words, but for the chances that it states."""
    bare = _CHANCES.sub("", sentence)
    return [float(one.replace("−", "-").replace(",", "")) for one in _NUMBERS.findall(bare)]


def near(shown: float, known: float, share: bool) -> bool:
    """Whether a number is another, rounded: of a share one decimal, else three digits, of thousands all."""
    digit = 0.1 if share else 1.0 if abs(known) >= 1000 else 10.0 ** (np.floor(np.log10(abs(known) or 1)) - 2)
    return abs(shown - known) <= 0.51 * digit


@pytest.fixture(scope="module")
def of_formula(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formula")
    table, design, out = (folder / name for name in ("t.csv", "d.json", "out"))
    design.write_text(json.dumps({"format": "ldpkit.design/1", "columns": {"armed": DESIGN}}))
    random = np.random.default_rng(8)
    frame = pd.DataFrame({"armed": random.choice(["no", "yes"], 900), "age": random.integers(18, 80, 900)})
    frame["region"] = random.choice(["north", "south", "west"], 900)
    frame["w"] = random.integers(800, 1200, 900)
    frame.to_csv(table, index=False)
    command = ["survey", "--table", str(table), "--design", str(design), "--formula", "armed ~ age + region"]
    more = ["--by", "region", "--weights", "w", "--method", "gaussian_approx", "--out", str(out), "-q"]
    assert main([*command, *more]) in (0, 4)
    return out


def read(folder: Path) -> tuple[str, dict[str, Any]]:
    return text_of((folder / PAGE).read_text()), json.loads((folder / DOCUMENT).read_text())["questions"]


@pytest.mark.slow
def test_sentences_on_formula_page_match_quantities(of_formula: Path) -> None:
    page, questions = read(of_formula)
    (question,) = questions.values()
    lines = [line for line in sentences(page) if "90 % interval" in line]
    assert len(lines) == len(question["quantities"]) > 10
    for name, one in question["quantities"].items():
        begin = f"{one['words'][0].upper()}{one['words'][1:]}: "
        (line,) = [line for line in lines if line.startswith(begin)]
        shown, known = numbers(line[len(begin) :]), quoted(name, one)
        share = name.removeprefix("design-based ").startswith("share")
        for pair in zip(shown, known, strict=True):
            assert near(*pair, share), (line, known)


@pytest.mark.slow
def test_spreadsheet_table_matches_posterior_json(of_formula: Path) -> None:
    _, questions = read(of_formula)
    rows = pd.read_csv(of_formula / TABLE)
    assert len(rows) == sum(len(one["parameters"]) for one in questions.values())
    for row in rows.to_dict("records"):
        question = questions[row["question"]]
        own = question["parameters"][row["parameter"]]
        assert row["n"] == question["n"]
        for column, key in {"median": "q50"}.items() | {
            (one, one) for one in own if one in rows.columns and one != "verdict"
        }:
            assert row[column] == pytest.approx(own[key], rel=1e-12), (row["parameter"], column)


@pytest.mark.parametrize(
    ("low", "high", "share", "said"),
    [
        (0.99933, 1.00042, False, "0.9993 to 1.0004"),
        (0.32138, 0.32161, True, "32.138 to 32.161 %"),
        (-0.412, 1.23, False, "−0.412 to 1.23"),
        (1200, 41234, False, "1,200 to 41,200"),
        (1e9, 1e299, False, "1,000,000,000 to 1e+299"),
    ],
)
def test_interval_is_printed_with_enough_digits(low, high, share, said):
    """With three digits, an odds ratio from a million reports was printed as between 1 and 1."""
    assert between(low, high, share) == said
