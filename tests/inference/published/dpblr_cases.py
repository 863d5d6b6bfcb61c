"""Fixed noisy statistics, and what the code of DPBLR's authors makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.conjugate import ConjugatePrior
from inference.published.gibbs_ss import Observed

FILE = json.loads((Path(__file__).parents[2] / "golden" / "methods" / "dpblr.json").read_text())
PARAMETERS = ("constant", "slope", "variance")


class Expected(NamedTuple):
    """Of one parameter."""

    mean: float
    sd: float
    error: float


def cases(method: str) -> dict[str, dict[str, Any]]:
    """The cases that have a posterior of this method to compare with."""
    return {name: case for name, case in FILE["cases"].items() if method in case["posterior"]}


def expected(case: dict[str, Any], method: str) -> dict[str, Expected]:
    """{parameter: what to agree with}."""
    return {name: Expected(*case["posterior"][method][name]) for name in PARAMETERS}


def prior() -> ConjugatePrior:
    """Of the authors' experiments, one feature."""
    stated = FILE["prior"]
    return ConjugatePrior(
        np.zeros(2),
        np.eye(2) / stated["theta_precision"],
        np.float64(stated["shape"]),
        np.float64(stated["rate"]),
        np.array([[float(stated["scatter"])]]),
        np.float64(stated["freedom"]),
        np.zeros(1),
        np.float64(stated["mean_records"]),
    )


def statistics(case: dict[str, Any], half: bool = False) -> HolderStatistics:
    """As released; half: what was released beside the fourth moments, which got the other half of ε."""
    suffix = "_of_half" if half else ""
    sums = np.array(case["sums" + suffix])[None]
    noise = np.full((3, 3), case["scale" + suffix])
    records = float(case["records"])
    sums[0, 0, 0], noise[0, 0] = records, 0.0
    powers = np.add.outer(np.add.outer([0, 1], [0, 1]), np.add.outer([0, 1], [0, 1]))
    fourth = np.array(case["moments"])[powers] if half else None
    return HolderStatistics(
        sums, noise, np.array([records]), "laplace", intercept=True, fourth_moments=fourth
    )


def counted_again(data: Observed, scale: float) -> Observed:
    """The noisy Σx as two releases, each with its noise; with `scale` = inf the second says nothing."""
    return data._replace(
        rows=np.append(data.rows, 0.0),
        columns=np.append(data.columns, 1.0),
        released=np.concatenate([data.released, data.released[:, :1]], axis=1),
        scale=np.append(data.scale, scale),
    )
