"""Golden fits of dice tables: a report's chances are a row of the design's matrix."""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from inference.analyses.analysing import analyse_table
from inference.analyses.survey import load_survey
from tests.inference.golden.case import Case, Draws, Question, stated
from tests.inference.golden.reference import Points, Target, Values

WIDE = stated("normal", loc=0, scale="1.5")
Matrix = Sequence[Sequence[str]]
FORCED: Matrix = [["5/6", "1/6"], ["1/6", "5/6"]]
KUK: Matrix = [["0.09", "0.42", "0.49"], ["0.64", "0.32", "0.04"]]
THREE: Matrix = [["0.6", "0.3", "0.1"], ["0.2", "0.7", "0.1"], ["0.1", "0.2", "0.7"]]


class Table(NamedTuple):
    """What people said (codes of reports), whether each is married, the dice of each row, and its columns."""

    said: Values
    married: Values
    matrices: Values
    rows: list[dict[str, str]]
    design: dict[str, Any]

    @property
    def digest(self) -> str:
        """Of what was said."""
        return hashlib.sha256(repr(self.rows).encode()).hexdigest()


def _floats(matrix: Matrix) -> Values:
    return np.array([[float(Fraction(one)) for one in row] for row in matrix])


def table(parts: Mapping[str, Matrix], answers: Sequence[str], people: int, **column: Any) -> Table:
    """A survey with dice; parts: the matrix of each arm, or of all under ""."""
    random = np.random.default_rng(20261201)
    married, arm = random.random(people) < 0.6, random.integers(0, len(parts), people)
    shares = np.where(married[:, None], [0.5, 0.3, 0.2], [0.7, 0.2, 0.1])[:, : len(answers)]
    shares = shares / shares.sum(axis=1, keepdims=True)
    answer = (random.random((people, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    matrices = np.array([_floats(one) for one in parts.values()])[arm]
    chances = matrices[np.arange(people), answer]
    said = (random.random((people, 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    names = list(parts)
    rows = [
        {"q": f"r{said[place]}", "married": str(int(married[place])), "arm": names[arm[place]] or "all"}
        for place in range(people)
    ]
    reports = [f"r{place}" for place in range(matrices.shape[2])]
    head = {"answers": list(answers), "reports": reports, **column}
    if len(parts) == 1:
        head["matrix"] = [list(row) for row in parts[names[0]]]
    else:
        head["matrices"] = [
            {"rows": {"arm": name}, "matrix": [list(row) for row in one]} for name, one in parts.items()
        ]
    design = {"format": "ldpkit.design/1", "columns": {"q": head}}
    return Table(said.astype(float), married.astype(float), matrices, rows, design)


def fitted(formula: str, priors: Mapping[str, Question]) -> Callable[[Table], Draws]:
    """Of the table as a file."""

    def draws(data: Table) -> Draws:
        with tempfile.TemporaryDirectory() as folder:
            path, design = Path(folder) / "survey.csv", Path(folder) / "design.json"
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(data.rows[0]))
                writer.writeheader()
                writer.writerows(data.rows)
            design.write_text(json.dumps(data.design), encoding="utf-8")
            read, _ = load_survey(str(path), str(design), formula)
        return dict(analyse_table(read, formula, priors=priors).draws)

    return draws


def _counted(data: Table) -> tuple[Values, Values, Values]:
    """Of distinct rows whether married, P(report | answer) (rows, answers), and how many."""
    chances = data.matrices[np.arange(len(data.said)), :, data.said.astype(int)]
    keys, counts = np.unique(np.column_stack([data.married, chances]), axis=0, return_counts=True)
    return keys[:, :1], keys[:, 1:], counts


def _yes_no(data: Table, scale: float) -> Target:
    """scale: by so much the design's distance from saying nothing is divided."""
    married, chances, counts = _counted(data)
    chances = chances.mean(axis=1, keepdims=True) + (chances - chances.mean(axis=1, keepdims=True)) / scale

    def log_density(points: Points) -> Values:
        yes = special.expit(points["Intercept"] + married * points["married"])
        prior = sum(stats.norm(0, 1.5).logpdf(points[name]) for name in ("Intercept", "married"))
        return np.asarray(counts @ np.log(chances[:, :1] * (1 - yes) + chances[:, 1:] * yes) + prior)

    return Target({"Intercept": "real", "married": "real"}, log_density)


def _ordered(data: Table, scale: float) -> Target:
    del scale
    married, chances, counts = _counted(data)
    share = float(counts @ married[:, 0] / counts.sum())

    def log_density(points: Points) -> Values:
        below = [special.expit(points["cuts"][:, place] - married * points["married"]) for place in (0, 1)]
        shares = np.stack([below[0], below[1] - below[0], 1 - below[1]])
        # A prior of thresholds, also a stated one, is of those at the columns' means.
        middles = points["cuts"] - share * points["married"][:, None]
        prior = stats.norm(0, 1.5).logpdf(middles).sum(axis=1)
        prior = prior + stats.norm(0, 1.5).logpdf(points["married"])
        return np.asarray(counts @ np.log(np.einsum("rk,krp->rp", chances, shares)) + prior)

    def quantities(points: Points) -> Points:
        cuts = {f"threshold[{name}]": points["cuts"][:, place] for place, name in enumerate("ab")}
        return {"married": points["married"], **cuts}

    return Target({"married": "real", "cuts": "ordered 2"}, log_density, quantities)


BOTH = {"Intercept": WIDE, "married": WIDE}
BY_MARRIED = fitted("q ~ married", BOTH)
NO_YES = ("no", "yes")

CASES: dict[str, Case] = {
    "forced": Case(lambda: table({"": FORCED}, NO_YES, 2_000), BY_MARRIED, _yes_no),
    "cards of three kinds": Case(lambda: table({"": KUK}, NO_YES, 2_000), BY_MARRIED, _yes_no),
    "two arms": Case(lambda: table({"a": FORCED, "b": FORCED[::-1]}, NO_YES, 2_000), BY_MARRIED, _yes_no),
    "ordered": Case(
        lambda: table({"": THREE}, ("a", "b", "c"), 2_000, ordered=True),
        fitted("q ~ married", {"threshold": WIDE, "married": WIDE}),
        _ordered,
    ),
    "many, forced": Case(lambda: table({"": FORCED}, NO_YES, 40_000), BY_MARRIED, _yes_no, True),
}
