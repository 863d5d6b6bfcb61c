"""Notes that compare a posterior with its prior: drowned, contradicting, or none."""

import numpy as np
import pytest
from scipy import stats

from inference import fit
from inference.design.simulation import simulate
from inference.models.base import Truth
from inference.results.posterior import Posterior
from inference.results.prior_notes import disagreements, informativeness, leaning_notes
from inference.results.verdict import CARE, NOT_USABLE
from ldp_client import mechanism_for
from schemas import Study
from summaries import Summary
from tests import studies


def chains(random):
    return random.normal(size=(4, 1000))


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
    draws, prior = {"x": chains(random)}, {"x": random.normal(mean, sd, size=1000)}
    notes = [*disagreements(draws, prior), *informativeness(draws, prior)]
    assert [part in note.text for part, note in zip(says, notes, strict=True)] == [True] * len(says)


@pytest.mark.parametrize("law", ["lognormal"])
def test_truths_from_the_prior_rarely_contradict_it(law):
    """Of 4,000 truths that are known exactly at most a few, whatever the prior's tail."""
    random = np.random.default_rng(5)
    sample = getattr(random, law)
    alarms = 0
    for truth in sample(size=4000):
        draws = {"x": truth + 1e-3 * random.normal(size=(4, 20))}
        alarms += any(one.state == NOT_USABLE for one in disagreements(draws, {"x": sample(size=1000)}))
    assert alarms < 15


PEOPLE = 1000


def fitted(model: str, truth: dict[str, float], epsilon: str, seed: int) -> Posterior:
    """The quick fit of answers of that law in bounds of 0 to 100."""
    asked = {
        **studies.with_epsilon(studies.NUMBER, epsilon),
        "bounds": ["0", "100"],
        "model": {"name": model},
    }
    study = Study(studies.document(asked))
    (question,) = study.questions
    random = np.random.default_rng(seed)
    part = simulate(question, mechanism_for(question), Truth(truth, {}), PEOPLE, random)
    summary = Summary(study.id, study.version, study.digest, {question.id: part})
    return fit(study, summary, method="gaussian_approx", seed=seed)[question.id]


def is_far(posterior: Posterior, name: str, truth: float) -> bool:
    low, high = np.quantile(posterior.draws[name], [0.01, 0.99])
    return not low < truth < high


@pytest.mark.slow
def test_mean_far_below_the_bound_follows_the_reports():
    found = [fitted("exponential", {"rate": 1 / 3}, "1", seed) for seed in range(3)]
    assert sum(is_far(one, "rate", 1 / 3) for one in found) <= 1


@pytest.mark.slow
@pytest.mark.attack(18)
def test_parameter_dominated_by_the_prior_is_not_called_learnt():
    """Choose generous bounds, so that the default prior decides a parameter far from the truth."""
    found = fitted("gamma", {"shape": 25, "mean": 50}, "3", 3)
    assert is_far(found, "shape", 25)
    assert found.draws["shape"].std() > 0.8 * found.prior_sd["shape"]
    assert found.verdict.of("shape").word == CARE
    assert "the prior holds shape back" in found.verdict.of("shape").reasons[0]


UNIFORM = {"distribution": "uniform", "low": "20", "high": "30"}


def posterior(estimate, error, random):
    """Draws (4, 1000) of a mean under the uniform prior, given an estimate and its standard error."""
    ends = (np.array([20.0, 30.0]) - estimate) / error
    return stats.truncnorm.rvs(*ends, estimate, error, size=(4, 1000), random_state=random)


@pytest.mark.attack(18)
@pytest.mark.parametrize(("name", "estimate"), [("mean[a]", 33.0), ("coefficient[a]", 16.0)])
def test_truth_outside_prior_is_noted(name, estimate):
    """State a uniform prior in wrong units, which rules the truth out."""
    draws = posterior(estimate, 0.8, np.random.default_rng(1))
    key = {"mean[a]": "mean", "coefficient[a]": "coefficients"}[name]
    (note,) = leaning_notes({name: draws}, {key: {"a": UNIFORM}})
    assert f"{name} is pressed against an end" in note.text
