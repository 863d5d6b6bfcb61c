"""From data holders' reports to the statistics that methods take."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics, Matrix
from ldp_client.mechanisms.tables import TableMechanism
from schemas import Question
from summaries import QuestionSummary


def holder_statistics(
    question: Question, mechanism: TableMechanism, summary: QuestionSummary
) -> HolderStatistics:
    """The holders' noisy sums, each holder's report kept; symmetric, in scaled units.

    With an intercept entry (0, 0) is the number of records as it was released, with its noise.
    """
    assert summary.reports is not None
    constant = int(mechanism.intercept)
    size = len(mechanism.features) + 1 + constant
    found = [mechanism.entries(bytes(payload)) for payload in summary.reports]
    counts = np.asarray([count for count, _ in found], dtype=float)
    sums, noise = np.zeros((len(found), size, size)), np.full((size, size), np.inf)
    values = np.asarray([values for _, values in found]).reshape(len(found), len(mechanism.coordinates))
    for index, (i, j) in enumerate(mechanism.coordinates):
        row, column = i - 1 + constant, j - 1 + constant
        sums[:, row, column] = sums[:, column, row] = values[:, index]
        noise[row, column] = noise[column, row] = mechanism.noise_scale[index]
    if constant:
        sums[:, 0, 0], noise[0, 0] = counts, mechanism.count_noise_sd
    powers = [mechanism.power_sums(bytes(payload)) for payload in summary.reports]
    return HolderStatistics(
        sums=sums,
        noise=noise,
        counts=counts,
        law="laplace" if mechanism.law == "laplace" else "gaussian",
        intercept=mechanism.intercept,
        count_sd=mechanism.count_noise_sd,
        norm=float(question.norm or 1),
        epsilon=float(question.mechanism.epsilon),
        delta=float(question.mechanism.delta or 0),
        average=mechanism.average,
        fourth_moments=_fourth_moments(mechanism, sums, counts, powers) if mechanism.products else None,
    )


def _fourth_moments(
    mechanism: TableMechanism, sums: Matrix, counts: Matrix, powers: list[list[float]]
) -> Matrix | None:
    """(q, q, q, q) means over all holders' records; those with the constant squared are of `sums`."""
    if not powers:
        return None
    size, constant = sums.shape[-1] - 1, int(mechanism.intercept)
    records = max(counts.sum(), 1.0)
    found = dict(zip(mechanism.products, np.sum(powers, axis=0) / records, strict=True))
    if constant:
        second = sums[:, :size, :size].sum(axis=0) / records
        second[0, 0] = 1.0
        for i, j in combinations_with_replacement(range(size), 2):
            found[tuple(index for index in (i, j) if index)] = second[i, j]
    fourth = np.empty((size,) * 4)
    for place in np.ndindex(fourth.shape):
        fourth[place] = found[tuple(sorted(i + 1 - constant for i in place if i + 1 - constant))]
    return fourth
