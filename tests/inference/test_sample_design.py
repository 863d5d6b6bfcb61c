"""examples/sample_design.R repeats the estimates and variances of three surveys of the R package RRTCS.

tests/golden/rrtcs.json has the surveys as counts, and RRTCS's results for them. Its own matrices are not in
it: ldpkit's named designs give them.
"""

from __future__ import annotations

import json
import re
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from inference.analyses.design_file import read_design
from inference.analyses.table import Values

ROOT = Path(__file__).parents[2]
SURVEYS: dict[str, Any] = json.loads((ROOT / "tests" / "golden" / "rrtcs.json").read_text())
FIGURE = re.compile(
    r"(total|share) of \w+ = yes: (\S+), standard error (\S+), 90 % interval \S+ to \S+; "
    r"variance (\S+) in the sample \+ (\S+) of noise that it lacks"
)
# RRTCS prints seven digits: half a unit of the last one.
PRINTED = 5e-7

pytestmark = [pytest.mark.needs("R"), pytest.mark.slow]


class Figure(NamedTuple):
    """A line of the script. sampling, noise: the parts of its variance."""

    estimate: float
    error: float
    sampling: float
    noise: float


def people_of(survey: dict[str, Any]) -> pd.DataFrame:
    """A row for each person of a survey's counts, with the columns that the script reads."""
    counts = pd.DataFrame(survey["rows"], columns=survey["columns"])
    people = counts.melt(
        [name for name in counts if name not in ("no", "yes")], ["no", "yes"], "report", "people"
    )
    people = people.loc[people.index.repeat(people["people"])].drop(columns="people")
    people["weight"] = 1 / people["inclusion"]
    # RRTCS takes a stratum's mean probability of inclusion for the share that was drawn.
    people["drawn"] = people.groupby("stratum")["inclusion"].transform("mean")
    return people


def matrix_of(design: dict[str, str]) -> Values:
    """P(report | answer) of a named design, as ldpkit reads it."""
    document = {"format": "ldpkit.design/1", "columns": {"report": design}}
    (column,) = read_design(json.dumps(document)).columns
    return column.parts[0].channel.chances[0, 0]


def run(*arguments: Path | str) -> subprocess.CompletedProcess[str]:
    command = ["Rscript", str(ROOT / "examples" / "sample_design.R"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def figures(
    folder: Path, people: pd.DataFrame, question: str, design: dict[str, str] | None
) -> dict[str, Figure]:
    """What the script prints: {total or share: its figure}."""
    arguments: list[Path | str] = [folder / "table.csv", question]
    people.to_csv(arguments[0], index=False)
    if design is not None:
        matrix = [[str(Fraction(one).limit_denominator(10**6)) for one in row] for row in matrix_of(design)]
        column = {"answers": ["no", "yes"], "reports": ["no", "yes"], "matrix": matrix}
        document = {"format": "ldpkit.design/1", "columns": {question: column}}
        arguments.append(folder / "design.json")
        Path(arguments[-1]).write_text(json.dumps(document))
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    lines = [FIGURE.fullmatch(line) for line in done.stdout.splitlines()]
    return {line[1]: Figure(*map(float, line.groups()[1:])) for line in lines if line}


@pytest.mark.parametrize("question", ["copied", "drug"])
def test_script_repeats_printed_shares_of_simple_random_sample(tmp_path, question):
    survey = SURVEYS["students"]
    expected = survey["questions"][question]
    drawn = survey["people"] / survey["population"]
    reports = ["yes"] * expected["yes"] + ["no"] * (survey["people"] - expected["yes"])
    people = pd.DataFrame({question: reports, "weight": 1 / drawn, "drawn": drawn})
    design = {"design": "unrelated", "p": survey["p"], "prevalence": expected["prevalence"]}
    share = figures(tmp_path, people, question, design)["share"]
    assert share.estimate == pytest.approx(expected["share"], rel=PRINTED)
    assert share.error**2 == pytest.approx(expected["variance"], rel=PRINTED)


def test_script_repeats_total_and_jackknife_of_strata_with_unequal_weights(tmp_path):
    survey = SURVEYS["infertility"]
    total = figures(tmp_path, people_of(survey), "report", survey["design"])["total"]
    assert total.estimate == pytest.approx(survey["total"], rel=PRINTED)
    assert total.sampling == pytest.approx(survey["jackknife"], rel=PRINTED)


def test_script_repeats_total_and_jackknife_of_stratified_clusters(tmp_path):
    survey = SURVEYS["infidelity"]
    total = figures(tmp_path, people_of(survey), "report", survey["design"])["total"]
    assert total.estimate == pytest.approx(survey["total"], rel=PRINTED)
    assert total.sampling == pytest.approx(survey["jackknife"], rel=PRINTED)
    assert total.noise == pytest.approx(survey["noise"], rel=PRINTED)
