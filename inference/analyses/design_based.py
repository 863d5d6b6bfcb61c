"""Shares as survey samplers estimate them: weighted, with the channel undone, and a linearised variance.

No model of the outcome: Horvitz and Thompson's estimator in Hájek's form, of scores that are unbiased for
each person's answer whatever it is (Chaudhuri 2011). Its interval is wide where the model's is not.
"""

from __future__ import annotations

import numpy as np

from inference.analyses.result import Quantity
from inference.analyses.table import Codes, Private, Table, Values
from ldp_client.documents.errors import InputError

CHAINS, DRAWS = 4, 1000


def design_based(table: Table, name: str, weights: str, seed: int = 0) -> list[Quantity]:
    """The weighted shares of a private column's answers, each with the normal law of its estimate.

    Raises InputError where the reports do not tell the answers apart, or a share is open.
    """
    column = table.private[name]
    if column.unknown:
        raise InputError(
            f"{name}: its design leaves a share open, and an estimate with weights needs it known"
        )
    if column.missing:
        raise InputError(f"{name} has rows without a report: leave them out before weights are used")
    shares, sds = estimate(scores_of(column), table.public[weights].to_numpy(np.float64), table.counts)
    random = np.random.default_rng(seed)
    places = [1] if len(column.answers) == 2 else range(len(column.answers))
    return [
        Quantity(
            f"design-based share {name} = {column.answers[place]}",
            f"share of {name} = {column.answers[place]} as estimated with weights alone, without a model",
            random.normal(shares[place], sds[place], (CHAINS, DRAWS)),
        )
        for place in places
    ]


def scores_of(column: Private) -> Values:
    """(rows, answers): numbers whose mean over a person's reports is 1 at the true answer, else 0."""
    if column.looks is None:
        raise InputError(f"{column.name}: its reports have no scores without bias")
    looks, scores = column.looks, np.zeros_like(column.vectors)
    for part, matrix in enumerate(looks.chances):
        if np.linalg.matrix_rank(matrix) < len(column.answers):
            raise InputError(f"{column.name}: its reports do not tell all answers apart without a model")
        inside = looks.part == part
        scores[: len(inside)][inside] = looks.shows[inside] @ np.linalg.pinv(matrix)
    return np.asarray(scores[column.codes])


def estimate(scores: Values, weights: Values, counts: Codes) -> tuple[Values, Values]:
    """Weighted means (answers,) and their sds, people being drawn independently of one another."""
    total = float(counts @ weights)
    shares = (counts * weights) @ scores / total
    residuals = weights[:, None] * (scores - shares)
    n = float(counts.sum())
    variance = n / max(n - 1, 1) * (counts @ residuals**2) / total**2
    return shares, np.sqrt(variance)
