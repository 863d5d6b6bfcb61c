"""From data holders' reports to the statistics that methods take."""

from __future__ import annotations

import numpy as np

from inference.methods.statistics import HolderStatistics
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
    values = np.asarray([values for _, values in found]).reshape(len(found), -1)
    for index, (i, j) in enumerate(mechanism.coordinates):
        row, column = i - 1 + constant, j - 1 + constant
        sums[:, row, column] = sums[:, column, row] = values[:, index]
        noise[row, column] = noise[column, row] = mechanism.noise_scale[index]
    if constant:
        sums[:, 0, 0], noise[0, 0] = counts, mechanism.count_noise_sd
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
    )
