"""Methods of DPBLR agree with the authors' own code, from the same noisy statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inference.published import gibbs_ss
from inference.published.base import Run
from inference.published.gibbs_ss import Observed
from tests.inference.published import dpblr_cases as golden
from tests.inference.published.agreement import ERRORS, away, posteriors


def as_published(case: dict[str, Any]) -> Observed:
    """What the authors' code hands to its sampler: repaired moments of which the constant's is not 1."""
    statistics = golden.statistics(case, half=True)
    fourth = statistics.fourth_moments
    assert fourth is not None
    second, covariance = gibbs_ss.repaired(fourth[0, 0], fourth, intercept=False)
    scale = case["scale_of_half"]
    data = golden.counted_again(gibbs_ss.observed(statistics, golden.prior()), scale)
    return data._replace(
        second=second,
        covariance=covariance,
        rows=np.append(data.rows, 0.0),
        columns=np.append(data.columns, 0.0),
        released=np.append(data.released, [[case["sums_of_half"][0][0]]], axis=1),
        scale=np.append(data.scale, scale),
    )


@pytest.mark.slow
def test_gibbs_ss_update_agrees_with_the_authors_code() -> None:
    cases = list(golden.cases("gibbs-update").values())
    assert len(cases) == 3
    data = [gibbs_ss.observed(golden.statistics(case), golden.prior()) for case in cases]
    ours = [golden.counted_again(one, np.inf) for one in data]
    # The authors' code takes a noisy entry and its mirror image for two releases.
    published = [golden.counted_again(one, case["scale"]) for one, case in zip(data, cases, strict=True)]
    found = posteriors(gibbs_ss.DRAWN_MOMENTS, ours + published, Run(1, 1000, 2000, 4))
    for case, one in zip(cases * 2, found, strict=True):
        assert max(away(one, case, "gibbs-update").values()) < ERRORS


@pytest.mark.slow
def test_gibbs_ss_noisy_matches_authors_on_repaired_moments() -> None:
    cases = list(golden.cases("gibbs-noisy").values())
    assert len(cases) == 5
    data = [as_published(case) for case in cases]
    found = posteriors(gibbs_ss.GIVEN_MOMENTS, data, Run(1, 1000, 2000, 4))
    for case, one in zip(cases, found, strict=True):
        assert max(away(one, case, "gibbs-noisy").values()) < ERRORS
