"""Crossed tables of private answers: their prior, shares, dependence, and what reports leave to the prior."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers
from scipy.stats.contingency import association

from inference.analyses.crossing import cramers_v, cross_table, crossing_of
from inference.analyses.joint_law import JointEffects, JointLaw
from inference.analyses.table import Table, table_of
from inference.results.verdict import CARE
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import SHARP, YES_NO, reported
from tests.kit.channels import known_channel, open_share
from tests.kit.errors import raises
from tests.statistics import share_is

TRUTH_TOLD = np.e / (1 + np.e)
CHANNEL = np.asarray([[TRUTH_TOLD, 1 - TRUTH_TOLD], [1 - TRUTH_TOLD, TRUTH_TOLD]])
KINDS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_cramers_v_matches_scipy():
    shares = np.random.default_rng(0).dirichlet(np.ones(6)).reshape(2, 3)
    counts = np.round(shares * 1e6).astype(int)
    assert float(cramers_v(counts / counts.sum())) == pytest.approx(association(counts, "cramer"), rel=1e-9)


@pytest.mark.slow
@pytest.mark.attack(18)
def test_rare_independent_answers_are_not_called_dependent():
    """With shares of 2 % among 4,000 people, a prior of uniform cells would put the odds ratio above 1.

    Reports at ε = 1 are as many as expected, but for one sd more people who seem to say yes to both.
    """
    n, joint = 4_000, [0.9604, 0.0196, 0.0196, 0.0004]
    counts = n * np.kron(CHANNEL, CHANNEL).T @ joint + np.sqrt(n) / 4 * np.asarray([1, -1, -1, 1])
    columns = {
        name: known_channel(name, ["no", "yes"], [kind[place] for kind in KINDS], CHANNEL)
        for place, name in enumerate("ab")
    }
    table = Table(pd.DataFrame(index=range(4)), columns, np.rint(counts).astype(int))
    found = cross_table(table, ["a", "b"], draws=1000, chains=2)
    (odds,) = (one.draws for one in found.quantities if one.name == "odds ratio a and b")
    low, high = np.quantile(odds, [0.05, 0.95])
    assert low < 1 < high
    assert found.verdict.overall.word == CARE
    assert any("log odds ratio a and b" in reason for reason in found.verdict.reasons)


@pytest.mark.attack(17)
def test_likelihood_by_group_with_open_share_equals_enumeration():
    """P(both reports) is a sum over both answers, and over whether the second was at random."""
    said, place = np.asarray([*KINDS, *KINDS]), np.repeat([0, 1], 4)
    ever = known_channel("ever", ["no", "yes"], said[:, 0], YES_NO)
    public = pd.DataFrame({"place": np.asarray(["land", "town"])[place]})
    table = table_of(public, [ever, open_share("open", said[:, 1], "open_t")])
    crossing = crossing_of(table, ["ever", "open"], "place")
    model, random = crossing.model(), 0.4
    effects = np.asarray([[0.3, -0.2, 0.5], [-0.4, 0.1, 0.9]])
    with jax.enable_x64(True), handlers.substitute(data={"effects": effects, "open_t": random}):
        found = handlers.trace(model.program).get_trace(**model.data)["reports"]["fn"].log_factor
    shares = crossing.law.shares({"effects": effects}).reshape(2, 2, 2)
    first, second = np.asarray(YES_NO), random / 2 + (1 - random) * np.eye(2)
    chances = [first[:, a] @ shares[at] @ second[:, b] for (a, b), at in zip(said, place, strict=True)]
    assert float(found) == pytest.approx(np.log(chances).sum(), abs=1e-9)
    sites = {"effects": effects[None, None], "open_t": np.full((1, 1), random)}
    cells = product(("land", "town"), *[("no", "yes")] * 2)
    assert list(model.parameters(sites)) == [*(f"p[{', '.join(cell)}]" for cell in cells), "open_t"]
    dimensions = {"place_dim": "town", "ever_dim": "no", "open_dim": "yes"}
    assert crossing.entries["p[town, no, yes]"].coordinates == dimensions
    v = crossing.quantities(sites)["Cramér's V ever and open, place = town"]
    assert v.draws.item() == pytest.approx(cramers_v(shares[1]))


def test_columns_that_cannot_be_crossed_are_rejected():
    columns = [known_channel(name, ["no", "yes"], [0, 1], YES_NO) for name in ("ever", "job")]
    columns += [reported(SHARP, np.asarray([1.0, 2.0]))]
    table = table_of(pd.DataFrame({"place": ["a", "b"]}), columns)
    for names in (["ever"], ["ever", "ever"], ["ever", "place"], ["ever", "hours"]):
        with raises(InputError, "table.cross_needs_two_choices"):
            crossing_of(table, names)
    with raises(InputError, "table.unknown_column"):
        crossing_of(table, ["ever", "job"], "job")
    with raises(InputError, "prior.unknown_parameter"):
        crossing_of(table, ["ever", "job"], priors={"ever": {"distribution": "beta", "a": 1, "b": 1}})


@pytest.mark.slow
def test_joint_prior_has_uniform_margins():
    """The density equals that of uniform margins and normal interactions, as a function of the effects."""
    sizes = (2, 2, 3)
    law = JointLaw(sizes)
    points = np.random.default_rng(0).normal(size=(4, 1, law.basis.shape[1])) * 2

    def own(effects):
        shares = jax.nn.softmax(effects @ law.basis.T).reshape(sizes)
        others = [tuple(axis for axis in range(len(sizes)) if axis != q) for q in range(len(sizes))]
        return jnp.concatenate([*(shares.sum(axis)[1:] for axis in others), effects[law.alone :]])

    with jax.enable_x64(True):
        slopes, told, apart = jax.jit(jax.jacfwd(own)), jax.jit(JointEffects(law, 1).log_prob), []
        for point in points:
            carried = np.linalg.slogdet(slopes(jnp.asarray(point[0])))[1]
            normal = -0.5 * np.sum(point[0, law.alone :] ** 2)
            apart.append(float(told(jnp.asarray(point))) - carried - normal)
    assert np.ptp(apart) < 1e-8


@pytest.mark.attack(18)
def test_joint_prior_draws_match_its_density():
    """Two rare answers must not look dependent before any report: odds ratios are around 1 there, too."""
    n, columns = 4_000, [known_channel(name, ["no", "yes"], [0], YES_NO) for name in "ab"]
    crossing = crossing_of(table_of(pd.DataFrame(index=range(1)), columns), "ab")
    law = crossing.law
    with jax.enable_x64(True):
        effects = jax.jit(lambda key: JointEffects(law, 1).sample(key, (n,)))(jax.random.key(0))
    shares = law.shares({"effects": effects})
    (odds,) = crossing.log_odds(shares).values()
    first, second = shares[:, 0, 2:].sum(axis=1), shares[:, 0, 1::2].sum(axis=1)
    assert all(share_is(int(np.sum(margin < 0.1)), n, 0.1) for margin in (first, second))
    rare = odds[(first < 0.2) & (second < 0.2)]
    assert abs(rare.mean()) < 5 * 2 / np.sqrt(len(rare))
    assert abs(rare.std() - 2) < 5 * 2 / np.sqrt(2 * len(rare))
