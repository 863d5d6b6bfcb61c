"""Mixtures with unknown weights: likelihoods, posteriors, priors and plans match direct computations."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers
from scipy import special, stats

from inference.analyses.analysing import analyse_table, model_of
from inference.analyses.design_file import read_design
from inference.analyses.program import assemble
from inference.design.formulas import plan_formula
from inference.sampling.space import sample_prior
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import design, sites_of, with_design
from tests.kit.errors import raises

FORCED = {"design": "forced", "yes": "1/6", "no": "1/6"}
BOTH = {**FORCED, "denial": "unknown", "random": "unknown"}
NEVER = {"matrix": [["1", "0"]] * 2}
KINDS = {
    "mixture": {"follow": FORCED, "no": NEVER, "any": {"matrix": [["1/2", "1/2"]] * 2}},
    "weights": "unknown",
}
PRIORS = {
    "Intercept": {"distribution": "logistic", "loc": 0, "scale": 1},
    "q_random": {"distribution": "beta", "a": 2, "b": 8},
    "q_denial": {"distribution": "beta", "a": 1, "b": 9},
}
COUNTS = {(arm, report, x): 1 for arm in "ab" for report in ("no", "yes") for x in (0, 1)}
SHARES = {"q_denial": 0.3, "q_random": 0.2, "q_no_saying": 0.1}


def reports_have(analysis, coefficients, shares, yes):
    """Each row's likelihood at these shares is that of P(yes | arm, x)."""
    with jax.enable_x64(True):
        data = {name: jnp.asarray(one) for name, one in analysis.data().items()}
        sites = {**sites_of(analysis.law, coefficients), **shares}
        with handlers.seed(rng_seed=0), handlers.substitute(data=sites):
            each = np.asarray(analysis.each(data, *analysis.drawn(data)))
    rows = analysis.table.frame.iloc[analysis.table.cell]
    # Each arm with its own dice has its own codes of no and yes.
    part, report = np.divmod(analysis.table.private["q"].codes, 2)
    arms = rows["arm"] if "arm" in rows else np.asarray(["a", "b"])[part]
    for value, arm, said, x in zip(each, arms, report, rows["x"], strict=True):
        assert value == pytest.approx(log(yes(arm, x) if said else 1 - yes(arm, x)), abs=1e-12)


def enumerated(prevalence, denial, no_saying, random):
    """P(yes), by a sum over all people: what they are, how they behave and what they roll."""
    total, shares = 0.0, (prevalence, denial, no_saying, random, 0.5)
    for person in product((False, True), repeat=5):
        truth, denies, says_no, careless, coin = person
        chance = np.prod([share if is_so else 1 - share for is_so, share in zip(person, shares, strict=True)])
        follows = 1 / 6 + 2 / 3 * (truth and not denies)
        total += chance * (coin if careless else follows * (not says_no))
    return float(total)


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    ("stated", "unknown"),
    [
        (BOTH, ["denial", "random"]),
        ({**FORCED, "denial": "unknown", "random": "0.2"}, ["denial"]),
        ({**FORCED, "denial": "0.3", "no_saying": "unknown", "random": "unknown"}, ["no_saying", "random"]),
        ({**FORCED, "no_saying": "unknown"}, ["no_saying"]),
    ],
)
def test_likelihood_of_behaviours_equals_enumeration_of_people(stated, unknown):
    analysis = assemble(with_design(stated, COUNTS), "q ~ arm + x")
    shares = {f"q_{name}": SHARES[f"q_{name}"] for name in unknown}
    assert set(shares) == {name for name in analysis.initial() if name.startswith("q_")}
    behave = [SHARES[f"q_{name}"] if name in stated else 0.0 for name in ("denial", "no_saying", "random")]

    def yes(arm, x):
        return enumerated(special.expit(-0.4 + 0.5 * (arm == "b") + 0.9 * x), *behave)

    reports_have(analysis, [-0.4, 0.5, 0.9], shares, yes)


@pytest.mark.attack(17)
def test_groups_have_own_shares_and_a_common_share():
    """Equal names are one share; {"unknown": name} gives a group its own."""
    parts = [{"rows": {"arm": arm}, **FORCED, "denial": {"unknown": f"denial_{arm}"}} for arm in "ab"]
    analysis = assemble(with_design({"matrices": parts, "random": "unknown"}, COUNTS), "q ~ x")
    own = {"a": 0.1, "b": 0.6}
    shares = {"q_random": 0.2, **{f"q_denial_{arm}": share for arm, share in own.items()}}
    reports_have(
        analysis,
        [-0.4, 0.9],
        shares,
        lambda arm, x: enumerated(special.expit(-0.4 + 0.9 * x), own[arm], 0.0, 0.2),
    )


@pytest.mark.attack(17)
def test_weights_of_mixture_have_dirichlet_prior():
    """The likelihood and the prior's moments are those of three weights that add up to 1."""
    table = with_design(KINDS, COUNTS)
    prior = {"distribution": "dirichlet", "concentration": [7, 2, 1]}
    analysis = assemble(table, "q ~ x", {"q_weights": prior})
    # Of what the first branch leaves, the second has two thirds.
    reports_have(
        analysis,
        [-0.4, 0.9],
        {"q_weights_rest_0": 0.7, "q_weights_rest_1": 2 / 3},
        lambda _, x: 0.7 * (1 / 6 + 2 / 3 * special.expit(-0.4 + 0.9 * x)) + 0.1 / 2,
    )
    start = {name: np.asarray(value) for name, value in analysis.opened.initial().items()}
    assert list(analysis.opened.values(start)) == pytest.approx([0.7, 0.2, 0.1])
    draws = analysis.parameters(sample_prior(model_of(analysis), 0))
    names = [f"q_weights[{label}]" for label in ("follow", "no", "any")]
    assert sum(draws[name] for name in names) == pytest.approx(1.0)
    for name, alpha in zip(names, (7, 2, 1), strict=True):
        assert draws[name].mean() == pytest.approx(alpha / 10, abs=0.02)
        assert draws[name].std() == pytest.approx(stats.beta(alpha, 10 - alpha).std(), rel=0.1)
        assert analysis.priors()[name] == {"distribution": "beta", "a": alpha, "b": 10 - alpha}
    assert analysis.axes()[names[1]].coordinates == {"q_weights_dim": "no"}
    for wrong in ([7, 2], 7):
        with raises(InputError, "prior.invalid", "concentration"):
            assemble(table, "q ~ x", {"q_weights": {**prior, "concentration": wrong}})


def test_plan_rejects_unknown_shares():
    planned = read_design(design(q=KINDS))
    with raises(InputError, "plan.unknown_share_of_people", "q: a plan needs a number"):
        plan_formula(planned, "q ~ x", pd.DataFrame({"x": [0, 1]}))


@pytest.mark.attack(18)
def test_flat_prior_that_reports_cannot_bound_is_rejected_before_sampling():
    """P(yes) depends on prevalence × (1 − denial) alone: both are a ridge without an end."""
    counts = {("a", "no", 0): 60, ("a", "yes", 0): 40}
    for stated in (BOTH, {**FORCED, "denial": "unknown"}, {**FORCED, "no_saying": "unknown"}):
        with raises(InputError, "prior.flat_not_identified", "Intercept"):
            analyse_table(with_design(stated, counts), "q ~ 1", priors="flat")


@pytest.mark.slow
@pytest.mark.attack(17)
def test_posterior_of_two_shares_equals_grid_integration():
    """Beta priors of both shares on their own scale, and a uniform prevalence."""
    yes, people = 640, 2000
    counts = {("a", "yes", 0): yes, ("a", "no", 0): people - yes}
    found = analyse_table(with_design(BOTH, counts), "q ~ 1", priors=PRIORS, draws=4000).draws
    middles = (np.arange(200) + 0.5) / 200
    prevalence, denial, random = np.meshgrid(middles, middles, middles, indexing="ij", sparse=True)
    chance = random / 2 + (1 - random) * (1 / 6 + 2 / 3 * prevalence * (1 - denial))
    density = stats.binom(people, chance).logpmf(yes)
    density = density + stats.beta(2, 8).logpdf(random) + stats.beta(1, 9).logpdf(denial)
    weights = np.exp(density - density.max())
    weights /= weights.sum()
    share = special.expit(found["Intercept"])
    for draws, grid in ((found["q_denial"], denial), (found["q_random"], random), (share, prevalence)):
        mean = float((weights * grid).sum())
        sd = float(np.sqrt((weights * (grid - mean) ** 2).sum()))
        assert draws.mean() == pytest.approx(mean, abs=0.1 * sd)
        assert draws.std() == pytest.approx(sd, rel=0.1)
