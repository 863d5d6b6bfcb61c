"""A fit is checked against the reports: wrong laws are reasons against it, and right ones are not.

Draws are made near what a sampler finds for such tables, so that no fit is needed.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from inference.analyses.analysing import notes_of
from inference.analyses.checking import FEW, checked, impossible
from inference.analyses.program import assemble
from inference.analyses.subgroups import levels_or_bands
from inference.analyses.table import table_of
from inference.results.verdict import CARE, Verdict
from tests.inference.analyses.simulated import SHARP, any_draws, forced, reported, rolled, sites_of
from tests.kit.channels import known_channel


def reasons_at(random, analysis, law, shares=None, **own):
    """Reasons against the model at draws near coefficients; law, shares, own: values and their errors."""
    sites = {}
    for linear, near in ((analysis.law, law), (analysis.shares, shares)):
        if near:
            places, error = near
            sites |= sites_of(linear, places + random.normal(size=(4, 100, len(places))) * error)
    sites |= {name: random.normal(value, error, (4, 100)) for name, (value, error) in own.items()}
    return Verdict.of_findings(checked(analysis, None, sites, 3).findings()).reasons


# Of the score after: intercept, before, effect of the trait, sd; of the trait's logit: intercept, before.
SOUND = ([0.0, 1.0, 0.0], 5.0, [-3.4, 0.0])
LABELS_OF_THE_TAIL = ([-0.83, 1.003, 16.31], 3.887, [-2.607, -0.0075])


@pytest.mark.slow
@pytest.mark.attack(18)
@pytest.mark.parametrize(
    ("law", "came", "good"),
    [("normal", SOUND, True), ("lognormal", SOUND, False), ("lognormal", LABELS_OF_THE_TAIL, False)],
)
def test_skewed_residual_is_detected_despite_baseline_column(law, came, good):
    """A rare trait without any effect is given the residual's tail: an effect of 16 at an sd of 5."""
    random, n = np.random.default_rng(0), 2000
    trait, away = random.random(n) < 0.03, random.normal(size=n)
    if law == "lognormal":
        away = (np.exp(0.6 * away) - np.exp(0.18)) / 0.78
    before = random.normal(70, 500, n).round(1)
    public = pd.DataFrame({"before": before, "after": (before + 5 * away).round(1)})
    analysis = assemble(forced(public, rolled(random, trait)), "after ~ before + armed")
    places, sigma, shares = came
    law, shares = (places, [0.1, 0.001, 0.3]), (shares, [0.1, 0.001])
    assert (not reasons_at(random, analysis, law, shares, sigma=(sigma, 0.05))) == good


@pytest.mark.attack(18)
@pytest.mark.parametrize("hump", [False, True])
def test_hump_over_a_numeric_column_is_detected(hump):
    """A straight line is fitted through a hump over ages, and extrapolated to other ages."""
    random, n = np.random.default_rng(5), 3000
    age = np.clip(np.round(random.normal(45, 9, n)), 18, 80)
    share = 0.08 + 0.4 * expit((np.abs(age - 45) - 16) / 3) if hump else 0.12
    said = rolled(random, random.random(n) < share)
    law = ([logit(1.5 * (said.mean() - 1 / 6)), 0.0], [0.05, 0.001])
    assert bool(reasons_at(random, assemble(forced({"age": age}, said), "armed ~ age"), law)) == hump


# Of income: intercept, age, ever, sd; of the logit of ever: intercept, age.
LEVEL = ([50.0, 0.5, 0.0], 18.0, [-1.1, 0.0])
ARTEFACT = ([57.1, 0.17, 31.0], 16.1, [-5.84, 0.1])


@pytest.mark.slow
@pytest.mark.attack(18)
@pytest.mark.parametrize(("grows", "came"), [(False, LEVEL), (True, ARTEFACT)])
def test_growing_spread_is_detected_by_reports_of_the_predictor(grows, came):
    """A spread that grows with age looks like an effect of 31; the predictor's reports do not bear it out."""
    random, n, kept = np.random.default_rng(0), 800, 0.731
    ever, age = random.random(n) < 0.25, 20.0 + 10 * random.integers(0, 5, n)
    spread = np.interp(age, [20, 70], [10, 30]) if grows else 18.0
    income = 4 * np.round((50 + 0.5 * age + spread * random.normal(size=n)) / 4)
    said = np.where(random.random(n) < kept, ever, ~ever)
    channel = known_channel("ever", ["no", "yes"], said, [[kept, 1 - kept], [1 - kept, kept]])
    table = table_of(pd.DataFrame({"age": age, "income": income}), [channel])
    analysis, (law, sigma, shares) = assemble(table, "income ~ age + ever"), came
    law, shares = (law, [0.5, 0.01, 0.5]), (shares, [0.1, 0.002])
    reasons = reasons_at(np.random.default_rng(1), analysis, law, shares, sigma=(sigma, 0.3))
    assert any("reports of ever" in reason for reason in reasons) == grows
    assert any("one sigma is assumed for income" in note for note in notes_of(analysis))


@pytest.mark.slow
@pytest.mark.attack(18)
@pytest.mark.parametrize(
    ("law", "mean", "sd", "good"), [("normal", 5.0, 2.07, True), ("lognormal", 3.6, 2.6, False)]
)
def test_wrong_law_of_private_number_is_detected(law, mean, sd, good):
    """A skewed private number is fitted by a normal law; eight parts of the reports' range tell."""
    random = np.random.default_rng(4)
    hours = random.lognormal(1.0, 0.8, 3000) if law == "lognormal" else random.normal(5, 2, 3000)
    table = table_of(pd.DataFrame(index=range(3000)), [reported(SHARP, np.clip(hours, 0, 12))])
    reasons = reasons_at(random, assemble(table, "hours ~ 1"), ([mean], 0.06), sigma=(sd, 0.05))
    assert (not reasons) == good


@pytest.mark.attack(18)
def test_model_of_too_few_reports_is_not_called_good():
    """One report fits every law, so nothing was checked, and the verdict says so."""
    analysis = assemble(forced({"age": [20.0]}), "armed ~ 1")
    found = checked(analysis, None, any_draws(analysis), 1)
    assert Verdict.of_findings(found.findings()).overall == (CARE, (FEW,))


def test_check_has_reports_of_groups_that_add_up():
    """The page shows the shares that were reported, and as many simulated reports."""
    random = np.random.default_rng(3)
    frame = {"a": random.integers(0, 3, 300).astype(str), "age": random.normal(size=300)}
    said = random.integers(0, 2, 300)
    analysis = assemble(forced(frame, said), "armed ~ a + age")
    found = checked(analysis, None, any_draws(analysis, 60), 1)
    places = {name: at for at, name in found.people.items()}
    assert len([name for name in places if name.startswith("age = ")]) == 8
    masks = {level: frame["a"] == level for level in "012"}
    for level, mask in masks.items():
        assert found.observed[places[f"a = {level}"]] == pytest.approx(np.mean(said[mask] == 0))
    simulated = sum(found.posterior[:, places[f"a = {level}"]] * mask.sum() for level, mask in masks.items())
    assert simulated == pytest.approx(300 * found.posterior[:, places["all"]], abs=1e-9)


@pytest.mark.attack(18)
@pytest.mark.parametrize("kinds", [2, 4])
def test_reports_that_no_answers_can_give_are_a_misfit(kinds):
    """People do not follow the dice in the north; shares at the limit of what is possible are sound."""
    random, n = np.random.default_rng(kinds), 400
    answers, place = [str(kind) for kind in range(kinds)], np.arange(n) % 2
    matrix = np.full((kinds, kinds), 0.4 / kinds) + 0.6 * np.eye(kinds)
    followed = random.choice(kinds, n, p=matrix[0])
    for reports, bad in ((followed, False), (np.where(place == 1, 0, followed), True)):
        column = known_channel("q", answers, reports, matrix)
        table = table_of(pd.DataFrame({"place": place}), [column]).only(["place"], ["q"])
        found = list(impossible(table.private["q"], table, np.tile(np.eye(kinds)[0], (2, 1)), {}))
        said = "reports of q do not go with place as the fit expects: people did not follow the noise"
        assert [one.text for one in found] == bad * [said]


def test_sound_reports_are_rarely_called_impossible():
    """At the corners of what is possible, where all people gave the same answer, and few reports came."""
    random, matrix = np.random.default_rng(7), np.full((3, 3), 0.4 / 3) + 0.6 * np.eye(3)
    for answer in (0, 1, 2) * 20:
        column = known_channel("q", ("0", "1", "2"), random.choice(3, 60, p=matrix[answer]), matrix)
        table = table_of(pd.DataFrame(index=range(60)), [column]).only([], ["q"])
        assert not list(impossible(table.private["q"], table, np.eye(3)[[answer]], {}))


@pytest.mark.parametrize("most", [3, 8])
def test_columns_with_many_levels_are_grouped_into_bands(most):
    """Numbers get ordered bands; of words the most frequent one keeps a level of its own."""
    random, people = np.random.default_rng(1), np.ones(400)
    numbers = pd.Series(random.normal(size=400))
    words = pd.Series(random.choice(list("abcdefghijkl"), 400, p=[0.3, *[0.7 / 11] * 11]))
    bands, levels = (levels_or_bands(column, people, most) for column in (numbers, words))
    assert len(set(bands)) == len(set(levels)) == most
    assert (np.diff(bands[np.argsort(numbers)]) >= 0).all()
    assert set(words[levels == levels[words == "a"][0]]) == {"a"}
