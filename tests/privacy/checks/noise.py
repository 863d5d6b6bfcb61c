"""The noise of reports of one answer: its size and law, its independence, and whether any of it comes again.

All checks take reports that were drawn with the real source of randomness, one by one or in bulk. Noise is in
units of 2**NOISE_BITS. Limits are in standard errors, for false alarms below 1e-9 a check.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import exp, sqrt
from typing import Any

from ldp_client.audit.claims import beta_tail, lower_share, normal_cdf, upper_share
from ldp_client.audit.findings import Check
from ldp_client.audit.views import Batch
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.gaussian_record import GaussianYesNoRecord
from ldp_client.mechanisms.refusable import RefusableNumber
from tests.privacy.checks.surprise import Column, count_score, lag_score, most_of, pair_score

# So many draws are enough, in however many numbers of a report.
MOST_DRAWS = 80_000
MOST_WORDS = 64
WORD_BYTES = 4
UNIT = 1 << NOISE_BITS
RATE = 1e-9
SIZE_LIMIT = 6.5
CORRELATION_LIMIT = 8.0
# Mean and standard deviation of |D| (Laplace) and D² (normal), D the difference of two unit draws.
MOMENTS = {"laplace": (1.5, sqrt(4 - 1.5**2)), "normal": (2.0, sqrt(8.0))}
# P(|X| ≤ x), the probability that two draws have one absolute value, and that of the likeliest integer.
CENTRAL: dict[str, Callable[[float], float]] = {
    "laplace": lambda x: 1 - exp(-x),
    "normal": lambda x: 1 - 2 * normal_cdf(-x),
}
COINCIDENCE = {"laplace": 0.5 / UNIT, "normal": 0.5642 / UNIT}
# Of three draws that have one absolute value, less the square of the above: how much a common value repeats.
TRIPLES = {"laplace": 1 / 12 / UNIT**2, "normal": 0.0493 / UNIT**2}
LIKELIEST = {"laplace": 0.5 / UNIT, "normal": 0.3990 / UNIT}
LAGS = 8


def noise_checks(batch: Batch, law: str, silent: Sequence[int]) -> Iterator[Check]:
    """law: "laplace" or "normal". silent: the answer's integers without noise."""
    columns = _differences(batch)
    noise = [[word - place for word, place in zip(row, silent)] for row in batch.words()]
    yield _size(columns, law)
    yield _independence(noise)
    yield _law(noise, law)
    yield _repeats(noise, law)
    yield _most_frequent(batch, law)


def _differences(batch: Batch) -> list[list[float]]:
    """For each number of a payload: report 0 − report 1, report 2 − report 3, …"""
    words = batch.words()
    words = words[: max(4000, MOST_DRAWS // min(len(words[0]), MOST_WORDS))]
    pairs = list(zip(words[::2], words[1::2]))
    return [[(a[i] - b[i]) / UNIT for a, b in pairs] for i in range(min(len(words[0]), MOST_WORDS))]


def _size(columns: list[list[float]], law: str) -> Check:
    """Each number's noise, and all together, against the law's mean."""
    mean, spread = MOMENTS[law]
    sizes = [[abs(d) if law == "laplace" else d * d for d in column] for column in columns]
    together = [size for column in sizes for size in column]
    worst = min([_score(column, mean, spread) for column in [*sizes, together]])
    share = sum(together) / len(together) / mean
    scale = share if law == "laplace" else sqrt(share)
    return Check("noise is not too small", worst > -SIZE_LIMIT, f"{scale:.3f} of the {law} scale stated")


def _score(values: list[float], mean: float, spread: float) -> float:
    return (sum(values) / len(values) - mean) / (spread / sqrt(len(values)))


def _independence(noise: list[list[int]]) -> Check:
    """Products of two numbers' noise, and of one number's noise in successive reports, have mean 0.

    Of the noise itself: in differences of two reports, noise that is drawn for three in a row cancels.
    """
    width = min(len(noise[0]), MOST_WORDS)
    rows = noise[: max(2000, MOST_DRAWS // width // 2)]
    columns = [Column([row[place] / UNIT for row in rows]) for place in range(width)]
    worst = 0.0
    for place, column in enumerate(columns):
        values = column.values
        later = [Column([*values[1:], *values[:1]]), *columns[place + 1 :]]
        worst = max([worst, *[pair_score(column, other) for other in later]])
    return Check(
        "noise is independent",
        worst < CORRELATION_LIMIT,
        f"largest correlation {worst:.1f} standard errors, between numbers and between reports",
    )


def _law(noise: list[list[int]], law: str) -> Check:
    """How often noise is within each power of 2, from next to nothing to the extremes; over all numbers."""
    sizes = sorted([abs(value) for row in noise[:40_000] for value in row[:MOST_WORDS]])
    # Several numbers of a report are independent where noise is, which another check looks at.
    rate, bounds = RATE / 40, [1 << power for power in range(8, NOISE_BITS + 7)]
    wrong = ""
    place = 0
    for bound in bounds:
        while place < len(sizes) and sizes[place] <= bound:
            place += 1
        expected = CENTRAL[law]((bound + 0.5) / UNIT)
        if not lower_share(place, len(sizes), rate) <= expected <= upper_share(place, len(sizes), rate):
            wrong = (
                wrong
                or f"{place} within {bound / UNIT:.3g} of its scale where {expected * len(sizes):.4g} belong"
            )
    return Check("noise follows its law up to the extremes", not wrong, wrong or f"{len(sizes)} draws")


def _repeats(noise: list[list[int]], law: str) -> Check:
    """How often noise, or its opposite, comes a second time, in whatever number and report."""
    sizes = Counter([abs(value) for row in noise for value in row[:MOST_WORDS]])
    n = sum(sizes.values())
    expected = COINCIDENCE[law] * n * n / 2
    seen = sum([count * (count - 1) // 2 for count in sizes.values()])
    close = max([_equal_at(noise, lag) for lag in range(1, LAGS + 1)])
    allowed_close = most_of(COINCIDENCE[law] * len(noise) * len(noise[0]), RATE / LAGS)
    good = seen <= expected + 7 * sqrt(expected + TRIPLES[law] * n**3) + 10 and close <= allowed_close
    detail = f"{seen} of {n} draws again, {expected:.0f} belong; {close} in reports close to each other"
    return Check("no noise comes again", good, detail)


def _equal_at(noise: list[list[int]], lag: int) -> int:
    return sum([any([a == b for a, b in zip(row, later)]) for row, later in zip(noise, noise[lag:])])


def _most_frequent(batch: Batch, law: str) -> Check:
    """An answer that sometimes goes without noise, or to one place, makes one payload too frequent."""
    count = Counter(batch.payloads).most_common(1)[0][1]
    allowed = 1
    while _clusters(batch.n, allowed + 1, LIKELIEST[law]) > RATE:
        allowed += 1
    detail = f"{count} of {batch.n} reports, at most {allowed} belong"
    return Check("no payload comes too often", count <= allowed, detail)


def _clusters(n: int, size: int, likeliest: float) -> float:
    """A bound of the expected number of sets of so many equal payloads: C(n, size) likeliest**(size − 1)."""
    value = float(n)
    for step in range(1, size):
        value *= (n - step) / (step + 1) * likeliest
    return value


def response_checks(batch: Batch, mechanism: Any, answer: Any) -> Iterator[Check]:
    """What numbers do not read: a record's yes/no response, or a coin, by its law, apart from their noise."""
    unread = batch.size % WORD_BYTES
    if not isinstance(mechanism, (GaussianYesNoRecord, RefusableNumber)):
        if unread and type(mechanism).words is Mechanism.words:
            told = f"the audit has no check of the last {unread} bytes of a report by {mechanism.name}"
            yield Check("every byte follows a law that is known", False, told)
        return
    silent, share = mechanism.quantise(answer), float(mechanism.p)
    right = [payload[-1] == silent[-1] for payload in batch.payloads]
    score = count_score(sum(right), batch.n, share)
    yield Check(
        "the response follows its law", score < SIZE_LIMIT, f"{sum(right)} of {batch.n} tell the truth"
    )
    response = Column([value - share for value in right], share)
    worst = max([lag_score(response, lag) for lag in (1, 2)])
    for place in range(min(len(silent) - 1, MOST_WORDS)):
        noise = Column([(row[place] - silent[place]) / UNIT for row in batch.words()])
        worst = max(worst, pair_score(noise, response), pair_score(noise, response, 1))
    told = f"largest correlation {worst:.1f} standard errors, with features and with responses before"
    yield Check("the response is independent", worst < CORRELATION_LIMIT, told)


def choice_checks(batch: Batch, mechanism: Any, own: int) -> Iterator[Check]:
    """Reports of one choice: independent from each other, and none comes again."""
    share = float(mechanism.p)
    column = Column([mechanism.supported(payload, own) - share for payload in batch.payloads], share)
    worst = max([lag_score(column, lag) for lag in (1, 2)])
    yield Check(
        "reports are independent", worst < SIZE_LIMIT, f"largest correlation {worst:.1f} standard errors"
    )
    chance = _collision_of(mechanism)
    if chance is not None:
        seen = batch.n - len(set(batch.payloads))
        expected = chance * batch.n**2 / 2
        good = seen <= most_of(expected, RATE)
        yield Check("no report comes again", good, f"{seen} of {batch.n}, {expected:.3g} belong")
    if mechanism.bitwise:
        yield _ones_check(batch, mechanism, own)


def _collision_of(mechanism: Any) -> float | None:
    """An upper bound of the probability that two reports are alike, where it is small enough to tell."""
    q = float(mechanism.q)
    chance = 2.0**-mechanism.seed_bits
    if mechanism.bitwise:
        chance *= (q * q + (1 - q) ** 2) ** (mechanism.choices - 1)
    return chance if chance < 1e-3 else None


def _ones_check(batch: Batch, mechanism: Any, own: int) -> Check:
    """Others' bits of unary encodings: their number, from none to all, against the binomial law."""
    k, q = mechanism.choices - 1, float(mechanism.q)
    mask = ((1 << mechanism.choices) - 1) ^ (1 << own)
    counts = Counter([bin(int.from_bytes(payload, "little") & mask).count("1") for payload in batch.payloads])
    wrong, below = "", 0
    for ones in range(k):
        below += counts[ones]
        expected = 1 - beta_tail(q, ones + 1, k - ones)
        rate = RATE / k
        if not lower_share(below, batch.n, rate) <= expected + 1e-9 or not (
            expected - 1e-9 <= upper_share(below, batch.n, rate)
        ):
            wrong = wrong or f"{below} with {ones} others at most where {expected * batch.n:.4g} belong"
    return Check("as many other choices as belong", not wrong, wrong or f"{batch.n} reports")
