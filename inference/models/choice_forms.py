"""How the reports of a choice enter its likelihood: exactly, or by a normal form (METHODS 3)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from inference.likelihoods import PackedSupportSets
from inference.likelihoods.choices import counts
from inference.likelihoods.choices.supports import PackedSets, pack_sets
from inference.likelihoods.common import CellCounts
from inference.models.base import Draws, Replicates
from inference.results.intervals import REFUSED
from ldp_client import Mechanism, mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.subset_selection import SubsetSelection
from schemas import Report, Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS, sets_of
from summaries.reductions.choice import column_sums, keeps_patterns, pattern_bits

Values = NDArray[np.float64]
# A binomial count is near enough to normal when its variance is at least this.
FEWEST_VARIANCE = 10.0
TOO_FEW = (
    "the reports are too few for this many choices at this epsilon: their sums are modelled as normal, which "
    "is inaccurate, and the intervals are approximate"
)


@dataclass(frozen=True)
class Form:
    """law: (shares, data) -> (law of the reports, observed value). data: arrays of the reports.

    notes: on approximations. replicates: sums of reports to check, if the law is of each report.
    """

    law: Callable[[Array, Mapping[str, Array]], tuple[Distribution, Array]]
    data: Mapping[str, object]
    notes: tuple[str, ...] = ()
    replicates: Replicates | None = None


def form_of(mechanism: Mechanism, summary: QuestionSummary) -> Form:
    """Return a summary's form: exact if the summary is sufficient, else normal in the support counts."""
    choice = cast(ChoiceMechanism, mechanism)
    counted, k = REDUCTIONS[mechanism.name].counts(mechanism), choice.choices
    p, q = float(choice.p), float(choice.q)
    # 1. Reports, or counts of all sets, each with its own probability.
    if summary.reports is not None:
        return _sets_form(choice, pack_sets(sets_of(mechanism, summary.reports)))
    if counted not in ("columns", "choices") and keeps_patterns(k):
        rows = np.packbits(pattern_bits(k).astype(np.uint8), axis=1, bitorder="little")
        return _sets_form(choice, PackedSets(rows[None], summary.values[None]))
    # 2. Counts of columns or choices, which are all reports that there are.
    if isinstance(choice, Hadamard):
        columns = partial(counts.hadamard_cells, p=p, blocks=choice.blocks, width=choice.width)
        return _counts(summary, lambda shares, n: CellCounts(columns(shares), n))
    size = choice.size if isinstance(choice, SubsetSelection) else None
    if counted == "choices" or size == 1:
        return _counts(summary, lambda shares, n: CellCounts(counts.response_cells(shares, p), n))
    # 3. Counts of supports.
    notes = [f"the likelihood is normal in the counts of supports of the {k} choices"]
    notes += [TOO_FEW] if summary.n * q * (1 - q) < FEWEST_VARIANCE else []
    if size is None:
        return _counts(summary, lambda shares, n: counts.bit_sums(shares, p, q, n), notes)
    return _counts(summary, lambda shares, n: counts.subset_counts(shares, p, size, n), notes)


def _counts(
    summary: QuestionSummary, law: Callable[[Array, Array], Distribution], notes: Sequence[str] = ()
) -> Form:
    """Return the form of a law of (shares, n), observed as the summary's values."""
    data = {"n": summary.n, "values": summary.values}
    return Form(lambda shares, data: (law(shares, data["n"]), data["values"]), data, tuple(notes))


def supports_of(choice: ChoiceMechanism, summary: QuestionSummary) -> Values:
    """Return how many reports support each choice, (k,)."""
    if summary.reports is not None:
        return column_sums(sets_of(choice, summary.reports), choice.choices).astype(np.float64)
    counted = REDUCTIONS[choice.name].counts(choice)
    if counted != "choices" and keeps_patterns(choice.choices):
        return np.asarray(summary.values @ pattern_bits(choice.choices), np.float64)
    return summary.values.astype(np.float64)


def unbiased_shares(choice: ChoiceMechanism, summary: QuestionSummary) -> Values:
    """Return unbiased estimates of the shares (k,): (c/n − q)/(p − q) from the number c of supports.

    Under Hadamard response, the transform of the columns' frequencies, corrected for other blocks.
    """
    if not isinstance(choice, Hadamard):
        p, q, supports = float(choice.p), float(choice.q), supports_of(choice, summary)
        return np.asarray((supports / max(summary.n, 1) - q) / (p - q))
    columns = summary.values.reshape(choice.blocks, choice.width) / max(summary.n, 1)
    with jax.enable_x64(True):
        transformed = np.asarray(counts.walsh_hadamard(jnp.asarray(columns, float)))[:, 1:].reshape(-1)
    return np.asarray(transformed[: choice.choices] / column_gain(choice), np.float64)


def column_gain(choice: Hadamard) -> float:
    """Return P(a report supports its answer) minus P(it supports another block's choice)."""
    return float(choice.p) - (1 - float(choice.p)) / (2 * choice.blocks - 1)


def log_odds(choice: ChoiceMechanism) -> float:
    """Return the exact ε: the log odds of a report under a choice inside its set versus one outside."""
    often, seldom = choice.odds
    return float(np.log1p((often - seldom) / seldom))


def _sets_form(choice: ChoiceMechanism, sets: PackedSets) -> Form:
    odds = log_odds(choice)

    def law(shares: Array, data: Mapping[str, Array]) -> tuple[Distribution, Array]:
        return PackedSupportSets(shares, odds, data["counts"]), data["sets"]

    rows, repeats = sets.rows.reshape(-1, sets.rows.shape[-1]), sets.counts.ravel()
    data = {"sets": sets.rows, "counts": sets.counts}
    return Form(law, data, replicates=supports(choice, rows, repeats))


def supports(mechanism: ChoiceMechanism, rows: NDArray[np.uint8], counts: NDArray[np.int64]) -> Replicates:
    """Return replicates of the number of reports that support each choice, (k,).

    rows: packed sets (sets, bytes); counts: the reports of each set. The means follow from p, q and the
    shares. The covariance comes from the reports, whose deviations are weighted by normal numbers (the
    multiplier bootstrap).
    """
    rows, counts = rows[counts > 0], counts[counts > 0]
    p, q, n = float(mechanism.p), float(mechanism.q), int(counts.sum())
    bits = np.unpackbits(rows, axis=1, bitorder="little", count=mechanism.choices)

    def draw(sites: Draws, random: Generator) -> Values:
        weights = np.sqrt(counts) * random.normal(size=len(counts))
        weights -= counts * weights.sum() / n
        return np.asarray(n * (q + (p - q) * _shares(sites)) + weights @ bits)

    return Replicates(n, (counts @ bits).astype(np.float64), draw)


def _shares(sites: Draws) -> Values:
    """Return the share of each choice, refusals last if present; for a yes/no, `p` is the share of yes."""
    found = np.asarray(sites["p"])
    shares = np.maximum(found if found.ndim else np.stack([1 - found, found]), 0)
    if REFUSED in sites:
        shares = np.append((1 - sites[REFUSED]) * shares, sites[REFUSED])
    return np.asarray(shares / shares.sum())


# Reports × choices. At this limit, the exact likelihood takes about a millisecond an evaluation.
MOST_BITS = 1 << 18


class SmallSamples:
    """Keeps the reports of each question whose summary would lose information, while they are few.

    Their exact likelihood is then cheap.
    """

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
