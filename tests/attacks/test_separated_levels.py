"""Have a slope quoted that only its prior holds: levels, or numbers, that separate yes from no.

Defence: The analysis: its verdict's informativeness is partial and names the coefficients that reports
bound on one side at most, with its exit code.
"""

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.table import table_of
from tests.kit.channels import known_channel

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]


def knowledge_of(x, yes):
    """Of the fit of reports that are as noisy as this says, in seeded random order."""
    random = np.random.default_rng(3)
    reports = np.where(random.random(len(yes)) < 1 / 6, ~yes, yes).astype(int)
    table = table_of(pd.DataFrame({"x": x}), [known_channel("ever", ["no", "yes"], reports, FORCED)])
    return analyse_table(table, "ever ~ x", draws=300).verdict.informativeness


@pytest.mark.slow
def test_separated_level_gives_partial_informativeness():
    """All people of one level say yes, but the noise may still give the likelihood a peak."""
    random = np.random.default_rng(4)
    level = np.arange(1500) % 2
    found = knowledge_of(level, (level == 1) | (random.random(1500) < 0.3))
    assert found.state == "partial"
    assert "bound x on one side at most" in found.reasons[0]
