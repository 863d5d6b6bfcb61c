"""Whether an estimate without a model is ever certain: reports all alike, a lone one, a huge weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from inference.analyses.analysing import analyse_table
from inference.analyses.design_based import covariance_of, design_based, freedom
from inference.analyses.few_reports import SAID, SAID_OF_CLUSTERS, People, bounds_of, lacking
from inference.analyses.population import Population
from inference.analyses.table import Codes, Table, Values, known_channel, table_of
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
WEAK = [[0.99, 0.01], [0.01, 0.99]]


def widths(found) -> Values:
    return np.asarray([np.diff(np.quantile(one.draws, [0.05, 0.95]))[0] for one in found])


def table(said: Codes, matrix=FORCED, **public) -> Table:
    frame = pd.DataFrame(public, index=range(len(said)))
    return table_of(frame, [known_channel("armed", ["no", "yes"], said, matrix)])


def test_reports_that_are_all_alike_are_not_certain():
    """Of all, of groups, of one who is a group of its own, of clusters and of waves."""
    n = 40
    place = np.where(np.arange(n) < n - 1, np.where(np.arange(n) % 2, "a", "b"), "alone")
    whole = table(np.zeros(n, np.int64), place=place, village=np.arange(n) // 8, p=np.full(n, 0.5))
    for over in (Population(inclusion="p", by="place"), Population(inclusion="p", cluster="village")):
        found = design_based(whole, "armed", over.sampled(whole), over.by)
        assert np.all(widths(found) > 0.1), [one.name for one in found]
        said = SAID if over.cluster is None else SAID_OF_CLUSTERS
        assert all(said in one.words for one in found if "share" in one.name)
    waves = replace(whole, waves="village")
    assert np.all(widths(design_based(waves, "armed", Population().sampled(waves))) > 0.1)


def test_one_who_stands_for_all_tells_nothing():
    """Whatever the other 999 reported: the interval is wider than all that is possible."""
    said = np.random.default_rng(3).integers(0, 2, 1000)
    for weights in (np.where(np.arange(1000) == 5, 1e9, 1.0), np.where(np.arange(1000) < 2, 1e9, 1.0)):
        whole = table(said, w=weights)
        (share, total) = design_based(whole, "armed", Population(weights="w").sampled(whole))
        assert widths([share])[0] > 1
        assert widths([total])[0] > weights.sum()


def test_enough_reports_keep_the_variance_of_their_design():
    """That which R's `survey` gives, also where weights differ, or strata are alike within."""
    random = np.random.default_rng(5)
    strata = np.arange(300) // 100
    said = (random.random(300) < np.asarray([0.2, 0.5, 0.8])[strata]).astype(int)
    whole = table(said, w=random.uniform(1, 5, 300), h=strata, village=np.arange(300) // 10)
    for more in ({}, {"cluster": "village"}):
        found = design_based(whole, "armed", Population(weights="w", strata="h", **more).sampled(whole))
        assert not any("interval widened" in one.words for one in found)


# Truth, reports, and how many of the 90 % intervals hold it at least.
COVERED = [(0.0, 10, FORCED), (0.3, 2, FORCED), (0.3, 5, FORCED), (0.02, 40, WEAK), (0.02, 100, WEAK)]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "n", "matrix"), COVERED)
def test_intervals_of_few_reports_hold_the_truth(share, n, matrix):
    """In at least 90 of 100 samples; the variance of the reports alone gives 47 to 83."""
    random, runs, inside = np.random.default_rng(7), 2000, 0
    channel = np.asarray(matrix)
    ones, column = np.ones(n, np.int64), known_channel("armed", ["no", "yes"], [0], matrix)
    score = np.linalg.pinv(channel)[:, 1]
    sampled = Population().sampled(table(np.zeros(n, np.int64)))
    for _ in range(runs):
        said = (random.random(n) < channel[(random.random(n) < share).astype(int), 1]).astype(int)
        scores = score[said]
        variance = covariance_of((scores - scores.mean())[:, None] / n, ones, sampled)[0, 0]
        lacks = lacking(variance, scores, People(ones, np.ones(n)), bounds_of(column)[1])
        half = stats.t.ppf(0.95, min(freedom(ones, sampled), lacks.degrees))
        half *= np.sqrt(variance + lacks.extra)
        inside += abs(scores.mean() - share) <= half
    assert inside / runs > 0.9 - 5 * np.sqrt(0.09 / runs)


def of_alike_clusters(random, share: float, kept: bool) -> Table:
    """Ten clusters of 100; all people of one have one truth, or else each has their own."""
    cluster = np.arange(1000) // 100
    truth = random.random(1000 if kept else 10) < share
    truth = truth if kept else truth[cluster]
    said = (random.random(1000) < np.asarray(FORCED)[truth.astype(int), 1]).astype(int)
    return table(said, village=cluster.astype(str), w=np.full(1000, 50.0))


@pytest.mark.slow
def test_clusters_whose_people_are_all_alike_cover_the_truth():
    """None of few clusters may have a rare truth, and the noise within told that nobody has: 64 in 100."""
    random, share, runs = np.random.default_rng(11), 0.1, 120
    inside = np.zeros(2)
    for _ in range(runs):
        whole = of_alike_clusters(random, share, kept=False)
        found = design_based(whole, "armed", Population(weights="w", cluster="village").sampled(whole))
        for place, true in enumerate((share, share * 50_000)):
            low, high = np.quantile(found[place].draws, [0.05, 0.95])
            inside[place] += low <= true <= high
    assert np.all(inside / runs > 0.85)


def test_clusters_whose_people_differ_are_not_widened():
    whole = of_alike_clusters(np.random.default_rng(12), 0.4, kept=True)
    found = design_based(whole, "armed", Population(weights="w", cluster="village").sampled(whole))
    assert not any("interval widened" in one.words for one in found)
    assert 0.05 < widths(found)[0] < 0.2


@pytest.mark.parametrize("over", [{"cluster": "village"}, {"strata": "village"}])
@pytest.mark.parametrize("weights", [{}, {"weights": "w"}])
def test_clusters_and_strata_of_a_public_outcome_are_refused(over: dict, weights: dict) -> None:
    """Beside weights they were taken without a word, and no interval knew of them."""
    village = np.repeat(np.arange(30), 20)
    frame = pd.DataFrame({"village": village, "w": 10.0, "voted": (village % 2).astype(float)})
    said = (np.random.default_rng(1).random(600) < 0.4).astype(int)
    whole = table_of(frame, [known_channel("armed", ("no", "yes"), said, FORCED)])
    with raises(InputError, "weights.strata_need_private_outcome"):
        analyse_table(whole, "voted ~ armed", population=Population(**over, **weights))
