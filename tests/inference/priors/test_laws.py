"""Stated priors are the laws of the parameters; coordinates of shares and correlations keep their laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import LKJCholesky, biject_to
from numpyro.distributions.transforms import CorrCholeskyTransform
from scipy import stats

from inference.models import MODELS, model_for, priors_of
from inference.models.shares import ShareSticks, shares_of
from inference.priors.correlations import CorrelationFactor, correlation_factor
from inference.priors.laws import with_priors
from inference.sampling.space import sample_prior
from ldp_client.documents.errors import StudyError
from schemas import Study
from summaries import Summary
from tests import studies
from tests.inference.golden.case import stated
from tests.kit.errors import raises
from tests.statistics import FALSE_ALARM

NORMAL = stated("normal", loc=31, scale=2)
STUDENT = stated("student_t", degrees_of_freedom=4, loc=31, scale=2)
LOG_NORMAL = stated("log_normal", loc=1.5, scale=0.5)
DIRICHLET = stated("dirichlet", concentration=["4", "1", "2"])


def stating(template, **prior):
    return {**template, "model": {**template["model"], "prior": prior}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "prior", "parameter", "law"),
    [
        (studies.AGE, {"mean": NORMAL}, "mean", stats.norm(31, 2)),
        (studies.AGE, {"mean": STUDENT}, "mean", stats.t(4, 31, 2)),
        (studies.AGE, {"sd": LOG_NORMAL}, "sd", stats.lognorm(0.5, scale=np.exp(1.5))),
        (studies.NUMBER, {"rate": stated("gamma", shape=3, rate=10)}, "rate", stats.gamma(3, scale=0.1)),
        (studies.YES_NO, {"p": stated("uniform", low=0.1, high=0.4)}, "p", stats.uniform(0.1, 0.3)),
        (studies.CHOICE, {"p": DIRICHLET}, "p[student]", stats.beta(4, 3)),
        (studies.LINEAR, {"coefficients": {"age": NORMAL}}, "coefficient[age]", stats.norm(31, 2)),
    ],
)
def test_a_stated_prior_is_the_law_of_the_reported_parameter(template, prior, parameter, law):
    question = studies.question_of(stating(template, **prior))
    empty = Summary.empty(Study(studies.document())).questions[question.id]
    model = model_for(question, empty)
    draws = np.ravel(model.parameters(sample_prior(model, seed=5))[parameter])
    assert stats.kstest(draws, law.cdf).pvalue > FALSE_ALARM
    wrong = stats.norm(law.mean() + law.std() / 2, law.std())
    assert stats.kstest(draws, wrong.cdf).pvalue <= FALSE_ALARM
    jax.clear_caches()


@pytest.mark.parametrize(("norm", "longest"), [("0.5", 0.5), ("7", 2)])
def test_prior_of_holder_slopes_is_limited_by_the_response(norm, longest):
    """Bounds 10…14 of features and 1…5 of the response: half widths of 2."""
    features = [{"id": f"x{i}", "bounds": ["10", "14"]} for i in range(4)]
    table = {**studies.LINEAR, "ask": "table", "mechanism": studies.TABLE["mechanism"]}
    priors = priors_of(studies.question_of(table, features=features, norm=norm))
    slopes = [law["scale"] for law in priors["coefficients"].values()]
    reach = np.full(4, longest)
    assert np.linalg.norm(slopes * reach) == pytest.approx(2)
    squares = sum(6 / law["rate"] ** 2 for law in priors["feature_sd"].values())
    squares += sum(law["scale"] ** 2 for law in priors["feature_mean"].values())
    assert squares == pytest.approx(5 / 8 * (2 * longest) ** 2)
    assert {law["loc"] for law in priors["feature_mean"].values()} == {12.0}


def test_every_prior_a_study_may_state_has_a_default():
    from schemas.models import MODELS as CATALOGUE

    assert set(MODELS) == set(CATALOGUE)
    for question in Study(studies.document()).questions:
        shape = CATALOGUE[question.model.name].shape.optional["prior"]
        # Of a share of refusals where the question offers one.
        assert set(priors_of(question)) == set(shape.optional) - {"refused"}


def test_python_priors_replace_priors_of_study():
    question = studies.question_of(stating(studies.AGE, mean=NORMAL, sd=stated("half_normal", scale=3)))
    changed = with_priors(question, {"mean": {"distribution": "normal", "loc": 25, "scale": 0.5}})
    assert priors_of(changed)["mean"] == {"distribution": "normal", "loc": 25.0, "scale": 0.5}
    assert priors_of(changed)["sd"] == {"distribution": "half_normal", "scale": 3.0}
    assert priors_of(question)["mean"]["loc"] == 31.0


LINE = {"coefficients": {"height": NORMAL}}
PAIR = {"p": {"distribution": "dirichlet", "concentration": [1, 2]}}


@pytest.mark.parametrize(
    ("template", "priors", "code", "field", "fact"),
    [
        (studies.AGE, {"median": NORMAL}, "study.invalid", "model.prior.median", "mean, refused, sd"),
        (studies.AGE, {"mean": {**NORMAL, "scale": -1}}, "study.invalid", "model.prior.mean.scale", "-1"),
        (studies.LINEAR, LINE, "study.prior_invalid", "rating.model.prior.coefficients.height", "height"),
        (studies.CHOICE, PAIR, "study.prior_invalid", "occupation.model.prior.p.concentration", "3"),
    ],
)
def test_bad_priors_in_python_are_refused(template, priors, code, field, fact):
    with raises(StudyError, code, fact, field=field):
        with_priors(studies.question_of(template), priors)


@pytest.mark.slow
def test_draws_of_shares_follow_the_dirichlet():
    concentration = np.array([0.3, 0.02, 1.5, 0.7])
    with jax.enable_x64(True):
        drawn = ShareSticks(concentration).sample(jax.random.key(1), (4000,))
        shares = np.asarray(shares_of(drawn))
    for j, own in enumerate(concentration):
        marginal = stats.beta(own, concentration.sum() - own)
        # Below this a share is none: floats cannot tell, and the law's own function underflows.
        some = shares[:, j] > 1e-9
        assert stats.binomtest(int(some.sum()), 4000, marginal.sf(1e-9)).pvalue > FALSE_ALARM
        found = marginal.cdf(shares[some, j]), marginal.cdf(1e-9)
        assert stats.kstest((found[0] - found[1]) / (1 - found[1]), "uniform").pvalue > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_map_and_jacobian_of_correlations_match_numpyro(size):
    ours, theirs = biject_to(correlation_factor), CorrCholeskyTransform()
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(5, size * (size - 1) // 2)))
        factor, others = (jax.jit(one.__call__)(x) for one in (ours, theirs))
        np.testing.assert_allclose(factor, others, atol=1e-14)
        volumes = [jax.jit(one.log_abs_det_jacobian)(x, factor) for one in (ours, theirs)]
        np.testing.assert_allclose(*volumes, rtol=1e-9)
        np.testing.assert_allclose(ours.inv(factor), x, rtol=1e-9)
        own, known = (law(size, 1.7).log_prob(factor) for law in (CorrelationFactor, LKJCholesky))
        np.testing.assert_allclose(own, known)


@pytest.mark.slow
def test_gradients_are_finite_at_partial_correlations_near_one():
    ours = biject_to(correlation_factor)

    def potential(x):
        factor = ours(x)
        return -CorrelationFactor(4, 2.0).log_prob(factor) - ours.log_abs_det_jacobian(x, factor)

    with jax.enable_x64(True):
        x = jnp.asarray([0.0, 25.0, -40.0, 1.0, -25.0, 3.0])
        slope = jax.jit(jax.grad(potential))(x)
        assert np.isfinite(slope).all()
        # Out there the density falls at least as exp(−2 |x|), and leads back.
        assert slope[1] > 1.9
        assert slope[2] < -1.9
        assert slope[4] < -1.9
        assert np.isfinite(jax.jit(jax.hessian(potential))(x)).all()
