"""The coverage of analyses: a small version of the benchmark, which a wrong channel makes fail."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.analyses import CASES, measured
from tests.statistics import share_is

STUDIES = 40


def covered(simulated) -> list[bool]:
    rows = measured(simulated, seed=2, draws=99)
    return [share_is(round(row.coverage * STUDIES), STUDIES, 0.9) for row in rows.values()]


@pytest.mark.slow
def test_intervals_contain_the_truth_unless_the_channel_is_another():
    simulated = CASES["outcome-10000"](STUDIES, np.random.default_rng(3))
    assert all(covered(simulated))
    # As if the reports were the answers: no analysis could be calibrated.
    bare = [
        replace(one, data={**one.data, "leaves_0": np.round(one.data["leaves_0"])})
        for one in simulated.models
    ]
    assert not all(covered(replace(simulated, models=bare)))
