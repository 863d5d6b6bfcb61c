"""The share of refusals and the law of those who answer: exact, and as wide as they must be."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density

from inference import fit
from inference.models import model_for
from inference.sampling.space import as_arrays
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.statistics import follows, share_is

YES_NO = {**studies.YES_NO, "refusal": True}
ONE_OF = {**studies.ONE_OF, "refusal": True}
BITS = {**studies.CHOICE, "refusal": True}
POINTS = [(0.2, 0.1), (0.7, 0.4)]


def asked(question):
    return Study(studies.document(question)).questions[0]


def law_of(mechanism, payload):
    """P(payload | answer), by the sampler's stated integers, for a choice and for a bit each."""
    if mechanism.name == "oue":
        bits = [payload[0] >> place & 1 for place in range(mechanism.choices)]
        chances = [
            [float(mechanism.p if own == place else mechanism.q) for place in range(len(bits))]
            for own in range(len(bits))
        ]
        return [np.prod([p if bit else 1 - p for bit, p in zip(bits, row, strict=True)]) for row in chances]
    return [float(mechanism.p if payload[0] == own else mechanism.q) for own in range(mechanism.choices)]


@pytest.mark.slow
@pytest.mark.parametrize("question", [YES_NO, ONE_OF, BITS])
def test_likelihood_matches_sum_over_possible_answers(question):
    question = asked(question)
    mechanism = mechanism_for(question)
    random = np.random.default_rng(1)
    answers = random.choice(np.asarray([*mechanism.labels], object), 200)
    payloads = perturb_many(mechanism, answers, NotForRealAnswers(random.bytes), refusals=True)
    summary = QuestionSummary(200, REDUCTIONS[mechanism.name].reduce(mechanism, payloads))
    model = model_for(question, summary)
    found, expected = [], []
    with jax.enable_x64(True):
        data = as_arrays(model.data)
        for share, refused in POINTS:
            shares = np.asarray([1 - share, share] if question.ask == "yes_no" else [share, 0.9 - share, 0.1])
            site = share if question.ask == "yes_no" else shares
            sites = {"p": jnp.asarray(site), "refused": jnp.asarray(refused)}
            total, _ = log_density(model.program, (), data, sites)
            # The priors are flat.
            found.append(float(total))
            everybody = np.append((1 - refused) * shares, refused)
            expected.append(sum(np.log(np.dot(everybody, law_of(mechanism, bytes(one)))) for one in payloads))
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [{"name": "laplace", "epsilon": "2"}, studies.NORMAL["mechanism"]])
@pytest.mark.parametrize("model", ["exponential", "nonparametric"])
def test_reports_of_numbers_follow_the_fitted_law(mechanism, model):
    """Device reports of people of whom 3 in 10 refuse; the law without refusals does not fit."""
    own = {"mechanism": mechanism, "model": {"name": model}, "refusal": {"share": "0.5"}}
    question = asked({**studies.NUMBER, **own})
    mechanism, random = mechanism_for(question), np.random.default_rng(3)
    answers = random.exponential(2.5, 100_000).astype(object)
    answers[random.random(len(answers)) < 0.3] = None
    payloads = perturb_many(mechanism, answers, NotForRealAnswers(random.bytes), refusals=True)
    summary = QuestionSummary(len(answers), REDUCTIONS[mechanism.name].reduce(mechanism, payloads))
    fitted = model_for(question, summary)
    with jax.enable_x64(True):
        sites = {"rate": 12 / 2.5} if model == "exponential" else {"roughness": 3.0, "shape": true_shape()}

        def cells(refused):
            placed = handlers.substitute(handlers.seed(fitted.program, 0), {**sites, "refused": refused})
            site = handlers.trace(placed).get_trace(**as_arrays(fitted.data))["reports"]
            return np.asarray(site["value"]), np.asarray(site["fn"].cell_probs)

        assert follows(*cells(0.3)) == (model == "exponential")
        assert not follows(*cells(0.01))
        counts, near = cells(0.3)
        # The coin's own law, whatever that of the numbers is.
        told = near.reshape(2, -1).sum(axis=1)
        assert told[1] == pytest.approx(0.3 * float(mechanism.p) + 0.7 * float(mechanism.q), abs=1e-6)
        assert share_is(int(counts.reshape(2, -1).sum(axis=1)[1]), int(counts.sum()), told[1])


def true_shape():
    return np.zeros(2 + 32)


STUDIES, PEOPLE = 400, 300
GRID = np.linspace(0.005, 0.995, 60)


def coverage(question, changed):
    """How many 90 % intervals of p and of refused hold truths from the prior; changed: what is fitted."""
    mechanism = mechanism_for(question)
    random = np.random.default_rng(7)
    channel = np.where(np.eye(3) == 1, float(mechanism.p), float(mechanism.q))
    model = model_for(question, QuestionSummary(PEOPLE, np.asarray([100, 100, 100])))
    sites = {"p": np.repeat(GRID, len(GRID)), "refused": np.tile(GRID, len(GRID))}

    def each(data, sites):
        return log_density(model.program, (), data, sites)[0]

    inside = np.zeros(2, int)
    with jax.enable_x64(True):
        surface = jax.jit(jax.vmap(each, (None, 0)))
        for _ in range(STUDIES):
            truth = random.random(2)
            shares = np.append((1 - truth[1]) * np.asarray([1 - truth[0], truth[0]]), truth[1])
            counts = changed(random.multinomial(PEOPLE, shares @ channel))
            logs = np.asarray(surface({"n": int(counts.sum()), "values": counts}, sites)).reshape(60, 60)
            weights = np.exp(logs - logs.max())
            for place, axis in enumerate((1, 0)):
                below = np.cumsum(weights.sum(axis=axis)) / weights.sum()
                at = np.interp(truth[place], GRID, below)
                inside[place] += 0.05 < at < 0.95
    return inside


def test_coverage_is_as_stated_only_if_refusals_are_modelled():
    question = asked({**YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "2"}})
    sound = coverage(question, lambda counts: counts)
    assert all(share_is(count, STUDIES, 0.9) for count in sound), sound
    # As if who reports a refusal were no part of the study.
    left_out = coverage(question, lambda counts: counts * [1, 1, 0])
    assert not any(share_is(count, STUDIES, 0.9) for count in left_out), left_out


@pytest.mark.slow
def test_fit_notes_that_shares_are_of_those_who_answer():
    """A quarter of 3,000 people refuse; 30 % of the others say yes."""
    study = Study(studies.document({**YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "3"}}))
    mechanism = mechanism_for(study.questions[0])
    channel = np.where(np.eye(3) == 1, float(mechanism.p), float(mechanism.q))
    counts = np.rint(3000 * np.asarray([0.525, 0.225, 0.25]) @ channel).astype(np.int64)
    summary = Summary(
        study.id, study.version, study.digest, {"ever": QuestionSummary(int(counts.sum()), counts)}
    )
    found = fit(study, summary, contamination=0.01)["ever"]
    assert list(found.draws) == ["p", "refused"]
    assert found["p"].mean == pytest.approx(0.3, abs=0.03)
    assert found["refused"].mean == pytest.approx(0.25, abs=0.03)
    assert found.is_share("refused")
    assert "describes people who answer" in " ".join(found.diagnostics.notes)
    low, high = found.identified.sets["p"]
    assert low < found["p"].interval()[0]
    assert found["p"].interval()[1] < high
