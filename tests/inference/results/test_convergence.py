"""Checks of draws: diagnostics are ArviZ's, chances of counts SciPy's, and notes compare with the prior."""

import numpy as np
import pytest
from arviz_stats.base.array import array_stats
from scipy import stats

from inference import tail_probabilities as tails
from inference.results.convergence import diagnose, ess_bulk, ess_tail, mixing, r_hat
from inference.results.prior_notes import disagreements, informativeness, leaning_notes
from inference.results.verdict import NOT_USABLE, USABLE, Verdict


def ar(coefficient, chains=4, draws=300):
    noise = np.random.default_rng(0).normal(size=(chains, draws))
    for t in range(1, draws):
        noise[:, t] += coefficient * noise[:, t - 1]
    return noise


CHAINS = {
    "independent": ar(0),
    "sluggish": ar(0.95),
    "alternating": ar(-0.9),
    "odd": ar(0.3, 3, 101),
    "two": ar(0.3, 2, 250),
    "apart": ar(0.3) + np.arange(4)[:, None],
    "ties": np.round(ar(0.5)),
    "rare": (ar(0.5) > 2.3).astype(float),
    "skewed": np.exp(3 * ar(0.7)),
    "unknown": np.where(np.arange(300) == 7, np.nan, ar(0.1)),
    "endless": np.where(np.arange(300) == 7, np.inf, ar(0.1)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chain_diagnostics_match_arviz(name):
    draws, axes = CHAINS[name], {"chain_axis": 0, "draw_axis": 1}
    assert r_hat(draws) == pytest.approx(array_stats.rhat(draws, **axes), rel=1e-10, nan_ok=True)
    for found, right in (
        (ess_bulk(draws), array_stats.ess(draws, method="bulk", **axes)),
        (ess_tail(draws), array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes)),
    ):
        # NumPyro and ArviZ count the last pair of lags otherwise, which matters to draws that alternate.
        assert found == pytest.approx(right, rel=0.05, nan_ok=True) or min(found, right) > draws.size


def test_binomial_probabilities_match_scipy():
    counts = np.arange(-2, 30)
    for n, p in ((0, 0.3), (1, 0.5), (20, 0.0), (20, 1.0), (27, 0.2), (28, 1e-9)):
        law = stats.binom(n, p)
        for found, right in (
            (tails.binomial_at_most(counts, n, p), law.cdf(counts)),
            (tails.binomial_at_least(counts, n, p), law.sf(counts - 1)),
            (tails.binomial_exactly(counts, n, p), law.pmf(counts)),
        ):
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-300)
    law = stats.binom(10**6, 0.3)
    far = np.array([290_000, 299_999, 310_000])
    np.testing.assert_allclose(tails.binomial_at_most(far, 10**6, 0.3), law.cdf(far), rtol=1e-6)
    np.testing.assert_allclose(tails.binomial_at_least(far, 10**6, 0.3), law.sf(far - 1), rtol=1e-6)
    assert tails.squares_beyond(31.0, 10) == pytest.approx(stats.chi2.sf(31.0, 10), rel=1e-10)
    ties = CHAINS["ties"]
    ranks = stats.rankdata(ties, axis=None).reshape(ties.shape)
    np.testing.assert_array_equal(tails.average_ranks(ties), ranks)


LONG = ar(0, draws=1000)


@pytest.mark.parametrize(
    ("draws", "diverging", "chained", "reason"),
    [
        (LONG + 0.5 * np.arange(4)[:, None], 0, True, "R-hat of x"),
        (LONG[:, :60], 0, True, "bulk ESS of x"),
        (np.cumsum(LONG, axis=1), 0, True, "tail ESS of x"),
        (LONG, 3, True, "3 transitions diverged"),
        (np.full((4, 1000), np.nan), 0, True, "R-hat of x"),
        (np.full((4, 1000), np.nan), 0, False, "draws of x are not finite"),
    ],
)
def test_bad_draws_are_not_ok_and_say_why(draws, diverging, chained, reason):
    flags = np.zeros((4, 1000), dtype=bool)
    flags[0, :diverging] = True
    verdict = Verdict.of_findings(diagnose({"x": draws, "y": np.zeros((4, 1000))}, flags, chained=chained)[0])
    assert verdict.bad
    assert any(reason in line for line in verdict.reasons)


def test_parameters_that_the_sampler_did_not_measure_are_measured():
    draws = {"rate": LONG, "mean": LONG + 0.5 * np.arange(4)[:, None]}
    found, mixed = diagnose(draws, np.zeros((4, 1000), bool), known=mixing({"rate": LONG}))
    assert set(mixed.r_hat) == set(mixed.ess_bulk) == set(mixed.ess_tail) == set(draws)
    verdict = Verdict.of_findings(found)
    assert (verdict.of("rate").word, verdict.of("mean").word) == (USABLE, NOT_USABLE)


def test_reasons_do_not_name_all_of_many_parameters():
    random = np.random.default_rng(1)
    draws = {f"p[{i}]": random.normal(size=(4, 20)) for i in range(100)}
    findings, _ = diagnose(draws, np.zeros((4, 20), bool))
    assert Verdict.of_findings(findings).bad
    assert all("more" in finding.text and len(finding.text) < 300 for finding in findings)


@pytest.mark.parametrize(
    ("mean", "sd", "says"),
    [
        (0, 10, []),
        (0, 1.1, ["drowns the signal of x"]),
        (0.8, 1.1, ["drowns the signal of x"]),
        (2, 1.1, ["holds x back"]),
        (2, 1.4, []),
        (4, 1.1, ["disagree about x", "holds x back"]),
        (-4, 1.4, ["disagree about x"]),
        (4, 0.5, ["contradicts the reports: for x", "holds x back"]),
        (-4, 0.1, ["contradicts the reports: for x", "holds x back"]),
    ],
)
def test_notes_compare_posterior_with_prior(mean, sd, says):
    random = np.random.default_rng(1)
    draws, prior = {"x": random.normal(size=(4, 1000))}, {"x": random.normal(mean, sd, size=1000)}
    notes = [*disagreements(draws, prior), *informativeness(draws, prior)]
    assert [part in note.text for part, note in zip(says, notes, strict=True)] == [True] * len(says)


def test_truths_from_the_prior_rarely_contradict_it():
    """Of 4,000 truths that are known exactly at most a few, though the prior's tail is long."""
    random, alarms = np.random.default_rng(5), 0
    for truth in random.lognormal(size=4000):
        draws, prior = {"x": truth + 1e-3 * random.normal(size=(4, 20))}, {"x": random.lognormal(size=1000)}
        alarms += any(one.state == NOT_USABLE for one in disagreements(draws, prior))
    assert alarms < 15


@pytest.mark.attack(18)
@pytest.mark.parametrize(
    ("name", "key", "estimate"), [("mean[a]", "mean", 33.0), ("coefficient[a]", "coefficients", 16.0)]
)
def test_truth_outside_prior_is_noted(name, key, estimate):
    """State a uniform prior in wrong units, which rules the truth out."""
    ends = (np.array([20.0, 30.0]) - estimate) / 0.8
    draws = stats.truncnorm.rvs(*ends, estimate, 0.8, size=(4, 1000), random_state=1)
    law = {"distribution": "uniform", "low": "20", "high": "30"}
    (note,) = leaning_notes({name: draws}, {key: {"a": law}})
    assert f"{name} is pressed against an end" in note.text
