"""The prior of a crossed table: uniform shares of each question, and log odds ratios around 0."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from inference.analyses.crossing import crossing_of, is_one_sided
from inference.analyses.joint_law import JointEffects, JointLaw
from inference.analyses.table import table_of
from tests.inference.analyses.simulated import YES_NO
from tests.kit.channels import known_channel
from tests.statistics import share_is


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
    law, n = JointLaw((2, 2)), 4_000
    columns = [known_channel(name, ["no", "yes"], [0], YES_NO) for name in "ab"]
    crossing = crossing_of(table_of(pd.DataFrame(index=range(1)), columns), "ab")
    with jax.enable_x64(True):
        effects = jax.jit(lambda key: JointEffects(law, 1).sample(key, (n,)))(jax.random.key(0))
    shares = law.shares({"effects": effects})
    (odds,) = crossing.log_odds(shares).values()
    first, second = shares[:, 0, 2:].sum(axis=1), shares[:, 0, 1::2].sum(axis=1)
    assert all(share_is(int(np.sum(margin < 0.1)), n, 0.1) for margin in (first, second))
    rare = odds[(first < 0.2) & (second < 0.2)]
    assert abs(rare.mean()) < 5 * 2 / np.sqrt(len(rare))
    assert abs(rare.std() - 2) < 5 * 2 / np.sqrt(2 * len(rare))


@pytest.mark.attack(18)
def test_odds_ratio_that_only_one_side_bounds_is_named():
    """Reports show that an odds ratio is not large; its other end is the prior's, and no finding."""
    random = np.random.default_rng(0)
    before = random.normal(0, 2, 10_000)
    # Cut off above, as the prior is below.
    assert is_one_sided(before[before < 1.0], before)
    assert not is_one_sided(random.normal(0.5, 0.3, 10_000), before)
