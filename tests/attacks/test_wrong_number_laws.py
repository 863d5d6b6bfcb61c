"""Fits a wrong law to a private number: none may be called good.

Defence: The analyst's fit: compares reports, in eight parts of their range, with what it expects: "model:
bad" and exit code 4. Known limit: with few reports, or much noise, nothing shows.
"""

from __future__ import annotations

import numpy as np
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from tests.inference.analyses.test_private_numbers import people


@pytest.mark.parametrize(("law", "good"), [("normal", True), ("lognormal", False)])
def test_wrong_law_of_private_number_is_detected(law, good):
    """Compares reports in eight parts of their range, at the most likely mean and sd."""
    found = assemble(people(3000, 4, law), "hours ~ 1")
    mean, sd = {"normal": (5.0, 2.07), "lognormal": (3.6, 2.6)}[law]
    random = np.random.default_rng(2)
    sites = {
        "law_middle": random.normal(mean, 0.06, (4, 100, 1)),
        "sigma": random.normal(sd, 0.05, (4, 100)),
    }
    assert (not checked(found, None, sites, 3).reasons()) == good
