"""From coefficients to people: crossed tables, groups, censuses and weights."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats.contingency import association

from inference.analyses.analysing import analyse_table
from inference.analyses.crossing import cramers_v, cross_table
from inference.analyses.population import Population
from inference.analyses.table import table_of
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.inference.analyses.simulated import JOBS, YES_NO, table
from tests.kit.channels import known_channel
from tests.kit.errors import raises

N = 3000


@pytest.fixture(scope="module")
def people():
    """Half live in towns, asked twice as often. P(ever) is 0.6 there, else 0.2; job goes with ever."""
    random = np.random.default_rng(11)
    town = random.random(N) < 0.5
    ever = (random.random(N) < np.where(town, 0.6, 0.2)).astype(int)
    job = np.asarray([random.choice(3, p=[0.6, 0.3, 0.1] if one else [0.2, 0.3, 0.5]) for one in ever])
    said_ever = (random.random(N) < np.asarray(YES_NO)[ever, 1]).astype(int)
    said_job = np.asarray([random.choice(3, p=JOBS[one]) for one in job])
    public = pd.DataFrame(
        {
            "place": np.where(town, "town", "land"),
            "weight": np.where(town, 1.0, 2.0),
            "age": random.integers(20, 60, N),
        }
    )
    columns = [
        known_channel("ever", ["no", "yes"], said_ever, YES_NO),
        known_channel("job", ["none", "worker", "teacher"], said_job, JOBS),
    ]
    return table_of(public, columns)


def drawn(posterior, name):
    (found,) = [one for one in posterior.quantities if one.name == name]
    return found.draws


def test_cramers_v_matches_scipy():
    shares = np.random.default_rng(0).dirichlet(np.ones(6)).reshape(2, 3)
    counts = np.round(shares * 1e6).astype(int)
    assert float(cramers_v(counts / counts.sum())) == pytest.approx(association(counts, "cramer"), rel=1e-9)


@pytest.mark.slow
def test_crossed_table_finds_simulated_shares(people):
    found = cross_table(people, ["ever", "job"])
    truth = {"p[no, none]": 0.12, "p[no, worker]": 0.18, "p[no, teacher]": 0.3, "p[yes, teacher]": 0.04}
    rows = found.rows()
    for name, share in truth.items():
        assert abs(rows[name]["mean"] - share) < 5 * rows[name]["sd"] < 0.2
    assert sum(row["mean"] for row in rows.values()) == pytest.approx(1, abs=1e-9)
    v = drawn(found, "Cramér's V ever and job")
    assert abs(v.mean() - 0.489) < 5 * v.std()
    assert np.quantile(v, 0.05) > 0.2
    tree = found.to_arviz()["posterior"]["p"]
    assert tree.dims[2:] == ("ever_dim", "job_dim")


@pytest.mark.slow
def test_crossed_table_by_group_finds_shares_of_each_group(people):
    found = cross_table(people, ["ever", "job"], "place")
    shares = {level: sum(found.draws[f"p[{level}, yes, {one}]"] for one in ("none", "worker", "teacher"))
              for level in ("town", "land")}  # fmt: skip
    for level, truth in (("town", 0.6), ("land", 0.2)):
        assert abs(shares[level].mean() - truth) < 5 * shares[level].std() < 0.3


@pytest.mark.slow
def test_census_counts_weight_the_cells(people):
    """Exact at each draw: a quarter of the town's share plus three quarters of the land's."""
    census = pd.DataFrame({"place": ["town", "land"], "count": [250, 750]})
    found = analyse_table(people, "ever ~ place", population=Population(census=census, by="place"), seed=4)
    land = 1 / (1 + np.exp(-found.draws["Intercept"]))
    town = 1 / (1 + np.exp(-found.draws["Intercept"] - found.draws["place[town]"]))
    assert np.allclose(drawn(found, "share ever = yes, in the census"), 0.25 * town + 0.75 * land, atol=1e-12)
    own = next(one for one in found.quantities if one.name == "total ever = yes, place = town, in the census")
    assert own.words == "expected number of people with ever = yes of those with place = town, in the census"
    total = drawn(found, "total ever = yes, in the census")
    assert np.allclose(total, 250 * town + 750 * land, atol=1e-9)
    assert np.allclose(drawn(found, "share ever = yes, place = town, in the census"), town, atol=1e-12)
    assert np.allclose(
        drawn(found, "share ever = yes, place: town − land, in the census"), town - land, atol=1e-12
    )


@pytest.mark.slow
def test_unseen_clinics_are_drawn_from_group_distribution():
    """The interval for a census of a new clinic is wider than for the known clinics."""
    whole = table(400, seed=3)
    known, new = (pd.DataFrame({"clinic": clinics, "count": 1}) for clinics in ([0, 1, 2, 3], [7]))
    spreads = []
    for census in (known, new):
        found = analyse_table(whole, "ever ~ 1 + (1 | clinic)", population=Population(census=census))
        spreads.append(drawn(found, "share ever = yes, in the census").std())
    assert spreads[1] > spreads[0]


@pytest.mark.slow
def test_survey_weights_correct_unequal_sampling(people):
    """0.2 × 2/3 + 0.6 × 1/3 = 0.333 of the people."""
    found = analyse_table(people, "ever ~ place", population=Population(weights="weight"))
    draws = drawn(found, "share ever = yes, weighted")
    assert abs(draws.mean() - 1 / 3) < 5 * draws.std() < 0.2
    assert any("ignore clusters and strata" in note for note in found.diagnostics.notes)


BAD = [
    ({"by": "plac"}, ("table.unknown_column", "'plac'", "place?")),
    ({"by": "job"}, ("weights.private_column", "job")),
    ({"weights": "place"}, ("weights.not_numbers", "place")),
    ({"weights": "weight", "census": pd.DataFrame({"place": ["town"], "count": [1]})}, "census.with_weights"),
    ({"census": pd.DataFrame({"place": ["sea"], "count": [1]})}, ("census.rows_invalid", "place", "'sea'")),
    ({"census": pd.DataFrame({"place": ["town"]})}, ("table.unknown_column", "'count'")),
    ({"census": pd.DataFrame({"count": [1]})}, ("table.unknown_column", "'place'")),
    ({"census": pd.DataFrame({"place": ["town"], "count": [-1]})}, ("weights.not_positive", "count", "0")),
    ({"census": pd.DataFrame({"place": ["town"], "count": [0]})}, "census.counts_nobody"),
    ({"census": pd.DataFrame({"place": [None], "count": [3]})}, ("table.blank_cells", "place", "census")),
]


@pytest.mark.parametrize(("given", "code"), BAD)
def test_invalid_population_is_rejected(people, given, code):
    with raises(InputError, code):
        analyse_table(people, "ever ~ place", population=Population(**given), method="gaussian_approx")


def test_columns_that_cannot_be_crossed_are_rejected(people):
    for names, by in (
        (["ever"], None),
        (["ever", "ever"], None),
        (["ever", "place"], None),
        (["ever", "job"], "job"),
    ):
        with pytest.raises(InputError):
            cross_table(people, names, by)


@pytest.mark.slow
def test_fit_command_crosses_and_poststratifies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    with open("s.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "place"])
        writer.writerows(random.integers(0, 2, (800, 3)).tolist())
    column = {"design": "warner", "p": "0.9"}
    (tmp_path / "d.json").write_text(
        json.dumps({"format": "ldpkit.design/1", "columns": {"a": column, "b": column}})
    )
    (tmp_path / "census.csv").write_text("place,count\n0,100\n1,900\n")
    common = ["fit", "--table", "s.csv", "--design", "d.json", "--out"]
    assert main([*common, "x", "--crosstab", "a,b", "--by", "place"]) == 0
    entry = json.loads((tmp_path / "x" / "posterior.json").read_text())["questions"]["a-b"]
    assert "odds ratio a and b, place = 1" in entry["quantities"]
    assert main([*common, "y", "--formula", "a ~ place", "--poststratify", "census.csv"]) in (0, 4)
    entry = json.loads((tmp_path / "y" / "posterior.json").read_text())["questions"]["a"]
    assert 300 < entry["quantities"]["total a = yes, in the census"]["mean"] < 700
    assert (
        "Expected number of people with a = yes in the census" in (tmp_path / "y" / "report.html").read_text()
    )
    for wrong in (
        ["--crosstab", "a,b", "--formula", "a ~ 1"],
        ["--crosstab", "a"],
        ["--crosstab", "a,b", "--prior", "flat"],
    ):
        assert main([*common, "z", *wrong]) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["s.json", "r.ndjson", "--question", "a", "--prior", "flat"],
            "--prior is for analyses: add --form",
        ),
        (["s.json", "r.ndjson", "--by", "place"], "--by is for analyses: add --formula"),
        (
            ["--table", "s.csv", "--crosstab", "a,b", "--formula", "a ~ 1"],
            "--formula cannot be combined with --crosstab",
        ),
        (["s.json", "r.ndjson", "--formula", "a ~ 1", "--question", "a"], "--question is for a study's own"),
    ],
)
def test_incompatible_option_is_named_in_the_error(tmp_path, capsys, options, said):
    assert main(["fit", *options, "--out", str(tmp_path / "x")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
