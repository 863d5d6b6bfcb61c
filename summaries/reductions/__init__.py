"""From payloads to the integers that a likelihood needs: one fixed-size vector for each mechanism.

Each reduction is a sum over reports, so that summaries of parts add up to the summary of the whole.
To add one: a file here, and its entry below under the mechanism's name.
"""

from __future__ import annotations

from summaries.reductions.base import Reduction
from summaries.reductions.choice import INDEX_COUNTS, UNARY_COUNTS
from summaries.reductions.histogram import HISTOGRAM
from summaries.reductions.moments import SUMS
from summaries.reductions.totals import TOTALS

REDUCTIONS: dict[str, Reduction] = {
    "laplace": HISTOGRAM,
    "randomized_response": INDEX_COUNTS,
    "oue": UNARY_COUNTS,
    "gaussian_statistics": SUMS,
    "summed_gaussian": TOTALS,
}
