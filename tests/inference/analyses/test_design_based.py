"""Totals and shares of drawn samples: textbook cases by hand, coverage by brute force, refusals."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from inference.analyses.analysing import analyse_table
from inference.analyses.design_based import (
    as_draws,
    covariance_of,
    design_based,
    estimate,
    freedom,
    noise_of,
    scores_of,
    total,
    without_replacement,
)
from inference.analyses.joining import joined
from inference.analyses.page import sentence
from inference.analyses.population import Population
from inference.analyses.reports import private_of, table_of_reports
from inference.analyses.samples import Sampled
from inference.analyses.table import known_channel, table_of
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

WARNER = [[0.8, 0.2], [0.2, 0.8]]
DICE = [[0.9, 0.1], [0.1, 0.9]]
# Lohr, Sampling: Design and Analysis, example 5.2: grades of the four students in 5 of 100 suites.
GRADES = [
    [3.08, 2.60, 3.44, 3.04],
    [2.36, 3.04, 3.28, 2.68],
    [2.00, 2.56, 2.52, 1.88],
    [3.00, 2.88, 3.44, 3.64],
    [2.68, 1.92, 3.28, 3.20],
]


def test_clusters_are_those_of_a_textbook():
    """Total 1130.4; between suites s² = 2.256, so that V = 100² s² / 5, without the book's 1 − 5/100."""
    grades = np.asarray(GRADES).reshape(-1, 1)
    ones = np.ones(20, np.int64)
    drawn = Sampled(np.full(20, 20.0), clusters=np.repeat(np.arange(5), 4), scaled=True)
    found, spread = total(grades, drawn.weights, ones, drawn)
    assert found[0] == pytest.approx(1130.4, abs=1e-9)
    between = np.var(np.asarray(GRADES).sum(axis=1), ddof=1)
    assert between == pytest.approx(2.256, abs=5e-4)
    assert spread[0, 0] == pytest.approx(100**2 * between / 5, rel=1e-12)
    mean, own = estimate(grades, drawn.weights, ones, drawn)
    assert mean[0] == pytest.approx(2.826, abs=1e-9)
    # 0.164 in the book, with its factor √(1 − 5/100).
    assert np.sqrt(own[0, 0] * 0.95) == pytest.approx(0.164, abs=5e-4)
    assert freedom(ones, drawn) == 4


def test_strata_are_those_of_hand():
    """Warner's dice: reports 1, 0, 1 of 30 people and 0, 0, 1, 1 of 80: scores are (report − 0.2) / 0.6."""
    reports = np.asarray([1, 0, 1, 0, 0, 1, 1])
    strata = np.asarray([0, 0, 0, 1, 1, 1, 1])
    weights = np.asarray([10.0] * 3 + [20.0] * 4)
    scores = scores_of(known_channel("q", ["no", "yes"], reports, WARNER))
    yes = (reports - 0.2) / 0.6
    assert scores[:, 1] == pytest.approx(yes, abs=1e-12)
    drawn = Sampled(weights, strata)
    found, spread = total(scores, weights, np.ones(7, np.int64), drawn)
    assert found[1] == pytest.approx(30 * yes[:3].mean() + 80 * yes[3:].mean(), abs=1e-12)
    by_hand = 30**2 * yes[:3].var(ddof=1) / 3 + 80**2 * yes[3:].var(ddof=1) / 4
    assert spread[1, 1] == pytest.approx(by_hand, rel=1e-12)
    # Weights that are the same for all within strata: the share is the total over 110 people.
    share, own = estimate(scores, weights, np.ones(7, np.int64), drawn)
    assert share[1] == pytest.approx(found[1] / 110, rel=1e-12)
    assert own[1, 1] == pytest.approx(by_hand / 110**2, rel=1e-12)


def test_unequal_probabilities_are_those_of_hansen_and_hurwitz():
    """V = Σ (n yᵢ/πᵢ − t)² / (n (n − 1)) of units that are drawn with replacement."""
    random = np.random.default_rng(1)
    reports, chance = random.integers(0, 2, 40), random.uniform(0.1, 0.9, 40)
    scores = scores_of(known_channel("q", ["no", "yes"], reports, WARNER))
    found, spread = total(scores, 1 / chance, np.ones(40, np.int64), Sampled(1 / chance))
    each = 40 * scores[:, 1] / chance
    assert found[1] == pytest.approx(each.mean(), rel=1e-12)
    assert spread[1, 1] == pytest.approx(np.sum((each - each.mean()) ** 2) / (40 * 39), rel=1e-12)


def test_people_drawn_without_replacement_are_those_of_rrtcs():
    """Σ (r² − r)/π + Σ (1 − π)(r/π − A)² / (1 − Σ a²), a = (1 − π)/Σ(1 − π), A = Σ a r/π; by strata too."""
    random = np.random.default_rng(5)
    reports, chance = random.integers(0, 2, 50), random.uniform(0.1, 0.9, 50)
    scores = scores_of(known_channel("q", ["no", "yes"], reports, WARNER))
    r = (reports - 0.2) / 0.6
    strata = np.arange(50) // 30

    def by_hand(rows):
        a = (1 - chance[rows]) / np.sum(1 - chance[rows])
        middle = np.sum(a * r[rows] / chance[rows])
        return np.sum((1 - chance[rows]) * (r[rows] / chance[rows] - middle) ** 2) / (1 - np.sum(a**2))

    noise = np.sum(r * (r - 1) / chance)
    assert np.sum(noise_of(scores[:, 1]) / chance) == pytest.approx(noise, rel=1e-12)
    ones = np.ones(50, np.int64)
    for own, parts in ((None, [slice(None)]), (strata, [strata == 0, strata == 1])):
        drawn = Sampled(1 / chance, own, chances=chance)
        found = without_replacement(scores[:, 1] / chance, ones, drawn)
        assert found == pytest.approx(sum(by_hand(rows) for rows in parts), rel=1e-12)
    # A stratum of which everybody was asked.
    everybody = Sampled(np.ones(50), strata, chances=np.where(strata == 0, 1.0, 0.5))
    assert without_replacement(np.where(strata == 0, r, 3.0), ones, everybody) == pytest.approx(0, abs=1e-9)


def test_half_of_all_people_drawn_without_replacement_are_covered():
    """90 % of totals; the variance with replacement is too large by what was drawn."""
    random = np.random.default_rng(6)
    truth = (random.random(400) < 0.4).astype(int)
    inside = np.zeros(2)
    runs, size = 600, 200
    chance, ones = np.full(size, size / 400), np.ones(size, np.int64)
    drawn = Sampled(1 / chance, scaled=True, chances=chance)
    half = stats.t.ppf(0.95, size - 1)
    for _ in range(runs):
        answers = truth[random.permutation(400)[:size]]
        said = (random.random(size) < np.asarray(DICE)[answers, 1]).astype(int)
        scores = scores_of(known_channel("q", ["no", "yes"], said, DICE))
        found, spread = total(scores, drawn.weights, ones, drawn)
        own = without_replacement(drawn.weights * scores[:, 1], ones, drawn)
        own += np.sum(noise_of(scores[:, 1]) / chance)
        inside += np.abs(found[1] - truth.sum()) < half * np.sqrt([own, spread[1, 1]])
    assert 0.87 < inside[0] / runs < 0.93, inside
    assert inside[1] / runs > 0.93


def test_equal_rows_that_are_counted_together_are_as_many_rows():
    """Of everybody alone, and in clusters."""
    random = np.random.default_rng(2)
    values, counts = random.normal(size=(6, 2)), np.asarray([3, 1, 2, 4, 1, 1])
    clusters, strata = np.asarray([0, 0, 1, 2, 2, 3]), np.asarray([0, 0, 0, 1, 1, 1])
    each = np.repeat(np.arange(6), counts)
    ones = np.ones(len(each), np.int64)
    for units in (None, clusters):
        whole = Sampled(np.ones(6), strata, units)
        one_by_one = Sampled(np.ones(len(each)), strata[each], None if units is None else units[each])
        assert np.allclose(
            covariance_of(values, counts, whole), covariance_of(values[each], ones, one_by_one)
        )
        assert freedom(counts, whole) == freedom(ones, one_by_one)


def test_draws_have_the_quantiles_of_the_t_law():
    draws = as_draws(0.3, 0.04, 4.0)
    assert np.quantile(draws, [0.05, 0.5, 0.95]) == pytest.approx(
        0.3 + 0.2 * stats.t.ppf([0.05, 0.5, 0.95], 4), abs=2e-3
    )


def village(random, strata=3, villages=40):
    """A population of villages, in strata, whose people are alike: who says yes, and what the truth is."""
    sizes = random.integers(5, 40, (strata, villages))
    shares = random.beta(0.6, 0.9, (strata, villages)) * np.linspace(0.5, 1, strata)[:, None]
    return [
        [(random.random(sizes[h, v]) < shares[h, v]).astype(int) for v in range(villages)]
        for h in range(strata)
    ]


def sample(people, random, drawn=10, each=20):
    """`drawn` villages of each stratum, `each` people of a village, dice; its rows as columns."""
    rows = []
    for stratum, villages in enumerate(people):
        for place in random.integers(0, len(villages), drawn):
            answers = villages[place]
            chosen = answers[random.integers(0, len(answers), each)]
            weight = len(villages) / drawn * len(answers) / each
            unit = len(rows) // each
            rows += [(stratum, unit, weight, int(one)) for one in chosen]
    stratum, unit, weight, answers = map(np.asarray, zip(*rows, strict=True))
    said = (random.random(len(answers)) < np.asarray(DICE)[answers, 1]).astype(np.int64)
    return stratum, unit, weight.astype(float), said


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [True, False])
def test_intervals_cover_as_often_as_they_say(clustered):
    """90 % of a share's and of a total's; without the clusters they are too short, as they must be."""
    random = np.random.default_rng(3)
    people = village(random)
    truth = np.concatenate([one for stratum in people for one in stratum])
    inside = np.zeros(2)
    runs = 500
    for _ in range(runs):
        stratum, unit, weights, said = sample(people, random)
        scores = scores_of(known_channel("q", ["no", "yes"], said, DICE))
        ones = np.ones(len(said), np.int64)
        drawn = Sampled(weights, stratum, unit if clustered else None)
        half = stats.t.ppf(0.95, freedom(ones, drawn))
        for place, (of, wanted) in enumerate(((estimate, truth.mean()), (total, truth.sum()))):
            found, spread = of(scores, weights, ones, drawn)
            inside[place] += abs(found[1] - wanted) < half * np.sqrt(spread[1, 1])
    if clustered:
        assert np.all((inside / runs > 0.87) & (inside / runs < 0.93)), inside
    else:
        assert np.all(inside / runs < 0.8), inside


def table(n=60, **more):
    random = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "p": np.where(np.arange(n) % 2, 0.2, 0.4),
            "region": pd.Categorical(np.where(np.arange(n) < n // 2, "a", "b"), categories=["a", "b", "sea"]),
            "village": np.arange(n) // 5,
            **more,
        }
    )
    return table_of(frame, [known_channel("q", ["no", "yes"], random.integers(0, 2, n), WARNER)])


def test_what_is_said_of_groups_adds_up():
    """Two groups' shares, weighted by their people, are everybody's; a level without reports is left out."""
    over = Population(by="region", inclusion="p", strata="region", cluster="village")
    found = {one.name: one for one in design_based(table(), "q", over.sampled(table()), "region")}
    alone = Population(inclusion="p").sampled(table())
    names = [one.name for one in design_based(table(), "q", alone)]
    assert "design-based total q = yes, drawn without replacement" in names
    assert not any("without" in name for name in found)
    groups = [found[f"design-based share q = yes, region = {level}"].draws.mean() for level in "ab"]
    assert np.mean(groups) == pytest.approx(found["design-based share q = yes"].draws.mean(), abs=1e-9)
    moved = found["design-based share q = yes, region: b − a"]
    assert moved.draws.mean() == pytest.approx(groups[1] - groups[0], abs=1e-9)
    assert "above 0 with probability" in sentence(moved) or "below 0" in sentence(moved)
    assert "%" in sentence(found["design-based share q = yes"])
    assert found["design-based total q = yes"].draws.mean() == pytest.approx(
        found["design-based share q = yes"].draws.mean() * np.sum(1 / table().public["p"]), rel=1e-9
    )
    assert not any("sea" in name for name in found)


@pytest.mark.slow
def test_a_difference_of_two_estimates_without_a_model_is_no_narrower_than_they_are():
    """Their draws are quantiles in one order: taken together, most of either's spread would cancel."""
    found = analyse_table(
        table(), "q ~ region", population=Population(by="region", inclusion="p"), method="laplace"
    )
    one, other = (found[f"design-based share q = yes, region = {level}"] for level in "ab")
    assert (other - one).sd == pytest.approx(np.hypot(one.sd, other.sd), rel=0.05)


def test_each_wave_is_a_sample_of_its_own():
    """Shares, totals and variances are those of the wave alone; villages of one name are others."""
    over = Population(inclusion="p", strata="region", cluster="village")
    whole = replace(joined({"a": table(), "b": table(40)}, "wave"), waves="wave")
    found = {one.name: one.draws for one in design_based(whole, "q", over.sampled(whole))}
    for wave, own in (("a", table()), ("b", table(40))):
        alone = {one.name: one.draws for one in design_based(own, "q", over.sampled(own))}
        for name in ("share", "total"):
            together = found[f"design-based {name} q = yes, wave = {wave}"]
            by_itself = alone[f"design-based {name} q = yes"]
            assert together.mean() == pytest.approx(by_itself.mean(), abs=1e-9)
            # Of all waves' degrees of freedom.
            assert together.std() == pytest.approx(by_itself.std(), rel=0.2)
    assert "design-based share q = yes, wave: b − a" in found
    assert "design-based total q = yes" not in found
    sampled = over.sampled(whole)
    assert freedom(whole.counts, sampled) == 12 + 8 - 4


LONE = np.where(np.arange(60) == 0, "c", "a")
BAD = [
    ({"inclusion": "p", "strata": "lone"}, "the stratum lone = c has one report alone"),
    ({"strata": "region", "cluster": "region"}, "the stratum region = a has one region alone"),
    ({"strata": "lone", "cluster": "village"}, "village 0 stands in 2 strata"),
    ({"inclusion": "village"}, "village must be positive"),
    ({"inclusion": "big"}, "at most 1: look at row 1"),
    ({"inclusion": "p", "weights": "big"}, "one over weights"),
    ({"strata": "region", "census": pd.DataFrame({"count": [1]})}, "give one"),
    ({"cluster": "q"}, "q is private"),
]


@pytest.mark.parametrize(("given", "said"), BAD, ids=[said for _, said in BAD])
def test_a_sample_that_cannot_be_is_refused(given, said):
    whole = table(lone=LONE, big=np.full(60, 2.0))
    with pytest.raises(InputError, match=said) as error:
        analyse_table(whole, "q ~ 1", population=Population(**given), method="laplace")
    assert "\n" not in str(error.value)


def test_reports_of_devices_are_drawn_samples_too():
    """Public fields carry how people were drawn; equal reports are counted together."""
    fields = [
        {"id": "p", "bounds": ["0.1", "1"], "step": "0.1"},
        {"id": "town", "choices": ["a", "b"]},
        {"id": "clinic", "bounds": ["1", "50"], "step": "1"},
    ]
    study = Study(studies.document(studies.YES_NO, public=fields))
    mechanisms, (question,) = mechanisms_of(study), study.questions
    reports, rows, source = [], [], NotForRealAnswers(Random(4).randbytes)
    for person in range(120):
        public = {"p": ("0.2", "0.5")[person % 2], "town": "ab"[person // 60], "clinic": 1 + person // 10}
        # Half of all, of whom no few clusters tell: nothing is widened.
        reports.append(perturb_answers(study, mechanisms, {"ever": person % 4 < 2, **public}, source))
        said = private_of(question, [reports[-1].payloads["ever"]])
        rows.append((float(public["p"]), public["town"], public["clinic"], scores_of(said)[0, 1]))
    frame = pd.DataFrame(rows, columns=["p", "town", "clinic", "score"])
    over = Population(inclusion="p", strata="town", cluster="clinic")
    table = table_of_reports(study, reports, ["ever", *over.columns()])
    assert len(table.counts) < 60
    found = {one.name: one for one in design_based(table, "ever", over.sampled(table))}
    each = frame.assign(value=frame["score"] / frame["p"]).groupby(["town", "clinic"])["value"].sum()
    draws = found["design-based total ever = yes"].draws
    assert np.median(draws) == pytest.approx(each.sum(), abs=1e-2)
    variance = sum(6 * each[town].var(ddof=1) for town in "ab")
    quantile = (np.quantile(draws, 0.95) - each.sum()) / stats.t.ppf(0.95, 10)
    assert quantile == pytest.approx(np.sqrt(variance), rel=5e-3)


@pytest.mark.parametrize("over", [Population(weights="w"), Population(inclusion="w")])
def test_weights_of_a_private_number_are_refused_with_what_else_there_is(over):
    """Its reports are sums of an answer and noise: no matrix says which label they speak for."""
    study = Study(studies.document(studies.NUMBER, public=[{"id": "w", "bounds": ["0", "1"], "step": "0.5"}]))
    name, source = studies.NUMBER["id"], NotForRealAnswers(Random(5).randbytes)
    mechanisms = mechanisms_of(study)
    reports = [
        perturb_answers(study, mechanisms, {name: 1, "w": weight}, source) for weight in ("0.5", "1") * 30
    ]
    table = table_of_reports(study, reports, [name, "w"])
    with raises(InputError, "weights.private_number", "hours"):
        analyse_table(table, f"{name} ~ w", population=over)
