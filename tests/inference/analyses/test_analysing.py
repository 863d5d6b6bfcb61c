"""Analyses from table to posterior: draws, their progress, files, and fits that are refused or partial."""

import json
from itertools import pairwise

import numpy as np
import pytest

from inference.analyses.analysing import analyse_table
from inference.results.saving import save_posteriors
from inference.results.verdict import CARE
from ldp_client.documents.errors import InputError
from summaries.progress import Step
from tests.inference.analyses.simulated import forced
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
