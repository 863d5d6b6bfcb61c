"""Data that models read from the reports themselves: data holders' statistics, and few reports of a choice.

The reports of a choice are kept while they are few, because their exact likelihood is then cheap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import cast

import numpy as np

from inference.likelihoods.holders import HolderStatistics, Matrix
from ldp_client import mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.tables.base import TableMechanism
from schemas import Report, Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from summaries.reductions.choice import keeps_patterns


def holder_statistics(mechanism: TableMechanism, summary: QuestionSummary) -> HolderStatistics:
    """Return each holder's noisy sums as symmetric matrices in scaled units.

    With an intercept, entry (0, 0) is the released number of records, with its noise.
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
        average=mechanism.average,
        fourth_moments=_fourth_moments(mechanism, sums, counts, powers) if mechanism.products else None,
    )


def _fourth_moments(
    mechanism: TableMechanism, sums: Matrix, counts: Matrix, powers: list[list[float]]
) -> Matrix | None:
    """Return means (q, q, q, q) over all holders' records; with the constant squared, from `sums`."""
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


# Reports × choices. At this limit, the exact likelihood takes about a millisecond an evaluation.
MOST_BITS = 1 << 18


class SmallSamples:
    """Keeps the reports of each question whose summary would lose information, while they are few."""

    def __init__(self, study: Study) -> None:
        mechanisms = mechanisms_of(study)
        # Of these the summary holds only insufficient counts of the reports that support each choice.
        self._mechanisms = {
            name: one
            for name, one in mechanisms.items()
            if REDUCTIONS[one.name].counts(one) in ("bits", "subsets")
            and not keeps_patterns(cast(ChoiceMechanism, one).choices)
        }
        self._payloads: dict[str, list[bytes]] = {name: [] for name in self._mechanisms}

    def watch(self, reports: Iterable[Report]) -> Iterator[Report]:
        """Yield the same reports, keeping the payloads of small samples."""
        for report in reports:
            for name, kept in list(self._payloads.items()):
                if name in report.payloads:
                    kept.append(report.payloads[name])
                if len(kept) * cast(ChoiceMechanism, self._mechanisms[name]).choices > MOST_BITS:
                    del self._payloads[name]
            yield report

    def beside(self, name: str, summary: QuestionSummary) -> QuestionSummary:
        """Return a summary with its reports, unless its counts are sufficient or the reports too many."""
        if not self._payloads.get(name):
            return summary
        payloads = np.frombuffer(b"".join(self._payloads[name]), dtype=np.uint8)
        return replace(summary, reports=payloads.reshape(-1, self._mechanisms[name].payload_size))
