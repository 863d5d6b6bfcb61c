"""Numbers: chains along a ridge near a bound, means that need no law, and the model without a law."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks import nonparametric as nonparametric_studies
from inference import fit
from inference.design.calibration import prior_truths
from inference.design.simulation import exact_total, noisy_total
from inference.design.truth import completed
from inference.fitting import fit_question
from inference.histogram import Histogram
from inference.likelihoods.numbers.noise import cells_channel
from inference.models import model_for
from inference.models.base import IDENTITY, Sampling
from inference.models.number import AT_A_BOUND, bound_met, plain_mean
from inference.predictive import of_histogram
from inference.results.convergence import mixing
from inference.results.verdict import CONVERGENCE
from inference.sampling.nuts import sample
from inference.sampling.space import as_arrays, space_of
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.posteriors import page_of, reasons
from tests.kit.errors import raises
from tests.kit.reporting import reduced, summary_of
from tests.kit.secure_sum import ADDRESSES
from tests.statistics import share_is


def model_at(place):
    """The normal model of 500 numbers whose reports all lie in one cell."""
    question = studies.question_of(studies.with_epsilon(studies.AGE, "20"))
    mechanism = mechanism_for(question)
    values = np.zeros(REDUCTIONS[mechanism.name].size(mechanism), dtype=np.int64)
    values[int(place * (len(values) - 1))] = 500
    return model_for(question, QuestionSummary(500, values))


@pytest.mark.slow
def test_chains_on_ridge_mix_to_the_posterior_of_the_original_coordinates():
    """Against sums over a grid of mean and log sd, in scaled units."""
    # 1. Draw from a Laplace histogram around the upper bound, as reports would come.
    model = model_at(1.0)
    counts = np.zeros(len(np.asarray(model.data["counts"])))
    cells = len(counts) - 2
    # Half beyond the bound, half below it, decaying with the noise's scale of a twentieth.
    shares = np.exp(-20 * (1 - (np.arange(cells) + 0.5) / cells))
    counts[1:-1] = np.rint(250 * shares / shares.sum())
    counts[-1] = 500 - counts.sum()
    model = replace(model, data={**model.data, "counts": counts.astype(np.int64)})
    drawn = sample(model, seed=1, kept=500)
    assert model.notes == (AT_A_BOUND,)
    assert not drawn.diverging.any()
    parameters = model.parameters(drawn.sites)
    assert not list(mixing(parameters).findings(parameters))
    # 2. Sum over the grid.
    with jax.enable_x64(True):
        space, data = space_of(replace(model, sampling=Sampling())), as_arrays(model.data)
        mean, log_sd = np.meshgrid(np.linspace(0.9, 6.0, 80), np.linspace(-9.0, 1.5, 80))
        # Sites are in the order of their names.
        vectors = jnp.asarray(np.stack([mean.ravel(), log_sd.ravel()], -1))
        potentials = np.asarray(jax.jit(jax.vmap(space.potential, (0, None)))(vectors, data))
    weights = np.exp(potentials.min() - potentials)
    weights /= weights.sum()
    for name, values in (("mean", mean.ravel()), ("sd", np.exp(log_sd.ravel()))):
        expected = weights @ values
        sd = np.sqrt(weights @ (values - expected) ** 2)
        ess = mixing({name: drawn.sites[name]}).ess_bulk[name]
        assert abs(drawn.sites[name].mean() - expected) < 5 * sd / np.sqrt(ess)
        assert drawn.sites[name].std() == pytest.approx(sd, rel=0.15)


def test_only_answers_at_a_bound_are_noted():
    middles = np.array([-0.05, 0.005, 0.5, 0.985, 1.05])
    # The last has so much noise that it does not tell.
    cases = (2, 0.001, None), (1, 0.003, 0), (3, 0.001, None), (4, 0.001, 1), (4, 0.1, None)
    for cell, noise, bound in cases:
        assert bound_met(middles, np.eye(5)[cell], noise) == bound
    assert model_at(0.5).notes == ()
    assert model_at(0.5).sampling.coordinates is IDENTITY


BOUNDS = ["0", "50"]
SUMMED = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}
LOCAL = {**studies.NUMBER, "bounds": BOUNDS, "model": {"name": "normal"}}
PEOPLE = 4000


def drinks(random, n):
    return np.clip(np.where(random.random(n) < 0.4, 0, random.gamma(1.5, 8, n)), 0, 50)


def summed(question, answers):
    protocol = {"name": "secure_sum", "nodes": ADDRESSES, "devices": PEOPLE, "max_faulty": 0}
    (asked,) = (study := Study(studies.document(question, protocol=protocol))).questions
    total = exact_total(asked, mechanism_for(asked), answers, True)
    return study, QuestionSummary(PEOPLE, noisy_total(total, PEOPLE, np.random.default_rng(1)))


@pytest.mark.attack(18)
@pytest.mark.slow
def test_fit_of_two_sums_notes_untested_normal_distribution():
    """Fit a normal law to two sums, which cannot show that four in ten answers are zero."""
    answers = drinks(np.random.default_rng(1), PEOPLE)
    study, part = summed({**LOCAL, "mechanism": SUMMED}, answers)
    found = fit(study, summary_of(study, {"hours": part}), method="gaussian_approx")["hours"]
    assert float(np.median(found.draws["mean"])) < 0.5 * answers.mean()
    (note,) = [note for note in found.notes if "cannot show whether answers follow" in note]
    assert f"mean {answers.mean():.2g}" in note


def test_fit_of_record_sums_notes_untested_normal_distribution():
    first, last = ({"id": name, "bounds": BOUNDS} for name in "ab")
    mechanism = {**SUMMED, "statistic": "marginals", "share": "0.2"}
    record = {"id": "x", "ask": "record", "features": [first], "response": last, "mechanism": mechanism}
    random = np.random.default_rng(1)
    answers = {"a": drinks(random, PEOPLE), "b": random.normal(25, 5, PEOPLE)}
    study, part = summed({**record, "model": {"name": "marginals"}}, answers)
    (note,) = model_for(study.questions[0], part).notes
    assert "a: mean 6." in note
    assert "b: mean 24." in note


def test_interval_of_mean_of_local_reports_has_stated_coverage():
    question, inside = studies.question_of(LOCAL), 0
    truth = float(drinks(np.random.default_rng(0), 2_000_000).mean())
    for seed in range(300):
        part = reduced(question, drinks(np.random.default_rng(seed), 1000))
        plain = plain_mean(question, mechanism_for(question), part)
        inside += abs(plain.mean - truth) < 1.645 * plain.error
    assert share_is(int(inside), 300, 0.9)


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("crowded", [True, False])
def test_normal_fit_largely_below_zero_notes_the_plain_mean(crowded):
    """Fit a normal law to spending of which 60 % is zero, so that its mean is below zero."""
    study, random = Study(studies.document(LOCAL)), np.random.default_rng(2)
    zeros = random.random(10_000) < 0.6
    answers = np.where(zeros, 0, random.exponential(12, 10_000)) if crowded else random.normal(25, 6, 10_000)
    part = reduced(study.questions[0], np.clip(answers, 0, 50))
    found = fit(study, summary_of(study, {"hours": part}), method="gaussian_approx")["hours"]
    notes = [reason for reason in found.verdict.reasons if "beyond the bounds" in reason]
    assert len(notes) == crowded
    assert all("whatever their law, mean 4" in note or "mean 5" in note for note in notes)


NO_MODEL = {key: value for key, value in studies.NUMBER.items() if key != "model"}
ASKED = {**NO_MODEL, "bounds": ["0", "1"], "mechanism": {"name": "laplace", "epsilon": "4"}}


def test_number_without_model_gets_free_model():
    question = studies.question_of(NO_MODEL)
    assert (question.model.name, question.model.prior) == ("nonparametric", {})
    with raises(StudyError, "study.invalid", field="questions[0].model"):
        studies.question_of({key: value for key, value in studies.YES_NO.items() if key != "model"})


@pytest.mark.parametrize(("name", "law"), [("laplace", stats.laplace), ("gaussian", stats.norm)])
def test_channel_matches_integral_over_each_cell(name, law):
    edges, scale = np.linspace(-0.2, 1.2, 8), 0.3
    found = cells_channel(name, scale, 4, edges)
    assert found.shape == (6, 9)
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-12)
    for cell in range(4):
        for k in range(7):
            within = lambda x, k=k: law.cdf(edges[k + 1], x, scale) - law.cdf(edges[k], x, scale)  # noqa: E731
            bends = [edge for edge in edges[k : k + 2] if cell / 4 < edge < (cell + 1) / 4] or None
            exact = 4 * integrate.quad(within, cell / 4, (cell + 1) / 4, points=bends, epsabs=1e-13)[0]
            assert found[1 + cell, 1 + k] == pytest.approx(exact, abs=1e-11)
    assert found[-1, 0] == pytest.approx(law.cdf(edges[0], 1, scale), abs=1e-12)


@pytest.mark.slow
def test_intervals_have_their_stated_coverage():
    """For a law with two modes and many reports; `benchmarks.nonparametric` has all laws."""
    found = nonparametric_studies.simulated(studies.question_of(ASKED), "bimodal", 100_000, 60, 1, 1000)
    held = nonparametric_studies.coverage("bimodal", found)
    assert found.r_hat < 1.03, found.r_hat
    assert share_is(round(60 * held["mean"]), 60, 0.9), held
    assert np.mean([share for name, share in held.items() if name.startswith("above[")]) > 0.8, held


@pytest.mark.slow
def test_answers_all_at_a_bound_are_fitted_and_drawn_on_page():
    (question,) = (study := Study(studies.document(ASKED))).questions
    cells = nonparametric_studies.report_cells(question, np.zeros(1))
    part = QuestionSummary(3000, np.random.default_rng(4).multinomial(3000, cells / cells.sum()))
    found = fit_question(study, question, model_for(question, part), part.n)
    rows = found.rows()
    assert rows["mean"]["q05"] <= 1e-6 < rows["mean"]["q95"] < 0.05
    assert rows["above[0.5]"]["q05"] <= 1e-6
    assert not reasons(found, CONVERGENCE)
    document = found.to_document()["law"]
    assert len(document["edges"]) == len(document["density"]["q50"]) + 1 == 65
    assert document["at_bounds"]["q05"][0] > 0.8
    page = page_of({"hours": found}, study)
    assert "density of the answers to hours" in page


def test_truth_of_free_model_cannot_be_stated():
    question = studies.question_of(ASKED)
    truth = prior_truths(question, 1, 1)[0].parameters
    with raises(InputError, "plan.truth_of_free_model"):
        completed(question, truth, {"mean": 0.5})
    assert completed(question, truth, {}) == truth


def expected_cells(law):
    """Probabilities of cells of reports under a law clipped to 0 … 1, by a fine sum; and the channel."""
    edges = np.linspace(0, 1, 257)
    fine = np.linspace(0, 1, 2001)
    masses = np.diff(law.cdf(fine[:-1] + 0.00025), prepend=0, append=1)

    def seen(answers):
        below = stats.laplace.cdf(edges, answers[:, None], 0.25)
        return np.diff(below, axis=1, prepend=0, append=1)

    return masses @ seen(fine), seen(np.linspace(0, 1, 65))


@pytest.mark.parametrize(
    ("law", "fits"), [(stats.norm(0.4, 0.2), True), (stats.lognorm(0.6, 0, 0.33), False)]
)
def test_law_is_compared_with_mean_found_without_law(law, fits):
    truth, channel = expected_cells(law)
    fitted = stats.norm(0.4, 0.2) if fits else stats.norm(0.372, 0.224)
    moves = [(0.001, 0.0), (-0.001, 0.0), (0.0, 0.001), (0.0, -0.001)]
    near = [expected_cells(stats.norm(fitted.mean() + m, fitted.std() + s))[0] for m, s in moves]
    observed = np.random.default_rng(6).multinomial(100_000, truth / truth.sum()).astype(float)
    histogram = Histogram(observed, np.stack(near), channel, 2)
    found = histogram.mean_without_law()
    exact = np.clip(law.rvs(400_000, random_state=7), 0, 1).mean()
    assert found.free == pytest.approx(exact, abs=4 * found.error + 0.002)
    assert found.error < 0.002
    assert (found.p > 1e-3) == fits
    reasons_of = [one.text for one in of_histogram(histogram, (10.0, 15.0))]
    assert any("fit the model 'nonparametric'" in reason for reason in reasons_of) != fits
