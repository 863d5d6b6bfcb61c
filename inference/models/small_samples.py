"""Keeping the reports of a choice themselves while they are few: their exact likelihood is cheap then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ldp_client import Mechanism, mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Report, Study
from summaries.reductions import REDUCTIONS, sets_of
from summaries.reductions.choice import keeps_patterns

# Reports × choices: at this many, the exact likelihood takes about a millisecond an evaluation.
MOST_BITS = 1 << 18


class SmallSamples:
    """The reports of each question whose summary would lose information, while they are few."""

    def __init__(self, study: Study) -> None:
        mechanisms = mechanisms_of(study)
        self._mechanisms = {name: one for name, one in mechanisms.items() if _loses(one)}
        self._payloads: dict[str, list[bytes]] = {name: [] for name in self._mechanisms}

    def watch(self, reports: Iterable[Report]) -> Iterator[Report]:
        """The same reports, of which the payloads of small samples are kept."""
        for report in reports:
            for name in list(self._payloads):
                self._keep(name, report.payloads.get(name))
            yield report

    def _keep(self, name: str, payload: bytes | None) -> None:
        kept = self._payloads[name]
        if payload is not None:
            kept.append(payload)
        if len(kept) * cast(ChoiceMechanism, self._mechanisms[name]).choices > MOST_BITS:
            del self._payloads[name]

    def rows(self, name: str) -> NDArray[np.uint8] | None:
        """The packed sets (n, ceil(k / 8)) of a question's reports; None where counts do, or must do."""
        if not self._payloads.get(name):
            return None
        mechanism, payloads = self._mechanisms[name], b"".join(self._payloads[name])
        rows = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, mechanism.payload_size)
        return sets_of(mechanism, rows)


def _loses(mechanism: Mechanism) -> bool:
    """Whether the summary has how many reports support each choice, which is not sufficient."""
    lossy = REDUCTIONS[mechanism.name].counts(mechanism) in ("bits", "subsets")
    return lossy and not keeps_patterns(cast(ChoiceMechanism, mechanism).choices)
