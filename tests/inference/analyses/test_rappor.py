"""RAPPOR's counts files: the law of the counts, the posterior of the shares, and what is refused."""

import csv
import itertools

import numpy as np
import pytest
from scipy.stats import binom

from inference.analyses.rappor import OTHERS, Collection, covariance_of, fit_rappor, read_rappor
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

SHARES = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
BITS, HASHES, COHORTS, ONE_OF_ZERO, ONE_OF_ONE, COIN = 16, 2, 4, 0.35, 0.65, 0.25
PLACES = np.random.default_rng(99).integers(0, BITS, size=(len(SHARES), COHORTS, HASHES))


def collect(folder, seed, n=20_000):
    random = np.random.default_rng(seed)
    cohort, value = random.integers(0, COHORTS, n), random.choice(len(SHARES), n, p=SHARES)
    # Bloom filters.
    true = (PLACES[..., None] == np.arange(BITS)).any(axis=-2)[value, cohort]
    permanent = np.where(random.random((n, BITS)) < COIN, random.integers(0, 2, (n, BITS)), true)
    ones = random.random((n, BITS)) < np.where(permanent == 1, ONE_OF_ONE, ONE_OF_ZERO)
    positions = BITS * np.arange(COHORTS)[:, None] + PLACES + 1
    tables = {
        "counts.csv": [[np.sum(cohort == j), *ones[cohort == j].sum(0)] for j in range(COHORTS)],
        "map.csv": [[f"v{v}", *positions[v].ravel()] for v in range(len(SHARES))],
        "params.csv": ["khmpqf", [BITS, HASHES, COHORTS, ONE_OF_ZERO, ONE_OF_ONE, COIN]],
    }
    for name, rows in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return [folder / name for name in tables]


def test_covariance_matches_enumeration_of_reports():
    """By enumeration of the reports of three bits: two candidates, and others whose two hashes are even."""
    bits = np.array([[1.0, 1, 0], [0, 1, 0]]).T[None]
    often, seldom, shares = 0.7, 0.2, np.array([0.5, 0.2, 0.3])
    collection = Collection(np.ones(1), np.zeros((1, 3)), ("a", "b"), bits, often, seldom, 2)
    law = [(0.5, (1, 1, 0)), (0.2, (0, 1, 0))]
    for places in itertools.product(range(3), repeat=2):
        law.append((0.3 / 9, tuple(int(bit in places) for bit in range(3))))
    reports = np.array(list(itertools.product((0, 1), repeat=3)))
    chances = np.zeros(len(reports))
    for share, true in law:
        ones = np.where(true, often, seldom)
        chances += share * np.prod(np.where(reports, ones, 1 - ones), axis=1)
    mean = chances @ reports
    exact = (reports - mean).T @ (chances[:, None] * (reports - mean))
    unset = 2 / 3
    pairs = np.full((3, 3), 1 - 2 * unset**2 + (1 / 3) ** 2)
    patterns = np.concatenate([bits, np.full((1, 3, 1), 1 - unset**2)], axis=-1)
    assert seldom + (often - seldom) * (patterns[0] @ shares) == pytest.approx(mean)
    assert covariance_of(collection, patterns, pairs, shares)[0] == pytest.approx(exact)


def test_posterior_of_two_values_equals_the_exact_one(tmp_path):
    """Under a uniform prior of the first share: one bit each, one hash, one cohort of 400 people."""
    texts = {"counts": "400,218,176", "map": "a,1\nb,2", "params": "k,h,m,p,q,f\n2,1,1,0.35,0.65,0.25"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text + "\n")
    draws = fit_rappor(*(tmp_path / name for name in texts), others=False)["value"].draws["p[a]"]
    often = (1 - COIN / 2) * ONE_OF_ONE + COIN / 2 * ONE_OF_ZERO
    seldom = COIN / 2 * ONE_OF_ONE + (1 - COIN / 2) * ONE_OF_ZERO
    people = np.arange(401)

    def chance(ones, firsts):
        """Of so many ones, where `firsts` people set the bit."""
        own = np.arange(ones + 1)
        return binom.pmf(own, firsts, often) @ binom.pmf(ones - own, 400 - firsts, seldom)

    given = np.array([chance(218, firsts) * chance(176, 400 - firsts) for firsts in people])
    grid = (np.arange(2000) + 0.5) / 2000
    density = binom.pmf(people, 400, grid[:, None]) @ given
    mean = density @ grid / density.sum()
    sd = np.sqrt(density @ (grid - mean) ** 2 / density.sum())
    assert draws.mean() == pytest.approx(mean, abs=0.1 * sd)
    assert draws.std() == pytest.approx(sd, rel=0.05)


@pytest.mark.slow
def test_frequent_value_that_the_map_lacks_is_a_misfit(tmp_path):
    counts, candidates, params = collect(tmp_path, 5)
    candidates.write_text("\n".join(candidates.read_text().splitlines()[1:]) + "\n")
    (posterior,) = fit_rappor(counts, candidates, params, draws=200, chains=2).values()
    assert list(posterior.draws)[-1] == f"p[{OTHERS}]"
    assert posterior.verdict.of("p[v1]").word == "not usable"
    assert any("frequent values that the map lacks" in finding.text for finding in posterior.findings)


@pytest.mark.parametrize(
    ("name", "before", "after", "code"),
    [
        ("params.csv", "k,h", "h,k", "rappor.params"),
        ("params.csv", "0.25", "1", "rappor.params"),
        ("params.csv", "16,2,4", "16,2,5", "rappor.counts"),
        ("params.csv", "16,2,4", "15,2,4", "rappor.counts"),
        ("map.csv", "v0,", "v0,1,", "rappor.map"),
        ("map.csv", "v0,", "v1,", "rappor.twins"),
        ("counts.csv", ",", ",9999999,", "rappor.counts"),
    ],
)
def test_wrong_file_is_refused(tmp_path, name, before, after, code):
    files = collect(tmp_path, 1, n=500)
    file = tmp_path / name
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after, 1))
    with raises(InputError, code):
        read_rappor(*files)
