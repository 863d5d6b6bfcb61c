"""The report of a fit: its headline, its escaped text, and figures that equal those of posterior.json."""

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from inference.results.intervals import between
from inference.results.report import csv_of, headline
from inference.results.verdict import CARE, NOT_USABLE, Finding
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.inference.posteriors import learnt, page_of

HOSTILE = ["=1+1", "a & b_c%$#{}~^\\", "[x] | <b>*y*</b> `z`"]
STUDY = Study(
    studies.document(
        {**studies.YES_NO, "text": "Ever | *been* \\input{x} <i>there</i>?"},
        {**studies.ONE_OF, "choices": HOSTILE},
    )
)
EVER = learnt(STUDY, "ever", ["p"])
COLOUR = learnt(STUDY, "colour", [f"p[{label}]" for label in HOSTILE])


@pytest.mark.parametrize("part", ["convergence", "fit", "informativeness"])
@pytest.mark.parametrize("state", [CARE, NOT_USABLE])
def test_only_fully_good_results_are_green(part, state):
    """Good chains and a fitting model do not mean that anything was learnt."""
    doubted = replace(EVER, findings=(Finding(part, "why", state),))
    assert 'class="ok"' not in page_of({"ever": doubted}, STUDY)
    assert bool(re.search(r"\d", headline(doubted))) is (state == CARE)


def test_headline_has_the_largest_shares():
    assert page_of({"ever": EVER}, STUDY).count('class="ok"') == 1
    assert headline(EVER).startswith("yes: 30.0 % (90 % interval 26")
    shares = {f"p[{label}]": np.full((4, 10), 0.3 if label == "f" else 0.14) for label in "abcdef"}
    found = replace(EVER, model="multinomial", draws=shares)
    assert re.match(r"f: 30.0 % .*; and 2 more below\.", headline(found))


def test_csv_has_every_parameter_and_no_spreadsheet_formula():
    head, *rows = csv.reader(io.StringIO(csv_of({"ever": EVER, "colour": COLOUR})))
    assert [row[head.index("parameter")] for row in rows] == [*EVER.draws, *COLOUR.draws]
    assert float(rows[0][head.index("mean")]) == EVER.draws["p"].mean()
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@")]


def test_hostile_list_title_is_escaped():
    title = HOSTILE[2] + " <img src=x onerror=x()>"
    listed = [{"title": title, "questions": ["ever"], "any_of": True}]
    page = page_of({"ever": EVER}, Study(studies.document(studies.YES_NO, sections=listed)))
    assert "list of boxes; people tick any number" in page
    assert "<img src=x" not in page
    assert "<b>" not in page


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


def near(shown, known, share):
    """Whether a printed number is another, rounded: of a share one decimal, else three digits."""
    value = float(shown.replace("−", "-").replace(",", ""))
    digit = 0.1 if share else 1.0 if abs(known) >= 1000 else 10.0 ** (np.floor(np.log10(abs(known) or 1)) - 2)
    return abs(value - known) <= 0.51 * digit


@pytest.mark.slow
def test_formula_page_and_csv_match_posterior_json(tmp_path):
    # 1. Fit a formula to a table.
    data, design, out = (tmp_path / name for name in ("t.csv", "d.json", "out"))
    column = {"design": "forced", "yes": "1/6", "no": "1/6", "reports": ["no", "yes"]}
    design.write_text(json.dumps({"format": "ldpkit.design/1", "columns": {"armed": column}}))
    random = np.random.default_rng(8)
    frame = pd.DataFrame({"armed": random.choice(["no", "yes"], 900), "age": random.integers(18, 80, 900)})
    frame["region"] = random.choice(["north", "south", "west"], 900)
    frame["w"] = random.integers(800, 1200, 900)
    frame.to_csv(data, index=False)
    command = ["survey", str(design), str(data), "--formula", "armed ~ age + region"]
    more = ["--by", "region", "--weights", "w", "--method", "gaussian_approx", "--out", str(out)]
    assert main([*command, *more]) in (0, 4)
    (question,) = json.loads((out / "posterior.json").read_text())["questions"].values()
    # 2. Each quantity is a sentence of the page.
    items = re.findall(r"<li>(.*?)</li>", unescape((out / "report.html").read_text()), re.DOTALL)
    lines = [line for line in items if "90 % interval" in line]
    assert len(lines) == len(question["quantities"]) > 10
    for name, quantity in question["quantities"].items():
        begin = f"{quantity['words'][0].upper()}{quantity['words'][1:]}: "
        (line,) = [line for line in lines if line.startswith(begin)]
        bare = re.sub(r"90 % interval|(above|below) 0 with probability [^;]*\d", "", line[len(begin) :])
        shown, share = re.findall(r"−?\d[\d,]*(?:\.\d+)?(?:e[+−]\d+)?", bare), name.startswith("share")
        known = [quantity[key] * (100.0 if share else 1.0) for key in ("q50", "q05", "q95")]
        assert all(near(*pair, share) for pair in zip(shown, known, strict=True)), (line, known)
    # 3. Each parameter is a row of the table.
    rows = pd.read_csv(out / "tables.csv")
    assert len(rows) == len(question["parameters"])
    for row in rows.to_dict("records"):
        own = question["parameters"][row["parameter"]]
        assert row["n"] == question["n"]
        for column in own.keys() & set(rows.columns) - {"verdict"}:
            assert row[column] == pytest.approx(own[column], rel=1e-12), (row["parameter"], column)
