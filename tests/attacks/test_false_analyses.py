"""Has an analysis report what its data does not say: no difference, a group's share, a law's own mixture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses import analysing, peaks
from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from inference.analyses.page import save_analysis
from inference.analyses.population import Population, notes_over, people_of, quantities_over
from inference.analyses.prior_sites import prior_sites
from inference.analyses.table import Table, known_channel, table_of
from inference.results.diagnostics import Diagnostics
from inference.results.verdict import Verdict
from inference.samplers import Sampler
from inference.sampling import Sampled
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import YES_NO, table

CENSUS = pd.DataFrame({"clinic": [0, 8, 9], "region": ["west"] * 3, "count": [100, 100, 100]})


@pytest.mark.parametrize("census", [None, CENSUS], ids=["people asked", "census"])
def test_groups_that_the_law_does_not_know_are_refused(census):
    """It would find no difference between them, whatever came."""
    whole = table()
    by = Population(by="region", census=census)
    with pytest.raises(InputError, match=r'write "ever ~ \(1 \| clinic\) \+ region"'):
        people_of(assemble(whole, "ever ~ (1 | clinic)"), whole, by)
    people_of(assemble(whole, "ever ~ region + (1 | clinic)"), whole, by)


def test_too_many_groups_are_refused_before_the_fit():
    whole = table(600)
    with pytest.raises(InputError, match="at most 200 can be told apart"):
        people_of(assemble(whole, "ever ~ income"), whole, Population(by="income"))


def test_groups_that_no_report_had_differ_from_one_another():
    """Each is drawn from the groups' law on its own, and is the same in its total and in the whole."""
    whole = table()
    analysis = assemble(whole, "ever ~ 1 + (1 | clinic)")
    over = Population(by="clinic", census=CENSUS)
    people = people_of(analysis, whole, over)
    sites = {name: values[None] for name, values in prior_sites(analysis, 1, 400).items()}
    found = {one.name: one.draws for one in quantities_over(analysis, sites, people, over)}
    apart = found["share ever = yes, clinic: 9 − 8, in the census"]
    assert apart.std() > 0.02
    levels = [found[f"total ever = yes, clinic = {clinic}, in the census"] for clinic in (0, 8, 9)]
    assert np.allclose(sum(levels), found["total ever = yes, in the census"], atol=1e-9)
    (note,) = notes_over(analysis, people)
    assert note.startswith("200 of 300 people are in groups of clinic that no report had (8, 9)")


def test_a_group_written_in_another_case_is_refused():
    """As (1 | place) takes groups that nobody asked, all of its people would be drawn from the law."""
    public = pd.DataFrame({"place": ["North", "south"] * 20})
    whole = table_of(public, [known_channel("ever", ("no", "yes"), [0, 1] * 20, YES_NO)])
    analysis = assemble(whole, "ever ~ 1 + (1 | place)")
    census = pd.DataFrame({"place": ["north ", "south"], "count": [10, 10]})
    with pytest.raises(InputError, match="the reports 'North'"):
        notes_over(analysis, people_of(analysis, whole, Population(census=census)))


# Their draws are those of the prior.
DRAWN = [
    ("ever ~ age + region", "logit"),
    ("ever ~ age", "probit"),
    ("job ~ region", "softmax"),
    ("mood ~ 0 + (1 | clinic)", "ordered"),
    ("income ~ ever", "normal"),
    ("visits ~ ever", "poisson"),
    ("visits ~ ever", "negative_binomial"),
]


def read(found, formula: str, folder: Path) -> None:
    """The posterior as people get it: a summary, ArviZ's groups, the document and the page."""
    save_analysis(found, folder)
    assert set(found.summary()) == set(found.draws)
    assert "posterior" in found.to_arviz()
    entry = json.loads((folder / "posterior.json").read_text())["questions"][found.question]
    assert set(entry["parameters"]) == set(found.draws)
    assert formula in (folder / "report.html").read_text()


@pytest.mark.slow
def test_what_was_fitted_can_be_read(tmp_path):
    found = analyse_table(table(60), "mood ~ age", family="ordered", method="laplace", draws=100)
    assert list(found.draws) == ["age", "threshold[low]", "threshold[so]"]
    read(found, "mood ~ age", tmp_path)


@pytest.mark.slow
def test_a_likelihood_that_rises_for_ever_has_no_peak():
    analysis = assemble(table(60), "income ~ ever", family="student_t")
    assert not peaks.peaks_of(analysis, analysing.model_of(analysis))[1].found


@pytest.mark.parametrize(("formula", "family"), DRAWN, ids=[family for _, family in DRAWN])
def test_what_was_drawn_can_be_read(formula, family, tmp_path, monkeypatch):
    """No fit is lost after the sampler ran, in any family."""

    def draw(_sampler, _model, seed, draws):
        sites = prior_sites(assemble(whole, formula, family=family), seed, 4 * draws)
        chains = {name: values.reshape(4, draws, *values.shape[1:]) for name, values in sites.items()}
        return Sampled(chains, np.zeros((4, draws), bool))

    whole = table(60)
    monkeypatch.setattr(Sampler, "draw", draw)
    monkeypatch.setattr(analysing, "peaks_of", lambda *_: None)
    read(analyse_table(whole, formula, family=family, draws=100), formula, tmp_path)


def of_two_kinds(seed: int, n: int = 2000) -> Table:
    """0.3 of all are armed, which is behind noise; what else they are has nothing to do with it."""
    random = np.random.default_rng(seed)
    armed = (random.random(n) < 0.3).astype(int)
    public = pd.DataFrame(
        {
            "sound": random.normal(0, 1, n).round(2),
            "skewed": random.lognormal(0, 0.6, n),
            "apart": (np.where(random.random(n) < 0.5, 0, 5) + random.normal(0, 1, n)).round(2),
        }
    )
    said = (random.random(n) < np.asarray(YES_NO)[armed, 1]).astype(int)
    others = (random.random(n) < 0.3).astype(int)
    return table_of(
        public,
        [
            known_channel("armed", ("no", "yes"), said, YES_NO),
            known_channel("other", ("no", "yes"), others, YES_NO),
        ],
    )


# A public number, or a private answer, by the answer behind noise: what a sampler may come to, and whether
# the reports bear it: {site: value}, of which the share of armed is that of yes.
CAME = [
    ("sound ~ armed", {"low": 0.0, "high": 0.0, "share": 0.3, "sigma": 1.0}, True),
    ("skewed ~ armed", {"low": 1.2, "high": 1.2, "share": 0.3, "sigma": 0.8}, False),
    ("apart ~ armed", {"low": 0.0, "high": 5.0, "share": 0.5, "sigma": 1.0}, False),
    ("sound ~ armed", {"low": 0.0, "high": 0.0, "share": 0.7, "sigma": 1.0}, False),
    ("other ~ armed", {"low": -1.4, "high": -1.4, "share": 0.7}, False),
]


@pytest.mark.parametrize(
    ("formula", "came", "good"), CAME, ids=[f"{one} {at['share']}" for one, at, _ in CAME]
)
def test_a_predictor_that_became_a_label_of_the_outcome_is_found(formula, came, good):
    """The reports alone say how many are armed, and whether these have another outcome."""
    analysis = assemble(of_two_kinds(1), formula)
    law, random = analysis.law, np.random.default_rng(2)
    moved = (came["high"] - came["low"]) * law.spreads[0] / law.unrotation[0, 0]
    middle = came["low"] + law.middles[0] * (came["high"] - came["low"])
    places = {"law_rotated": moved, "law_middle": middle}
    places["shares_middle"] = np.log(came["share"] / (1 - came["share"]))
    sites = {name: random.normal(value, 0.03, (4, 100, 1)) for name, value in places.items()}
    sites["law_rotated"] = sites["law_rotated"][..., None]
    if "sigma" in came:
        sites["sigma"] = random.normal(came["sigma"], 0.02, (4, 100))
    assert bool(checked(analysis, None, sites, 3).reasons()) != good


def test_an_analysis_of_which_nothing_was_checked_is_not_called_good():
    found = Diagnostics(Verdict(), (), 0, {}, {}, {}).unchecked("nothing was checked")
    assert not found.ok
    assert found.verdict.headline() == "nothing could be checked of the model"
    assert found.verdict.to_document()["model"]["state"] == "not checked"
