"""Analyses from table to posterior: modes, priors, names, errors and notes."""

from __future__ import annotations

import json
import pickle
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from inference.analyses.analysing import analyse_table, model_of
from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from inference.analyses.table import table_of
from inference.results.saving import save_posteriors
from inference.sampling import sample_prior
from ldp_client.commands.output import Step
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import YES_NO, table
from tests.kit.channels import known_channel
from tests.kit.errors import raises


def simulated(n: int = 1000, seed: int = 1, slope: float = 0.8):
    """logit P(ever) = −0.5 + slope × age + 1 in the west, under a known matrix."""
    random = np.random.default_rng(seed)
    age, region = random.normal(size=n), random.choice(["east", "west"], n)
    chance = 1 / (1 + np.exp(0.5 - slope * age - (region == "west")))
    answers = (random.random(n) < chance).astype(int)
    reports = (random.random(n) < np.asarray(YES_NO)[answers, 1]).astype(int)
    frame = pd.DataFrame({"age": age, "region": region})
    return table_of(frame, [known_channel("ever", ["no", "yes"], reports, YES_NO)])


@pytest.fixture(scope="module")
def posterior():
    return analyse_table(simulated(), "ever ~ age + region", seed=3)


@pytest.mark.slow
def test_progress_of_chains_runs_from_start_to_end():
    """Each stretch of the chains starts at 0, and draws do not depend on whether progress is watched."""
    heard: list[str] = []
    small = simulated(400)
    one, other = (
        analyse_table(small, "ever ~ region", seed=3, draws=100, progress=each)
        for each in (heard.append, None)
    )
    steps = [line for line in heard if isinstance(line, Step)]
    begun = [place for place, step in enumerate(steps) if step.share == 0]
    assert begun[0] == 0
    for first, last in pairwise([*begun, len(steps)]):
        shares = [step.share for step in steps[first:last]]
        assert len(shares) > 1
        assert shares == sorted(set(shares))
        assert shares[-1] == 1
    assert heard[-1].endswith(("500 of 500 draws of each chain", "100 of 100 draws of each chain"))
    for name, draws in one.draws.items():
        np.testing.assert_array_equal(draws, other.draws[name])
    # Also to whoever listens in another process.
    again = pickle.loads(pickle.dumps(steps))
    assert [(str(step), step.share) for step in again] == [(str(step), step.share) for step in steps]


@pytest.mark.slow
def test_posterior_is_near_the_simulated_truth(posterior):
    """Within five sds: one sound fit in a million is further away."""
    truth = {"Intercept": -0.5, "age": 0.8, "region[west]": 1.0}
    for name, row in posterior.rows().items():
        assert abs(row["mean"] - truth[name]) < 5 * row["sd"]
        # 1,000 noisy answers: neither nothing was learnt, nor more than answers without noise would tell.
        assert 0.06 < row["sd"] < 0.5
    assert posterior.diagnostics.ok


@pytest.mark.slow
def test_mode_and_its_curvature_match_plain_likelihood(posterior):
    """The likelihood's peak, and its curvature, by a plain implementation."""
    data = simulated()
    reports = data.private["ever"].codes
    columns = np.column_stack(
        [np.ones(data.n), data.public["age"], (data.public["region"] == "west").astype(float)]
    )

    def log_likelihood(beta):
        share = 1 / (1 + np.exp(-columns @ beta))
        yes = 0.2 * (1 - share) + 0.7 * share
        return float(np.sum(np.where(reports == 1, np.log(yes), np.log1p(-yes))))

    found = posterior.maximum_likelihood
    beta = np.asarray(list(found.values.values()))
    assert found.log_likelihood == pytest.approx(log_likelihood(beta), abs=1e-8)
    step = 1e-4
    unit = np.eye(3) * step
    slope = [(log_likelihood(beta + one) - log_likelihood(beta - one)) / (2 * step) for one in unit]
    # In sds of the estimate: nothing is left to climb.
    assert np.all(np.abs(np.asarray(slope) * list(found.sds.values())) < 1e-4)
    curvature = [
        [
            (log_likelihood(beta + a + b) - log_likelihood(beta + a - b))
            - (log_likelihood(beta - a + b) - log_likelihood(beta - a - b))
            for a in unit * 10
        ]
        for b in unit * 10
    ]
    information = -np.asarray(curvature) / (4 * (10 * step) ** 2)
    assert list(found.sds.values()) == pytest.approx(np.sqrt(np.diag(np.linalg.inv(information))), rel=1e-4)


@pytest.mark.slow
def test_saved_posterior_has_mode_and_draws(posterior, tmp_path):
    save_posteriors({"ever": posterior}, tmp_path)
    entry = json.loads((tmp_path / "posterior.json").read_text())["questions"]["ever"]
    assert set(entry["mode"]["parameters"]) == set(entry["parameters"]) == set(posterior.draws)
    assert entry["formula"] == "ever ~ age + region"


@pytest.mark.slow
def test_arviz_groups_and_coordinates_match_bambi(posterior):
    tree = posterior.to_arviz()
    assert set(tree["posterior"].data_vars) == {"Intercept", "age", "region"}
    assert list(tree["posterior"]["region"].coords["region_dim"].values) == ["west"]
    assert tree["prior"]["age"].shape[1] == 1000
    assert tree["sample_stats"]["diverging"].shape == tree["posterior"]["age"].shape
    for name in ("prior_predictive", "posterior_predictive", "observed_data"):
        # All people, bands of the ages, those in the east, those in the west.
        assert tree[name]["reports"].shape[-1] == 1 + 8 + 2


def test_names_of_choices_groups_and_thresholds_match_bambi():
    found = assemble(table(), "mood ~ job + (age | clinic)")
    axes = found.axes()
    assert axes["threshold[low]"].coordinates == {"threshold_dim": "low"}
    assert axes["1|clinic[2]"].coordinates == {"clinic__factor_dim": "2"}
    assert axes["job[teacher]"].coordinates == {"job_dim": "teacher"}
    assert {"1|clinic_sigma", "age|clinic_sigma"} <= set(found.priors())


REFUSED = {
    "ever ~": "formula.not_two_sides",
    "ever ~ age ~ region": "formula.not_two_sides",
    "evr ~ age": ("table.unknown_column", "'evr'", "ever?"),
    "ever ~ agee": ("table.unknown_column", "'agee'", "age?"),
    "ever ~ ever": ("formula.outcome_on_both_sides", "ever"),
    "ever ~ age^2": ("formula.bare_power", "I(age**2)"),
    "ever ~ age + I(age * 2)": ("formula.collinear_columns", "age, I(age * 2)"),
    "ever ~ region + C(region)": ("formula.collinear_columns", "C(region)"),
    "ever ~ I(age * 0)": ("formula.constant_column", "I(age * 0)"),
    "ever ~ 1 | clinic": ("formula.varying_without_brackets", "(1 | clinic)"),
    "ever ~ age - (1 | clinic)": ("formula.varying_without_plus", "(1 | clinic)"),
    "ever ~ (1 | job)": ("formula.private_group", "job"),
    "ever ~ (1 | clinic": ("formula.bracket_not_closed", "(1 | clinic"),
    "ever ~ log(age - 1000)": ("formula.term_not_evaluated", "log(age - 1000)"),
    "ever ~ (lambda: age)()": ("table.unknown_column", "'lambda'"),
    "ever ~ age.__class__": "formula.double_underscore",
    "ever ~ os.system('true')": ("table.unknown_column", "'os'"),
    "ever ~ region + 0*age:": ("formula.terms_not_readable", "region + 0*age:"),
}


@pytest.mark.parametrize("formula", REFUSED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unfittable_formula_is_rejected_in_one_line(formula):
    with raises(InputError, REFUSED[formula]) as error:
        assemble(table(), formula)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("priors", "code"),
    [
        ({"agee": "flat"}, ("prior.unknown_parameter", "'agee'")),
        (
            {"age": {"distribution": "beta", "a": 1, "b": 1}},
            ("prior.unknown_distribution", "age", "normal, student_t"),
        ),
        (
            {"age": {"distribution": "normal", "loc": 0, "scale": -1}},
            ("prior.value_not_number", "age", "scale"),
        ),
        ({"age": {"distribution": "normal", "loc": 0}}, ("prior.wrong_fields", "age", "loc, scale")),
        ("none", ("prior.wrong_form", '"flat"')),
    ],
)
def test_unusable_prior_is_rejected(priors, code):
    with raises(InputError, code):
        assemble(table(), "ever ~ age", priors)


def test_family_that_does_not_fit_outcome_is_rejected():
    for formula, family in (
        ("ever ~ age", "softmax"),
        ("income ~ age", "logistic"),
        ("income ~ age", "poisson"),
    ):
        with pytest.raises(InputError):
            assemble(table(), formula, family=family)


def test_blank_in_used_column_is_rejected():
    whole = table()
    whole.public.loc[3, "age"] = np.nan
    with raises(InputError, "table.blank_cells", "4"):
        assemble(whole, "ever ~ age")
    assemble(whole, "ever ~ region")


def separated(n: int = 400):
    """Nobody in the west reports yes: fewer than the noise alone would have."""
    random = np.random.default_rng(5)
    region = np.where(np.arange(n) % 2, "west", "east")
    reports = np.where(region == "west", 0, random.integers(0, 2, n))
    frame = pd.DataFrame({"region": region})
    return table_of(frame, [known_channel("ever", ["no", "yes"], reports, YES_NO)])


@pytest.mark.slow
def test_separation_is_reported_and_rejected_under_flat_priors():
    with raises(InputError, "prior.flat_leaves_unbounded", "region[west]"):
        analyse_table(separated(), "ever ~ region", priors="flat")
    found = analyse_table(separated(), "ever ~ region")
    assert found.verdict.informativeness.state == "partial"
    assert "region[west] on one side at most" in found.verdict.informativeness.reasons[0]
    assert found.maximum_likelihood is None


@pytest.mark.slow
def test_level_without_reports_keeps_prior_and_is_noted():
    frame = pd.DataFrame({"region": pd.Categorical(["a", "b"] * 50, categories=["a", "b", "c"])})
    random = np.random.default_rng(2)
    whole = table_of(frame, [known_channel("ever", ["no", "yes"], random.integers(0, 2, 100), YES_NO)])
    found = analyse_table(whole, "ever ~ region")
    assert any("no report has region[c]" in note for note in found.diagnostics.notes)
    assert found.draws["region[c]"].std() == pytest.approx(2.5, rel=0.1)
    with raises(InputError, "prior.flat_without_reports", "region[c]"):
        analyse_table(whole, "ever ~ region", priors="flat")


def test_predictive_check_names_its_groups_of_people():
    whole = simulated(400)
    analysis = assemble(whole, "ever ~ age + region")
    before = sample_prior(model_of(analysis), 1)
    found = checked(analysis, before, {name: values[None] for name, values in before.items()}, 1)
    everybody, *bands, east, west = found.people.values()
    assert (everybody, east, west) == ("all", "region = east", "region = west")
    assert len(bands) == 8
    assert all(re.fullmatch(r"age = -?[\d.]+…-?[\d.]+", band) for band in bands)
    said_no = whole.private["ever"].codes == 0
    for place, name in found.people.items():
        if name in bands:
            continue
        own = (
            np.ones(400, bool) if name == "all" else whole.public["region"] == name.removeprefix("region = ")
        )
        assert found.observed[place] == pytest.approx(np.mean(said_no[own]))


def with_few(few: int, n: int = 5000) -> pd.DataFrame:
    """People of whom few are in region z, and as many have something else; all of ages 20 to 69."""
    region = np.where(np.arange(n) < few, "z", np.where(np.arange(n) % 2, "a", "b"))
    rare = np.arange(n)[::-1] < few
    return pd.DataFrame({"region": region, "rare": rare.astype(int), "age": 20.0 + np.arange(n) // 2 % 50})


def test_prior_of_level_does_not_depend_on_its_size():
    frame = with_few(20)
    reports = np.arange(len(frame)) % 2
    whole = table_of(frame, [known_channel("ever", ["no", "yes"], reports, YES_NO)])
    analysis = assemble(whole, "ever ~ region * age + rare")
    scales = {name: prior["scale"] for name, (prior, _) in analysis.priors().items()}
    assert [scales[name] for name in ("region[b]", "region[z]", "rare")] == pytest.approx([2.5] * 3)
    assert scales["age"] == pytest.approx(2.5 / frame["age"].std(ddof=0))
    for level in "bz":
        own = frame["age"][frame["region"] == level].std(ddof=0)
        assert scales[f"region:age[{level}]"] == pytest.approx(2.5 / own)


@pytest.mark.parametrize("few", [20, 50])
def test_interval_of_small_group_holds_its_share(few):
    """Over all reports of a small group with 15 % yes: how often the 90 % interval holds its share.

    The others' share is taken as known. With a prior of sd 2.5 over the column's sd it held half of the time.
    """
    whole = table_of(with_few(few), [known_channel("ever", ["no", "yes"], np.arange(5000) % 2, YES_NO)])
    prior, _ = assemble(whole, "ever ~ region").priors()["region[z]"]
    effect = np.linspace(-8, 8, 4001) * prior["scale"]
    share = 1 / (1 + np.exp(np.log(0.85 / 0.15) - effect))
    yes = 0.2 * (1 - share) + 0.7 * share
    before = stats.norm.pdf(effect, 0, prior["scale"])
    held = 0.0
    for came in range(few + 1):
        after = np.cumsum(before * stats.binom.pmf(came, few, yes))
        low, high = np.interp([0.05, 0.95], after / after[-1], share)
        held += (low < 0.15 < high) * stats.binom.pmf(came, few, 0.2 * 0.85 + 0.7 * 0.15)
    assert held > 0.75
