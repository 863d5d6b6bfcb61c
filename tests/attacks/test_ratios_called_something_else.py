"""Have a ratio quoted under a wrong meaning.

Defence: The analysis: says whose coefficient's exp an odds ratio is.
"""

import numpy as np
import pytest

from inference.analyses.analysing import analyse_table
from tests.inference.analyses.simulated import table


@pytest.mark.slow
def test_an_odds_ratio_is_the_exp_of_its_coefficient():
    found = analyse_table(table(300), "ever ~ region + age", method="gaussian_approx", draws=300)
    (one,) = [one for one in found.quantities if one.name == "odds ratio age"]
    assert one.words == "odds ratio of age, for ever = yes against no"
    np.testing.assert_allclose(np.log(one.draws), found.draws["age"], rtol=1e-6, atol=1e-6)
