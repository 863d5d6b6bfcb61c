"""The noise of numbers by itself: not too small, and independent from number to number and report to report.

Differences of two reports of one answer are free of the answer. Noise is in units of 2**NOISE_BITS.
"""

from math import sqrt

from ldp_client.audit.findings import Check
from ldp_client.core.calibration import NOISE_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_client.audit.batches import Batch

MOST_REPORTS = 4000
MOST_WORDS = 64
UNIT = 1 << NOISE_BITS
# Limits in standard errors: false alarms below 1e-9 a check, over all pairs of numbers too.
SIZE_LIMIT = 6.5
CORRELATION_LIMIT = 8.0
# Mean and standard deviation of |D| (Laplace) and D² (normal), D the difference of two unit draws.
MOMENTS = {"laplace": (1.5, sqrt(4 - 1.5**2)), "normal": (2.0, sqrt(8.0))}


def noise_checks(batch: "Batch", law: str) -> "Iterator[Check]":
    """law: "laplace" or "normal"."""
    columns = _differences(batch)
    yield _size(columns, law)
    yield _independence(columns)


def _differences(batch: "Batch") -> "list[list[float]]":
    """For each number of a payload: report 0 − report 1, report 2 − report 3, …"""
    words = batch.words()[:MOST_REPORTS]
    pairs = list(zip(words[::2], words[1::2]))
    return [[(a[i] - b[i]) / UNIT for a, b in pairs] for i in range(min(len(words[0]), MOST_WORDS))]


def _size(columns: "list[list[float]]", law: str) -> Check:
    """Each number's noise, and all together, against the law's mean."""
    mean, spread = MOMENTS[law]
    sizes = [[abs(d) if law == "laplace" else d * d for d in column] for column in columns]
    together = [size for column in sizes for size in column]
    worst = min([_score(column, mean, spread) for column in [*sizes, together]])
    share = sum(together) / len(together) / mean
    scale = share if law == "laplace" else sqrt(share)
    return Check("noise is not too small", worst > -SIZE_LIMIT, f"{scale:.3f} of the {law} scale stated")


def _score(values: "list[float]", mean: float, spread: float) -> float:
    return (sum(values) / len(values) - mean) / (spread / sqrt(len(values)))


def _independence(columns: "list[list[float]]") -> Check:
    """Products of two numbers' noise, and of one number's noise in successive reports, have mean 0."""
    worst = 0.0
    for place, column in enumerate(columns):
        later = [column[1:] + column[:1], *columns[place + 1 :]]
        for other in later:
            products = [a * b for a, b in zip(column, other)]
            power = sqrt(sum([p * p for p in products]))
            worst = max(worst, abs(sum(products)) / power if power else CORRELATION_LIMIT)
    return Check(
        "noise is independent",
        worst < CORRELATION_LIMIT,
        f"largest correlation {worst:.1f} standard errors, between numbers and between reports",
    )
