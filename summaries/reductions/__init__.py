"""Reduces payloads to the integers that a likelihood needs: one fixed-size vector for each mechanism.

Each reduction is a sum over reports, so that summaries of parts add up to the summary of the whole. To add
one: its entry below under the mechanism's name, and a file here if none fits; SUPPORTS fits every mechanism
for choices.
"""

from ldp_client.mechanisms.base import Mechanism
from summaries.reductions.base import Payloads, Reduction
from summaries.reductions.choice import (
    COLUMN_COUNTS,
    HASH_COUNTS,
    INDEX_COUNTS,
    MEMOIZED,
    SUBSET_COUNTS,
    SUPPORTS,
    UNARY_COUNTS,
)
from summaries.reductions.histogram import HISTOGRAM, TWO_HISTOGRAMS
from summaries.reductions.records import PRODUCTS, RECORDS, SUMS, TABLES, TOTALS

__all__ = ["REDUCTIONS", "SUPPORTS", "Reduction", "sets_of"]

REDUCTIONS: dict[str, Reduction] = {
    "laplace": HISTOGRAM,
    "gaussian": HISTOGRAM,
    "refusable_laplace": TWO_HISTOGRAMS,
    "refusable_gaussian": TWO_HISTOGRAMS,
    "randomized_response": INDEX_COUNTS,
    "oue": UNARY_COUNTS,
    "sue": UNARY_COUNTS,
    "subset_selection": SUBSET_COUNTS,
    "olh": HASH_COUNTS,
    "hadamard": COLUMN_COUNTS,
    "memoized": MEMOIZED,
    "gaussian_statistics": SUMS,
    "gaussian_record": RECORDS,
    "sampled_products": PRODUCTS,
    "summed_gaussian": TOTALS,
    "table_statistics": TABLES,
    "table_normal_equations": TABLES,
    "table_statistics_laplace": TABLES,
}


def sets_of(mechanism: Mechanism, payloads: Payloads) -> Payloads:
    """Return the packed sets of choices that payloads (n, bytes) support, shape (n, ceil(choices / 8))."""
    sets = REDUCTIONS[mechanism.name].sets
    if sets is None:
        raise ValueError(f"reports of {mechanism.name} are not read as sets of choices")
    return sets(mechanism, payloads)
