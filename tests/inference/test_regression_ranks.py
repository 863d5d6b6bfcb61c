"""Ranks of a linear regression by sums: what they owe to symmetry, and the note where clipping bends them.

Turn the response's sign and the intercept's and slopes' signs turn, under the default priors: the ranks of a
true intercept have a law symmetric about the middle, whatever features, n, noise and clipping are. Long
studies: benchmarks/ranks.py.
"""

import jax
import numpy as np
import pytest

from inference.design.calibration import prior_truths
from inference.design.simulation import exact_total, simulate
from inference.models import family_of, model_for
from inference.models.clipping import possible_clipping
from inference.sampling import sample_prior
from inference.sampling.space import as_arrays, space_of
from ldp_client import mechanism_for
from schemas import Study
from tests import studies

FEATURES = [{"id": f"x{i}", "bounds": [str(i), str(10 + 3 * i)]} for i in range(5)]
LINE = {**studies.LINEAR, "features": FEATURES}
TURNED = ("intercept", "coefficients")


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def question_of(prior=None, base=LINE):
    stated = {"name": "linear_regression", **({"prior": prior} if prior else {})}
    return Study(studies.document({**base, "model": stated})).questions[0]


def simulated(question, n=5000, clip=True):
    (truth,) = prior_truths(question, 1, 3)
    summary = simulate(question, mechanism_for(question), truth, n, np.random.default_rng(3), clip)
    return truth, model_for(question, summary)


def densities(question):
    """Log densities of the truth and of the truth turned, under sums and turned sums, but for a constant."""
    truth, model = simulated(question)
    space = space_of(model)
    turned = {name: -value if name in TURNED else value for name, value in truth.sites.items()}
    sums = np.array(model.data["statistics"])
    turned_sums = sums.copy()
    turned_sums[-1, :-1] *= -1
    turned_sums[:-1, -1] *= -1
    return [
        -float(space.potential(space.start(as_arrays(sites, float), data), data))
        for sites, data in (
            (truth.sites, as_arrays(model.data)),
            (turned, as_arrays({**model.data, "statistics": turned_sums})),
        )
    ]


@pytest.mark.slow
def test_negated_response_negates_the_posterior():
    plain, turned = densities(question_of())
    assert turned == pytest.approx(plain, rel=1e-12)


@pytest.mark.slow
def test_asymmetric_prior_breaks_the_symmetry():
    centre = {"centre": {"distribution": "normal", "loc": "4", "scale": "1"}}
    plain, turned = densities(question_of(centre))
    assert turned != pytest.approx(plain, rel=1e-6)


@pytest.mark.slow
def test_negated_response_negates_the_sums():
    """Devices clip y and −y alike, and round them alike to less than a millionth of the noise."""
    question = question_of()
    mechanism = mechanism_for(question)
    truth, _ = simulated(question)
    answers = family_of(question).simulate(question, truth, 400, np.random.default_rng(4))
    low, high = (float(bound) for bound in question.response.bounds)
    turned = {**answers, "rate": low + high - answers["rate"]}

    before, after = (
        exact_total(question, mechanism, rows, True) / mechanism.grid for rows in (answers, turned)
    )
    size = len(FEATURES) + 2
    sign = np.asarray([-1.0 if (i == size - 1) != (j == size - 1) else 1.0 for i, j in mechanism.coordinates])
    assert after == pytest.approx(sign * before, abs=1e-6 * mechanism.noise_sd * 20)


def test_noted_share_beyond_bounds_matches_simulation():
    question = question_of()
    truth, _ = simulated(question)
    answers = family_of(question).simulate(question, truth, 200_000, np.random.default_rng(5))["rate"]
    low, high = (float(bound) for bound in question.response.bounds)
    beyond = 100 * np.mean((answers < low) | (answers > high))
    (note,) = possible_clipping(question, {name: value[None, None] for name, value in truth.sites.items()})
    assert float(note.split("that ")[1].split(" %")[0]) == pytest.approx(beyond, abs=1)


@pytest.mark.slow
@pytest.mark.parametrize("base", [LINE, studies.RECORD], ids=["sums", "records"])
def test_possible_clipping_is_noted_for_few_noisy_reports(base):
    model = simulated(question_of(base=base), n=20)[1]
    (note,) = model.remarks(sample_prior(model, 1, 200))
    assert "leave possible" in note


def test_a_posterior_within_the_bounds_has_no_note():
    truth, model = simulated(question_of(), n=20)
    narrow = {
        **truth.sites,
        "intercept": np.asarray(0.1),
        "coefficients": np.full(5, 0.1),
        "feature_mean": np.zeros(5),
        "feature_sd": np.full(5, 0.2),
        "sd": np.asarray(0.2),
    }
    assert model.remarks({name: np.asarray(value)[None, None] for name, value in narrow.items()}) == ()
