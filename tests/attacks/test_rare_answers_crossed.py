"""Tries to have two rare, independent answers read as dependent, and a prior read as what reports say.

Defence: The analysis: a crossed table's prior has log odds ratios around 0 whatever the margins; where
reports say hardly more, the verdict's informativeness is partial, with its exit code.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers

from inference.analyses.crossing import cross_table
from inference.analyses.joint_law import JointLaw, log_odds
from inference.analyses.table import Table
from tests.kit.channels import known_channel
from tests.statistics import share_is

TRUTH_TOLD = np.e / (1 + np.e)
CHANNEL = np.asarray([[TRUTH_TOLD, 1 - TRUTH_TOLD], [1 - TRUTH_TOLD, TRUTH_TOLD]])
KINDS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def crossed(joint, n, both_more=0.0, draws=200):
    """Reports at ε = 1, as many as expected, but for so many sds more people who seem to say yes to both."""
    counts = n * np.kron(CHANNEL, CHANNEL).T @ np.asarray(joint)
    counts += both_more * np.sqrt(n) / 4 * np.asarray([1, -1, -1, 1])
    columns = [
        known_channel(name, ["no", "yes"], [kind[place] for kind in KINDS], CHANNEL)
        for place, name in enumerate("ab")
    ]
    table = Table(
        pd.DataFrame(index=range(4)), {one.name: one for one in columns}, np.rint(counts).astype(int)
    )
    return cross_table(table, ["a", "b"], draws=draws)


def odds_interval(found):
    (odds,) = [one.draws for one in found.quantities if one.name == "odds ratio a and b"]
    return np.quantile(odds, [0.05, 0.95])


@pytest.mark.slow
@pytest.mark.parametrize("both_more", [0.0, 1.0])
def test_rare_independent_answers_are_not_called_dependent(both_more):
    """With shares of 2 % among 4,000 people, the interval of the odds ratio used to lie above 1."""
    found = crossed([0.9604, 0.0196, 0.0196, 0.0004], 4_000, both_more)
    low, high = odds_interval(found)
    assert low < 1 < high
    assert found.verdict.informativeness.state == "partial"
    assert "log odds ratio a and b" in found.verdict.informativeness.reasons[0]
    assert not any("wider prior" in note for note in found.diagnostics.notes)


@pytest.mark.slow
def test_one_sided_odds_ratio_gives_partial_informativeness():
    """With shares of 10 % and an odds ratio of 8, the interval ends below 8 by chance."""
    found = crossed([0.8374, 0.0626, 0.0626, 0.0374], 5_000, -1.2, draws=800)
    assert odds_interval(found)[1] < 8
    assert found.verdict.informativeness.state == "partial"
    assert "on one side" in found.verdict.informativeness.reasons[0]


@pytest.mark.slow
def test_strong_dependence_is_detected():
    """An odds ratio of 6 among common answers of 20,000."""
    found = crossed([0.4, 0.2, 0.1, 0.3], 20_000)
    low, high = odds_interval(found)
    assert 2 < low < 6 < high
    assert found.verdict.ok


def test_joint_prior_has_uniform_margins():
    """The density equals that of uniform margins and normal interactions, as a function of the effects."""
    sizes = (2, 2, 3)
    law = JointLaw(sizes)
    random = np.random.default_rng(0)
    points = random.normal(size=(4, 1, law.basis.shape[1])) * 2

    def own(effects):
        shares = jax.nn.softmax(effects @ law.basis.T).reshape(sizes)
        others = [tuple(axis for axis in range(len(sizes)) if axis != q) for q in range(len(sizes))]
        return jnp.concatenate([*(shares.sum(axis)[1:] for axis in others), effects[law.alone :]])

    def density(effects):
        with handlers.block(), handlers.trace() as trace, handlers.substitute(data={"effects": effects}):
            handlers.seed(law.sample, 0)(1)
        return sum(site["fn"].log_factor for name, site in trace.items() if name != "effects")

    with jax.enable_x64(True):
        slopes, told, apart = jax.jit(jax.jacfwd(own)), jax.jit(density), []
        for point in points:
            carried = np.linalg.slogdet(slopes(jnp.asarray(point[0])))[1]
            normal = -0.5 * np.sum(point[0, law.alone :] ** 2)
            apart.append(float(told(jnp.asarray(point))) - carried - normal)
    assert np.ptp(apart) < 1e-8


def test_joint_prior_draws_match_its_density():
    """Margins uniform, and log odds ratios of mean 0 and sd 2 where both are rare, too."""
    law, n = JointLaw((2, 2)), 20_000
    columns = [known_channel(name, ["no", "yes"], [0], CHANNEL) for name in "ab"]
    shares = law.shares(law.drawn((n, 1), np.random.default_rng(0)))
    (odds,) = log_odds(columns, [""], shares).values()
    first, second = shares[:, 0, 2:].sum(axis=1), shares[:, 0, 1::2].sum(axis=1)
    assert all(share_is(int(np.sum(margin < 0.1)), n, 0.1) for margin in (first, second))
    rare = odds[(first < 0.2) & (second < 0.2)]
    assert abs(rare.mean()) < 5 * 2 / np.sqrt(len(rare))
    assert abs(rare.std() - 2) < 5 * 2 / np.sqrt(2 * len(rare))
