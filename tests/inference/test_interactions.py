"""Interactions of features: the law of what devices send, slopes that come back, what is refused."""

from __future__ import annotations

from itertools import product

import jax
import numpy as np
import pytest
from scipy import special

from inference.design.calibration import calibrate, covered
from inference.models import family_of, model_for
from inference.models.base import Truth
from inference.models.leveled_cells import levels_of, margins, shares_of_cells
from inference.models.leveled_regressions import moments_on_levels
from inference.models.product_cells import cell_probabilities
from inference.models.regression import Regression, Scale
from inference.sampling.space import as_arrays, space_of
from inference.sampling.whitening import descend, finite
from ldp_client import mechanism_for
from schemas import Study
from summaries import QuestionSummary
from tests import studies

AGE = {"id": "age", "bounds": ["10", "90"], "cuts": ["25", "60"]}
HOURS = {"id": "hours", "bounds": ["0", "60"], "cuts": ["20", "40"]}
JOB = {"id": "job", "ask": "choice", "choices": ["none", "part", "full"]}
SEX, WORKS = ({"id": name, "ask": "yes_no"} for name in ("sex", "works"))
LOGISTIC = {"response": {"id": "rate", "ask": "yes_no"}, "model": {"name": "logistic_regression"}}


def document_of(*fields, interactions, linear=True, epsilon="1"):
    asked = {**studies.with_epsilon(studies.PRODUCTS, epsilon), "features": list(fields)}
    pairs = [list(pair) for pair in interactions]
    return {**asked, **({} if linear else LOGISTIC), "interactions": pairs}


def question_of(*fields, **stated):
    return Study(studies.document(document_of(*fields, **stated))).questions[0]


def law_of(fields, seed):
    """Shares of cells whose fields depend on each other, by the number of effects that they have."""
    random = np.random.default_rng(seed)
    main = sum(field.size - 1 for field in fields)
    pair = sum(a.paired * b.paired for place, a in enumerate(fields) for b in fields[place + 1 :])
    return np.asarray(shares_of_cells(fields, random.normal(size=main) / 2, random.normal(size=pair) / 4))


def people(question, law):
    """Of every kind of people how many there are, their entries and what the line adds up of them, scaled.

    Within a bin numbers are where the nodes of a quadrature are.
    """
    mechanism, scale = mechanism_for(question), Scale(question)
    fields = levels_of(mechanism)
    shares = [np.asarray(some) for some in margins(law)]
    for cell in product(*map(range, law.shape)):
        entries = np.concatenate([[1.0], *(f.codes[k] for f, k in zip(fields, cell, strict=True))])
        entries = [*entries, *(entries[i] * entries[j] for i, j in mechanism.crossed)]
        for some in product(*map(within, fields, shares, cell)):
            columns = np.concatenate([column for _, column in some])
            chance = law[cell] * np.prod([chance for chance, _ in some])
            yield chance, entries, scale.with_products(columns[None])[0]


def within(field, shares, level):
    if not len(field.ends):
        return [(1.0, field.columns[level])]
    nodes, weights = np.polynomial.legendre.leggauss(8)
    chances = weights * np.exp(field.steepness(shares)[level] * nodes)
    places = field.middle[level] + field.half[level] * nodes
    return list(zip(chances / chances.sum(), places[:, None], strict=True))


def enumerated(question, law, intercept, slopes, sd=None):
    """E[uuᵀ], person by person; sd: of a number as response, scaled."""
    second = 0.0
    for chance, entries, columns in people(question, law):
        line = intercept + columns @ slopes
        if sd is not None:
            one = np.outer([*entries, line], [*entries, line])
            one[-1, -1] += sd**2
        else:
            u = np.asarray([[*entries, -1.0], [*entries, 1.0]])
            one = (u.T * special.expit([-line, line])) @ u
        second = second + chance * one
    return second


ASKED = {
    "numbers": ((AGE, SEX, HOURS), [("sex", "age"), ("hours", "age")], True),
    "choices": ((SEX, WORKS, JOB), [("works", "sex"), ("sex", "job")], False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_the_likelihood_is_the_law_of_every_persons_report(name):
    """Each payload's probability, to 1e-12; with two interactions in each other's place it is another."""
    fields, pairs, linear = ASKED[name]
    question = question_of(*fields, interactions=pairs, linear=linear)
    mechanism, levels = mechanism_for(question), levels_of(mechanism_for(question))
    sd = 0.4 if linear else None
    with jax.enable_x64(True):
        law = law_of(levels, 1)
        slopes = np.random.default_rng(2).normal(size=len(Scale(question).all_names)) / 4
        line = Regression(0.2, slopes)
        found = np.asarray(moments_on_levels(levels, law, line, sd, question.interactions))
        second = enumerated(question, law, 0.2, slopes, sd)
        wrong = enumerated(question, law, 0.2, slopes[::-1], sd)
    told = cell_probabilities(mechanism, {"second": found})
    first, other = np.asarray(mechanism.coordinates).T

    def told_by(moments):
        shares = np.asarray(mechanism.weights) / mechanism.total / 2
        means = float(mechanism.gain) * moments[first, other]
        return (shares * [1 - means, 1 + means]).T.ravel()

    assert told == pytest.approx(told_by(second), abs=1e-12)
    assert np.abs(told - told_by(wrong)).max() > 1e-4


def test_the_entries_that_devices_compute_are_those_of_the_law():
    question = question_of(AGE, SEX, JOB, interactions=[("job", "age"), ("sex", "age")])
    mechanism = mechanism_for(question)
    for age, sex, job in product((11, 25, 88), (False, True), JOB["choices"]):
        u = np.asarray(mechanism.quantise({"age": age, "sex": sex, "job": job, "rate": 1.7})) / 2**20
        alone = [entry for entry, owner in zip(u, mechanism.owners, strict=True) if owner < 4]
        crossed = [alone[i] * alone[j] for i, j in mechanism.crossed]
        assert list(u) == [*alone, *crossed, u[-1]]
        assert set(alone) <= {-1.0, 1.0}
    kinds = {(mechanism.owners[i], mechanism.owners[j]) for i, j in mechanism.coordinates}
    assert {(5, 4), (6, 4)} <= kinds
    assert not [pair for pair in kinds if max(pair) > 4 and pair[1] != 4]


def mode_of(question, second, n=10**11):
    """Parameters where the counts are those that n people, very many, leave on average."""
    probabilities = cell_probabilities(mechanism_for(question), {"second": second})
    counts = np.rint(n * probabilities).astype(int)
    model = model_for(question, QuestionSummary(int(counts.sum()), counts))
    space = space_of(model)
    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(space.potential))
        data = as_arrays(model.data)
        start = np.asarray(space.start(as_arrays(model.initial, float), data))
        vector = descend(finite(lambda vector: compiled(vector, data)), start)
        sites = {name: np.asarray(value) for name, value in space.sites(vector, data).items()}
    return {name: float(value) for name, value in model.parameters(sites).items()}


@pytest.mark.slow
def test_coefficients_come_back():
    question = question_of(SEX, JOB, interactions=[("job", "sex")], linear=False)
    scale = Scale(question)
    with jax.enable_x64(True):
        law = law_of(levels_of(mechanism_for(question)), 3)
        slopes = np.random.default_rng(5).normal(size=len(scale.all_names)) / 2
        found = mode_of(question, enumerated(question, law, 0.1, slopes))
    own = own_units(question, 0.1, slopes)
    assert scale.all_names[3:] == ["job:sex=part", "job:sex=full"]
    assert {name: found[name] for name in own} == pytest.approx(own, abs=0.02)


def own_units(question, intercept, slopes):
    sites = {"intercept": np.full((1, 1), intercept), "coefficients": slopes[None, None]}
    return {name: float(value[0, 0]) for name, value in Scale(question).parameters(sites).items()}


def test_coefficients_in_own_units_are_those_of_the_formula():
    """As least squares has them, of columns and their products as they are answered."""
    question = question_of(
        AGE, SEX, JOB, HOURS, interactions=[("hours", "age"), ("sex", "job"), ("age", "sex")]
    )
    random, scale = np.random.default_rng(7), Scale(question)
    slopes, scaled = random.normal(size=len(scale.all_names)), random.normal(size=(40, len(scale.names)))
    line = scale.response.zero + scale.response.unit * (0.3 + scale.with_products(scaled) @ slopes)
    columns = scale.with_products(scale.zero + scale.unit * scaled)
    expected = np.linalg.lstsq(np.column_stack([np.ones(40), columns]), line, rcond=None)[0]
    assert list(own_units(question, 0.3, slopes).values()) == pytest.approx(list(expected), rel=1e-6)


def test_simulated_people_have_the_interaction_and_raw_answers_give_it_back():
    question = question_of(SEX, WORKS, interactions=[("sex", "works")], linear=False)
    parameters = {
        "intercept": -1.0,
        "coefficient[sex]": 0.5,
        "coefficient[works]": 0.0,
        "coefficient[sex:works]": 2.0,
    }
    truth = Truth(parameters, {"main": np.zeros(2), "pair": np.zeros(1)})
    drawn = family_of(question).simulate(question, truth, 40_000, np.random.default_rng(6))
    for sex, works in product((False, True), repeat=2):
        cell = (drawn["sex"] == sex) & (drawn["works"] == works)
        expected = special.expit(-1 + 0.5 * sex + 2 * sex * works)
        assert drawn["rate"][cell].mean() == pytest.approx(expected, abs=0.03)
    answers = [dict(zip(drawn, row, strict=True)) for row in zip(*drawn.values(), strict=True)]
    data = family_of(question).condition_on_answers(question, answers[:50]).data
    features = data["features"]
    assert np.array_equal(features[:, 2], features[:, 0] * features[:, 1])


@pytest.mark.slow
def test_intervals_of_an_interaction_hold_the_truth_as_often_as_they_say():
    """20 studies of truths from the prior; benchmarks/leveled_slopes.py has long ones."""
    question = question_of(SEX, WORKS, interactions=[("sex", "works")], linear=False, epsilon="2")
    found = calibrate(question, 20, 20_000, 1)
    shares = [
        covered(ranks, 0.9) for name, ranks in found.ranks.items() if name.startswith(("inter", "coef"))
    ]
    assert 0.78 <= np.mean(shares) <= 1
    assert covered(found.ranks["coefficient[sex:works]"], 0.9) >= 0.7
