"""An analysis reports what its data does not show: no difference, a group's share, or a mixture of its own.

Attack: (by mistake) to have an analysis compare groups that its formula does not name, or treat people in
groups without reports as all alike: the analyst's fit: refuses `--by` without the term; draws each new
group separately and states how many people are in such groups.

Attack: (by mistake) to fit a private predictor of an outcome with the wrong distribution, so that it
labels parts of the outcome: the analyst's fit: compares the outcome, for each report of the predictor,
with what it expects: "fit: bad" and exit code 4.

Attack: Not to follow the dice, if a private column is only a predictor or crossed with others; (by
mistake) to list a design's yes before its no: the analyst's fit: reports that no answers could give are
"fit: bad"; a named design in reversed order is refused, and a stated matrix with permuted labels adds a
warning to every result.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses import analysing
from inference.analyses.analysing import analyse_table, model_of
from inference.analyses.assembling import assemble
from inference.analyses.cells import cells_of
from inference.analyses.checking import checked
from inference.analyses.cli import stated_priors
from inference.analyses.design_file import read_design
from inference.analyses.matrices import matrix_of
from inference.analyses.noise_bounds import impossible
from inference.analyses.population import Population, notes_over, people_of, quantities_over
from inference.analyses.report_page import save_analysis
from inference.analyses.survey import read_frame, survey_of
from inference.analyses.table import Private, Table, table_of
from inference.results.diagnostics import Diagnostics
from inference.results.verdict import Verdict
from inference.samplers import Sampler
from inference.sampling import Sampled, sample_prior
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import YES_NO, table
from tests.kit.channels import known_channel
from tests.kit.errors import raises

CENSUS = pd.DataFrame({"clinic": [0, 8, 9], "region": ["west"] * 3, "count": [100, 100, 100]})


@pytest.mark.parametrize("census", [None, CENSUS], ids=["people asked", "census"])
def test_groups_missing_from_the_formula_are_rejected(census):
    """Otherwise the analysis would find no difference between them, whatever the reports."""
    whole = table()
    by = Population(by="region", census=census)
    with raises(InputError, "options.by_not_in_formula", "ever ~ (1 | clinic) + region"):
        people_of(assemble(whole, "ever ~ (1 | clinic)"), whole, by)
    people_of(assemble(whole, "ever ~ region + (1 | clinic)"), whole, by)


def test_too_many_groups_are_refused_before_the_fit():
    whole = table(600)
    with raises(InputError, "options.by_too_many_values", "200"):
        people_of(assemble(whole, "ever ~ income"), whole, Population(by="income"))


def test_groups_without_reports_are_drawn_separately():
    """Each is drawn separately from the groups' distribution, and totals use the same draw."""
    whole = table()
    analysis = assemble(whole, "ever ~ 1 + (1 | clinic)")
    over = Population(by="clinic", census=CENSUS)
    people = people_of(analysis, whole, over)
    sites = {name: values[None] for name, values in sample_prior(model_of(analysis), 1, 400).items()}
    found = {one.name: one.draws for one in quantities_over(analysis, sites, people, over)}
    apart = found["share ever = yes, clinic: 9 − 8, in the census"]
    assert apart.std() > 0.02
    levels = [found[f"total ever = yes, clinic = {clinic}, in the census"] for clinic in (0, 8, 9)]
    assert np.allclose(sum(levels), found["total ever = yes, in the census"], atol=1e-9)
    *_, note = notes_over(analysis, people, over)
    assert note.startswith("200 of 300 people are in groups of clinic without reports (8, 9)")


def test_census_column_missing_from_formula_is_noted():
    """Otherwise shares would be those of the people asked, whatever the census says about regions."""
    whole = table()
    analysis = assemble(whole, "ever ~ clinic")
    over = Population(census=CENSUS.assign(region=["west", "east", "east"], year=2024))
    note, *_ = notes_over(analysis, people_of(analysis, whole, over), over)
    assert "distinguishes people by region, but the formula does not" in note


def test_predictor_named_count_is_not_read_as_people():
    public = pd.DataFrame({"count": [1, 5] * 20})
    whole = table_of(public, [known_channel("ever", ("no", "yes"), [0, 1] * 20, YES_NO)])
    analysis = assemble(whole, "ever ~ count")
    census = pd.DataFrame({"count": [1, 5]})
    with raises(InputError, "census.count_column_ambiguous"):
        people_of(analysis, whole, Population(census=census))
    _, many = people_of(analysis, whole, Population(census=census.assign(people=[30, 10])))
    assert list(many) == [30, 10]


def test_level_names_are_kept_in_the_matrix():
    """The "T." that formulaic adds for contrasts is removed, but not a level's own first letters."""
    frame = pd.DataFrame({"region": ["N.Korea", "Korea", "T.x"], "place": ["a]b", "a]c", "d"]})
    assert matrix_of("0 + region", frame).levels == ("Korea", "N.Korea", "T.x")
    assert matrix_of("region", frame).levels == ("", "N.Korea", "T.x")
    assert matrix_of("region * place", frame).levels[3:6] == ("a]c", "d", "N.Korea, a]c")


def test_flat_prior_together_with_others_is_rejected(tmp_path):
    path = tmp_path / "priors.json"
    path.write_text('{"age": {"distribution": "normal", "loc": 0, "scale": 1}}')
    for given in (["flat", str(path)], [str(path), "flat"], ["age=flat", "flat"]):
        with raises(InputError, "options.flat_prior_with_others"):
            stated_priors(given)
    assert stated_priors(["flat"], {"age": "flat"}) == "flat"


# Their draws are those of the prior.
DRAWN = [
    ("job ~ region", "softmax"),
    ("mood ~ 0 + (1 | clinic)", "ordered"),
    ("visits ~ ever", "negative_binomial"),
]


def read(found, formula: str, folder: Path) -> None:
    """The posterior as people get it: a summary, ArviZ's groups, the document and the page."""
    save_analysis(found, folder)
    assert set(found.rows()) == set(found.draws)
    assert "posterior" in found.to_arviz()
    entry = json.loads((folder / "posterior.json").read_text())["questions"][found.question]
    assert set(entry["parameters"]) == set(found.draws)
    assert formula in (folder / "report.html").read_text()


@pytest.mark.slow
def test_laplace_result_can_be_read_back(tmp_path):
    found = analyse_table(table(60), "mood ~ age", family="ordered", method="gaussian_approx", draws=100)
    assert list(found.draws) == ["age", "threshold[low]", "threshold[so]"]
    read(found, "mood ~ age", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "family"), DRAWN, ids=[family for _, family in DRAWN])
def test_sampled_result_can_be_read_back_in_every_family(formula, family, tmp_path, monkeypatch):
    """No family's fit is lost after the sampler has run."""

    def draw(_sampler, _model, seed, draws, chains):
        sites = sample_prior(model_of(assemble(whole, formula, family=family)), seed, chains * draws)
        kept = {name: values.reshape(chains, draws, *values.shape[1:]) for name, values in sites.items()}
        return Sampled(kept, np.zeros((chains, draws), bool))

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
def test_predictor_that_relabels_the_outcome_is_detected(formula, came, good):
    """Only the reports say how many people are armed and whether their outcome differs."""
    analysis = assemble(of_two_kinds(1), formula)
    law, random = analysis.law, np.random.default_rng(2)
    moved = (came["high"] - came["low"]) * law.spreads[0]
    middle = came["low"] + law.middles[0] * (came["high"] - came["low"])
    places = {"law_slopes": moved, "law_middle": middle}
    places["shares_middle"] = np.log(came["share"] / (1 - came["share"]))
    sites = {name: random.normal(value, 0.03, (4, 100, 1)) for name, value in places.items()}
    sites["law_slopes"] = sites["law_slopes"][..., None]
    if "sigma" in came:
        sites["sigma"] = random.normal(came["sigma"], 0.02, (4, 100))
    assert bool(checked(analysis, None, sites, 3).reasons()) != good


def test_unchecked_analysis_is_not_called_good():
    found = Diagnostics(Verdict(), (), 0, {}, {}, {}).unchecked("nothing was checked")
    assert not found.ok
    assert found.verdict.headline() == "nothing could be checked of the model"
    assert found.verdict.to_document()["fit"]["state"] == "not checked"


def dice(random, share: float, n: int, kinds: int) -> Private:
    """Answers behind noise, of which `share` are of each kind but the first."""
    matrix = np.full((kinds, kinds), 0.4 / kinds) + 0.6 * np.eye(kinds)
    answers = np.where(random.random(n) < share * (kinds - 1), random.integers(1, kinds, n), 0)
    said = np.asarray([random.choice(kinds, p=matrix[answer]) for answer in answers])
    return known_channel(f"q{kinds}", [str(kind) for kind in range(kinds)], said, matrix)


@pytest.mark.parametrize("kinds", [2, 4])
def test_impossible_reports_are_detected(kinds):
    """Also in a crossed table and for a predictor; shares at the very limit of what is possible are sound."""
    random, n = np.random.default_rng(kinds), 400
    place = np.where(np.arange(n) % 2, "north", "south")
    sound = dice(random, 0.0, n, kinds)
    cheated = replace(sound, codes=np.where(place == "north", 0, sound.codes))
    for column, bad in ((sound, False), (cheated, True)):
        whole = table_of(pd.DataFrame({"place": place}), [column])
        said = impossible([column], cells_of(whole, ["place"], [column.name]))
        assert bool(said) == bad
        assert not bad or "where place = north" in said[0]


def test_sound_reports_are_rarely_called_impossible():
    """120 tries at the hull's corners, where all people gave the same answer."""
    random = np.random.default_rng(7)
    for _ in range(40):
        for share in (0.0, 0.2, 1.0 / 3):
            column = dice(random, share, 60, 3)
            whole = table_of(pd.DataFrame(index=range(60)), [column])
            assert not impossible([column], cells_of(whole, [], ["q3"]))


TURNED = [
    ({"answers": ["yes", "no"], "reports": ["no", "yes"]}, ("design.labels_reversed", "answers", "no, yes")),
    ({"reports": ["yes", "no"]}, ("design.labels_reversed", "reports", "no, yes")),
    ({"reports": ["1", "0"]}, ("design.labels_reversed", "reports", "0, 1")),
    (
        {"answers": ["armed", "not"], "reports": ["not", "armed"]},
        ("design.reports_in_other_order", "armed, not"),
    ),
]


def design(**more) -> str:
    column = {"design": "forced", "yes": "1/6", "no": "1/6", **more}
    return json.dumps({"format": "ldpkit.design/1", "columns": {"armed": column}})


@pytest.mark.parametrize(("given", "code"), TURNED, ids=[str(given) for given, _ in TURNED])
def test_named_design_in_reversed_order_is_rejected(given, code):
    """Its rows are for no and then yes: the other order would invert every share."""
    with raises(InputError, code):
        read_design(design(**given))
    for sound in ({}, {"reports": ["no", "yes"]}, {"answers": ["not", "armed"], "reports": ["0", "1"]}):
        read_design(design(**sound))


JOBS = [["0.7", "0.2", "0.1"], ["0.1", "0.8", "0.1"], ["0.4", "0", "0.6"]]
# A matrix by answers a, b, c, the reports' labels, and whether these say what their answers do.
LABELLED = [
    (JOBS, ["a", "b", "c"], True),
    (JOBS, ["A", "B", "C"], True),
    (JOBS, ["b", "a", "c"], False),
    (JOBS, ["c", "a", "b"], False),
    ([JOBS[1], JOBS[0], JOBS[2]], ["b", "a", "c"], True),
    # Most who are a say b, as do all who are b.
    ([["0.4", "0.6", "0"], ["0", "1", "0"], ["0", "0", "1"]], ["a", "b", "c"], True),
    (JOBS, ["red", "blue", "grey"], True),
]


@pytest.mark.parametrize(("matrix", "reports", "sound"), LABELLED, ids=str)
def test_matrix_with_permuted_labels_is_noted(matrix, reports, sound):
    """Only noted with every result of the column, because Warner's cards can be meant so."""
    column = {"answers": ["a", "b", "c"], "reports": reports, "matrix": matrix}
    read = read_design(json.dumps({"format": "ldpkit.design/1", "columns": {"job": column}}))
    notes = survey_of(pd.DataFrame({"job": reports * 4}), read).notes
    assert bool(notes) != sound
    assert sound or f"(now {', '.join(reports)})" in notes[0]


MISTYPED = [
    (design(ordered="true"), ("design.ordered_not_boolean", "ordered")),
    (design(reports=None), ("design.labels_not_list", "reports")),
    (design(answers=None), ("design.labels_not_list", "answers")),
    (design(design=["forced"]), ("design.unknown_design", "['forced']")),
    (design(yes="1e-999999999"), ("design.not_decimal_or_fraction", "yes")),
    (design(random=True), ("design.number_not_in_quotes", "random")),
    (design().replace('"format"', '"title": 3, "format"'), ("design.title_not_text", "title")),
]


@pytest.mark.parametrize(("text", "code"), MISTYPED, ids=[" ".join(code) for _, code in MISTYPED])
def test_design_with_wrong_types_is_rejected(text, code):
    with raises(InputError, code):
        read_design(text)


def test_blank_cells_are_read_alike_in_csv_and_parquet(tmp_path):
    """Covers a blank line inside a one-column CSV, and in Parquet CSV's blanks and trailing spaces."""
    (tmp_path / "one.csv").write_text("armed\nno\n\nyes\n\n\n")
    assert read_frame(str(tmp_path / "one.csv"))["armed"].isna().tolist() == [False, True, False]
    cells = ["A", "A ", "", " ", None, "B"]
    kinds = pd.Categorical(cells, categories=["B", "A ", "A", " ", ""])
    frame = pd.DataFrame({"place": cells, "kind": kinds})
    frame.to_parquet(tmp_path / "two.parquet")
    found = read_frame(str(tmp_path / "two.parquet"))
    for name in ("place", "kind"):
        assert found[name].isna().tolist() == [False, False, True, True, True, False]
        assert found[name].dropna().tolist() == ["A", "A", "B"]
    assert list(found["kind"].cat.categories) == ["B", "A"]


def test_column_named_1_is_not_the_intercept():
    public = pd.DataFrame({"1": [3.0, 4.0] * 20, "x": [1.0, 2.0, 3.0, 4.0] * 10})
    whole = table_of(public, [known_channel("ever", ("no", "yes"), [0, 1] * 20, YES_NO)])
    assert assemble(whole, "ever ~ 1 + x").law.matrix.terms == ("Intercept", "x")
    assert assemble(whole, "ever ~ `1`").law.matrix.terms == ("Intercept", "1")


def test_extreme_weight_is_rejected():
    whole = table()
    whole.public["weight"] = np.where(np.arange(40) == 6, 1e200, 1.0)
    with raises(InputError, "weights.not_positive", "7"):
        Population(weights="weight").checked(whole)


def test_overlapping_groups_share_simulated_reports():
    """If they were simulated separately, sound models would be called wrong."""
    random = np.random.default_rng(3)
    columns = {name: random.integers(0, 3, 300).astype(str) for name in "ab"}
    reports = known_channel("ever", ("no", "yes"), random.integers(0, 2, 300), YES_NO)
    analysis = assemble(table_of(pd.DataFrame(columns), [reports]), "ever ~ a + b")
    sites = {name: np.zeros((1, 60, *np.shape(first))) for name, first in analysis.initial().items()}
    found = checked(analysis, None, sites, 1)
    shares, at = found.posterior, 1
    for name, column in columns.items():
        levels = list(dict.fromkeys(analysis.cells.frame[name]))
        sizes = np.asarray([np.sum(column == level) for level in levels])
        assert shares[:, at : at + len(levels)] @ sizes == pytest.approx(300 * shares[:, 0], abs=1e-9)
        at += len(levels)
    assert at == shares.shape[1]
