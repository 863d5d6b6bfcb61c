"""Check that reports look as their mechanism sends them, whatever people answered.

Each test is of a statistic whose law, or a bound of it, follows from the mechanism alone: how many ones a
report of unary bits has; the least and largest frequency of support of a choice; uniform hash seeds and last
bits of numbers; repeats of one seed or number; spikes in a histogram under smooth noise; how often each
product is drawn; how far out the entries of records are. Tests are exact or bounds, and all tests of one fit
share one rate of false alarms.
"""

from collections.abc import Iterator, Mapping
from math import erfc, exp, lgamma, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.false_reports.details import BINS, Detail, has_ones
from inference.models.choice_forms import supports_of
from inference.models.number import cell_edges
from inference.results.verdict import FALSE_ALARM, FIT, NOTE, Finding, findings
from inference.tail_probabilities import (
    binomial_at_least,
    binomial_at_most,
    binomial_exactly,
    squares_beyond,
)
from ldp_client import Mechanism
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from ldp_client.mechanisms.olh import Olh
from ldp_client.mechanisms.sampled_products import SampledProducts
from summaries import QuestionSummary
from summaries.noise_tails import ENTRY_SDS, NORM_CHANCES, PARTS, SD, has_tails, reach_of
from summaries.reductions.choice import keeps_patterns, pattern_bits

Vector = NDArray[np.float64]

# Sds beyond a bound, at which reports under Gaussian noise are counted.
SDS = (0.0, 2.0, 3.0, 4.0, 5.0)
# The highest density of a number's noise, in units of 1 / its scale.
PEAK = {"laplace": 0.5, "gaussian": 1 / sqrt(2 * np.pi)}
NOT_COUNTED = (
    "this summary does not show how far out single reports are, so a few false reports would be hidden: fit "
    "the file of reports, or a new summary from `ldpkit summarize`"
)


class Deviation(NamedTuple):
    """p: the highest probability that honest reports deviate so far, whatever people answered; words: how."""

    p: float
    words: str


def conformance(
    mechanisms: Mapping[str, Mechanism],
    parts: Mapping[str, QuestionSummary],
    details: Mapping[str, Detail | None],
) -> dict[str, tuple[Finding, ...]]:
    """Return {question: findings}: why its reports cannot all come from its mechanism, or are not all tested.

    details: of the questions whose reports were read.
    """
    came = {name: mechanism for name, mechanism in mechanisms.items() if parts[name].n}
    every = {name: list(deviations(one, parts[name], details.get(name))) for name, one in came.items()}
    level = FALSE_ALARM / max(sum(map(len, every.values())), 1)
    found = {}
    for name, tested in every.items():
        reasons = [
            f"{name}: {one.words}, whatever people answer: some reports are false, or of another device. "
            "Find their senders before you use any number"
            for one in tested
            if one.p < level
        ]
        untested = has_tails(came[name]) and parts[name].tails is None
        found[name] = (*findings(FIT, reasons), *findings(NOTE, (NOT_COUNTED,) if untested else ()))
    return found


def deviations(mechanism: Mechanism, part: QuestionSummary, detail: Detail | None) -> Iterator[Deviation]:
    """Yield all tests that a question's summary allows, and all tests of its details."""
    if isinstance(mechanism, ChoiceMechanism):
        if type(mechanism).support_probability is ChoiceMechanism.support_probability:
            # Every choice is supported with probability at least q and at most p.
            counts, n = supports_of(mechanism, part), part.n
            few = binomial_at_most(counts, n, float(mechanism.q)).min()
            many = binomial_at_least(counts, n, float(mechanism.p)).min()
            words = f"some choice is reported by fewer, or by more, people than `{mechanism.name}` allows"
            yield Deviation(min(1.0, 2 * len(counts) * float(min(few, many))), words)
        yield from _ones(mechanism, part, detail)
    elif isinstance(mechanism, NumberMechanism):
        yield _beyond(mechanism, part)
        yield _spikes(mechanism, part)
    elif isinstance(mechanism, SampledProducts):
        yield from _products(mechanism, part)
    if part.tails is not None:
        yield _far_out(mechanism, part.n, part.tails)
    if detail is not None and detail.bins is not None:
        yield from _draws(detail, detail.bins)


def _ones(mechanism: ChoiceMechanism, part: QuestionSummary, detail: Detail | None) -> Iterator[Deviation]:
    """Test how many choices reports support: each number for independent bits, else the total."""
    k, p, q = mechanism.choices, float(mechanism.p), float(mechanism.q)
    if not has_ones(mechanism) and not isinstance(mechanism, Olh):
        return
    words = f"`{mechanism.name}` does not send so many reports that support many, or few, choices"
    ones = None if detail is None or detail.ones is None else detail.ones[: k + 1]
    if has_ones(mechanism) and keeps_patterns(k):
        sizes = pattern_bits(k).sum(axis=1).astype(int)
        ones = np.bincount(sizes, part.values, k + 1).astype(np.int64)
    if ones is not None:
        others = binomial_exactly(np.arange(k + 1), k - 1, q)
        law = (1 - p) * others + p * np.concatenate([[0.0], others[:-1]])
        yield Deviation(_two_sided(ones, int(ones.sum()), law), words)
        return
    # One independent bit deviates by at most 1. With a hash, all choices deviate together.
    largest = 1 if has_ones(mechanism) else k
    away = abs(float(supports_of(mechanism, part).sum()) - part.n * (p + (k - 1) * q))
    variance = part.n * (p * (1 - p) + (k - 1) * q * (1 - q))
    # Bernstein's inequality.
    yield Deviation(min(1.0, 2 * exp(-(away**2) / (2 * (variance + largest * away / 3)))), words)


def _two_sided(counts: NDArray[np.int64], n: int, law: Vector) -> float:
    """Return the smallest p-value of exact binomial tests of each count, corrected for their number."""
    below, above = binomial_at_most(counts, n, law), binomial_at_least(counts, n, law)
    return min(1.0, 2 * counts.size * float(np.minimum(below, above).min()))


def _beyond(mechanism: NumberMechanism, part: QuestionSummary) -> Deviation:
    """Test how many reports are beyond a bound: half if the answer is at the bound, fewer farther out."""
    edges, scale = cell_edges(mechanism)
    found = []
    for sds in SDS if mechanism.name == "gaussian" else SDS[:1]:
        first = int(np.searchsorted(edges, 1 + sds * scale))
        chance = erfc((edges[first] - 1) / scale / sqrt(2)) / 2 if mechanism.name == "gaussian" else 0.5
        far = int(part.values[first + 1 :].sum()), int(part.values[: len(edges) - first].sum())
        found += [float(binomial_at_least(count, part.n, chance)) for count in far]
    words = f"more reports are beyond a bound than `{mechanism.name}` noise puts there"
    return Deviation(min(1.0, len(found) * min(found)), words)


def _spikes(mechanism: NumberMechanism, part: QuestionSummary) -> Deviation:
    """Test that no cell has too many reports compared with its neighbours.

    For every answer, a cell's probability is at most a factor times the mean of its neighbours'. The factor
    is e^w for Laplace noise and cells of w scales, at the noise's peak, and e^(w²/2) for Gaussian noise.
    """
    edges, scale = cell_edges(mechanism)
    widths = np.diff(edges)
    width = float(widths.max()) / scale
    curve = exp(width if mechanism.name == "laplace" else width**2 / 2)
    most = curve * widths[1:-1] / (widths[:-2] + widths[2:])
    inside = part.values[1:-1]
    around = inside[:-2] + inside[1:-1] + inside[2:]
    # With a very small ε, the bounds are neighbours on the grid, and no cell is between others.
    p = binomial_at_least(inside[1:-1], around, most / (1 + most)) if len(inside) > 2 else np.ones(1)
    words = f"more reports are at one place than next to it, which `{mechanism.name}` noise would smooth out"
    return Deviation(min(1.0, len(p) * float(p.min())), words)


def _products(mechanism: SampledProducts, part: QuestionSummary) -> Iterator[Deviation]:
    """Test blocks, which no answer decides, and signs: the noise bounds the rarity of each pattern."""
    signs = part.values.reshape(-1, mechanism.patterns)
    drawn = signs.sum(axis=1)
    law = np.asarray(mechanism.weights, np.float64) / mechanism.total
    words = "some product was sent more, or less, often than it is drawn"
    yield Deviation(_two_sided(drawn, part.n, law), words)
    least = (1 - float(mechanism.p)) / (mechanism.patterns - 1)
    few = binomial_at_most(signs, drawn[:, None], least).min()
    words = f"some product has fewer reports of one sign than `{mechanism.name}` gives it"
    yield Deviation(min(1.0, signs.size * float(few)), words)


def _draws(detail: Detail, bins: NDArray[np.int64]) -> Iterator[Deviation]:
    """Test the hash seeds, or the noise of numbers: bits that are uniform, and repeats.

    m of n draws are equal with probability at most C(n, m) peak^(m − 1), if no value has a probability above
    peak.
    """
    name, seeds = detail.mechanism.name, isinstance(detail.mechanism, Olh)
    one = "hash seed" if seeds else "number"
    what = "hash seeds" if seeds else "the last bits of the numbers"
    words = f"{what} are not uniform, as `{name}` draws them"
    yield Deviation(_two_sided(bins, detail.n, np.full(BINS, 1 / BINS)), words)
    # The first 64 bits of seeds are kept.
    peak = 2.0**-63 if seeds else PEAK[name] / (1 << NOISE_BITS)
    most, n = detail.most_alike()
    ways = lgamma(n + 1) - lgamma(most + 1) - lgamma(n - most + 1)
    p = 1.0 if most < 2 else exp(min(0.0, ways + (most - 1) * log(peak)))
    yield Deviation(p, f"the same {one} came more often than `{name}` draws it")


def _far_out(mechanism: Mechanism, n: int, counts: NDArray[np.int64]) -> Deviation:
    """Test how far out the entries and the norms of noisy records are, for answers at the bounds."""
    reach = reach_of(mechanism)
    size = len(reach.bounds)
    # For s at a bound, where it is largest: P(|s + noise| > bound + sds).
    bounds = [bound / SD for bound in reach.bounds]
    entry = [
        float(np.mean([(erfc(sds / sqrt(2)) + erfc((sds + 2 * bound) / sqrt(2))) / 2 for bound in bounds]))
        for sds in ENTRY_SDS
    ]
    trials = [n * size] * len(ENTRY_SDS) + [n] * len(NORM_CHANCES)
    found = [
        float(binomial_at_least(count, tried, chance))
        for count, tried, chance in zip(counts, trials, (*entry, *NORM_CHANCES))
    ]
    # The sum of squares is noncentral χ², here the χ² with the same first two moments (Patnaik 1949).
    degrees, centre, total = n * size, n * (reach.norm / SD) ** 2, float(counts[-1]) / PARTS**2
    stretch = (degrees + 2 * centre) / (degrees + centre)
    found.append(squares_beyond(total / stretch, (degrees + centre) / stretch))
    return Deviation(
        min(1.0, len(found) * min(found)), "some reports are farther out than the noise can explain"
    )
