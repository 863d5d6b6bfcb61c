"""Reports of memoized answers: the likelihood has the exact probabilities of both stages of noise."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.handlers import seed, substitute, trace
from scipy.stats import multinomial

from inference.models import model_for
from ldp_client import mechanism_for
from schemas import Study
from summaries import QuestionSummary
from tests import studies

CHOICE = {**studies.MEMOIZED_BITS, "mechanism": studies.KEPT}


def observed(question, values):
    """Shares at the model's start and the log-probability that it gives to the values there."""
    model = model_for(question, QuestionSummary(int(values.sum()), values))
    with jax.enable_x64(True):
        start = {name: jnp.asarray(value, float) for name, value in model.initial.items()}
        program = seed(substitute(model.program, data=start), jax.random.PRNGKey(0))
        site = trace(program).get_trace(**model.data)["reports"]
        return np.asarray(start["p"]), float(site["fn"].log_prob(site["value"]).sum())


def pattern_chance(m, bits, true):
    """The probability of a pattern of bits when choice `true` was answered."""
    ones = [float(m.p if place == true else m.q) for place in range(m.choices)]
    return np.prod([one if bit else 1 - one for one, bit in zip(ones, bits)])


def cell_chances(m, shares):
    """The probability of each cell that is counted: a choice, or a pattern of bits."""
    if m.of == "randomized_response":
        return float(m.q) + float(m.p - m.q) * shares
    patterns = [bits[::-1] for bits in itertools.product([0, 1], repeat=m.choices)]
    given = [[pattern_chance(m, bits, true) for true in range(m.choices)] for bits in patterns]
    return np.asarray(given) @ shares


@pytest.mark.parametrize(
    "template", [studies.MEMOIZED, CHOICE, studies.MEMOIZED_BITS], ids=["yes-no", "k", "bits"]
)
def test_likelihood_includes_both_stages_of_noise(template):
    question = Study(studies.document(template)).questions[0]
    m = mechanism_for(question)
    values = {2: [30, 20], 3: [5, 9, 14], 8: [3, 1, 4, 1, 5, 9, 2, 6]}[
        len(question.choices) if m.of == "randomized_response" else 2**m.choices
    ]
    values = np.asarray(values)
    shares, found = observed(question, values)
    shares = np.asarray([1 - shares, shares]) if shares.ndim == 0 else shares
    chances = cell_chances(m, shares)
    assert chances.sum() == pytest.approx(1)
    assert found == pytest.approx(multinomial.logpmf(values, values.sum(), chances), abs=1e-8)
