"""From stored reports to a summary: what each report adds to its version's sums.

The sums of a version are one vector: for each question, in the study's order, how many reports
answer it and then the values of its reduction (summaries.reductions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collector.storage.packing import Layout
from collector.storage.sums import ON_DISK, Sums
from ldp_client import Mechanism
from ldp_client.mechanisms.olh import Olh
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS

# Sums are read and written with every commit. Larger ones are counted from the reports when asked for.
MOST_KEPT_BYTES = 1 << 16
# Nor may counting a report take more than the rest of its way: a hash costs 40 to 100 ns.
MOST_KEPT_HASHES = 128


class Tally:
    """How reports of one version become sums.

    size: how many. hashes: computed to count one report. needs_reports: the questions whose posteriors
    need the reports themselves, so that there is no summary.
    """

    def __init__(self, study: Study, mechanisms: Mapping[str, Mechanism], layout: Layout) -> None:
        self._study = study
        self._mechanisms = mechanisms
        self._layout = layout
        sizes = [REDUCTIONS[one.name].size(one) for one in mechanisms.values()]
        self.size = len(sizes) + sum(sizes)
        self.needs_reports = [n for n, one in mechanisms.items() if REDUCTIONS[one.name].keeps_reports(one)]
        self.hashes = sum(one.choices for one in mechanisms.values() if isinstance(one, Olh))
        self._ends = np.cumsum([1 + size for size in sizes])[:-1]

    @property
    def is_kept(self) -> bool:
        """Whether the sums are kept up to date as reports arrive: small, cheap ones of what adds up."""
        small = self.size * ON_DISK.itemsize <= MOST_KEPT_BYTES and self.hashes <= MOST_KEPT_HASHES
        return small and not self.needs_reports and self._study.route is None

    def count(self, payloads: Sequence[bytes]) -> Sums:
        """The sums of reports, given as their packed payloads."""
        found = self._layout.split(payloads)
        parts = []
        for name, mechanism in self._mechanisms.items():
            values = REDUCTIONS[mechanism.name].reduce(mechanism, found[name])
            parts += [np.array([len(found[name])]), values]
        return np.concatenate(parts).astype(np.int64)

    def summary(self, sums: Sums) -> Summary:
        """The summary that sums stand for."""
        study = self._study
        parts = zip(self._mechanisms, np.split(sums, self._ends))
        questions = {name: QuestionSummary(int(part[0]), part[1:]) for name, part in parts}
        return Summary(study.id, study.version, study.digest, questions)
