"""Notes that compare a posterior with its prior: drowned, contradicting, or none."""

import numpy as np
import pytest

from inference import fit
from inference.design.simulation import simulate
from inference.models.base import Truth
from inference.results.prior_notes import contradictions, informativeness, prior_notes
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
    notes = [
        *prior_notes(draws, prior),
        *contradictions(draws, prior),
        *informativeness(draws, prior).reasons,
    ]
    assert [part in note for part, note in zip(says, notes, strict=True)] == [True] * len(says)


@pytest.mark.parametrize("law", ["normal", "exponential", "lognormal"])
def test_truths_from_the_prior_rarely_contradict_it(law):
    """Of 4,000 truths that are known exactly at most a few, whatever the prior's tail."""
    random = np.random.default_rng(5)
    sample = getattr(random, law)
    alarms = 0
    for truth in sample(size=4000):
        draws = {"x": truth + 1e-3 * random.normal(size=(4, 20))}
        alarms += bool(contradictions(draws, {"x": sample(size=1000)}))
    assert alarms < 15


def test_outliers_of_many_parameters_are_no_disagreement():
    """Known exactly, and drawn from their prior: not one of twenty such studies is called a disagreement."""
    random = np.random.default_rng(3)
    for _ in range(20):
        prior = {f"p[{i}]": random.exponential(size=1000) for i in range(100)}
        truth = random.exponential(size=100)
        draws = {name: x + 0.01 * chains(random) for name, x in zip(prior, truth, strict=True)}
        assert prior_notes(draws, prior) == ()


@pytest.mark.parametrize(
    ("place", "spread", "says"),
    [(3.0, 0.3, []), (3.0, 1.4, ["holds x back"]), (0.5, 1.4, ["drowns the signal"])],
)
def test_log_normal_prior_is_compared_on_log_scale(place, spread, says):
    """The sd of a log-normal prior, and so the verdict, would depend on its few farthest draws."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        prior = {"x": np.exp(1.5 * random.normal(size=1000))}
        draws = {"x": np.exp(place + spread * chains(random))}
        reasons = informativeness(
            draws, prior, {"x": {"distribution": "log_normal", "loc": 0, "scale": 1.5}}
        ).reasons
        assert [part in reason for part, reason in zip(says, reasons, strict=True)] == [True] * len(says)


@pytest.mark.slow
@pytest.mark.parametrize("mean", [1.5, 15])
def test_mean_far_below_wide_bound_follows_the_reports(mean):
    """The prior says a mean of about 15, give or take a factor of four."""
    study = Study(studies.document({**studies.NUMBER, "bounds": ["0", "60"]}))
    (question,) = study.questions
    random = np.random.default_rng(1)
    truth = Truth({"rate": 1 / mean}, {})
    part = simulate(question, mechanism_for(question), truth, 10_000, random, clip=False)
    summary = Summary(study.id, study.version, study.digest, {question.id: part})
    found = fit(study, summary, method="gaussian_approx")[question.id]
    assert not [note for note in found.diagnostics.notes if "prior" in note]
    assert found.verdict.ok
    # Of the prior's logs it is 1.5.
    assert np.log(found.draws["rate"]).std() <= 0.5 * 1.5
    low, high = np.quantile(found.draws["rate"], [0.05, 0.95])
    assert low < 1 / mean < high
