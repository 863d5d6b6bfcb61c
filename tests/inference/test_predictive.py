"""Predictive checks find misfit, and seldom reject a right law; log-likelihoods of reports compare models."""

import arviz_stats
import jax
import numpy as np
import pytest
from scipy import stats

from inference import fit, summarize
from inference.fit_model import log_likelihood
from inference.histogram import Histogram
from inference.models import model_for
from inference.predictive import MISFIT, Predictive, is_far
from inference.results.verdict import FALSE_ALARM, FIT, Finding
from inference.sampling.space import as_arrays, reports_site
from schemas import Study
from summaries import Summary
from tests import studies
from tests.kit.reporting import reports_of

EDGES = ANSWERS = np.linspace(0, 1, 129)


def channel(epsilon):
    """Probabilities (answers, cells) of Laplace reports: below the bounds, in 128 cells, and above."""
    below = stats.laplace.cdf(EDGES, ANSWERS[:, None], 1 / epsilon)
    return np.diff(below, axis=1, prepend=0, append=1)


def normal(mean, sd):
    """Clipped normal laws on the answers, (laws, answers)."""
    middles = (ANSWERS[1:] + ANSWERS[:-1]) / 2
    below = stats.norm.cdf(middles, np.atleast_1d(mean)[:, None], np.atleast_1d(sd)[:, None])
    return np.diff(below, axis=1, prepend=0, append=1)


def posterior(counts, matrix, random):
    """Cells (60, cells) at draws of mean and sd, by grids that close in on the posterior."""
    centre, width = np.array([0.5, np.log(0.2)]), np.array([1.0, 2.3])
    for _ in range(7):
        grid = [middle + np.linspace(-reach, reach, 13) for middle, reach in zip(centre, width, strict=True)]
        mean, log_sd = (axis.ravel() for axis in np.meshgrid(*grid))
        density = np.log(normal(mean, np.exp(log_sd)) @ matrix) @ counts
        density += (
            stats.norm.logpdf(mean, 0.5, 0.7) + stats.gamma.logpdf(np.exp(log_sd), 2, scale=0.25) + log_sd
        )
        weight = np.exp(density - density.max())
        weight /= weight.sum()
        places = np.stack([mean, log_sd])
        centre = places @ weight
        spread = np.sqrt(weight @ (places - centre[:, None]).T ** 2)
        width = np.clip(4 * spread, 0.35 * width, 1.2 * width)
    chosen = random.choice(len(mean), 60, p=weight)
    step = np.array([axis[1] - axis[0] for axis in grid])
    moved = places[:, chosen] + step[:, None] * random.uniform(-0.5, 0.5, (2, 60))
    return normal(moved[0], np.exp(moved[1])) @ matrix


@pytest.mark.slow
def test_right_law_is_rejected_at_most_at_stated_rate():
    """p-values at truths from the prior are no smaller than uniform ones."""
    random, matrix, found = np.random.default_rng(4), channel(4), []
    for _ in range(100):
        expected = normal(random.normal(0.5, 0.35), random.gamma(2, 0.12) + 0.02)[0] @ matrix
        counts = random.multinomial(20_000, expected / expected.sum()).astype(float)
        found.append(Histogram(counts, posterior(counts, matrix, random), matrix[::2], 2).p_value())
    for level in (0.05, 0.01, FALSE_ALARM):
        assert stats.binom.sf(np.sum(np.asarray(found) < level) - 1, len(found), level) > 1e-3


def test_predictive_check_reports_surprise_and_misfit():
    random = np.random.default_rng(1)
    simulated = random.normal(0.5, 0.01, (60, 10))
    for share, far, words in (
        (0.5, False, "the prior allows"),
        (0.9, True, "the reports surprise the prior"),
    ):
        observed = np.full(10, share)
        assert is_far(simulated, observed) == far
        against = (Finding(FIT, MISFIT),) if far else ()
        said = Predictive(simulated, simulated, observed, against).in_words()
        assert words in said
        assert ("the model does not fit" in said) == far


def model_of(document, answers):
    (question,) = (study := Study(document)).questions
    return model_for(question, summarize(study, reports_of(study, answers)).questions[question.id])


def log_density(model, draw):
    """Return the log-likelihood of all reports at one draw, with its combinatorial constant."""
    with jax.enable_x64(True):
        site = reports_site(model, draw, as_arrays(model.data))
        return float(site["fn"].log_prob(site["value"]))


CASES = {
    "randomized_response": (studies.document(studies.YES_NO), [True, False, False] * 20, {"p": [0.2, 0.7]}),
    "patterns": (
        studies.document({**studies.ONE_OF, "mechanism": {"name": "oue", "epsilon": "1"}}),
        [*studies.ONE_OF["choices"]] * 10,
        {"p": np.random.default_rng(1).dirichlet(np.ones(len(studies.ONE_OF["choices"])), 2)},
    ),
    "number": (
        studies.document(studies.NUMBER),
        [*np.linspace(0, 1, 40)],
        {"mean": [0.2, 0.6], "sd": [0.1, 0.3]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_single_reports_add_up_to_the_likelihood_of_all(name):
    """Between two draws, the sum over reports changes as the log-likelihood of all reports does."""
    document, answers, sites = CASES[name]
    model = model_of(document, answers)
    found = log_likelihood(model, {site: np.asarray(values)[:, None] for site, values in sites.items()})
    assert found.shape == (2, 1, len(answers))
    first, second = ({site: values[i] for site, values in sites.items()} for i in (0, 1))
    expected = log_density(model, second) - log_density(model, first)
    assert found.sum(axis=2)[1, 0] - found.sum(axis=2)[0, 0] == pytest.approx(expected)


def test_sums_and_very_many_reports_have_no_single_log_likelihoods(monkeypatch):
    """Very many would not fit into memory."""
    (question,) = (study := Study(studies.document(studies.LINEAR))).questions
    sums = model_for(question, Summary.empty(study).questions[question.id])
    draws = {name: np.asarray(at)[None, None] for name, at in sums.initial.items()}
    assert log_likelihood(sums, draws) is None
    document, answers, _ = CASES["randomized_response"]
    monkeypatch.setattr("inference.fit_model.MOST_ENTRIES", 2 * len(answers) - 1)
    assert log_likelihood(model_of(document, answers), {"p": np.asarray([[0.2], [0.7]])}) is None


def test_a_fit_is_compared_by_arviz():
    study = Study(studies.document(studies.YES_NO))
    answers = (np.random.default_rng(2).random(300) < 0.3).tolist()
    loo = arviz_stats.loo(fit(study, reports_of(study, answers), draws=200)["ever"].to_arviz())
    assert 0 < loo.p < 3
    assert loo.n_data_points == 300
