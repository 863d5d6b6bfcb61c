"""Details of single reports that summaries lose: ones, hash seeds, last bits, and repeats."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ldp_client import Mechanism, mechanisms_of
from ldp_client.mechanisms.memoized import MemoizedSue
from ldp_client.mechanisms.number import NumberMechanism
from ldp_client.mechanisms.olh import PRIME, SEED_BYTES, Olh
from ldp_client.mechanisms.unary import Oue, Sue
from schemas import Report, Study
from summaries.reductions.base import Payloads, signed

Counts = NDArray[np.int64]

CHUNK = 8192
BINS = 256
# Repeats are checked among the first reports only: 8 MB.
MOST_KEPT = 1 << 20
# Odd numbers that mix a seed's parts into one word.
MIXING = np.asarray([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


def has_ones(mechanism: Mechanism) -> bool:
    """Return True if its reports are one noisy bit for each choice, independent given the answer."""
    return isinstance(mechanism, Oue | Sue | MemoizedSue)


def has_details(mechanism: Mechanism) -> bool:
    """Return True if its summaries lose details of its reports."""
    return has_ones(mechanism) or isinstance(mechanism, Olh | NumberMechanism)


@dataclass
class Detail:
    """One question's reports, added up.

    ones (choices + 1,): reports with each number of ones. bins (rows, 256): the highest bits of each
    coefficient of hash seeds, or the lowest bits of numbers. words: the first reports' seeds or numbers.
    """

    mechanism: Mechanism
    n: int = 0
    ones: Counts | None = None
    bins: Counts | None = None
    _words: list[NDArray[np.uint64]] = field(default_factory=list)
    _kept: int = 0

    def add(self, payloads: Payloads) -> None:
        """Add payloads (n, bytes)."""
        self.n += len(payloads)
        if has_ones(self.mechanism):
            choices = 8 * payloads.shape[1]
            ones = np.bincount(np.bitwise_count(payloads).sum(axis=1, dtype=np.int64), minlength=choices + 1)
            self.ones = ones if self.ones is None else self.ones + ones
            return
        if isinstance(self.mechanism, Olh):
            seeds = np.ascontiguousarray(payloads[:, :SEED_BYTES]).view(">u4").astype(np.uint64)
            self._count(seeds * np.uint64(BINS) // np.uint64(PRIME), (seeds * MIXING).sum(axis=1))
        else:
            values = signed(payloads)[:, 0].view(np.uint32).astype(np.uint64)
            self._count(values[:, None] % np.uint64(BINS), values)

    def _count(self, places: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
        bins = np.stack([np.bincount(column.astype(np.int64), minlength=BINS) for column in places.T])
        self.bins = bins if self.bins is None else self.bins + bins
        self._words.append(words[: MOST_KEPT - self._kept])
        self._kept += len(self._words[-1])

    def most_alike(self) -> tuple[int, int]:
        """Return how often the commonest seed or number occurred, and among how many reports."""
        words = np.concatenate(self._words) if self._words else np.zeros(0, np.uint64)
        return (int(np.unique(words, return_counts=True)[1].max()) if len(words) else 0), len(words)


class Details:
    """The details of each question that has any, collected while its reports are read."""

    def __init__(self, study: Study) -> None:
        mechanisms = mechanisms_of(study) if study.protocol is None else {}
        self._details = {name: Detail(one) for name, one in mechanisms.items() if has_details(one)}
        self._waiting: dict[str, list[bytes]] = {name: [] for name in self._details}

    def watch(self, reports: Iterable[Report]) -> Iterator[Report]:
        """Yield the same reports, and collect their details."""
        for report in reports:
            for name, waiting in self._waiting.items():
                payload = report.payloads.get(name)
                if payload is not None:
                    waiting.append(payload)
                    if len(waiting) == CHUNK:
                        self._add(name)
            yield report

    def _add(self, name: str) -> None:
        waiting = self._waiting[name]
        if waiting:
            joined = np.frombuffer(b"".join(waiting), np.uint8)
            self._details[name].add(joined.reshape(len(waiting), -1))
            waiting.clear()

    def by_question(self) -> dict[str, Detail]:
        """Return {question: its details}, for questions whose reports were watched."""
        for name in self._waiting:
            self._add(name)
        return {name: detail for name, detail in self._details.items() if detail.n}
