"""From payloads to the integers that a likelihood needs: one fixed-size vector for each mechanism.

Each reduction is a sum over reports, so that summaries of parts add up to the summary of the whole.
To add one: a file here, and its entry below under the mechanism's name.
"""

from __future__ import annotations

from summaries.reductions.base import Reduction
from summaries.reductions.choice import (
    COLUMN_COUNTS,
    HASH_COUNTS,
    INDEX_COUNTS,
    MEMOIZED,
    SUBSET_COUNTS,
    UNARY_COUNTS,
)
from summaries.reductions.histogram import HISTOGRAM
from summaries.reductions.records import RECORDS, SUMS, TABLES, TOTALS

REDUCTIONS: dict[str, Reduction] = {
    "laplace": HISTOGRAM,
    "gaussian": HISTOGRAM,
    "randomized_response": INDEX_COUNTS,
    "oue": UNARY_COUNTS,
    "sue": UNARY_COUNTS,
    "subset_selection": SUBSET_COUNTS,
    "olh": HASH_COUNTS,
    "hadamard": COLUMN_COUNTS,
    "memoized": MEMOIZED,
    "gaussian_statistics": SUMS,
    "gaussian_record": RECORDS,
    "summed_gaussian": TOTALS,
    "table_statistics": TABLES,
    "table_statistics_ddplr": TABLES,
    "table_statistics_laplace": TABLES,
}
