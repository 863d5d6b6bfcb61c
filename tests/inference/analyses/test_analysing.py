"""Analyses from table to posterior: published peaks, draws, files, and fits that are refused or partial."""

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logit

from inference.analyses.analysing import analyse_table, model_of
from inference.analyses.peaks import peak_of
from inference.analyses.program import assemble
from inference.results.saving import save_posteriors
from inference.results.verdict import CARE
from ldp_client.documents.errors import InputError
from summaries.progress import Step
from tests.inference.analyses.simulated import forced, with_design
from tests.kit.errors import raises

pytestmark = pytest.mark.slow


def test_fit_tells_its_progress_and_saves_all_parameters(tmp_path):
    random, n, heard = np.random.default_rng(1), 1000, []
    public = {"age": random.normal(size=n), "region": random.choice(["east", "west"], n)}
    table, formula = forced(public, random.integers(0, 2, n)), "armed ~ age + region"
    posterior = analyse_table(table, formula, seed=3, draws=200, progress=heard.append)
    # Each stage of the chains runs from start to end.
    steps = [line for line in heard if isinstance(line, Step)]
    begun = [place for place, step in enumerate(steps) if step.share == 0]
    assert begun[0] == 0
    for first, last in pairwise([*begun, len(steps)]):
        shares = [step.share for step in steps[first:last]]
        assert shares == sorted(set(shares))
        assert shares[-1] == 1
    save_posteriors({"armed": posterior}, tmp_path)
    entry = json.loads((tmp_path / "posterior.json").read_text())["questions"]["armed"]
    assert set(entry["mode"]["parameters"]) == set(entry["parameters"]) == set(posterior.draws)
    assert entry["formula"] == formula
    tree = posterior.to_arviz()
    assert set(tree["posterior"].data_vars) == {"Intercept", "age", "region"}
    assert list(tree["posterior"]["region"].coords["region_dim"].values) == ["west"]
    assert tree["sample_stats"]["diverging"].shape == tree["posterior"]["age"].shape
    for name in ("prior_predictive", "posterior_predictive", "observed_data"):
        # All people, bands of the ages, those in the east, those in the west.
        assert tree[name]["reports"].shape[-1] == 1 + 8 + 2


@pytest.mark.attack(18)
def test_separation_is_partial_and_rejected_under_flat_priors():
    """All people of one level agree: only the prior bounds its slope, which must not be quoted as found."""
    random = np.random.default_rng(5)
    region = np.where(np.arange(400) % 2, "west", "east")
    # In the west as few say yes as the dice alone make them.
    dice_alone = np.arange(400) // 2 % 7 == 0
    table = forced({"region": region}, np.where(region == "west", dice_alone, random.integers(0, 2, 400)))
    with raises(InputError, "prior.flat_leaves_unbounded", "region[west]"):
        analyse_table(table, "armed ~ region", priors="flat")
    found = analyse_table(table, "armed ~ region", draws=300)
    assert found.verdict.overall.word == CARE
    assert "region[west] on one side at most" in found.verdict.reasons[0]


def has_peak(table, formula, wanted, sds, log_likelihood):
    analysis = assemble(table, formula, "flat")
    found = peak_of(analysis, model_of(analysis))
    assert list(found.values.values()) == pytest.approx(wanted, abs=1e-4)
    if sds:
        assert list(found.sds.values()) == pytest.approx(sds, abs=1e-3)
    if log_likelihood:
        assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-4)


# {arm: its design, and how many of 1,000 people, or of 400 under a design of GLMMRR, say yes at each x}.
ARMS = {
    "liars": ({"design": "stochastic_lie_detector", "p": "0.8"}, (352, 415, 506)),
    "other liars": ({"design": "stochastic_lie_detector", "p": "0.1"}, (832, 847, 804)),
    "cheaters": ({"design": "cheater_detection", "p": "0.75"}, (640,)),
    "other cheaters": ({"design": "cheater_detection", "p": "0.25"}, (390,)),
    "warner": ({"design": "warner", "p": "0.8"}, (133, 182, 222)),
    "forced": ({"design": "forced", "yes": "0.125", "no": "0.125"}, (122, 190, 223)),
    "unrelated": ({"design": "unrelated", "p": "0.7", "prevalence": "0.3"}, (92, 143, 200)),
    "crosswise": ({"design": "crosswise", "p": "0.18"}, (242, 208, 192)),
}
# Of cheaters' arms, P(yes) = π + β p, and γ = 1 − π − β cheat (Clark and Desharnais 1998).
NO = (0.64 - 0.39) / (0.75 - 0.25)
YES = 0.39 - 0.25 * NO


@pytest.mark.parametrize(
    ("arms", "wanted", "sds", "log_likelihood"),
    [
        # RRlog(y ~ x, model = "SLD", p = c(.8, .1)) of RRreg 0.7.6.
        (["liars", "other liars"], [-0.90186, 0.57246, 0.73242], [0.11518, 0.08478, 0.01315], -3398.56079),
        (["cheaters", "other cheaters"], [logit(YES / (YES + NO)), 1 - YES - NO], None, None),
        # RRglm(y ~ x, link = "RRlink.logit") of GLMMRR 0.6.0, of four designs in one table.
        (["warner", "forced", "unrelated", "crosswise"], [-1.05319, 0.69604], None, -3186.58540),
    ],
)
def test_peak_matches_published_estimates(arms, wanted, sds, log_likelihood):
    people = 1000 if len(arms) == 2 else 400
    counts = {}
    for arm in arms:
        for x, yes in enumerate(ARMS[arm][1]):
            counts |= {(arm, "yes", x): yes, (arm, "no", x): people - yes}
    parts = [{"rows": {"arm": arm}, **ARMS[arm][0]} for arm in arms]
    formula = "q ~ 1" if "cheaters" in arms else "q ~ x"
    has_peak(with_design({"matrices": parts}, counts), formula, wanted, sds, log_likelihood)
