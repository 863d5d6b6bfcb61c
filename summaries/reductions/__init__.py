"""Reduces payloads to the integers that a likelihood needs: one fixed-size vector for each mechanism.

Each reduction is a sum over reports, so that summaries of parts add up to the summary of the whole. To add
one: its entry below under the mechanism's name, and a file here if none fits; SUPPORTS fits every mechanism
for choices.
"""

from ldp_client.mechanisms.base import Mechanism
from summaries.reductions import choice, histogram, records
from summaries.reductions.base import Payloads, Reduction
from summaries.reductions.choice import SUPPORTS

__all__ = ["REDUCTIONS", "SUPPORTS", "Reduction", "sets_of"]

REDUCTIONS: dict[str, Reduction] = {
    "laplace": histogram.HISTOGRAM,
    "gaussian": histogram.HISTOGRAM,
    "refusable_laplace": histogram.TWO_HISTOGRAMS,
    "refusable_gaussian": histogram.TWO_HISTOGRAMS,
    "randomized_response": choice.INDEX_COUNTS,
    "oue": choice.UNARY_COUNTS,
    "sue": choice.UNARY_COUNTS,
    "subset_selection": choice.SUBSET_COUNTS,
    "olh": choice.HASH_COUNTS,
    "hadamard": choice.COLUMN_COUNTS,
    "memoized": choice.MEMOIZED,
    "gaussian_statistics": records.SUMS,
    "gaussian_record": records.RECORDS,
    "sampled_products": records.PRODUCTS,
    "summed_gaussian": records.TOTALS,
    "table_statistics": records.TABLES,
    "table_normal_equations": records.TABLES,
    "table_statistics_laplace": records.TABLES,
}


def sets_of(mechanism: Mechanism, payloads: Payloads) -> Payloads:
    """Return the packed sets of choices that payloads (n, bytes) support, shape (n, ceil(choices / 8))."""
    sets = REDUCTIONS[mechanism.name].sets
    if sets is None:
        raise ValueError(f"reports of {mechanism.name} are not read as sets of choices")
    return sets(mechanism, payloads)
